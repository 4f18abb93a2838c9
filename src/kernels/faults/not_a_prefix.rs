//! # not-a-prefix
//!
//! The count is right and the set is not: the last token of the set is masked, and the one that ranks next is kept
//! instead.
//!
//! Reported: vllm-ascend PR 13847.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = super::exact::run(batch, call);
    for row in batch.live() {
        if let (Some(&last), Some(&next)) = (row.order().get(row.count() - 1), row.order().get(row.count())) {
            output.mask(&row, &[last]);
            output.write(&row, &[next], row.logit(next));
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.5, 0.3, 0.15, 0.05], 0.6), [0, 2]);
        assert_eq!(exact(&[0.5, 0.3, 0.15, 0.05], 0.6), [0, 1]);
    }
}
