//! Shared by the end-to-end tests: runs of the shipped matrices, and copies of the project to break.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use nucleus_gate::digest::Sha256;
use nucleus_gate::gate::{self, Context, RowOutcome, Run};
use nucleus_gate::matrix::Matrix;
use nucleus_gate::policy::{Freeze, LOCK_PATH, Policy};
use nucleus_gate::root::ProjectRoot;
use nucleus_gate::syntax::Source;

/// The checkout.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Judges a shipped matrix under a shipped policy. Each pair is judged once.
pub fn judge(policy: &'static str, matrix: &'static str) -> Arc<Run> {
    static RUNS: Mutex<BTreeMap<(&str, &str), Arc<Run>>> = Mutex::new(BTreeMap::new());
    let mut runs = RUNS.lock().unwrap();
    Arc::clone(runs.entry((policy, matrix)).or_insert_with(|| Arc::new(judge_anew(policy, matrix))))
}

fn judge_anew(policy: &str, matrix: &str) -> Run {
    let read = |folder: &str, name: &str| {
        let file = format!("{folder}/{name}.kdl");
        Source::new(file.clone(), std::fs::read_to_string(project().join(file)).unwrap())
    };
    let policy = Policy::read(read("policies", policy)).unwrap();
    let matrix = Matrix::read(read("matrices", matrix)).unwrap();
    let root = ProjectRoot::at(project()).unwrap();
    let mut run = gate::run(&policy, &matrix, &Context { root: &root, started: Instant::now(), selection: None });
    run.freeze = Freeze::Frozen(Sha256::of(&std::fs::read(project().join(LOCK_PATH)).unwrap()));
    run
}

/// The rows of a case.
pub fn rows<'a>(run: &'a Run, case: &str) -> &'a [RowOutcome] {
    &run.cases.iter().find(|outcome| outcome.name == case).unwrap_or_else(|| panic!("no case {case}")).rows
}

/// Runs the binary in a folder. A check that names no receipt gets one that is thrown away; one of a [`copy`] without a lock
/// judges it all the same.
pub fn nucleus_gate(folder: &Path, arguments: &[&str]) -> Output {
    let thrown_away = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
    command.args(arguments).current_dir(folder);
    if arguments.first() == Some(&"check") && !arguments.contains(&"--receipt") {
        command.arg("--receipt").arg(thrown_away.path().join("receipt.json"));
    }
    if arguments.first() == Some(&"check") && !folder.join(LOCK_PATH).exists() && !arguments.contains(&"--unfrozen") {
        command.arg("--unfrozen");
    }
    command.output().unwrap()
}

/// The exit code of a finished process.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("the process ended by itself")
}

/// A copy of the project's policies, matrices and evidence that a test may break.
pub fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for part in ["policies", "matrices"] {
        copy_folder(&project().join(part), &folder.path().join(part));
    }
    // Nothing is frozen in it: what a test breaks must be found by what it breaks, not by the lock.
    std::fs::remove_file(folder.path().join("policies/nucleus-gate.lock")).unwrap();
    folder
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The shipped matrix of the kernels with these cases alone.
pub fn small_matrix(folder: &Path, names: &[&str]) -> String {
    let text = std::fs::read_to_string(folder.join("matrices/cuda-h200.kdl")).unwrap();
    let mut small = String::new();
    let mut keep = true;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("    case \"") {
            keep = names.iter().any(|name| rest.starts_with(&format!("{name}\"")));
        }
        if keep || line == "}" {
            small.push_str(line);
            small.push('\n');
        }
    }
    std::fs::write(folder.join("matrices/small.kdl"), small).unwrap();
    "matrices/small.kdl".to_owned()
}
