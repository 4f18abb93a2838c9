//! Each decode error: one text that trips it, asserted by the underlined words; the shipped policies trip none.

use super::*;
use crate::syntax::{Issues, Source};

const SHIPPED: &str = include_str!("../../policies/split-top-p.kdl");

fn read(text: &str) -> Result<Policy, Issues> {
    Policy::read(Source::new("policy.kdl", text))
}

/// The shipped policy with one text replaced has exactly this issue, and its labels underline exactly these texts.
#[track_caller]
fn assert_issue(from: &str, to: &str, code: &str, underlined: &[&str]) -> String {
    assert!(SHIPPED.contains(from), "{from}");
    let text = SHIPPED.replacen(from, to, 1);
    let issues = read(&text).expect_err("the text has an issue");
    let found: Vec<_> = issues.list.iter().map(|issue| (issue.code, issue.message.as_str())).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let issue = &issues.list[0];
    let shown: Vec<&str> =
        issue.labels.iter().map(|(span, _)| &text[span.offset()..span.offset() + span.len()]).collect();
    assert_eq!((issue.code, shown.as_slice()), (code, underlined), "{}", issue.message);
    issue.help.clone().unwrap_or_default()
}

#[test]
fn the_shipped_policies_are_read() {
    let policy = read(SHIPPED).unwrap();
    assert_eq!(policy.rules().count(), 17);
    assert_eq!(policy.reports.len(), 4);
    assert_eq!(policy.evidence.dispatch.as_ref().map(|path| path.value.as_str()), Some("cuda-split"));
    for name in builtin_names() {
        let policy = Policy::read(builtin(name).unwrap()).unwrap();
        assert_eq!(format!("builtin:{}", policy.name.value), name);
    }
}

#[test]
fn any_dispatch_is_the_same_contract_without_the_dispatch_path() {
    let stripped = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.replace(" on-dispatch=\"cuda-split\"", ""));
        lines
            .filter(|line| {
                !line.starts_with("//") && !line.contains("dispatch \"cuda-split\"") && !line.starts_with("policy")
            })
            .collect()
    };
    assert_eq!(stripped(SHIPPED), stripped(include_str!("../../policies/any-dispatch.kdl")));
}

#[test]
fn cpu_model_is_the_same_contract_on_another_dispatch_path() {
    let rules = |text: &str| text[text.find("    // The reference").unwrap()..].to_owned();
    let model = include_str!("../../policies/cpu-model.kdl");
    assert_eq!(rules(SHIPPED).replace("\"cuda-split\"", "\"cpu-model\""), rules(model));
}

#[test]
fn spans_are_those_of_the_parameters() {
    let policy = read(SHIPPED).unwrap();
    let text = |span: miette::SourceSpan| &SHIPPED[span.offset()..span.offset() + span.len()];
    let envelope = policy.rules().find(|rule| rule.id.value == "count-envelope").unwrap();
    let crate::rules::Check::CountEnvelope(parameters) = &envelope.check else { panic!("{envelope:?}") };
    assert_eq!(text(parameters.max_difference.span), "3");
    assert_eq!(text(parameters.relative_below.span), "\"0.005\"");
    assert!(text(envelope.span).starts_with("count-envelope \"patch\""));
    assert_eq!(text(envelope.subject.span), "\"patch\"");
}

#[test]
fn misspelled_names_are_errors_with_a_suggestion() {
    let help = assert_issue("superset \"stock\"", "supreset \"stock\"", "policy::unknown-rule", &["supreset"]);
    // The rule that required it is orphaned by the same mistake only once that is mended: it is reported on its own.
    assert_eq!(help, "did you mean `superset`?");
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text =
        SHIPPED.replace("retains-forced \"patch\"", "retain-forced \"patch\"").replace("max-batch=64", "max-batch=0");
    let text = text.replace("no-nan \"patch\" id=\"patch-no-nan\"", "no-nan \"pacth\" id=\"patch-no-nan\"");
    let codes: Vec<_> = read(&text).unwrap_err().list.iter().map(|issue| issue.code).collect();
    assert_eq!(codes, ["policy::zero-limit", "policy::unknown-rule", "policy::unknown-subject"]);
}

