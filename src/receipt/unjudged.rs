//! A receipt against what it is bound to now, with no row judged again.

use super::replay::{Difference, differences};
use super::statement::{Execution, FreezeBinding, Predicate, Report, Rule, Statement};
use super::{Evaluator, Places};
use crate::gate::{Fault, Run};

/// Every binding of `receipt` that `run` (of the policy and matrix that it binds, nothing judged) finds otherwise: policy,
/// matrix, oracle, limits, subjects, and the names of rules and reports.
///
/// # Errors
/// Where a statement cannot be written as JSON, which none is.
pub fn unlike(receipt: &Statement, run: &Run) -> Result<Vec<Difference>, serde_json::Error> {
    let evaluator = Evaluator { version: "", sha256: receipt.predicate.bindings.evaluator.digest.sha256 };
    let places = Places { policy: String::new(), matrix: String::new() };
    differences(&bound(receipt), &bound(&super::statement(run, &evaluator, &places)))
}

/// The statement without what only a judged run can say. The lock is looked at for itself.
fn bound(statement: &Statement) -> Statement {
    let Predicate { schema_version, bindings, rules, reports, .. } = &statement.predicate;
    Statement {
        kind: statement.kind.clone(),
        subject: statement.subject.clone(),
        predicate_type: statement.predicate_type.clone(),
        predicate: Predicate {
            schema_version: schema_version.clone(),
            receipt_sha256: None,
            replaces: None,
            execution: Execution::default(),
            decision: String::new(),
            exit_code: String::new(),
            bindings: super::Bindings { freeze: FreezeBinding::default(), ..bindings.clone() },
            cases: Vec::new(),
            rules: rules
                .iter()
                .map(|rule| Rule { id: rule.id.clone(), kind: rule.kind.clone(), ..Rule::default() })
                .collect(),
            violations: Vec::new(),
            reports: reports.iter().map(|report| Report { id: report.id.clone(), ..Report::default() }).collect(),
        },
    }
}

/// What is wrong with the bound things now and was not when the receipt was written.
pub fn new_faults<'r>(receipt: &Statement, run: &'r Run) -> Vec<&'r Fault> {
    let known = |fault: &Fault| receipt.predicate.execution.stop_reasons.iter().any(|stop| stop.code == fault.code);
    run.faults.iter().filter(|fault| !known(fault)).collect()
}
