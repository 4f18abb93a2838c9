//! What a change of a policy costs: which models the new policy lets through on rows where the old one stopped them.

use std::collections::BTreeSet;

use super::outcome::{Company, Expected, ModelOutcome, Proof};
use crate::kernels::faults::Model;

/// A model that gets through on rows where it was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The model.
    pub model: &'static str,
    /// Whether it is a fault of the zoo (else a mutation of a right answer).
    pub fault: bool,
    /// The subject in whose place it ran, by its place in the policy.
    pub subject: usize,
    /// What stood in the place of the others.
    pub company: Company,
    /// Rows on which the old policy caught it.
    pub before: usize,
    /// Rows on which the new policy still catches it, of these.
    pub still: usize,
    /// The first row that gets through: case and row.
    pub example: (String, u32),
}

impl Price {
    /// Whether no rule catches it any more, on any row.
    #[must_use]
    pub fn escapes(&self) -> bool {
        self.still == 0
    }
}

/// The price of a change, from the proofs of both policies over the same matrices. What escapes wholly comes first, faults
/// before mutations.
#[must_use]
pub fn price(old: &Proof, new: &Proof) -> Vec<Price> {
    let same = |one: &ModelOutcome, other: &ModelOutcome| {
        one.model.name == other.model.name && one.subject == other.subject && one.company == other.company
    };
    let prices = old.outcomes.iter().filter(|outcome| outcome.expected != Expected::Clean).filter_map(|before| {
        let after = new.outcomes.iter().find(|after| same(before, after));
        let after: BTreeSet<_> = after.map(ModelOutcome::rows).unwrap_or_default();
        let rows = before.rows();
        let (_, case, row) = rows.difference(&after).next().copied()?;
        Some(Price {
            model: before.model.name,
            fault: Model::find(before.model.name).is_some(),
            subject: before.subject,
            company: before.company,
            before: rows.len(),
            still: rows.intersection(&after).count(),
            example: (case.to_owned(), row),
        })
    });
    let mut prices: Vec<Price> = prices.collect();
    prices.sort_by_key(|price| (!price.escapes(), !price.fault));
    prices
}
