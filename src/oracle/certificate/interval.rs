//! Intervals of any precision, from the crate dashu-float.
//!
//! Sums, differences and products of that crate are correctly rounded in the mode of their type, [`Down`] or [`Up`], so
//! an interval's ends are bounds. Its exponential is documented as correctly rounded as well; here it is trusted to 16
//! units in the last place only, and a test holds it to that against twice the precision.

use dashu_float::FBig;
use dashu_float::round::mode::{Down, Up};

/// All numbers from `low` to `high`.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    low: FBig<Down, 2>,
    high: FBig<Up, 2>,
}

/// `x` (finite), exactly, for operations of `bits` bits (at least 64) that round down.
fn down(x: f64, bits: u32) -> FBig<Down, 2> {
    // + 0.0: the crate tells -0.0 from 0.0.
    FBig::try_from(x + 0.0).unwrap_or_default().with_precision(bits as usize).value()
}

/// The same, that round up.
fn up(x: f64, bits: u32) -> FBig<Up, 2> {
    FBig::try_from(x + 0.0).unwrap_or_default().with_precision(bits as usize).value()
}

/// 2^exponent.
fn power(exponent: i32) -> FBig<Down, 2> {
    FBig::from_parts(1.into(), exponent as isize)
}

impl Interval {
    /// `x` alone.
    pub(super) fn of(x: f64, bits: u32) -> Self {
        Self { low: down(x, bits), high: up(x, bits) }
    }

    /// exp(logit - max), for logit <= max.
    pub(super) fn exp_difference(logit: f32, max: f32, bits: u32) -> Self {
        if logit == max {
            return Self::of(1.0, bits);
        }
        let difference = down(f64::from(logit), bits) - down(f64::from(max), bits);
        if difference < down(-f64::from(bits), bits) {
            // Less than e^-bits, and so less than 2^-bits.
            let high = power(-(bits as i32)).with_rounding::<Up>().with_precision(bits as usize).value();
            return Self { low: down(0.0, bits), high };
        }
        // The difference, of a size up to 2^12, is rounded by at most 2^(13 - bits), and the exponential, by 16 units,
        // by 2^(5 - bits) of itself. Together that is less than 2^(14 - bits) of the exponential.
        let exponential = difference.exp();
        let slack = power(14 - bits as i32);
        let low = &exponential * (down(1.0, bits) - &slack);
        let high = exponential.with_rounding::<Up>() * (up(1.0, bits) + slack.with_rounding::<Up>());
        Self { low, high }
    }

    /// The sum.
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self { low: &self.low + &other.low, high: &self.high + &other.high }
    }

    /// The difference.
    pub(super) fn minus(&self, other: &Self) -> Self {
        Self {
            low: &self.low - other.high.clone().with_rounding::<Down>(),
            high: &self.high - other.low.clone().with_rounding::<Up>(),
        }
    }

    /// The product of two intervals without negative numbers.
    pub(super) fn times(&self, other: &Self) -> Self {
        Self { low: &self.low * &other.low, high: &self.high * &other.high }
    }

    /// Whether all of it is above 0.
    pub(super) fn is_positive(&self) -> bool {
        self.low > FBig::<Down, 2>::ZERO
    }

    /// Whether all of it is below 0.
    pub(super) fn is_negative(&self) -> bool {
        self.high < FBig::<Up, 2>::ZERO
    }

    /// Whether any of it is below 0.
    pub(super) fn may_be_negative(&self) -> bool {
        self.low < FBig::<Down, 2>::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(outer: &Interval, inner: &Interval) -> bool {
        outer.low <= inner.low && inner.high <= outer.high
    }

    /// An interval of few bits holds that of twice as many, and the middle 16 units of its slack would do.
    #[test]
    fn exponentials_hold_those_of_twice_the_precision() {
        let logits = (0..400).map(|n| -0.37 * (n as f32).powi(2) / 400.0 - 1e-6);
        for logit in logits.chain([-1e-30, -1e-45, -88.7, -126.9, -127.1, -1e9, f32::MIN]) {
            for max in [0.0, 1e-40, 0.1, 17.25] {
                let (few, many) =
                    (Interval::exp_difference(logit, max, 128), Interval::exp_difference(logit, max, 256));
                assert!(contains(&few, &many), "exp({logit:e} - {max:e})");
                let binary64 = core_math::exp(f64::from(logit) - f64::from(max));
                assert!((many.low.to_f64().value() - binary64).abs() <= binary64 * 1e-13, "exp({logit:e} - {max:e})");
            }
        }
    }

    /// What the slack trusts of the crate: 16 units in the last place. It gives one.
    #[test]
    fn the_crates_exponential_is_within_a_unit() {
        for n in 1..300 {
            let x = -0.173 * f64::from(n);
            let (few, many) = (down(x, 128).exp(), down(x, 320).exp());
            let unit = few.clone() * power(-127);
            assert!(few <= many && many < few + unit, "exp({x})");
        }
    }

    #[test]
    fn arithmetic_bounds_what_it_rounds() {
        let is_zero =
            |interval: &Interval| !interval.is_positive() && !interval.is_negative() && !interval.may_be_negative();
        let third = Interval { low: down(1.0, 64) / down(3.0, 64), high: up(1.0, 64) / up(3.0, 64) };
        assert!(third.low < third.high);
        let difference = third.times(&Interval::of(3.0, 64)).minus(&Interval::of(1.0, 64));
        assert!(!difference.is_positive() && !difference.is_negative() && difference.may_be_negative());
        // 1 - 2^-149 needs 149 bits.
        let below_one = |bits| {
            let one = Interval::of(1.0, bits);
            one.minus(&Interval::of(f64::from(f32::from_bits(1)), bits)).minus(&one)
        };
        assert!(!below_one(128).is_negative() && below_one(128).may_be_negative());
        assert!(below_one(256).is_negative());
        assert!(third.minus(&Interval::of(0.25, 64)).is_positive());
        assert!(third.plus(&Interval::of(-0.5, 64)).is_negative());
        assert!(is_zero(&Interval::of(-0.0, 64)));
        assert!(is_zero(&Interval::exp_difference(-0.0, 0.0, 64).minus(&Interval::of(1.0, 64))));
    }
}
