//! What is checked before anything is judged: that policy and matrix fit, and that the subjects are the pinned ones.

use crate::evidence::{Bundle, Subject};
use crate::matrix::{Expectation, Matrix, SubjectSpec};
use crate::policy::{Paths, Policy};
use crate::root::ProjectRoot;
use crate::syntax::{Spanned, suggest};

use super::outcome::{Fault, FaultClass, Place, RunSubject};

/// What the checks found.
pub(super) struct Preflight {
    /// The policy's subjects, in its order.
    pub subjects: Vec<Opened>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl Preflight {
    /// Whether a case may be judged at all.
    pub fn admits_judging(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A subject with its bundle, where that could be opened.
pub(super) struct Opened {
    pub facts: RunSubject,
    pub bundle: Option<Bundle>,
}

pub(super) fn run(policy: &Policy, matrix: &Matrix, root: &ProjectRoot) -> Preflight {
    let mut faults = names(policy, matrix);
    let subjects = policy.evidence.subjects.iter().map(|subject| {
        let spec = matrix.subjects.iter().find(|spec| spec.name.value == subject.value);
        open(policy, &subject.value, spec, root, &mut faults)
    });
    let subjects = subjects.collect();
    Preflight { subjects, faults }
}

/// The matrix must speak of the policy's subjects and rules, and of no others.
fn names(policy: &Policy, matrix: &Matrix) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |code: &str, message: String, help: String, place: Place| {
        faults.push(Fault { class: FaultClass::Invocation, code: code.to_owned(), message, help, place: Some(place) });
    };
    for subject in &policy.evidence.subjects {
        if !matrix.subjects.iter().any(|spec| spec.name.value == subject.value) {
            let message = format!("the matrix declares no subject `{}`", subject.value);
            let help = "declare it in the matrix, with its bundle and hashes".to_owned();
            fault("gate::subject-missing", message, help, Place::Policy(subject.span, "demanded here".to_owned()));
        }
    }
    for spec in &matrix.subjects {
        if !policy.evidence.subjects.iter().any(|subject| subject.value == spec.name.value) {
            let message = format!("the policy knows no subject `{}`", spec.name.value);
            let names = policy.evidence.subjects.iter().map(|subject| subject.value.as_str());
            let help = suggest(&spec.name.value, names).unwrap_or_default();
            fault("gate::subject-unknown", message, help, Place::Matrix(spec.name.span, "declared here".to_owned()));
        }
    }
    for rule in expected_rules(matrix) {
        let ids = policy.rules_for(crate::matrix::RowKind::Probe).iter().map(|rule| rule.id.value.as_str());
        if !ids.clone().any(|id| id == rule.value) {
            let message = format!("a probe expects a violation of `{}`, which is no ordinary rule here", rule.value);
            let help = suggest(&rule.value, ids).unwrap_or_default();
            let place = Place::Matrix(rule.span, "no such rule id in this policy".to_owned());
            fault("gate::expectation-unknown-rule", message, help, place);
        }
    }
    faults
}

fn expected_rules(matrix: &Matrix) -> impl Iterator<Item = &Spanned<String>> {
    matrix.cases.iter().flat_map(|case| &case.expectations).filter_map(|expectation| match expectation {
        Expectation::Violation { rule, .. } => Some(rule),
        Expectation::Accept { .. } | Expectation::Reject { .. } => None,
    })
}

fn open(
    policy: &Policy,
    name: &str,
    spec: Option<&SubjectSpec>,
    root: &ProjectRoot,
    faults: &mut Vec<Fault>,
) -> Opened {
    let mut facts = RunSubject { name: name.to_owned(), bundle_sha256: None, files: Vec::new(), subject: None };
    let Some(spec) = spec else { return Opened { facts, bundle: None } };
    let named_here = || Place::Matrix(spec.bundle.span, "named here".to_owned());
    let path = match root.resolve(&spec.bundle.value) {
        Ok(path) => path,
        Err(error) => {
            faults.push(Fault {
                class: FaultClass::Stopped,
                code: error.code().to_owned(),
                message: format!("the bundle of {name} cannot be opened: {error}"),
                help: "correct the path in the matrix, or restore the folder".to_owned(),
                place: Some(named_here()),
            });
            return Opened { facts, bundle: None };
        }
    };
    match Bundle::open(&path, *policy.limits.max_artifact_bytes) {
        Ok(bundle) => {
            facts.bundle_sha256 = Some(bundle.sha256());
            facts.files = bundle.file_digests().map(|(name, sha256)| (name.to_owned(), sha256)).collect();
            if bundle.sha256() != *spec.bundle_sha256 {
                let message = format!(
                    "the bundle of {name} has drifted: it is pinned as {} and hashes to {}",
                    *spec.bundle_sha256,
                    bundle.sha256()
                );
                let place = Place::Matrix(spec.bundle_sha256.span, "pinned here".to_owned());
                faults.push(drift("gate::bundle-drift", message, place));
            }
            match bundle.subject() {
                Ok(subject) => {
                    faults.extend(sources(policy, spec, &subject));
                    faults.extend(sources_here(policy, spec, root));
                    facts.subject = Some(subject);
                }
                Err(error) => faults.push(super::case::evidence_fault(name, &error, named_here())),
            }
            Opened { facts, bundle: Some(bundle) }
        }
        Err(error) => {
            faults.push(super::case::evidence_fault(name, &error, named_here()));
            Opened { facts, bundle: None }
        }
    }
}

/// The dispatch paths that the recorded evidence of a matrix states, by subject. What cannot be read states none.
#[must_use]
pub fn dispatch_paths(policy: &Policy, matrix: &Matrix, root: &ProjectRoot) -> Paths {
    let mut paths = Paths::new();
    for spec in &matrix.subjects {
        let bundle = root.resolve(&spec.bundle.value).ok();
        let bundle = bundle.and_then(|path| Bundle::open(&path, *policy.limits.max_artifact_bytes).ok());
        let Some(bundle) = bundle else { continue };
        let stated = matrix.cases.iter().filter_map(|case| bundle.dispatch(&case.name.value).ok());
        let stated: std::collections::BTreeSet<String> = stated.map(|dispatch| dispatch.path).collect();
        if !stated.is_empty() {
            paths.insert(spec.name.value.clone(), stated);
        }
    }
    paths
}

fn drift(code: &str, message: String, place: Place) -> Fault {
    let help = "restore the frozen bytes, or freeze a new matrix and review the change".to_owned();
    Fault { class: FaultClass::Drift, code: code.to_owned(), message, help, place: Some(place) }
}

/// A pinned source that lies in this project must be the pinned one here, too: evidence of kernels that have changed since
/// says nothing of the present ones.
fn sources_here(policy: &Policy, spec: &SubjectSpec, root: &ProjectRoot) -> Vec<Fault> {
    let mut faults = Vec::new();
    for pin in spec.sources.iter().filter(|_| policy.evidence.pinned_sources) {
        let Ok(path) = root.resolve(&pin.path) else { continue };
        let found = match crate::fsio::read_bounded(&path, *policy.limits.max_artifact_bytes) {
            Ok(bytes) => crate::digest::Sha256::of(&bytes).to_string(),
            Err(error) => error.to_string(),
        };
        if found != pin.sha256.to_string() {
            let name = &spec.name.value;
            let message =
                format!("{} has changed since {name} was recorded: pinned {}, here {found}", *pin.path, *pin.sha256);
            faults.push(drift(
                "gate::source-changed",
                message,
                Place::Matrix(pin.sha256.span, "pinned here".to_owned()),
            ));
        }
    }
    faults
}

/// Source and patch hashes as pinned. Neither side may name what the other does not.
fn sources(policy: &Policy, spec: &SubjectSpec, subject: &Subject) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !policy.evidence.pinned_sources {
        return faults;
    }
    let name = &spec.name.value;
    for pin in &spec.sources {
        let found = subject.sources.iter().find(|source| source.path == pin.path.value).map(|source| source.sha256);
        if found != Some(*pin.sha256) {
            let found = found.map_or_else(|| "not recorded".to_owned(), |sha256| sha256.to_string());
            let message =
                format!("{name} was built from another {}: pinned {}, recorded {found}", *pin.path, *pin.sha256);
            faults.push(drift("gate::source-drift", message, Place::Matrix(pin.sha256.span, "pinned here".to_owned())));
        }
    }
    for source in &subject.sources {
        if !spec.sources.iter().any(|pin| pin.path.value == source.path) {
            let message = format!("{name} was built from {} too, which the matrix does not pin", source.path);
            faults.push(drift("gate::source-drift", message, Place::Matrix(spec.span, "not pinned here".to_owned())));
        }
    }
    if spec.sources.is_empty() {
        let message = format!("the policy demands pinned sources, and the matrix pins none of {name}");
        faults.push(drift("gate::source-drift", message, Place::Matrix(spec.span, "no source here".to_owned())));
    }
    let recorded = subject.patch_of.as_ref().map(|patch| patch.patch_sha256);
    let pinned = spec.patch_sha256.map(|pin| pin.value);
    if recorded != pinned {
        let show = |sha: Option<crate::digest::Sha256>| sha.map_or_else(|| "none".to_owned(), |sha| sha.to_string());
        let message = format!("{name} has another patch: pinned {}, recorded {}", show(pinned), show(recorded));
        let span = spec.patch_sha256.map_or(spec.span, |pin| pin.span);
        faults.push(drift("gate::patch-drift", message, Place::Matrix(span, "pinned here".to_owned())));
    }
    faults
}
