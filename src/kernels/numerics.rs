//! The exponential and the logarithm that every kernel here uses, on the CPU and on the device alike: IEEE-754 binary64
//! operations with explicit fused multiply-adds, in one fixed order, so that both give the same bits. The device's copy
//! is `kernels/numerics.cuh`; the coefficients are the Taylor series'.

/// log2(e), rounded.
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln(2), rounded, and what rounding it lost.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_39ef);
const LN2_LOW: f64 = f64::from_bits(0x3c7a_bc9e_3b39_803f);

/// 1.5 * 2^52.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// 1/n! for n = 13 down to 2.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
];

/// Below this the exponential is taken as 0: fp32 and the fixed point have long lost it.
const SMALLEST: f64 = -700.0;

/// Splits exp(x) into f * 2^k with f in [0.70, 1.42]; |x| <= 700.
///
/// f is within 2^-51 of the true quotient, relatively: reducing the argument by k * ln(2) with two fused operations costs
/// at most 2^-54, leaving the series out beyond the 13th term 2^-57, and the last two roundings of the evaluation
/// 2^-53 each; the earlier ones are damped by |r| <= 0.35.
#[inline]
fn exp_parts(x: f64) -> (f64, i32) {
    // Adding 1.5 * 2^52 rounds to an integer, nearest even, which then stands in the low bits.
    let shifted = x.mul_add(LOG2_E, ROUNDER);
    let k = shifted - ROUNDER;
    let r = (-k).mul_add(LN2_HIGH, x);
    let r = (-k).mul_add(LN2_LOW, r);
    let mut sum = 0.0f64;
    for coefficient in INVERSE_FACTORIALS {
        sum = sum.mul_add(r, coefficient);
    }
    let sum = sum.mul_add(r, 1.0);
    (sum.mul_add(r, 1.0), shifted.to_bits() as i32)
}

/// 2^k, for k in [-1022, 1023].
#[inline]
fn power_of_two(k: i32) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

/// exp(x), rounded once to fp32 from binary64. NaN stays NaN.
#[inline]
#[must_use]
pub fn exp32(x: f32) -> f32 {
    let x = f64::from(x);
    if x.is_nan() {
        return f32::NAN;
    }
    if x < SMALLEST {
        return 0.0;
    }
    let (fraction, k) = exp_parts(x.min(-SMALLEST));
    (fraction * power_of_two(k)) as f32
}

/// ln(x) of a positive, finite x, rounded once to fp32 from binary64.
#[inline]
#[must_use]
pub fn log32(x: f32) -> f32 {
    let bits = f64::from(x).to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln(m) = 2 atanh((m - 1) / (m + 1)).
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let mut sum = 0.0f64;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = sum.mul_add(z, 1.0 / odd);
    }
    let sum = sum.mul_add(z, 1.0);
    f64::from(exponent).mul_add(LN2_HIGH, 2.0 * s * sum) as f32
}

/// The fixed point of a weight: units of 2^-62.
pub const FRACTION_BITS: i32 = 62;

/// Below this difference a weight rounds to 0 units.
const NO_WEIGHT: f64 = -44.0;

/// Beyond this distance from the maximum the correctly rounded binary64 exponential is exactly 0.
const NOT_EXACT_WITHIN: f32 = 750.0;

/// The weight exp(logit - max) in units of 2^-62: within 2^-51 relatively and half a unit of the exponential of the
/// binary64 difference; exactly 2^62 for a maximum. Neither may be NaN, and max not infinite.
#[inline]
#[must_use]
pub fn weight(logit: f32, max: f32) -> u64 {
    let difference = f64::from(logit) - f64::from(max);
    if difference < NO_WEIGHT {
        return 0;
    }
    let (fraction, k) = exp_parts(difference);
    (fraction * power_of_two(k + FRACTION_BITS)).round_ties_even() as u64
}

/// Whether a weight is exact in the fixed point and in binary64 alike: that of a maximum, or of a logit so far below it
/// that both are 0.
#[inline]
#[must_use]
pub fn weight_is_exact(logit: f32, max: f32) -> bool {
    !(logit < max && max - logit <= NOT_EXACT_WITHIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp32_is_the_nearest_fp32_almost_everywhere_and_never_an_ulp_off() {
        let mut nearest = 0;
        let mut x = -103.0f32;
        while x < 80.0 {
            let (ours, reference) = (exp32(x), core_math::exp(f64::from(x)) as f32);
            assert!(ours.to_bits().abs_diff(reference.to_bits()) <= 1, "{x}: {ours} {reference}");
            nearest += u32::from(ours == reference);
            x += 0.000_931;
        }
        assert!(nearest > 196_000, "{nearest}");
        assert_eq!((exp32(0.0), exp32(f32::NEG_INFINITY), exp32(-1e30)), (1.0, 0.0, 0.0));
        assert!(exp32(f32::NAN).is_nan());
    }

    #[test]
    fn log32_is_the_nearest_fp32_almost_everywhere() {
        let mut x = 1e-30f32;
        while x < 1e30 {
            let (ours, reference) = (log32(x), f64::from(x).ln() as f32);
            assert!(ours.to_bits().abs_diff(reference.to_bits()) <= 1, "{x}: {ours} {reference}");
            x *= 1.000_7;
        }
        assert_eq!(log32(1.0), 0.0);
    }

    #[test]
    fn weights_are_within_their_bound_of_the_correctly_rounded_exponential() {
        assert_eq!(weight(3.0, 3.0), 1 << 62);
        let mut logit = -43.9f32;
        let mut worst = 0.0f64;
        while logit < 0.0 {
            let exact = core_math::exp(f64::from(logit));
            let ours = weight(logit, 0.0) as f64 * 2f64.powi(-62);
            let error = ((ours - exact).abs() - 2f64.powi(-63)).max(0.0) / exact;
            worst = worst.max(error);
            logit += 0.000_397;
        }
        // 2^-51 for the exponential, 2^-53 for the reference's own rounding, 2^-53 for reading the integer as binary64.
        assert!(worst < 2f64.powi(-51) + 2f64.powi(-52), "{worst:e}");
        assert_eq!(weight(-44.5, 0.0), 0);
    }

    #[test]
    fn only_maxima_and_vanished_weights_are_exact() {
        assert!(weight_is_exact(2.0, 2.0) && weight_is_exact(-1000.0, 0.0));
        assert!(!weight_is_exact(1.999, 2.0) && !weight_is_exact(-745.0, 0.0));
        assert_eq!(core_math::exp(-749.9), 0.0);
        assert!(core_math::exp(-745.0) > 0.0);
    }
}
