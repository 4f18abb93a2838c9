//! One case: its inputs, its evidence, the oracle, and then its rows.

use std::time::Instant;

use rayon::prelude::*;

use super::outcome::{CaseOutcome, Fault, FaultClass, Place, SubjectCase};
use super::preflight::Preflight;
use super::row::{self, RowInput};
use crate::evidence::{CaseEvidence, EvidenceError, Problem, Unreadable};
use crate::fsio::FileError;
use crate::inputs::{self, Inputs};
use crate::matrix::{Case, Origin, RowKind};
use crate::oracle::{self, Nucleus, OracleError};
use crate::policy::{Limits, Policy};
use crate::root::ProjectRoot;

/// What every case is judged with.
pub(super) struct Scope<'a> {
    pub policy: &'a Policy,
    pub preflight: &'a Preflight,
    pub root: &'a ProjectRoot,
    /// The one row to judge, in a selection.
    pub row: Option<u32>,
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Judges the matrix's `index`th case.
pub(super) fn judge(scope: &Scope<'_>, index: usize, case: &Case) -> CaseOutcome {
    let mut outcome = CaseOutcome {
        index,
        name: case.name.value.clone(),
        shape: None,
        inputs: None,
        evidence: Vec::new(),
        faults: Vec::new(),
        rows: Vec::new(),
        oracle_nanos: 0,
    };
    if let Err(fault) = judge_into(scope, case, &mut outcome) {
        outcome.faults.push(*fault);
    }
    outcome
}

/// Fills the outcome as far as the case gets. Every fault found so far is in it or returned.
fn judge_into(scope: &Scope<'_>, case: &Case, outcome: &mut CaseOutcome) -> Result<(), Box<Fault>> {
    if (scope.stop)() {
        return Err(timeout(scope, case, "none of its rows"));
    }
    let inputs = build(&scope.policy.limits, scope.root, case)?;
    outcome.shape = Some((inputs.batch() as u32, inputs.vocab() as u32));
    outcome.inputs = Some((inputs.logits_sha256(), inputs.p_sha256()));
    outcome.faults.extend(pins(case, &inputs));
    if !outcome.faults.is_empty() {
        return Ok(());
    }
    let evidence =
        if needs_evidence(case, &inputs) { read_evidence(scope, case, &inputs, outcome) } else { Vec::new() };
    if !outcome.faults.is_empty() || !scope.preflight.admits_judging() {
        return Ok(());
    }
    let nuclei = nuclei(scope, case, &inputs, outcome);
    let rejections = undeclared_rejections(case, &nuclei);
    let late = nuclei.iter().any(Option::is_none);
    outcome.faults.extend(rejections);
    outcome.rows = nuclei
        .into_par_iter()
        .enumerate()
        .filter(|(index, _)| scope.row.is_none_or(|row| row as usize == *index))
        .filter_map(|(index, nucleus)| {
            let input = RowInput { index, inputs: &inputs, evidence: &evidence, case, case_index: outcome.index };
            row::judge(scope, &input, nucleus?)
        })
        .collect();
    if late {
        return Err(timeout(scope, case, "some of its rows"));
    }
    Ok(())
}

/// What the oracle says of a row: nothing where the row was not reached in time, no nucleus where it is disabled.
type Answer = Option<Result<Option<Nucleus>, OracleError>>;

