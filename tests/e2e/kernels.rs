//! The project's own kernels: what was recorded of them, and runs of their CPU model from end to end.

use nucleus_gate::gate::{ExitCode, RowOracle};
use nucleus_gate::kernels::cuda::CudaBackend;

use crate::common::{code, copy, judge, nucleus_gate, project, small_matrix};

const PATCH: usize = 1;

#[test]
fn the_recorded_split_kernels_pass_under_the_policy_of_the_split_path() {
    let run = judge("split-top-p", "cuda-h200");
    assert_eq!(ExitCode::of(&run), ExitCode::Passed);
    assert_eq!(run.cases.len(), 27);
    let report = run.reports.iter().find(|report| report.id == "reproduces-fault").unwrap();
    assert_eq!((report.count, report.of), (5, 12));
}

#[test]
fn the_recorded_exact_kernel_keeps_the_oracles_set_on_every_row() {
    let run = judge("any-dispatch", "cuda-h200-exact");
    assert_eq!(ExitCode::of(&run), ExitCode::Passed);
    let mut rows = 0;
    for row in run.cases.iter().flat_map(|case| &case.rows) {
        if !matches!(row.oracle, RowOracle::Disabled) {
            let patch = &row.subjects[PATCH];
            assert_eq!((patch.missing, patch.extra, patch.nan, patch.altered), (0, 0, 0, 0), "row {}", row.row);
            rows += 1;
        }
    }
    assert_eq!(rows, 219);
}

/// A copy of the project with its kernels.
fn copy_with_kernels() -> tempfile::TempDir {
    let folder = copy();
    std::fs::create_dir(folder.path().join("kernels")).unwrap();
    for entry in std::fs::read_dir(project().join("kernels")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join("kernels").join(entry.file_name())).unwrap();
    }
    folder
}

#[test]
fn one_changed_character_of_a_source_is_drift() {
    let folder = copy_with_kernels();
    let check = |matrix: &str| {
        let done = nucleus_gate(folder.path(), &["check", "--replace", "--matrix", matrix]);
        (code(&done), String::from_utf8(done.stdout).unwrap())
    };
    assert_eq!(check("matrices/cuda-h200.kdl").0, 0);
    let source = folder.path().join("kernels/split_top_p.cu");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, text.replacen("#define ROUNDS 5", "#define ROUNDS 6", 1)).unwrap();
    let (code, shown) = check("matrices/cuda-h200.kdl");
    assert_eq!(code, 5);
    assert!(shown.contains("kernels/split_top_p.cu has changed since stock was recorded"), "{shown}");
    // Evidence of kernels whose sources are elsewhere does not care.
    assert_eq!(check("matrices/vllm-large-logit-fix.kdl").0, 0);
}

#[test]
fn a_run_of_the_cpu_model_shows_the_fault_and_passes_under_its_policy_alone() {
    let folder = copy();
    let matrix = small_matrix(folder.path(), &["normal-1024", "forced-32000", "all-equal"]);
    let run = |more: &[&str]| {
        let arguments = [&["run", "--backend", "cpu", "--replace", "--matrix", &matrix], more].concat();
        nucleus_gate(folder.path(), &arguments)
    };
    let first = run(&[]);
    let shown = String::from_utf8(first.stdout.clone()).unwrap();
    assert_eq!(code(&first), 0, "{shown}");
    assert!(shown.contains("stock drops the forced token on 3 of 8 forced rows"), "{shown}");
    assert!(shown.contains("policies/cpu-model.kdl"), "{shown}");

    // Its evidence is judged the same again, and is no evidence of the device's path.
    let recorded = "nucleus-gate-run/1/matrix.kdl";
    let check =
        |policy: &str| nucleus_gate(folder.path(), &["check", "--replace", "--matrix", recorded, "--policy", policy]);
    assert_eq!(code(&check("policies/cpu-model.kdl")), 0);
    assert_eq!(code(&check("policies/split-top-p.kdl")), 5);

    // A second run has a folder of its own, and the same evidence to the byte.
    assert_eq!(code(&run(&[])), 0);
    let bytes = |number: u32, file: &str| {
        std::fs::read(folder.path().join(format!("nucleus-gate-run/{number}/{file}"))).unwrap()
    };
    for file in ["stock/normal-1024.safetensors", "patch/forced-32000.safetensors", "patch/subject.json"] {
        assert_eq!(bytes(1, file), bytes(2, file), "{file}");
    }

    // The exact kernel does not show what the matrix declares of the patch.
    let exact = run(&["--patch", "exact"]);
    assert_eq!(code(&exact), 1);
    let shown = String::from_utf8(exact.stdout).unwrap();
    assert!(shown.contains("mask-equality: patch equals the oracle on 24 of 24 rows"), "{shown}");

    assert_eq!(code(&run(&["--out", "nucleus-gate-run/1"])), 2);
}

