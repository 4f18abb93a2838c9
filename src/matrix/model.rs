//! A matrix as types. Every part keeps its place in the file.

use std::collections::BTreeSet;

use miette::SourceSpan;

use super::Expectation;
use crate::digest::Sha256;
use crate::inputs::{Force, Recipe};
use crate::syntax::{Issue, Source, Spanned};

/// The most rows that one case may declare.
pub const MAX_ROWS: u32 = 65_536;

/// The codes of the rejections that a probe may expect: those of [`crate::oracle::OracleError::code`].
pub const REJECTIONS: [&str; 4] = ["empty-row", "non-finite-logit", "invalid-p", "oracle-boundary-ambiguous"];

/// A decoded matrix.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The file.
    pub source: Source,
    /// Its name.
    pub name: Spanned<String>,
    /// The kernels compared, in the order of the file.
    pub subjects: Vec<SubjectSpec>,
    /// The cases, in the order of the file. Never empty.
    pub cases: Vec<Case>,
}

/// A kernel build: where its evidence lies and what pins it.
#[derive(Debug, Clone)]
pub struct SubjectSpec {
    /// The name that the policy uses.
    pub name: Spanned<String>,
    /// Where its head stands.
    pub span: SourceSpan,
    /// The folder of its evidence, relative to the project root.
    pub bundle: Spanned<String>,
    /// The digest of that folder's listing.
    pub bundle_sha256: Spanned<Sha256>,
    /// The digest of the patch that made it, where it is a patched build.
    pub patch_sha256: Option<Spanned<Sha256>>,
    /// The kernel sources it was built from.
    pub sources: Vec<SourcePin>,
}

/// One pinned source file of an engine. The file is not shipped: the pin is compared with what the evidence says.
#[derive(Debug, Clone)]
pub struct SourcePin {
    /// The file's path in its engine.
    pub path: Spanned<String>,
    /// Its digest.
    pub sha256: Spanned<Sha256>,
}

/// What a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// The full contract, on every row.
    Ordinary,
    /// One token a row is set far above the rest.
    Forced,
    /// A boundary input whose violations or rejections are declared.
    Probe,
}

/// What a row is judged as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// One token is set far above the rest.
    Forced,
    /// The full contract.
    Ordinary,
    /// The ordinary rules, against the declared outcomes.
    Probe,
    /// Top-p is switched off: p >= 1.
    Disabled,
}

impl RowKind {
    /// Its name in policies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::Ordinary => "ordinary",
            Self::Probe => "probe",
            Self::Disabled => "disabled",
        }
    }
}

/// One batch of rows.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name; in a bundle, its file's stem.
    pub name: Spanned<String>,
    /// Where its head stands: `case "…" kind="…"`.
    pub span: SourceSpan,
    /// What it is for.
    pub kind: Spanned<CaseKind>,
    /// Where its inputs come from.
    pub origin: Origin,
    /// The rows whose p is >= 1.
    pub disabled: Vec<Spanned<u32>>,
    /// The digests of its inputs.
    pub input: InputPins,
    /// What a probe must show. Empty in any other case.
    pub expectations: Vec<Expectation>,
}

/// Where a case's inputs come from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Computed, bit for bit the same everywhere.
    Generated {
        /// How the logits are drawn.
        recipe: Recipe,
        /// One value a row, already repeated by `times`.
        p: Vec<Spanned<f32>>,
        /// The tokens set far above the rest. Each names its logit.
        forces: Vec<ForceSpec>,
    },
    /// A safetensors file in the project.
    File {
        /// Relative to the project root.
        path: Spanned<String>,
        /// The digest of the whole file.
        sha256: Spanned<Sha256>,
        /// The tokens that the file's logits already set far above the rest. None names a logit.
        forces: Vec<ForceSpec>,
    },
}

/// One forced token.
#[derive(Debug, Clone)]
pub struct ForceSpec {
    /// The row.
    pub row: Spanned<u32>,
    /// The token.
    pub token: Spanned<u32>,
    /// The logit it is set to, in a generated case; a file's logits already hold it.
    pub logit: Option<Spanned<f32>>,
    /// Where its line stands.
    pub span: SourceSpan,
}

/// The digests that a case's inputs must have.
#[derive(Debug, Clone)]
pub struct InputPins {
    /// Of the logits' little-endian, row-major binary32 bytes.
    pub logits_sha256: Spanned<Sha256>,
    /// Of p's little-endian binary32 bytes.
    pub p_sha256: Spanned<Sha256>,
}

