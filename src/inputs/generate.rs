//! Generator v1: integer arithmetic and single binary64 operations only, no libm, so that any language reproduces it.

use std::collections::HashSet;

use rand_core::RngCore as _;
use rand_pcg::Lcg128Xsl64;
use rayon::prelude::*;

use super::{Inputs, InputsError, check_size};
use crate::digest::Sha256;

/// How logits are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// z * sigma; z is Irwin-Hall of twelve uniform 32-bit integers: mean 0, variance 1.
    Normal,
    /// sigma * (z + z^3 / 8), the same z.
    Heavy,
    /// u * sigma, u uniform in [0, 1) in steps of 2^-24.
    Uniform,
}

/// What is done to a generated logit last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Nothing.
    None,
    /// Rounded to bfloat16 (nearest, ties to even) and widened again.
    Bf16,
}

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// How logits are distributed.
    pub distribution: Distribution,
    /// Names the streams, one a row.
    pub seed: u64,
    /// Tokens a row.
    pub vocab: u32,
    /// The scale.
    pub sigma: f64,
    /// What is done last.
    pub round: Rounding,
}

/// One logit overwritten after generating.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Force {
    /// The row.
    pub row: u32,
    /// The token.
    pub token: u32,
    /// Its logit.
    pub logit: f32,
}

/// The inputs of `recipe` with a row a value of `p`, and `forces` written over them. Rows in parallel; a row depends on
/// the recipe and its number alone.
///
/// # Errors
/// [`InputsError::Empty`], [`InputsError::TooLarge`], [`InputsError::Sigma`], [`InputsError::ForceOutside`] or
/// [`InputsError::ForceTwice`].
pub fn generate(recipe: &Recipe, p: &[f32], forces: &[Force]) -> Result<Inputs, InputsError> {
    let vocab = recipe.vocab as usize;
    check_size(vocab, p.len())?;
    if !recipe.sigma.is_finite() {
        return Err(InputsError::Sigma { sigma: recipe.sigma });
    }
    let mut logits = vec![0.0; vocab * p.len()];
    logits.par_chunks_exact_mut(vocab).enumerate().for_each(|(row, logits)| fill(recipe, row, logits));

    let mut seen = HashSet::new();
    for &Force { row, token, logit } in forces {
        let slot = logits.chunks_exact_mut(vocab).nth(row as usize).and_then(|row| row.get_mut(token as usize));
        *slot.ok_or(InputsError::ForceOutside { row, token, batch: p.len(), vocab })? = logit;
        if !seen.insert((row, token)) {
            return Err(InputsError::ForceTwice { row, token });
        }
    }
    Inputs::new(vocab, logits, p.to_vec())
}

fn fill(recipe: &Recipe, row: usize, logits: &mut [f32]) {
    let mut draws = stream(recipe.seed, row);
    let sigma = recipe.sigma;
    match recipe.distribution {
        Distribution::Normal => logits.fill_with(|| (normal(&mut draws) * sigma) as f32),
        Distribution::Heavy => logits.fill_with(|| {
            let z = normal(&mut draws);
            (sigma * (z + 0.125 * ((z * z) * z))) as f32
        }),
        Distribution::Uniform => logits.fill_with(|| {
            let u = (draws.next_u64() >> 40) as f64 * 2f64.powi(-24);
            (u * sigma) as f32
        }),
    }
    match recipe.round {
        Rounding::None => {}
        Rounding::Bf16 => logits.iter_mut().for_each(|logit| *logit = bf16(*logit)),
    }
}

/// The draws of one row: PCG64 (XSL-RR 128/64) from the digest of seed and row.
pub(super) fn stream(seed: u64, row: usize) -> Lcg128Xsl64 {
    /// The inverse, mod 2^128, of the generator's multiplier 0x2360ED051FC65DA44385DF649FCCF645.
    const INVERSE: u128 = 0x07dd_a22b_9397_9860_98ab_c8b0_716e_ac8d;
    let digest = Sha256::of(format!("nucleus-gate/inputs/v1|{seed}|{row}").as_bytes());
    let half = |half: &[u8]| half.iter().rev().fold(0u128, |value, &byte| value << 8 | u128::from(byte));
    let (state, increment) = digest.as_bytes().split_at(16);
    let (state, increment) = (half(state), half(increment) | 1);
    // The constructor adds the increment and steps once; this state is the one that it turns into `state`.
    let before = state.wrapping_sub(increment).wrapping_mul(INVERSE).wrapping_sub(increment);
    Lcg128Xsl64::new(before, increment >> 1)
}

/// Mean 0, variance 1: the sum of twelve 32-bit halves, centred, an exact integer below 2^36, times 2^-32.
fn normal(draws: &mut Lcg128Xsl64) -> f64 {
    const CENTRE: i64 = 6 * ((1 << 32) - 1);
    let sum: u64 = (0..6).map(|_| draws.next_u64()).map(|draw| (draw >> 32) + (draw & 0xffff_ffff)).sum();
    (sum as i64 - CENTRE) as f64 * 2f64.powi(-32)
}

/// The nearest bfloat16, ties to even, as fp32. Finite in, so no NaN to keep; what overflows becomes infinite.
fn bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    let odd = bits >> 16 & 1;
    f32::from_bits(bits.wrapping_add(0x7fff + odd) & 0xffff_0000)
}
