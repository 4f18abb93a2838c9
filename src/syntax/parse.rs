//! From bytes to KDL nodes, with the parser's own limits guarded.

use std::cell::{Cell, RefCell};
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

/// The largest file that is parsed, in bytes. These files are read by people; the shipped ones are below 16 KiB.
pub const MAX_TEXT: usize = 256 << 10;

/// The most openings in a file that no policy or matrix needs, and that the parser takes long over: it looks for the end
/// of each through the rest of the file. A block after `/-` it reads twice, and so what is nested in n of them 2^n times.
const MAX_UNUSUAL: usize = 12;
const MAX_SLASHDASHES: usize = 2;

/// The stack that parses, decodes and drops one block inside another takes less than half of this.
const STACK_PER_BLOCK: usize = 64 << 10;
/// The parser recurses at every byte that it cannot place: at most 641 bytes of stack for one (`}`, a debug build).
const STACK_PER_BYTE: usize = 1280;
const STACK_BESIDE: usize = 4 << 20;

/// The most issues of a file that are kept; the rest are counted.
const MAX_KEPT: usize = 200;

/// Collects the issues of one file.
#[derive(Debug, Default)]
pub struct Sink {
    kept: RefCell<Vec<Issue>>,
    more: Cell<usize>,
    refused: Cell<bool>,
}

impl Sink {
    /// Adds an issue.
    pub fn push(&self, issue: Issue) {
        self.refused.set(self.refused.get() || issue.severity == Severity::Error);
        let mut kept = self.kept.borrow_mut();
        if kept.len() < MAX_KEPT {
            kept.push(issue.cut());
        } else {
            self.more.set(self.more.get() + 1);
        }
    }

    /// Whether no error was collected.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.refused.get()
    }

    /// Everything collected, as issues of this file.
    #[must_use]
    pub fn into_issues(self, source: Source) -> Issues {
        Issues { more: self.more.get(), ..Issues::new(source, self.kept.into_inner()) }
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
    // A reservation: only what is used of it takes memory.
    let bytes = source.text().len().min(MAX_TEXT);
    let stack = STACK_BESIDE + blocks * STACK_PER_BLOCK + bytes * STACK_PER_BYTE;
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
        _ => Err(sink.into_issues(source.clone())),
    }
}

