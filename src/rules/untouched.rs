//! # untouched
//!
//! The subject returns the row as it came: every token that was not -inf is kept with its bits, and nothing else appears.
//!
//! ## Why
//! p >= 1 switches top-p off. A kernel that masks a faint tail there, or turns greedy, changes requests that never asked for
//! top-p.
//!
//! ## Example
//! p = 1 and a tail of twenty tokens at 1e-9: a kernel that compares a rounded cumulative sum with 1 zeroes the tail.
//!
//! ## Reading the numbers
//! The message counts the tokens that were masked and the kept logits whose bits changed.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text; rows with p >= 1 should take no part in the search at all.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;
use crate::text::amount;

/// The parameters of `untouched`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct Untouched;

impl Rule for Untouched {
    const NAME: &'static str = "untouched";
    const ROWS: &'static [RowKind] = &[RowKind::Disabled];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("{subject} returns the row as it came, bit by bit.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let output = subject.output;
        let present = |token: usize| row.logits.get(token).is_some_and(|&logit| logit != f32::NEG_INFINITY);
        let wrong = (0..row.logits.len()).filter(|&token| present(token) != output.kept.contains(token as u32));
        let first = wrong.clone().next();
        let masked = wrong.count();
        let input_nan = row.logits.iter().filter(|logit| logit.is_nan()).count() as u64;
        if masked == 0 && output.altered == 0 && u64::from(output.nan) == input_nan {
            return Verdict::Passed;
        }
        let message = format!(
            "{} changes a row whose p switches top-p off: {} masked or added, {} altered",
            subject.name,
            amount(masked as u64, "token"),
            amount(output.altered, "kept logit")
        );
        Verdict::Violated(
            Finding::new(message, format!("{masked} masked, {} altered", output.altered), "untouched")
                .label("the row was changed")
                .difference(masked as u64 + u64::from(output.altered))
                .focus(first.map(|token| token as u32)),
        )
    }
}
