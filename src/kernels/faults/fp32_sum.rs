//! # fp32-sum-never-reaches-p
//!
//! The running sum of probabilities is fp32. Near 1 small terms are rounded away, the sum stalls below p, the search
//! finds no boundary, and its index runs off the end of the row: every token is kept.
//!
//! Reported: TensorRT-LLM issue 19485.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| {
        let mut sum = 0.0f32;
        let reached = row.probabilities().position(|probability| {
            sum += probability;
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
        // Half the mass on one token, 2^-26 each on the rest: added one by one to 0.5 they vanish.
        let mut logits = vec![-26.0 * std::f32::consts::LN_2; 1 << 14];
        logits[0] = 0.0;
        let p = 1.0 - 2f32.powi(-13);
        let right = kept_logits(super::super::exact::run, &logits, p).len();
        assert!(right < logits.len(), "{right}");
        assert_eq!(kept_logits(run, &logits, p).len(), logits.len());
    }
}
