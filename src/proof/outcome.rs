//! What the model kernels met under a policy.

use std::collections::BTreeSet;

use super::judge::Tally;
use crate::kernels::faults::Model;
use crate::policy::Policy;

/// What is expected of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No rule accuses it.
    Clean,
    /// Some rule catches it on some row.
    Caught,
    /// Nothing: it shows which rules can be tripped, and what a change of the policy costs.
    Priced,
}

/// What stands in the place of the other subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Exact kernels.
    Exact,
    /// The same model: nothing that is relative to another subject can tell.
    Same,
}

/// A rule that a model violated on a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catch {
    /// The rule's id, or `dispatch` for the demanded path.
    pub rule: String,
    /// The matrix, by its place among those that were run.
    pub matrix: usize,
    /// The case.
    pub case: String,
    /// The rows.
    pub rows: Vec<u32>,
}

/// What one model met.
#[derive(Debug, Clone)]
pub struct ModelOutcome {
    /// The model.
    pub model: Model,
    /// What is expected of it.
    pub expected: Expected,
    /// The subject in whose place it ran, by its place in the policy.
    pub subject: usize,
    /// What stood in the place of the others.
    pub company: Company,
    /// What caught it, in the order of cases.
    pub catches: Vec<Catch>,
    /// The first case that left rows undecided, with the reason.
    pub open: Option<(String, String)>,
    /// The rows on which it was judged.
    pub judged: usize,
}

impl ModelOutcome {
    pub(super) fn new(model: Model, expected: Expected, subject: usize, company: Company) -> Self {
        Self { model, expected, subject, company, catches: Vec::new(), open: None, judged: 0 }
    }

    pub(super) fn add(&mut self, matrix: usize, case: &str, tally: Tally) {
        self.judged += tally.rows;
        let catch = |(rule, rows)| Catch { rule, matrix, case: case.to_owned(), rows };
        self.catches.extend(tally.violated.into_iter().map(catch));
        if let (None, Some(why)) = (&self.open, tally.open) {
            self.open = Some((case.to_owned(), why));
        }
    }

    /// The ids of the rules that caught it, with the number of rows, in the order of `ids`.
    #[must_use]
    pub fn by_rule<'i>(&self, ids: impl IntoIterator<Item = &'i str>) -> Vec<(&'i str, usize)> {
        let rows = |id: &str| self.catches.iter().filter(|catch| catch.rule == id).map(|catch| catch.rows.len()).sum();
        ids.into_iter().map(|id| (id, rows(id))).filter(|(_, rows)| *rows > 0).collect()
    }

    /// Every row on which any rule caught it: matrix, case, row.
    #[must_use]
    pub fn rows(&self) -> BTreeSet<(usize, &str, u32)> {
        let rows = |catch: &'_ Catch| catch.rows.clone();
        let row = |catch: &'_ Catch, row| (catch.matrix, row);
        self.catches
            .iter()
            .flat_map(|catch| rows(catch).into_iter().map(move |number| (row(catch, number), catch.case.as_str())))
            .map(|((matrix, row), case)| (matrix, case, row))
            .collect()
    }
}

/// The models that trip one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trip {
    /// The rule's id, or `dispatch`.
    pub rule: String,
    /// The names of the models, each once.
    pub models: Vec<&'static str>,
}

/// What every model met, and what that proves.
#[derive(Debug, Clone)]
pub struct Proof {
    /// Every run.
    pub outcomes: Vec<ModelOutcome>,
    /// Every rule, in the policy's order, then the demanded dispatch path.
    pub trips: Vec<Trip>,
}

impl Proof {
    pub(super) fn new(policy: &Policy, outcomes: Vec<ModelOutcome>) -> Self {
        let rules = policy.rules().map(|rule| rule.id.value.clone());
        let dispatch = policy.evidence.dispatch.as_ref().map(|_| "dispatch".to_owned());
        let trips = rules.chain(dispatch).map(|rule| {
            let mut models: Vec<&'static str> = Vec::new();
            for outcome in outcomes.iter().filter(|outcome| outcome.catches.iter().any(|catch| catch.rule == rule)) {
                if !models.contains(&outcome.model.name) {
                    models.push(outcome.model.name);
                }
            }
            Trip { rule, models }
        });
        let trips = trips.collect();
        Self { outcomes, trips }
    }

    /// The ids of all rules, and `dispatch` where a path is demanded.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.trips.iter().map(|trip| trip.rule.as_str())
    }

    /// The runs of which something is expected that did not happen.
    pub fn wrong(&self) -> impl Iterator<Item = &ModelOutcome> {
        self.outcomes.iter().filter(|outcome| match outcome.expected {
            Expected::Clean => !outcome.catches.is_empty() || outcome.open.is_some(),
            Expected::Caught => outcome.catches.is_empty(),
            Expected::Priced => false,
        })
    }

    /// The rules that nothing tripped.
    pub fn untripped(&self) -> impl Iterator<Item = &Trip> {
        self.trips.iter().filter(|trip| trip.models.is_empty())
    }

    /// Whether the policy is proven: every fault caught, the exact kernel clean, every rule tripped.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.wrong().next().is_none() && self.untripped().next().is_none()
    }
}