#[test]
fn every_error_underlines_what_is_wrong() {
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("schema=1", "schema=2", "policy::unknown-schema", &["2"]),
        ("schema=1", "", "kdl::missing-property", &["policy"]),
        ("scan=\"neumaier\"", "scan=\"kahan\"", "policy::unsupported-oracle", &["\"kahan\""]),
        ("max-vocab=262144", "max-vocab=0", "policy::zero-limit", &["0"]),
        ("max-vocab=262144", "max-vocab=-1", "kdl::wrong-value", &["-1"]),
        ("max-batch=64", "max-batch=0x40", "kdl::wrong-value", &["0x40"]),
        ("policy \"split-top-p\"", "policy \"split top p\"", "policy::name", &["\"split top p\""]),
        ("id=\"patch-no-nan\"", "id=\"pätch-no-nan\"", "policy::name", &["\"pätch-no-nan\""]),
        ("max-vocab=262144", "max-vocab=1 max-vocab=2", "kdl::duplicate-property", &["max-vocab=2", "max-vocab=1"]),
        ("    evidence {", "    evidense {", "policy::unknown-node", &["evidense"]),
        ("        identical-inputs\n", "", "policy::missing-identical-inputs", &["evidence"]),
        (
            "        subject \"stock\"\n",
            "        subject \"stock\"\n        subject \"stock\"\n",
            "policy::duplicate",
            &["\"stock\"", "\"stock\""],
        ),
        (
            "subject \"stock\"\n        subject \"patch\"",
            "subject \"stock\"\n        subject \"patch\"\n        subject \"oracle\"",
            "policy::unknown-subject",
            &["\"oracle\""],
        ),
        ("kind=\"disabled\"", "kind=\"disable\"", "policy::unknown-row-kind", &["\"disable\""]),
        ("kind=\"disabled\"", "kind=\"probe\"", "policy::unknown-row-kind", &["\"probe\""]),
        ("untouched \"patch\"", "prefix \"patch\" ties=\"any\" id=\"x\"", "policy::wrong-block", &["prefix"]),
        ("retains-forced \"patch\"", "retains-forced \"pathc\"", "policy::unknown-subject", &["\"pathc\""]),
        ("retains-forced \"patch\"", "retains-forced", "kdl::missing-argument", &["retains-forced"]),
        ("retains-forced \"patch\"", "retains-forced \"patch\" 1", "kdl::extra-argument", &["1"]),
        ("retains-forced \"patch\"", "retains-forced \"patch\" ids=\"x\"", "kdl::unknown-property", &["ids"]),
        ("retains-forced \"patch\"", "(u8)retains-forced \"patch\"", "kdl::type-annotation", &["u8"]),
        ("ties=\"token-asc\"", "ties=\"token-desc\"", "policy::unknown-tie-order", &["\"token-desc\""]),
        (
            "of=\"oracle\" id=\"patch-covers-oracle\"",
            "of=\"stock\" id=\"patch-covers-oracle\"",
            "policy::unknown-reference",
            &["\"stock\""],
        ),
        ("at-most=\"stock\"", "at-most=\"stok\"", "policy::unknown-subject", &["\"stok\""]),
        (
            "requires=\"stock-covers-oracle\"",
            "requires=\"stock-covers\"",
            "policy::unknown-requirement",
            &["\"stock-covers\""],
        ),
        (
            "requires=\"stock-covers-oracle\"",
            "requires=\"unaltered\"",
            "policy::unknown-requirement",
            &["\"unaltered\""],
        ),
        ("id=\"patch-no-nan\"", "id=\"prefix\"", "policy::duplicate", &["prefix", "\"prefix\""]),
        ("relative-below=\"0.005\"", "relative-below=0.005", "kdl::wrong-value", &["0.005"]),
        ("reproduces-fault", "reproduces-faults", "policy::unknown-report", &["reproduces-faults"]),
        ("untouched \"patch\"", "untouched \"patch\" { x; }", "kdl::extra-block", &["x"]),
    ];
    for (from, to, code, underlined) in cases {
        assert_issue(from, to, code, underlined);
    }
}

#[test]
fn whole_files_that_are_no_policy() {
    let code = |text: &str| read(text).unwrap_err().list[0].code;
    assert_eq!(code(""), "policy::missing");
    assert_eq!(code("matrix \"m\" schema=1"), "policy::unknown-node");
    assert_eq!(code("policy \"p\" schema=1 {"), "kdl::syntax");
    assert_eq!(code(&"a {".repeat(40)), "kdl::too-deep");
    assert_eq!(code(&"/* ".repeat(70)), "kdl::too-deep");
    let empty = SHIPPED.split("    // One token's").next().unwrap().to_owned() + "}";
    assert_eq!(code(&empty), "policy::no-rules");
    assert_eq!(code(&format!("{SHIPPED}\n{SHIPPED}")), "policy::duplicate");
}
