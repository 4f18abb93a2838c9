//! Mutations of a right answer: each is the exact kernel with one deliberate change, small enough that one rule is about
//! it. A rule that neither a mutation nor a fault of the zoo can trip proves nothing.

use super::faults::{Batch, EXACT, Model, Output};

/// Every mutation.
pub const MUTATIONS: &[Model] = &[
    Model::new("drop-crossing-token", drop_crossing_token, "//! The token that takes the mass to p is dropped.\n"),
    Model::new("hole", hole, "//! The token after the next one is kept, the next one is not.\n"),
    Model::new(
        "swap-tied",
        swap_tied,
        "//! The last kept token and the first dropped one, equal in logit, change places.\n",
    ),
    Model::new("over-keep-by-four", over_keep_by_four, "//! Four tokens more are kept.\n"),
    Model::new("nan", nan, "//! The most likely token's output is NaN.\n"),
    Model::new("mask-everything", mask_everything, "//! Every token is masked.\n"),
    Model::new(
        "touch-kept-logit",
        touch_kept_logit,
        "//! The most likely token's logit is the next fp32 value above.\n",
    ),
    Model::new("mask-with-lowest", mask_with_lowest, "//! Masked tokens are set to the lowest finite fp32 value.\n"),
    Model::new("other-path", other_path, "//! The right answer, from another dispatch path.\n"),
];

fn drop_crossing_token(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| row.count() - 1)
}

fn hole(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = (EXACT.run)(batch, call);
    for row in batch.live() {
        if let Some(&token) = row.order().get(row.count() + 1) {
            output.write(&row, &[token], row.logit(token));
        }
    }
    output
}

fn swap_tied(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = (EXACT.run)(batch, call);
    for row in batch.live() {
        let (last, next) = (row.order().get(row.count() - 1), row.order().get(row.count()));
        if let (Some(&last), Some(&next)) = (last, next)
            && row.logit(last) == row.logit(next)
        {
            output.mask(&row, &[last]);
            output.write(&row, &[next], row.logit(next));
        }
    }
    output
}

fn over_keep_by_four(batch: &Batch<'_>, _call: u32) -> Output {
    batch.prefix(|row| row.count() + 4)
}

fn nan(batch: &Batch<'_>, call: u32) -> Output {
    first_token(batch, call, |_| f32::NAN)
}

fn touch_kept_logit(batch: &Batch<'_>, call: u32) -> Output {
    first_token(batch, call, f32::next_up)
}

fn first_token(batch: &Batch<'_>, call: u32, value: impl Fn(f32) -> f32) -> Output {
    let mut output = (EXACT.run)(batch, call);
    for row in batch.live().chain(batch.disabled()) {
        let first = row.order().get(..1).unwrap_or_default();
        output.write(&row, first, value(row.max()));
    }
    output
}

fn mask_everything(batch: &Batch<'_>, _call: u32) -> Output {
    let mut output = batch.untouched();
    for row in batch.live().chain(batch.disabled()) {
        output.mask(&row, row.order());
    }
    output
}

fn mask_with_lowest(batch: &Batch<'_>, call: u32) -> Output {
    let mut output = (EXACT.run)(batch, call);
    output.logits.iter_mut().filter(|logit| **logit == f32::NEG_INFINITY).for_each(|logit| *logit = f32::MIN);
    output
}

fn other_path(batch: &Batch<'_>, call: u32) -> Output {
    Output { path: Some("other-path"), ..(EXACT.run)(batch, call) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six tokens, the third and fourth tied; at p = 0.7 three are kept.
    const LOGITS: [f32; 6] = [3.0, 2.5, 2.0, 2.0, 1.0, 0.0];

    fn kept(name: &str) -> Vec<usize> {
        let output = output(name);
        (0..LOGITS.len()).filter(|token| output.logits[*token] != f32::NEG_INFINITY).collect()
    }

    fn output(name: &str) -> Output {
        let mutation = MUTATIONS.iter().find(|mutation| mutation.name == name).unwrap();
        (mutation.run)(&Batch::new(&LOGITS, LOGITS.len(), &[0.7]), 0)
    }

    #[test]
    fn each_changes_one_thing() {
        let exact = (EXACT.run)(&Batch::new(&LOGITS, LOGITS.len(), &[0.7]), 0);
        assert_eq!(exact.logits.iter().filter(|logit| logit.is_finite()).count(), 3);
        assert_eq!(kept("drop-crossing-token"), [0, 1]);
        assert_eq!(kept("hole"), [0, 1, 2, 4]);
        assert_eq!(kept("swap-tied"), [0, 1, 3]);
        assert_eq!(kept("over-keep-by-four"), [0, 1, 2, 3, 4, 5]);
        assert!(output("nan").logits[0].is_nan());
        assert!(kept("mask-everything").is_empty());
        assert_eq!(output("touch-kept-logit").logits[0], 3.0f32.next_up());
        assert_eq!(output("mask-with-lowest").logits[5], f32::MIN);
        assert_eq!(output("other-path").logits, exact.logits);
        assert_eq!(output("other-path").path, Some("other-path"));
    }
}
