//! Proof that a policy can fail: the fault zoo and mutations of right answers, judged under it as if they had been
//! recorded. The same runs price a change of a policy: what the old one catches and the new one lets through.

mod judge;
mod outcome;
mod price;
mod recorded;
mod review;

pub use outcome::{Catch, Company, Expected, ModelOutcome, Proof, Trip};
pub use price::{Price, price};
pub use recorded::recorded;
pub use review::{Recorded, Review, Turned};

use rayon::prelude::*;

use crate::gate::{self, Fault};
use crate::kernels::faults::{EXACT, FAULTS, Model};
use crate::kernels::mutations::MUTATIONS;
use crate::matrix::{Case, Matrix};
use crate::policy::{Limits, Policy};
use crate::root::ProjectRoot;
use crate::syntax::{Issues, Source};

/// The small generated cases that extend every matrix where it cannot see a fault.
const ZOO: &str = include_str!("../../matrices/zoo.kdl");

/// The zoo's own matrix.
///
/// # Errors
/// Never, for the file that is part of the binary: a test reads it.
pub fn zoo() -> Result<Matrix, Issues> {
    Matrix::read(Source::new("matrices/zoo.kdl", ZOO))
}

/// Runs every model kernel on every case of the matrices, under the policy. What a matrix declares of recorded kernels'
/// violations does not apply to models: they are judged by the rules alone. Declared rejections hold.
///
/// # Errors
/// The fault of every case whose inputs cannot be had.
pub fn prove(policy: &Policy, matrices: &[&Matrix], root: &ProjectRoot) -> Result<Proof, Vec<Fault>> {
    let cases: Vec<(usize, &Case)> = matrices
        .iter()
        .enumerate()
        .flat_map(|(index, matrix)| matrix.cases.iter().map(move |case| (index, case)))
        .collect();
    let models = models(policy);
    let mut outcomes: Vec<ModelOutcome> = models.iter().flat_map(judge::Placed::outcomes).collect();
    let mut faults = Vec::new();
    // One case at a time: the largest hold tens of megabytes, and the models share what is known of its rows.
    for (index, case) in cases {
        let inputs = match gate::inputs(&limits(policy, matrices.get(index)), root, case) {
            Ok(inputs) => inputs,
            Err(fault) => {
                faults.push(*fault);
                continue;
            }
        };
        let scene = judge::Scene::new(policy, case, &inputs);
        let tallies: Vec<Vec<_>> = models.par_iter().map(|model| scene.judge(model)).collect();
        for (outcome, tally) in outcomes.iter_mut().zip(tallies.into_iter().flatten()) {
            outcome.add(index, &case.name.value, tally);
        }
    }
    if faults.is_empty() { Ok(Proof::new(policy, outcomes)) } else { Err(faults) }
}

/// The limits under which a matrix's inputs are had. They are the policy's, for a run of it; the zoo's own cases are no run,
/// and small enough for any machine.
fn limits(policy: &Policy, matrix: Option<&&Matrix>) -> Limits {
    let mut limits = policy.limits;
    if matrix.is_some_and(|matrix| matrix.subjects.is_empty()) {
        limits.max_vocab.value = u32::MAX;
        limits.max_batch.value = u32::MAX;
    }
    limits
}

/// Every model in its places: the exact kernel and the faults as the candidate, beside exact subjects and beside subjects
/// with the same fault, and the mutations as each subject.
fn models(policy: &Policy) -> Vec<judge::Placed> {
    let candidate = candidate(policy);
    let alone = |expected| judge::Place { expected, subject: candidate, company: Company::Exact };
    let same = judge::Place { expected: Expected::Priced, subject: candidate, company: Company::Same };
    let subjects = 0..policy.evidence.subjects.len();
    let everywhere = subjects.map(|subject| judge::Place { subject, ..alone(Expected::Priced) });
    let everywhere: Vec<_> = everywhere.chain([same]).collect();
    let exact = judge::Placed { model: EXACT, places: vec![alone(Expected::Clean)] };
    let fault = |fault: &Model| judge::Placed { model: *fault, places: vec![alone(Expected::Caught), same] };
    let mutation = |mutation: &Model| judge::Placed { model: *mutation, places: everywhere.clone() };
    [exact].into_iter().chain(FAULTS.iter().map(fault)).chain(MUTATIONS.iter().map(mutation)).collect()
}

/// The subject under test: the one that most rules judge, the last of several.
fn candidate(policy: &Policy) -> usize {
    let rules = |name: &str| policy.rules().filter(|rule| rule.subject.value == name).count();
    let subjects = policy.evidence.subjects.iter().enumerate();
    subjects.max_by_key(|(_, subject)| rules(&subject.value)).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests;
