//! # masked-value
//!
//! Every token outside the oracle's set is either kept with the bits of the input or masked with exactly -inf: no other
//! value stands where a mask should.
//!
//! ## Why
//! Softmax gives -inf a probability of 0, and nothing else. A mask of 0.0, -1e4 or the smallest finite value leaves a token
//! that can be sampled, and over negative logits 0.0 makes it the most likely one.
//!
//! ## Example
//! Logits -1, -2 and -3 with a small p: a kernel that returns -1, 0 and 0 has masked with 0.0.
//!
//! ## Reading the numbers
//! The message counts the tokens outside the oracle's set that are neither the input's bits nor -inf, and names the first.
//! A NaN counts. Changed tokens inside the set are for `unaltered` to name. Evidence that counts changed logits without
//! saying which they are leaves the rule "not evaluated".
//!
//! ## What to do next
//! Reproduce the row with the command in the help text and look for the constant that the mask writes.

use super::{Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::Node;
use crate::text::amount;

/// The parameters of `masked-value`: none.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedValue;

impl Rule for MaskedValue {
    const NAME: &'static str = "masked-value";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(_node: &mut Node<'_>) -> Option<Self> {
        Some(Self)
    }

    fn strictness(&self, _new: &Self) -> Strictness {
        Strictness::Equal
    }

    fn sentence(&self, subject: &str) -> String {
        format!("What {subject} masks is exactly -inf.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(oracle) = row.oracle else { return Verdict::no_oracle() };
        let output = subject.output;
        if output.altered == 0 {
            return Verdict::Passed;
        }
        let Some(altered) = &output.altered_tokens else {
            return Verdict::NotEvaluated(format!("the evidence does not say which {} logits changed", output.altered));
        };
        let wrong: Vec<u32> = altered.iter().filter(|token| !oracle.kept.contains(*token)).collect();
        let Some(&first) = wrong.first() else { return Verdict::Passed };
        let count = wrong.len() as u64;
        let message = format!(
            "{} writes neither -inf nor the input to {} outside the oracle's set; the first is {}",
            subject.name,
            amount(count, "token"),
            row.describe(first)
        );
        Verdict::Violated(
            Finding::new(message, count, 0).label("masked with another value").difference(count).focus(Some(first)),
        )
    }
}
