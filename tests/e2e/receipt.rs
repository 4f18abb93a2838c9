//! The receipt binds what the verdict rests on, and says nothing that a reader could round.

use std::path::Path;

use crate::common::{code, nucleus_gate, project};
use nucleus_gate::digest::Sha256;
use nucleus_gate::receipt::Statement;

/// Runs `check` with these arguments; the receipt's bytes and the exit code.
fn receipt(arguments: &[&str]) -> (Vec<u8>, i32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipt.json");
    let path_text = path.display().to_string();
    let all: Vec<&str> = ["check", "--receipt", &path_text].iter().chain(arguments).copied().collect();
    let done = nucleus_gate(project(), &all);
    (std::fs::read(&path).unwrap(), code(&done))
}

fn file_sha256(path: &str) -> Sha256 {
    Sha256::of(&std::fs::read(project().join(path)).unwrap())
}

#[test]
fn a_pass_binds_everything_that_it_rests_on() {
    let (bytes, exit) = receipt(&[]);
    assert_eq!(exit, 0);
    let statement: Statement = nucleus_gate::json::from_slice(&bytes).unwrap();
    let predicate = &statement.predicate;
    assert_eq!((predicate.execution.status.as_str(), predicate.decision.as_str()), ("complete", "pass"));
    let bindings = &predicate.bindings;
    assert_eq!(bindings.policy.digest.sha256, file_sha256("policies/split-top-p.kdl"));
    assert_eq!(bindings.case_matrix.digest.sha256, file_sha256("matrices/vllm-large-logit-fix.kdl"));
    assert_eq!(
        bindings.evaluator.digest.sha256,
        Sha256::of(&std::fs::read(env!("CARGO_BIN_EXE_nucleus-gate")).unwrap())
    );
    for subject in &bindings.subjects {
        assert_eq!(Some(subject.pinned_bundle_sha256), subject.found_bundle_sha256);
        assert_eq!((subject.sources.len(), subject.driver.as_str()), (1, "not recorded"));
        assert_eq!(subject.harness.as_ref().unwrap().name, "capture_vllm.py");
    }
    let names: Vec<&str> = statement.subject.iter().map(|subject| subject.name.as_str()).collect();
    let source = "vllm/v1/sample/ops/topk_topp_triton.py";
    assert_eq!(names, [format!("stock/{source}"), format!("patch/{source}"), "patch/patch-of-stock".to_owned()]);
    assert_eq!(predicate.cases.len(), 24);
    for case in &predicate.cases {
        assert_eq!(case.evidence.len(), 2, "{}", case.name);
        assert_eq!(case.rows.len().to_string(), *case.batch.as_ref().unwrap());
        for evidence in &case.evidence {
            let file = format!("matrices/recorded/vllm-h200/{}/{}.safetensors", evidence.subject, case.name);
            assert_eq!(evidence.file_sha256, file_sha256(&file));
            assert_eq!(evidence.dispatch["path"], "cuda-split");
        }
        if let Some(input) = &case.file {
            assert_eq!(input.digest.sha256, file_sha256(&input.path));
        }
    }
    assert!(predicate.violations.is_empty());
}

#[test]
fn a_receipt_is_canonical_and_the_same_for_the_same_run() {
    let (first, _) = receipt(&[]);
    let (second, _) = receipt(&["--format", "json"]);
    assert_eq!(first, second);
    let value: serde_json::Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), first);
    fn no_fractions(value: &serde_json::Value) {
        match value {
            serde_json::Value::Number(number) => {
                assert!(number.as_i64().is_some_and(|n| n.abs() < 1 << 53), "{number}")
            }
            serde_json::Value::Array(values) => values.iter().for_each(no_fractions),
            serde_json::Value::Object(map) => map.values().for_each(no_fractions),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::String(_) => {}
        }
    }
    no_fractions(&value);
}

#[test]
fn a_violation_and_a_drift_have_receipts_that_say_so() {
    let (bytes, exit) = receipt(&["--matrix", "matrices/vllm-bf16-rows.kdl"]);
    let failed: Statement = nucleus_gate::json::from_slice(&bytes).unwrap();
    assert_eq!((exit, failed.predicate.decision.as_str(), failed.predicate.exit_code.as_str()), (1, "fail", "1"));
    let violation = &failed.predicate.violations[0];
    assert_eq!((violation.rule.as_str(), violation.row.as_deref()), ("prefix", Some("7")));
    let (bytes, exit) = receipt(&["--matrix", "matrices/vllm-monolithic.kdl"]);
    let drifted: Statement = nucleus_gate::json::from_slice(&bytes).unwrap();
    assert_eq!((exit, drifted.predicate.execution.status.as_str()), (5, "incomplete"));
    assert_eq!(drifted.predicate.execution.stop_reasons.len(), 24);
    assert!(drifted.predicate.cases.iter().all(|case| case.rows.is_empty()));
}

#[test]
fn a_selection_writes_no_receipt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipt.json");
    let done = nucleus_gate(
        project(),
        &["check", "--receipt", &path.display().to_string(), "--case", "normal-1024", "--row", "0"],
    );
    assert_eq!(code(&done), 3);
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_receipt_that_cannot_be_written_is_no_pass() {
    let done = nucleus_gate(project(), &["check", "--receipt", "no-such-folder/receipt.json"]);
    assert_eq!(code(&done), 3);
}
