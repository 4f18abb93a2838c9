//! The gate: holds every row of a matrix against the oracle under a policy.
//!
//! Two axes come out: *execution* (complete, or stopped and why) and *decision* (pass, fail, not evaluated). A pass needs
//! both. What is not the frozen thing is named and never judged.

mod boundary;
mod case;
mod exit;
mod outcome;
mod preflight;
mod reports;
mod row;
mod tally;

pub use boundary::{BoundaryLine, Neighbourhood};
pub use case::inputs;
pub use exit::ExitCode;
pub use outcome::{
    CaseOutcome, Decision, Execution, Fault, FaultClass, Judgement, Place, ReportOutcome, RowOracle, RowOutcome, Run,
    RunSubject, Status, SubjectCase, SubjectFacts, Violation, ViolationOf,
};
pub use preflight::dispatch_paths;
pub use row::verdicts;
pub use tally::RuleTally;

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::matrix::Matrix;
use crate::policy::{Freeze, Policy};
use crate::root::ProjectRoot;

/// What a run needs beside its policy and matrix.
#[derive(Debug)]
pub struct Context<'a> {
    /// Where the matrix's paths begin.
    pub root: &'a ProjectRoot,
    /// When the run began; the policy's timeout counts from here.
    pub started: Instant,
    /// The one case, or row, to judge. Such a run never ends in a verdict.
    pub selection: Option<Selection>,
}

/// The code of a run over a part of a matrix.
pub const SELECTION: &str = "gate::selection";

/// A part of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The case.
    pub case: String,
    /// One of its rows, or all.
    pub row: Option<u32>,
}

impl Context<'_> {
    fn late(&self, limit: Duration) -> bool {
        self.started.elapsed() >= limit
    }
}

/// Judges the matrix's recorded evidence under the policy. Never fails: what goes wrong is part of the outcome.
#[must_use]
pub fn run(policy: &Policy, matrix: &Matrix, context: &Context<'_>) -> Run {
    let limit = Duration::from_secs(u64::from(*policy.limits.timeout_seconds));
    let stop = || context.late(limit);
    let (matrix, mut preflight) = select(policy, matrix, context);
    let row = context.selection.as_ref().and_then(|selection| selection.row);
    let cases: Vec<CaseOutcome> = matrix
        .cases
        .par_iter()
        .enumerate()
        .map(|(index, case)| {
            let scope = case::Scope { policy, preflight: &preflight, root: context.root, row, stop: &stop };
            case::judge(&scope, index, case)
        })
        .collect();
    let oracle_nanos = cases.iter().map(|case| case.oracle_nanos).sum();
    let rules = tally::tally(policy, &cases);
    let reports = reports::evaluate(policy, &cases);
    let mut faults = std::mem::take(&mut preflight.faults);
    faults.extend(context.selection.as_ref().map(|selection| selected(selection, &cases)));
    faults.extend(tally::nothing_applied(policy, &rules, &cases, &faults));
    let (execution, decision) = outcome::axes(&faults, &cases, &reports);
    Run {
        policy: policy.clone(),
        matrix,
        freeze: Freeze::NoLock,
        subjects: preflight.subjects.into_iter().map(|subject| subject.facts).collect(),
        faults,
        cases,
        rules,
        reports,
        execution,
        decision,
        oracle_time: Duration::from_nanos(oracle_nanos),
        elapsed: context.started.elapsed(),
        workers: rayon::current_num_threads(),
    }
}

/// What a run is bound to, with nothing judged: the subjects as they are found now, and what is wrong with them.
#[must_use]
pub fn unjudged(policy: &Policy, matrix: &Matrix, root: &ProjectRoot) -> Run {
    let preflight = preflight::run(policy, matrix, root);
    Run {
        policy: policy.clone(),
        matrix: matrix.clone(),
        freeze: Freeze::NoLock,
        subjects: preflight.subjects.into_iter().map(|subject| subject.facts).collect(),
        faults: preflight.faults,
        cases: Vec::new(),
        rules: tally::tally(policy, &[]),
        reports: reports::evaluate(policy, &[]),
        execution: Execution::Stopped,
        decision: Decision::NotEvaluated,
        oracle_time: Duration::ZERO,
        elapsed: Duration::ZERO,
        workers: rayon::current_num_threads(),
    }
}

/// The matrix as far as it is selected, and the checks before anything is judged.
fn select(policy: &Policy, matrix: &Matrix, context: &Context<'_>) -> (Matrix, preflight::Preflight) {
    let preflight = preflight::run(policy, matrix, context.root);
    let mut matrix = matrix.clone();
    if let Some(selection) = &context.selection {
        matrix.cases.retain(|case| case.name.value == selection.case);
    }
    (matrix, preflight)
}

/// A selection leaves the run without a verdict, whatever its rows say; one that selects nothing is an error.
fn selected(selection: &Selection, cases: &[CaseOutcome]) -> Fault {
    let empty = cases.iter().all(|case| case.faults.is_empty() && case.rows.is_empty());
    let row = selection.row.map_or_else(String::new, |row| format!(" row {row}"));
    let (class, code, message, help) = if empty {
        let message = format!("the matrix has no {}{row}", selection.case);
        (FaultClass::Invocation, "gate::empty-selection", message, "name a case and row that the matrix holds")
    } else {
        let message = format!("only {}{row} was judged: a selection never ends in a verdict", selection.case);
        (FaultClass::Stopped, SELECTION, message, "run the whole matrix for a verdict and a receipt")
    };
    Fault { class, code: code.to_owned(), message, help: help.to_owned(), place: None }
}
