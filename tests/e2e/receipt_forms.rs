//! A receipt's bytes, what may replace it, what it says of itself, and how a second evaluation is compared with it.

use std::path::Path;

use crate::common::{judge, project};
use nucleus_gate::digest::Sha256;
use nucleus_gate::dsse::SecretKey;
use nucleus_gate::gate::ExitCode;
use nucleus_gate::matrix::Matrix;
use nucleus_gate::policy::Policy;
use nucleus_gate::receipt::{self, Evaluator, Outputs, Places, Statement};
use nucleus_gate::syntax::Source;

const MATRIX: &str = "vllm-large-logit-fix";

fn statement(matrix: &'static str) -> Statement {
    let evaluator = Evaluator { version: "1.2.3", sha256: Sha256::of(b"the program") };
    let places = Places { policy: "policies/p.kdl".to_owned(), matrix: "matrices/m.kdl".to_owned() };
    receipt::statement(&judge("split-top-p", matrix), &evaluator, &places)
}

fn sealed(statement: &Statement) -> Vec<u8> {
    receipt::seal(statement).unwrap()
}

#[test]
fn a_sealed_receipt_opens_and_any_change_is_named() {
    let bytes = sealed(&statement(MATRIX));
    let opened = receipt::open(&bytes).unwrap();
    assert_eq!(sealed(&opened), bytes);
    let code = |bytes: &[u8]| receipt::open(bytes).expect_err("must be refused").code();
    let text = String::from_utf8(bytes).unwrap();
    let swap = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        code(text.replacen(from, to, 1).as_bytes())
    };
    assert_eq!(swap("\"decision\":\"pass\"", "\"decision\":\"fail\""), "receipt-altered");
    assert_eq!(swap("\"receiptSha256\":\"", "\"receiptSha256\":null,\"x\":\""), "receipt-json");
    assert_eq!(swap("\"decision\":\"pass\"", "\"decision\" :\"pass\""), "receipt-not-canonical");
    assert_eq!(swap("\"decision\":\"pass\"", "\"decision\":\"pass\",\"decision\":\"fail\""), "receipt-json");
    assert_eq!(swap("Statement/v1", "Statement/v2"), "receipt-type");
    assert_eq!(swap("receipt:v1", "receipt:v2"), "receipt-type");
    assert_eq!(swap("\"schemaVersion\":\"1\"", "\"schemaVersion\":\"2\""), "receipt-type");
    assert_eq!(code(format!("{text}\n").as_bytes()), "receipt-not-canonical");
    let mut unsealed = statement(MATRIX);
    unsealed.predicate.receipt_sha256 = None;
    assert_eq!(code(&serde_json_canonicalizer::to_vec(&unsealed).unwrap()), "receipt-altered");
}

#[test]
fn a_receipt_is_replaced_by_the_same_one_or_on_demand_and_then_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    let write = |statement: Statement, replace: bool| {
        let earlier = receipt::earlier(&path).unwrap();
        let outputs = Outputs::new(&path, statement, earlier.as_ref(), replace, None);
        outputs.map(|outputs| outputs.claim().unwrap().write().unwrap()).map_err(|error| error.code())
    };
    let replaces = |path: &Path| receipt::open(&std::fs::read(path).unwrap()).unwrap().predicate.replaces;
    let first = statement(MATRIX);
    assert_eq!(write(first.clone(), false), Ok(()));
    let first_sha256 = Sha256::of(&std::fs::read(&path).unwrap());
    assert_eq!(write(first.clone(), false), Ok(()));
    assert_eq!(Sha256::of(&std::fs::read(&path).unwrap()), first_sha256);

    let mut other = first.clone();
    other.predicate.bindings.evaluator.version = "1.2.4".to_owned();
    assert_eq!(write(other.clone(), false), Err("receipt-earlier-run"));
    assert_eq!(Sha256::of(&std::fs::read(&path).unwrap()), first_sha256);
    assert_eq!(write(other.clone(), true), Ok(()));
    assert_eq!(replaces(&path).unwrap().sha256, first_sha256);
    let second_sha256 = Sha256::of(&std::fs::read(&path).unwrap());
    assert_eq!(write(other, false), Ok(()), "the same again, its history kept");
    assert_eq!(Sha256::of(&std::fs::read(&path).unwrap()), second_sha256);

    assert_eq!(write(statement("vllm-bf16-rows"), false), Ok(()), "another matrix is another run");
    assert_eq!(replaces(&path).unwrap().sha256, second_sha256);
    std::fs::write(&path, "{}").unwrap();
    assert_eq!(receipt::earlier(&path).expect_err("refused").code(), "receipt-foreign-file");
    assert_eq!(receipt::earlier(folder.path()).expect_err("refused").code(), "file-not-regular");
}

