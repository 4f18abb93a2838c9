//! The CPU model against the recorded engine and the oracle, and the CUDA sources against their compiler.

use std::path::Path;

use super::cpu::{CpuBackend, DEFAULT_MULTIPROCESSORS};
use super::cuda::nvrtc::{self, FOLDER_VARIABLE, Target, compile};
use super::cuda::{CudaBackend, CudaError, Shape, sources};
use super::{Backend as _, Kernel, POISON};
use crate::digest::Sha256;
use crate::evidence::{Argmax, Bundle, RowEvidence};
use crate::gate;
use crate::inputs::Inputs;
use crate::matrix::{Case, Matrix, RowKind};
use crate::oracle;
use crate::policy::{Policy, builtin};
use crate::root::ProjectRoot;
use crate::syntax::Source;

fn root() -> ProjectRoot {
    ProjectRoot::at(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn matrix(name: &str) -> Matrix {
    let text = std::fs::read_to_string(root().path().join("matrices").join(name)).unwrap();
    Matrix::read(Source::new(name, text)).unwrap()
}

fn inputs_of(case: &Case) -> Inputs {
    let policy = Policy::read(builtin("builtin:split-top-p").unwrap()).unwrap();
    gate::inputs(&policy.limits, &root(), case).unwrap()
}

fn rows(inputs: &Inputs, kernel: Kernel) -> Vec<RowEvidence> {
    let backend = CpuBackend::new(DEFAULT_MULTIPROCESSORS);
    let launches = backend.run(0, inputs, &[kernel], 1, &|| false).unwrap();
    let output = &launches[0][0].output;
    assert!(output.iter().all(|value| value.to_bits() != POISON), "every place is written");
    let pairs = inputs.logits().chunks_exact(inputs.vocab()).zip(output.chunks_exact(inputs.vocab()));
    pairs.map(|(logits, output)| RowEvidence::from_output(logits, output)).collect()
}

/// Holds one matrix's stock and patch against the recorded ones: forced rows keep the very same tokens, ordinary rows as
/// many within the envelope. Returns the rows of each kind that were compared.
fn against_recorded(name: &str) -> (usize, usize) {
    let (matrix, mut forced, mut ordinary) = (matrix(name), 0, 0);
    for kernel in [Kernel::Stock, Kernel::Patch] {
        let folder = root().path().join("matrices/recorded/vllm-h200").join(kernel.name());
        let recorded = Bundle::open(&folder, 1 << 26).unwrap();
        for case in &matrix.cases {
            let inputs = inputs_of(case);
            let recorded = recorded.case(&case.name.value, &inputs).unwrap();
            for (row, (ours, theirs)) in rows(&inputs, kernel).iter().zip(&recorded.rows).enumerate() {
                let place = format!("{kernel} {} row {row}", case.name.value);
                assert_eq!((ours.nan, ours.altered), (0, 0), "{place}");
                match case.row_kind(row as u32) {
                    RowKind::Forced => {
                        assert_eq!(ours.kept, theirs.kept, "{place}");
                        forced += 1;
                    }
                    RowKind::Ordinary => {
                        let (ours, theirs) = (ours.kept.count(), theirs.kept.count());
                        let difference = ours.abs_diff(theirs);
                        assert!(difference <= 3 || difference * 1000 < 5 * theirs, "{place}: {ours}, {theirs}");
                        ordinary += 1;
                    }
                    RowKind::Disabled => assert_eq!(ours.kept.count() as usize, inputs.vocab(), "{place}"),
                    RowKind::Probe => {}
                }
            }
        }
    }
    (forced, ordinary)
}

#[test]
fn the_model_behaves_as_the_recorded_kernels_did() {
    assert_eq!(against_recorded("vllm-large-logit-fix.kdl"), (24, 174));
}

#[test]
fn on_bf16_rows_too() {
    let (forced, ordinary) = against_recorded("vllm-bf16-rows.kdl");
    assert_eq!(forced, 0);
    assert!(ordinary >= 96, "{ordinary}");
}

#[test]
fn stock_masks_forced_rows_and_patch_does_not() {
    let matrix = matrix("vllm-large-logit-fix.kdl");
    let forced = matrix.cases.iter().filter(|case| case.name.value.starts_with("forced"));
    let masked = |kernel| {
        let all_masked = |row: &RowEvidence| row.argmax == Argmax::AllMasked;
        let inputs = forced.clone().map(inputs_of);
        inputs.flat_map(|inputs| rows(&inputs, kernel)).filter(all_masked).count()
    };
    assert_eq!((masked(Kernel::Stock), masked(Kernel::Patch)), (5, 0));
}

#[test]
fn exact_is_the_oracle_on_every_row_boundary_inputs_included() {
    let mut compared = 0;
    for name in ["vllm-large-logit-fix.kdl", "vllm-bf16-rows.kdl"] {
        for case in &matrix(name).cases {
            let inputs = inputs_of(case);
            let nuclei = oracle::nuclei(inputs.logits(), inputs.vocab(), inputs.p(), &|| false);
            for (row, (ours, nucleus)) in rows(&inputs, Kernel::Exact).iter().zip(nuclei).enumerate() {
                let Some(Ok(nucleus)) = nucleus else { continue };
                let logits = inputs.row(row).unwrap();
                let wanted = |token: u32| oracle::RankKey::new(logits[token as usize], token) <= nucleus.boundary;
                assert!((0..inputs.vocab() as u32).all(|token| ours.kept.contains(token) == wanted(token)));
                compared += 1;
            }
        }
    }
    assert!(compared >= 200, "{compared}");
}

#[test]
fn a_dyadic_boundary_is_flagged_and_settled() {
    let matrix = matrix("vllm-large-logit-fix.kdl");
    let case = matrix.cases.iter().find(|case| case.name.value == "dyadic-exact").unwrap();
    let inputs = inputs_of(case);
    let launches = CpuBackend::new(1).run(0, &inputs, &[Kernel::Exact], 1, &|| false).unwrap();
    assert_eq!(launches[0][0].dispatch["flagged_rows"], serde_json::json!([0, 1, 2]));
}

/// Compiles every source, for devices with and without thread block clusters. Where the compiler is announced by the
/// environment it must be there; elsewhere its absence must be a plain error that says what to do.
#[test]
fn the_cuda_sources_compile() {
    let announced = std::env::var_os(FOLDER_VARIABLE).is_some();
    for (kernel, capability) in Kernel::ALL.into_iter().flat_map(|kernel| [(kernel, (9, 0)), (kernel, (8, 0))]) {
        for batch in [1, 8, 64] {
            let shape = Shape::of(kernel, batch, 151_936, 132, 232_448, capability >= (9, 0)).unwrap();
            let target = Target::Ptx(capability.0, capability.1);
            match compile(sources::of(kernel), target, &shape.defines()) {
                Ok(compiled) => {
                    let ptx = String::from_utf8(compiled.code).unwrap();
                    assert!(ptx.contains(&format!(".target sm_{}{}", capability.0, capability.1)));
                    assert!(ptx.contains(".visible .entry"), "{kernel}");
                }
                Err(error @ CudaError::NoCompiler) => {
                    assert!(!announced, "{FOLDER_VARIABLE} is set, but no compiler was found there");
                    assert!(error.help().contains(FOLDER_VARIABLE));
                    // For whoever reads the log: this machine did not compile anything.
                    eprintln!("not compiled: {error}; .ci/install-nvrtc installs one: {}", error.help());
                    return;
                }
                Err(error) => panic!("{kernel}: {error}"),
            }
        }
    }
}

#[test]
fn a_source_that_does_not_compile_names_its_line() {
    let broken = super::SourceFile { path: "kernels/broken.cu", text: "__global__ void f() {\n  int x = y;\n}\n" };
    match compile(broken, Target::Ptx(9, 0), &[]) {
        Err(CudaError::Compile { source_file, log }) => {
            assert_eq!(source_file, "kernels/broken.cu");
            assert!(log.contains("broken.cu(2)") && log.contains("\"y\" is undefined"), "{log}");
        }
        Err(CudaError::NoCompiler) => assert!(std::env::var_os(nvrtc::FOLDER_VARIABLE).is_none()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_driver_there_is_an_error_and_no_panic() {
    match CudaBackend::new(None) {
        Err(error @ (CudaError::NoDriver | CudaError::NoDevice)) => assert!(error.help().contains("--backend cpu")),
        Err(error) => panic!("{error}"),
        Ok(backend) => assert!(!backend.devices().is_empty()),
    }
}

#[test]
fn launch_shapes_follow_the_batch_and_the_device() {
    let shape = |kernel, batch, vocab| Shape::of(kernel, batch, vocab, 132, 232_448, true).unwrap();
    assert_eq!(shape(Kernel::Stock, 8, 151_936).grid, [16, 8]);
    assert_eq!(shape(Kernel::Patch, 64, 151_936).grid, [2, 64]);
    assert_eq!(shape(Kernel::Exact, 1, 151_936).grid, [16, 1]);
    assert_eq!(shape(Kernel::Exact, 8, 151_936).grid, [8, 8]);
    // Two blocks would be enough for 64 rows, but half a row does not fit one.
    assert_eq!(shape(Kernel::Exact, 64, 151_936).grid, [4, 64]);
    assert_eq!(shape(Kernel::Exact, 64, 32_000).grid, [2, 64]);
    assert!(matches!(
        Shape::of(Kernel::Exact, 1, 4_000_000, 132, 232_448, true),
        Err(CudaError::Vocabulary { vocab: 4_000_000 })
    ));
}

/// The device's recorded outputs are the model's, to the bit.
#[test]
fn the_model_gives_the_recorded_devices_bits() {
    let matrix = matrix("cuda-h200.kdl");
    let backend = CpuBackend::new(DEFAULT_MULTIPROCESSORS);
    for (kernel, bundle) in [(Kernel::Stock, "stock"), (Kernel::Patch, "patch"), (Kernel::Exact, "exact")] {
        let folder = root().path().join("matrices/recorded/cuda-h200").join(bundle);
        let recorded = Bundle::open(&folder, 1 << 26).unwrap();
        for case in &matrix.cases {
            let inputs = inputs_of(case);
            let recorded = recorded.case(&case.name.value, &inputs).unwrap();
            let launches = backend.run(0, &inputs, &[kernel], 1, &|| false).unwrap();
            let output = Sha256::of_f32(&launches[0][0].output);
            assert_eq!(output, recorded.output_sha256, "{kernel} {}", case.name.value);
            assert!(recorded.rows.iter().all(|row| row.repeat_differs == Some(0)), "{kernel} {}", case.name.value);
        }
    }
}

#[test]
fn a_stopped_run_gives_nothing() {
    let inputs = Inputs::new(4, vec![0.0; 8], vec![0.5; 2]).unwrap();
    let stopped = CpuBackend::new(1).run(0, &inputs, &[Kernel::Patch], 1, &|| true);
    assert_eq!(stopped.unwrap_err().code(), "kernel-stopped");
}
