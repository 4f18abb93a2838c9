//! One row as the rules see it.

use crate::evidence::{KeptSet, RowEvidence};
use crate::matrix::RowKind;
use crate::oracle::{Nucleus, RankKey};

/// What the oracle says of a row, with its kept set.
#[derive(Debug, Clone)]
pub struct OracleRow {
    /// The certified nucleus.
    pub nucleus: Nucleus,
    /// The nucleus as a set.
    pub kept: KeptSet,
}

impl OracleRow {
    /// Builds the set of a nucleus: every token whose key is at most the boundary's.
    #[must_use]
    pub fn new(nucleus: Nucleus, logits: &[f32]) -> Self {
        let kept = KeptSet::from_fn(logits.len() as u32, |token| {
            logits.get(token as usize).is_some_and(|&logit| RankKey::new(logit, token) <= nucleus.boundary)
        });
        Self { nucleus, kept }
    }
}

/// One subject's output on a row.
#[derive(Debug, Clone, Copy)]
pub struct SubjectRow<'a> {
    /// The subject's name.
    pub name: &'a str,
    /// What it returned.
    pub output: &'a RowEvidence,
    /// The dispatch path it took in this case.
    pub dispatch: &'a str,
}

/// One row: its input, the oracle's answer and every subject's output.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// How the row is judged.
    pub kind: RowKind,
    /// The input logits, fp32 \[vocab\].
    pub logits: &'a [f32],
    /// The oracle's answer; none for a disabled row.
    pub oracle: Option<&'a OracleRow>,
    /// The forced token of a forced row.
    pub forced: Option<u32>,
    /// Every declared subject.
    pub subjects: &'a [SubjectRow<'a>],
}

impl Row<'_> {
    /// The subject of that name.
    #[must_use]
    pub fn subject(&self, name: &str) -> Option<&SubjectRow<'_>> {
        self.subjects.iter().find(|subject| subject.name == name)
    }

    /// The rank key of a token of this row.
    #[must_use]
    pub fn key(&self, token: u32) -> Option<RankKey> {
        self.logits.get(token as usize).map(|&logit| RankKey::new(logit, token))
    }

    /// All rank keys, in token order.
    pub fn keys(&self) -> impl Iterator<Item = RankKey> + Clone + '_ {
        self.logits.iter().enumerate().map(|(token, &logit)| RankKey::new(logit, token as u32))
    }

    /// The highest-ranked token on which two sets differ.
    #[must_use]
    pub fn first_difference(&self, left: &KeptSet, right: &KeptSet) -> Option<u32> {
        let differs = |key: &RankKey| left.contains(key.token()) != right.contains(key.token());
        self.keys().filter(differs).min().map(RankKey::token)
    }

    /// "token 17 (logit 9.9375)".
    #[must_use]
    pub fn describe(&self, token: u32) -> String {
        match self.logits.get(token as usize) {
            Some(logit) => format!("token {token} (logit {logit:?})"),
            None => format!("token {token}"),
        }
    }
}
