//! # masked-with-zero
//!
//! Masked tokens are set to 0.0 instead of -inf. Over negative logits a masked token is then the most likely one.
//!
//! Reported: sglang-jax PR 1563.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = super::exact::run(batch, call);
    output.logits.iter_mut().filter(|logit| **logit == f32::NEG_INFINITY).for_each(|logit| *logit = 0.0);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest() {
        let logits = [-1.0, -2.0, -3.0];
        assert_eq!(run(&Batch::new(&logits, 3, &[0.1]), 0).logits, [-1.0, 0.0, 0.0]);
        let exact = super::super::exact::run(&Batch::new(&logits, 3, &[0.1]), 0).logits;
        assert_eq!(exact, [-1.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    }
}
