//! A plain in-toto test-result beside the receipt, for verifiers that know no other predicate. Only a run that went to
//! its end and decided something has one: where it is absent, nothing was attested.

use std::collections::BTreeMap;

use serde::Serialize;

use super::statement::{Case, Descriptor, DigestSet, STATEMENT_TYPE, Statement};
use crate::digest::Sha256;

/// in-toto's type of the predicate.
pub const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestResult<'a> {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: &'a [Descriptor],
    predicate_type: &'static str,
    predicate: Predicate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate<'a> {
    result: &'static str,
    configuration: Vec<Configuration>,
    passed_tests: Vec<&'a str>,
    warned_tests: Vec<&'a str>,
    failed_tests: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    name: String,
    digest: DigestSet,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

/// The test-result of a receipt, as canonical JSON; nothing for a run that was stopped or decided nothing. Every case is
/// named in one of its lists.
///
/// # Errors
/// Where the types hold something that canonical JSON cannot say, which they do not.
pub fn test_result(statement: &Statement) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let predicate = &statement.predicate;
    let result = match (predicate.execution.status.as_str(), predicate.decision.as_str()) {
        ("complete", "pass") => "PASSED",
        ("complete", "fail") => "FAILED",
        _ => return Ok(None),
    };
    let passed = |case: &&Case| case.rows.iter().all(|row| row.verdict == "passed");
    let (passed, failed): (Vec<&Case>, Vec<&Case>) = predicate.cases.iter().partition(passed);
    let test_result = TestResult {
        kind: STATEMENT_TYPE,
        subject: &statement.subject,
        predicate_type: PREDICATE_TYPE,
        predicate: Predicate {
            result,
            configuration: configuration(statement),
            passed_tests: passed.iter().map(|case| case.name.as_str()).collect(),
            warned_tests: Vec::new(),
            failed_tests: failed.iter().map(|case| case.name.as_str()).collect(),
        },
    };
    serde_json_canonicalizer::to_vec(&test_result).map(Some)
}

/// Whether these bytes call themselves a test-result: not a receipt, though they lie beside one.
#[must_use]
pub fn is_test_result(bytes: &[u8]) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    value.is_some_and(|value| value.get("predicateType").and_then(serde_json::Value::as_str) == Some(PREDICATE_TYPE))
}

fn configuration(statement: &Statement) -> Vec<Configuration> {
    let bindings = &statement.predicate.bindings;
    let plain = |name: &str, digest: &DigestSet| Configuration {
        name: name.to_owned(),
        digest: digest.clone(),
        media_type: None,
        annotations: BTreeMap::new(),
    };
    let kdl = |name: &str, digest: &DigestSet| Configuration {
        media_type: Some("application/vnd.kdl"),
        ..plain(name, digest)
    };
    let oracle = &bindings.oracle;
    let mut out = vec![
        kdl("policy", &bindings.policy.digest),
        kdl("case-matrix", &bindings.case_matrix.digest),
        Configuration {
            annotations: BTreeMap::from([("lines", "<sha256>  <case>/logits and <case>/p, by case".to_owned())]),
            ..plain("inputs", &DigestSet { sha256: inputs(&statement.predicate.cases) })
        },
        Configuration {
            annotations: BTreeMap::from([
                ("version", bindings.evaluator.version.clone()),
                (
                    "oracle",
                    format!(
                        "{}, {}, exp {}, {}, {}",
                        oracle.arithmetic, oracle.order, oracle.exp, oracle.scan, oracle.certify
                    ),
                ),
            ]),
            ..plain("evaluator", &bindings.evaluator.digest)
        },
    ];
    for subject in &bindings.subjects {
        let bundle = DigestSet { sha256: subject.found_bundle_sha256.unwrap_or(subject.pinned_bundle_sha256) };
        out.push(plain(&format!("{}/evidence", subject.name), &bundle));
        out.extend(subject.harness.iter().map(|harness| plain(&format!("{}/harness", subject.name), &harness.digest)));
    }
    out
}

/// One digest of all inputs.
fn inputs(cases: &[Case]) -> Sha256 {
    let line = |name: &str, what: &str, digest: Option<Sha256>| {
        digest.map_or_else(String::new, |digest| format!("{digest}  {name}/{what}\n"))
    };
    let lines =
        cases.iter().map(|case| line(&case.name, "logits", case.logits_sha256) + &line(&case.name, "p", case.p_sha256));
    Sha256::of(lines.collect::<String>().as_bytes())
}
