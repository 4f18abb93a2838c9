//! The sort reference in fp32: sort ascending, softmax, cumulative sum, mask the low tail, keep at least one token.

use super::lanes::{self, LANES};
use crate::kernels::numerics::exp32;

/// Masks one row of `logits` (\[vocab\]) into `output` (\[vocab\]). Equal logits are sorted by token id ascending, so that
/// of several at the cut the *lowest* ids are masked: not the canonical order.
pub fn mask_row(logits: &[f32], p: f32, output: &mut [f32]) {
    output.copy_from_slice(logits);
    if p >= 1.0 {
        return;
    }
    let mut keys: Vec<u64> = logits.iter().enumerate().map(|(token, &logit)| ascending(logit, token as u32)).collect();
    keys.sort_unstable();
    let max = keys.last().map_or(f32::NEG_INFINITY, |&key| logit_of(logits, key));
    let weights: Vec<f32> = keys.iter().map(|&key| exp32(logit_of(logits, key) - max)).collect();
    let normalizer = lanes::strided_sum(weights.iter().copied());
    let mut carry = 0.0f32;
    let last = keys.len().saturating_sub(1);
    for (tile, (keys, weights)) in keys.chunks(LANES).zip(weights.chunks(LANES)).enumerate() {
        let mut sums = [0.0f32; LANES];
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = weight / normalizer;
        }
        lanes::scan(&mut sums);
        for (index, (key, sum)) in keys.iter().zip(&sums).enumerate() {
            let masked = sum + carry <= 1.0 - p && tile * LANES + index != last;
            if let Some(output) = output.get_mut(*key as u32 as usize).filter(|_| masked) {
                *output = f32::NEG_INFINITY;
            }
        }
        carry += sums.last().copied().unwrap_or(0.0);
    }
}

/// (logit ascending, token ascending), -0.0 and 0.0 being the same logit.
fn ascending(logit: f32, token: u32) -> u64 {
    let bits = (logit + 0.0).to_bits();
    let monotone = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    u64::from(monotone) << 32 | u64::from(token)
}

fn logit_of(logits: &[f32], key: u64) -> f32 {
    logits.get(key as u32 as usize).copied().unwrap_or(f32::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_tail_goes_and_of_equal_logits_the_lowest_ids() {
        let mut output = [0.0; 4];
        mask_row(&[1.0, 1.0, -9.0, 1.0], 0.5, &mut output);
        assert_eq!(output, [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 1.0]);
        mask_row(&[0.0, 3.0, 3.0, 1.0], 1e-9, &mut output);
        assert_eq!(output, [f32::NEG_INFINITY, f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY]);
        mask_row(&[0.0, 3.0, 3.0, 1.0], 1.0, &mut output);
        assert_eq!(output, [0.0, 3.0, 3.0, 1.0]);
    }
}
