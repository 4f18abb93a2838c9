//! Whether a nucleus is also the one of exact real arithmetic.
//!
//! The oracle's nucleus is defined in binary64: correctly rounded weights, exactly rounded sums, one rounded product.
//! With P(k) the exact sum of the k largest exp(logit - max), Z that of all, and p the fp32 value as it is, the nucleus
//! of exact reals is the count for which P(count - 1) < p * Z <= P(count). A certificate says whether that holds. It is
//! a diagnostic: it changes no verdict.
//!
//! # When binary64 proves it
//!
//! Let u = 2^-53, and let d be a token's exact difference logit - max.
//!
//! - Where |d| <= 64, the rounded difference is off by at most 64 u, so that the weight is off by at most 66 u of
//!   itself.
//! - Where |d| > 64, the weight and the exact exponential are both below 2^-92. Fewer than 2^32 such tokens hold less
//!   than 2^-60, on either side, and a sum that has the largest token is at least 1.
//! - So a sum of weights is within 67 u of the sum of the exact exponentials; the rounded sum is within 69 u of it, and
//!   the target within 71 u of p * Z. (Neither is subnormal.)
//! - If prefix - target > 2^-46 * (prefix + target), rounded, the difference is more than 71 u of the two: P(count) > p
//!   * Z. The same of target - prefix_before. 2^-46 is 128 u.
//!
//! # When more bits are needed
//!
//! Else intervals of 128 bits, and twice as many as long as they do not decide: see [`interval`] and [`excess`].
//!
//! # Why only one kind of tie exists
//!
//! P(k) = p * Z says that a sum of exp(v), over the row's distinct logits v, with coefficients (p * tokens of v) -
//! (tokens of v among the k), is 0. The logits are rational and distinct, so by the Lindemann-Weierstrass theorem all
//! the coefficients are 0. But one of a logit whose tokens are all among the k, or all not, is not 0 for p in (0, 1);
//! and at most one logit is split. So the row has one distinct logit, and k = p * tokens, which binary64 tells exactly.

mod interval;

use super::Nucleus;
use interval::Interval;
use std::fmt;

/// What exact real arithmetic says of a nucleus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// It is the nucleus of exact reals too: the rounding bounds of binary64 prove it.
    Proven,
    /// It is the nucleus of exact reals too: intervals of `bits` bits prove it.
    ProvenWide {
        /// The precision that was needed.
        bits: u32,
    },
    /// It is the nucleus of exact reals too, by equality: all logits are equal and p * vocab is exactly the count, so
    /// that the mass of the nucleus is p * Z. The least change of p or of a logit may move the boundary.
    ExactTie,
    /// It is not the nucleus of exact reals: rounding to binary64 moved the boundary. Intervals of `bits` bits prove
    /// it.
    Disproved {
        /// The precision that was needed.
        bits: u32,
    },
    /// Not an exact tie, and not decided by intervals of `bits` bits, the most that are tried: the exponentials of
    /// several levels cancel to that many bits. No such row is known.
    Undecided {
        /// The precision that did not suffice.
        bits: u32,
    },
}

/// The first precision that is tried after binary64's.
const FIRST_BITS: u32 = 128;
/// The last.
const MOST_BITS: u32 = 4096;

impl Certificate {
    /// The stable name: `proven`, `proven-wide`, `exact-tie`, `disproved` or `undecided`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::ProvenWide { .. } => "proven-wide",
            Self::ExactTie => "exact-tie",
            Self::Disproved { .. } => "disproved",
            Self::Undecided { .. } => "undecided",
        }
    }

    /// The precision of the intervals, where any were needed.
    #[must_use]
    pub fn bits(self) -> Option<u32> {
        match self {
            Self::Proven | Self::ExactTie => None,
            Self::ProvenWide { bits } | Self::Disproved { bits } | Self::Undecided { bits } => Some(bits),
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven => write!(f, "proven for exact reals by binary64's rounding bounds"),
            Self::ProvenWide { bits } => write!(f, "proven for exact reals by intervals of {bits} bits"),
            Self::ExactTie => write!(f, "an exact tie: all logits are equal and the mass of the nucleus is exactly p"),
            Self::Disproved { bits } => {
                write!(
                    f,
                    "not the boundary of exact reals, which rounding to binary64 moved; by intervals of {bits} bits"
                )
            }
            Self::Undecided { bits } => write!(f, "not decided for exact reals by intervals of {bits} bits"),
        }
    }
}

impl Nucleus {
    /// Whether binary64's rounding bounds alone prove this nucleus for exact reals. Costs nothing.
    #[must_use]
    pub fn is_proven_in_binary64(&self) -> bool {
        const SLACK: f64 = 1.0 / (1u64 << 46) as f64;
        let exceeds = |larger: f64, smaller: f64| larger - smaller > SLACK * (larger + smaller);
        exceeds(self.prefix, self.target) && exceeds(self.target, self.prefix_before)
    }
}

