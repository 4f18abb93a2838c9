//! Counts by rule: never percentages.

use super::outcome::{CaseOutcome, Fault, FaultClass, Place, RowOracle, Status};
use crate::policy::Policy;

/// What one rule did over all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleTally {
    /// The rule's id.
    pub id: String,
    /// Rows on which it holds.
    pub passed: u64,
    /// Rows on which it is violated.
    pub violated: u64,
    /// Rows on which it is violated as declared.
    pub declared: u64,
    /// Rows of its kind on which it does not apply.
    pub not_applicable: u64,
    /// Rows on which it could not be evaluated.
    pub not_evaluated: u64,
    /// Those of them that follow from a declared violation.
    pub not_evaluated_declared: u64,
}

impl RuleTally {
    /// Rows that it decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.passed + self.violated + self.declared
    }
}

pub(super) fn tally(policy: &Policy, cases: &[CaseOutcome]) -> Vec<RuleTally> {
    let mut tallies: Vec<RuleTally> =
        policy.rules().map(|rule| RuleTally { id: rule.id.value.clone(), ..RuleTally::default() }).collect();
    for judgement in cases.iter().flat_map(|case| &case.rows).flat_map(|row| &row.judgements) {
        let Some(tally) = tallies.get_mut(judgement.rule) else { continue };
        match &judgement.status {
            Status::Passed => tally.passed += 1,
            Status::Violated(_) => tally.violated += 1,
            Status::Declared(_) => tally.declared += 1,
            Status::NotApplicable(_) => tally.not_applicable += 1,
            Status::NotEvaluated { declared, .. } => {
                tally.not_evaluated += 1;
                tally.not_evaluated_declared += u64::from(*declared);
            }
        }
    }
    tallies
}

/// A run in which no deciding rule applied to any row proves nothing. Where something else stopped it, that says why.
pub(super) fn nothing_applied(
    policy: &Policy,
    tallies: &[RuleTally],
    cases: &[CaseOutcome],
    faults: &[Fault],
) -> Option<Fault> {
    let stopped = !faults.is_empty() || cases.iter().any(|case| !case.faults.is_empty());
    let rejected = cases.iter().flat_map(|case| &case.rows).any(|row| matches!(row.oracle, RowOracle::Rejected(_)));
    if stopped || rejected || tallies.iter().any(|tally| tally.decided() > 0) {
        return None;
    }
    Some(Fault {
        class: FaultClass::NothingEvaluated,
        code: "gate::nothing-evaluated".to_owned(),
        message: "no rule of the policy applied to any row of the matrix".to_owned(),
        help: "a policy and a matrix must share a row kind: add cases, or rules for the matrix's row kinds".to_owned(),
        place: Some(Place::Policy(policy.name.span, "this policy".to_owned())),
    })
}
