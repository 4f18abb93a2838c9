//! Exactly rounded sums of weights, from accumulators that carry a bias.
//!
//! # Why nothing is lost
//!
//! Level n has the unit U(n) = 2^-(44 + 45*n), from level 23 on 2^-1074. An accumulator of level n starts at
//! 1.5 * 2^52 * U(n) and stays between 2^52 * U(n) and 2^53 * U(n), where the spacing of binary64 numbers is U(n). Adding
//! a number x to it therefore adds q, which is x rounded to a multiple of U(n); q = after - before is exact, since both are
//! multiples of U(n) below 2^53 * U(n); and x - q is exact, since it is a multiple of x's last place no larger than U(n)/2
//! (or 0, when x is a multiple of U(n)). Level n + 1 takes x - q.
//!
//! In range: a block adds at most 64 numbers to each lane of an accumulator. At level 0 they are weights, from 0 to 1, in sum
//! at most 64 < 2^51 * U(0) = 128. At level n + 1 they are at most U(n)/2 = 2^44 * U(n+1) in size (less where the unit is
//! clipped), in sum at most 2^50 * U(n+1) < 2^51 * U(n+1).
//!
//! After each block, an accumulator's distance from its start is read off as an integer number of units - the difference
//! of the two bit patterns, as the spacing is constant - and added to the level's total in integers. The sum is exactly the
//! sum over the levels of total * unit; it is rounded once, at the end.
//!
//! Every weight is a multiple of 2^-1074, so level 23 leaves nothing. A weight of at least 2^-37 is a multiple of
//! 2^-89 = U(1), and one of at least 2^-82 of U(2): when all are, two or three levels do.

use super::block::Weights;
use super::definition::exact_sum;
use super::simd::{Simd, both};

/// Levels in all.
const LEVELS: usize = 24;

/// The exponent of a level's unit.
const fn unit(level: usize) -> i32 {
    let exponent = -44 - 45 * level as i32;
    if exponent < -1074 { -1074 } else { exponent }
}

/// 2^exponent, for exponents from -1074 to 1023.
const fn power(exponent: i32) -> f64 {
    let bits = if exponent < -1022 { 1 << (exponent + 1074) } else { ((exponent + 1023) as u64) << 52 };
    f64::from_bits(bits)
}

/// Where an accumulator starts: 1.5 * 2^52 units.
const fn start(level: usize) -> f64 {
    1.5 * power(unit(level) + 52)
}

/// How many levels a set of weights needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// All are at least 2^-37.
    Two,
    /// All are at least 2^-82.
    Three,
    /// Some are smaller.
    All,
}

impl Depth {
    /// What the exponentials of numbers need of which none is below `smallest`.
    pub(super) fn of_difference(smallest: f64) -> Self {
        // 37 and 82 times ln 2 are 25.6464... and 56.838...
        if smallest >= -25.646 {
            Self::Two
        } else if smallest >= -56.838 {
            Self::Three
        } else {
            Self::All
        }
    }

    /// What weights need of which none is below `smallest`. (Zeros need nothing.)
    pub(super) fn of(smallest: f64) -> Self {
        if smallest >= power(-37) {
            Self::Two
        } else if smallest >= power(-82) {
            Self::Three
        } else {
            Self::All
        }
    }
}

/// A sum of weights, exact.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExactSum {
    /// The sum, level by level, in the level's units.
    totals: [i128; LEVELS],
}

impl ExactSum {
    /// Nothing.
    pub(super) const ZERO: Self = Self { totals: [0; LEVELS] };

    /// Adds a block's weights, or fewer: an even number of vectors. `depth` must hold for them.
    #[inline(always)]
    pub(super) fn add_block<S: Simd>(&mut self, simd: S, weights: &[[f64; 8]], depth: Depth) {
        self.add::<S, false>(simd, weights, simd.splat(0.0), depth);
    }

    /// Adds those of a block's weights that are at least `floor`. `depth` must hold for them.
    #[inline(always)]
    pub(super) fn add_block_from<S: Simd>(&mut self, simd: S, weights: &[[f64; 8]], floor: S::F64, depth: Depth) {
        self.add::<S, true>(simd, weights, floor, depth);
    }

