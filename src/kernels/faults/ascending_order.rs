//! # ascending-order
//!
//! Logits sorted ascending are used as if they were descending: mass is gathered from the least likely token up.
//!
//! Reported: vllm-ascend PR 4860.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    let mut output = batch.untouched();
    for row in batch.live() {
        let target = f64::from(row.p) * row.normalizer();
        let mut mass = 0.0;
        let kept = row.weights().iter().rev().take_while(|weight| {
            let before = mass;
            mass += **weight;
            before < target
        });
        let dropped = row.order().len() - kept.count();
        output.mask(&row, row.order().get(..dropped).unwrap_or_default());
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_logits;
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept_logits(run, &[3.0, 2.0, 1.0], 0.2), [1, 2]);
        assert_eq!(kept_logits(super::super::exact::run, &[3.0, 2.0, 1.0], 0.2), [0]);
        assert_eq!(kept_logits(super::super::exact::run, &[3.0, 2.0, 1.0], 0.5), [0]);
    }
}
