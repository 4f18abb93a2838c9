//! The policy as its authors and reviewers meet it: lint, show, test, freeze, diff, explain.

use std::path::Path;
use std::process::Command;

use crate::common::{code, copy, nucleus_gate, project};

const POLICY: &str = "policies/split-top-p.kdl";
const ENVELOPE: &str = "count-envelope \"patch\" against=\"oracle\" max-difference=3 relative-below=\"0.005\"";
const PREFIX: &str = "        prefix \"patch\" ties=\"token-asc\"\n";

/// Exit code and standard output, or standard error where that is empty.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = nucleus_gate(folder, arguments);
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    (code(&output), String::from_utf8(text.clone()).unwrap())
}

/// Replaces a part of a file; the part must be there.
#[track_caller]
fn edit(folder: &Path, file: &str, part: &str, instead: &str) {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(part), "{file} does not hold {part}");
    std::fs::write(path, text.replacen(part, instead, 1)).unwrap();
}

/// The shipped policy against an edited copy of it.
#[track_caller]
fn diff(part: &str, instead: &str, arguments: &[&str]) -> (i32, String) {
    let folder = copy();
    std::fs::copy(folder.path().join(POLICY), folder.path().join("policies/new.kdl")).unwrap();
    edit(folder.path(), "policies/new.kdl", part, instead);
    run(folder.path(), &[&["policy", "diff", POLICY, "policies/new.kdl"], arguments].concat())
}

#[track_caller]
fn assert_holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn a_wider_envelope_is_loosened_and_says_what_gets_through() {
    let (exit, text) = diff(ENVELOPE, &ENVELOPE.replace("=3", "=5"), &[]);
    assert_eq!(exit, 1);
    assert_holds(
        &text,
        &["1 loosened; more gets through: 1 not acknowledged", "max-difference 3 -> 5", "over-keep-by-four"],
    );

    let (exit, text) = diff(ENVELOPE, &ENVELOPE.replace("0.005", "0.01"), &[]);
    assert_eq!(exit, 1);
    assert_holds(
        &text,
        &["relative-below \"0.005\" -> \"0.01\"", "fault duplicates-not-carried as every subject: NO LONGER CAUGHT"],
    );
}

#[test]
fn dropping_prefix_lets_the_recorded_faults_through() {
    let bf16 = ["--evidence", "--matrix", "matrices/vllm-bf16-rows.kdl"];
    let (exit, text) = diff(PREFIX, "", &bf16);
    assert_eq!(exit, 1);
    assert_holds(
        &text,
        &[
            "removed       prefix: lets more through",
            "mutation hole as every subject: gets through on 101 of 105 rows",
            "bf16-heavy-151936 row 7 gets through: prefix -> passes",
            "bf16-heavy-32000 row 29 gets through: prefix -> passes",
        ],
    );
}

