//! Why evidence is not judged: it cannot be read, or it is not the frozen thing.

use super::dispatch::DispatchError;
use super::subject::SubjectError;
use crate::digest::Sha256;
use crate::fsio::FileError;
use crate::tensors::TensorError;

/// Evidence that is not judged. The two kinds have exit codes of their own (3 and 5).
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// Missing, malformed or contradicting itself.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Readable, but of other bytes than it should be of.
    #[error(transparent)]
    Drift(#[from] Drift),
}

impl EvidenceError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(Unreadable { problem, .. }) => problem.code(),
            Self::Drift(Drift { what, .. }) => what.code(),
        }
    }
}

/// A file of a bundle, or the bundle itself, that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct Unreadable {
    /// The file's name in the bundle, or the bundle's folder.
    pub file: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The folder or file cannot be read, or the bundle is larger than allowed.
    #[error("{}", .0.reason())]
    File(#[from] FileError),
    /// Something in the folder is no regular file with a plain name.
    #[error("not a regular file with a plain name: a bundle holds no folders, links or devices")]
    Entry,
    /// More files than a bundle may hold.
    #[error("more than {limit} files")]
    TooManyFiles {
        /// The most allowed.
        limit: usize,
    },
    /// A file that must be there is not.
    #[error("missing")]
    Missing,
    /// `subject.json` is no subject.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The cases listed and the files present differ.
    #[error("lists {listed} cases; without a file or listed twice: [{}]; files not listed: [{}]", missing.join(", "), extra.join(", "))]
    Cases {
        /// Cases listed.
        listed: usize,
        /// Listed without a file, or listed twice.
        missing: Vec<String>,
        /// Files that belong to no listed case.
        extra: Vec<String>,
    },
    /// The file is no safetensors file of the right tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Not exactly one of the two forms.
    #[error("holds neither `kept`, `nan` and `altered` nor `output` alone")]
    Form,
    /// A header entry is missing.
    #[error("the header has no `{key}`")]
    HeaderMissing {
        /// The entry.
        key: &'static str,
    },
    /// A header entry says another thing than the case or the inputs, or is no digest.
    #[error("the header's `{key}` is `{found}`, expected {expected}")]
    Header {
        /// The entry.
        key: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The header's dispatch is not readable.
    #[error("the header's `dispatch`: {0}")]
    Dispatch(#[from] DispatchError),
    /// A padding bit of a mask is set.
    #[error("`kept`, row {row}: the last byte is {byte:#04x}, a padding bit is set")]
    Padding {
        /// The row.
        row: usize,
        /// Its last byte.
        byte: u8,
    },
    /// A row's counts cannot be of one output.
    #[error("row {row} contradicts itself: {kept} kept, {nan} NaN, {altered} altered: {why}")]
    Row {
        /// The row.
        row: usize,
        /// Tokens kept.
        kept: u32,
        /// NaNs stated.
        nan: u32,
        /// Altered logits stated.
        altered: u32,
        /// Why they cannot be.
        why: &'static str,
    },
    /// The output rebuilt from the inputs and the masks is the recorded one, although NaNs or alterations are stated.
    #[error(
        "contradicts itself: {nan} NaN and {altered} altered logits are stated, yet the unaltered output has the recorded digest {output}"
    )]
    Rebuilt {
        /// NaNs stated in all rows.
        nan: u64,
        /// Altered logits stated in all rows.
        altered: u64,
        /// The recorded digest.
        output: Sha256,
    },
}

impl Problem {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Entry => "evidence-entry",
            Self::TooManyFiles { .. } => "evidence-too-many-files",
            Self::Missing => "evidence-missing",
            Self::Subject(_) => "evidence-subject",
            Self::Cases { .. } => "evidence-cases",
            Self::Tensor(error) => error.code(),
            Self::Form => "evidence-form",
            Self::HeaderMissing { .. } => "evidence-header-missing",
            Self::Header { .. } => "evidence-header",
            Self::Dispatch(_) => "evidence-dispatch",
            Self::Padding { .. } => "evidence-padding",
            Self::Row { .. } | Self::Rebuilt { .. } => "evidence-contradiction",
        }
    }
}

/// A digest that is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what} {found}, expected {expected}")]
pub struct Drift {
    /// The file's name in the bundle.
    pub file: String,
    /// What has the digest.
    pub what: Drifted,
    /// The digest it must have.
    pub expected: Sha256,
    /// The digest it has.
    pub found: Sha256,
}

/// What drifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Drifted {
    /// The subject saw other logits than the case's: expected are the case's, found those that the header states.
    #[error("recorded on logits of digest")]
    Logits,
    /// The subject saw another p than the case's, likewise.
    #[error("recorded on p of digest")]
    P,
    /// The output of the file, rebuilt or as recorded, is not the one that its header states (expected).
    #[error("the output has digest")]
    Output,
}

impl Drifted {
    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Logits => "drift-logits",
            Self::P => "drift-p",
            Self::Output => "drift-output",
        }
    }
}
