//! `nucleus-gate verify`: does everything that a receipt binds still have those bytes, and does it still come to this?

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::load;
use super::reporting::evaluator;
use super::{Failure, screen};
use crate::digest::Sha256;
use crate::dsse::{Envelope, IN_TOTO, PublicKey};
use crate::fsio::read_bounded;
use crate::gate::{self, ExitCode};
use crate::matrix::Matrix;
use crate::policy::{Policy, builtin};
use crate::receipt::{self, Checked, Difference, FreezeBinding, Places, Statement};
use crate::root::ProjectRoot;
use crate::syntax::{Issues, Source};
use crate::text::sanitize;

/// The largest bound file that is read where the policy, which says how large one may be, cannot be.
const WITHOUT_POLICY: u64 = 4 << 20;

/// The most differences of a replay that are shown.
const MAX_SHOWN: usize = 20;

/// The most characters of a fact that are shown.
const MAX_CHARACTERS: usize = 400;

/// Verify a receipt: everything that it binds still has those bytes
///
/// Exit codes: 5 where the receipt was changed, is not signed by the given key, is of a run of files that were not frozen,
/// or something that it binds has drifted; 3 where it, or what it binds, cannot be read, or a replay could not run; else the
/// exit code of the run that it is of. So 0 means: unchanged since it was sealed (with --key: by that key's owner),
/// complete, and a pass of frozen files.
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    /// The receipt, or its signed envelope (.dsse.json)
    receipt: PathBuf,
    /// Demand a signature of this public key (Ed25519, PEM)
    #[arg(long, value_name = "PUB")]
    key: Option<PathBuf>,
    /// Accept the receipt of a run whose policy or matrix was not frozen
    #[arg(long)]
    allow_unfrozen: bool,
    /// Evaluate everything again, and compare every fact of every row
    #[arg(long)]
    replay: bool,
    /// The policy [default: as the receipt names it]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The matrix [default: as the receipt names it]
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// The project root [default: the nearest folder that holds policies/]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Verify {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let (payload, signer) = self.authentic()?;
        let statement = receipt::open(&payload).map_err(|error| {
            if receipt::is_test_result(&payload) {
                return self.test_result();
            }
            let help = "fetch the receipt again from where it was written";
            match error {
                receipt::ReceiptError::NotCanonical | receipt::ReceiptError::Altered { .. } => {
                    Failure::drift(error.code(), error.to_string(), help)
                }
                receipt::ReceiptError::Json(_)
                | receipt::ReceiptError::Type { .. }
                | receipt::ReceiptError::Canonical(_) => Failure::stopped(error.code(), error.to_string(), help),
            }
        })?;
        let root = self.root()?;
        let mut text = heading(&statement, &payload, signer.as_ref());
        let mut exit = self.freeze(&mut text, &statement.predicate.bindings.freeze);

        let (policy_file, policy) = self.policy(&root, &statement);
        let (matrix_file, matrix) = self.matrix(&root, &statement);
        let limit = policy.as_ref().map_or(WITHOUT_POLICY, |policy: &Policy| *policy.limits.max_artifact_bytes);
        let mut checked = vec![policy_file, matrix_file];
        checked.extend(receipt::bound_files(&statement, &root, limit));
        let drifted: Vec<&Checked> = checked.iter().filter(|file| !file.holds()).collect();
        let _ = writeln!(text, "bound files   {} of {} as bound", checked.len() - drifted.len(), checked.len());
        for file in &drifted {
            text.push_str(&drift(file));
            exit = exit.max(ExitCode::Drift);
        }
        for undecoded in [policy.as_ref().err(), matrix.as_ref().err()].into_iter().flatten().flatten() {
            let _ = writeln!(text, "undecodable   {}", sanitize(undecoded));
            exit = exit.max(ExitCode::Stopped);
        }
        if let (Ok(policy), Ok(matrix), true) = (policy, matrix, drifted.is_empty()) {
            exit = exit.max(self.against(&mut text, &statement, &root, policy, matrix, started)?);
        } else if self.replay {
            text.push_str(
                "replay        not evaluated: what the receipt binds is not there, has drifted or does not decode\n",
            );
            exit = exit.max(ExitCode::Stopped);
        }
        let outcome = ExitCode::from(&statement);
        exit = exit.max(outcome);
        conclusion(&mut text, &statement, outcome);
        let _ = writeln!(text, "exit code     {}", exit.number());
        screen::print(&text)?;
        Ok(exit)
    }

    /// Holds what the receipt says to the policy and matrix that it binds, and to a second run where one was demanded.
    fn against(
        &self,
        text: &mut String,
        statement: &Statement,
        root: &ProjectRoot,
        policy: Policy,
        matrix: Matrix,
        started: Instant,
    ) -> Result<ExitCode, Failure> {
        let mut exit = ExitCode::Passed;
        for inconsistency in receipt::inconsistencies(statement, &policy, &matrix) {
            let _ = writeln!(text, "inconsistent  {inconsistency}");
            exit = ExitCode::Drift;
        }
        let unjudged = gate::unjudged(&policy, &matrix, root);
        for fault in receipt::new_faults(statement, &unjudged) {
            let _ = writeln!(text, "drifted       {}", sanitize(&fault.message));
            exit = exit.max(ExitCode::of_class(fault.class));
        }
        let unlike = receipt::unlike(statement, &unjudged).map_err(|error| Failure::internal(error.to_string()))?;
        if !unlike.is_empty() {
            let _ = writeln!(text, "inconsistent  it says of what it is bound to what is not so");
            differences(text, &unlike, "bound");
            exit = exit.max(ExitCode::Drift);
        }
        let places = places(statement);
        let freeze = load::freeze(root, policy.source.sha256(), matrix.source.sha256(), &places)?;
        let said = &statement.predicate.bindings.freeze;
        if let ("frozen", Some(complaint)) = (said.state.as_str(), freeze.complaint()) {
            let _ =
                writeln!(text, "inconsistent  it says that its policy and matrix are frozen: {}", sanitize(&complaint));
            exit = exit.max(ExitCode::Drift);
        }
        if self.replay {
            let context = gate::Context { root, started, selection: None };
            let mut run = gate::run(&policy, &matrix, &context);
            run.freeze = freeze;
            exit = exit.max(replay(text, statement, &run, &places)?);
        }
        Ok(exit)
    }

    /// The receipt's bytes, and the key that signed them where one was demanded.
    fn authentic(&self) -> Result<(Vec<u8>, Option<Sha256>), Failure> {
        let key = self.key.as_deref().map(PublicKey::read).transpose().map_err(|error| {
            Failure::invocation(error.code(), error.to_string(), "name the public key that keygen wrote")
        })?;
        let bytes = read_bounded(&self.receipt, receipt::MAX_BYTES)
            .map_err(|error| Failure::stopped(error.code(), error.to_string(), "name an existing receipt"))?;
        let envelope = Envelope::read(&bytes);
        match (key, envelope) {
            (Some(key), Ok(envelope)) => {
                let canonical = serde_json_canonicalizer::to_vec(&envelope).ok();
                if canonical.as_deref() != Some(&bytes) {
                    let message = "the envelope is not the canonical JSON of what it says";
                    return Err(Failure::drift("envelope-not-canonical", message, "fetch the envelope again"));
                }
                let payload = envelope.verify(IN_TOTO, &key).map_err(|error| {
                    Failure::drift(error.code(), error.to_string(), "do not trust it; fetch the envelope again")
                })?;
                Ok((payload, Some(key.id())))
            }
            (Some(_), Err(error)) => {
                let message = format!("{} carries no signature: {error}", self.receipt.display());
                Err(Failure::drift("receipt-unsigned", message, "name the signed envelope (.dsse.json)"))
            }
            (None, Ok(_)) => {
                let message = format!("{} is signed, and no key was named", self.receipt.display());
                Err(Failure::invocation("receipt-key-needed", message, "name the signer's public key with --key PUB"))
            }
            (None, Err(_)) => Ok((bytes, None)),
        }
    }

    /// The call names the test result that lies beside a receipt.
    fn test_result(&self) -> Failure {
        let name = self.receipt.display().to_string();
        let message =
            format!("{name} is the test result of a run, not its receipt: it binds too little to be verified");
        let receipt = name.replace(".test-result.", ".");
        let help = if receipt == name { "name the receipt beside it".to_owned() } else { format!("verify {receipt}") };
        Failure::stopped("receipt::test-result", message, help)
    }

    /// Whether the run was of frozen files: a receipt of any other is accepted on demand alone.
    fn freeze(&self, text: &mut String, freeze: &FreezeBinding) -> ExitCode {
        let why = freeze.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        let (frozen, said) = match (freeze.state.as_str(), &freeze.lock_sha256) {
            ("frozen", Some(lock)) => (true, format!("frozen, by the lock {lock}")),
            ("frozen", None) => (false, "said to be frozen, and no lock is named".to_owned()),
            ("no-lock", _) => (false, "no lock: nothing is frozen".to_owned()),
            (state, _) => (false, format!("{state}{why}")),
        };
        let accepted = if frozen || !self.allow_unfrozen { "" } else { " (accepted: --allow-unfrozen)" };
        let _ = writeln!(text, "freeze        {}{accepted}", sanitize(&said));
        if frozen || self.allow_unfrozen {
            return ExitCode::Passed;
        }
        text.push_str("  refused     the run was not of frozen files; --allow-unfrozen accepts it all the same\n");
        ExitCode::Drift
    }

    fn root(&self) -> Result<ProjectRoot, Failure> {
        let found = match &self.root {
            Some(root) => ProjectRoot::at(root).ok(),
            None => ProjectRoot::around(Path::new(".")),
        };
        let help = "name the folder that holds policies/ and matrices/ with --root DIR";
        let root = found.ok_or_else(|| Failure::invocation("cli::no-root", "there is no project root here", help))?;
        if self.root.is_some() { Ok(root) } else { load::outermost(root) }
    }

    fn policy(&self, root: &ProjectRoot, statement: &Statement) -> (Checked, Decoded<Policy>) {
        let binding = &statement.predicate.bindings.policy;
        let source = match builtin(&binding.file) {
            Some(source) if self.policy.is_none() => Ok(source),
            _ => read(root, self.policy.as_deref(), &binding.file),
        };
        (checked(&binding.file, binding.digest.sha256, &source), decoded("policy", source, Policy::read))
    }

    fn matrix(&self, root: &ProjectRoot, statement: &Statement) -> (Checked, Decoded<Matrix>) {
        let binding = &statement.predicate.bindings.case_matrix;
        let source = read(root, self.matrix.as_deref(), &binding.file);
        (checked(&binding.file, binding.digest.sha256, &source), decoded("matrix", source, Matrix::read))
    }
}

