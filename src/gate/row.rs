//! One row: every rule of its kind, and the outcomes that the matrix declares of it.

use super::boundary;
use super::case::Scope;
use super::outcome::{Judgement, RowOracle, RowOutcome, Status, SubjectFacts, Violation, ViolationOf};
use crate::evidence::{CaseEvidence, KeptSet};
use crate::inputs::Inputs;
use crate::matrix::{Case, Expectation, RowKind};
use crate::oracle::{Nucleus, OracleError, certificate};
use crate::policy::{Policy, RuleSpec};
use crate::rules::{Finding, OracleRow, Row, SubjectRow, Verdict};

/// A row with everything that is known of it.
pub(super) struct RowInput<'a> {
    pub index: usize,
    pub inputs: &'a Inputs,
    pub evidence: &'a [CaseEvidence],
    pub case: &'a Case,
    pub case_index: usize,
}

/// Judges a row. `None` where an undeclared rejection leaves nothing to judge: the case's faults name it.
pub(super) fn judge(
    scope: &Scope<'_>,
    input: &RowInput<'_>,
    nucleus: Result<Option<Nucleus>, OracleError>,
) -> Option<RowOutcome> {
    let row = input.index as u32;
    let kind = input.case.row_kind(row);
    let p = input.inputs.p().get(input.index).copied()?;
    let logits = input.inputs.row(input.index)?;
    let mut outcome = RowOutcome {
        row,
        kind,
        p,
        oracle: RowOracle::Disabled,
        certificate: None,
        subjects: Vec::new(),
        judgements: Vec::new(),
        absent: Vec::new(),
    };
    let nucleus = match nucleus {
        Ok(nucleus) => nucleus,
        Err(error) => {
            outcome.oracle = RowOracle::Rejected(error);
            return (input.case.rejection_expected(row) == Some(error.code())).then_some(outcome);
        }
    };
    if let Some(code) = input.case.rejection_expected(row) {
        outcome.absent.push(absent_rejection(input, row, code));
    }
    let oracle = nucleus.map(|nucleus| OracleRow::new(nucleus, logits));
    outcome.oracle = nucleus.map_or(RowOracle::Disabled, RowOracle::Nucleus);
    outcome.certificate = nucleus.map(|nucleus| certificate(logits, p, &nucleus));
    let subjects: Vec<SubjectRow<'_>> = scope
        .preflight
        .subjects
        .iter()
        .zip(input.evidence)
        .filter_map(|(subject, evidence)| {
            let output = evidence.rows.get(input.index)?;
            Some(SubjectRow { name: &subject.facts.name, output, dispatch: &evidence.dispatch.path })
        })
        .collect();
    let forced = input.case.force_of(row).map(|force| force.token.value);
    let view = Row { kind, logits, oracle: oracle.as_ref(), forced, subjects: &subjects };
    outcome.subjects = subjects.iter().map(|subject| facts(&view, subject)).collect();
    outcome.judgements = judgements(scope, input, &view);
    let missing = absent_violations(scope, input, &outcome.judgements);
    outcome.absent.extend(missing);
    Some(outcome)
}

fn facts(row: &Row<'_>, subject: &SubjectRow<'_>) -> SubjectFacts {
    let kept = &subject.output.kept;
    let minus = |left: &KeptSet, right: &KeptSet| left.iter().filter(|token| !right.contains(*token)).count() as u64;
    SubjectFacts {
        kept: u64::from(kept.count()),
        nan: subject.output.nan,
        altered: subject.output.altered,
        missing: row.oracle.map_or(0, |oracle| minus(&oracle.kept, kept)),
        extra: row.oracle.map_or(0, |oracle| minus(kept, &oracle.kept)),
        forced_kept: row.forced.map(|token| kept.contains(token)),
        kept_sha256: kept.sha256(),
    }
}

/// Every rule of the row's kind, in the policy's order: a requirement stands before what requires it.
fn judgements(scope: &Scope<'_>, input: &RowInput<'_>, row: &Row<'_>) -> Vec<Judgement> {
    let specs: Vec<(usize, &RuleSpec)> = {
        let rules = scope.policy.rules_for(row.kind);
        scope
            .policy
            .rules()
            .enumerate()
            .filter(|(_, spec)| rules.iter().any(|rule| std::ptr::eq(rule, *spec)))
            .collect()
    };
    let mut done: Vec<(&RuleSpec, Judgement)> = Vec::with_capacity(specs.len());
    for (index, spec) in specs {
        let status = status(input, row, index, spec, &done);
        done.push((spec, Judgement { rule: index, status }));
    }
    done.into_iter().map(|(_, judgement)| judgement).collect()
}

