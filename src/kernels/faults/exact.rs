//! # exact
//!
//! The kernel without a fault: it keeps the oracle's set. No rule may accuse it.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| row.count())
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept;
    use super::run;

    #[test]
    fn every_smallest_input_of_the_zoo() {
        assert_eq!(kept(run, &[0.5, 0.3, 0.15, 0.05], 0.6), [0, 1]);
        assert_eq!(kept(run, &[0.3, 0.1, 0.1, 0.5], 0.79), [0, 3]);
        assert_eq!(kept(run, &[0.4, 0.3, 0.3], 0.5), [0, 1]);
        assert_eq!(kept(run, &[0.25, 0.25, 0.5], 1.0), [0, 1, 2]);
    }
}
