//! # repeatable
//!
//! Calling the kernel again on the same batch gives the same bits. With `where="recorded"` the rule applies only where the
//! evidence holds repeated calls; without it, evidence of a single call leaves the rule "not evaluated".
//!
//! ## Why
//! A seed, a log and a bug report mean nothing where the same call gives another answer. Races for the places that are left
//! among tied tokens show only in repeated calls.
//!
//! ## Example
//! Two tokens tied at the boundary and one place left: the first call keeps the lower id, the second the higher.
//!
//! ## Reading the numbers
//! The message counts the tokens of the row whose output bits differ between the first call and any later one.
//!
//! ## What to do next
//! Run the kernel several times on the row in the help text and compare. Look for atomics and unstable sorts among equals.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict, Where};
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `repeatable`.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeatable {
    /// Where the rule applies.
    pub recorded: Where,
}

impl Rule for Repeatable {
    const NAME: &'static str = "repeatable";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary, RowKind::Disabled];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        Where::decode(node).map(|recorded| Self { recorded })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.recorded.parameters()
    }

    fn strictness(&self, new: &Self) -> Strictness {
        self.recorded.strictness(new.recorded)
    }

    fn sentence(&self, subject: &str) -> String {
        format!("Called again on the same batch, {subject} returns the same bits{}.", self.recorded.clause())
    }

    fn judge(&self, _row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        match subject.output.repeat_differs {
            None => self.recorded.unrecorded("the evidence holds one call only"),
            Some(0) => Verdict::Passed,
            Some(count) => {
                let message = format!("{} returns {count} other values when it is called again on the same batch", subject.name);
                Verdict::Violated(Finding::new(message, count, 0).label("another answer").difference(u64::from(count)))
            }
        }
    }
}
