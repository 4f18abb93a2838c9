//! # row-independent
//!
//! A row's output does not depend on its company: alone, and in a batch that holds the case twice, it has the same bits as in
//! the case's own batch. With `where="recorded"` the rule applies only where the evidence holds such calls; without it,
//! evidence of one batch leaves the rule "not evaluated".
//!
//! ## Why
//! A server batches whatever requests arrive together. A kernel that takes another path for a larger batch, or lets a row
//! reach into its neighbour, gives a user an answer that depends on the other users.
//!
//! ## Example
//! Up to 64 rows one path runs and above it another, which keeps one token more.
//!
//! ## Reading the numbers
//! The message counts the tokens of the row whose output bits differ in other company.
//!
//! ## What to do next
//! Run the row in the help text alone and in a larger batch and compare the dispatch paths that the two calls took.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict, Where};
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `row-independent`.
#[derive(Debug, Clone, PartialEq)]
pub struct RowIndependent {
    /// Where the rule applies.
    pub recorded: Where,
}

impl Rule for RowIndependent {
    const NAME: &'static str = "row-independent";
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
        format!("In other company, {subject} returns the same bits for the row{}.", self.recorded.clause())
    }

    fn judge(&self, _row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        match subject.output.company_differs {
            None => self.recorded.unrecorded("the evidence holds the row in one batch only"),
            Some(0) => Verdict::Passed,
            Some(count) => {
                let message = format!("{} returns {count} other values for the row in other company", subject.name);
                Verdict::Violated(Finding::new(message, count, 0).label("depends on the batch").difference(u64::from(count)))
            }
        }
    }
}
