//! # no-nan
//!
//! The subject's output row holds no NaN.
//!
//! ## Why
//! A NaN in a logit row makes every comparison false: a sampler that reads it picks an arbitrary token, or crashes.
//!
//! ## Example
//! A kernel that divides by a normalizer of 0, or subtracts an infinite maximum from itself, writes NaN for the whole row.
//!
//! ## Reading the numbers
//! The message counts the NaNs of the output row. The input row holds none: the oracle rejects such a row.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and look for 0/0, inf - inf and reads past the row's end.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `no-nan`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct NoNan;

impl Rule for NoNan {
    const NAME: &'static str = "no-nan";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary, RowKind::Disabled];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("{subject} returns no NaN.")
    }

    fn judge(&self, _row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let nan = subject.output.nan;
        if nan == 0 {
            return Verdict::Passed;
        }
        let message = format!("{} returns {nan} NaN in the row; none is allowed", subject.name);
        Verdict::Violated(Finding::new(message, nan, 0).label("the row holds NaN").difference(u64::from(nan)))
    }
}
