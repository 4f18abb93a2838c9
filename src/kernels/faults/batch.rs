//! What a model kernel is given and what it returns.

use std::sync::{Arc, OnceLock};

use crate::oracle::{Nucleus, RankKey, nucleus};

/// A batch of rows, with what several model kernels need of a row computed once.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    vocab: usize,
    rows: Vec<Arc<Entry<'a>>>,
}

#[derive(Debug)]
struct Entry<'a> {
    logits: &'a [f32],
    p: f32,
    ranked: OnceLock<Option<Ranked>>,
    nucleus: OnceLock<Option<Nucleus>>,
}

/// One row in rank order, in binary64.
#[derive(Debug)]
struct Ranked {
    order: Vec<u32>,
    /// exp(logit - max), in rank order.
    weights: Vec<f64>,
    normalizer: f64,
}

/// What a model kernel returns: the masked logits (fp32, \[batch, vocab\], row-major) and, where it left the path under
/// test, the name of the path it took instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The logits where kept, -inf elsewhere.
    pub logits: Vec<f32>,
    /// The other path.
    pub path: Option<&'static str>,
}

impl<'a> Batch<'a> {
    /// A batch of `p.len()` rows (\[batch\], fp32) of `vocab` logits each (`logits`: fp32, \[batch, vocab\], row-major).
    #[must_use]
    pub fn new(logits: &'a [f32], vocab: usize, p: &'a [f32]) -> Self {
        let rows = logits
            .chunks_exact(vocab.max(1))
            .zip(p)
            .map(|(logits, &p)| Arc::new(Entry { logits, p, ranked: OnceLock::new(), nucleus: OnceLock::new() }));
        Self { vocab, rows: rows.collect() }
    }

    /// The batch of these rows of this one, in this order. What is known of a row stays known.
    #[must_use]
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let rows = rows.into_iter().filter_map(|row| self.rows.get(row).cloned());
        Self { vocab: self.vocab, rows: rows.collect() }
    }

    /// Tokens a row.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// p of every row.
    #[must_use]
    pub fn p(&self) -> Vec<f32> {
        self.rows.iter().map(|row| row.p).collect()
    }

    /// The logits of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [f32] {
        self.rows.get(row).map_or(&[], |row| row.logits)
    }

    /// The rows that a kernel has to mask. Others are returned as they are: p >= 1 switches top-p off, and a row whose
    /// logits are not all finite has no right answer.
    pub fn live(&self) -> impl Iterator<Item = Row<'_>> {
        self.ranked(|p| p < 1.0)
    }

    /// The rows with p >= 1.
    pub fn disabled(&self) -> impl Iterator<Item = Row<'_>> {
        self.ranked(|p| p >= 1.0)
    }

    fn ranked(&self, wanted: impl Fn(f32) -> bool) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().enumerate().filter(move |(_, entry)| wanted(entry.p)).filter_map(|(index, entry)| {
            let ranked = entry.ranked.get_or_init(|| Ranked::new(entry.logits)).as_ref()?;
            Some(Row { index, logits: entry.logits, p: entry.p, ranked, nucleus: &entry.nucleus })
        })
    }

    /// The input unchanged, to be masked row by row.
    #[must_use]
    pub fn untouched(&self) -> Output {
        let rows: Vec<&[f32]> = self.rows.iter().map(|row| row.logits).collect();
        Output { logits: rows.concat(), path: None }
    }

    /// Masks every live row: `keep` says how many tokens of the canonical order stay.
    pub fn prefix(&self, keep: impl Fn(&Row<'_>) -> usize) -> Output {
        let mut output = self.untouched();
        for row in self.live() {
            output.mask(&row, row.order().get(keep(&row)..).unwrap_or_default());
        }
        output
    }

    /// Masks every live row: `keep` says which tokens stay.
    pub fn filter(&self, keep: impl Fn(&Row<'_>, u32) -> bool) -> Output {
        let mut output = self.untouched();
        for row in self.live() {
            let dropped: Vec<u32> = row.order().iter().copied().filter(|token| !keep(&row, *token)).collect();
            output.mask(&row, &dropped);
        }
        output
    }
}

impl Output {
    /// Masks tokens of a row.
    pub fn mask(&mut self, row: &Row<'_>, tokens: &[u32]) {
        self.write(row, tokens, f32::NEG_INFINITY);
    }

    /// Writes a value to tokens of a row.
    pub fn write(&mut self, row: &Row<'_>, tokens: &[u32], value: f32) {
        let Some(slice) = self.row_mut(row.index, row.logits.len()) else { return };
        for &token in tokens {
            if let Some(slot) = slice.get_mut(token as usize) {
                *slot = value;
            }
        }
    }

    /// One row of the output.
    pub fn row_mut(&mut self, row: usize, vocab: usize) -> Option<&mut [f32]> {
        self.logits.get_mut(row * vocab..(row + 1) * vocab)
    }
}

impl Ranked {
    fn new(logits: &[f32]) -> Option<Self> {
        if logits.is_empty() || !logits.iter().all(|logit| logit.is_finite()) {
            return None;
        }
        let mut keys: Vec<RankKey> =
            logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32)).collect();
        keys.sort_unstable();
        let order: Vec<u32> = keys.into_iter().map(RankKey::token).collect();
        let logit = |token: u32| f64::from(logits.get(token as usize).copied().unwrap_or(f32::NAN));
        let max = logit(order.first().copied()?);
        let weights: Vec<f64> = order.iter().map(|&token| (logit(token) - max).exp()).collect();
        let normalizer = weights.iter().sum();
        Some(Self { order, weights, normalizer })
    }
}