/// The shipped policy against a tighter one, on the recorded evidence of a copy that was broken.
#[track_caller]
fn diff_of_evidence(broken: impl Fn(&Path), arguments: &[&str]) -> (i32, String) {
    let folder = copy();
    std::fs::copy(folder.path().join(POLICY), folder.path().join("policies/new.kdl")).unwrap();
    edit(folder.path(), "policies/new.kdl", ENVELOPE, &ENVELOPE.replace("=3", "=2"));
    broken(folder.path());
    let all = ["policy", "diff", "--no-zoo", POLICY, "policies/new.kdl", "--evidence"];
    let output = nucleus_gate(folder.path(), &[&all[..], arguments].concat());
    (code(&output), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

const BF16: [&str; 2] = ["--matrix", "matrices/vllm-bf16-rows.kdl"];

#[test]
fn evidence_that_is_missing_or_drifted_was_not_compared() {
    let bundle = |folder: &Path| folder.join("matrices/recorded/vllm-h200/patch");
    let (exit, text) = diff_of_evidence(|_| (), &BF16);
    assert_eq!(exit, 0, "{text}");
    assert_holds(&text, &["Recorded rows of vllm-bf16-rows: 56 compared"]);
    let (exit, text) = diff_of_evidence(|folder| std::fs::remove_dir_all(bundle(folder)).unwrap(), &BF16);
    assert_eq!(exit, 3, "{text}");
    assert_holds(&text, &["0 compared\n  not all judged: the bundle of patch cannot be opened", "error["]);
    let drift = |folder: &Path| {
        let subject = bundle(folder).join("subject.json");
        let text = std::fs::read_to_string(&subject).unwrap();
        std::fs::write(subject, text + "\n").unwrap();
    };
    let (exit, text) = diff_of_evidence(drift, &BF16);
    assert_eq!(exit, 5, "{text}");
    assert_holds(&text, &["error[gate::bundle-drift]", "not all judged"]);
    // Whatever gets through as well.
    let (exit, _) = diff_of_evidence(
        |folder| {
            drift(folder);
            edit(folder, "policies/new.kdl", PREFIX, "");
        },
        &BF16,
    );
    assert_eq!(exit, 5);
}

#[test]
fn evidence_of_another_dispatch_path_is_no_failure_unless_it_is_named() {
    let only = |kept: &'static [&str]| {
        move |folder: &Path| {
            for name in ["cuda-h200", "cuda-h200-exact", "vllm-bf16-rows", "vllm-large-logit-fix", "vllm-monolithic"] {
                if !kept.contains(&name) {
                    std::fs::remove_file(folder.join(format!("matrices/{name}.kdl"))).unwrap();
                }
            }
        }
    };
    let (exit, text) = diff_of_evidence(only(&["vllm-bf16-rows", "vllm-monolithic"]), &[]);
    assert_eq!(exit, 0, "{text}");
    assert_holds(&text, &["56 compared", "vllm-monolithic: 0 compared\n  not comparable: ", "gate::dispatch-path"]);
    let (exit, text) = diff_of_evidence(|_| (), &["--matrix", "matrices/vllm-monolithic.kdl"]);
    assert_eq!(exit, 5, "{text}");
    assert_holds(&text, &["error[gate::dispatch-path]"]);
    for none in [&["vllm-monolithic"][..], &[]] {
        let (exit, text) = diff_of_evidence(only(none), &[]);
        assert_eq!(exit, 4, "{text}");
        assert_holds(&text, &["error[cli::nothing-compared]"]);
    }
    // Where something of it is missing too, it is no longer of another path alone.
    let broken = |folder: &Path| {
        only(&["vllm-bf16-rows", "vllm-monolithic"])(folder);
        std::fs::remove_dir_all(folder.join("matrices/recorded/vllm-h200/monolithic-0.32.0")).unwrap();
    };
    assert_ne!(diff_of_evidence(broken, &[]).0, 0);
}

#[test]
fn what_is_acknowledged_by_name_may_pass() {
    let wider = ENVELOPE.replace("=3", "=5");
    let (exit, text) = diff(ENVELOPE, &wider, &["--no-zoo", "--acknowledge", "count-envelope"]);
    assert_eq!(exit, 0);
    assert_holds(&text, &["more gets through, all of it acknowledged", "(acknowledged)"]);
    let (exit, text) = diff(ENVELOPE, &wider, &["--no-zoo", "--acknowledge", "count-envlope"]);
    assert_eq!(exit, 1);
    assert_holds(&text, &["--acknowledge count-envlope names nothing that lets more through"]);
}

#[test]
fn tightening_and_layout_let_nothing_more_through() {
    let (exit, text) = diff(ENVELOPE, &ENVELOPE.replace("=3", "=2"), &[]);
    assert_eq!(exit, 0);
    assert_holds(&text, &["1 tightened; nothing more gets through", "nothing: every model is caught"]);
    let (exit, text) = diff(PREFIX, &format!("\n        // Rank order.\n{PREFIX}"), &[]);
    assert_eq!(exit, 0);
    assert_holds(&text, &["no rule changed: only layout, comments, order or the name differ"]);
}

#[test]
fn a_review_in_every_form() {
    let wider = ENVELOPE.replace("=3", "=5");
    let settings = || {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter("[0-9a-f]{64}", "[sha256]");
        settings
    };
    for format in ["text", "json", "markdown"] {
        let (exit, text) = diff(ENVELOPE, &wider, &["--format", format, "--no-zoo"]);
        assert_eq!(exit, 1, "{format}");
        settings().bind(|| insta::assert_snapshot!(format!("review_{format}"), text));
    }
}

#[test]
fn the_old_policy_may_be_a_git_revision() {
    let folder = copy();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "policies"]);
    git(&["commit", "-q", "-m", "policies"]);
    edit(folder.path(), POLICY, ENVELOPE, &ENVELOPE.replace("=3", "=5"));
    let (exit, text) = run(folder.path(), &["policy", "diff", "HEAD", "--no-zoo"]);
    assert_eq!(exit, 1);
    assert_holds(&text, &["old  split-top-p.kdl at HEAD", "max-difference 3 -> 5"]);
    let (exit, _) = run(folder.path(), &["policy", "diff", "HEAD", "policies/any-dispatch.kdl", "--no-zoo"]);
    assert_eq!(exit, 0);
    for wrong in ["HEAD~9", "--output=x", "HEAD:policies/any-dispatch.kdl", ""] {
        let (exit, text) = run(folder.path(), &["policy", "diff", "--", wrong]);
        assert_eq!(exit, 2, "{wrong}");
        assert_holds(&text, &["cli::no-revision"]);
    }
}

