//! # exact-count
//!
//! The subject keeps exactly this many tokens of the row. With `on-dispatch` it applies only where the subject took that
//! dispatch path.
//!
//! ## Why
//! On a forced row one token holds all of the probability. A kernel that keeps others beside it samples from a set that
//! top-p does not allow.
//!
//! ## Example
//! `exact-count "patch" 1 on-dispatch="cuda-split"`: the one-program-a-row path keeps all 32,000 tokens of such a row.
//!
//! ## Reading the numbers
//! The message gives the observed and the demanded number of kept tokens.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and look at how the search ends when one token is all of the mass.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::{Node, Spanned};
use crate::text::amount;

/// The parameters of `exact-count`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactCount {
    /// The demanded number of kept tokens.
    pub count: Spanned<u32>,
}

impl Rule for ExactCount {
    const NAME: &'static str = "exact-count";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        node.argument("the number of tokens that must be kept").map(|count| Self { count })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("", self.count.to_string())]
    }

    fn strictness(&self, new: &Self) -> Strictness {
        Strictness::of_choice(&self.count.value, &new.count.value)
    }

    fn sentence(&self, subject: &str) -> String {
        let tokens = if *self.count == 1 { "token" } else { "tokens" };
        format!("{subject} keeps exactly {} {tokens}.", *self.count)
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let (kept, wanted) = (u64::from(subject.output.kept.count()), u64::from(*self.count));
        if kept == wanted {
            return Verdict::Passed;
        }
        let message = format!("{} keeps {}; exactly {wanted} must be kept", subject.name, amount(kept, "token"));
        let focus = row.oracle.and_then(|oracle| row.first_difference(&subject.output.kept, &oracle.kept));
        Verdict::Violated(
            Finding::new(message, kept, wanted)
                .at(self.count.span, format!("{kept} kept"))
                .difference(kept.abs_diff(wanted))
                .focus(focus.or(row.forced)),
        )
    }
}
