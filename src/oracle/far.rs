//! Tokens so light that they matter for nothing but the normalizer's last bit: their mass need not be exact.
//!
//! In a peaked row nearly all tokens lie far below the maximum. Two vectors of them at a time get a short exponential
//! that is not correctly rounded, and a sum that is not exact; both have proven bounds. If the normalizer rounds to one
//! number for every mass within the bounds, that is its exactly rounded value. Otherwise the row is done again without
//! this.
//!
//! # Why no far token is near the boundary
//!
//! A far token weighs less than e^-5/n. The boundary token weighs more than (1 - p) * Z / n (see `bucket.rs`), and Z >=
//! 1; so for p <= 1 - 2^-7, where 1 - p is more than e^-5, it is not far, nor is any token before it. Where a far token
//! does come in question after all, as the next one, its logit alone counts. The stored weight of a far token is 0.
//!
//! # The bounds
//!
//! - The exponential (`rough` in `exp.rs`) is within 2^-51 of itself. Differences below -700 are taken for -700. Their
//!   true weights may be 0, so that the mass may be too large by n * 2^-1009: it decides where the rest hits a tie.
//! - A block's mass is the sum of 16 lanes of at most 64 numbers each, none negative: at most 78 roundings on any path,
//!   hence within 78 * 2^-53 * 1.01 of itself.
//! - Together that is below 2^-46 of the block's mass, and n * 2^-1009. The doubt is 2^-45 of all blocks' masses, whose
//!   own sum, in binary64, is off by less than half of itself, and n * 2^-1009. Blocks' masses are added to the exact
//!   sum exactly.

use super::block::{TOKENS, VECTORS, Weights};
use super::exp;
use super::simd::{Simd, both};
use super::sum::ExactSum;

/// What is far in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Far {
    /// Smaller differences from the maximum are far.
    below: f64,
}

/// A block's vectors that are not far.
pub(super) struct Near {
    vectors: Weights,
    len: usize,
}

impl Near {
    pub(super) const fn new() -> Self {
        Self { vectors: [[0.0; 8]; VECTORS], len: 0 }
    }

    /// The vectors, and zeros up to a multiple of four.
    pub(super) fn padded(&mut self) -> &[[f64; 8]] {
        let end = self.len.next_multiple_of(4);
        for vector in self.vectors.iter_mut().take(end).skip(self.len) {
            *vector = [0.0; 8];
        }
        self.vectors.get(..end).unwrap_or_default()
    }
}

impl Far {
    /// What is far, if that is most of the row, by a sample; and if it is beyond the boundary.
    pub(super) fn of(logits: &[f32], max: f64, p: f64) -> Option<Self> {
        const SAMPLE: usize = 64;
        if 1.0 - p < 1.0 / 128.0 {
            return None;
        }
        // ln(e^-5 / n).
        let below = -(logits.len() as f64).ln() - 5.0;
        let stride = logits.len() / SAMPLE;
        let far = logits.iter().step_by(stride.max(1)).filter(|logit| f64::from(**logit) - max < below).count();
        (stride > 0 && far * 16 >= SAMPLE * 15).then_some(Self { below })
    }

    /// Whether a difference from the maximum is far.
    pub(super) fn has(self, difference: f64) -> bool {
        difference < self.below
    }

    /// The weights of a block, 0 for what is far; `near` has the others too. Returns the mass of what is far.
    #[inline(always)]
    pub(super) fn weigh<S: Simd>(
        self,
        simd: S,
        logits: &[f32; TOKENS],
        max: f64,
        weights: &mut Weights,
        near: &mut Near,
    ) -> f64 {
        let (below, maximum, least) = (simd.splat(self.below), simd.splat(max), simd.splat(-700.0));
        let mut mass = [simd.splat(0.0); 2];
        near.len = 0;
        let pairs = logits.as_chunks::<8>().0.as_chunks::<2>().0;
        for (logits, weights) in pairs.iter().zip(weights.as_chunks_mut::<2>().0) {
            let differences = both!(i => simd.sub(simd.widen(&logits[i]), maximum));
            if simd.at_least(simd.max(differences[0], differences[1]), below) == 0 {
                let rough = simd.exp_rough(both!(i => simd.max(differences[i], least)));
                mass = both!(i => simd.add(mass[i], rough[i]));
                *weights = [[0.0; 8]; 2];
            } else {
                exp::weigh_pair(simd, logits, max, weights);
                if let Some(vectors) = near.vectors.get_mut(near.len..near.len + 2) {
                    vectors.copy_from_slice(weights);
                }
                near.len += 2;
            }
        }
        let mut lanes = [[0.0; 8]; 2];
        simd.store(&mut lanes[0], mass[0]);
        simd.store(&mut lanes[1], mass[1]);
        lanes.as_flattened().iter().sum()
    }
}

/// The rounded sum of a row of `tokens`, if it is the same for every far mass within the doubt about `mass`, which `sum`
/// holds.
pub(super) fn rounded(sum: &ExactSum, mass: f64, tokens: usize) -> Option<f64> {
    // 2^-1009: the pattern of a number is its exponent plus 1023, above 52 bits of fraction.
    let clamped = tokens as f64 * f64::from_bits((1023 - 1009) << 52);
    let doubt = mass / (1u64 << 45) as f64 + clamped;
    let (mut least, mut most) = (*sum, *sum);
    least.subtract_one(doubt);
    most.add_one(doubt);
    let (least, most) = (least.rounded(), most.rounded());
    (least == most).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_where_the_doubt_leaves_one_number() {
        let mut sum = ExactSum::ZERO;
        sum.add_one(1.0);
        sum.add_one(0.75);
        assert_eq!(rounded(&sum, 0.0, 1000), Some(1.75));
        // The doubt is 2^-52, an ulp of 1.75; with a quarter of that, 1.75 is all there is.
        assert_eq!(rounded(&sum, 1.0 / 128.0, 1000), None);
        assert_eq!(rounded(&sum, 1.0 / 512.0, 1000), Some(1.75));
        // Half an ulp more is a tie, which the least of doubts leaves open: masked tokens weigh 0, not e^-700.
        sum.add_one(f64::EPSILON / 2.0);
        assert_eq!(rounded(&sum, 0.0, 1000), None);
        let masked = 1000.0 * core_math::exp(-700.0);
        sum.add_one(masked);
        assert_eq!(rounded(&sum, masked, 1000), None);
        sum.add_one(1e-100);
        assert_eq!(rounded(&sum, masked + 1e-100, 1000), Some(1.75f64.next_up()));
    }

    #[test]
    fn far_is_most_of_a_peaked_row_and_none_of_a_flat_one() {
        let mut row = vec![-30.0f32; 1000];
        row[7] = 0.0;
        assert!(Far::of(&row, 0.0, 0.9).is_some_and(|far| far.below < -11.9 && far.below > -12.0));
        assert!(Far::of(&row, 0.0, 0.999).is_none(), "the boundary may be among them");
        assert!(Far::of(&row[..63], 0.0, 0.9).is_none(), "too few for a sample");
        assert!(Far::of(&vec![-11.0; 1000], 0.0, 0.9).is_none());
    }
}
