//! The split top-p algorithm in fp32: statistics, up to five rounds of eight pivots, mask. Written from the published
//! facts of the kernel, with a reduction order of its own (`lanes`).

use super::lanes;
use crate::kernels::numerics::{exp32, log32};

/// Pivots a round.
pub const PIVOTS: usize = 8;
/// Rounds at most.
pub const ROUNDS: usize = 5;
/// Probabilities this close count as the same.
pub const TIE_BAND: f32 = 1e-9;
/// Tokens a tile of the statistics and of the mask.
pub const TILE: usize = 8192;
/// Slices a row at most.
pub const MAX_SLICES: usize = 32;

/// Which of the two masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Compares logits with a threshold rebuilt from the pivot; forgets the running count of duplicates between tiles.
    Stock,
    /// Compares probabilities, always keeps a maximum, carries the count.
    Patch,
}

/// Slices a row of `batch` rows on a device of `multiprocessors`.
#[must_use]
pub fn slices(batch: usize, multiprocessors: usize) -> usize {
    let mut slices = 1;
    while slices < MAX_SLICES && slices * 2 * batch <= multiprocessors {
        slices *= 2;
    }
    slices
}

/// Masks one row of `logits` (\[vocab\]) into `output` (\[vocab\]): the logit where kept, -inf elsewhere.
pub fn mask_row(variant: Variant, slices: usize, logits: &[f32], p: f32, output: &mut [f32]) {
    output.copy_from_slice(logits);
    if p >= 1.0 {
        return;
    }
    let slice = logits.len().div_ceil(slices).max(1);
    let Statistics { max, normalizer, min } = statistics(logits, slice);
    let probabilities: Vec<f32> = logits.iter().map(|&logit| exp32(logit - max) / normalizer).collect();
    let bracket = Bracket { low: (exp32(min - max) / normalizer).max(1e-30), high: 1.0 / normalizer };
    let Some(cut) = search(&probabilities, slice, bracket, p) else { return };
    if cut.pivot * normalizer >= 1.0 {
        return;
    }
    let threshold = log32(cut.pivot) + log32(normalizer) + max;
    let above = |token: usize, probability: f32| {
        let logit = logits.get(token).copied().unwrap_or(f32::NEG_INFINITY);
        match variant {
            Variant::Stock => logit > threshold,
            Variant::Patch => probability > cut.pivot || logit == max,
        }
    };
    let rows = output.chunks_mut(slice).zip(probabilities.chunks(slice)).enumerate();
    for (number, (output, probabilities)) in rows {
        let mut duplicates = cut.before.get(number).copied().unwrap_or(0);
        for (tile, (output, probabilities)) in output.chunks_mut(TILE).zip(probabilities.chunks(TILE)).enumerate() {
            if variant == Variant::Stock {
                duplicates = cut.before.get(number).copied().unwrap_or(0);
            }
            for (index, (output, &probability)) in output.iter_mut().zip(probabilities).enumerate() {
                let mut keep = above(number * slice + tile * TILE + index, probability);
                if keep && probability == cut.smallest {
                    keep = duplicates < cut.duplicates_kept;
                    duplicates += 1;
                }
                if !keep {
                    *output = f32::NEG_INFINITY;
                }
            }
        }
    }
}

struct Statistics {
    max: f32,
    normalizer: f32,
    min: f32,
}

/// Maximum, normalizer and smallest finite logit, slice by slice, tile by tile.
fn statistics(logits: &[f32], slice: usize) -> Statistics {
    let slices: Vec<(f32, f32, f32)> = logits
        .chunks(slice)
        .map(|logits| {
            let (mut max, mut sum, mut min) = (f32::NEG_INFINITY, 0.0f32, f32::INFINITY);
            for tile in logits.chunks(TILE) {
                let present = || tile.iter().copied().filter(|&logit| logit != f32::NEG_INFINITY);
                let tile_max = present().fold(f32::NEG_INFINITY, f32::max);
                min = present().fold(min, f32::min);
                let new_max = max.max(tile_max);
                if new_max == f32::NEG_INFINITY {
                    continue;
                }
                let tile_sum = lanes::strided_sum(tile.iter().map(|&logit| exp32(logit - new_max)));
                sum = sum * exp32(max - new_max) + tile_sum;
                max = new_max;
            }
            (max, sum, min)
        })
        .collect();
    let max = slices.iter().fold(f32::NEG_INFINITY, |max, slice| max.max(slice.0));
    let min = slices.iter().fold(f32::INFINITY, |min, slice| min.min(slice.2));
    let present = slices.iter().filter(|slice| slice.0 != f32::NEG_INFINITY);
    let normalizer = present.fold(0.0f32, |sum, slice| sum + slice.1 * exp32(slice.0 - max));
    Statistics { max, normalizer, min }
}

