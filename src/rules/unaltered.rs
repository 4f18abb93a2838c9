//! # unaltered
//!
//! Every kept logit has the bits of the input.
//!
//! ## Why
//! Top-p is a mask. A kernel that also scales, rounds or shifts what it keeps changes the distribution that is sampled.
//!
//! ## Example
//! Temperature applied to the masked logits a second time; a kernel that rounds its output to bfloat16.
//!
//! ## Reading the numbers
//! The message counts the kept tokens whose output bits differ from the input's.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and compare kept outputs with the inputs bit by bit.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `unaltered`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct Unaltered;

impl Rule for Unaltered {
    const NAME: &'static str = "unaltered";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary, RowKind::Disabled];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("Every logit that {subject} keeps has the bits of the input.")
    }

    fn judge(&self, _row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let altered = subject.output.altered;
        if altered == 0 {
            return Verdict::Passed;
        }
        let kept = subject.output.kept.count();
        let message = format!("{} alters {altered} of the {kept} logits that it keeps; none may change", subject.name);
        Verdict::Violated(Finding::new(message, altered, 0).label("kept logits changed").difference(u64::from(altered)))
    }
}
