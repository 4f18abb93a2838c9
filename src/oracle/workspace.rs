//! A row's nucleus, fast: the same result as the plain definition's, to the bit.
//!
//! One pass for the largest logit; one for the weights, their exact sum and their histogram; one for the exact sum of
//! what lies before the boundary's bucket. Then only that bucket is put in order. Where rounding could make the plain
//! definition's scan name another token than the exact sums do, its steps are followed literally.

use super::block::{TOKENS, VECTORS, Weights};
use super::bucket::{Histogram, Range};
use super::definition::neumaier_boundary;
use super::far::{self, Far, Near};
use super::simd::{Isa, Kernel, Simd, UnsupportedIsa, dispatch};
use super::sum::{Depth, ExactSum};
use super::{Nucleus, OracleError, RankKey, exp, scan};

/// The working memory of one thread: reused from row to row, it grows to what the largest row needs (4.3 MB at 262,144
/// tokens).
#[derive(Debug)]
pub struct Workspace {
    isa: Isa,
    weights: Vec<Weights>,
    /// Each block's smallest logit.
    lows: Vec<f32>,
    /// Each block's largest weight.
    tops: Vec<f64>,
    histogram: Histogram,
    keys: Vec<RankKey>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// An empty one, for this machine's fastest instruction set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            isa: Isa::detect(),
            weights: Vec::new(),
            lows: Vec::new(),
            tops: Vec::new(),
            histogram: Histogram::new(),
            keys: Vec::new(),
        }
    }

    /// An empty one for a given instruction set.
    ///
    /// # Errors
    /// When this machine lacks it.
    pub fn with_isa(isa: Isa) -> Result<Self, UnsupportedIsa> {
        if isa.is_available() { Ok(Self { isa, ..Self::new() }) } else { Err(UnsupportedIsa(isa)) }
    }

    /// The bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.weights.capacity() * size_of::<Weights>()
            + self.keys.capacity() * size_of::<RankKey>()
            + self.lows.capacity() * size_of::<f32>()
            + self.tops.capacity() * size_of::<f64>()
            + self.histogram.bytes()
    }

    /// The certified nucleus of one row of fp32 logits (\[vocab\]) at `p` (fp32).
    ///
    /// # Errors
    /// As [`OracleError`] says.
    pub fn nucleus(&mut self, logits: &[f32], p: f32) -> Result<Nucleus, OracleError> {
        dispatch(self.isa, NucleusOf { workspace: self, logits, p })
    }

    /// The keys of the first `count` tokens of a row (\[vocab\]) in canonical order, or of all if it has fewer.
    ///
    /// # Errors
    /// As [`OracleError`] says of logits.
    pub fn order(&mut self, logits: &[f32], count: usize) -> Result<&[RankKey], OracleError> {
        Extent::of(logits, &mut self.lows)?;
        self.rank(logits, count);
        Ok(&self.keys)
    }

    /// The weights exp(logit - max) of a row (\[vocab\]), in binary64, by token.
    ///
    /// # Errors
    /// As [`OracleError`] says of logits.
    pub fn weights(&mut self, logits: &[f32]) -> Result<&[f64], OracleError> {
        let tokens = logits.len();
        dispatch(self.isa, WeightsOf { workspace: self, logits })?;
        Ok(self.weights.as_flattened().as_flattened().get(..tokens).unwrap_or_default())
    }

    fn make_room(&mut self, tokens: usize) {
        let blocks = tokens.div_ceil(TOKENS);
        self.weights.reserve_exact(blocks.saturating_sub(self.weights.len()));
        self.weights.resize(blocks, [[0.0; 8]; VECTORS]);
    }

    /// Puts the keys of the first `count` tokens into `self.keys`, in order.
    fn rank(&mut self, logits: &[f32], count: usize) {
        self.keys.clear();
        self.keys.reserve_exact(logits.len());
        self.keys.extend(logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32)));
        if count < self.keys.len() {
            self.keys.select_nth_unstable(count);
            self.keys.truncate(count);
        }
        self.keys.sort_unstable();
    }

    /// The plain definition's steps, on the weights at hand.
    #[cold]
    fn literal(&mut self, row: &Row<'_>) -> Result<Nucleus, OracleError> {
        self.rank(row.logits, row.logits.len());
        let weights = self.weights.as_flattened().as_flattened();
        let weight = |key: &RankKey| weights.get(key.token() as usize).copied().unwrap_or(0.0);
        let scan = neumaier_boundary(self.keys.iter().map(weight), row.target);
        let ambiguous = OracleError::AmbiguousBoundary { scan: scan.map(|count| count as u32) };
        let count = scan.ok_or(ambiguous)?;
        let mut sum = ExactSum::ZERO;
        for key in self.keys.iter().take(count - 1) {
            sum.add_one(weight(key));
        }
        let prefix_before = sum.rounded();
        let boundary = *self.keys.get(count - 1).ok_or(ambiguous)?;
        sum.add_one(weight(&boundary));
        let prefix = sum.rounded();
        if prefix >= row.target && prefix_before < row.target {
            Ok(row.nucleus(count, boundary, self.keys.get(count).copied(), prefix_before, prefix))
        } else {
            Err(ambiguous)
        }
    }
}

