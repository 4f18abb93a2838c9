//! Exactly rounded sums of weights, from accumulators that carry a bias.
//!
//! # Why nothing is lost
//!
//! Level n has the unit U(n) = 2^-(45 + 46*n), from level 23 on 2^-1074. An accumulator of level n starts at
//! 1.5 * 2^52 * U(n) and stays between 2^52 * U(n) and 2^53 * U(n), where the spacing of binary64 numbers is U(n). Adding a number
//! x to it therefore adds q, which is x rounded to a multiple of U(n); q = after - before is exact, since both are
//! multiples of U(n) below 2^53 * U(n); and x - q is exact, since it is a multiple of x's last place no larger than
//! U(n)/2 (or 0, when x is a multiple of U(n)). Level n + 1 takes x - q.
//!
//! In range: a block adds at most 64 numbers to each lane of an accumulator. At level 0 they are weights, from 0 to 1,
//! in sum at most 64 = 2^51 * U(0). At level n + 1 they are at most U(n)/2 = 2^45 * U(n+1) in size (less where the unit
//! is clipped), in sum at most 2^51 * U(n+1).
//!
//! After each block, an accumulator's distance from its start is read off as an integer number of units - the
//! difference of the two bit patterns, as the spacing is constant - and added to the level's total in integers. The sum
//! is exactly the sum over the levels of total * unit; it is rounded once, at the end.
//!
//! Every weight is a multiple of 2^-1074, so level 23 leaves nothing. A weight of at least 2^-39 is a multiple of 2^-91
//! = U(1), and one of at least 2^-85 of U(2): when all are, two or three levels do. All of this holds for weights up to
//! 2^scale with all units times 2^scale: so two levels do for weights from 2^(scale - 39) to 2^scale.

use super::block::Weights;
use super::definition::exact_sum;
use super::simd::{Simd, both};

/// Levels in all.
const LEVELS: usize = 24;

/// The exponent of a level's unit.
const fn unit(level: usize) -> i32 {
    let exponent = -45 - 46 * level as i32;
    if exponent < -1074 { -1074 } else { exponent }
}

/// 2^exponent, for exponents from -1074 to 1023.
const fn power(exponent: i32) -> f64 {
    let bits = if exponent < -1022 { 1 << (exponent + 1074) } else { ((exponent + 1023) as u64) << 52 };
    f64::from_bits(bits)
}

/// Levels from `first` on, with units of 2^scale times those of the proof.
#[derive(Debug, Clone, Copy)]
struct Grid {
    first: usize,
    scale: i32,
}

impl Grid {
    fn of(first: usize) -> Self {
        Self { first, scale: 0 }
    }

    /// The exponent of a level's unit.
    #[inline(always)]
    fn unit(self, level: usize) -> i32 {
        unit(self.first + level) + self.scale
    }

    /// Where an accumulator starts: 1.5 * 2^52 units.
    #[inline(always)]
    fn start(self, level: usize) -> f64 {
        1.5 * power(self.unit(level) + 52)
    }
}

/// How many levels a set of weights needs. (Zeros need none.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// All are at most 2^scale and at least 2^(scale - 39).
    Two {
        /// From -44 to 0.
        scale: i32,
    },
    /// All are at least 2^-85.
    Three,
    /// Some are smaller.
    All,
}

impl Depth {
    /// What the exponentials of numbers need of which none is below `smallest`, and the largest exponential is `top`.
    pub(super) fn of_exponentials(smallest: f64, top: f64) -> Self {
        // The exponent of the least power of two that is not below `top`.
        let scale = ((top.to_bits() + (1 << 52) - 1) >> 52) as i32 - 1023;
        let scale = scale.clamp(-44, 0);
        // The logarithms are rounded up by far more than binary64 rounds them.
        if smallest >= f64::from(scale - 39) * std::f64::consts::LN_2 + 1e-9 {
            Self::Two { scale }
        } else if smallest >= -85.0 * std::f64::consts::LN_2 + 1e-9 {
            Self::Three
        } else {
            Self::All
        }
    }

