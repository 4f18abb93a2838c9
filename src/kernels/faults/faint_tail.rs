//! # p-one-zeroes-a-faint-tail
//!
//! p = 1 is not taken as "off": tokens are dropped once the fp32 running sum of probabilities has reached 1, which it
//! does before a faint tail.
//!
//! Reported: flashinfer issue 708.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = super::exact::run(batch, call);
    for row in batch.disabled() {
        let mut sum = 0.0f32;
        let reached = row.probabilities().position(|probability| {
            sum += probability;
            sum >= 1.0
        });
        let count = reached.map_or(row.order().len(), |index| index + 1);
        output.mask(&row, row.order().get(count..).unwrap_or_default());
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        let mut probabilities = vec![1e-9f32; 21];
        probabilities[0] = 1.0;
        assert_eq!(kept(run, &probabilities, 1.0), [0]);
        assert_eq!(exact(&probabilities, 1.0).len(), 21);
    }
}
