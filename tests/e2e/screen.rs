//! What people see, reviewed like code.

use crate::common::{code, judge, nucleus_gate, project};
use nucleus_gate::report::{Screen, human};

/// The report without what differs from run to run.
fn report(policy: &'static str, matrix: &'static str, width: usize) -> String {
    let text = human(&judge(policy, matrix), &Screen { width, color: false });
    // From the line that counts time on to the next.
    let mut timing = false;
    let untimed = |line: &&str| {
        timing = (timing || line.contains(" rows decided;")) && !line.contains("nuclei of exact reals");
        !timing
    };
    text.lines().filter(untimed).map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(report("split-top-p", "vllm-large-logit-fix", 100));
}

#[test]
fn two_violations() {
    insta::assert_snapshot!(report("split-top-p", "vllm-bf16-rows", 100));
}

#[test]
fn two_violations_in_60_columns() {
    let text = report("split-top-p", "vllm-bf16-rows", 60);
    insta::assert_snapshot!(text);
    // Quoted source and commands to copy keep their lines; everything else fits.
    let quoted =
        |line: &str| line.contains(" │ ") || line.contains("─ ") || line.contains("nucleus-gate check --policy");
    let prose = |line: &&str| !quoted(line) && !line.contains("sha256");
    for line in text.lines().filter(prose) {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn many_violations_show_ten_and_count_the_rest() {
    let text = report("any-dispatch", "vllm-monolithic", 100);
    insta::assert_snapshot!(text);
    assert_eq!(text.lines().filter(|line| line.starts_with("rule::")).count(), 10);
    assert!(text.contains("smollm2-135m-49152 row 7 (p = 0.999): patch drops 1045 of the 9885 tokens"), "{text}");
}

#[test]
fn drift() {
    insta::assert_snapshot!(report("split-top-p", "vllm-monolithic", 100));
}

#[test]
fn no_escape_sequence_reaches_a_pipe() {
    let done = nucleus_gate(project(), &["check", "--matrix", "matrices/vllm-bf16-rows.kdl"]);
    assert_eq!(code(&done), 1);
    assert!(!done.stdout.contains(&0x1b));
}

#[test]
fn the_readme_shows_the_violation_as_printed() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```text\n").unwrap();
    let (picture, _) = rest.split_once("```").unwrap();
    let printed = report("split-top-p", "vllm-bf16-rows", 100);
    assert!(printed.contains(picture), "the README's picture is not what is printed:\n{printed}");
}