/// One row of a batch, in rank order.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its number.
    pub index: usize,
    /// Its logits, fp32 \[vocab\].
    pub logits: &'a [f32],
    /// Its p.
    pub p: f32,
    ranked: &'a Ranked,
    nucleus: &'a OnceLock<Option<Nucleus>>,
}

impl<'a> Row<'a> {
    /// The tokens in canonical order.
    #[must_use]
    pub fn order(&self) -> &'a [u32] {
        &self.ranked.order
    }

    /// The logit of a token.
    #[must_use]
    pub fn logit(&self, token: u32) -> f32 {
        self.logits.get(token as usize).copied().unwrap_or(f32::NAN)
    }

    /// The weights exp(logit - max) in canonical order.
    #[must_use]
    pub fn weights(&self) -> &'a [f64] {
        &self.ranked.weights
    }

    /// The sum of the weights.
    #[must_use]
    pub fn normalizer(&self) -> f64 {
        self.ranked.normalizer
    }

    /// The probabilities in canonical order, each rounded to fp32.
    pub fn probabilities(&self) -> impl DoubleEndedIterator<Item = f32> + ExactSizeIterator + 'a {
        let normalizer = self.ranked.normalizer;
        self.ranked.weights.iter().map(move |weight| (weight / normalizer) as f32)
    }

    /// The oracle's count for the row; all tokens where it certifies none.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nucleus().map_or(self.logits.len(), |nucleus| nucleus.count as usize)
    }

    /// The certified nucleus, where the oracle certifies one.
    #[must_use]
    pub fn nucleus(&self) -> Option<&'a Nucleus> {
        self.nucleus.get_or_init(|| nucleus(self.logits, self.p).ok()).as_ref()
    }

    /// The count at another p, by a plain binary64 sum: near enough for a model of a fault.
    #[must_use]
    pub fn count_at(&self, p: f64) -> usize {
        let target = p * self.ranked.normalizer;
        let mut sum = 0.0;
        let reached = self.ranked.weights.iter().position(|weight| {
            sum += weight;
            sum >= target
        });
        reached.map_or(self.logits.len(), |index| index + 1)
    }

    /// The largest logit.
    #[must_use]
    pub fn max(&self) -> f32 {
        self.order().first().map_or(f32::NAN, |token| self.logit(*token))
    }

    /// The logit of the last token of the oracle's set.
    #[must_use]
    pub fn boundary_logit(&self) -> f32 {
        self.order().get(self.count() - 1).map_or(f32::NAN, |token| self.logit(*token))
    }
}