impl Case {
    /// What the row is judged as.
    #[must_use]
    pub fn row_kind(&self, row: u32) -> RowKind {
        if self.disabled.iter().any(|disabled| disabled.value == row) {
            return RowKind::Disabled;
        }
        match self.kind.value {
            CaseKind::Ordinary => RowKind::Ordinary,
            CaseKind::Forced => RowKind::Forced,
            CaseKind::Probe => RowKind::Probe,
        }
    }

    /// The code of the rejection that the row must meet, if it must meet one.
    #[must_use]
    pub fn rejection_expected(&self, row: u32) -> Option<&str> {
        self.expectations.iter().find_map(|expectation| match expectation {
            Expectation::Reject { code, .. } if expectation.covers(row) => Some(code.value.as_str()),
            Expectation::Reject { .. } | Expectation::Violation { .. } | Expectation::Accept { .. } => None,
        })
    }

    /// Whether the rule with this id must be violated on the row.
    #[must_use]
    pub fn expects_violation(&self, rule_id: &str, row: u32) -> bool {
        self.expectations.iter().any(|expectation| match expectation {
            Expectation::Violation { rule, .. } => rule.value == rule_id && expectation.covers(row),
            Expectation::Reject { .. } | Expectation::Accept { .. } => false,
        })
    }

    /// Every forced token of the case.
    #[must_use]
    pub fn forces(&self) -> &[ForceSpec] {
        match &self.origin {
            Origin::Generated { forces, .. } | Origin::File { forces, .. } => forces,
        }
    }

    /// The logits that a generated case overwrites; empty for a file, whose logits already hold them.
    #[must_use]
    pub fn generated_forces(&self) -> Vec<Force> {
        let written = |force: &ForceSpec| {
            Some(Force { row: force.row.value, token: force.token.value, logit: force.logit?.value })
        };
        self.forces().iter().filter_map(written).collect()
    }

    /// The row's forced token, if it has one.
    #[must_use]
    pub fn force_of(&self, row: u32) -> Option<&ForceSpec> {
        self.forces().iter().find(|force| force.row.value == row)
    }

    /// What the case declares that its inputs do not bear out: rows and tokens that do not exist, disabled rows whose p
    /// (\[batch\], fp32) is below 1, forced rows without their token. A generated case is checked when it is read, a file
    /// once its shape is known.
    #[must_use]
    pub fn misfits(&self, p: &[f32], vocab: usize) -> Vec<Issue> {
        let batch = u32::try_from(p.len()).unwrap_or(u32::MAX);
        let mut issues = Vec::new();
        let named_rows = self.forces().iter().map(|force| force.row);
        let expected_rows = self.expectations.iter().flat_map(Expectation::rows).copied();
        for row in named_rows.chain(self.disabled.iter().copied()).chain(expected_rows) {
            if row.value >= batch {
                let message = format!("row {} is not one of the {batch} rows of case `{}`", row.value, self.name.value);
                let label = format!("rows are 0 to {}", batch.saturating_sub(1));
                issues.push(
                    Issue::error("matrix::row-out-of-range", message, row.span, label).and(self.span, "the case"),
                );
            }
        }
        for token in self.forces().iter().map(|force| force.token).filter(|token| token.value as usize >= vocab) {
            let message = format!("token {} is outside the vocabulary of case `{}`", token.value, self.name.value);
            let label = format!("tokens are 0 to {}", vocab.saturating_sub(1));
            issues.push(
                Issue::error("matrix::token-out-of-range", message, token.span, label).and(self.span, "the case"),
            );
        }
        for row in &self.disabled {
            if let Some(p) = p.get(row.value as usize).filter(|p| p.is_nan() || **p < 1.0) {
                let message = format!("row {} is declared disabled, but its p is {p}", row.value);
                let issue = Issue::error("matrix::not-disabled", message, row.span, "p is below 1 here");
                issues.push(issue.help("a disabled row has p >= 1: top-p is switched off"));
            }
        }
        issues.extend(self.unforced(batch));
        issues
    }

    fn unforced(&self, batch: u32) -> Option<Issue> {
        if self.kind.value != CaseKind::Forced {
            return None;
        }
        let disabled = self.disabled.iter().map(|row| row.value);
        let accounted: BTreeSet<u32> = self.forces().iter().map(|force| force.row.value).chain(disabled).collect();
        let mut missing = (0..batch).filter(|row| !accounted.contains(row)).map(|row| row.to_string());
        let named: Vec<String> = missing.by_ref().take(8).collect();
        let first = named.first()?;
        let more = match missing.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let rows = named.join(", ");
        let message = format!("case `{}` is forced, but no token is forced in row {rows}{more}", self.name.value);
        let issue = Issue::error("matrix::row-without-force", message, self.span, "declared forced here");
        Some(issue.help(format!("add `force row={first} token=… logit=…` (in a file case without `logit=`)")))
    }
}
