//! # count-envelope
//!
//! The number of tokens that the subject keeps differs from the oracle's by at most `max-difference`; above that, the
//! difference divided by the oracle's count must be strictly below `relative-below`. Compared in integers: exactly 0.5 %
//! fails `relative-below="0.005"`.
//!
//! ## Why
//! fp32 sums of 100,000 probabilities round, so a correct kernel may be a few tokens off. Per row and against an exact
//! reference, nothing else is excused: a batch-wide tolerance lets a large row excuse a small one.
//!
//! ## Example
//! The oracle keeps 512 of 2,048 adjacent fp32 values and the kernel 529: 17 apart, 17/512 is not below 0.005.
//!
//! ## Reading the numbers
//! The message gives both counts, their difference and both limits. The label stands on the limit that failed last: the
//! relative one. The boundary table centres on the first token on which the two sets differ.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text. Over-keeping on near-equal logits points at a tie band; a fixed share
//! of all tokens points at the precision of the sums.

use super::{quoted, Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::syntax::{Decimal, Node, Spanned};
use crate::text::amount;

/// The parameters of `count-envelope`.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEnvelope {
    /// The count that is compared with: the oracle's.
    pub against: Spanned<String>,
    /// The difference that always passes, in tokens.
    pub max_difference: Spanned<u64>,
    /// Above it, the share of the oracle's count that the difference must stay strictly below.
    pub relative_below: Spanned<Decimal>,
}

impl CountEnvelope {
    /// Whether `kept` lies inside the envelope around `reference`.
    #[must_use]
    pub fn admits(&self, kept: u64, reference: u64) -> bool {
        let difference = kept.abs_diff(reference);
        difference <= *self.max_difference || self.relative_below.exceeds_ratio(difference, reference)
    }
}

impl Rule for CountEnvelope {
    const NAME: &'static str = "count-envelope";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        let against = super::reference(node, "against");
        let max_difference = node.property("max-difference");
        let relative_below = node.property("relative-below");
        Some(Self { against: against?, max_difference: max_difference?, relative_below: relative_below? })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("against", quoted(&self.against)),
            ("max-difference", self.max_difference.to_string()),
            ("relative-below", quoted(self.relative_below.text())),
        ]
    }

    fn strictness(&self, new: &Self) -> Strictness {
        let difference = Strictness::of_limit(&*self.max_difference, &*new.max_difference);
        let relative = Strictness::of_limit(&*self.relative_below, &*new.relative_below);
        difference.and(relative).and(Strictness::of_choice(&self.against.value, &new.against.value))
    }

    fn sentence(&self, subject: &str) -> String {
        format!(
            "The number of tokens that {subject} keeps differs from the {}'s by at most {}, or by less than {} of the {}'s \
             number.",
            *self.against,
            *self.max_difference,
            self.relative_below.text(),
            *self.against
        )
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let Some(oracle) = row.oracle else { return Verdict::no_oracle() };
        let (kept, reference) = (u64::from(subject.output.kept.count()), u64::from(oracle.nucleus.count));
        if self.admits(kept, reference) {
            return Verdict::Passed;
        }
        let difference = kept.abs_diff(reference);
        let direction = if kept > reference { "more" } else { "fewer" };
        let message = format!(
            "{} keeps {} where the oracle keeps {reference}: {difference} {direction}; allowed are {} or less \
             than {} of the oracle's count",
            subject.name,
            amount(kept, "token"),
            *self.max_difference,
            self.relative_below.text()
        );
        let allowed = format!("{} or below {}", *self.max_difference, self.relative_below.text());
        let label = format!("{difference}/{reference} is not below this");
        Verdict::Violated(
            Finding::new(message, format!("{kept} kept for {reference}"), allowed)
                .at(self.relative_below.span, label)
                .difference(difference)
                .focus(row.first_difference(&subject.output.kept, &oracle.kept)),
        )
    }
}