fn status(
    input: &RowInput<'_>,
    row: &Row<'_>,
    index: usize,
    spec: &RuleSpec,
    done: &[(&RuleSpec, Judgement)],
) -> Status {
    let status = |id: &str| done.iter().find(|(other, _)| other.id.value == id).map(|(_, judgement)| &judgement.status);
    let passed = |id: &str| matches!(status(id), Some(Status::Passed));
    match verdict(row, spec, passed) {
        Verdict::Passed => Status::Passed,
        Verdict::NotApplicable(why) => Status::NotApplicable(why),
        Verdict::NotEvaluated(why) => {
            let required = spec.requires.as_ref().and_then(|requires| status(&requires.value));
            let declared = matches!(required, Some(Status::Declared(_) | Status::NotEvaluated { declared: true, .. }));
            Status::NotEvaluated { why, declared }
        }
        Verdict::Violated(finding) if input.case.expects_violation(&spec.id.value, input.index as u32) => {
            Status::Declared(finding)
        }
        Verdict::Violated(finding) => Status::Violated(Box::new(Violation {
            of: ViolationOf::Rule(index),
            at: Some((input.case_index, input.index as u32)),
            neighbourhood: boundary::neighbourhood(row, finding.focus, finding.also),
            finding,
        })),
    }
}

/// What one rule says of a row, given which rules before it passed there.
fn verdict(row: &Row<'_>, spec: &RuleSpec, passed: impl Fn(&str) -> bool) -> Verdict {
    let Some(subject) = row.subject(&spec.subject.value) else {
        return Verdict::NotEvaluated(format!("there is no output of {}", spec.subject.value));
    };
    if let Some(path) = spec.on_dispatch.as_ref().filter(|path| path.value != subject.dispatch) {
        return Verdict::NotApplicable(format!("dispatch path `{}`, not `{}`", subject.dispatch, path.value));
    }
    if let Some(requires) = spec.requires.as_ref().filter(|requires| !passed(&requires.value)) {
        return Verdict::NotEvaluated(format!("`{}` did not pass on this row", requires.value));
    }
    spec.check.judge(row, subject)
}

/// What every rule of the row's kind says of it, in the policy's order: the same judging as in a run, without a matrix's
/// declarations.
#[must_use]
pub fn verdicts<'p>(policy: &'p Policy, row: &Row<'_>) -> Vec<(&'p RuleSpec, Verdict)> {
    let mut done: Vec<(&RuleSpec, Verdict)> = Vec::new();
    for spec in policy.rules_for(row.kind) {
        let passed = |id: &str| done.iter().any(|(other, verdict)| other.id.value == id && *verdict == Verdict::Passed);
        let verdict = verdict(row, spec, passed);
        done.push((spec, verdict));
    }
    done
}

fn absent_rejection(input: &RowInput<'_>, row: u32, code: &str) -> Violation {
    let message = format!("the oracle was to reject the row as {code}, and certified a nucleus");
    expectation(input, row, Finding::new(message, "a nucleus", code).label("declared here"), |expectation| {
        matches!(expectation, Expectation::Reject { .. }) && expectation.covers(row)
    })
}

/// Declared violations that did not happen: the kernel changed, and the matrix must say so.
fn absent_violations(scope: &Scope<'_>, input: &RowInput<'_>, judgements: &[Judgement]) -> Vec<Violation> {
    if input.case.row_kind(input.index as u32) != RowKind::Probe {
        return Vec::new();
    }
    let row = input.index as u32;
    let happened = |id: &str| {
        judgements.iter().any(|judgement| {
            let same = scope.policy.rules().nth(judgement.rule).is_some_and(|spec| spec.id.value == id);
            same && matches!(judgement.status, Status::Declared(_))
        })
    };
    let rules = scope.policy.rules_for(RowKind::Probe).iter().map(|spec| spec.id.value.as_str());
    rules
        .filter(|id| input.case.expects_violation(id, row) && !happened(id))
        .map(|id| {
            let message = format!("the row was to violate `{id}`, and does not");
            let finding = Finding::new(message, "no violation", format!("a violation of {id}")).label("declared here");
            expectation(input, row, finding, |expectation| match expectation {
                Expectation::Violation { rule, .. } => rule.value == id && expectation.covers(row),
                Expectation::Accept { .. } | Expectation::Reject { .. } => false,
            })
        })
        .collect()
}

fn expectation(input: &RowInput<'_>, row: u32, finding: Finding, is: impl Fn(&Expectation) -> bool) -> Violation {
    let span =
        input.case.expectations.iter().find(|expectation| is(expectation)).map_or(input.case.span, Expectation::span);
    Violation { of: ViolationOf::Expectation(span), at: Some((input.case_index, row)), finding, neighbourhood: None }
}