#[test]
fn what_is_not_frozen_is_refused() {
    let folder = copy();
    let folder = folder.path();
    let case = ["check", "--case", "normal-1024"];
    // No lock: nothing is frozen. A selection ends without a verdict.
    let (exit, text) = run(folder, &[&case[..], &["--unfrozen"]].concat());
    assert_eq!(exit, 3);
    assert!(text.trim_start().starts_with("UNFROZEN: no lock: nothing is frozen"), "{text}");
    let strictly = Command::new(env!("CARGO_BIN_EXE_nucleus-gate")).args(case).current_dir(folder).output().unwrap();
    assert_eq!(code(&strictly), 5);
    assert_holds(&String::from_utf8_lossy(&strictly.stderr), &["lock::missing", "no lock: nothing is frozen"]);
    assert_eq!(run(folder, &["policy", "freeze", "--check"]).0, 5);
    assert_eq!(run(folder, &["policy", "freeze"]).0, 0);
    assert_eq!(run(folder, &["policy", "freeze", "--check"]).0, 0);
    assert_eq!(run(folder, &case).0, 3);
    assert_eq!(run(folder, &["check", "--case", "normal-1024", "--policy", "builtin:any-dispatch"]).0, 3);

    edit(folder, POLICY, "// The reference", "// A reference");
    let (exit, text) = run(folder, &case);
    assert_eq!(exit, 5);
    assert_holds(&text, &["lock::changed", "policy policies/split-top-p.kdl is not the frozen one"]);
    let (exit, text) = run(folder, &[&case[..], &["--unfrozen"]].concat());
    assert_eq!(exit, 3);
    assert!(text.trim_start().starts_with("UNFROZEN: policy policies/split-top-p.kdl"), "{text}");
    let (exit, text) = run(folder, &["policy", "freeze", "--check"]);
    assert_eq!(exit, 5);
    assert_holds(&text, &["lock::stale"]);

    std::fs::copy(folder.join(POLICY), folder.join("policies/mine.kdl")).unwrap();
    let (exit, text) = run(folder, &["check", "--policy", "policies/mine.kdl"]);
    assert_eq!(exit, 5);
    assert_holds(&text, &["lock::not-listed"]);
    std::fs::write(folder.join("policies/nucleus-gate.lock"), "look {}").unwrap();
    let (exit, text) = run(folder, &case);
    assert_eq!(exit, 5);
    assert_holds(&text, &["lock::unreadable", "look"]);
}

