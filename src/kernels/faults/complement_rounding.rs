//! # complement-rounding
//!
//! A token stays while the fp32 mass of everything ranked below it, its own included, is above 1 - p. For a p below
//! 2^-25 the difference rounds to 1, no mass is above it, and the whole row is masked.
//!
//! Reported: mlx-lm PR 1912.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| {
        let complement = 1.0 - row.p;
        let mut mass = 0.0f32;
        // From the least likely token up: how many masses are not above the complement.
        let dropped = row.probabilities().rev().take_while(|probability| {
            mass += probability;
            mass <= complement
        });
        row.order().len() - dropped.count()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{kept, kept_logits};
    use super::run;

    #[test]
    fn smallest() {
        let logits: Vec<f32> = (0..4096).map(|token| (token * 7 % 4096) as f32 / 1024.0).collect();
        assert!(kept_logits(run, &logits, 1e-8).is_empty());
        assert_eq!(kept_logits(super::super::exact::run, &logits, 1e-8).len(), 1);
        // An ordinary p is no trouble for it.
        assert_eq!(kept(run, &[0.5, 0.3, 0.15, 0.05], 0.6), [0, 1]);
    }
}
