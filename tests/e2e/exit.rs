//! Exit codes are a public promise: the same for every format, and what each case of it says.

use crate::common::{code, copy, nucleus_gate, project};

fn check(arguments: &[&str]) -> i32 {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let output = format!("json={}", report.display());
    let base = ["check", "--output", &output];
    let mut codes = Vec::new();
    for format in ["human", "json"] {
        let all: Vec<&str> = base.iter().chain(&["--format", format]).chain(arguments).copied().collect();
        let done = nucleus_gate(project(), &all);
        if format == "json" && !done.stdout.is_empty() {
            let shown: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!(shown["exit_code"], code(&done));
            let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
            assert_eq!((&written["cases"], &written["rules"]), (&shown["cases"], &shown["rules"]));
        }
        codes.push(code(&done));
    }
    assert_eq!(codes[0], codes[1], "the exit code depends on the outcome alone");
    codes[0]
}

#[test]
fn a_pass_is_0_and_a_violation_is_1() {
    assert_eq!(check(&[]), 0);
    assert_eq!(check(&["--matrix", "matrices/vllm-bf16-rows.kdl"]), 1);
    assert_eq!(check(&["--policy", "builtin:any-dispatch", "--matrix", "matrices/vllm-monolithic.kdl"]), 1);
}

#[test]
fn another_dispatch_path_is_5() {
    assert_eq!(check(&["--matrix", "matrices/vllm-monolithic.kdl"]), 5);
}

#[test]
fn a_selection_never_ends_in_a_verdict() {
    assert_eq!(check(&["--case", "normal-1024"]), 3);
    assert_eq!(check(&["--case", "normal-1024", "--row", "7"]), 3);
    assert_eq!(check(&["--case", "normal-1024", "--row", "8"]), 2);
    assert_eq!(check(&["--case", "normal-1025"]), 2);
}

#[test]
fn a_wrong_invocation_is_2() {
    for arguments in [
        &["--policy", "builtin:nothing"][..],
        &["--policy", "no-such-file.kdl"],
        &["--matrix", "policies/split-top-p.kdl"],
        &["--row", "1"],
        &["--output", "json="],
        &["--output", "xml=report"],
        &["--format", "xml"],
        &["--root", "no-such-folder"],
    ] {
        assert_eq!(check(arguments), 2, "{arguments:?}");
    }
    assert_eq!(code(&nucleus_gate(project(), &[])), 2);
    assert_eq!(code(&nucleus_gate(project(), &["--help"])), 0);
    let outside = tempfile::tempdir().unwrap();
    let done = nucleus_gate(outside.path(), &["check"]);
    assert_eq!(code(&done), 2);
    assert!(String::from_utf8_lossy(&done.stderr).contains("--matrix"), "{done:?}");
}

/// A copy of the project whose file has one text replaced.
fn edited(file: &str, from: &str, to: &str) -> i32 {
    let folder = copy();
    let path = folder.path().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    code(&nucleus_gate(folder.path(), &["check"]))
}

#[test]
fn limits_stop_the_run() {
    let policy = "policies/split-top-p.kdl";
    assert_eq!(edited(policy, "max-vocab=262144", "max-vocab=200000"), 3);
    assert_eq!(edited(policy, "max-batch=64", "max-batch=7"), 3);
    assert_eq!(edited(policy, "max-artifact-bytes=67108864", "max-artifact-bytes=1000000"), 3);
}

#[test]
fn a_policy_that_applies_to_no_row_is_4() {
    let folder = copy();
    let path = folder.path().join("policies/split-top-p.kdl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once("    // Every row by itself.").unwrap();
    let (_, tail) = rest.split_once("    // Reported beside").unwrap();
    std::fs::write(&path, format!("{head}    // Reported beside{tail}")).unwrap();
    let matrix = "matrices/vllm-bf16-rows.kdl";
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--matrix", matrix])), 4);
}

#[test]
fn a_fault_that_is_not_reproduced_is_denied_where_the_policy_says_so() {
    let folder = copy();
    let path = folder.path().join("policies/split-top-p.kdl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("reproduces-fault \"stock\"", "reproduces-fault \"stock\" deny=#true")).unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check"])), 0);
    let done = nucleus_gate(folder.path(), &["check", "--matrix", "matrices/vllm-bf16-rows.kdl"]);
    assert_eq!(code(&done), 1);
    assert!(String::from_utf8_lossy(&done.stdout).contains("0 is denied here"));
}

#[test]
fn a_declared_outcome_must_happen_and_an_undeclared_one_must_not() {
    let matrix = "matrices/vllm-large-logit-fix.kdl";
    let declared = "expect \"violation\" rule=\"count-envelope\" { rows 1 2 3; }";
    assert_eq!(edited(matrix, declared, "expect \"violation\" rule=\"count-envelope\" { rows 1 2 3 4; }"), 1);
    assert_eq!(edited(matrix, declared, "expect \"violation\" rule=\"count-envelope\" { rows 1 2; }"), 1);
    assert_eq!(edited(matrix, declared, "expect \"violation\" rule=\"count-envelop\" { rows 1 2 3; }"), 2);
    assert_eq!(edited(matrix, declared, "expect \"reject\" code=\"invalid-p\""), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_printed_is_no_pass() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
    command.arg("check").arg("--receipt").arg(folder.path().join("receipt.json"));
    let status = command.current_dir(project()).stdout(full).stderr(std::process::Stdio::null()).status();
    assert_eq!(status.unwrap().code(), Some(3));
}
