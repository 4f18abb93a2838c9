//! A killed check leaves whole files or none.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::project::{MATRIX, Project};

#[test]
fn an_interrupted_check_leaves_no_receipt_and_nothing_half_written() {
    let project = Project::new();
    let before: Vec<String> = project.files().into_iter().map(|(name, _)| name).collect();
    let mut interrupted = 0;
    for (index, signal) in ["INT", "TERM", "KILL"].into_iter().cycle().take(24).enumerate() {
        let mut child = project
            .program()
            .args(["check", "--unfrozen", "--matrix", MATRIX, "--output", "json=report.json"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(index as u64));
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        interrupted += i32::from(sent.success() && status.code().is_none());
        for (name, bytes) in project.files().into_iter().filter(|(name, _)| !before.contains(name)) {
            assert!(
                name == "report.json" || name.starts_with("nucleus-gate-receipt."),
                "{name} is left after {signal}"
            );
            let whole = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
            assert!(whole, "{name} is half-written after {signal}");
            std::fs::remove_file(project.path(&name)).unwrap();
        }
    }
    assert!(interrupted > 0, "no check was interrupted");
}
