//! # nan-contaminates-neighbour
//!
//! Rows share a reduction: where a row holds NaN, the next row comes out as NaN too.
//!
//! Reported: flashinfer issue 2402.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = super::exact::run(batch, call);
    for row in 1..batch.len() {
        if batch.row(row - 1).iter().any(|logit| logit.is_nan())
            && let Some(neighbour) = output.row_mut(row, batch.vocab())
        {
            neighbour.fill(f32::NAN);
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_of;
    use super::*;

    #[test]
    fn smallest() {
        let rows = [f32::NAN, 0.0, 1.0, 3.0, 2.0, 1.0];
        let batch = Batch::new(&rows, 3, &[0.5, 0.5]);
        assert!(run(&batch, 0).logits[3..].iter().all(|logit| logit.is_nan()));
        assert_eq!(kept_of(&super::super::exact::run(&batch, 0).logits[3..]), [0]);
        // Without a NaN it is exact.
        let rows = [0.0, 0.0, 1.0, 3.0, 2.0, 1.0];
        let batch = Batch::new(&rows, 3, &[0.5, 0.5]);
        assert_eq!(run(&batch, 0), super::super::exact::run(&batch, 0));
    }
}
