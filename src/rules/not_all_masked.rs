//! # not-all-masked
//!
//! The subject keeps at least one token of the row.
//!
//! ## Why
//! A row masked whole has no token left to sample: softmax over it is NaN, and an engine returns garbage or token 0.
//!
//! ## Example
//! Two levels of logits at +-3e38: the threshold rounds to the maximum, `x > threshold` holds for no token.
//!
//! ## Reading the numbers
//! The message says that 0 tokens are kept, of how many.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text. Whatever the search returns, a row maximum must stay.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `not-all-masked`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct NotAllMasked;

impl Rule for NotAllMasked {
    const NAME: &'static str = "not-all-masked";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("{subject} keeps at least one token.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        if subject.output.kept.count() > 0 {
            return Verdict::Passed;
        }
        let vocab = row.logits.len();
        let message = format!("{} masks all {vocab} tokens of the row; at least 1 must stay", subject.name);
        let focus = row.oracle.map(|oracle| oracle.nucleus.first);
        Verdict::Violated(
            Finding::new(message, 0, "at least 1").label("the whole row is masked").difference(vocab as u64).focus(focus),
        )
    }
}