/// The certificate of `nucleus`, which is that of `logits` (\[vocab\]) at `p` (fp32). Costs nothing where binary64's
/// bounds suffice; otherwise some 50 microseconds for each distinct logit.
#[must_use]
pub fn certificate(logits: &[f32], p: f32, nucleus: &Nucleus) -> Certificate {
    if nucleus.is_proven_in_binary64() {
        return Certificate::Proven;
    }
    let levels = levels(logits, nucleus.count as usize);
    decide(&levels, p)
}

/// The tokens of one distinct logit.
struct Level {
    logit: f32,
    tokens: u32,
    /// How many of them are in the nucleus.
    kept: u32,
    /// How many are in it without its last token.
    kept_before: u32,
}

/// The distinct logits, the largest first, of a row whose nucleus has `count` tokens.
fn levels(logits: &[f32], count: usize) -> Vec<Level> {
    let mut sorted = logits.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut rank = 0;
    let inside = |rank: usize, tokens: usize, count: usize| count.saturating_sub(rank).min(tokens) as u32;
    sorted
        .chunk_by(|a, b| a == b) // -0.0 and 0.0 are one logit, and neighbours in this order
        .filter_map(|equal| Some((*equal.first()?, equal.len())))
        .map(|(logit, tokens)| {
            let level = Level {
                logit,
                tokens: tokens as u32,
                kept: inside(rank, tokens, count),
                kept_before: inside(rank, tokens, count.saturating_sub(1)),
            };
            rank += tokens;
            level
        })
        .collect()
}

/// Intervals of more and more bits.
fn decide(levels: &[Level], p: f32) -> Certificate {
    let mut bits = FIRST_BITS;
    loop {
        if let Some(certificate) = attempt(levels, p, bits) {
            return certificate;
        }
        if bits >= MOST_BITS {
            return Certificate::Undecided { bits };
        }
        bits *= 2;
    }
}

/// What intervals of `bits` bits say, if they decide.
fn attempt(levels: &[Level], p: f32, bits: u32) -> Option<Certificate> {
    // P(count) - p * Z must not be negative, P(count - 1) - p * Z must be.
    let above = excess(levels.iter().map(|level| (level.logit, level.tokens, level.kept)), p, bits);
    let below = excess(levels.iter().map(|level| (level.logit, level.tokens, level.kept_before)), p, bits);
    match (above, below) {
        (None, _) => Some(Certificate::ExactTie),
        (Some(above), Some(below)) if above.is_positive() && below.is_negative() => {
            Some(Certificate::ProvenWide { bits })
        }
        (Some(above), below) => {
            let reached_before = below.is_none_or(|below| !below.may_be_negative());
            (above.is_negative() || reached_before).then_some(Certificate::Disproved { bits })
        }
    }
}

/// The sign of P - p * Z, as an interval, for the tokens kept of each level (logit, tokens, kept), the largest logit
/// first. `None` where it is exactly 0.
///
/// Leading levels of which exactly p is kept cancel. What is left is divided by its first exponential, which changes no
/// sign: so a level however light decides where all heavier ones cancel.
fn excess(levels: impl Iterator<Item = (f32, u32, u32)>, p: f32, bits: u32) -> Option<Interval> {
    // Exact in binary64: 24 bits times 18.
    let cancels = |&(_, tokens, kept): &(f32, u32, u32)| f64::from(p) * f64::from(tokens) == f64::from(kept);
    let mut levels = levels.skip_while(cancels).peekable();
    let base = levels.peek()?.0;
    let (mut mass, mut rest) = (Interval::of(0.0, bits), Interval::of(0.0, bits));
    for (logit, tokens, kept) in levels {
        let weight = Interval::exp_difference(logit, base, bits);
        mass = mass.plus(&weight.times(&Interval::of(f64::from(kept), bits)));
        rest = rest.plus(&weight.times(&Interval::of(f64::from(tokens - kept), bits)));
    }
    // With Z = mass + rest.
    let p = Interval::of(f64::from(p), bits);
    let complement = Interval::of(1.0, bits).minus(&p);
    Some(complement.times(&mass).minus(&p.times(&rest)))
}

#[cfg(test)]
mod tests {
    use super::super::nucleus;
    use super::*;

    fn of(logits: &[f32], p: f32) -> (u32, Certificate) {
        let nucleus = nucleus(logits, p).unwrap();
        (nucleus.count, certificate(logits, p, &nucleus))
    }

    #[test]
    fn a_clear_boundary_needs_nothing_more() {
        assert_eq!(of(&[2.0, 1.0, 0.0], 0.8), (2, Certificate::Proven));
        assert_eq!(of(&[2.0], f32::from_bits(1)), (1, Certificate::Proven));
        assert_eq!(of(&[2.0, f32::MIN, f32::MAX, -f32::MAX], 1.0f32.next_down()), (1, Certificate::Proven));
    }

