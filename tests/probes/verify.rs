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

/// Changes that only someone who seals again can make; each is found without a replay.
type Forgery = (&'static str, fn(&mut Statement));

const FORGERIES: [Forgery; 30] = [
    ("no subject", |s| s.subject.clear()),
    ("another kernel as subject", |s| s.subject[0].digest.sha256 = Sha256::of(b"")),
    ("another semantic digest", |s| s.predicate.bindings.policy_semantic_sha256 = Sha256::of(b"")),
    ("another policy name", |s| s.predicate.bindings.policy.name = "mine".to_owned()),
    ("no limits", |s| s.predicate.bindings.limits.clear()),
    ("another oracle", |s| s.predicate.bindings.oracle.arithmetic = "float8".to_owned()),
    ("another source", |s| s.predicate.bindings.subjects[0].sources[0].digest.sha256 = Sha256::of(b"")),
    ("another device", |s| s.predicate.bindings.subjects[1].device = Some("a toaster".to_owned())),
    ("a file twice", |s| {
        let files = &mut s.predicate.bindings.subjects[0].files;
        files.insert(0, files[0].clone());
    }),
    ("another rule kind", |s| s.predicate.rules[0].kind = "prefix".to_owned()),
    ("no reports", |s| s.predicate.reports.clear()),
    ("no evidence", |s| s.predicate.cases[0].evidence.clear()),
    ("evidence of one subject twice", |s| {
        let evidence = &mut s.predicate.cases[0].evidence;
        evidence[1] = evidence[0].clone();
    }),
    ("another evidence file", |s| s.predicate.cases[0].evidence[0].file_sha256 = Sha256::of(b"")),
    ("a row less", |s| {
        s.predicate.cases[2].rows.pop();
        s.predicate.cases[2].batch = Some("1".to_owned());
        for rule in &mut s.predicate.rules {
            let passed: u64 = rule.passed.parse().unwrap();
            rule.passed = if passed == 4 { "3".to_owned() } else { rule.passed.clone() };
        }
    }),
    ("another p", |s| s.predicate.cases[0].rows[0].p_bits = "0x3f000001".to_owned()),
    ("another vocabulary", |s| s.predicate.cases[0].vocab = Some("65".to_owned())),
    ("another kind of row", |s| s.predicate.cases[0].rows[0].kind = "probe".to_owned()),
    ("a declared violation", |s| s.predicate.cases[0].rows[0].declared.push("prefix".to_owned())),
    ("a rejected row", |s| {
        let oracle = &mut s.predicate.cases[0].rows[0].oracle;
        (oracle.boundary, oracle.rejected) = (None, Some("invalid-p".to_owned()));
    }),
    ("no boundary", |s| s.predicate.cases[0].rows[0].oracle.boundary = None),
    ("no bits", |s| s.predicate.cases[0].rows[0].oracle.boundary.as_mut().unwrap().target_bits = "0x1".to_owned()),
    ("a row without subjects", |s| s.predicate.cases[0].rows[0].subjects.clear()),
    ("missing tokens", |s| s.predicate.cases[0].rows[0].subjects[1].missing = "5".to_owned()),
    ("a leading zero", |s| s.predicate.cases[0].rows[0].subjects[1].nan = "00".to_owned()),
    ("a sign", |s| s.predicate.reports[0].count = "+1".to_owned()),
    ("rules that passed more often", |s| s.predicate.rules[8].passed = "999".to_owned()),
    ("rules that were not evaluated", |s| {
        let rule = &mut s.predicate.rules[8];
        (rule.passed, rule.not_evaluated) = ("0".to_owned(), "-4".to_owned());
    }),
    ("another evaluator", |s| s.predicate.bindings.evaluator.name = String::new()),
    ("a version of spaces", |s| s.predicate.bindings.evaluator.version = " ".to_owned()),
];

#[test]
fn a_forged_fact_is_found_without_a_replay() {
    let project = Project::new();
    project.receipt();
    let good = receipt::open(&fs::read(project.path(RECEIPT)).unwrap()).unwrap();
    let verify_as = |statement: &Statement| {
        fs::write(project.path(RECEIPT), receipt::seal(statement).unwrap()).unwrap();
        project.verify()
    };
    assert_eq!(verify_as(&good).status.code(), Some(0));
    for (name, forge) in FORGERIES {
        let mut forged = good.clone();
        forge(&mut forged);
        assert_ne!(forged, good, "{name}");
        let output = verify_as(&forged);
        assert_eq!(output.status.code(), Some(5), "{name}: {}", everything(&output));
        assert!(everything(&output).contains("inconsistent  "), "{name}: {}", everything(&output));
    }
}

#[test]
fn a_pinned_source_that_has_changed_here_is_drift() {
    let project = Project::new();
    let source = "vllm/v1/sample/ops/topk_topp_triton.py";
    project.receipt();
    fs::create_dir_all(project.path("vllm/v1/sample/ops")).unwrap();
    fs::write(project.path(source), "another kernel").unwrap();
    assert_says(&project.verify(), 5, &format!("drifted       {source} has changed since "));
    fs::remove_file(project.path(source)).unwrap();
    assert_eq!(project.verify().status.code(), Some(0));
}
