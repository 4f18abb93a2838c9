//! # unstable-tie-order
//!
//! Equal logits are ordered by an unstable sort: here the highest id comes first, so that the wrong ones of the tokens
//! tied at the boundary are kept.
//!
//! Reported: sglang issue 4876, review of vLLM PR 54651.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    let mut output = batch.untouched();
    for row in batch.live() {
        let boundary = row.boundary_logit();
        let above = row.order().iter().take_while(|token| row.logit(**token) > boundary).count();
        let tied: Vec<u32> =
            row.order().iter().copied().skip(above).take_while(|token| row.logit(*token) == boundary).collect();
        let needed = row.count() - above;
        output.mask(&row, row.order().get(above..).unwrap_or_default());
        let kept = tied.iter().rev().take(needed);
        kept.for_each(|&token| output.write(&row, &[token], row.logit(token)));
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.4, 0.3, 0.3], 0.5), [0, 2]);
        assert_eq!(exact(&[0.4, 0.3, 0.3], 0.5), [0, 1]);
    }
}