fn document(source: &Source, sink: &Sink) -> Option<KdlDocument> {
    if let Some(issue) = too_large(source.text()).or_else(|| too_deep(source.text())) {
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

fn too_large(text: &str) -> Option<Issue> {
    let message = format!("the file has {} bytes; {MAX_TEXT} are read at most", text.len());
    let issue = || Issue::error("kdl::too-large", message, (0, 0).into(), "not parsed");
    (text.len() > MAX_TEXT).then(|| issue().help("split the file; a matrix repeats a case's rows with `times`"))
}

/// Counts braces, comment openings and unusual openings in the raw bytes, strings included.
fn too_deep(text: &str) -> Option<Issue> {
    let (mut depth, mut blocks, mut comments, mut unusual) = (0usize, 0usize, 0usize, 0usize);
    let bytes = text.as_bytes();
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' => (depth, blocks) = (depth + 1, blocks + 1),
            b'}' => depth = depth.saturating_sub(1),
            b'/' if bytes.get(offset + 1) == Some(&b'*') => comments += 1,
            _ => {
                let (before, rest) = bytes.split_at(offset);
                unusual += unusual_opening(before, rest);
            }
        }
        if unusual > MAX_UNUSUAL {
            let message = format!(
                "more than {MAX_SLASHDASHES} of `/-`, or {MAX_UNUSUAL} of `#\"`, `\"\"\"` and `\\` that ends no line"
            );
            let issue = Issue::error("kdl::unusual", message, SourceSpan::new(offset.into(), 1), "one too many");
            return Some(issue.help("write plain strings, and comment lines out with `//`"));
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

/// How much the opening counts at which the text is split, if it is one: a slashdash (not that of a comment `//-`), a raw
/// string, a string of several lines, or a backslash that ends no line.
fn unusual_opening(before: &[u8], rest: &[u8]) -> usize {
    let after_slash = matches!(before, [b'/'] | [.., b'\0'..=b')' | b'+'..=b'\xff', b'/']);
    match rest {
        [b'/', b'-', ..] if !after_slash => MAX_UNUSUAL / MAX_SLASHDASHES,
        [b'#', b'"', ..] | [b'"', b'"', b'"', ..] => 1,
        [b'\\', after @ ..] => {
            let next = after.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
            usize::from(next.is_some_and(|byte| *byte != b'\n'))
        }
        _ => 0,
    }
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

    /// Each makes the parser recurse at every repetition, and overflowed a stack that did not grow with the file.
    #[test]
    fn no_run_of_errors_overflows_the_stack() {
        let runs = [
            "}", "a=", ")", ";=", "a a= ", "a =\n", "p 1}\n", "a 1=1\n", "(a)", "\"", "{}", ")}", "}}=", " (", "\\\n)",
        ];
        for run in runs {
            let refused = code(run.repeat(MAX_TEXT / run.len()));
            assert!(["kdl::syntax", "kdl::too-many-blocks", "kdl::unusual"].contains(&refused), "{run:?}: {refused}");
        }
    }

    #[test]
    fn a_file_has_a_largest_size() {
        assert_eq!(code(" ".repeat(MAX_TEXT)), "parsed");
        assert_eq!(code(" ".repeat(MAX_TEXT + 1)), "kdl::too-large");
    }

    /// Each took the parser minutes, or for ever.
    #[test]
    fn what_the_parser_takes_long_over_is_refused() {
        for run in ["a /-{\n", "/- ", "=(\\", "#\"}", "\"\"\"\n#"] {
            assert_eq!(code(run.repeat(MAX_UNUSUAL + 2)), "kdl::unusual", "{run:?}");
        }
        assert_eq!(code("a \"\\u{7f}\"\n".repeat(MAX_UNUSUAL)), "parsed");
        assert_eq!(code("/-a {\nb }\n".repeat(MAX_SLASHDASHES)), "parsed");
        assert_eq!(code("/-a\n".repeat(MAX_SLASHDASHES + 1)), "kdl::unusual");
        assert_eq!(code("//-----\n".repeat(MAX_UNUSUAL + 1)), "parsed");
        assert_eq!(code("/**//-a\n".repeat(MAX_SLASHDASHES + 1)), "kdl::unusual");
        assert_eq!(code("a \\\n  b \\ \r\n c\n".repeat(MAX_UNUSUAL + 1)), "parsed");
    }

    #[test]
    fn what_is_beyond_the_kept_issues_is_counted() {
        let found = |count: usize| {
            parse(&Source::new("f.kdl", "a"), |_, sink| {
                let issue = || Issue::error("kdl::syntax", "x".repeat(1 << 20), (0, 0).into(), "here");
                (0..count).for_each(|_| sink.push(issue()));
                Some(())
            })
            .unwrap_err()
        };
        assert_eq!((found(MAX_KEPT).list.len(), found(MAX_KEPT).more), (MAX_KEPT, 0));
        let more = found(MAX_KEPT + 7);
        assert_eq!((more.list.len(), more.more, more.to_string()), (MAX_KEPT, 7, "f.kdl: 207 errors".to_owned()));
        assert!(more.list[0].message.ends_with("xx…") && more.list[0].message.len() < 1000);
    }

    #[test]
    fn nesting_has_a_limit() {
        assert_eq!(code("a {\n".repeat(MAX_DEPTH + 1)), "kdl::too-deep");
        assert_eq!(code("/*".repeat(MAX_BLOCK_COMMENTS + 1)), "kdl::too-deep");
        assert_eq!(code("a {\n".repeat(MAX_DEPTH) + &"}".repeat(MAX_DEPTH)), "parsed");
        assert_eq!(code("a { b; }\n".repeat(MAX_DEPTH + 1)), "parsed");
    }
}