    /// p * n a whole number, and as near to one as fp32 can say.
    #[test]
    fn equal_logits_tie_where_p_times_n_is_whole_and_only_there() {
        for (tokens, kept) in [(2, 1), (4, 3), (1024, 512), (1000, 375), (3 << 16, 3 << 14)] {
            let (logits, p) = (vec![-3.7; tokens], kept as f32 / tokens as f32);
            assert_eq!(f64::from(p) * tokens as f64, f64::from(kept), "p is exact");
            assert_eq!(of(&logits, p), (kept as u32, Certificate::ExactTie));
            assert_eq!(of(&logits, p.next_down()), (kept as u32, Certificate::Proven));
            assert_eq!(of(&logits, p.next_up()), (kept as u32 + 1, Certificate::Proven));
        }
        // k/n that fp32 cannot say.
        assert_eq!(of(&[1.0; 3], 1.0 / 3.0), (2, Certificate::Proven));
        assert_eq!(of(&[1.0; 3], (1.0f32 / 3.0).next_down()), (1, Certificate::Proven));
        // Either zero is one logit.
        assert_eq!(of(&[0.0, -0.0, 0.0, -0.0], 0.5), (2, Certificate::ExactTie));
    }

    /// Four equal logits, and one that is so light that the target rounds to, or nearly to, what two of them hold.
    #[test]
    fn what_binary64_cannot_tell_wider_intervals_can() {
        let row = |light: f32| [0.0, 0.0, 0.0, 0.0, light];
        // The target is visibly above 2: three tokens, but the margin is within binary64's bounds.
        assert_eq!(of(&row(-33.0), 0.5), (3, Certificate::ProvenWide { bits: 128 }));
        assert_eq!(of(&row(-28.0), 0.5), (3, Certificate::Proven));
        // The target rounds to 2, which two tokens reach. In exact reals they fall short of it by half the light one,
        // however light it is.
        for light in [-100.0, -2000.0, -1e30] {
            assert_eq!(of(&row(light), 0.5), (2, Certificate::Disproved { bits: 128 }), "{light}");
        }
        // p is the fp32 below 1/3, and a light token makes up for it: p * Z is 1 + 2e-14 or, with two still lighter
        // ones, 1 - 2e-14.
        let p = f32::from_bits(0x3eaa_aaaa);
        assert_eq!(of(&[0.0, 0.0, 0.0, -15.536_92], p), (2, Certificate::ProvenWide { bits: 128 }));
        let logits = [0.0, 0.0, 0.0, -15.536_921, -32.0, -32.0];
        assert_eq!(of(&logits, p), (1, Certificate::ProvenWide { bits: 128 }));
        // Too few bits decide nothing, and say so.
        assert_eq!(attempt(&super::levels(&logits, 1), p, 40), None);
        assert_eq!(of(&logits[..4], p), (1, Certificate::Proven));
    }

    /// A boundary that is off by one either way is disproved: the intervals do not believe what they are given.
    #[test]
    fn a_wrong_count_is_disproved() {
        let logits = [1.5f32, 0.5, 0.25, -1.0, -4.0];
        let count = nucleus(&logits, 0.9).unwrap().count as usize;
        assert_eq!(decide(&levels(&logits, count), 0.9), Certificate::ProvenWide { bits: 128 });
        for wrong in [count - 1, count + 1] {
            let certificate = decide(&levels(&logits, wrong), 0.9);
            assert_eq!(certificate, Certificate::Disproved { bits: 128 }, "{wrong}");
        }
    }

    #[test]
    fn levels_share_out_the_nucleus() {
        let levels = levels(&[0.0, 2.0, -0.0, 2.0, -1.0, 0.0], 4);
        let shares: Vec<_> =
            levels.iter().map(|level| (level.logit, level.tokens, level.kept, level.kept_before)).collect();
        assert_eq!(shares, [(2.0, 2, 2, 2), (0.0, 3, 2, 1), (-1.0, 1, 0, 0)]);
    }

    #[test]
    fn names_are_stable() {
        let all = [
            Certificate::Proven,
            Certificate::ProvenWide { bits: 128 },
            Certificate::ExactTie,
            Certificate::Disproved { bits: 256 },
            Certificate::Undecided { bits: 4096 },
        ];
        let names = ["proven", "proven-wide", "exact-tie", "disproved", "undecided"];
        assert_eq!(all.map(Certificate::name), names);
        assert_eq!(all.map(Certificate::bits), [None, Some(128), None, Some(256), Some(4096)]);
        assert_eq!(all[1].to_string(), "proven for exact reals by intervals of 128 bits");
    }
}
