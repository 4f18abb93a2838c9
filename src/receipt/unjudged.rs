//! A receipt against what it is bound to now, with no row judged again.

use super::replay::{Difference, differences};
use super::statement::Statement;
use super::{Evaluator, Places};
use crate::gate::{Fault, Run};

/// Every binding of `receipt` that `run` (of the policy and matrix that it binds, nothing judged) finds otherwise: policy,
/// matrix, oracle, limits, subjects, and the names of rules and reports.
///
/// # Errors
/// Where a statement cannot be written as JSON, which none is.
pub fn unlike(receipt: &Statement, run: &Run) -> Result<Vec<Difference>, serde_json::Error> {
    let then = &receipt.predicate;
    let evaluator = Evaluator { version: "", sha256: then.bindings.evaluator.digest.sha256 };
    let places = Places { policy: String::new(), matrix: String::new() };
    let mut found = super::statement(run, &evaluator, &places);
    let now = &mut found.predicate;
    // What only a judged run can say.
    now.execution = then.execution.clone();
    now.decision.clone_from(&then.decision);
    now.exit_code.clone_from(&then.exit_code);
    now.cases.clone_from(&then.cases);
    now.violations.clone_from(&then.violations);
    // The lock is looked at for itself.
    now.bindings.freeze = then.bindings.freeze.clone();
    for (now, then) in now.rules.iter_mut().zip(&then.rules) {
        *now = super::statement::Rule { id: now.id.clone(), kind: now.kind.clone(), ..then.clone() };
    }
    for (now, then) in now.reports.iter_mut().zip(&then.reports) {
        *now = super::statement::Report { id: now.id.clone(), ..then.clone() };
    }
    differences(receipt, &found)
}

/// What is wrong with the bound things now and was not when the receipt was written.
pub fn new_faults<'r>(receipt: &Statement, run: &'r Run) -> Vec<&'r Fault> {
    let known = |fault: &Fault| receipt.predicate.execution.stop_reasons.iter().any(|stop| stop.code == fault.code);
    run.faults.iter().filter(|fault| !known(fault)).collect()
}
