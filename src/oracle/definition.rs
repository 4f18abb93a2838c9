//! The oracle's plain definition, step by step as the specification numbers it. Slow on purpose: every fast path is
//! held equal to it by test.

use super::{Nucleus, OracleError, RankKey};

/// The canonical order and the certified nucleus of one row of fp32 logits (\[vocab\]) at `p` (fp32).
///
/// # Errors
/// As [`OracleError`] says.
pub fn define(logits: &[f32], p: f32) -> Result<(Vec<u32>, Nucleus), OracleError> {
    if logits.is_empty() {
        return Err(OracleError::EmptyRow);
    }
    if let Some((token, &logit)) = logits.iter().enumerate().find(|(_, logit)| !logit.is_finite()) {
        return Err(OracleError::NonFiniteLogit { token: token as u32, logit });
    }
    if !(p.is_finite() && 0.0 < p && p < 1.0) {
        return Err(OracleError::InvalidP { p });
    }
    let mut keys: Vec<RankKey> =
        logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32)).collect();
    keys.sort_unstable();
    let order: Vec<u32> = keys.iter().map(|key| key.token()).collect();
    let logit_of = |token: u32| f64::from(logits.get(token as usize).copied().unwrap_or(f32::NAN));
    let max = logit_of(order.first().copied().unwrap_or(0));
    let weights: Vec<f64> = order.iter().map(|&token| core_math::exp(logit_of(token) - max)).collect();
    let normalizer = exact_sum(&weights);
    let target = f64::from(p) * normalizer;
    let Certified { count, prefix, prefix_before } = certify(&weights, target)?;
    let ambiguous = OracleError::AmbiguousBoundary { scan: Some(count as u32) };
    let (Some(&first), Some(&last), Some(&boundary)) = (order.first(), order.get(count - 1), keys.get(count - 1))
    else {
        return Err(ambiguous);
    };
    let nucleus = Nucleus {
        count: count as u32,
        boundary,
        first,
        last_kept: last,
        next_dropped: order.get(count).copied(),
        max_logit: max as f32,
        normalizer,
        target,
        prefix,
        prefix_before,
    };
    Ok((order, nucleus))
}

/// A boundary on which the scan and the exactly rounded sums agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certified {
    /// The smallest number of weights whose sum reaches the target. At least 1.
    pub count: usize,
    /// The exactly rounded sum of the first `count` weights.
    pub prefix: f64,
    /// The exactly rounded sum of the first `count - 1` weights.
    pub prefix_before: f64,
}

/// Finds the boundary of `weights` (in rank order, none negative) at `target` by one compensated scan, and certifies it
/// with exactly rounded sums.
///
/// # Errors
/// `oracle-boundary-ambiguous` when scan and sums do not agree.
pub fn certify(weights: &[f64], target: f64) -> Result<Certified, OracleError> {
    let scan = neumaier_boundary(weights.iter().copied(), target);
    let ambiguous = OracleError::AmbiguousBoundary { scan: scan.map(|count| count as u32) };
    let count = scan.ok_or(ambiguous)?;
    let prefix = exact_sum(weights.get(..count).unwrap_or_default());
    let prefix_before = exact_sum(weights.get(..count - 1).unwrap_or_default());
    if prefix >= target && prefix_before < target {
        Ok(Certified { count, prefix, prefix_before })
    } else {
        Err(ambiguous)
    }
}

/// The smallest count whose Neumaier-compensated prefix sum reaches `target`.
#[must_use]
pub fn neumaier_boundary(weights: impl IntoIterator<Item = f64>, target: f64) -> Option<usize> {
    let (mut sum, mut compensation) = (0.0f64, 0.0f64);
    for (index, weight) in weights.into_iter().enumerate() {
        let next = sum + weight;
        compensation += if sum.abs() >= weight.abs() { (sum - next) + weight } else { (weight - next) + sum };
        sum = next;
        if sum + compensation >= target {
            return Some(index + 1);
        }
    }
    None
}

/// The exactly rounded sum, by Shewchuk's growing expansion: what Python's `math.fsum` returns for finite terms whose
/// sum does not overflow.
#[must_use]
pub fn exact_sum(terms: &[f64]) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for &term in terms {
        let mut x = term;
        let mut kept = Vec::with_capacity(partials.len() + 1);
        for &y in &partials {
            let (large, small) = if x.abs() < y.abs() { (y, x) } else { (x, y) };
            let high = large + small;
            let low = small - (high - large);
            if low != 0.0 {
                kept.push(low);
            }
            x = high;
        }
        kept.push(x);
        partials = kept;
    }
    // Add from the largest down; stop at the first inexact step, and settle a half-ulp tie by the sign of what is left.
    let Some(mut high) = partials.pop() else { return 0.0 };
    while let Some(next) = partials.pop() {
        let x = high;
        high = x + next;
        let low = next - (high - x);
        if low != 0.0 {
            let same_side = partials.last().is_some_and(|&rest| (low < 0.0 && rest < 0.0) || (low > 0.0 && rest > 0.0));
            if same_side {
                let twice = low * 2.0;
                let x = high + twice;
                if twice == x - high {
                    high = x;
                }
            }
            break;
        }
    }
    high
}
