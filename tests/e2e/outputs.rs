//! Where runs may write, and how much.

use std::path::Path;

use crate::common::{code, copy, nucleus_gate, small_matrix};

/// Exit code, and the code of the error.
fn call(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let done = nucleus_gate(folder, arguments);
    let shown = String::from_utf8(done.stderr.clone()).unwrap();
    let error =
        shown.split_once("error[").and_then(|(_, rest)| rest.split_once(']')).map(|(error, _)| error.to_owned());
    (code(&done), error.unwrap_or_default())
}

#[test]
fn no_output_is_an_input_or_another_output() {
    let folder = copy();
    let matrix = small_matrix(folder.path(), &["normal-1024"]);
    assert_eq!(code(&nucleus_gate(folder.path(), &["keygen", "key"])), 0);
    let check = |more: &[&str]| {
        let base = ["check", "--matrix", &matrix, "--receipt", "r.json"];
        call(folder.path(), &[&base[..], more].concat())
    };
    let twice = (2, "cli::output-twice".to_owned());
    assert_eq!(check(&["--output", "json=r.json"]), twice);
    assert_eq!(check(&["--output", "json=policies/../r.test-result.json"]), twice);
    assert_eq!(check(&["--output", "json=a", "--output", "human=./a"]), twice);
    let inputs = [
        "policies/split-top-p.kdl",
        "policies/nucleus-gate.lock",
        "matrices/small.kdl",
        "matrices/../matrices/small.kdl",
        "matrices/recorded/cuda-h200/stock/report.json",
    ];
    for input in inputs {
        let path = folder.path().join(input);
        let before = std::fs::read(&path).ok();
        let (code, error) = check(&["--output", &format!("json={input}")]);
        assert!(code >= 2 && error == "cli::output-is-input", "{input}: {code} {error}");
        assert_eq!(std::fs::read(&path).ok(), before, "{input}");
    }
    assert_eq!(check(&["--sign", "key", "--output", "json=key"]), (2, "cli::output-is-input".to_owned()));
    assert!(!folder.path().join("r.json").exists());
    let _ = check(&["--sign", "key", "--output", "json=a", "--output", "human=b"]);
    for name in ["a", "b", "r.json", "r.dsse.json"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_capture_writes_nothing_outside_the_root_and_nothing_under_another_name() {
    let above = tempfile::tempdir().unwrap();
    let outside = above.path().join("outside");
    let folder = copy();
    let matrix = small_matrix(folder.path(), &["normal-1024"]);
    std::os::unix::fs::symlink(above.path(), folder.path().join("link")).unwrap();
    let capture = |name: &str, out: &str| {
        let base = ["capture", "--backend", "cpu", "--kernel", "sort", "--matrix", &matrix];
        call(folder.path(), &[&base[..], &["--name", name, "--out", out]].concat())
    };
    for name in ["../../esc", "..", ".", "", "a/b", "/esc", "a/", "a\\b", "a\nb", "a\u{202e}b"] {
        assert_eq!(capture(name, "cap"), (2, "cli::name".to_owned()), "{name:?}");
    }
    for out in [outside.to_str().unwrap(), "../esc", "new/../../esc", "link/esc", "link"] {
        assert_eq!(capture("sort", out), (2, "cli::out-outside-root".to_owned()), "{out}");
    }
    assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
    assert!(!folder.path().join("cap").exists() && !folder.path().join("new").exists());
    assert_eq!(capture("sort-2", "new/cap"), (0, String::new()));
    assert!(folder.path().join("new/cap/sort-2/subject.json").exists());
}

#[test]
fn the_limit_of_a_run_is_of_all_its_files_together() {
    let folder = copy();
    let matrix = small_matrix(folder.path(), &["normal-1024"]);
    let policy = std::fs::read_to_string(folder.path().join("policies/cpu-model.kdl")).unwrap();
    let run = |limit: u64, out: &str| {
        let (from, to) = ("max-artifact-bytes=67108864", format!("max-artifact-bytes={limit}"));
        assert!(policy.contains(from));
        std::fs::write(folder.path().join("policies/narrow.kdl"), policy.replacen(from, &to, 1)).unwrap();
        let report = format!("json={out}.json");
        let receipt = format!("{out}-receipt.json");
        let base = ["run", "--backend", "cpu", "--matrix", &matrix, "--policy", "policies/narrow.kdl", "--out", out];
        call(folder.path(), &[&base[..], &["--receipt", &receipt, "--output", &report]].concat())
    };
    let size = |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().len();
    let _ = run(67_108_864, "wide");
    let files = |subject: &str| {
        let entries = std::fs::read_dir(folder.path().join("wide").join(subject)).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let evidence = files("stock") + files("patch") + size("wide/matrix.kdl");
    let told: u64 = ["wide.json", "wide-receipt.json", "wide-receipt.test-result.json"].into_iter().map(size).sum();
    // Either part is within this limit, both together are not.
    let limit = evidence.max(told) + 4096;
    assert!(limit < evidence + told, "{evidence} {told}");
    assert_eq!(run(limit, "narrow"), (3, "limit::artifact-bytes".to_owned()));
    assert!(!folder.path().join("narrow.json").exists() && !folder.path().join("narrow-receipt.json").exists());
    // Room for digits that differ in length.
    let (code, error) = run(evidence + told + 4096, "enough");
    assert!(code < 2 && error.is_empty(), "{code} {error}");
}
