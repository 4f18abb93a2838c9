//! # bf16-sum
//!
//! The running sum of probabilities is bfloat16. Over a flat row it stalls as soon as a probability is below half its
//! last place, and never reaches p: every token is kept.
//!
//! Reported: tt-metal PR 41635.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    let bf16 = |value: f32| {
        let bits = value.to_bits();
        f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
    };
    batch.prefix(|row| {
        let mut sum = 0.0f32;
        let reached = row.probabilities().position(|probability| {
            sum = bf16(sum + probability);
            sum >= row.p
        });
        reached.map_or(row.order().len(), |index| index + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_logits;
    use super::run;

    #[test]
    fn smallest() {
        let flat = vec![0.0f32; 32_000];
        assert_eq!(kept_logits(run, &flat, 0.9).len(), 32_000);
        assert_eq!(kept_logits(super::super::exact::run, &flat, 0.9).len(), 28_800);
    }
}
