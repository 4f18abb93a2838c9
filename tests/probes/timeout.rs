//! A run that takes too long stops within a row, and what was decided is reported.

use serde_json::Value;

use crate::project::{MATRIX, POLICY, Project};

#[test]
fn a_timeout_stops_promptly_and_keeps_what_was_decided() {
    let mut project = Project::new();
    for name in ["slow-1", "slow-2", "slow-3", "slow-4", "slow-5", "slow-6"] {
        project.add_slow_case(name.to_owned());
    }
    project.record();
    project.edit(POLICY, "timeout-seconds=120", "timeout-seconds=1");
    let output = project.run_as_it_is(&["check", "--matrix", MATRIX, "--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["execution"], "stopped");
    let rows = |case: usize| report["cases"][case]["rows"].as_array().unwrap().len();
    assert_eq!(rows(0), 2, "what was decided in time is in the report");
    assert!((3..9).any(|case| rows(case) < 32), "what was not is not");
    let receipt: Value =
        serde_json::from_slice(&std::fs::read(project.path("nucleus-gate-receipt.json")).unwrap()).unwrap();
    assert_eq!(receipt["predicate"]["execution"]["status"], "incomplete");
    assert!(!project.path("nucleus-gate-receipt.test-result.json").exists());
}
