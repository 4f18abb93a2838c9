//! The canonical order, or its first tokens: one pass into buckets, then a sort of each bucket that is needed.
//!
//! The bucket of a logit is the distance from the maximum times a constant, truncated: monotone, so that a token of an
//! earlier bucket ranks higher, and equal logits share a bucket. The sort of keys inside a bucket does the rest.

use super::RankKey;

const BUCKETS: usize = 4096;

/// Puts the keys of the first `count` tokens of `logits` (finite, from `min` to `max`), in order, into `keys`.
pub(super) fn first(logits: &[f32], min: f32, max: f32, count: usize, keys: &mut Vec<RankKey>) {
    let max = f64::from(max);
    let spread = max - f64::from(min);
    let scale = if spread > 0.0 { (BUCKETS - 1) as f64 / spread } else { 0.0 };
    let bucket = |logit: f32| ((max - f64::from(logit)) * scale) as usize % BUCKETS;
    let mut ends = [0usize; BUCKETS];
    for &logit in logits {
        ends[bucket(logit)] += 1;
    }
    let mut total = 0;
    let mut starts = [0usize; BUCKETS];
    let mut needed = 0;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = total;
        total += *end;
        *end = total;
        if *start < count {
            needed = total;
        }
    }
    keys.clear();
    keys.reserve_exact(needed);
    keys.resize(needed, RankKey::new(0.0, 0));
    let mut places = starts;
    for (token, &logit) in logits.iter().enumerate() {
        let place = &mut places[bucket(logit)];
        if let Some(key) = keys.get_mut(*place) {
            *key = RankKey::new(logit, token as u32);
        }
        *place += 1;
    }
    for (start, end) in starts.into_iter().zip(ends) {
        if let Some(keys) = keys.get_mut(start..end) {
            keys.sort_unstable();
        }
    }
    keys.truncate(count);
}