    #[inline(always)]
    fn add<S: Simd, const FLOOR: bool>(&mut self, simd: S, weights: &[[f64; 8]], floor: S::F64, depth: Depth) {
        match depth {
            Depth::Two => {
                self.pass::<S, 2, FLOOR, true>(simd, weights, floor, 0, &mut []);
            }
            Depth::Three => {
                self.pass::<S, 3, FLOOR, true>(simd, weights, floor, 0, &mut []);
            }
            Depth::All => {
                let mut rest: Weights = [[0.0; 8]; _];
                let mut left = self.pass::<S, 2, FLOOR, false>(simd, weights, floor, 0, &mut rest);
                for level in (2..LEVELS).step_by(2) {
                    if !left {
                        break;
                    }
                    let before = rest;
                    left = self.pass::<S, 2, false, false>(simd, &before, floor, level, &mut rest);
                }
            }
        }
    }

    /// Adds a block to `N` levels from `first` on: what is at least `floor`, if `FLOOR` says so. Unless `LAST` says that
    /// the levels leave nothing, writes what they leave to `rest` and says whether it is anything.
    #[inline(always)]
    fn pass<S: Simd, const N: usize, const FLOOR: bool, const LAST: bool>(
        &mut self,
        simd: S,
        from: &[[f64; 8]],
        floor: S::F64,
        first: usize,
        rest: &mut [[f64; 8]],
    ) -> bool {
        // Two accumulators a level, for even and odd vectors: one addition need not wait for the other.
        let (mut even, mut odd) = ([simd.splat(0.0); N], [simd.splat(0.0); N]);
        for (level, (even, odd)) in even.iter_mut().zip(&mut odd).enumerate() {
            *even = simd.splat(start(first + level));
            *odd = *even;
        }
        let mut left = simd.splat(0.0);
        for (index, pair) in from.as_chunks::<2>().0.iter().enumerate() {
            let [mut x, mut y] = both!(i => simd.load(&pair[i]));
            if FLOOR {
                (x, y) = (simd.keep_at_least(x, floor), simd.keep_at_least(y, floor));
            }
            let x = deposit::<S, N, LAST>(simd, &mut even, x);
            let y = deposit::<S, N, LAST>(simd, &mut odd, y);
            if !LAST {
                simd.store(&mut rest[2 * index], x);
                simd.store(&mut rest[2 * index + 1], y);
                left = simd.or(left, simd.or(x, y));
            }
        }
        for level in 0..N {
            let mut total = 0u64;
            for accumulator in [even[level], odd[level]] {
                let mut lanes = [0.0; 8];
                simd.store(&mut lanes, accumulator);
                for lane in lanes {
                    total = total.wrapping_add(lane.to_bits().wrapping_sub(start(first + level).to_bits()));
                }
            }
            // At most 16 * 2^51 in size.
            self.totals[first + level] += i128::from(total as i64);
        }
        !LAST && simd.any(left)
    }

    /// Adds one number from 0 to 1.
    pub(super) fn add_one(&mut self, number: f64) {
        let (level, units) = units(number);
        self.totals[level] += units;
    }

    /// Subtracts one number from 0 to 1.
    pub(super) fn subtract_one(&mut self, number: f64) {
        let (level, units) = units(number);
        self.totals[level] -= units;
    }

    /// The sum, rounded once.
    pub(super) fn rounded(&self) -> f64 {
        let mut terms = Vec::with_capacity(12);
        for (level, &total) in self.totals.iter().enumerate().rev() {
            // Three pieces below 2^50 in size, so that each is exact in binary64. Totals are below 2^149.
            let mut rest = total;
            for shift in [0, 50, 100] {
                let piece = if shift == 100 { rest } else { rest & ((1 << 50) - 1) };
                rest >>= 50;
                if piece != 0 {
                    terms.push(piece as f64 * power(unit(level)) * power(shift));
                }
            }
        }
        exact_sum(&terms)
    }
}

/// A number from 0 to 1 as a multiple of a level's unit.
fn units(number: f64) -> (usize, i128) {
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    // number = integer * 2^place.
    let (integer, place) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    // The first level whose unit divides 2^place.
    let level = (-44 - place).max(0).unsigned_abs().div_ceil(45) as usize;
    (level, i128::from(integer) << (place - unit(level)))
}

