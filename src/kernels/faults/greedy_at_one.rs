//! # p-one-becomes-greedy
//!
//! p = 1 keeps the most likely token alone, where it should keep all.
//!
//! Reported: ChatRWKV PR 170.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = super::exact::run(batch, call);
    for row in batch.disabled() {
        output.mask(&row, row.order().get(1..).unwrap_or_default());
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.2, 0.5, 0.3], 1.0), [1]);
        assert_eq!(exact(&[0.2, 0.5, 0.3], 1.0), [0, 1, 2]);
    }
}
