//! Short ways to run a model kernel on one row.

use super::{Batch, Output};

type Run = fn(&Batch<'_>, u32) -> Output;

/// The tokens kept of a row given by its probabilities.
pub(super) fn kept(run: Run, probabilities: &[f32], p: f32) -> Vec<u32> {
    let logits: Vec<f32> = probabilities.iter().map(|probability| probability.ln()).collect();
    kept_logits(run, &logits, p)
}

/// The tokens that the exact kernel keeps.
pub(super) fn exact(probabilities: &[f32], p: f32) -> Vec<u32> {
    kept(super::exact::run, probabilities, p)
}

/// The tokens kept of a row given by its logits.
pub(super) fn kept_logits(run: Run, logits: &[f32], p: f32) -> Vec<u32> {
    kept_of(&run(&Batch::new(logits, logits.len(), &[p]), 0).logits)
}

/// The tokens that an output row keeps.
pub(super) fn kept_of(output: &[f32]) -> Vec<u32> {
    let tokens = output.iter().enumerate().filter(|(_, logit)| **logit != f32::NEG_INFINITY);
    tokens.map(|(token, _)| token as u32).collect()
}
