//! The CPU model as a backend.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde_json::{Map, Value};

use super::exact::{self, Outcome};
use super::split::{self, Variant};
use super::{lanes, sort};
use crate::inputs::Inputs;
use crate::kernels::{Backend, BackendError, Kernel, Launch, Machine, POISON, SourceFile, cut_row, settle_flagged};

/// Multiprocessors of the device that the recorded engine ran on: what rows are split for unless told otherwise.
pub const DEFAULT_MULTIPROCESSORS: u32 = 132;

macro_rules! source {
    ($path:literal) => {
        SourceFile { path: concat!("src/kernels/", $path), text: include_str!(concat!("../", $path)) }
    };
}

/// Runs the kernels' algorithms on the CPU, rows in parallel.
#[derive(Debug)]
pub struct CpuBackend {
    machine: Machine,
}

impl CpuBackend {
    /// A model of a device with that many multiprocessors (the split's slice count depends on it).
    #[must_use]
    pub fn new(multiprocessors: u32) -> Self {
        let runtime = BTreeMap::from([("nucleus-gate".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
        let device = format!("CPU ({})", std::env::consts::ARCH);
        Self { machine: Machine { device, capability: None, multiprocessors, runtime } }
    }

    fn launch(
        &self,
        kernel: Kernel,
        inputs: &Inputs,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Launch, BackendError> {
        let slices = split::slices(inputs.batch(), self.machine.multiprocessors as usize);
        let mut output = vec![f32::from_bits(POISON); inputs.logits().len()];
        let rows = inputs.logits().par_chunks_exact(inputs.vocab()).zip(output.par_chunks_exact_mut(inputs.vocab()));
        let outcomes: Result<Vec<Option<Outcome>>, BackendError> = rows
            .zip(inputs.p())
            .map(|((logits, output), &p)| if stop() { Err(BackendError::Stopped) } else { Ok((logits, output, p)) })
            .map(|row| row.map(|(logits, output, p)| mask_row(kernel, slices, logits, p, output)))
            .collect();
        let outcomes = outcomes?;
        let mut launch = Launch { output, dispatch: dispatch(kernel, inputs.batch(), slices) };
        if kernel == Kernel::Exact {
            let rows = |wanted: fn(&Outcome) -> bool| {
                let is = |(row, outcome): (usize, &Option<Outcome>)| outcome.filter(wanted).map(|_| row);
                outcomes.iter().enumerate().filter_map(is).collect::<Vec<usize>>()
            };
            settle_flagged(inputs, &rows(|outcome| matches!(outcome, Outcome::Flagged(_))), &mut launch);
            let rejected = rows(|outcome| matches!(outcome, Outcome::Rejected));
            launch.dispatch.insert("rejected_rows".to_owned(), rejected.into());
        }
        Ok(launch)
    }
}

fn mask_row(kernel: Kernel, slices: usize, logits: &[f32], p: f32, output: &mut [f32]) -> Option<Outcome> {
    match kernel {
        Kernel::Stock => split::mask_row(Variant::Stock, slices, logits, p, output),
        Kernel::Patch => split::mask_row(Variant::Patch, slices, logits, p, output),
        Kernel::Sort => sort::mask_row(logits, p, output),
        Kernel::Exact => {
            let outcome = exact::select(logits, p);
            match outcome {
                Outcome::Cut(cut) | Outcome::Flagged(cut) => cut_row(logits, cut, output),
                Outcome::Disabled | Outcome::Rejected => output.copy_from_slice(logits),
            }
            return Some(outcome);
        }
    }
    None
}

fn dispatch(kernel: Kernel, batch: usize, slices: usize) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("path", "cpu-model".into());
    set("kernels", vec![format!("cpu::{kernel}")].into());
    set("grid", vec![batch].into());
    set("lanes", lanes::LANES.into());
    if matches!(kernel, Kernel::Stock | Kernel::Patch) {
        set("splits", slices.into());
        set("rounds", split::ROUNDS.into());
        set("fanout", split::PIVOTS.into());
    }
    fields
}

impl Backend for CpuBackend {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    /// One: the rows of a run already keep every core busy.
    fn slots(&self) -> usize {
        1
    }

    fn sources(&self, kernel: Kernel) -> Vec<SourceFile> {
        let numerics = source!("numerics.rs");
        match kernel {
            Kernel::Stock | Kernel::Patch => vec![source!("cpu/lanes.rs"), source!("cpu/split.rs"), numerics],
            Kernel::Sort => vec![source!("cpu/lanes.rs"), source!("cpu/sort.rs"), numerics],
            Kernel::Exact => vec![source!("cpu/exact.rs"), numerics, source!("settle.rs")],
        }
    }

    fn run(
        &self,
        _slot: usize,
        inputs: &Inputs,
        kernels: &[Kernel],
        repeats: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<Launch>>, BackendError> {
        kernels.iter().map(|&kernel| (0..repeats).map(|_| self.launch(kernel, inputs, stop)).collect()).collect()
    }
}
