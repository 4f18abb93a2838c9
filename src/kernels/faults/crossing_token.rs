//! # crossing-token-dropped
//!
//! The token that takes the mass to p is dropped: the mass *including* a token must not exceed p for it to stay. At
//! least one token is kept.
//!
//! Reported: flashinfer issue 2202, llama.cpp PR 1953, thu-nics/C2C PR 21.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| {
        let target = f64::from(row.p) * row.normalizer();
        let mut mass = 0.0;
        let stays = row.weights().iter().take_while(|weight| {
            mass += **weight;
            mass <= target
        });
        stays.count().max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.5, 0.3, 0.15, 0.05], 0.6), [0]);
        assert_eq!(exact(&[0.5, 0.3, 0.15, 0.05], 0.6), [0, 1]);
    }
}
