//! # p-rounded-to-bf16
//!
//! p is rounded to bfloat16, which has eight bits: 0.999 becomes 1, and top-p is switched off.
//!
//! Reported: vllm-ascend PR 2578.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| {
        let bits = row.p.to_bits();
        let rounded = f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000);
        if rounded >= 1.0 { row.order().len() } else { row.count_at(f64::from(rounded)) }
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{exact, kept};
    use super::run;

    #[test]
    fn smallest() {
        assert_eq!(kept(run, &[0.9987, 0.0005, 0.0005, 0.0003], 0.999), [0, 1, 2, 3]);
        assert_eq!(exact(&[0.9987, 0.0005, 0.0005, 0.0003], 0.999).len(), 2);
    }
}