    /// What weights need of which none is below `smallest`.
    pub(super) fn of(smallest: f64) -> Self {
        if smallest >= power(-39) {
            Self::Two { scale: 0 }
        } else if smallest >= power(-85) {
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
            Depth::Two { scale } => {
                self.pass::<S, 2, FLOOR, true>(simd, weights, floor, Grid { first: 0, scale }, &mut []);
            }
            Depth::Three => {
                self.pass::<S, 3, FLOOR, true>(simd, weights, floor, Grid::of(0), &mut []);
            }
            Depth::All => {
                let mut rest: Weights = [[0.0; 8]; _];
                let mut left = self.pass::<S, 2, FLOOR, false>(simd, weights, floor, Grid::of(0), &mut rest);
                for level in (2..LEVELS).step_by(2) {
                    if !left {
                        break;
                    }
                    let before = rest;
                    left = self.pass::<S, 2, false, false>(simd, &before, floor, Grid::of(level), &mut rest);
                }
            }
        }
    }

    /// Adds a block to `N` levels of `grid`: what is at least `floor`, if `FLOOR` says so. Unless `LAST` says that
    /// the levels leave nothing, writes what they leave to `rest` and says whether it is anything.
    #[inline(always)]
    fn pass<S: Simd, const N: usize, const FLOOR: bool, const LAST: bool>(
        &mut self,
        simd: S,
        from: &[[f64; 8]],
        floor: S::F64,
        grid: Grid,
        rest: &mut [[f64; 8]],
    ) -> bool {
        // Two accumulators a level, for even and odd vectors: one addition need not wait for the other.
        let (mut even, mut odd) = ([simd.splat(0.0); N], [simd.splat(0.0); N]);
        for (level, (even, odd)) in even.iter_mut().zip(&mut odd).enumerate() {
            *even = simd.splat(grid.start(level));
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
                    total = total.wrapping_add(lane.to_bits().wrapping_sub(grid.start(level).to_bits()));
                }
            }
            // At most 16 * 2^51 in size.
            self.add_units(i128::from(total as i64), grid.unit(level));
        }
        !LAST && simd.any(left)
    }

    /// Adds one number from 0 to 1.
    pub(super) fn add_one(&mut self, number: f64) {
        let (integer, exponent) = parts(number);
        self.add_units(integer, exponent);
    }

    /// Subtracts one number from 0 to 1.
    pub(super) fn subtract_one(&mut self, number: f64) {
        let (integer, exponent) = parts(number);
        self.add_units(-integer, exponent);
    }

    /// Adds integer * 2^exponent: at most 2^55 in size, and from -1074 on.
    fn add_units(&mut self, integer: i128, exponent: i32) {
        // The first level whose unit divides 2^exponent, by less than 2^46.
        let level = (-45 - exponent).max(0).unsigned_abs().div_ceil(46) as usize;
        self.totals[level] += integer << (exponent - unit(level));
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

/// A finite number, not negative, as integer * 2^exponent.
fn parts(number: f64) -> (i128, i32) {
    let (exponent, fraction) = ((number.to_bits() >> 52) as i32, number.to_bits() & ((1 << 52) - 1));
    if exponent == 0 { (i128::from(fraction), -1074) } else { (i128::from(fraction | 1 << 52), exponent - 1075) }
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
                        // The same, on the finest grid that holds them; taken off again, it leaves nothing.
                        let top = chunk.iter().copied().fold(0.0, f64::max);
                        let (mut twice, before) = (sum, sum.rounded());
                        twice.add_block(simd, &weights, Depth::of_exponentials(smallest.ln(), top));
                        chunk.iter().for_each(|&weight| twice.subtract_one(weight));
                        assert_eq!(twice.rounded().to_bits(), before.to_bits());
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
        fn sums_of_near_weights(weights in weights(-39, 3000)) {
            check(&weights, None);
        }

        #[test]
        fn sums_of_weights_of_a_narrow_band(weights in weights(-30, 2000), down in 0..60i32) {
            check(&weights.iter().map(|weight| weight * power(-down)).collect::<Vec<_>>(), None);
        }

        #[test]
        fn sums_of_weights_that_need_three_levels(weights in weights(-85, 2000), floor in 0.0..1.0f64) {
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
        check(&vec![power(-39); 3000], None);
        check(&vec![power(-85).next_up(); 3000], None);
        // Half an ulp of 1 hangs on the last subnormal.
        check(&[1.0, power(-53), 5e-324], None);
        check(&[1.0, power(-53), 0.0], None);
        check(&[1.0, power(-52), power(-53)], None);
    }
}