/// A bound file as what it should be; else why it is not, or nothing where there are no bytes: that is drift.
type Decoded<T> = Result<T, Option<String>>;

fn decoded<T>(kind: &str, source: Result<Source, String>, read: fn(Source) -> Result<T, Issues>) -> Decoded<T> {
    read(source.map_err(|_| None)?).map_err(|issues| {
        let first =
            issues.list.first().map_or_else(String::new, |issue| format!(": {}: {}", issue.code, issue.message));
        Some(format!("{} is no {kind}{first}", issues.source.name()))
    })
}

fn read(root: &ProjectRoot, named: Option<&Path>, bound: &str) -> Result<Source, String> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => root.resolve(bound).map_err(|error| error.to_string())?,
    };
    load::read(&path).map_err(|failure| failure.message())
}

fn checked(what: &str, bound: Sha256, source: &Result<Source, String>) -> Checked {
    Checked::new(what, bound, source.as_ref().map(Source::sha256))
}

fn heading(statement: &Statement, payload: &[u8], signer: Option<&Sha256>) -> String {
    let evaluator = &statement.predicate.bindings.evaluator;
    let mut text = format!("receipt       {}, unchanged since it was sealed\n", Sha256::of(payload));
    let _ = match signer {
        Some(key) => writeln!(text, "signature     verifies with key {key}"),
        None => writeln!(text, "signature     not asked for: whoever wrote the receipt is not known (--key PUB)"),
    };
    if let Some(replaced) = &statement.predicate.replaces {
        let _ = writeln!(text, "replaces      {}, the receipt of an earlier run", replaced.sha256);
    }
    let _ = writeln!(
        text,
        "evaluator     {} {}, executable {}",
        sanitize(&evaluator.name),
        sanitize(&evaluator.version),
        evaluator.digest.sha256
    );
    text
}

