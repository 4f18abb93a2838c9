//! KDL files as the gate reads them: every value keeps its place, and all errors of a file are reported at once.

mod decimal;
mod issue;
mod name;
mod node;
mod parse;
mod source;
mod value;

pub use decimal::Decimal;
pub use issue::{Issue, Issues, Severity};
pub use name::unfit_name;
pub use node::{Node, suggest};
pub use parse::{MAX_TEXT, Sink, parse};
pub use source::Source;
pub use value::FromKdl;

use miette::SourceSpan;

/// A value and the place of its text in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where its text stands, in bytes.
    pub span: SourceSpan,
}

impl<T> Spanned<T> {
    /// A value with its place.
    pub fn new(value: T, span: SourceSpan) -> Self {
        Self { value, span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