/// Adds `x` to each level's accumulator what the level takes of it; returns what is left.
#[inline(always)]
fn deposit<S: Simd, const N: usize, const LAST: bool>(simd: S, accumulators: &mut [S::F64; N], x: S::F64) -> S::F64 {
    let mut x = x;
    for (level, accumulator) in accumulators.iter_mut().enumerate() {
        let after = simd.add(*accumulator, x);
        if !(LAST && level == N - 1) {
            x = simd.sub(x, simd.sub(after, *accumulator));
        }
        *accumulator = after;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::block::{TOKENS, VECTORS};
    use super::super::simd::{Isa, Kernel, dispatch};
    use super::*;
    use bitrep::SumF64;
    use proptest::prelude::*;

    struct SumOf<'a>(&'a [f64], Option<f64>);

    impl Kernel for SumOf<'_> {
        type Output = ExactSum;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> ExactSum {
            let mut sum = ExactSum::ZERO;
            for chunk in self.0.chunks(TOKENS) {
                let mut weights = [[0.0; 8]; VECTORS];
                weights.as_flattened_mut()[..chunk.len()].copy_from_slice(chunk);
                let floor = self.1.unwrap_or(f64::MIN_POSITIVE);
                let smallest = chunk.iter().copied().filter(|&x| x >= floor).fold(1.0, f64::min);
                match self.1 {
                    None => {
                        let smallest = chunk.iter().copied().fold(1.0, f64::min);
                        sum.add_block(simd, &weights, Depth::of(smallest));
                    }
                    Some(floor) => sum.add_block_from(simd, &weights, simd.splat(floor), Depth::of(smallest)),
                }
            }
            sum
        }
    }

    /// Our sums, by block and one by one, equal the definition's, and another crate's.
    fn check(weights: &[f64], floor: Option<f64>) {
        let kept: Vec<f64> = weights.iter().copied().filter(|&x| floor.is_none_or(|floor| x >= floor)).collect();
        let expected = exact_sum(&kept);
        assert_eq!(expected.to_bits(), kept.iter().copied().collect::<SumF64>().value().to_bits());
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let sum = dispatch(isa, SumOf(weights, floor)).rounded();
            assert_eq!(sum.to_bits(), expected.to_bits(), "{isa:?}: {sum:e} for {expected:e}");
        }
        let mut sum = ExactSum::ZERO;
        kept.iter().for_each(|&weight| sum.add_one(weight));
        assert_eq!(sum.rounded().to_bits(), expected.to_bits());
    }

    /// Weights whose smallest binary exponent is `lowest`.
    fn weights(lowest: i32, most: usize) -> impl Strategy<Value = Vec<f64>> {
        let weight = (lowest..=0, any::<u64>(), 0..4u8).prop_map(|(exponent, bits, shape)| {
            let fraction = match shape {
                0 => 0,                     // A power of two: half-way cases.
                1 => bits & 0xff,           // Near one.
                2 => bits << 44 & !0 >> 12, // Few bits.
                _ => bits >> 12,
            };
            (f64::from_bits(1023 << 52 | fraction) * power(exponent)).min(1.0)
        });
        prop::collection::vec(weight, 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn sums_of_near_weights(weights in weights(-37, 3000)) {
            check(&weights, None);
        }

        #[test]
        fn sums_of_weights_that_need_three_levels(weights in weights(-82, 2000), floor in 0.0..1.0f64) {
            check(&weights, None);
            check(&weights, Some(floor.powi(20)));
        }

        #[test]
        fn sums_of_weights_of_any_size(weights in weights(-1074, 1500), floor in 0.0..1.0f64) {
            check(&weights, None);
            check(&weights, Some(floor.powi(500)));
        }
    }

    #[test]
    fn the_largest_and_the_smallest() {
        check(&[], None);
        check(&vec![1.0; 262_144], None);
        check(&vec![1.0f64.next_down(); 262_144], None);
        check(&vec![5e-324; 262_144], None);
        check(&vec![f64::MIN_POSITIVE.next_down(); 5000], None);
        check(&vec![power(-37); 3000], None);
        check(&vec![power(-82).next_up(); 3000], None);
        // Half an ulp of 1 hangs on the last subnormal.
        check(&[1.0, power(-53), 5e-324], None);
        check(&[1.0, power(-53), 0.0], None);
        check(&[1.0, power(-52), power(-53)], None);
    }
}
