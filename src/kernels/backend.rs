//! What a kernel is, and what runs it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::{cuda, settle};
use crate::digest::Sha256;
use crate::inputs::Inputs;
use crate::oracle::RankKey;

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// The split top-p with the mask that rebuilds a logit threshold.
    Stock,
    /// The split top-p with the mask that compares probabilities.
    Patch,
    /// The sort reference.
    Sort,
    /// Integer masses, radix selection, canonical ties.
    Exact,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stock, Self::Patch, Self::Sort, Self::Exact];

    /// The name that the command line takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Patch => "patch",
            Self::Sort => "sort",
            Self::Exact => "exact",
        }
    }

    /// The kernel of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// What it is, in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Stock => "split top-p, stock mask: logits against a rebuilt threshold",
            Self::Patch => "split top-p, patched mask: probabilities against the pivot",
            Self::Sort => "sort, fp32 softmax, cumulative low-tail mask",
            Self::Exact => "exact top-p: integer masses, radix selection on the packed key",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A source file, as it is built into this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path in the project.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl SourceFile {
    /// The digest of its bytes.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        Sha256::of(self.text.as_bytes())
    }
}

/// What ran the kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The device's name.
    pub device: String,
    /// Compute capability, major and minor, of a CUDA device.
    pub capability: Option<[u32; 2]>,
    /// Multiprocessors: the device's own, or those that the CPU model splits rows for.
    pub multiprocessors: u32,
    /// Versions of what the kernels ran under, by name.
    pub runtime: BTreeMap<String, String>,
}

/// One run of one kernel on a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The masked logits, fp32, \[batch, vocab\], row-major.
    pub output: Vec<f32>,
    /// How it ran: `path`, `kernels`, `grid` and what else the backend knows, as the evidence's dispatch states it.
    pub dispatch: Map<String, Value>,
}

/// Something that runs kernels.
pub trait Backend: Sync {
    /// What it runs them on.
    fn machine(&self) -> &Machine;

    /// The sources that a kernel is built from.
    fn sources(&self, kernel: Kernel) -> Vec<SourceFile>;

    /// How many runs may go on at once, each in its own slot: devices.
    fn slots(&self) -> usize;

    /// Runs every kernel `repeats` times over the very same input bytes, into outputs filled with a NaN pattern before
    /// each run. The result has a list a kernel, with a launch a repeat.
    ///
    /// # Errors
    /// [`BackendError`]; [`BackendError::Stopped`] once `stop` says true, which is asked between runs.
    fn run(
        &self,
        slot: usize,
        inputs: &Inputs,
        kernels: &[Kernel],
        repeats: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<Launch>>, BackendError>;
}

/// Why a backend gave no output.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The caller asked to stop.
    #[error("stopped before the kernels had finished")]
    Stopped,
    /// CUDA.
    #[error(transparent)]
    Cuda(#[from] cuda::CudaError),
}

impl BackendError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Stopped => "kernel-stopped",
            Self::Cuda(error) => error.code(),
        }
    }
}

/// The bits that outputs are filled with before a run: a NaN that no kernel computes.
pub const POISON: u32 = 0x7fc0_dead;

/// Masks a row after its cut: the logit at or above it, -inf below.
pub(super) fn cut_row(logits: &[f32], cut: RankKey, output: &mut [f32]) {
    for (token, (output, &logit)) in output.iter_mut().zip(logits).enumerate() {
        *output = if RankKey::new(logit, token as u32) <= cut { logit } else { f32::NEG_INFINITY };
    }
}

/// Settles the rows that the exact kernel flagged, and states them in the dispatch.
pub(super) fn settle_flagged(inputs: &Inputs, flagged: &[usize], launch: &mut Launch) {
    for &row in flagged {
        let output = launch.output.chunks_exact_mut(inputs.vocab()).nth(row);
        let (Some(logits), Some(&p), Some(output)) = (inputs.row(row), inputs.p().get(row), output) else { continue };
        if let Some(cut) = settle(logits, p) {
            cut_row(logits, cut, output);
        }
    }
    launch.dispatch.insert("flagged_rows".to_owned(), flagged.into());
}