/// How the run ended, and why.
fn conclusion(text: &mut String, statement: &Statement, outcome: ExitCode) {
    let predicate = &statement.predicate;
    let _ = writeln!(text, "execution     {}", sanitize(&predicate.execution.status));
    for stop in &predicate.execution.stop_reasons {
        let _ = writeln!(text, "  stopped     {}: {}", sanitize(&stop.code), sanitize(&stop.message));
    }
    let _ =
        writeln!(text, "decision      {} (the run's exit code: {})", sanitize(&predicate.decision), outcome.number());
}

fn drift(file: &Checked) -> String {
    let bound = file.bound.map_or_else(|| "nothing: it was added since".to_owned(), |sha256| sha256.to_string());
    let found = file.found.as_ref().map_or_else(|error| sanitize(error).into_owned(), Sha256::to_string);
    format!("drifted       {}\n  bound       {bound}\n  found       {found}\n", sanitize(&file.what))
}

/// Where the receipt says that policy and matrix are: there the lock must list them.
fn places(statement: &Statement) -> Places {
    let bindings = &statement.predicate.bindings;
    Places { policy: bindings.policy.file.clone(), matrix: bindings.case_matrix.file.clone() }
}

/// Compares the receipt with a second run. Another evaluator may well come to the same facts.
fn replay(text: &mut String, statement: &Statement, run: &gate::Run, places: &Places) -> Result<ExitCode, Failure> {
    let here = evaluator()?;
    let bindings = &statement.predicate.bindings;
    let again = receipt::statement(run, &here, places);
    let differences = receipt::differences(statement, &again).map_err(|error| Failure::internal(error.to_string()))?;
    let rows: usize = again.predicate.cases.iter().map(|case| case.rows.len()).sum();
    let with = if here.sha256 == bindings.evaluator.digest.sha256 { "the same" } else { "another" };
    let _ = writeln!(text, "replay        {rows} rows with {with} executable, {} differences", differences.len());
    self::differences(text, &differences, "replay");
    Ok(if differences.is_empty() { ExitCode::Passed } else { ExitCode::Drift })
}

/// The first of them, and how many more: the receipt's word against that of `other`.
fn differences(text: &mut String, list: &[Difference], other: &str) {
    // A fact of a forged receipt may be megabytes long.
    let shown = |fact: &str| sanitize(&fact.chars().take(MAX_CHARACTERS).collect::<String>()).into_owned();
    for Difference { place, receipt, replay } in list.iter().take(MAX_SHOWN) {
        let (place, receipt, replay) = (shown(place), shown(receipt), shown(replay));
        let _ = writeln!(text, "  differs     {place}\n    receipt   {receipt}\n    {other:<9} {replay}");
    }
    if list.len() > MAX_SHOWN {
        let _ = writeln!(text, "  and {} more", list.len() - MAX_SHOWN);
    }
}
