//! # all-boundary-ties-kept
//!
//! Every token whose logit equals the boundary's is kept, although the mass reaches p before the last of them.
//!
//! Reported: flashinfer PR 3774.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.filter(|row, token| row.logit(token) >= row.boundary_logit())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.4, 0.3, 0.3], 0.5), [0, 1, 2]);
        assert_eq!(exact(&[0.4, 0.3, 0.3], 0.5), [0, 1]);
    }
}