/// What is known of a row before its boundary.
struct Row<'a> {
    logits: &'a [f32],
    max: f32,
    first: u32,
    normalizer: f64,
    target: f64,
}

impl Row<'_> {
    fn nucleus(&self, count: usize, boundary: RankKey, next: Option<RankKey>, before: f64, prefix: f64) -> Nucleus {
        Nucleus {
            count: count as u32,
            boundary,
            first: self.first,
            last_kept: boundary.token(),
            next_dropped: next.map(RankKey::token),
            max_logit: self.max,
            normalizer: self.normalizer,
            target: self.target,
            prefix,
            prefix_before: before,
        }
    }
}

struct WeightsOf<'a> {
    workspace: &'a mut Workspace,
    logits: &'a [f32],
}

impl Kernel for WeightsOf<'_> {
    type Output = Result<(), OracleError>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let max = f64::from(Extent::of(self.logits, &mut self.workspace.lows)?.max);
        self.workspace.make_room(self.logits.len());
        let blocks = self.logits.chunks(TOKENS).zip(&self.workspace.lows).zip(&mut self.workspace.weights);
        for ((logits, &low), weights) in blocks {
            exp::weigh(simd, logits, f64::from(low), max, weights);
        }
        Ok(())
    }
}

struct NucleusOf<'a> {
    workspace: &'a mut Workspace,
    logits: &'a [f32],
    p: f32,
}

impl Kernel for NucleusOf<'_> {
    type Output = Result<Nucleus, OracleError>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { workspace, logits, p } = self;
        let extent = Extent::of(logits, &mut workspace.lows)?;
        if !(p.is_finite() && 0.0 < p && p < 1.0) {
            return Err(OracleError::InvalidP { p });
        }
        let (p, max) = (f64::from(p), f64::from(extent.max));
        let mut far = Far::of(logits, max, p);
        loop {
            workspace.histogram.start(logits.len(), p);
            let (sum, far_mass) = weigh(simd, workspace, logits, max, far);
            // With nothing far, the sum is exact, and the row is settled one way or the other.
            let normalizer =
                if far.is_some() { far::rounded(&sum, far_mass, logits.len()) } else { Some(sum.rounded()) };
            if let Some(normalizer) = normalizer {
                let row = Row { logits, max: extent.max, first: extent.first, normalizer, target: p * normalizer };
                if let Some(range) = workspace.histogram.find(row.target) {
                    let head = split(simd, workspace, logits, range);
                    if let Some(nucleus) = settle(workspace, &row, far, head) {
                        return Ok(nucleus);
                    }
                }
                if far.is_none() {
                    return workspace.literal(&row);
                }
            }
            far = None;
        }
    }
}

/// A row's largest logit, and the first token that has it.
struct Extent {
    max: f32,
    first: u32,
}

impl Extent {
    #[inline(always)]
    fn of(logits: &[f32], lows: &mut Vec<f32>) -> Result<Self, OracleError> {
        if logits.is_empty() {
            return Err(OracleError::EmptyRow);
        }
        lows.clear();
        let (mut max, mut min, mut best) = (i32::MIN, i32::MAX, 0);
        for (block, logits) in logits.chunks(TOKENS).enumerate() {
            let (mut highest, mut lowest) = (i32::MIN, i32::MAX);
            for &logit in logits {
                let ordered = ordered(logit);
                highest = highest.max(ordered);
                lowest = lowest.min(ordered);
            }
            if highest > max {
                (max, best) = (highest, block);
            }
            min = min.min(lowest);
            lows.push(from_ordered(lowest));
        }
        // Infinities and NaN lie outside the finite numbers in this order.
        if max > ordered(f32::MAX) || min < ordered(f32::MIN) {
            let wrong = logits.iter().enumerate().find(|(_, logit)| !logit.is_finite());
            let (token, &logit) = wrong.unwrap_or((0, &f32::NAN));
            return Err(OracleError::NonFiniteLogit { token: token as u32, logit });
        }
        let mut from_best = logits.iter().enumerate().skip(best * TOKENS);
        let (first, &max) = from_best.find(|(_, logit)| ordered(**logit) == max).unwrap_or((0, &f32::NAN));
        Ok(Self { max, first: first as u32 })
    }
}

/// An integer that orders as the number does, -0.0 as 0.0.
#[inline(always)]
fn ordered(logit: f32) -> i32 {
    let bits = (logit + 0.0).to_bits() as i32;
    bits ^ ((bits >> 31) & i32::MAX)
}

fn from_ordered(ordered: i32) -> f32 {
    f32::from_bits((ordered ^ ((ordered >> 31) & i32::MAX)) as u32)
}

