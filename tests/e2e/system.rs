//! What the system may do to a call: give it no threads, or take its program away.

use std::process::{Command, Stdio};

use nucleus_gate::digest::Sha256;

use crate::common::{code, nucleus_gate, project};

#[test]
fn the_threads_that_are_asked_for_are_bounded() {
    let receipt = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
    command.args(["check", "--format", "json", "--case", "normal-1024"]).env("RAYON_NUM_THREADS", "5000");
    let output = command.arg("--receipt").arg(receipt.path().join("r")).current_dir(project()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(report["timing"]["workers"], (4 * cores).min(256));
}

/// A process of root's is bound by no such limit, and passes.
#[cfg(target_os = "linux")]
#[test]
fn a_call_without_threads_ends_with_a_code() {
    for (arguments, codes) in [(&["policy", "lint"][..], [0, 2]), (&["explain", "prefix"], [0, 0])] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -u 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nucleus-gate")]);
        let output = command.args(arguments).current_dir(project()).output().unwrap();
        assert!(codes.contains(&code(&output)), "{output:?}");
    }
}

/// The receipt names the program that judged, whatever became of its file.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_is_replaced_while_it_runs_names_itself() {
    // On the program's own file system, for a second name of it: a copy that was just written may be busy.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [program, gone, receipt] = ["gate", "gate (deleted)", "r.json"].map(|name| folder.path().join(name));
    std::fs::hard_link(env!("CARGO_BIN_EXE_nucleus-gate"), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["check", "--matrix", "matrices/vllm-bf16-rows.kdl", "--receipt"]).arg(&receipt);
    let child = command.current_dir(project()).stdout(Stdio::null()).spawn().unwrap();
    // It runs by now: spawning waits for that.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&gone, "another").unwrap();
    assert_eq!(code(&child.wait_with_output().unwrap()), 1);
    let receipt: serde_json::Value = serde_json::from_slice(&std::fs::read(&receipt).unwrap()).unwrap();
    let itself = Sha256::of(&std::fs::read(env!("CARGO_BIN_EXE_nucleus-gate")).unwrap()).to_string();
    assert!(receipt.to_string().contains(&itself), "{receipt}");
}

#[test]
fn devices_of_the_cpu_model_and_a_root_without_a_name_are_said() {
    let said = |arguments: &[&str]| {
        let output = nucleus_gate(project(), arguments);
        assert_eq!(code(&output), 2, "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let devices =
        ["capture", "--kernel", "patch", "--backend", "cpu", "--devices", "0,0,99999999999", "--out", "never"];
    assert!(said(&devices).contains("cli::no-devices"), "{}", said(&devices));
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    let outside = said(&["check", "--root", ".", "--matrix", elsewhere.path().to_str().unwrap()]);
    assert!(outside.contains("lies outside the project root .\n"), "{outside}");
}
