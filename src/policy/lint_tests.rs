//! Each code of the linter has a policy that trips it and one that does not; the underlined text is asserted.

use std::collections::{BTreeMap, BTreeSet};

use super::lint::{Paths, lint, lint_with};
use super::*;
use crate::matrix::Matrix;
use crate::syntax::{Issue, Severity, Source};

const SHIPPED: &str = include_str!("../../policies/split-top-p.kdl");
const MATRIX: &str = include_str!("../../matrices/vllm-large-logit-fix.kdl");

fn policy(text: &str) -> Policy {
    Policy::read(Source::new("p.kdl", text)).unwrap_or_else(|issues| panic!("{:?}", issues.list))
}

fn matrix(text: &str) -> Matrix {
    Matrix::read(Source::new("m.kdl", text)).unwrap_or_else(|issues| panic!("{:?}", issues.list))
}

/// The shipped policy with one part of it replaced; the part must be there.
#[track_caller]
fn with(part: &str, instead: &str) -> String {
    assert!(SHIPPED.contains(part), "{part}");
    SHIPPED.replacen(part, instead, 1)
}

/// Code, severity, and every underlined text.
fn shown<'t>(text: &'t str, issues: &[Issue]) -> Vec<(&'static str, Severity, Vec<&'t str>)> {
    let label = |span: &miette::SourceSpan| &text[span.offset()..span.offset() + span.len()];
    let labels = |issue: &Issue| issue.labels.iter().map(|(span, _)| label(span)).collect();
    issues.iter().map(|issue| (issue.code, issue.severity, labels(issue))).collect()
}

#[track_caller]
fn assert_lint(text: &str, code: &'static str, severity: Severity, underlined: &[&str]) {
    let issues = lint(&policy(text));
    assert_eq!(shown(text, &issues), [(code, severity, underlined.to_vec())], "{issues:?}");
    assert!(issues[0].help.is_some(), "no next step");
}

#[test]
fn the_shipped_policies_are_clean() {
    for name in builtin_names() {
        let policy = Policy::read(builtin(name).unwrap()).unwrap();
        assert_eq!(shown(policy.source.text(), &lint(&policy)), [], "{name}");
    }
    let (issues, matrix_issues) = lint_with(&policy(SHIPPED), &matrix(MATRIX), &Paths::new());
    assert_eq!((issues.len(), matrix_issues.len()), (0, 0));
}

#[test]
fn the_same_rule_twice() {
    let again = "unaltered \"patch\"\n        unaltered \"patch\" id=\"again\"";
    assert_lint(
        &with("unaltered \"patch\"", again),
        "policy::duplicate-rule",
        Severity::Error,
        &["unaltered \"patch\" id=\"again\"", "unaltered \"patch\""],
    );
    let other_subject = "unaltered \"patch\"\n        unaltered \"stock\" id=\"again\"";
    assert!(lint(&policy(&with("unaltered \"patch\"", other_subject))).is_empty());
}

#[test]
fn contradictions() {
    let exact = "exact-count \"patch\" 1 on-dispatch=\"cuda-split\"";
    let two = format!("{exact}\n        exact-count \"patch\" 2 id=\"two\"");
    assert_lint(
        &with(exact, &two),
        "policy::contradiction",
        Severity::Error,
        &["exact-count \"patch\" 2 id=\"two\"", exact],
    );
    let text = with("        no-nan \"patch\" id=\"patch-no-nan\"\n", "        exact-count \"patch\" 0 id=\"none\"\n");
    assert_lint(
        &text,
        "policy::contradiction",
        Severity::Error,
        &["superset \"patch\" of=\"oracle\" id=\"patch-covers-oracle\"", "exact-count \"patch\" 0 id=\"none\""],
    );
    let fit = with(exact, &format!("{exact}\n        exact-count \"stock\" 0 id=\"none\""));
    assert!(lint(&policy(&fit)).is_empty());
}

#[test]
fn a_stock_relative_rule_needs_its_requirement() {
    let requires = " requires=\"stock-covers-oracle\"";
    assert_lint(
        &with(requires, ""),
        "policy::missing-requirement",
        Severity::Error,
        &["\"stock\"", "superset \"stock\" of=\"oracle\" id=\"stock-covers-oracle\""],
    );
    // Requiring another rule is no better.
    assert_lint(
        &with(requires, " requires=\"stock-no-nan\""),
        "policy::missing-requirement",
        Severity::Error,
        &["\"stock\"", "\"stock-no-nan\"", "superset \"stock\" of=\"oracle\" id=\"stock-covers-oracle\""],
    );
}

