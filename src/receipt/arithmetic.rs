//! Whether a receipt's numbers are numbers, and add up to one another and to what the matrix declares.

use std::collections::BTreeSet;

use super::consistency::decided;
use super::statement::{Boundary, Case, Row, RowSubject, Rule, Statement};
use crate::digest::Sha256;
use crate::matrix::{self, Matrix, Origin, RowKind};
use crate::policy::Policy;

/// What does not add up; one sentence each.
pub(super) fn problems(statement: &Statement, policy: &Policy, matrix: &Matrix) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(text) = numbers(statement).into_iter().find(|text| number(text).is_none()) {
        found.push(format!("`{}` is no number in its one spelling", crate::text::sanitize(text)));
    }
    let violations = statement.predicate.violations.iter();
    let violated: BTreeSet<(Option<&str>, Option<&str>)> =
        violations.map(|violation| (violation.case.as_deref(), violation.row.as_deref())).collect();
    for (case, spec) in statement.predicate.cases.iter().zip(&matrix.cases) {
        let about = |problem: &str| format!("case {}: {problem}", case.name);
        found.extend(of_case(statement, case, spec).into_iter().map(about));
        for (row, index) in case.rows.iter().zip(0..) {
            let about = |problem: &str| format!("case {} row {index}: {problem}", case.name);
            let listed = violated.contains(&(Some(&case.name), Some(&row.row)));
            found.extend(of_row(policy, spec, index, row, listed).into_iter().map(about));
        }
    }
    found.extend(of_rules(statement, policy));
    found
}

/// A count as the receipt writes it: decimal digits, no sign, no leading zero.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// The number after `0x`, of exactly this many digits.
fn bits(text: &str, digits: usize) -> Option<u64> {
    let hex = text.strip_prefix("0x").filter(|hex| hex.len() == digits && !hex.contains(|c: char| c.is_uppercase()))?;
    u64::from_str_radix(hex, 16).ok()
}

/// Every count of the receipt.
fn numbers(statement: &Statement) -> Vec<&str> {
    let predicate = &statement.predicate;
    let execution = &predicate.execution;
    let mut texts = vec![&execution.expected_cases, &execution.decided_cases, &predicate.exit_code];
    for case in &predicate.cases {
        texts.extend(case.batch.iter().chain(&case.vocab));
        for row in &case.rows {
            texts.push(&row.row);
            if let Some(Boundary { count, last_kept, next_dropped, .. }) = &row.oracle.boundary {
                texts.extend([count, last_kept].into_iter().chain(next_dropped));
            }
            for output in &row.subjects {
                texts.extend([&output.kept, &output.missing, &output.extra, &output.nan, &output.altered]);
            }
        }
    }
    for rule in &predicate.rules {
        texts.extend([&rule.passed, &rule.violated, &rule.declared, &rule.not_applicable, &rule.not_evaluated]);
    }
    texts.extend(predicate.reports.iter().flat_map(|report| [&report.count, &report.of]));
    texts.extend(predicate.violations.iter().filter_map(|violation| violation.row.as_ref()));
    texts.into_iter().map(String::as_str).collect()
}

fn of_case(statement: &Statement, case: &Case, spec: &matrix::Case) -> Vec<&'static str> {
    let mut found = Vec::new();
    let p: Option<Vec<f32>> =
        case.rows.iter().map(|row| Some(f32::from_bits(u32::try_from(bits(&row.p_bits, 8)?).ok()?))).collect();
    // The matrix pins p: a row more or less, or another p, hashes to something else.
    if decided(case) && p.map(|p| Sha256::of_f32(&p)) != case.p_sha256 {
        found.push("its rows have not the p that it is bound to");
    }
    if let (Origin::Generated { recipe, .. }, Some(vocab)) = (&spec.origin, &case.vocab)
        && number(vocab) != Some(u64::from(recipe.vocab))
    {
        found.push("it has another vocabulary than the matrix");
    }
    let bound = statement.predicate.bindings.subjects.iter().map(|subject| {
        let file = format!("{}.safetensors", case.name);
        let found = subject.files.iter().find(|bound| bound.name == file);
        (subject.name.as_str(), found.map(|found| found.digest.sha256))
    });
    let stated = case.evidence.iter().map(|evidence| (evidence.subject.as_str(), Some(evidence.file_sha256)));
    // A case whose every row is declared to be rejected needs no evidence.
    let needed = case.rows.iter().any(|row| row.oracle.rejected.is_none());
    if (needed || !case.evidence.is_empty()) && !case.rows.is_empty() && !stated.eq(bound) {
        found.push("its evidence is not the bound files of every subject");
    }
    found
}

