//! `nucleus-gate run`: run the kernels on this machine, then judge what they did.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Failure;
use super::backend::{BackendArgs, Choice, Opened, capture, kernel};
use super::load::{DEFAULT_POLICY, Files, Loaded, freeze, places, read_matrix};
use super::reporting::Reporting;
use crate::fsio::{Existing, write_atomic};
use crate::gate::{self, ExitCode};
use crate::kernels::Kernel;
use crate::kernels::capture::Captured;
use crate::matrix::repin;

/// Where runs keep their evidence unless told otherwise, below the project root.
const DEFAULT_OUT: &str = "nucleus-gate-run";

/// The matrix of a run that names none: its cases, and what these kernels do on its boundary inputs.
const DEFAULT_RUN_MATRIX: &str = "matrices/cuda-h200.kdl";

/// Run the kernels on this machine over a matrix's cases, then judge them
///
/// The evidence and a matrix that pins it are written first, then judged as `check` would: `check --matrix` on that matrix
/// says the same again. The policy is cpu-model on the CPU, split-top-p for the split kernels on a CUDA device, and
/// any-dispatch for others, unless named. Exit codes are those of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    backend: BackendArgs,
    /// The kernel that the policy calls stock: stock, patch, sort or exact
    #[arg(long, value_name = "KERNEL", default_value = "stock", value_parser = kernel)]
    stock: Kernel,
    /// The kernel that the policy calls patch
    #[arg(long, value_name = "KERNEL", default_value = "patch", value_parser = kernel)]
    patch: Kernel,
    /// The new folder for evidence and matrix, inside the project root [default: nucleus-gate-run/N]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    reporting: Reporting,
}

impl Run {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let prepared = self.reporting.prepare(true)?;
        let Opened { backend, choice } = self.backend.open()?;
        let loaded = self.files.load_with(self.default_policy(choice), DEFAULT_RUN_MATRIX)?;
        self.reporting.spare_inputs(&loaded.policy, &loaded.matrix, loaded.root.path(), true)?;
        let subjects = self.subjects(&loaded)?;
        let folder = self.folder(&loaded)?;
        let written = capture(backend.as_ref(), &loaded, &subjects, &folder, started)?;
        let pins: Vec<_> = written.iter().map(super::backend::Written::pinned).collect();
        let name = format!("{}-here", *loaded.matrix.name);
        let text = repin(&loaded.matrix.source, &name, &pins)
            .ok_or_else(|| Failure::internal("the matrix cannot be written again"))?;
        let path = folder.join("matrix.kdl");
        write_atomic(&path, text.as_bytes(), Existing::Keep).map_err(|error| Failure::unwritten(&error))?;
        let matrix = read_matrix(&path)?;
        self.reporting.spare_inputs(&loaded.policy, &matrix, loaded.root.path(), true)?;
        super::screen::note(&format!("evidence and its matrix: {}", folder.display()));
        let context = gate::Context { root: &loaded.root, started, selection: None };
        let places = places(&loaded.root, loaded.policy.source.name(), matrix.source.name());
        let mut run = gate::run(&loaded.policy, &matrix, &context);
        run.freeze = freeze(&loaded.root, loaded.policy.source.sha256(), matrix.source.sha256(), &places)?;
        let evidence: u64 = written.iter().map(|bundle| bundle.bytes).sum();
        self.reporting.report(run, &places, &prepared.after(evidence + text.len() as u64))
    }

    fn default_policy(&self, choice: Choice) -> &'static str {
        let split = |kernel| matches!(kernel, Kernel::Stock | Kernel::Patch);
        match choice {
            Choice::Cpu => "cpu-model",
            Choice::Cuda if split(self.stock) && split(self.patch) => DEFAULT_POLICY,
            Choice::Cuda => "any-dispatch",
        }
    }

    /// A kernel for each subject of the policy.
    fn subjects(&self, loaded: &Loaded) -> Result<Vec<Captured>, Failure> {
        let named = loaded.policy.evidence.subjects.iter().map(|subject| {
            let kernel = match subject.value.as_str() {
                "stock" => self.stock,
                "patch" => self.patch,
                other => {
                    let message = format!("no kernel here is the policy's subject {other}");
                    let help = "capture its evidence elsewhere, and name it in a matrix";
                    return Err(Failure::invocation("cli::subject-without-kernel", message, help));
                }
            };
            Ok(Captured { name: subject.value.clone(), kernel })
        });
        named.collect()
    }

    /// The folder to write: as named, or the first free number.
    fn folder(&self, loaded: &Loaded) -> Result<PathBuf, Failure> {
        let taken = |path: &Path| path.symlink_metadata().is_ok();
        if let Some(out) = &self.out {
            if taken(out) {
                let message = format!("{} exists", out.display());
                return Err(Failure::invocation("cli::out-exists", message, "name a new folder with --out"));
            }
            return Ok(out.clone());
        }
        let runs = loaded.root.path().join(DEFAULT_OUT);
        (1..10_000u32).map(|number| runs.join(number.to_string())).find(|path| !taken(path)).ok_or_else(|| {
            let message = format!("{} is full", runs.display());
            Failure::invocation("cli::out-full", message, "remove old runs, or name a folder with --out")
        })
    }
}
