//! # dispatch-by-batch-size
//!
//! Above 64 rows another path runs, and keeps another set: here one token more. The same row gives different outputs
//! in different company.
//!
//! Reported: vLLM: 64 rows against 65.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    if batch.len() <= 64 {
        return super::exact::run(batch, call);
    }
    Output { path: Some("large-batch"), ..super::one_too_many::run(batch, call) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_of;
    use super::*;

    #[test]
    fn smallest() {
        let logits = |rows: usize| [0.5f32, 0.3, 0.15, 0.05].map(f32::ln).repeat(rows);
        let (small, large) = (logits(64), logits(65));
        let p = [0.6; 65];
        let small = run(&Batch::new(&small, 4, &p[..64]), 0);
        let large = run(&Batch::new(&large, 4, &p), 0);
        assert_eq!((kept_of(&small.logits[..4]), small.path), (vec![0, 1], None));
        assert_eq!((kept_of(&large.logits[..4]), large.path), (vec![0, 1, 2], Some("large-batch")));
    }
}
