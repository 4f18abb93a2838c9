//! # symmetric-difference
//!
//! The subject's kept set differs from the oracle's on no more tokens than another subject's (stock's) does, on the same row.
//!
//! ## Why
//! A patch that stays inside every envelope can still be worse than what runs today. Row by row, it may not be.
//!
//! ## Example
//! Stock keeps the oracle's 12,120 tokens and two more; the patch keeps them and three more: 3 is greater than 2.
//!
//! ## Reading the numbers
//! The message gives both symmetric differences: tokens kept by one of subject and oracle but not by both. Where stock itself
//! drops oracle tokens (`requires`), the rule is "not evaluated": such a stock is no baseline.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and compare the two kernels' boundaries in the table.

use super::{quoted, Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::{Node, Spanned};
use crate::text::amount;

/// The parameters of `symmetric-difference`.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricDifference {
    /// The set that is compared with: the oracle's.
    pub against: Spanned<String>,
    /// The subject whose difference is the bound.
    pub at_most: Spanned<String>,
}

impl Rule for SymmetricDifference {
    const NAME: &'static str = "symmetric-difference";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        let against = super::reference(node, "against");
        let at_most = node.property("at-most");
        Some(Self { against: against?, at_most: at_most? })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("against", quoted(&self.against)), ("at-most", quoted(&self.at_most))]
    }

    fn strictness(&self, new: &Self) -> Strictness {
        Strictness::of_choice(&self.at_most.value, &new.at_most.value)
            .and(Strictness::of_choice(&self.against.value, &new.against.value))
    }

    fn sentence(&self, subject: &str) -> String {
        format!(
            "{subject} differs from the {} on no more tokens than {} does on the same row.",
            *self.against, *self.at_most
        )
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(oracle) = row.oracle else { return Verdict::no_oracle() };
        let Some(bound) = row.subject(&self.at_most.value) else {
            return Verdict::NotEvaluated(format!("there is no output of {}", self.at_most.value));
        };
        let own = subject.output.kept.symmetric_difference(&oracle.kept);
        let allowed = bound.output.kept.symmetric_difference(&oracle.kept);
        if own <= allowed {
            return Verdict::Passed;
        }
        let message = format!(
            "{} differs from the oracle on {}; {} differs on {allowed}, and no more are allowed",
            subject.name,
            amount(own, "token"),
            bound.name
        );
        Verdict::Violated(
            Finding::new(message, own, allowed)
                .at(self.at_most.span, format!("differs on {}", amount(allowed, "token")))
                .difference(own - allowed)
                .focus(row.first_difference(&subject.output.kept, &oracle.kept)),
        )
    }

    fn other_subjects(&self) -> Vec<&Spanned<String>> {
        vec![&self.at_most]
    }
}
