//! # one-token-too-many
//!
//! The token after the one that takes the mass to p is kept too: the comparison looks at the mass before the previous
//! token.
//!
//! Reported: transformers issue 18976.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| row.count() + 1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.3, 0.1, 0.1, 0.5], 0.79), [0, 1, 3]);
        assert_eq!(exact(&[0.3, 0.1, 0.1, 0.5], 0.79), [0, 3]);
    }
}
