//! What a policy says.

use miette::SourceSpan;

use crate::matrix::RowKind;
use crate::rules::{Check, CountEnvelope};
use crate::syntax::{Issues, Source, Spanned};

/// A decoded policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The file. Its SHA-256 is the policy's identity.
    pub source: Source,
    /// The policy's name.
    pub name: Spanned<String>,
    /// What a run may use.
    pub limits: Limits,
    /// What the evidence must be.
    pub evidence: EvidenceSpec,
    /// The rules, a block a row kind.
    pub blocks: Vec<RuleBlock>,
    /// What is reported beside the verdict.
    pub reports: Vec<ReportItem>,
}

impl Policy {
    /// Decodes a policy.
    ///
    /// # Errors
    /// Every issue of the file at once.
    pub fn read(source: Source) -> Result<Self, Issues> {
        super::decode::read(source)
    }

    /// The rules that judge a row kind. Probe rows are judged by the ordinary rules.
    #[must_use]
    pub fn rules_for(&self, kind: RowKind) -> &[RuleSpec] {
        let judged_as = match kind {
            RowKind::Probe | RowKind::Ordinary => RowKind::Ordinary,
            RowKind::Forced => RowKind::Forced,
            RowKind::Disabled => RowKind::Disabled,
        };
        self.blocks.iter().find(|block| *block.kind == judged_as).map_or(&[], |block| &block.rules)
    }

    /// Every rule, in the order of the file.
    pub fn rules(&self) -> impl Iterator<Item = &RuleSpec> {
        self.blocks.iter().flat_map(|block| &block.rules)
    }
}

/// What a run may use. Frozen with the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest vocabulary, in tokens.
    pub max_vocab: Spanned<u32>,
    /// The largest batch, in rows.
    pub max_batch: Spanned<u32>,
    /// The wall-clock time of a run, in seconds.
    pub timeout_seconds: Spanned<u32>,
    /// The bytes of all files that a run writes; also the bytes of a bundle that it reads.
    pub max_artifact_bytes: Spanned<u64>,
}

/// What the evidence must be before anything is judged.
#[derive(Debug, Clone)]
pub struct EvidenceSpec {
    /// The subjects, in the order of the report.
    pub subjects: Vec<Spanned<String>>,
    /// Source and patch hashes must be the matrix's.
    pub pinned_sources: bool,
    /// The dispatch path that every subject must have taken in every case.
    pub dispatch: Option<Spanned<String>>,
}

/// The rules of one row kind.
#[derive(Debug, Clone)]
pub struct RuleBlock {
    /// The row kind.
    pub kind: Spanned<RowKind>,
    /// The rules; one that `requires` another stands after it.
    pub rules: Vec<RuleSpec>,
}

/// One rule of a policy.
#[derive(Debug, Clone)]
pub struct RuleSpec {
    /// The id: the kind, unless `id` names it. Unique in the policy.
    pub id: Spanned<String>,
    /// The whole line.
    pub span: SourceSpan,
    /// The subject that is judged.
    pub subject: Spanned<String>,
    /// The rule that must have passed on the same row.
    pub requires: Option<Spanned<String>>,
    /// The dispatch path on which the rule applies.
    pub on_dispatch: Option<Spanned<String>>,
    /// The kind and its parameters.
    pub check: Check,
}

/// One item of the report.
#[derive(Debug, Clone)]
pub struct ReportItem {
    /// The id: the kind, unless `id` names it.
    pub id: Spanned<String>,
    /// The whole line.
    pub span: SourceSpan,
    /// The subject it is about.
    pub subject: Spanned<String>,
    /// What it says.
    pub kind: ReportKind,
}

/// The kinds of report item.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportKind {
    /// On how many forced rows the subject drops the forced token or masks the row. With `deny`, 0 is a violation.
    ReproducesFault {
        /// Whether 0 is a violation.
        deny: Option<Spanned<bool>>,
    },
    /// On how many rows the kept set is the oracle's.
    MaskEquality,
    /// On how many rows dropping the lowest-priority kept token takes the reference prefix below p.
    Minimality,
    /// The upstream test's own envelope, case by case over ordinary and forced rows.
    UpstreamEnvelope(CountEnvelope),
}

impl ReportKind {
    /// The names in a policy.
    pub const NAMES: [&'static str; 4] = ["reproduces-fault", "mask-equality", "minimality", "upstream-envelope"];

    /// The name in a policy.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReproducesFault { .. } => "reproduces-fault",
            Self::MaskEquality => "mask-equality",
            Self::Minimality => "minimality",
            Self::UpstreamEnvelope(_) => "upstream-envelope",
        }
    }
}