#[test]
fn what_stands_beside_a_receipt_is_always_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    let key = SecretKey::generate().unwrap();
    let write = |statement: Statement, key| {
        let earlier = receipt::earlier(&path).unwrap();
        Outputs::new(&path, statement, earlier.as_ref(), true, key).unwrap().claim().unwrap().write().unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let all = ["r.dsse.json", "r.json", "r.test-result.dsse.json", "r.test-result.json"];
    assert_eq!(write(statement(MATRIX), Some(&key)), all);
    assert_eq!(write(statement(MATRIX), None), all, "what was signed is said again");
    let mut other = statement(MATRIX);
    other.predicate.bindings.evaluator.version = "1.2.4".to_owned();
    assert_eq!(write(other, None), ["r.json", "r.test-result.json"]);
    assert_eq!(write(statement("vllm-monolithic"), Some(&key)), ["r.dsse.json", "r.json"], "a stopped run has none");
}

#[test]
fn of_two_runs_that_began_on_the_same_receipt_the_first_to_end_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    let outputs = |statement: &Statement, replace| {
        let earlier = receipt::earlier(&path).unwrap();
        Outputs::new(&path, statement.clone(), earlier.as_ref(), replace, None).unwrap()
    };
    let first = statement(MATRIX);
    let mut other = first.clone();
    other.predicate.bindings.evaluator.version = "1.2.4".to_owned();
    let began = [outputs(&other, false), outputs(&first, false), outputs(&first, false), outputs(&other, true)];
    let [other_outputs, one, same, replacing] = &began;
    one.claim().unwrap().write().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    same.claim().unwrap().write().unwrap();
    for late in [other_outputs, replacing] {
        assert_eq!(late.claim().expect_err("refused").code(), "receipt-changed-meanwhile");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let replacing = outputs(&other, true);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(replacing.claim().expect_err("refused").code(), "receipt-changed-meanwhile");
    outputs(&other, true).claim().unwrap().write().unwrap();
}

#[test]
fn only_files_of_a_receipt_are_replaced_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = SecretKey::generate().unwrap();
    let write = |name: &str| {
        let earlier = receipt::earlier(&at(name)).map_err(|error| error.code())?;
        let outputs = Outputs::new(&at(name), statement(MATRIX), earlier.as_ref(), false, Some(&key)).unwrap();
        outputs.claim().map_err(|error| error.code()).map(|claim| claim.write().unwrap())
    };
    // Names that differ after a dot share nothing.
    assert_eq!((write("gate.bf16"), write("gate.main")), (Ok(()), Ok(())));
    assert!(at("gate.bf16.test-result.json").exists() && at("gate.main.test-result.json").exists());
    assert_eq!(write("gate.bf16"), Ok(()));
    assert_eq!(write("gate.bf16.json"), Err("receipt-foreign-file"), "its files would be those of gate.bf16");
    for name in ["data.test-result.json", "data.dsse.json", "data.test-result.dsse.json"] {
        for bytes in [b"{}".to_vec(), std::fs::read(at("gate.main")).unwrap()] {
            std::fs::write(at(name), &bytes).unwrap();
            assert_eq!(write("data.json"), Err("receipt-foreign-file"), "{name}");
            assert_eq!(std::fs::read(at(name)).unwrap(), bytes);
        }
        std::fs::remove_file(at(name)).unwrap();
    }
    assert_eq!(write("data.json"), Ok(()));
    std::fs::remove_file(at("data.json")).unwrap();
    assert_eq!(write("data.json"), Ok(()), "what an earlier receipt left is ours");
}

