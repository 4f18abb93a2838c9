//! # partial-tile-skipped
//!
//! The last tile of a row whose length is not a multiple of the tile is never looked at: its tokens are masked
//! whatever their logits are.
//!
//! Reported: large-block reports, vLLM PR 44470.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    const TILE: usize = 1024;
    let mut output = super::exact::run(batch, call);
    let whole = batch.vocab() / TILE * TILE;
    for row in batch.live().filter(|_| whole > 0) {
        let tail: Vec<u32> = (whole as u32..batch.vocab() as u32).collect();
        output.mask(&row, &tail);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_logits;
    use super::run;

    #[test]
    fn smallest() {
        let mut logits = vec![0.0f32; 1025];
        logits[1024] = 20.0;
        assert!(kept_logits(run, &logits, 0.5).is_empty());
        assert_eq!(kept_logits(super::super::exact::run, &logits, 0.5), [1024]);
        logits.truncate(1024);
        assert_eq!(kept_logits(run, &logits, 0.5).len(), 512);
    }
}
