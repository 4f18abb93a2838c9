//! The neighbourhood of a boundary: who keeps which tokens around the place where two sets part.

use crate::rules::Row;

/// Ranks shown on each side of the token that a violation is about.
const REACH: usize = 3;

/// The ranks around a token, and around the oracle's boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbourhood {
    /// Who can keep a token: the oracle, then the subjects in their order.
    pub keepers: Vec<String>,
    /// The lines, by rank. Ranks may be missing between two lines.
    pub lines: Vec<BoundaryLine>,
}

/// One rank.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundaryLine {
    /// The rank in the canonical order, from 1.
    pub rank: u32,
    /// The token id.
    pub token: u32,
    /// Its logit.
    pub logit: f32,
    /// exp(logit - max), binary64.
    pub weight: f64,
    /// The mass of this and all higher ranks divided by the target: the nucleus ends where it reaches 1.
    pub share: f64,
    /// Who keeps it, in the order of the keepers.
    pub kept: Vec<bool>,
}

/// The neighbourhood of `focus`, or of the boundary where there is no focus. `None` where the row has no nucleus.
pub(super) fn neighbourhood(row: &Row<'_>, focus: Option<u32>, also: Option<u32>) -> Option<Neighbourhood> {
    let oracle = row.oracle?;
    let nucleus = oracle.nucleus;
    let mut keys: Vec<_> = row.keys().collect();
    keys.sort_unstable();
    let rank_of = |token: u32| row.key(token).and_then(|key| keys.binary_search(&key).ok());
    let last = nucleus.count.saturating_sub(1) as usize;
    let centre = focus.and_then(rank_of).unwrap_or(last);
    let other = also.and_then(rank_of).unwrap_or(last);
    let near = |index: usize, centre: usize, reach: usize| index.abs_diff(centre) <= reach;
    let mut mass = 0.0;
    let mut lines = Vec::new();
    let end = centre.max(last).max(other) + REACH + 1;
    for (index, key) in keys.iter().enumerate().take(end) {
        let logit = row.logits.get(key.token() as usize).copied()?;
        let weight = core_math::exp(f64::from(logit) - f64::from(nucleus.max_logit));
        mass += weight;
        // Around the boundary itself two ranks are enough: the last kept and the first dropped.
        if near(index, centre, REACH) || near(index, other, 1) || index == last || index == last + 1 {
            let subjects = row.subjects.iter().map(|subject| subject.output.kept.contains(key.token()));
            lines.push(BoundaryLine {
                rank: index as u32 + 1,
                token: key.token(),
                logit,
                weight,
                share: mass / nucleus.target,
                kept: std::iter::once(oracle.kept.contains(key.token())).chain(subjects).collect(),
            });
        }
    }
    let subjects = row.subjects.iter().map(|subject| subject.name.to_owned());
    Some(Neighbourhood { keepers: std::iter::once("oracle".to_owned()).chain(subjects).collect(), lines })
}
