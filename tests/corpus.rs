//! The corpus of the fuzz targets, fed to the same functions as a test: no nightly toolchain is needed for what has been
//! found before.

#[path = "../fuzz/entry.rs"]
mod entry;

use std::fs;
use std::path::Path;

/// Feeds every file of a target's corpus, and every file cut short, to the target. Anything but a return fails the test.
fn replay(target: &str, feed: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files = 0;
    for file in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let step = (bytes.len() / 16).max(1);
        (0..bytes.len()).step_by(step).for_each(|end| feed(&bytes[..end]));
        feed(&bytes);
        files += 1;
    }
    assert!(files >= 2, "the corpus of {target} is here");
}

#[test]
fn policy() {
    replay("policy", entry::policy);
}

#[test]
fn matrix() {
    replay("matrix", entry::matrix);
}

#[test]
fn evidence() {
    replay("evidence", entry::evidence);
}

#[test]
fn receipt() {
    replay("receipt", entry::receipt);
}

#[test]
fn the_seeds_are_good_files() {
    let read = |file: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(file)).unwrap();
    use nucleus_gate::evidence::CaseEvidence;
    for file in ["masks", "output"] {
        let bytes = read(&format!("evidence/{file}.safetensors"));
        assert!(CaseEvidence::read(file, &bytes, "c", &entry::sample()).is_ok());
    }
    assert!(nucleus_gate::inputs::read(&read("evidence/inputs.safetensors")).is_ok());
    assert!(nucleus_gate::receipt::open(&read("receipt/receipt.json")).is_ok());
}
