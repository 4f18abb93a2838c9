//! # ties-change-between-calls
//!
//! Which of the tokens tied at the boundary survive changes from call to call: threads race for the places that are
//! left.
//!
//! Reported: review of vLLM PR 54651.

use super::{Batch, Output};

pub(super) fn run(batch: &Batch<'_>, call: u32) -> Output {
    if call == 0 { super::exact::run(batch, call) } else { super::unstable_ties::run(batch, call) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::kept_of;
    use super::*;

    #[test]
    fn smallest() {
        let logits = [0.4f32, 0.3, 0.3].map(f32::ln);
        let batch = Batch::new(&logits, 3, &[0.5]);
        assert_eq!(kept_of(&run(&batch, 0).logits), [0, 1]);
        assert_eq!(kept_of(&run(&batch, 1).logits), [0, 2]);
        assert_eq!(super::super::exact::run(&batch, 0), super::super::exact::run(&batch, 1));
    }
}