#[test]
fn a_test_result_names_every_case_and_is_of_complete_runs_alone() {
    let parse = |matrix| -> serde_json::Value {
        serde_json::from_slice(&receipt::test_result(&statement(matrix)).unwrap().unwrap()).unwrap()
    };
    let passed = parse(MATRIX);
    assert_eq!(passed["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(passed["predicateType"], receipt::TEST_RESULT_TYPE);
    assert_eq!(passed["predicate"]["result"], "PASSED");
    assert_eq!(passed["predicate"]["passedTests"].as_array().unwrap().len(), 24);
    let failed = parse("vllm-bf16-rows");
    assert_eq!(failed["predicate"]["result"], "FAILED");
    assert_eq!(failed["predicate"]["failedTests"], serde_json::json!(["bf16-heavy-151936", "bf16-heavy-32000"]));
    assert_eq!(failed["predicate"]["passedTests"].as_array().unwrap().len(), 2);
    assert_eq!(receipt::test_result(&statement("vllm-monolithic")).unwrap(), None);
}

/// What a reader is told, and what was done.
type Tamper = (&'static str, fn(&mut Statement));

/// Some case's input file.
fn files(statement: &Statement) -> Option<receipt::InputFile> {
    statement.predicate.cases.iter().find_map(|case| case.file.clone())
}

#[test]
fn a_receipt_that_says_two_things_is_inconsistent() {
    let read = |path: &str| Source::new(path, std::fs::read_to_string(project().join(path)).unwrap());
    let policy = Policy::read(read("policies/split-top-p.kdl")).unwrap();
    let matrix = Matrix::read(read("matrices/vllm-large-logit-fix.kdl")).unwrap();
    let good = statement(MATRIX);
    assert_eq!(receipt::inconsistencies(&good, &policy, &matrix), Vec::<String>::new());
    assert_eq!(ExitCode::from(&good), ExitCode::Passed);
    let tampers: [Tamper; 22] = [
        ("input file is not", |s| s.predicate.cases.iter_mut().for_each(|case| case.file = None)),
        ("input file is not", |s| s.predicate.cases[0].file = files(s)),
        ("inputs are not", |s| s.predicate.cases[1].p_sha256 = Some(Sha256::of(b"other"))),
        ("inputs are not", |s| s.predicate.cases[1].logits_sha256 = None),
        ("another number of rows", |s| {
            let case = &mut s.predicate.cases[1];
            case.rows.pop();
            case.batch = Some(case.rows.len().to_string());
        }),
        ("bundle is not the one", |s| s.predicate.bindings.subjects[0].bundle = "elsewhere".to_owned()),
        ("not found as pinned", |s| s.predicate.bindings.subjects[0].files.clear()),
        ("cases are not", |s| s.predicate.cases.swap(0, 1)),
        ("cases are not", |s| drop(s.predicate.cases.pop())),
        ("rules are not", |s| drop(s.predicate.rules.pop())),
        ("subjects are not", |s| s.predicate.bindings.subjects.reverse()),
        ("one name", |s| s.subject[1].name = s.subject[0].name.clone()),
        ("no version", |s| s.predicate.bindings.evaluator.version.clear()),
        ("reason to stop", |s| s.predicate.execution.status = "incomplete".to_owned()),
        ("rows of a case are missing", |s| drop(s.predicate.cases[3].rows.pop())),
        ("rows of a case are missing", |s| s.predicate.cases[3].rows[0].row = "1".to_owned()),
        ("other decided cases", |s| s.predicate.execution.decided_cases = "23".to_owned()),
        ("another number", |s| s.predicate.execution.expected_cases = "25".to_owned()),
        ("exit code is 0 without", |s| s.predicate.decision = "fail".to_owned()),
        ("exit code is 0 without", |s| s.predicate.exit_code = "1".to_owned()),
        ("a row that did not", |s| s.predicate.cases[0].rows[0].verdict = "violated".to_owned()),
        ("a rule that was violated", |s| s.predicate.rules[0].violated = "1".to_owned()),
    ];
    for (expected, tamper) in tampers {
        let mut bad = good.clone();
        tamper(&mut bad);
        let found = receipt::inconsistencies(&bad, &policy, &matrix);
        assert!(found.iter().any(|sentence| sentence.contains(expected)), "{expected}: {found:?}");
    }
    let mut bad = good;
    bad.predicate.violations = statement("vllm-bf16-rows").predicate.violations;
    assert!(receipt::inconsistencies(&bad, &policy, &matrix)[0].contains("passes with violations"));
    bad.predicate.exit_code = "9".to_owned();
    assert_eq!(ExitCode::from(&bad), ExitCode::Internal);
}

#[test]
fn a_replay_names_each_fact_that_differs_and_where() {
    let good = statement(MATRIX);
    let mut again = good.clone();
    again.predicate.bindings.evaluator.digest.sha256 = Sha256::of(b"another build");
    again.predicate.bindings.policy.file = "elsewhere.kdl".to_owned();
    assert_eq!(receipt::differences(&good, &again).unwrap(), []);
    again.predicate.cases[1].rows[3].subjects[1].kept = "7".to_owned();
    again.predicate.cases[2].rows.pop();
    let differences = receipt::differences(&good, &again).unwrap();
    let [kept, row] = differences.as_slice() else { panic!("{differences:?}") };
    assert_eq!(kept.place, "cases normal-32000 rows 3 subjects 1 kept");
    assert_eq!(kept.replay, "7");
    assert_eq!((row.place.as_str(), row.replay.as_str()), ("cases normal-128256 rows 3", "absent"));
}