/// The oracle on every row that is not disabled.
fn nuclei(scope: &Scope<'_>, case: &Case, inputs: &Inputs, outcome: &mut CaseOutcome) -> Vec<Answer> {
    let rows: Vec<(u64, Answer)> = inputs
        .p()
        .par_iter()
        .enumerate()
        .map(|(row, &p)| {
            if (scope.stop)() {
                return (0, None);
            }
            if case.row_kind(row as u32) == RowKind::Disabled {
                return (0, Some(Ok(None)));
            }
            let begin = Instant::now();
            let nucleus = oracle::nucleus(inputs.row(row).unwrap_or_default(), p);
            (begin.elapsed().as_nanos() as u64, Some(nucleus.map(Some)))
        })
        .collect();
    outcome.oracle_nanos = rows.iter().map(|(nanos, _)| nanos).sum();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn undeclared_rejections(case: &Case, nuclei: &[Answer]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (row, nucleus) in nuclei.iter().enumerate() {
        let Some(Err(error)) = nucleus else { continue };
        if case.rejection_expected(row as u32) != Some(error.code()) {
            faults.push(Fault {
                class: FaultClass::Stopped,
                code: format!("oracle::{}", error.code()),
                message: format!("{} row {row}: {error}", case.name.value),
                help: format!(
                    "such a row has no certified nucleus; declare the rejection in a probe case, or take the row out{}",
                    if matches!(error, OracleError::InvalidP { .. }) {
                        "; a row whose p >= 1 is `disabled`"
                    } else {
                        ""
                    }
                ),
                place: Some(Place::Matrix(case.span, "in this case".to_owned())),
            });
        }
    }
    faults
}

/// A case needs no evidence where every row is declared to be rejected.
fn needs_evidence(case: &Case, inputs: &Inputs) -> bool {
    (0..inputs.batch()).any(|row| case.rejection_expected(row as u32).is_none())
}

fn timeout(scope: &Scope<'_>, case: &Case, what: &str) -> Box<Fault> {
    let limit = &scope.policy.limits.timeout_seconds;
    Box::new(Fault {
        class: FaultClass::Stopped,
        code: "limit::timeout".to_owned(),
        message: format!("{}: the run passed its {} seconds; {what} were decided", case.name.value, **limit),
        help: "run it on a faster machine; the limit is frozen with the policy".to_owned(),
        place: Some(Place::Policy(limit.span, "the limit".to_owned())),
    })
}

/// The pinned inputs of a case, built or read, inside the limits.
///
/// # Errors
/// What a run would say of them.
pub fn inputs(limits: &Limits, root: &ProjectRoot, case: &Case) -> Result<Inputs, Box<Fault>> {
    let inputs = build(limits, root, case)?;
    match pins(case, &inputs).into_iter().next() {
        Some(fault) => Err(Box::new(fault)),
        None => Ok(inputs),
    }
}

/// Builds or reads the inputs, inside the limits.
fn build(limits: &Limits, root: &ProjectRoot, case: &Case) -> Result<Inputs, Box<Fault>> {
    match &case.origin {
        Origin::Generated { recipe, p, .. } => {
            shape(limits, case, p.len() as u64, u64::from(recipe.vocab))?;
            let p: Vec<f32> = p.iter().map(|p| p.value).collect();
            inputs::generate(recipe, &p, &case.generated_forces())
                .map_err(|error| unreadable_input(case, error.code(), &error))
        }
        Origin::File { path, sha256, .. } => {
            let place = |label: &str| Some(Place::Matrix(path.span, label.to_owned()));
            let file = root.resolve(&path.value).map_err(|error| unreadable_input(case, error.code(), &error))?;
            let most = u64::from(*limits.max_vocab).saturating_mul(u64::from(*limits.max_batch)).saturating_mul(4);
            let bytes = crate::fsio::read_bounded(&file, most.saturating_add(1 << 20)).map_err(|error| {
                unreadable_input(case, error.code(), &format!("{}: {}", path.value, error.reason()))
            })?;
            let found = crate::digest::Sha256::of(&bytes);
            if found != **sha256 {
                return Err(Box::new(Fault {
                    class: FaultClass::Drift,
                    code: "gate::input-drift".to_owned(),
                    message: format!("{} has drifted: pinned as {}, it hashes to {found}", path.value, **sha256),
                    help: "restore the frozen file, or freeze a new matrix and review the change".to_owned(),
                    place: place("this file"),
                }));
            }
            let inputs = inputs::read(&bytes).map_err(|error| unreadable_input(case, error.code(), &error))?;
            shape(limits, case, inputs.batch() as u64, inputs.vocab() as u64)?;
            misfits(case, &inputs)?;
            Ok(inputs)
        }
    }
}

fn unreadable_input(case: &Case, code: &str, error: &dyn std::fmt::Display) -> Box<Fault> {
    Box::new(Fault {
        class: FaultClass::Stopped,
        code: code.to_owned(),
        message: format!("the inputs of {} cannot be had: {error}", case.name.value),
        help: "restore the input file, or correct the case".to_owned(),
        place: Some(Place::Matrix(case.span, "in this case".to_owned())),
    })
}

fn shape(limits: &Limits, case: &Case, batch: u64, vocab: u64) -> Result<(), Box<Fault>> {
    let over =
        [("limit::vocab", "tokens a row", vocab, limits.max_vocab), ("limit::batch", "rows", batch, limits.max_batch)];
    for (code, what, found, limit) in over {
        if found > u64::from(*limit) {
            return Err(Box::new(Fault {
                class: FaultClass::Stopped,
                code: code.to_owned(),
                message: format!("{} has {found} {what}; the policy allows {}", case.name.value, *limit),
                help: "take a smaller case; the limit is frozen with the policy".to_owned(),
                place: Some(Place::Policy(limit.span, "the limit".to_owned())),
            }));
        }
    }
    Ok(())
}

/// What the matrix says of a file's rows must be true of the file; a generated case is checked when it is read.
fn misfits(case: &Case, inputs: &Inputs) -> Result<(), Box<Fault>> {
    let Some(issue) = case.misfits(inputs.p(), inputs.vocab()).into_iter().next() else { return Ok(()) };
    let (span, label) = issue.labels.first().cloned().unwrap_or((case.span, "in this case".to_owned()));
    Err(Box::new(Fault {
        class: FaultClass::Invocation,
        code: issue.code.to_owned(),
        message: issue.message,
        help: issue.help.unwrap_or_else(|| "name rows and tokens that the file holds".to_owned()),
        place: Some(Place::Matrix(span, label)),
    }))
}

/// The inputs must be the pinned ones: a fault for each digest that is not.
fn pins(case: &Case, inputs: &Inputs) -> Vec<Fault> {
    let pairs =
        [("logits", case.input.logits_sha256, inputs.logits_sha256()), ("p", case.input.p_sha256, inputs.p_sha256())];
    let drifted = pairs.into_iter().filter(|(_, pin, found)| pin.value != *found);
    drifted
        .map(|(what, pin, found)| Fault {
            class: FaultClass::Drift,
            code: "gate::input-drift".to_owned(),
            message: format!("{}: the {what} are pinned as {} and hash to {found}", case.name.value, pin.value),
            help: "restore the frozen case, or freeze a new matrix and review the change".to_owned(),
            place: Some(Place::Matrix(pin.span, "pinned here".to_owned())),
        })
        .collect()
}

/// Reads every subject's evidence of the case. Faults go into the outcome.
fn read_evidence(scope: &Scope<'_>, case: &Case, inputs: &Inputs, outcome: &mut CaseOutcome) -> Vec<CaseEvidence> {
    let mut read = Vec::new();
    for subject in &scope.preflight.subjects {
        let name = &subject.facts.name;
        let Some(bundle) = &subject.bundle else { continue };
        match bundle.case(&case.name.value, inputs) {
            Ok(evidence) => {
                outcome.faults.extend(dispatch(scope, case, name, &evidence.dispatch.path));
                outcome.evidence.push(SubjectCase {
                    subject: name.clone(),
                    dispatch: evidence.dispatch.path.clone(),
                    dispatch_facts: evidence.dispatch.canonical.clone(),
                    output_sha256: evidence.output_sha256,
                    file_sha256: evidence.file_sha256,
                });
                read.push(evidence);
            }
            Err(error) => {
                let place = Place::Matrix(case.span, "in this case".to_owned());
                outcome.faults.push(evidence_fault(name, &error, place));
            }
        }
    }
    read
}

fn dispatch(scope: &Scope<'_>, case: &Case, subject: &str, path: &str) -> Option<Fault> {
    let wanted = scope.policy.evidence.dispatch.as_ref().filter(|wanted| wanted.value != path)?;
    Some(Fault {
        class: FaultClass::Drift,
        code: "gate::dispatch-path".to_owned(),
        message: format!(
            "{}: {subject} took dispatch path `{path}`; the policy compares `{}` only",
            case.name.value, wanted.value
        ),
        help: "a changed dispatch path invalidates the comparison; capture evidence on the frozen path".to_owned(),
        place: Some(Place::Policy(wanted.span, "demanded here".to_owned())),
    })
}

/// An evidence error as a fault.
pub(super) fn evidence_fault(subject: &str, error: &EvidenceError, place: Place) -> Fault {
    Fault {
        class: match error {
            EvidenceError::Drift(_) => FaultClass::Drift,
            EvidenceError::Unreadable(_) => FaultClass::Stopped,
        },
        code: error.code().to_owned(),
        message: format!("the evidence of {subject}: {error}"),
        help: match error {
            EvidenceError::Unreadable(Unreadable { problem: Problem::File(FileError::TooLarge { .. }), .. }) => {
                "the policy's `max-artifact-bytes` bounds a bundle; put fewer cases into one matrix".to_owned()
            }
            _ => "restore the recorded bundle, or capture it anew and freeze a new matrix".to_owned(),
        },
        place: Some(place),
    }
}
