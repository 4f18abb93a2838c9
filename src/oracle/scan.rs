//! When the compensated scan of the definition need not be run, because a bound says what it would name.
//!
//! Let u = 2^-53. A compensated sum of i numbers, none negative, is within u + g^2 of its exact value S(i), relatively,
//! with g = i*u / (1 - i*u) (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005, proposition 4.5, for Sum2;
//! Neumaier's scan collects the same exact errors). Up to 2^22 numbers, that is within 1.01 u. An exactly rounded sum
//! is within u.
//!
//! - If before * (1 + 4u) < target, rounded, with `before` the rounded S(count - 1): the scan's sums up to count - 1
//!   are at most before * (1 + u) * (1 + 1.01 u) < before * (1 + 4u) * (1 - u), hence below the target.
//! - If target <= prefix * (1 - 4u), rounded, with `prefix` the rounded S(count): the scan's sum at count is at least
//!   prefix * (1 - u) * (1 - 1.01 u) > prefix * (1 - 4u) * (1 + u), hence has reached the target.
//!
//! So the scan names `count`. Where a prefix sum all but hits the target - p = 0.5 and an even number of equal logits -
//! neither is known, and the scan is run.

/// The most numbers that the bound is for.
const MOST: usize = 1 << 22;

/// Whether the scan of `numbers` weights is known to name the token whose prefix sum, exactly rounded, is `prefix`,
/// with `before` the sum without it.
pub(super) fn names_boundary(numbers: usize, before: f64, target: f64, prefix: f64) -> bool {
    numbers <= MOST && before * (1.0 + 2.0 * f64::EPSILON) < target && target <= prefix * (1.0 - 2.0 * f64::EPSILON)
}
