//! Settles a row that the exact kernel flagged, on the host: correctly rounded binary64 weights, exact integer sums of
//! them (units of 2^-1074, so that nothing is lost), each sum rounded once to binary64, as the contract words it. Slow,
//! and rarely called: a flagged row's target lies within 2^-49 of a boundary mass.

use crate::oracle::RankKey;

/// The last key kept of a row of finite `logits` (\[vocab\]) at `p` in (0, 1).
#[must_use]
pub fn settle(logits: &[f32], p: f32) -> Option<RankKey> {
    let mut keys: Vec<RankKey> =
        logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32)).collect();
    keys.sort_unstable();
    let logit = |key: &RankKey| f64::from(logits.get(key.token() as usize).copied().unwrap_or(f32::NEG_INFINITY));
    let max = logit(keys.first()?);
    let weight = |key: &RankKey| core_math::exp(logit(key) - max);
    let mut whole = Exact::default();
    keys.iter().for_each(|key| whole.add(weight(key)));
    let target = f64::from(p) * whole.rounded();
    let mut prefix = Exact::default();
    keys.iter().copied().find(|key| {
        prefix.add(weight(key));
        prefix.rounded() >= target
    })
}

/// 1,152 bits: the sum of 2^18 binary64 numbers in [0, 1], in units of 2^-1074.
const LIMBS: usize = 18;

/// An exact sum of binary64 numbers in [0, 1].
#[derive(Default)]
struct Exact([u64; LIMBS]);

impl Exact {
    fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let mantissa = bits & ((1 << 52) - 1) | u64::from(exponent != 0) << 52;
        let shift = exponent.max(1) - 1;
        let mut carry = u128::from(mantissa) << (shift % 64);
        for limb in self.0.iter_mut().skip(shift / 64) {
            if carry == 0 {
                break;
            }
            let sum = u128::from(*limb) + (carry & u128::from(u64::MAX));
            *limb = sum as u64;
            carry = (carry >> 64) + (sum >> 64);
        }
    }

    /// The nearest binary64 number, ties to even.
    fn rounded(&self) -> f64 {
        let Some(top) = self.0.iter().rposition(|&limb| limb != 0) else { return 0.0 };
        let limb = |index: usize| self.0.get(index).copied().unwrap_or(0);
        let high_bit = top * 64 + 63 - limb(top).leading_zeros() as usize;
        // 53 bits from the highest one down.
        let Some(low_bit) = high_bit.checked_sub(52) else {
            return limb(0) as f64 * f64::from_bits(1);
        };
        let window = u128::from(limb(low_bit / 64)) | u128::from(limb(low_bit / 64 + 1)) << 64;
        let kept = (window >> (low_bit % 64)) as u64 & ((1 << 53) - 1);
        let bit = |index: usize| limb(index / 64) >> (index % 64) & 1 == 1;
        let half = low_bit > 0 && bit(low_bit - 1);
        let beyond = (0..low_bit.saturating_sub(1)).any(bit);
        let kept = kept + u64::from(half && (beyond || kept & 1 == 1));
        // kept * 2^(low_bit - 1074); the carry into a 54th bit is exact, too.
        let exponent = low_bit as i32 - 1074;
        let (first, second) = (exponent / 2, exponent - exponent / 2);
        kept as f64 * 2f64.powi(first) * 2f64.powi(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;

    fn bitrep_sum(terms: &[f64]) -> f64 {
        let mut sum = bitrep::SumF64::new();
        terms.iter().for_each(|&term| sum.add(term));
        sum.value()
    }

    #[test]
    fn sums_are_the_exactly_rounded_ones() {
        let mut state = 1u64;
        for round in 0..200 {
            let terms: Vec<f64> = (0..97)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    core_math::exp(-((state >> 40) as f64) * 2f64.powi(-24) * f64::from(round) * 3.7)
                })
                .collect();
            let mut sum = Exact::default();
            terms.iter().for_each(|&term| sum.add(term));
            assert_eq!(sum.rounded(), bitrep_sum(&terms), "round {round}");
        }
        for tiny in [f64::from_bits(1), f64::MIN_POSITIVE, 2f64.powi(-1000)] {
            let mut sum = Exact::default();
            sum.add(tiny);
            sum.add(tiny);
            assert_eq!(sum.rounded(), 2.0 * tiny);
        }
    }

    #[test]
    fn a_flagged_boundary_settles_as_the_contract_says() {
        for logits in [&[0.0, 0.0, -42.0][..], &[0.0, 0.0, -700.0], &[5.0, 5.0, 5.0, 5.0, -36.5]] {
            let nucleus = oracle::nucleus(logits, 0.5).unwrap();
            assert_eq!(settle(logits, 0.5), Some(nucleus.boundary), "{logits:?}");
        }
    }
}
