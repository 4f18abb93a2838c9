//! From bytes to KDL nodes, with the parser's own limits guarded.

use std::cell::RefCell;

use kdl::KdlDocument;
use miette::SourceSpan;

use super::{Issue, Issues, Severity, Source};

/// The parser recurses; deeper files than anyone writes would overflow its stack.
const MAX_DEPTH: usize = 32;
const MAX_BLOCK_COMMENTS: usize = 64;

/// Collects the issues of one file.
#[derive(Debug, Default)]
pub struct Sink(RefCell<Vec<Issue>>);

impl Sink {
    /// Adds an issue.
    pub fn push(&self, issue: Issue) {
        self.0.borrow_mut().push(issue);
    }

    /// Whether no error was collected.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.0.borrow().iter().all(|issue| issue.severity == Severity::Warning)
    }

    /// Everything collected.
    #[must_use]
    pub fn into_list(self) -> Vec<Issue> {
        self.0.into_inner()
    }
}

/// Parses the file and hands its nodes to `decode`.
///
/// # Errors
/// Every issue of the file, if there is at least one error or `decode` returns nothing.
pub fn parse<T>(source: &Source, decode: impl FnOnce(&KdlDocument, &Sink) -> Option<T>) -> Result<T, Issues> {
    let sink = Sink::default();
    let decoded = document(source, &sink).and_then(|document| decode(&document, &sink));
    match decoded {
        Some(value) if sink.is_clean() => Ok(value),
        _ => Err(Issues::new(source.clone(), sink.into_list())),
    }
}

fn document(source: &Source, sink: &Sink) -> Option<KdlDocument> {
    if let Some(issue) = too_deep(source.text()) {
        sink.push(issue);
        return None;
    }
    match source.text().parse::<KdlDocument>() {
        Ok(document) => Some(document),
        Err(error) => {
            for diagnostic in error.diagnostics {
                let message = diagnostic.message.unwrap_or_else(|| "this is not KDL 2".to_owned());
                let label = diagnostic.label.unwrap_or_else(|| "here".to_owned());
                let mut issue = Issue::error("kdl::syntax", message, diagnostic.span, label);
                issue.help = diagnostic.help;
                sink.push(issue);
            }
            None
        }
    }
}

/// Counts braces and comment openings in the raw bytes. Over-counts inside strings, never under-counts.
fn too_deep(text: &str) -> Option<Issue> {
    let (mut depth, mut comments) = (0usize, 0usize);
    let bytes = text.as_bytes();
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'/' if bytes.get(offset + 1) == Some(&b'*') => comments += 1,
            _ => {}
        }
        if depth > MAX_DEPTH || comments > MAX_BLOCK_COMMENTS {
            let message = format!("more than {MAX_DEPTH} nested blocks or {MAX_BLOCK_COMMENTS} block comments");
            let span = SourceSpan::new(offset.into(), 1);
            let issue = Issue::error("kdl::too-deep", message, span, "the limit is passed here");
            return Some(issue.help("flatten the file; policies and matrices need three levels"));
        }
    }
    None
}
