//! # absolute-tie-band
//!
//! Tokens whose probability lies within a fixed distance of the boundary's count as tied with it and are kept. In a
//! large vocabulary whole runs of distinct probabilities lie within any such distance.
//!
//! Reported: review of vLLM PR 25824.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    const BAND: f64 = 1e-7;
    batch.filter(|row, token| {
        let probability = |logit: f32| (f64::from(logit) - f64::from(row.max())).exp() / row.normalizer();
        probability(row.logit(token)) >= probability(row.boundary_logit()) - BAND
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_logits;
    use super::run;

    #[test]
    fn smallest() {
        let next = 1.0f32.next_down();
        assert_eq!(kept_logits(run, &[1.0, next], 0.4), [0, 1]);
        assert_eq!(kept_logits(super::super::exact::run, &[1.0, next], 0.4), [0]);
    }
}
