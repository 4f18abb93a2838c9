//! One flipped bit of anything that a run rests on never passes, and never counts as a verdict.

use std::path::Path;

use crate::common::{code, copy, nucleus_gate};

/// Flips bits at several places of a file, one at a time; the exit codes must all be allowed ones.
fn flips(folder: &Path, file: &str, places: usize, allowed: &[i32]) {
    let path = folder.join(file);
    let good = std::fs::read(&path).unwrap();
    for step in 0..places {
        // Spread over the file, first and last byte included; another bit each time.
        let offset = (good.len() - 1) * step / (places - 1).max(1);
        let mut bad = good.clone();
        bad[offset] ^= 1 << (step % 7);
        std::fs::write(&path, &bad).unwrap();
        let done = nucleus_gate(folder, &["check", "--replace"]);
        assert!(
            allowed.contains(&code(&done)),
            "{file}, byte {offset}, bit {}: exit {}\n{}",
            step % 7,
            code(&done),
            String::from_utf8_lossy(&done.stdout)
        );
    }
    std::fs::write(&path, good).unwrap();
}

#[test]
fn a_flipped_bit_of_an_input_file_is_drift() {
    let folder = copy();
    for name in ["smollm2-135m-49152", "all-equal", "upstream-seed42-8x1024"] {
        flips(folder.path(), &format!("matrices/recorded/vllm-h200/inputs/{name}.safetensors"), 4, &[3, 5]);
    }
}

#[test]
fn a_flipped_bit_of_the_evidence_is_drift_or_unreadable() {
    let folder = copy();
    for name in ["stock/normal-1024", "patch/forced-32000", "patch/gemma3-270m-262144"] {
        flips(folder.path(), &format!("matrices/recorded/vllm-h200/{name}.safetensors"), 4, &[3, 5]);
    }
    for name in ["stock", "patch"] {
        flips(folder.path(), &format!("matrices/recorded/vllm-h200/{name}/subject.json"), 6, &[3, 5]);
    }
}

/// Changes one digit of the first pinned digest after `marker` in the default matrix.
fn repinned(marker: &str) -> i32 {
    let folder = copy();
    let path = folder.path().join("matrices/vllm-large-logit-fix.kdl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let at = text.find(marker).unwrap() + marker.len();
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    text.replace_range(at..=at, digit);
    std::fs::write(&path, text).unwrap();
    code(&nucleus_gate(folder.path(), &["check", "--replace"]))
}

#[test]
fn a_changed_pin_is_drift() {
    for marker in [
        "bundle-sha256=\"",
        "patch-sha256=\"",
        "topk_topp_triton.py\" \\\n            sha256=\"",
        "input logits-sha256=\"",
        " p-sha256=\"",
        ".safetensors\" \\\n            sha256=\"",
    ] {
        assert_eq!(repinned(marker), 5, "{marker}");
    }
}

#[test]
fn a_changed_digit_of_a_mask_alone_is_named_by_its_case() {
    let folder = copy();
    let path = folder.path().join("matrices/recorded/vllm-h200/patch/normal-32000.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x80;
    std::fs::write(&path, bytes).unwrap();
    let done = nucleus_gate(folder.path(), &["check", "--replace", "--format", "json"]);
    assert_eq!(code(&done), 5);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let faults = report["faults"].as_array().unwrap();
    let named: Vec<_> = faults.iter().map(|fault| (fault["code"].as_str(), fault["case"].as_str())).collect();
    assert_eq!(named, [(Some("gate::bundle-drift"), None), (Some("drift-output"), Some("normal-32000"))]);
    assert_eq!(
        report["cases"].as_array().unwrap().iter().map(|case| case["rows"].as_array().unwrap().len()).sum::<usize>(),
        0
    );
}

#[test]
fn a_missing_or_added_evidence_file_never_passes() {
    let folder = copy();
    let bundle = folder.path().join("matrices/recorded/vllm-h200/patch");
    let file = bundle.join("normal-1024.safetensors");
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--replace"])), 5);
    std::fs::write(&file, &kept[..kept.len() / 2]).unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--replace"])), 5);
    std::fs::write(&file, kept).unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--replace"])), 0);
    std::fs::write(bundle.join("notes.txt"), "").unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--replace"])), 5);
    std::fs::remove_dir_all(&bundle).unwrap();
    assert_eq!(code(&nucleus_gate(folder.path(), &["check", "--replace"])), 3);
}

#[test]
fn a_flipped_bit_of_the_policy_or_matrix_is_never_a_pass_of_what_it_says() {
    // Until a lock freezes them, a changed byte of a comment or a name is another, equally good file; a changed digest,
    // number or keyword is not. Here only the digits of digests are flipped.
    let folder = copy();
    let path = folder.path().join("matrices/vllm-large-logit-fix.kdl");
    let text = std::fs::read_to_string(&path).unwrap();
    let digests: Vec<usize> = text.match_indices("sha256=\"").map(|(at, _)| at + 8).collect();
    assert_eq!(digests.len(), 2 + 1 + 2 + 24 * 2 + 13);
    for at in digests.iter().step_by(7) {
        let mut bytes = text.clone().into_bytes();
        bytes[at + 63] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let exit = code(&nucleus_gate(folder.path(), &["check", "--replace"]));
        assert!([2, 5].contains(&exit), "digest at byte {at}: exit {exit}");
    }
}
