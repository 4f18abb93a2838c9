//! What a change of a policy does to recorded rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::review::{Recorded, Turned};
use crate::gate::{ExitCode, Fault, RowOutcome, Run, Status, ViolationOf};

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
    let (apart, faults) = gaps(old, new);
    Recorded { matrix: old.matrix.name.value.clone(), rows: compared, apart, faults, turned }
}

/// What kept rows from being compared: by the nature of the evidence, and by what is missing or wrong.
fn gaps(old: &Run, new: &Run) -> (Option<Fault>, Vec<Fault>) {
    let (mut apart, mut faults) = (None, Vec::new());
    for (which, run, other) in [("old", old, new), ("new", new, old)] {
        let is_apart = is_apart(run);
        for fault in run.all_faults() {
            let same = |other: &Fault| (&other.code, &other.message) == (&fault.code, &fault.message);
            let in_both = other.all_faults().any(same);
            if in_both && which == "new" {
                continue;
            }
            let message =
                if in_both { fault.message.clone() } else { format!("under the {which} policy: {}", fault.message) };
            let fault = Fault { message, ..fault.clone() };
            if is_apart {
                apart.get_or_insert(fault);
            } else {
                faults.push(fault);
            }
        }
    }
    faults.sort_by_key(|fault| Reverse(ExitCode::of_class(fault.class)));
    (apart, faults)
}

/// Whether the matrix as a whole is of subjects or of a dispatch path that the policy does not judge. One that is so in a
/// part alone, or that lacks something as well, is no such matrix.
fn is_apart(run: &Run) -> bool {
    let of_another = |fault: &Fault| {
        ["gate::dispatch-path", "gate::subject-missing", "gate::subject-unknown"].contains(&fault.code.as_str())
    };
    let judged = run.cases.iter().any(|case| !case.rows.is_empty());
    !judged && run.all_faults().next().is_some() && run.all_faults().all(of_another)
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