#[test]
fn a_lock_that_cannot_be_read_is_not_a_missing_one() {
    let folder = copy();
    let folder = folder.path();
    let lock = folder.join("policies/nucleus-gate.lock");
    let case = ["check", "--case", "normal-1024", "--unfrozen"];
    assert_eq!(run(folder, &case).0, 3);
    for target in ["nowhere", "nucleus-gate.lock", "."] {
        std::os::unix::fs::symlink(target, &lock).unwrap();
        let (exit, text) = run(folder, &case);
        assert_eq!(exit, 5, "{target}: {text}");
        assert_holds(&text, &["lock::unreadable"]);
        std::fs::remove_file(&lock).unwrap();
    }
}

#[test]
fn a_default_policy_that_is_gone_is_not_replaced_by_the_one_in_the_program() {
    let folder = copy();
    let folder = folder.path();
    let case = ["check", "--case", "normal-1024"];
    assert_eq!(run(folder, &case).0, 3);
    std::fs::remove_file(folder.join(POLICY)).unwrap();
    assert_eq!(run(folder, &case).0, 2);
    std::os::unix::fs::symlink("nowhere.kdl", folder.join(POLICY)).unwrap();
    let (exit, text) = run(folder, &case);
    assert_eq!(exit, 2);
    assert_holds(&text, &["split-top-p.kdl"]);
    assert_eq!(run(folder, &[&case[..], &["--policy", "builtin:split-top-p"]].concat()).0, 3);
}

#[test]
fn a_matrix_does_not_escape_the_lock() {
    let (folder, other) = (copy(), copy());
    let (folder, other) = (folder.path(), other.path());
    let matrix = "matrices/vllm-large-logit-fix.kdl";
    assert_eq!(run(folder, &["policy", "freeze"]).0, 0);
    let check = |matrix: &str, more: &[&str]| {
        run(folder, &[&["check", "--case", "normal-1024", "--matrix", matrix], more].concat())
    };
    assert_eq!(check(matrix, &[]).0, 3);
    std::os::unix::fs::symlink(other.join(matrix), folder.join("matrices/link.kdl")).unwrap();
    let (exit, text) = check("matrices/link.kdl", &[]);
    assert_eq!(exit, 2);
    assert_holds(&text, &["cli::matrix-outside-root"]);

    std::fs::create_dir(folder.join("matrices/policies")).unwrap();
    let (exit, text) = check(matrix, &[]);
    assert_eq!(exit, 2);
    assert_holds(&text, &["cli::nested-root"]);
    assert_eq!(check(matrix, &["--root", "."]).0, 3);
}

