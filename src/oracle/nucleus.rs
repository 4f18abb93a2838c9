//! What the oracle says of a row.

use super::RankKey;

/// The certified nucleus of one row. All weights and sums are unnormalized: exp(logit - max), in binary64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nucleus {
    /// Tokens in the nucleus: the smallest number whose mass reaches the target. At least 1.
    pub count: u32,
    /// The rank key of the last token kept. The oracle's set is exactly the tokens whose key is at most this.
    pub boundary: RankKey,
    /// The highest-ranked token.
    pub first: u32,
    /// The lowest-ranked token of the nucleus.
    pub last_kept: u32,
    /// The highest-ranked token outside the nucleus, unless the nucleus is the whole row.
    pub next_dropped: Option<u32>,
    /// The largest logit.
    pub max_logit: f32,
    /// The exactly rounded sum of all weights.
    pub normalizer: f64,
    /// p * normalizer, rounded once.
    pub target: f64,
    /// The exactly rounded mass of the nucleus: at least the target.
    pub prefix: f64,
    /// The exactly rounded mass without the last token (0 for one token): below the target.
    pub prefix_before: f64,
}

/// Why a row has no certified nucleus.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OracleError {
    /// The row has no tokens.
    #[error("the row is empty")]
    EmptyRow,
    /// A logit is NaN or infinite.
    #[error("the logit of token {token} is {logit}, which is not finite")]
    NonFiniteLogit {
        /// The first such token.
        token: u32,
        /// Its logit.
        logit: f32,
    },
    /// p is not finite or not inside (0, 1).
    #[error("p is {p}, which is not inside the open interval (0, 1)")]
    InvalidP {
        /// The fp32 value.
        p: f32,
    },
    /// The scan and the exactly rounded sums do not certify one boundary.
    #[error("the boundary is ambiguous: the scan names {scan:?} tokens and the exact sums do not certify it")]
    AmbiguousBoundary {
        /// The count that the scan named, if it reached the target at all.
        scan: Option<u32>,
    },
}

impl OracleError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyRow => "empty-row",
            Self::NonFiniteLogit { .. } => "non-finite-logit",
            Self::InvalidP { .. } => "invalid-p",
            Self::AmbiguousBoundary { .. } => "oracle-boundary-ambiguous",
        }
    }
}
