//! `verify` against receipts that were written again, sealed and all.

use std::fs;
use std::process::{Command, Output};

use nucleus_gate::digest::Sha256;
use nucleus_gate::policy::LOCK_PATH;
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
    assert_says(&whole.run(&["verify", RECEIPT, "--replay"]), 0, "rows with the same executable, 0 differences");

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
        assert_says(&project.run(&["verify", RECEIPT]), 3, &format!("undecodable   README.md is no {kind}: "));
        assert_says(&project.run(&["verify", RECEIPT, "--replay"]), 3, "replay        not evaluated");
    }
}

/// The same `verify` call, with what [`Project::run`] adds left out.
fn strictly(project: &Project, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
    command.arg("verify").arg(RECEIPT).args(arguments).current_dir(project.path("")).output().unwrap()
}

#[test]
fn a_receipt_of_what_was_not_frozen_is_accepted_on_demand_alone() {
    let project = Project::new();
    project.receipt();
    assert_says(&strictly(&project, &[]), 5, "freeze        no lock: nothing is frozen");
    assert_says(&strictly(&project, &["--allow-unfrozen"]), 0, "accepted: --allow-unfrozen");

    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    assert_eq!(project.run(&["check", "--matrix", MATRIX, "--replace"]).status.code(), Some(0));
    assert_says(&strictly(&project, &["--replay"]), 0, "freeze        frozen, by the lock ");
    project.edit(MATRIX, "matrix \"m\"", "matrix  \"m\"");
    assert_eq!(project.run(&["check", "--matrix", MATRIX, "--replace", "--unfrozen"]).status.code(), Some(0));
    assert_says(&strictly(&project, &[]), 5, "freeze        unfrozen: matrix matrices/m.kdl is not the frozen one");
}

#[test]
fn a_replay_compares_the_freeze() {
    let project = Project::new();
    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    project.receipt();
    assert_says(&strictly(&project, &["--replay"]), 0, " 0 differences");
    let lock = fs::read(project.path(LOCK_PATH)).unwrap();
    fs::remove_file(project.path(LOCK_PATH)).unwrap();
    assert_says(&strictly(&project, &["--replay"]), 5, "differs     bindings freeze lockSha256");
    fs::write(project.path(LOCK_PATH), lock).unwrap();
    fs::copy(project.path(MATRIX), project.path("matrices/n.kdl")).unwrap();
    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    assert_says(&strictly(&project, &["--replay"]), 5, "differs     bindings freeze lockSha256");
}

#[test]
fn a_receipt_that_binds_less_than_its_matrix_is_inconsistent() {
    let less = resealed(|_, statement| statement.predicate.cases.iter_mut().for_each(|case| case.file = None));
    fs::write(less.path("inputs/filed.safetensors"), "other bytes").unwrap();
    assert_says(&less.run(&["verify", RECEIPT]), 5, "inconsistent  case filed: its input file is not the one");
}

#[test]
fn a_test_result_is_named_as_what_it_is() {
    let project = Project::new();
    project.receipt();
    let output = project.run(&["verify", "nucleus-gate-receipt.test-result.json"]);
    assert_says(&output, 3, "is the test result of a run, not its receipt");
    assert_says(&output, 3, "help: verify nucleus-gate-receipt.json");
    assert_says(&project.run(&["verify", RECEIPT]), 0, "unchanged since it was sealed");
}