#[derive(Clone, Copy)]
struct Bracket {
    low: f32,
    high: f32,
}

/// Where to cut.
struct Cut {
    pivot: f32,
    /// The smallest probability above the pivot.
    smallest: f32,
    /// How many of the tokens at that probability stay.
    duplicates_kept: u32,
    /// How many of them lie in the slices before each slice.
    before: Vec<u32>,
}

/// What a pivot leaves above it.
#[derive(Debug, Clone, Copy)]
struct Probe {
    mass: f32,
    smallest: f32,
    count: u32,
}

/// The cut, or none where the whole row is kept.
fn search(probabilities: &[f32], slice: usize, bracket: Bracket, p: f32) -> Option<Cut> {
    let Bracket { mut low, mut high } = bracket;
    if high <= low * (1.0 + 1e-6) {
        return None;
    }
    let mut best: Option<Cut> = None;
    for _round in 0..ROUNDS {
        let step = log32(high / low);
        let base = low;
        let (mut next_low, mut next_high) = (low, high);
        let mut right = None;
        // From the lowest pivot up: masses fall, so the last that reaches p is the highest.
        for number in 0..PIVOTS {
            let pivot = base * exp32(step * ((number + 1) as f32) / 9.0);
            let slices: Vec<Probe> = probabilities.chunks(slice).map(|slice| probe(slice, pivot)).collect();
            let whole = combine(&slices);
            if whole.mass >= p {
                let cut = cut(pivot, whole, &slices, p);
                if whole.mass - whole.smallest * (whole.count as f32) < p {
                    right = Some(cut);
                } else {
                    if best.as_ref().is_none_or(|best| pivot > best.pivot) {
                        best = Some(Cut { duplicates_kept: u32::MAX, ..cut });
                    }
                    next_low = next_low.max(pivot);
                }
            } else {
                next_high = next_high.min(pivot);
            }
        }
        if right.is_some() {
            return right;
        }
        (low, high) = (next_low, next_high);
        if high <= low * (1.0 + 1e-7) {
            break;
        }
    }
    best
}

/// The mass of `probabilities` above `pivot`, the smallest of them, and how many lie within the tie band of it.
fn probe(probabilities: &[f32], pivot: f32) -> Probe {
    let above = |probability: f32| probability > pivot;
    let mass = lanes::strided_sum(probabilities.iter().map(|&q| if above(q) { q } else { 0.0 }));
    let smallest = probabilities.iter().copied().filter(|&q| above(q)).fold(f32::INFINITY, f32::min);
    let count = probabilities.iter().filter(|&&q| above(q) && (q - smallest).abs() <= TIE_BAND).count() as u32;
    Probe { mass, smallest, count }
}

fn in_band(slice: &Probe, smallest: f32) -> bool {
    slice.count > 0 && (slice.smallest - smallest).abs() <= TIE_BAND
}

fn combine(slices: &[Probe]) -> Probe {
    let mass = slices.iter().fold(0.0, |mass, slice| mass + slice.mass);
    let smallest = slices.iter().fold(f32::INFINITY, |smallest, slice| smallest.min(slice.smallest));
    let count = slices.iter().filter(|slice| in_band(slice, smallest)).map(|slice| slice.count).sum();
    Probe { mass, smallest, count }
}

fn cut(pivot: f32, whole: Probe, slices: &[Probe], p: f32) -> Cut {
    let Probe { mass, smallest, count } = whole;
    let surplus = ((mass - p).max(0.0) / smallest).floor();
    let duplicates_kept = (count as f32 - surplus).max(1.0).min(count as f32) as u32;
    let counts = slices.iter().map(|slice| if in_band(slice, smallest) { slice.count } else { 0 });
    let before = counts
        .scan(0, |total, count| {
            let before = *total;
            *total += count;
            Some(before)
        })
        .collect();
    Cut { pivot, smallest, duplicates_kept, before }
}
