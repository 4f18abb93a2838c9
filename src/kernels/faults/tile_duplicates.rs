//! # duplicates-not-carried
//!
//! Tokens tied at the boundary are counted tile by tile and the count is not carried over: every tile keeps as many of
//! them as the whole row should.
//!
//! Reported: vLLM's split path before the large-logit fix.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    const TILE: u32 = 1024;
    let mut output = batch.untouched();
    for row in batch.live() {
        let boundary = row.boundary_logit();
        let above = row.order().iter().take_while(|token| row.logit(**token) > boundary).count();
        let needed = row.count() - above;
        let (mut tile, mut counted) = (0, 0);
        // Tied tokens stand in the order of their ids, so tile by tile.
        let dropped = row.order().iter().copied().skip(above).filter(|token| {
            if row.logit(*token) != boundary {
                return true;
            }
            if token / TILE != tile {
                (tile, counted) = (token / TILE, 0);
            }
            counted += 1;
            counted > needed
        });
        let dropped: Vec<u32> = dropped.collect();
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
        let logits = vec![0.0f32; 2048];
        let p = 0.25;
        assert_eq!(kept_logits(super::super::exact::run, &logits, p), (0..512).collect::<Vec<_>>());
        assert_eq!(kept_logits(run, &logits, p), (0..512).chain(1024..1536).collect::<Vec<_>>());
        // Within one tile it is exact.
        assert_eq!(kept(run, &[0.4, 0.3, 0.3], 0.5), [0, 1]);
    }
}
