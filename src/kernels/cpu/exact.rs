//! The exact kernel: weights in fixed point, masses in integers, selection on the packed (logit, id) key.
//!
//! A weight is exp(logit - max) in units of 2^-62 (`numerics::weight`); a mass is an integer sum of weights, 80 bits
//! wide at 262,144 tokens, which no order of adding changes. The nucleus is the shortest prefix of the canonical order
//! whose mass is at least p times the whole mass, compared in integers.
//!
//! The bound. Against the binary64 contract (weights rounded once, sums rounded once, p * normalizer rounded once) a
//! prefix's mass is off by at most (2^-51 + 2^-53) of itself and half a unit a token, the target by as much of the whole
//! and one unit, and the contract's own three roundings cost 2^-53 each: together below 2^-49 of the whole mass plus one
//! unit a token plus one. A row whose boundary masses lie within that of the target is flagged. Where every weight is
//! exactly 1 or 0 all of these are 0, and so is the bound.

use crate::kernels::numerics::{weight, weight_is_exact};
use crate::oracle::RankKey;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Cut after this key.
    Cut(RankKey),
    /// Cut after this key, but the target lies within the error bound: to be settled (`settle`).
    Flagged(RankKey),
    /// Top-p is switched off (p >= 1): returned untouched.
    Disabled,
    /// A NaN or an infinite logit at the top, or a NaN p: returned untouched.
    Rejected,
}

/// Where to cut one row of `logits` (\[vocab\]).
#[must_use]
pub fn select(logits: &[f32], p: f32) -> Outcome {
    if p >= 1.0 {
        return Outcome::Disabled;
    }
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if p.is_nan() || !max.is_finite() || logits.iter().any(|logit| logit.is_nan()) {
        return Outcome::Rejected;
    }
    let mut keys: Vec<RankKey> =
        logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32)).collect();
    keys.sort_unstable();
    let whole: u128 = logits.iter().map(|&logit| u128::from(weight(logit, max))).sum();
    let target = target(p, whole);
    let exact = logits.iter().all(|&logit| weight_is_exact(logit, max));
    let bound = if exact { 0 } else { (whole >> 49) + logits.len() as u128 + 1 };
    let mut before = 0u128;
    for key in keys {
        let logit = logits.get(key.token() as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let mass = before + u128::from(weight(logit, max));
        if mass >= target {
            let near = mass - target < bound || (before > 0 && target - before <= bound);
            return if near { Outcome::Flagged(key) } else { Outcome::Cut(key) };
        }
        before = mass;
    }
    // The whole mass reaches the target, as p < 1.
    Outcome::Rejected
}

/// p times the whole mass, rounded up to a unit; at least one unit, so that a row keeps a token whatever p.
fn target(p: f32, whole: u128) -> u128 {
    if p <= 0.0 {
        return 1;
    }
    let (fraction, exponent) = (p.to_bits() & 0x7f_ffff, p.to_bits() >> 23);
    let (significand, shift) = if exponent == 0 { (fraction, 149) } else { (fraction | 0x80_0000, 150 - exponent) };
    if shift >= 128 {
        return 1;
    }
    let product = u128::from(significand) * whole;
    let floor = product >> shift;
    (if floor << shift == product { floor } else { floor + 1 }).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(logits: &[f32], p: f32) -> Outcome {
        select(logits, p)
    }

    #[test]
    fn exact_weights_are_decided_even_on_the_boundary() {
        assert_eq!(cut(&[0.0; 4], 0.5), Outcome::Cut(RankKey::new(0.0, 1)));
        assert_eq!(cut(&[0.0; 4], 0.500_000_06), Outcome::Cut(RankKey::new(0.0, 2)));
        assert_eq!(cut(&[0.0, -1e30, 0.0], 0.5), Outcome::Cut(RankKey::new(0.0, 0)));
    }

    #[test]
    fn a_boundary_inside_the_bound_is_flagged() {
        // Two equal halves and a faint third token: its 3 units move the integer target past the first half, while the
        // contract's binary64 sum does not see it. Which it is, is not for this arithmetic to say.
        assert_eq!(cut(&[0.0, 0.0, -42.0], 0.5), Outcome::Flagged(RankKey::new(0.0, 1)));
        assert_eq!(crate::kernels::settle(&[0.0, 0.0, -42.0], 0.5), Some(RankKey::new(0.0, 0)));
        assert_eq!(cut(&[0.0, 0.0, -20.0], 0.5), Outcome::Cut(RankKey::new(0.0, 1)));
    }

    #[test]
    fn what_is_no_nucleus_is_returned_untouched() {
        assert_eq!(cut(&[0.0, 1.0], 1.0), Outcome::Disabled);
        for logits in [[f32::NAN, 1.0], [f32::INFINITY, 1.0], [f32::NEG_INFINITY; 2]] {
            assert_eq!(cut(&logits, 0.5), Outcome::Rejected);
        }
        assert_eq!(cut(&[0.0, 1.0], f32::NAN), Outcome::Rejected);
    }

    #[test]
    fn faint_p_keeps_one_token() {
        for p in [f32::from_bits(1), f32::MIN_POSITIVE, 1e-9, 0.0] {
            assert!(matches!(cut(&[0.0, 2.0, 2.0], p), Outcome::Cut(key) | Outcome::Flagged(key) if key.token() == 1));
        }
    }
}