#[test]
fn an_unfrozen_run_says_so_in_its_receipt() {
    let folder = copy();
    let folder = folder.path();
    assert_eq!(run(folder, &["policy", "freeze"]).0, 0);
    let matrix = "matrices/vllm-bf16-rows.kdl";
    let receipt = |arguments: &[&str]| {
        let (exit, _) = run(folder, &[&["check", "--matrix", matrix, "--receipt", "r.json"], arguments].concat());
        assert_eq!(exit, 1);
        let text = std::fs::read_to_string(folder.join("r.json")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["predicate"]["bindings"]["freeze"].clone()
    };
    assert_eq!(receipt(&[])["state"], "frozen");
    edit(folder, matrix, "// Rows whose", "// The rows whose");
    let freeze = receipt(&["--unfrozen"]);
    assert_eq!(freeze["state"], "unfrozen");
    assert!(freeze["why"].as_str().unwrap().contains(matrix));
}

#[test]
fn a_pinned_policy_hash() {
    let text = std::fs::read(project().join(POLICY)).unwrap();
    let hash = nucleus_gate::digest::Sha256::of(&text).to_string();
    let check = |hash: &str| run(project(), &["check", "--case", "normal-1024", "--expect-policy-sha256", hash]);
    assert_eq!(check(&hash).0, 3);
    let (exit, text) = check(&"0".repeat(64));
    assert_eq!(exit, 5);
    assert_holds(&text, &["lock::other-policy"]);
    assert_eq!(check("00").0, 2);
}

/// From the first edit to the reviewed and frozen change.
#[test]
fn an_author_adds_a_rule() {
    let folder = copy();
    let folder = folder.path();
    let rule = "        unaltered \"patch\"\n";
    edit(folder, POLICY, rule, &format!("{rule}        unalterd \"stock\" id=\"stock-unaltered\"\n"));
    let (exit, text) = run(folder, &["policy", "lint"]);
    assert_eq!(exit, 2);
    assert_holds(&text, &["policy::unknown-rule", "did you mean `unaltered`?"]);
    assert_eq!(run(folder, &["check"]).0, 2);

    edit(folder, POLICY, "unalterd", "unaltered");
    assert_eq!(run(folder, &["policy", "lint", "--strict"]).0, 0);
    let (exit, text) = run(folder, &["policy", "diff", "builtin:split-top-p", "--no-zoo"]);
    assert_eq!(exit, 0);
    assert_holds(&text, &["added         stock-unaltered: lets no more through"]);
    let (exit, text) = run(folder, &["policy", "test", "--zoo-only"]);
    assert_eq!(exit, 0, "{text}");
    assert_holds(&text, &["stock-unaltered", "22 of 22 faults caught; 19 of 19 rules tripped"]);
    assert_eq!(run(folder, &["policy", "freeze"]).0, 0);
    assert_eq!(run(folder, &["check"]).0, 0);
}

#[test]
fn an_unproven_policy_fails_its_test() {
    let folder = copy();
    edit(folder.path(), POLICY, "        repeatable \"patch\" where=\"recorded\"\n", "");
    let (exit, text) = run(folder.path(), &["policy", "test", "--zoo-only"]);
    assert_eq!(exit, 1);
    assert_holds(&text, &["NOT CAUGHT", "21 of 22 faults caught; 17 of 17 rules tripped", "not proven"]);
}

#[test]
fn a_matrix_that_a_policy_does_not_fit() {
    let folder = copy();
    let matrix = ["policy", "lint", "--matrix", "matrices/vllm-monolithic.kdl"];
    assert_eq!(run(folder.path(), &matrix).0, 0);
    edit(folder.path(), POLICY, "        dispatch \"cuda-split\"\n", "");
    let (exit, text) = run(folder.path(), &matrix);
    assert_eq!(exit, 0);
    assert_holds(&text, &["policy::unreached-rule", "patch takes cuda-monolithic", "0 errors, 1 warnings"]);
    assert_eq!(run(folder.path(), &[&matrix[..], &["--strict"]].concat()).0, 2);
}

#[test]
fn the_policy_in_sentences() {
    let (exit, text) = run(project(), &["policy", "show"]);
    assert_eq!(exit, 0);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter("[0-9a-f]{64}", "[sha256]");
    settings.bind(|| insta::assert_snapshot!("show", text));
}

#[test]
fn explanations() {
    for (topic, part) in [
        ("count-envelope", "## Reading the numbers"),
        ("logit-threshold", "Reported: vLLM's split path"),
        ("over-keep-by-four", "Four tokens more are kept."),
        ("gate::bundle-drift", "## What to do next"),
    ] {
        let (exit, text) = run(project(), &["explain", topic]);
        assert_eq!(exit, 0);
        assert_holds(&text, &[&format!("# {topic}\n"), part]);
    }
    let (exit, text) = run(project(), &["explain", "count-envelop"]);
    assert_eq!(exit, 2);
    assert_holds(&text, &["did you mean `count-envelope`?"]);
}

#[test]
fn what_is_shipped_is_frozen_and_clean() {
    assert_eq!(run(project(), &["policy", "freeze", "--check"]).0, 0, "run: nucleus-gate policy freeze");
    for policy in ["builtin:split-top-p", "builtin:any-dispatch", "policies/cpu-model.kdl"] {
        assert_eq!(run(project(), &["policy", "lint", policy, "--strict"]).0, 0, "{policy}");
    }
}
