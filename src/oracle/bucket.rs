//! Where the boundary lies, from a histogram of mass: only the tokens of one or two buckets are ever put in order.
//!
//! # Why a bucket's tokens are consecutive in the canonical order
//!
//! The difference logit - max, its exponential and the bucket of a weight are each rounded or truncated monotonically.
//! So a token of an earlier bucket has the larger weight, hence the larger logit; and tokens of equal logits, which
//! only ids tell apart, share a bucket. Tokens of different logits whose weights round to one number share one too:
//! inside a bucket the keys decide.
//!
//! # Why few buckets do
//!
//! The boundary token b is preceded by less than p * Z, so that it and the tokens after it, none heavier, hold more
//! than (1 - p) * Z: weight(b) > (1 - p) * Z / n, and Z >= 1. Lighter tokens all go to the tail, which has no buckets.
//! The masses steer only. If they are wrong - their sums are rounded - the exact sums will not certify what they found,
//! and the row is done by the plain definition's steps.

use super::simd::{ONE_UPPER, Simd};

/// The buckets' number.
const BUCKETS: usize = 4096;

/// The tail's places in the histogram: one a lane, since consecutive additions to one place would wait for each other.
const TAIL: usize = 32;

/// The tail's place for each of 32 tokens.
const TAIL_PLACES: [[u32; 8]; 4] = {
    let mut places = [[0; 8]; 4];
    let mut lane = 0;
    while lane < TAIL {
        places[lane / 8][lane % 8] = (BUCKETS + lane) as u32;
        lane += 1;
    }
    places
};

/// A row's mass by bucket.
#[derive(Debug)]
pub(super) struct Histogram {
    mass: Vec<f64>,
    /// Buckets are runs of 2^shift patterns, of the upper halves of the weights' patterns.
    shift: u32,
}

/// Where the boundary is expected: among weights from `lowest` to below `above`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// The first bucket's upper edge. Weights that are at least this come before the boundary.
    pub(super) above: f64,
    /// The lower edge of the bucket that the token after the boundary is in, at the latest.
    pub(super) lowest: f64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { mass: vec![0.0; BUCKETS + TAIL], shift: 0 }
    }

    /// The bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.mass.capacity() * size_of::<f64>()
    }

    /// Empties it, for a row of `tokens` at `p`.
    pub(super) fn start(&mut self, tokens: usize, p: f64) {
        self.mass.fill(0.0);
        // Binary octaves from 1 down to (1 - p)/n, and one for what its rounding may cost.
        let octaves = (tokens as f64 / (1.0 - p)).log2().ceil() as u32 + 1;
        let per_octave = (BUCKETS as u32 / octaves).max(1).ilog2();
        self.shift = 20 - per_octave.min(20);
    }

    /// Adds a block's weights, or fewer: vectors by fours. Returns the largest.
    #[inline(always)]
    pub(super) fn add_block<S: Simd>(&mut self, simd: S, weights: &[[f64; 8]]) -> f64 {
        let (shift, edge) = (self.shift, simd.splat(self.lower_edge(BUCKETS - 1)));
        let Some(mass) = self.mass.first_chunk_mut::<{ BUCKETS + TAIL }>() else { return f64::INFINITY };
        let mut top = simd.splat(0.0);
        for group in weights.as_chunks::<4>().0 {
            let vectors = [simd.load(&group[0]), simd.load(&group[1]), simd.load(&group[2]), simd.load(&group[3])];
            let largest = simd.max(simd.max(vectors[0], vectors[1]), simd.max(vectors[2], vectors[3]));
            top = simd.max(top, largest);
            if simd.at_least(largest, edge) == 0 {
                continue; // All in the tail.
            }
            let mut places = [[0u32; 8]; 4];
            for index in 0..4 {
                simd.distances(vectors[index], shift, &TAIL_PLACES[index], &mut places[index]);
            }
            for index in 0..TAIL {
                mass[places.as_flattened()[index] as usize] += group.as_flattened()[index];
            }
        }
        let mut lanes = [0.0; 8];
        simd.store(&mut lanes, top);
        lanes.into_iter().fold(0.0, f64::max)
    }

    /// The lower edge of a bucket: weights below it are in later ones.
    fn lower_edge(&self, bucket: usize) -> f64 {
        // The smallest upper half that is still in `bucket`, with a lower half of zeros.
        let upper = ONE_UPPER - (((bucket as u32 + 1) << self.shift) - 1);
        f64::from_bits(u64::from(upper) << 32)
    }

    /// Where prefix sums should reach `target`; none if only in the tail, or nowhere.
    pub(super) fn find(&self, target: f64) -> Option<Range> {
        let buckets = self.mass.get(..BUCKETS)?;
        let mut before = 0.0;
        let bucket = buckets.iter().position(|mass| {
            before += mass;
            before >= target
        })?;
        // Weights in buckets are above zero, so that a bucket is empty where its mass is zero.
        let next = buckets.iter().skip(bucket + 1).position(|&mass| mass > 0.0);
        let last = next.map_or(BUCKETS - 1, |empty| bucket + 1 + empty);
        Some(Range {
            above: bucket.checked_sub(1).map_or(f64::INFINITY, |previous| self.lower_edge(previous)),
            lowest: self.lower_edge(last),
        })
    }
}
