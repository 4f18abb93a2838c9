//! # prefix
//!
//! The subject's kept set is a canonical prefix of the order (logit descending, token id ascending): no token is kept while a
//! higher-ranked one is dropped. `ties="any"` accepts any choice among equal logits, for engines that document no tie order.
//!
//! ## Why
//! A hole in the kept set is a token that top-p promised and the sampler can never see. Counts cannot show it. Ties resolved
//! differently from call to call make outputs irreproducible.
//!
//! ## Example
//! Tokens 129,992 and 146,056 both have logit 9.9375; the lower id is dropped and the higher kept, because duplicates at the
//! boundary are miscounted where a slice of the row ends.
//!
//! ## Reading the numbers
//! The message names the highest-ranked dropped token and the lowest-ranked kept one; the note counts the kept tokens that lie
//! outside the canonical prefix of the same size. The boundary table centres on the hole.
//!
//! ## What to do next
//! Reproduce the row with the command in the help text. Equal logits on both sides point at how boundary duplicates are
//! counted; unequal ones at the mask itself.

use super::{quoted, Finding, Row, Rule, Strictness, SubjectRow, Verdict};
use crate::matrix::RowKind;
use crate::oracle::RankKey;
use crate::syntax::{Issue, Node, Spanned, suggest};

/// How equal logits at the boundary may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// The lower token id first.
    TokenAscending,
    /// Any choice.
    Any,
}

impl Ties {
    /// The name in a policy.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenAscending => "token-asc",
            Self::Any => "any",
        }
    }
}

/// The parameters of `prefix`.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// How equal logits at the boundary may be chosen.
    pub ties: Spanned<Ties>,
}

impl Rule for Prefix {
    const NAME: &'static str = "prefix";
    const ROWS: &'static [RowKind] = &[RowKind::Forced, RowKind::Ordinary];

    fn decode(node: &mut Node<'_>) -> Option<Self> {
        let text = node.property::<String>("ties")?;
        let ties = match text.as_str() {
            "token-asc" => Ties::TokenAscending,
            "any" => Ties::Any,
            other => {
                let mut issue = Issue::error(
                    "policy::unknown-tie-order",
                    format!("unknown tie order `{other}`"),
                    text.span,
                    "no such tie order",
                );
                issue.help = suggest(other, ["token-asc", "any"].into_iter());
                node.report(issue);
                return None;
            }
        };
        Some(Self { ties: Spanned::new(ties, text.span) })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("ties", quoted(self.ties.name()))]
    }

    fn strictness(&self, new: &Self) -> Strictness {
        match (*self.ties, *new.ties) {
            (Ties::TokenAscending, Ties::TokenAscending) | (Ties::Any, Ties::Any) => Strictness::Equal,
            (Ties::TokenAscending, Ties::Any) => Strictness::Looser,
            (Ties::Any, Ties::TokenAscending) => Strictness::Tighter,
        }
    }

    fn sentence(&self, subject: &str) -> String {
        let ties = match *self.ties {
            Ties::TokenAscending => "of equal logits the lower token id ranks first",
            Ties::Any => "of equal logits any may be chosen",
        };
        format!("{subject} keeps a prefix of the ranking, without a hole; {ties}.")
    }

    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
        let kept = &subject.output.kept;
        let is_kept = |key: &RankKey| kept.contains(key.token());
        let hole = row.keys().filter(|key| !is_kept(key)).min();
        let (Some(hole), Some(last)) = (hole, row.keys().filter(is_kept).max()) else { return Verdict::Passed };
        let logit = |key: RankKey| row.logits.get(key.token() as usize).copied();
        let below = |key: RankKey, other: RankKey| match *self.ties {
            Ties::TokenAscending => key > other,
            Ties::Any => logit(key) < logit(other),
        };
        if !below(last, hole) {
            return Verdict::Passed;
        }
        // The canonical prefix of the same size ends here.
        let mut keys: Vec<RankKey> = row.keys().collect();
        let end = (kept.count() as usize).saturating_sub(1).min(keys.len().saturating_sub(1));
        let (_, &mut end, _) = keys.select_nth_unstable(end);
        let misplaced = row.keys().filter(|key| is_kept(key) && below(*key, end)).count() as u64;
        let label = if logit(hole) == logit(last) { "equal logits, the wrong one kept" } else { "a hole in the kept set" };
        let (hole, last) = (hole.token(), last.token());
        let message = format!(
            "{} drops {} and keeps {}, which ranks below it",
            subject.name,
            row.describe(hole),
            row.describe(last)
        );
        Verdict::Violated(
            Finding::new(message, format!("token {hole} dropped, token {last} kept"), "a canonical prefix")
                .at(self.ties.span, label)
                .difference(misplaced)
                .focus(Some(hole))
                .also(last)
                .fact(format!("outside the canonical prefix of the same size: {misplaced} of {} kept tokens", kept.count())),
        )
    }
}
