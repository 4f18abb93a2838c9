//! Violations and faults as miette diagnostics.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan};

use crate::explain::next_step;
use crate::gate::{Fault, Place, Run, Violation, ViolationOf};
use crate::syntax::{Issue, Issues, Source};
use crate::text::sanitize;

/// How wide and how colourful the reader's screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether colours and links are understood.
    pub color: bool,
}

impl Screen {
    /// A page without colour, for files and pipes.
    #[must_use]
    pub fn plain() -> Self {
        Self { width: 100, color: false }
    }

    /// Draws one diagnostic.
    #[must_use]
    pub fn draw(&self, diagnostic: &dyn Diagnostic) -> String {
        let theme = if self.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(self.width).with_links(false);
        let mut out = String::new();
        // Writing into a String fails only if a source cannot be read; the message alone is then still true.
        if handler.without_syntax_highlighting().render_report(&mut out, diagnostic).is_err() {
            out = format!("{diagnostic}\n");
        }
        out
    }
}

/// Issues of one file that are drawn; a file with more is mended in steps.
const MAX_ISSUES: usize = 50;

/// Draws the issues of a file, and counts those beyond the first fifty. One without a help of its own gets its code's.
#[must_use]
pub fn render_issues(issues: &Issues, screen: &Screen) -> String {
    let next = |issue: &Issue| issue.help.clone().or_else(|| next_step(issue.code).map(str::to_owned));
    let helped = |issue: &Issue| Issue { help: next(issue), ..issue.clone() }.on(&issues.source);
    let mut drawn: Vec<String> = issues.list.iter().take(MAX_ISSUES).map(|issue| screen.draw(&helped(issue))).collect();
    let more = issues.more + issues.list.len().saturating_sub(MAX_ISSUES);
    if more > 0 {
        drawn.push(format!("{}: and {more} more\n", issues.source.name()));
    }
    drawn.join("\n")
}

/// One diagnostic block: a message on a place in one source, and further blocks in other sources.
#[derive(Debug)]
pub(super) struct Block {
    message: String,
    code: Option<String>,
    severity: miette::Severity,
    help: Option<String>,
    source: Option<NamedSource<Arc<str>>>,
    labels: Vec<(SourceSpan, String)>,
    related: Vec<Block>,
}

impl Block {
    fn error(message: &str, code: String) -> Self {
        Self {
            message: sanitize(message).into_owned(),
            code: Some(code),
            severity: miette::Severity::Error,
            help: None,
            source: None,
            labels: Vec::new(),
            related: Vec::new(),
        }
    }

    fn on(mut self, source: &Source, span: SourceSpan, label: &str) -> Self {
        self.source = Some(source.named());
        self.labels.push((span, sanitize(label).into_owned()));
        self
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Block {}

impl Diagnostic for Block {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code.as_ref()?))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.help.as_ref()?))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.labels.iter();
        Some(Box::new(labels.map(|(span, label)| LabeledSpan::new_with_span(Some(label.clone()), *span))))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.related.iter().map(|block| block as &dyn Diagnostic)))
    }
}

/// The rule's id and its place in the policy; for an expectation, its place in the matrix.
#[must_use]
pub fn rule_id<'a>(run: &'a Run, violation: &Violation) -> &'a str {
    match &violation.of {
        ViolationOf::Rule(index) => run.policy.rules().nth(*index).map_or("", |rule| &rule.id.value),
        ViolationOf::Report(index) => run.policy.reports.get(*index).map_or("", |item| &item.id.value),
        ViolationOf::Expectation(_) => "expected-outcome",
    }
}

/// The stable code of what is violated: the kind of rule, whatever its id.
pub(super) fn rule_code(run: &Run, violation: &Violation) -> String {
    let kind = match &violation.of {
        ViolationOf::Rule(index) => run.policy.rules().nth(*index).map_or("", |rule| rule.check.name()),
        ViolationOf::Report(index) => run.policy.reports.get(*index).map_or("", |item| item.kind.name()),
        ViolationOf::Expectation(_) => "expected-outcome",
    };
    format!("rule::{kind}")
}

/// A violation, pointing at the parameter in the policy and at the case in the matrix.
pub(super) fn violation(run: &Run, violation: &Violation) -> Block {
    let finding = &violation.finding;
    let id = rule_id(run, violation);
    let case = violation.at.and_then(|(case, row)| Some((run.matrix.cases.get(case)?, run.cases.get(case)?, row)));
    let place = case.map(|(case, outcome, row)| {
        let p = outcome.rows.iter().find(|found| found.row == row).map(|found| found.p);
        let p = p.map_or_else(String::new, |p| format!(" (p = {p:?})"));
        format!("{} row {row}{p}: ", case.name.value)
    });
    let message = format!("{}{}", place.unwrap_or_default(), finding.message);
    let code = rule_code(run, violation);
    let named = if code.ends_with(&format!("::{id}")) { code } else { format!("{code} (id {id})") };
    let block = Block::error(&message, named);
    let block = match &violation.of {
        ViolationOf::Rule(index) => match run.policy.rules().nth(*index) {
            Some(rule) => block.on(&run.policy.source, finding.at.unwrap_or(rule.span), &finding.label),
            None => block,
        },
        ViolationOf::Report(index) => match run.policy.reports.get(*index) {
            Some(item) => block.on(&run.policy.source, finding.at.unwrap_or(item.span), &finding.label),
            None => block,
        },
        ViolationOf::Expectation(span) => block.on(&run.matrix.source, *span, &finding.label),
    };
    let related = case.map(|(case, _, row)| {
        let mut related = Block::error(&format!("the case, row {row}"), String::new());
        related.code = None;
        related.severity = miette::Severity::Advice;
        related.on(&run.matrix.source, case.span, &format!("row {row} of this case"))
    });
    Block { related: related.into_iter().collect(), ..block }
}

/// A fault, pointing at its place.
pub(super) fn fault(run: &Run, fault: &Fault) -> Block {
    let mut block = Block::error(&fault.message, fault.code.clone());
    block.help = (!fault.help.is_empty()).then(|| sanitize(&fault.help).into_owned());
    match &fault.place {
        Some(Place::Policy(span, label)) => block.on(&run.policy.source, *span, label),
        Some(Place::Matrix(span, label)) => block.on(&run.matrix.source, *span, label),
        None => block,
    }
}
