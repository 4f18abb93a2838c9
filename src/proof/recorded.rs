//! What a change of a policy does to recorded rows.

use std::collections::BTreeMap;

use super::review::{Recorded, Turned};
use crate::gate::{RowOutcome, Run, Status, ViolationOf};

/// Compares two runs of one matrix under two policies: every row whose verdict differs.
#[must_use]
pub fn recorded(old: &Run, new: &Run) -> Recorded {
    let (before, after) = (verdicts(old), verdicts(new));
    let both = before.iter().filter_map(|(place, old)| Some((*place, old, after.get(place)?)));
    let mut compared = 0;
    let mut turned = Vec::new();
    for ((index, row), old_ids, new_ids) in both {
        compared += 1;
        // Another set of violated rules is the same verdict: the row does not pass.
        if old_ids.is_empty() != new_ids.is_empty() {
            let case = old.cases.get(index).map_or_else(String::new, |case| case.name.clone());
            turned.push(Turned { case, row, old: old_ids.clone(), new: new_ids.clone() });
        }
    }
    let stopped = [("old", old), ("new", new)].into_iter().find_map(|(which, run)| {
        let fault = run.all_faults().next()?;
        Some(format!("under the {which} policy: {} ({})", fault.message, fault.code))
    });
    Recorded { matrix: old.matrix.name.value.clone(), rows: compared, stopped, turned }
}

/// By case and row: the ids of what the row violates or leaves open. Empty for a row that passes.
fn verdicts(run: &Run) -> BTreeMap<(usize, u32), Vec<String>> {
    let rows = run.cases.iter().flat_map(|case| case.rows.iter().map(move |row| ((case.index, row.row), row)));
    rows.map(|(place, row)| (place, failing(run, row))).collect()
}

fn failing(run: &Run, row: &RowOutcome) -> Vec<String> {
    let id = |rule: usize| run.policy.rules().nth(rule).map_or_else(String::new, |rule| rule.id.value.clone());
    let judged = row.judgements.iter().filter_map(|judgement| match &judgement.status {
        Status::Violated(_) => Some(id(judgement.rule)),
        status if status.is_open() => Some(format!("{} not evaluated", id(judgement.rule))),
        Status::Passed | Status::Declared(_) | Status::NotApplicable(_) | Status::NotEvaluated { .. } => None,
    });
    let absent = row.absent.iter().map(|violation| match &violation.of {
        ViolationOf::Expectation(_) => "a declared outcome is absent".to_owned(),
        ViolationOf::Rule(rule) => id(*rule),
        ViolationOf::Report(_) => "a report".to_owned(),
    });
    judged.chain(absent).collect()
}