#[test]
fn an_envelope_that_cannot_bind() {
    let difference = "count-envelope \"patch\" against=\"oracle\" max-difference=3";
    let wide = "count-envelope \"patch\" against=\"oracle\" max-difference=262144";
    assert_lint(&with(difference, wide), "policy::vacuous-envelope", Severity::Error, &["262144", "262144"]);
    let near = with(difference, "count-envelope \"patch\" against=\"oracle\" max-difference=262143");
    let codes: Vec<_> = lint(&policy(&near)).iter().map(|issue| issue.code).collect();
    assert_eq!(codes, ["policy::dead-parameter"]);
    let relative = "max-difference=3 relative-below=\"0.005\"";
    assert_lint(
        &with(relative, "max-difference=3 relative-below=\"262145\""),
        "policy::vacuous-envelope",
        Severity::Error,
        &["\"262145\"", "262144"],
    );
    assert!(lint(&policy(&with(relative, "max-difference=3 relative-below=\"0\""))).is_empty());
}

#[test]
fn a_clause_without_effect() {
    // 262,144 * 0.005 is 1,310.72: a difference of 1,310 is the largest that the clause can admit.
    let relative = "max-difference=3 relative-below=\"0.005\"";
    assert_lint(
        &with(relative, "max-difference=1310 relative-below=\"0.005\""),
        "policy::dead-parameter",
        Severity::Warning,
        &["\"0.005\"", "1310", "262144"],
    );
    assert!(lint(&policy(&with(relative, "max-difference=1309 relative-below=\"0.005\""))).is_empty());
}

#[test]
fn a_path_that_the_policy_excludes() {
    assert_lint(
        &with("on-dispatch=\"cuda-split\"", "on-dispatch=\"monolithic\""),
        "policy::unreachable-dispatch",
        Severity::Error,
        &["\"monolithic\"", "\"cuda-split\""],
    );
    let fit = with("        dispatch \"cuda-split\"\n", "");
    assert!(lint(&policy(&fit)).is_empty());
}

#[test]
fn a_subject_without_a_rule() {
    assert_lint(
        &with("        subject \"patch\"\n", "        subject \"patch\"\n        subject \"third\"\n"),
        "policy::unused-subject",
        Severity::Warning,
        &["\"third\""],
    );
}

#[track_caller]
fn assert_lint_with(policy_text: &str, matrix_text: &str, paths: &Paths, expected: &[(&str, Severity, &[&str])]) {
    let (mut issues, matrix_issues) = lint_with(&policy(policy_text), &matrix(matrix_text), paths);
    let mut found = shown(policy_text, &issues);
    found.extend(shown(matrix_text, &matrix_issues));
    let expected: Vec<_> = expected.iter().map(|(code, severity, text)| (*code, *severity, text.to_vec())).collect();
    assert_eq!(found, expected);
    issues.extend(matrix_issues);
    assert!(issues.iter().all(|issue| issue.help.is_some()), "no next step");
}

/// The shipped matrix without its forced cases.
fn without_forced() -> String {
    let blocks = MATRIX.split("\n    case ");
    let kept: Vec<&str> = blocks.filter(|block| !block.contains("kind=\"forced\"")).collect();
    kept.join("\n    case ")
}

#[test]
fn blocks_and_rules_that_the_matrix_cannot_reach() {
    let no_forced = without_forced();
    assert_lint_with(
        SHIPPED,
        &no_forced,
        &Paths::new(),
        &[("policy::unreached-block", Severity::Warning, &["\"forced\""])],
    );
    let free = with("        dispatch \"cuda-split\"\n", "");
    let paths = |path: &str| BTreeMap::from([("patch".to_owned(), BTreeSet::from([path.to_owned()]))]);
    assert_lint_with(&free, MATRIX, &paths("cuda-split"), &[]);
    assert_lint_with(
        &free,
        MATRIX,
        &paths("monolithic"),
        &[("policy::unreached-rule", Severity::Warning, &["\"cuda-split\""])],
    );
}

#[test]
fn policy_and_matrix_must_fit() {
    let third = with("        subject \"patch\"\n", "        subject \"patch\"\n        subject \"stok\"\n");
    assert_lint_with(
        &third,
        MATRIX,
        &Paths::new(),
        &[("policy::subject-not-in-matrix", Severity::Error, &["\"stok\""])],
    );
    let renamed = MATRIX.replacen("subject \"stock\"", "subject \"stick\"", 1);
    assert_lint_with(
        SHIPPED,
        &renamed,
        &Paths::new(),
        &[
            ("policy::subject-not-in-matrix", Severity::Error, &["\"stock\""]),
            ("matrix::subject-not-in-policy", Severity::Error, &["\"stick\""]),
        ],
    );
    let misspelt = MATRIX.replacen("rule=\"count-envelope\"", "rule=\"count-envlope\"", 1);
    assert_lint_with(
        SHIPPED,
        &misspelt,
        &Paths::new(),
        &[("matrix::unknown-rule", Severity::Error, &["\"count-envlope\""])],
    );
    assert_lint_with(
        &with("max-batch=64", "max-batch=7").replace("max-vocab=262144", "max-vocab=151935"),
        MATRIX,
        &Paths::new(),
        &[
            ("policy::limit-below-matrix", Severity::Error, &["151935"]),
            ("policy::limit-below-matrix", Severity::Error, &["7"]),
        ],
    );
}