#[test]
fn cuda_without_a_device_says_what_is_missing() {
    let Err(missing) = CudaBackend::new(None) else { return };
    let done = nucleus_gate(project(), &["run", "--backend", "cuda", "--receipt", "target/no-receipt.json"]);
    assert_eq!(code(&done), 2);
    let shown = String::from_utf8(done.stderr).unwrap();
    assert!(shown.contains(missing.code()) && shown.contains("--backend cpu"), "{shown}");
}

#[test]
fn capture_and_inputs_write_what_they_name_within_the_limits() {
    let folder = copy();
    let matrix = small_matrix(folder.path(), &["normal-1024", "all-equal"]);
    let call = |arguments: &[&str]| nucleus_gate(folder.path(), arguments);

    let capture = ["capture", "--backend", "cpu", "--kernel", "sort", "--matrix", &matrix, "--out", "captured"];
    let done = call(&capture);
    assert_eq!(code(&done), 0, "{}", String::from_utf8_lossy(&done.stderr));
    let printed = String::from_utf8(done.stdout).unwrap();
    let bundle = nucleus_gate::evidence::Bundle::open(&folder.path().join("captured/sort"), 1 << 20).unwrap();
    assert_eq!(printed, format!("{}  captured/sort\n", bundle.sha256()));
    assert_eq!(bundle.subject().unwrap().cases, ["normal-1024", "all-equal"]);
    // A bundle is never replaced.
    assert_eq!(code(&call(&capture)), 3);

    let done = call(&["inputs", "--matrix", &matrix, "--out", "inputs"]);
    assert_eq!(code(&done), 0);
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let (digest, name) = line.split_once("  ").unwrap();
        let bytes = std::fs::read(folder.path().join("inputs").join(name)).unwrap();
        assert_eq!(digest, nucleus_gate::digest::Sha256::of(&bytes).to_string());
        nucleus_gate::inputs::read(&bytes).unwrap();
    }
    assert_eq!(code(&call(&["inputs", "--matrix", &matrix, "--out", "inputs", "--case", "absent"])), 2);

    // Limits hold before anything is written.
    let policy = std::fs::read_to_string(folder.path().join("policies/split-top-p.kdl")).unwrap();
    let narrow = |from: &str, to: &str| {
        std::fs::write(folder.path().join("policies/narrow.kdl"), policy.replacen(from, to, 1)).unwrap();
        let arguments = [&capture[..8], &["narrow", "--policy", "policies/narrow.kdl"]].concat();
        let done = call(&arguments);
        assert!(!folder.path().join("narrow").exists());
        (code(&done), String::from_utf8(done.stderr).unwrap())
    };
    let (exit, shown) = narrow("max-artifact-bytes=67108864", "max-artifact-bytes=1024");
    assert!(exit == 3 && shown.contains("limit::artifact-bytes"), "{exit} {shown}");
    let (exit, shown) = narrow("max-vocab=262144", "max-vocab=1000");
    assert!(exit == 3 && shown.contains("1024"), "{exit} {shown}");
}
