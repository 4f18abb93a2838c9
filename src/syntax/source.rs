//! A text file under its display name, with the digest of its bytes.

use std::sync::Arc;

use miette::{NamedSource, SourceSpan};

use crate::digest::Sha256;

/// A text file: its name as shown to people, its text, and the SHA-256 of exactly these bytes.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: Arc<str>,
    sha256: Sha256,
}

impl Source {
    /// Takes a text under a name.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { name: crate::text::sanitize(&name.into()).into_owned(), sha256: Sha256::of(text.as_bytes()), text }
    }

    /// The name as shown to people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of the text's bytes.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }

    /// The 1-based line on which byte `offset` stands.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes().iter().take(end).filter(|byte| **byte == b'\n').count()
    }

    /// The lines that are drawn of a place: those that the span touches, the one before and the one after.
    pub fn lines_around(&self, span: SourceSpan) -> impl Iterator<Item = &[u8]> {
        let bytes = self.text.as_bytes();
        let (before, after) = bytes.split_at(span.offset().min(bytes.len()));
        let newline = |byte: &u8| *byte == b'\n';
        let earlier = before.rsplit(newline).take(2).map(|line| line.len() + 1).sum::<usize>();
        let start = (before.len() + 1).saturating_sub(earlier);
        let touched = after.iter().take(span.len()).filter(|byte| newline(byte)).count();
        let lines = bytes.get(start..).unwrap_or_default().split(newline);
        lines.take(before.rsplit(newline).take(2).count() + touched + 1)
    }

    /// The source as miette draws it: display-safe, byte for byte as long as the text.
    #[must_use]
    pub fn named(&self) -> NamedSource<Arc<str>> {
        NamedSource::new(&self.name, Arc::from(masked(&self.text)))
    }
}

/// Replaces every character that could steer a terminal by as many `?` as it has bytes, so that spans stay true.
fn masked(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c != '\n' && c != '\t' && c != '\r' && crate::text::is_unsafe(c) {
            out.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_around_a_place() {
        let source = Source::new("f", "one\ntwo\nthree\nfour\n");
        let around = |start: usize, length: usize| {
            let lines: Vec<_> = source.lines_around((start, length).into()).map(String::from_utf8_lossy).collect();
            lines.join(" ")
        };
        assert_eq!(around(0, 1), "one two");
        assert_eq!(around(5, 1), "one two three");
        assert_eq!(around(5, 4), "one two three four");
        assert_eq!(around(15, 1), "three four ");
        assert_eq!(around(99, 9), "four ");
    }
}
