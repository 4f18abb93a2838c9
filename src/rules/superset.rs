//! # superset
//!
//! The subject's kept set contains every token of the oracle's nucleus: no under-keep.
//!
//! ## Why
//! A token of the nucleus that is masked can never be sampled. Kept *counts* hide it: a kernel may drop one token and keep
//! another. A stock that under-keeps is no baseline either, so rules that compare with stock can `require` this one.
//!
//! ## Example
//! Two tied maxima and p such that both are needed: a kernel that keeps one of them fails.
//!
//! ## Reading the numbers
//! The message counts the nucleus tokens that are missing, of how many, and names the highest-ranked missing one. The
//! boundary table centres on it.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text. One missing token right at the boundary points at a sum that
//! rounds; many point at the search or the mask.

use super::{quoted, Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::{Node, Spanned};
use crate::text::amount;

/// The parameters of `superset`.
#[derive(Debug, Clone, PartialEq)]
pub struct Superset {
    /// The set that must be contained: the oracle's.
    pub of: Spanned<String>,
}

impl Rule for Superset {
    const NAME: &'static str = "superset";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        super::reference(node, "of").map(|of| Self { of })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("of", quoted(&self.of))]
    }

    fn strictness(&self, new: &Self) -> Strictness {
        Strictness::of_choice(&self.of.value, &new.of.value)
    }

    fn sentence(&self, subject: &str) -> String {
        format!("{subject} keeps every token of the {}'s nucleus.", *self.of)
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(oracle) = row.oracle else { return Verdict::no_oracle() };
        let kept = &subject.output.kept;
        let missing = row.keys().filter(|key| oracle.kept.contains(key.token()) && !kept.contains(key.token()));
        let Some(first) = missing.clone().min() else { return Verdict::Passed };
        let (missing, count) = (missing.count() as u64, oracle.nucleus.count);
        let first = first.token();
        let message = format!(
            "{} drops {missing} of the {} that the oracle keeps; the first is {}",
            subject.name,
            amount(count, "token"),
            row.describe(first)
        );
        Verdict::Violated(
            Finding::new(message, format!("{missing} missing"), "0 missing")
                .at(self.of.span, format!("{missing} of its {} missing", amount(count, "token")))
                .difference(missing)
                .focus(Some(first))
                .fact(format!("{} keeps {} in all", subject.name, amount(kept.count(), "token"))),
        )
    }
}
