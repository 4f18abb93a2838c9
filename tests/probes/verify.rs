//! `verify` against receipts that were written again, sealed and all.

use std::fs;
use std::process::Output;

use nucleus_gate::digest::Sha256;
use nucleus_gate::policy::{LOCK_PATH, Lock};
use nucleus_gate::receipt::{self, Statement};

use crate::everything;
use crate::project::{MATRIX, Project};

const RECEIPT: &str = "nucleus-gate-receipt.json";

/// A project with a passing receipt that says something else, its seal in order.
fn resealed(change: impl FnOnce(&Project, &mut Statement)) -> Project {
    let project = Project::new();
    project.receipt();
    let mut statement = receipt::open(&fs::read(project.path(RECEIPT)).unwrap()).unwrap();
    change(&project, &mut statement);
    statement.predicate.receipt_sha256 = None;
    fs::write(project.path(RECEIPT), receipt::seal(&statement).unwrap()).unwrap();
    project
}

#[track_caller]
fn assert_says(output: &Output, exit: i32, part: &str) {
    let said = everything(output);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    assert!(said.contains(part), "no `{part}` in:\n{said}");
}

#[test]
fn a_replay_that_cannot_run_is_no_pass() {
    let whole = resealed(|_, _| {});
    assert_says(
        &whole.run_as_it_is(&["verify", RECEIPT, "--replay"]),
        0,
        "rows with the same executable, 0 differences",
    );

    let other = |project: &Project| {
        fs::write(project.path("README.md"), "# Words").unwrap();
        Sha256::of(b"# Words")
    };
    let policy = resealed(|project, statement| {
        let policy = &mut statement.predicate.bindings.policy;
        (policy.file, policy.digest.sha256) = ("README.md".to_owned(), other(project));
    });
    let matrix = resealed(|project, statement| {
        let matrix = &mut statement.predicate.bindings.case_matrix;
        (matrix.file, matrix.digest.sha256) = ("README.md".to_owned(), other(project));
    });
    for (project, kind) in [(policy, "policy"), (matrix, "matrix")] {
        assert_says(&project.run_as_it_is(&["verify", RECEIPT]), 3, &format!("undecodable   README.md is no {kind}: "));
        assert_says(&project.run_as_it_is(&["verify", RECEIPT, "--replay"]), 3, "replay        not evaluated");
    }
}

/// The same `verify` call, with what [`Project::run_as_it_is`] adds left out.
fn strictly(project: &Project, arguments: &[&str]) -> Output {
    project.program().arg("verify").arg(RECEIPT).args(arguments).output().unwrap()
}

#[test]
fn a_receipt_of_what_was_not_frozen_is_accepted_on_demand_alone() {
    let project = Project::new();
    project.receipt();
    assert_says(&strictly(&project, &[]), 5, "freeze        no lock: nothing is frozen");
    assert_says(&strictly(&project, &["--allow-unfrozen"]), 0, "accepted: --allow-unfrozen");

    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    assert_eq!(project.run_as_it_is(&["check", "--matrix", MATRIX, "--replace"]).status.code(), Some(0));
    assert_says(&strictly(&project, &["--replay"]), 0, "freeze        frozen, by the lock ");
    project.edit(MATRIX, "matrix \"m\"", "matrix  \"m\"");
    assert_eq!(project.run_as_it_is(&["check", "--matrix", MATRIX, "--replace", "--unfrozen"]).status.code(), Some(0));
    assert_says(&strictly(&project, &[]), 5, "freeze        unfrozen: matrix matrices/m.kdl is not the frozen one");
}

#[test]
fn a_receipt_that_says_frozen_is_held_to_the_lock() {
    let says = |lock: Sha256| {
        move |_: &Project, statement: &mut Statement| {
            let freeze = &mut statement.predicate.bindings.freeze;
            (freeze.state, freeze.lock_sha256) = ("frozen".to_owned(), Some(lock));
        }
    };
    let none = resealed(says(Sha256::of(b"")));
    assert_says(&strictly(&none, &[]), 5, "drifted       policies/nucleus-gate.lock");
    // A lock of other files, by its own digest.
    let empty = Lock::render(&[]);
    let other = resealed(says(Sha256::of(empty.as_bytes())));
    fs::write(other.path(LOCK_PATH), empty).unwrap();
    assert_says(&strictly(&other, &[]), 5, "inconsistent  it says that its policy and matrix are frozen: policy ");
}

#[test]
fn a_receipt_of_frozen_files_binds_their_lock() {
    let project = Project::new();
    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    project.receipt();
    assert_says(&strictly(&project, &["--replay"]), 0, " 0 differences");
    let lock = fs::read(project.path(LOCK_PATH)).unwrap();
    fs::remove_file(project.path(LOCK_PATH)).unwrap();
    assert_says(&strictly(&project, &["--replay"]), 5, "drifted       policies/nucleus-gate.lock");
    fs::write(project.path(LOCK_PATH), lock).unwrap();
    fs::copy(project.path(MATRIX), project.path("matrices/n.kdl")).unwrap();
    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    assert_says(&strictly(&project, &["--replay"]), 5, "drifted       policies/nucleus-gate.lock");
}

#[test]
fn a_receipt_that_binds_less_than_its_matrix_is_inconsistent() {
    let less = resealed(|_, statement| statement.predicate.cases.iter_mut().for_each(|case| case.file = None));
    fs::write(less.path("inputs/filed.safetensors"), "other bytes").unwrap();
    assert_says(&less.run_as_it_is(&["verify", RECEIPT]), 5, "inconsistent  case filed: its input file is not the one");
}

#[test]
fn a_test_result_is_named_as_what_it_is() {
    let project = Project::new();
    project.receipt();
    let output = project.run_as_it_is(&["verify", "nucleus-gate-receipt.test-result.json"]);
    assert_says(&output, 3, "is the test result of a run, not its receipt");
    assert_says(&output, 3, "help: verify nucleus-gate-receipt.json");
    assert_says(&project.run_as_it_is(&["verify", RECEIPT]), 0, "unchanged since it was sealed");
}
