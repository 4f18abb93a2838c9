//! A killed check leaves a whole receipt or none.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::project::{MATRIX, Project};

#[test]
fn an_interrupted_check_leaves_no_receipt_and_nothing_half_written() {
    let project = Project::new();
    let mut interrupted = 0;
    for (index, signal) in ["INT", "TERM", "KILL", "INT", "TERM", "KILL", "INT", "TERM"].into_iter().enumerate() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"))
            .args(["check", "--replace", "--matrix", MATRIX])
            .current_dir(project.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(2 * index as u64));
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        interrupted += i32::from(sent.success() && status.code().is_none());
        let names = fs::read_dir(project.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        for name in names.map(|name| name.into_string().unwrap()).filter(|name| name.contains("receipt")) {
            let bytes = fs::read(project.path(&name)).unwrap();
            let whole = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
            assert!(whole, "{name} is half-written after {signal}");
            fs::remove_file(project.path(&name)).unwrap();
        }
    }
    assert!(interrupted > 0, "no check was interrupted");
}
