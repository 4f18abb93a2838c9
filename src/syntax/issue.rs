//! What is wrong in a file, with every place that shows it.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceSpan};

use super::Source;

/// How much an issue weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing, nothing refused.
    Warning,
    /// The file is refused.
    Error,
}

/// One thing wrong in a file.
#[derive(Debug, Clone)]
pub struct Issue {
    /// The stable code, for instance `policy::unknown-rule`.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where, the main place first.
    pub labels: Vec<(SourceSpan, String)>,
    /// What to do next.
    pub help: Option<String>,
}

impl Issue {
    /// An error at one place.
    pub fn error(code: &'static str, message: impl Into<String>, span: SourceSpan, label: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: vec![(span, label.into())],
            help: None,
        }
    }

    /// A warning at one place.
    pub fn warning(code: &'static str, message: impl Into<String>, span: SourceSpan, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, span, label) }
    }

    /// Adds a second place.
    #[must_use]
    pub fn and(mut self, span: SourceSpan, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    /// Adds the next step.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The issue with its texts cut: a file's names and values can be as long as the file.
    #[must_use]
    pub(super) fn cut(mut self) -> Self {
        self.message = cut(self.message);
        self.labels = self.labels.into_iter().map(|(span, label)| (span, cut(label))).collect();
        self.help = self.help.map(cut);
        self
    }

    /// The issue as a miette diagnostic on `source`.
    #[must_use]
    pub fn on(&self, source: &Source) -> IssueReport {
        // Very long lines, or very many, would be drawn whole for each of their issues.
        let offset = self.labels.first().map_or(0, |(span, _)| span.offset());
        let fits = |span: SourceSpan| {
            source
                .lines_around(span)
                .take(MAX_LINES + 1)
                .enumerate()
                .all(|(at, line)| at < MAX_LINES && line.len() <= MAX_LINE)
        };
        if self.labels.iter().all(|(span, _)| fits(*span)) {
            return IssueReport { source: Some(source.named()), issue: self.clone() };
        }
        let place = format!(" ({} line {}, byte {offset})", source.name(), source.line(offset));
        IssueReport { source: None, issue: Self { message: self.message.clone() + &place, ..self.clone() } }
    }
}

/// The longest line that is drawn, in bytes, and the most lines of one place.
const MAX_LINE: usize = 1000;
const MAX_LINES: usize = 100;

/// The most characters of a message, a label or a help.
const MAX_SAID: usize = 400;

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_SAID) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// An issue on its source, or without it where its line is too long to be drawn.
#[derive(Debug)]
pub struct IssueReport {
    source: Option<miette::NamedSource<std::sync::Arc<str>>>,
    issue: Issue,
}

impl fmt::Display for IssueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::sanitize(&self.issue.message))
    }
}

impl std::error::Error for IssueReport {}

impl Diagnostic for IssueReport {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.issue.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.issue.severity {
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.issue.help.as_deref()?;
        Some(Box::new(crate::text::sanitize(help)))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.issue.labels.iter().map(|(span, label)| {
            let label = crate::text::sanitize(label).into_owned();
            LabeledSpan::new_with_span(Some(label), *span)
        })))
    }
}

/// Everything wrong in one file. Never empty.
#[derive(Debug, Clone)]
pub struct Issues {
    /// The file.
    pub source: Source,
    /// In the order of their places.
    pub list: Vec<Issue>,
    /// How many more were found and not kept.
    pub more: usize,
}

impl Issues {
    /// Collects issues in the order of their places.
    #[must_use]
    pub fn new(source: Source, mut list: Vec<Issue>) -> Self {
        list.sort_by_key(|issue| issue.labels.first().map_or(0, |(span, _)| span.offset()));
        let list = list.into_iter().map(Issue::cut).collect();
        Self { source, list, more: 0 }
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len() + self.more;
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{}: {count} error{plural}", self.source.name())
    }
}

impl std::error::Error for Issues {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_draw_is_placed_in_words() {
        let long = "x".repeat(MAX_LINE + 1);
        let drawn = |text: &str| {
            let issue = Issue::error("kdl::syntax", "wrong", (0, 1).into(), "here");
            let report = issue.on(&Source::new("f.kdl", text));
            (report.source_code().is_some(), report.to_string())
        };
        assert_eq!(drawn(&format!("a\nb\n{long}")), (true, "wrong".to_owned()));
        assert_eq!(drawn(&format!("a\n{long}")), (false, "wrong (f.kdl line 1, byte 0)".to_owned()));
    }

    #[test]
    fn what_an_issue_says_is_cut() {
        let issue = |length: usize| {
            Issue::error("kdl::syntax", "ä".repeat(length), (0, 1).into(), "here").help("b".repeat(length)).cut()
        };
        assert_eq!(issue(MAX_SAID).message, "ä".repeat(MAX_SAID));
        assert_eq!(issue(MAX_SAID + 1).message, "ä".repeat(MAX_SAID) + "…");
        assert_eq!(issue(MAX_SAID + 1).help, Some("b".repeat(MAX_SAID) + "…"));
    }
}
