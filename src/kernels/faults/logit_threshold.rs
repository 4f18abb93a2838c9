//! # logit-threshold
//!
//! The pivot is found among probabilities and turned back into a logit threshold, log(pivot) + log(Z) + max, in fp32.
//! A very large maximum absorbs the first two terms: the threshold is the maximum itself, and `logit > threshold`
//! holds for no token.
//!
//! Reported: vLLM's split path before the large-logit fix.

use super::{Batch, Output, Row};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    let thresholds = |row: &Row<'_>| {
        let (last, next) = (row.weights().get(row.count() - 1), row.weights().get(row.count()));
        let pivot = match (last, next) {
            (Some(last), Some(next)) => ((last + next) / 2.0 / row.normalizer()) as f32,
            _ => 0.0,
        };
        (pivot.ln() + (row.normalizer() as f32).ln()) + row.max()
    };
    let mut output = batch.untouched();
    for row in batch.live() {
        let threshold = thresholds(&row);
        let dropped: Vec<u32> = row.order().iter().copied().filter(|token| row.logit(*token) <= threshold).collect();
        output.mask(&row, &dropped);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::{kept, kept_logits};
    use super::run;

    #[test]
    fn smallest() {
        let forced = |logit: f32| [0.0, 1.0, logit, -1.0];
        assert!(kept_logits(run, &forced(1e9), 0.9).is_empty());
        assert_eq!(kept_logits(super::super::exact::run, &forced(1e9), 0.9), [2]);
        assert_eq!(kept_logits(run, &forced(1e3), 0.9), [2]);
        assert_eq!(kept(run, &[0.5, 0.3, 0.15, 0.05], 0.6), [0, 1]);
    }
}
