//! An interrupt leaves whole files or none.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use nucleus_gate::dsse::{PublicKey, SecretKey};
use nucleus_gate::fsio::Hold;

use crate::common::{code, nucleus_gate};

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn interrupt(child: &Child) {
    let done =
        Command::new("sh").args(["-c", "kill -INT \"$0\"", &child.id().to_string()]).stderr(Stdio::null()).status();
    assert!(done.is_ok());
}

#[test]
fn an_interrupted_keygen_leaves_a_pair_or_nothing() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
        let mut child = command.args(["keygen", "k"]).current_dir(folder.path()).stdout(Stdio::null()).spawn().unwrap();
        // Interrupted once the first file is on its way, if the process lives as long.
        while names(folder.path()).is_empty() && child.try_wait().unwrap().is_none() {}
        interrupt(&child);
        child.wait().unwrap();
        let left = names(folder.path());
        assert!(left.is_empty() || left == ["k", "k.pub"], "{left:?}");
    }
}

/// Runs itself again under this variable, with a signal that comes while it is held.
const HELD: &str = "NUCLEUS_GATE_TEST_HELD";

#[test]
fn a_held_interrupt_comes_when_the_hold_ends() {
    if let Some(file) = std::env::var_os(HELD) {
        let hold = Hold::signals();
        let nested = Hold::signals();
        // Raised, not sent: it has come when this returns.
        signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
        drop(nested);
        std::fs::write(&file, "held").unwrap();
        drop(hold);
        std::fs::write(&file, "not ended").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "interrupt::a_held_interrupt_comes_when_the_hold_ends"]).env(HELD, &file);
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "held");
}

#[test]
fn keygen_beside_a_public_key_leaves_no_secret_and_names_are_shown_safely() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.pub"), "mine").unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["keygen", "k"])), 2);
    assert_eq!(names(folder.path()), ["k.pub"]);
    let done = nucleus_gate(folder.path(), &["keygen", "a\u{1b}[31m"]);
    assert_eq!(code(&done), 0);
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.contains("a\u{fffd}[31m") && !shown.contains('\u{1b}'), "{shown:?}");
    let path = folder.path().join("a\u{1b}[31m");
    let public = folder.path().join("a\u{1b}[31m.pub");
    assert_eq!(SecretKey::read(&path).unwrap().public(), PublicKey::read(&public).unwrap());
}
