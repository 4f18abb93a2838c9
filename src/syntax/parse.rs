//! From bytes to KDL nodes, with the parser's own limits guarded.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::{io, thread};

use kdl::KdlDocument;
use miette::SourceSpan;

use super::{Issue, Issues, Severity, Source};

/// The parser recurses, block by block and comment by comment, and an overflowing stack aborts the process. These are
/// what a person reads about; a brace in a string can hide depth from the count, so it is [`MAX_BLOCKS`] that holds.
const MAX_DEPTH: usize = 32;
const MAX_BLOCK_COMMENTS: usize = 64;

/// The most `{` in a file, wherever they stand: no file nests deeper than this.
const MAX_BLOCKS: usize = 4096;

/// The stack that parses, decodes and drops one block inside another takes less than half of this.
const STACK_PER_BLOCK: usize = 64 << 10;
const STACK_BESIDE: usize = 4 << 20;

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
pub fn parse<T: Send>(
    source: &Source,
    decode: impl FnOnce(&KdlDocument, &Sink) -> Option<T> + Send,
) -> Result<T, Issues> {
    let blocks = source.text().bytes().filter(|byte| *byte == b'{').count().min(MAX_BLOCKS);
    let stack = STACK_BESIDE + blocks * STACK_PER_BLOCK;
    let parsed = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(stack).spawn_scoped(scope, || parse_here(source, decode));
        Ok(thread?.join())
    });
    parsed.map_or_else(
        |error: io::Error| {
            let message = format!("the system gave no thread to parse on: {error}");
            Err(Issues::new(source.clone(), vec![Issue::error("kdl::no-thread", message, (0, 0).into(), "not parsed")]))
        },
        |joined| joined.unwrap_or_else(|panic| resume_unwind(panic)),
    )
}

fn parse_here<T>(source: &Source, decode: impl FnOnce(&KdlDocument, &Sink) -> Option<T>) -> Result<T, Issues> {
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

/// Counts braces and comment openings in the raw bytes, strings included.
fn too_deep(text: &str) -> Option<Issue> {
    let (mut depth, mut blocks, mut comments) = (0usize, 0usize, 0usize);
    let bytes = text.as_bytes();
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' => (depth, blocks) = (depth + 1, blocks + 1),
            b'}' => depth = depth.saturating_sub(1),
            b'/' if bytes.get(offset + 1) == Some(&b'*') => comments += 1,
            _ => {}
        }
        if blocks > MAX_BLOCKS {
            let span = SourceSpan::new(offset.into(), 1);
            let issue =
                Issue::error("kdl::too-many-blocks", format!("more than {MAX_BLOCKS} blocks"), span, "one too many");
            return Some(issue.help("split the file; a matrix repeats a case's rows with `times`"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: String) -> &'static str {
        let parsed = parse(&Source::new("f.kdl", text), |_, _| Some(()));
        parsed.map_or_else(|issues| issues.list[0].code, |()| "parsed")
    }

    #[test]
    fn depth_hidden_from_the_count_does_not_overflow_the_stack() {
        let hidden = |blocks: usize| "a \"}\" {\n".repeat(blocks);
        assert_eq!(code(hidden(MAX_BLOCKS)), "kdl::syntax");
        assert_eq!(code(hidden(MAX_BLOCKS) + &"}".repeat(MAX_BLOCKS)), "parsed");
        assert_eq!(code(hidden(MAX_BLOCKS + 1)), "kdl::too-many-blocks");
    }

    #[test]
    fn nesting_has_a_limit_and_length_has_not() {
        assert_eq!(code("a {\n".repeat(MAX_DEPTH + 1)), "kdl::too-deep");
        assert_eq!(code("/*".repeat(MAX_BLOCK_COMMENTS + 1)), "kdl::too-deep");
        assert_eq!(code("a {\n".repeat(MAX_DEPTH) + &"}".repeat(MAX_DEPTH)), "parsed");
        assert_eq!(code("a { b; }\n".repeat(MAX_DEPTH + 1)), "parsed");
    }
}
