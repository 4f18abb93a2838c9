//! Whether a receipt says one thing. A digest protects its bytes; this protects a reader from a writer.

use std::collections::BTreeSet;

use super::statement::{Case, Statement};
use crate::gate::ExitCode;
use crate::matrix::{self, Matrix, Origin};
use crate::policy::Policy;

/// What a receipt says against itself, or against the policy and matrix that it binds; one sentence each.
#[must_use]
pub fn inconsistencies(statement: &Statement, policy: &Policy, matrix: &Matrix) -> Vec<String> {
    let mut found = Vec::new();
    let mut demand = |holds: bool, otherwise: &str| {
        if !holds {
            found.push(otherwise.to_owned());
        }
    };
    let predicate = &statement.predicate;
    let names: Vec<&str> = predicate.cases.iter().map(|case| case.name.as_str()).collect();
    let expected: Vec<&str> = matrix.cases.iter().map(|case| case.name.value.as_str()).collect();
    demand(names == expected, "its cases are not those of the matrix, in the matrix's order");
    let rules: Vec<&str> = predicate.rules.iter().map(|rule| rule.id.as_str()).collect();
    let expected: Vec<&str> = policy.rules().map(|rule| rule.id.value.as_str()).collect();
    demand(rules == expected, "its rules are not those of the policy, in the policy's order");
    let subjects: Vec<&str> = predicate.bindings.subjects.iter().map(|subject| subject.name.as_str()).collect();
    // A run of a matrix that lacks one is stopped, and has no binding of it.
    let declared = |subject: &str| matrix.subjects.iter().any(|spec| spec.name.value == subject);
    let expected = policy.evidence.subjects.iter().map(|subject| subject.value.as_str());
    let expected: Vec<&str> = expected.filter(|subject| declared(subject)).collect();
    demand(subjects == expected, "its subjects are not those of the policy, in the policy's order");
    let unique: BTreeSet<&str> = statement.subject.iter().map(|subject| subject.name.as_str()).collect();
    demand(unique.len() == statement.subject.len(), "two of its subjects have one name");
    let evaluator = &predicate.bindings.evaluator;
    demand(evaluator.name == "nucleus-gate", "it names another evaluator");
    demand(!evaluator.version.trim().is_empty(), "it states no version of the evaluator");
    let freeze = &predicate.bindings.freeze;
    demand((freeze.state == "frozen") == freeze.why.is_none(), "it is frozen and says why not, or the reverse");

    let complete = predicate.execution.status == "complete";
    let pass = predicate.decision == "pass";
    demand(
        complete == predicate.execution.stop_reasons.is_empty(),
        "it is complete with a reason to stop, or stopped without",
    );
    for (case, spec) in predicate.cases.iter().zip(&matrix.cases) {
        for (holds, otherwise) in as_pinned(case, spec) {
            demand(holds, &format!("case {}: {otherwise}", case.name));
        }
    }
    for subject in &predicate.bindings.subjects {
        let spec = matrix.subjects.iter().find(|spec| spec.name.value == subject.name);
        let pinned = spec.map(|spec| (spec.bundle.value.as_str(), spec.bundle_sha256.value));
        let bound = (subject.bundle.as_str(), subject.pinned_bundle_sha256);
        demand(pinned == Some(bound), "a subject's bundle is not the one that the matrix names");
        let found = subject.found_bundle_sha256 == Some(subject.pinned_bundle_sha256) && !subject.files.is_empty();
        demand(!complete || found, "it is complete, yet a subject's bundle was not found as pinned, file by file");
    }
    demand(!complete || predicate.cases.iter().all(decided), "it is complete, yet rows of a case are missing");
    let decided = predicate.cases.iter().filter(|case| decided(case)).count().to_string();
    demand(!complete || decided == predicate.execution.decided_cases, "it counts other decided cases than it holds");
    demand(predicate.execution.expected_cases == matrix.cases.len().to_string(), "it expects another number of cases");
    let zero = predicate.exit_code == ExitCode::Passed.number().to_string();
    demand(zero == (complete && pass), "its exit code is 0 without a complete pass, or another one with it");
    demand(!pass || predicate.violations.is_empty(), "it passes with violations");
    let rows = || predicate.cases.iter().flat_map(|case| &case.rows);
    demand(!zero || rows().all(|row| row.verdict == "passed"), "it passes with a row that did not");
    demand(!zero || predicate.rules.iter().all(|rule| rule.violated == "0"), "it passes with a rule that was violated");
    found.extend(super::arithmetic::problems(statement, policy, matrix));
    found
}

/// A case against the matrix's: its input file always; the inputs and their rows where any row was judged.
fn as_pinned(case: &Case, spec: &matrix::Case) -> [(bool, &'static str); 3] {
    let (file, rows) = match &spec.origin {
        Origin::Generated { p, .. } => (None, Some(p.len().to_string())),
        Origin::File { path, sha256, .. } => (Some((path.value.as_str(), sha256.value)), None),
    };
    let bound = case.file.as_ref().map(|file| (file.path.as_str(), file.digest.sha256));
    let judged = !case.rows.is_empty();
    let pins = (Some(spec.input.logits_sha256.value), Some(spec.input.p_sha256.value));
    [
        (bound == file, "its input file is not the one that the matrix names"),
        (!judged || (case.logits_sha256, case.p_sha256) == pins, "its inputs are not those that the matrix pins"),
        (!judged || rows.is_none() || case.batch == rows, "it has another number of rows than the matrix"),
    ]
}

/// Whether every row of a case is there, once and in order.
pub(super) fn decided(case: &Case) -> bool {
    let rows = case.rows.iter().map(|row| row.row.as_str());
    let expected = (0..case.rows.len()).map(|row| row.to_string());
    case.batch.as_deref() == Some(case.rows.len().to_string().as_str()) && rows.eq(expected)
}

/// The exit code that a receipt's outcome stands for; an unknown one is internal.
impl From<&Statement> for ExitCode {
    fn from(statement: &Statement) -> Self {
        let codes = [
            Self::Passed,
            Self::Violated,
            Self::NothingEvaluated,
            Self::Stopped,
            Self::Invocation,
            Self::Drift,
            Self::Internal,
        ];
        let stated = |code: &Self| code.number().to_string() == statement.predicate.exit_code;
        codes.into_iter().find(stated).unwrap_or(Self::Internal)
    }
}
