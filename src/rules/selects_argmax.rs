//! # selects-argmax
//!
//! The forced token is the argmax of the subject's output: a greedy sampler behind the kernel would pick it.
//!
//! ## Why
//! Keeping the forced token is not enough if another kept logit was changed and now lies above it, or if a NaN stands in the
//! row.
//!
//! ## Example
//! A kernel that writes 0.0 instead of -inf for masked tokens lets a masked token win over a negative maximum.
//!
//! ## Reading the numbers
//! The message names the token of the largest output (the lowest id of several), or says why no argmax is known: NaN in the
//! output, altered logits whose values were not recorded, nothing kept.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and compare the output's first ranks with the input's.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::evidence::Argmax;
use crate::matrix::RowKind;
use crate::syntax::Node;

/// The parameters of `selects-argmax`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectsArgmax;

impl Rule for SelectsArgmax {
    const NAME: &'static str = "selects-argmax";
    const ROWS: &'static [RowKind] = &[RowKind::Forced];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("The forced token is the argmax of what {subject} returns.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(forced) = row.forced else {
            return Verdict::NotEvaluated("the matrix names no forced token for this row".to_owned());
        };
        let output = subject.output;
        let instead = match output.argmax {
            Argmax::Token(token) if token == forced => return Verdict::Passed,
            Argmax::Token(token) => format!("{} comes first", row.describe(token)),
            Argmax::AllMasked => "every token is masked".to_owned(),
            Argmax::Unknown => format!("{} NaN, {} altered logits", output.nan, output.altered),
        };
        let message = format!("the argmax of {} is not the forced {}: {instead}", subject.name, row.describe(forced));
        Verdict::Violated(
            Finding::new(message, instead, format!("token {forced}"))
                .label("the forced token is not selected")
                .difference(1)
                .focus(Some(forced)),
        )
    }
}