/// The weights and their histogram; returns their sum, and how much of it is far and so not exact.
#[inline(always)]
fn weigh<S: Simd>(simd: S, workspace: &mut Workspace, logits: &[f32], max: f64, far: Option<Far>) -> (ExactSum, f64) {
    workspace.make_room(logits.len());
    workspace.tops.clear();
    let (mut sum, mut far_mass, mut near) = (ExactSum::ZERO, 0.0, Near::new());
    let blocks = logits.chunks(TOKENS).zip(&workspace.lows).zip(&mut workspace.weights);
    for ((logits, &low), weights) in blocks {
        let low = f64::from(low);
        let vectors = if let (Some(far), Some(logits)) = (far, logits.as_array()) {
            let mass = far.weigh(simd, logits, max, weights, &mut near);
            far_mass += mass;
            sum.add_one(mass);
            near.padded()
        } else {
            exp::weigh(simd, logits, low, max, weights);
            weights
        };
        let top = workspace.histogram.add_block(simd, vectors);
        workspace.tops.push(top);
        sum.add_block(simd, vectors, Depth::of_exponentials(low - max, top));
    }
    (sum, far_mass)
}

/// The tokens before a range of weights.
struct Head {
    count: usize,
    sum: ExactSum,
}

/// Counts and sums the tokens before `range`, and puts the keys of those in it into `workspace.keys`.
#[inline(always)]
fn split<S: Simd>(simd: S, workspace: &mut Workspace, logits: &[f32], range: Range) -> Head {
    let Workspace { weights, tops, keys, .. } = workspace;
    keys.clear();
    let mut head = Head { count: 0, sum: ExactSum::ZERO };
    let depth = Depth::of(range.above);
    let (above, lowest) = (simd.splat(range.above), simd.splat(range.lowest));
    for (block, (weights, &top)) in weights.iter().zip(tops.iter()).enumerate() {
        if top < range.lowest {
            continue;
        }
        let (mut before, mut reached) = ([0u8; VECTORS], [0u8; VECTORS]);
        for ((weights, before), reached) in weights.iter().zip(&mut before).zip(&mut reached) {
            let weights = simd.load(weights);
            *before = simd.at_least(weights, above);
            *reached = simd.at_least(weights, lowest);
        }
        let mut any = 0;
        let words = before.as_chunks::<8>().0.iter().zip(reached.as_chunks::<8>().0);
        for (index, (before, reached)) in words.enumerate() {
            // Bit b of word w belongs to token 64 * w + b of the block.
            let before = u64::from_le_bytes(*before);
            any |= before;
            head.count += before.count_ones() as usize;
            let mut inside = u64::from_le_bytes(*reached) & !before;
            while inside != 0 {
                let token = TOKENS * block + 64 * index + inside.trailing_zeros() as usize;
                if let Some(&logit) = logits.get(token) {
                    keys.push(RankKey::new(logit, token as u32));
                }
                inside &= inside - 1;
            }
        }
        if any != 0 {
            head.sum.add_block_from(simd, weights, above, depth);
        }
    }
    head
}

/// Finds and certifies the boundary inside `range`, whose keys are at hand. None if it is not there, or if the scan
/// might not name it.
fn settle(workspace: &mut Workspace, row: &Row<'_>, far: Option<Far>, head: Head) -> Option<Nucleus> {
    let Workspace { weights, keys, .. } = workspace;
    keys.sort_unstable();
    let weights = weights.as_flattened().as_flattened();
    let weight = |key: &RankKey| weights.get(key.token() as usize).copied().unwrap_or(0.0);
    // The head's sum counts as the scan's first number, so that the scan's count is one more than the keys it takes.
    let numbers = std::iter::once(head.sum.rounded()).chain(keys.iter().map(weight));
    let taken = neumaier_boundary(numbers, row.target)?.checked_sub(2)?;
    let boundary = *keys.get(taken)?;
    let mut sum = head.sum;
    for key in keys.iter().take(taken) {
        sum.add_one(weight(key));
    }
    let before = sum.rounded();
    sum.add_one(weight(&boundary));
    let prefix = sum.rounded();
    if !scan::names_boundary(row.logits.len(), before, row.target, prefix) {
        return None;
    }
    // A far token has no weight here: it may rank before a next one that is as light. And the next one may be in the tail.
    let is_far = |key: &RankKey| {
        let logit = row.logits.get(key.token() as usize).copied().unwrap_or(row.max);
        far.is_some_and(|far| far.has(f64::from(logit) - f64::from(row.max)))
    };
    let next = keys.get(taken + 1).filter(|key| !is_far(key)).copied();
    let next = next.or_else(|| first_after(row.logits, boundary));
    Some(row.nucleus(head.count + taken + 1, boundary, next, before, prefix))
}

/// The first token, in rank order, after `boundary`.
fn first_after(logits: &[f32], boundary: RankKey) -> Option<RankKey> {
    let keys = logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32));
    keys.filter(|key| *key > boundary).min()
}
