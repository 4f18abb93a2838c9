//! # retains-forced
//!
//! The subject keeps the forced token: the one whose logit the matrix sets far above the rest of the row.
//!
//! ## Why
//! The forced token holds all of the probability. A kernel that masks it leaves the sampler without its only candidate: the
//! large-logit fault, where a threshold rebuilt from a probability rounds up to the maximum itself.
//!
//! ## Example
//! A row of 32,000 logits drawn from a normal distribution with token 15,514 set to 1e9, p = 0.9. A kernel that keeps
//! `x > log(pivot) + log(Z) + M` in fp32 masks every token of it.
//!
//! ## Reading the numbers
//! The message names the forced token, its logit and how many tokens the subject kept instead.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text. Compare probabilities, not rebuilt logits, and keep a row maximum
//! whatever the pivot says.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;
use crate::text::amount;

/// The parameters of `retains-forced`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainsForced;

impl Rule for RetainsForced {
    const NAME: &'static str = "retains-forced";
    const ROWS: &'static [RowKind] = &[RowKind::Forced];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("{subject} keeps the forced token.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(token) = row.forced else {
            return Verdict::NotEvaluated("the matrix names no forced token for this row".to_owned());
        };
        if subject.output.kept.contains(token) {
            return Verdict::Passed;
        }
        let kept = subject.output.kept.count();
        let message = format!("{} drops the forced {}; it keeps {}", subject.name, row.describe(token), amount(kept, "token"));
        Verdict::Violated(
            Finding::new(message, "dropped", "kept").label("the forced token is dropped").difference(1).focus(Some(token)),
        )
    }
}