/// Row `index` of a case; `listed` says whether the receipt lists a violation of it.
fn of_row(policy: &Policy, spec: &matrix::Case, index: u32, row: &Row, listed: bool) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut demand = |holds: bool, otherwise: &'static str| {
        if !holds {
            found.push(otherwise);
        }
    };
    let kind = spec.row_kind(index);
    demand(row.kind == kind.name(), "it is of another kind than the matrix says");
    let oracle = &row.oracle;
    match (&oracle.boundary, &oracle.rejected) {
        (Some(boundary), None) => {
            let written = [&boundary.normalizer_bits, &boundary.target_bits].map(|text| bits(text, 16));
            demand(kind != RowKind::Disabled, "it is disabled and has a boundary");
            demand(written.iter().all(Option::is_some), "its boundary's bits are no bits");
            let adds_up = |output: &RowSubject| {
                let sum = |a: &str, b: &str| number(a)?.checked_add(number(b)?);
                sum(&output.kept, &output.missing) == sum(&boundary.count, &output.extra)
            };
            demand(row.subjects.iter().all(adds_up), "kept and missing tokens are not the oracle's and the extra ones");
        }
        (None, Some(code)) => {
            demand(spec.rejection_expected(index) == Some(code), "it is rejected and was not to be");
        }
        (None, None) => demand(kind == RowKind::Disabled, "it has neither a boundary nor a rejection"),
        (Some(_), Some(_)) => demand(false, "it has both a boundary and a rejection"),
    }
    let subjects = if oracle.rejected.is_some() { 0 } else { policy.evidence.subjects.len() };
    demand(row.subjects.len() == subjects, "it does not speak of every subject");
    demand(row.declared.iter().all(|rule| spec.expects_violation(rule, index)), "a declared violation is not declared");
    demand(listed == (row.verdict == "violated"), "its verdict and the list of violations differ");
    found
}

/// Every rule was asked on every row of its kinds, and its violations are those listed.
fn of_rules(statement: &Statement, policy: &Policy) -> Vec<String> {
    let predicate = &statement.predicate;
    let rows = || predicate.cases.iter().flat_map(|case| &case.rows).filter(|row| row.oracle.rejected.is_none());
    let asked = |id: &str, row: &Row| {
        let kinds = [RowKind::Forced, RowKind::Ordinary, RowKind::Probe, RowKind::Disabled];
        let kind = kinds.into_iter().find(|kind| kind.name() == row.kind);
        kind.is_some_and(|kind| policy.rules_for(kind).iter().any(|rule| rule.id.value == id))
    };
    let listed =
        |id: &str| predicate.violations.iter().filter(|listed| listed.rule == id && listed.row.is_some()).count();
    let declared = |id: &str| rows().flat_map(|row| &row.declared).filter(|rule| *rule == id).count();
    let adds_up = |rule: &Rule| {
        let id = rule.id.as_str();
        let counts = [&rule.passed, &rule.violated, &rule.declared, &rule.not_applicable, &rule.not_evaluated];
        let sum = counts.into_iter().try_fold(0u64, |sum, text| sum.checked_add(number(text)?));
        let same = |text: &str, count: usize| number(text) == Some(count as u64);
        sum == Some(rows().filter(|row| asked(id, row)).count() as u64)
            && same(&rule.violated, listed(id))
            && same(&rule.declared, declared(id))
    };
    let wrong = predicate.rules.iter().filter(|rule| !adds_up(rule));
    wrong.map(|rule| format!("rule {}: its counts are not those of the rows", rule.id)).collect()
}
