//! # row-stride-ignored
//!
//! Row r is addressed at r * vocab although the logits are a view of padded storage, whose rows are a multiple of 64
//! apart: every row but the first is read from, and written to, the wrong place.
//!
//! Reported: vLLM issue 42684.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    let (vocab, stride) = (batch.vocab(), batch.vocab().next_multiple_of(64));
    if vocab == stride {
        return super::exact::run(batch, call);
    }
    let mut storage = vec![0.0f32; stride * batch.len()];
    for (index, padded) in storage.chunks_exact_mut(stride).enumerate() {
        padded.iter_mut().zip(batch.row(index)).for_each(|(slot, logit)| *slot = *logit);
    }
    // What the kernel takes for the rows, masked exactly.
    let misread: Vec<f32> = storage.iter().copied().take(vocab * batch.len()).collect();
    let masked = super::exact::run(&Batch::new(&misread, vocab, &batch.p()), call);
    storage.iter_mut().zip(masked.logits).for_each(|(slot, logit)| *slot = logit);
    let rows = storage.chunks_exact(stride).flat_map(|padded| padded.iter().take(vocab).copied());
    Output { logits: rows.collect(), path: None }
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_of;
    use super::*;

    #[test]
    fn smallest() {
        // 100 tokens in rows 128 apart; each row's mass lies on one token.
        let rows: Vec<f32> = [5, 50].iter().flat_map(|top| (0..100).map(move |t| if t == *top { 9.0 } else { -9.0 })).collect();
        let output = |run: fn(&Batch<'_>, u32) -> Output| run(&Batch::new(&rows, 100, &[0.9, 0.9]), 0);
        let second = |output: &Output| kept_of(&output.logits[100..]);
        assert_eq!(second(&output(super::super::exact::run)), [50]);
        assert_ne!(second(&output(run)), [50]);
        // 128 tokens need no padding.
        let even: Vec<f32> = (0..256).map(|t| if t % 128 == 7 { 9.0 } else { -9.0 }).collect();
        let batch = Batch::new(&even, 128, &[0.9, 0.9]);
        assert_eq!(run(&batch, 0), super::super::exact::run(&batch, 0));
    }
}
