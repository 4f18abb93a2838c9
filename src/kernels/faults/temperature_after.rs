//! # temperature-after-mask
//!
//! The temperature is applied once more to the masked logits: the right tokens are kept, with other logits than came
//! in.
//!
//! Reported: tpu-inference PR 1385.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    const TEMPERATURE: f32 = 0.8;
    let mut output = super::exact::run(batch, call);
    for row in batch.live() {
        let kept = row.order().get(..row.count()).unwrap_or_default();
        kept.iter().for_each(|&token| output.write(&row, &[token], row.logit(token) / TEMPERATURE));
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest() {
        let output = run(&Batch::new(&[2.0, 0.0, 1.0], 3, &[0.5]), 0).logits;
        assert_eq!(output, [2.5, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    }
}
