//! The files of a receipt: the statement itself, a test-result beside it, and envelopes of both where it is signed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::seal::{ReceiptError, open, seal};
use super::statement::{DigestSet, Statement};
use super::test_result::test_result;
use crate::digest::Sha256;
use crate::dsse::{IN_TOTO, SecretKey};
use crate::fsio::{Existing, FileError, read_bounded, write_atomic};

/// The most bytes of a receipt that are read.
pub const MAX_BYTES: u64 = 64 << 20;

/// What stands where a receipt is to be written.
#[derive(Debug)]
pub struct Earlier {
    statement: Statement,
    sha256: Sha256,
}

/// Why a receipt has no files.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no receipt.
    #[error("{}: {error}; a file that is no receipt is not replaced", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why it is none.
        error: ReceiptError,
    },
    /// It is the receipt of an earlier run of the same policy and matrix, which came to something else.
    #[error("{} is the receipt of an earlier check of this policy and matrix (exit code {exit_code}), and this check differs from it", path.display())]
    SameRun {
        /// The file.
        path: PathBuf,
        /// What the earlier run came to.
        exit_code: String,
    },
    /// It has no bytes.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
}

impl OutputError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Foreign { .. } => "receipt-foreign-file",
            Self::SameRun { .. } => "receipt-earlier-run",
            Self::Receipt(error) => error.code(),
        }
    }
}

/// The receipt that stands at `path`, or nothing where nothing does.
///
/// # Errors
/// [`OutputError::File`] or [`OutputError::Foreign`].
pub fn earlier(path: &Path) -> Result<Option<Earlier>, OutputError> {
    let bytes = match read_bounded(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match open(&bytes) {
        Ok(statement) => Ok(Some(Earlier { statement, sha256: Sha256::of(&bytes) })),
        Err(error) => Err(OutputError::Foreign { path: path.to_owned(), error }),
    }
}

/// Every file that a run leaves of its receipt, in memory.
#[derive(Debug)]
pub struct Outputs {
    /// Path and bytes; the receipt first.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Files of an earlier receipt that this one does not have.
    stale: Vec<PathBuf>,
}

impl Outputs {
    /// The files of `statement` with the receipt at `path`. An earlier receipt of the same policy and matrix is replaced
    /// only where `replace` says so, or where this one says the same: a run that did not please is not repeated until one
    /// does. Whatever is replaced is named in the new receipt.
    ///
    /// # Errors
    /// [`OutputError::SameRun`], or [`OutputError::Receipt`] where JSON fails.
    pub fn new(
        path: &Path,
        mut statement: Statement,
        earlier: Option<&Earlier>,
        replace: bool,
        key: Option<&SecretKey>,
    ) -> Result<Self, OutputError> {
        if let Some(earlier) = earlier {
            statement.predicate.replaces = earlier.statement.predicate.replaces.clone();
            let same = Sha256::of(&seal(&statement)?) == earlier.sha256;
            if !same && !replace && of_one_run(&earlier.statement, &statement) {
                let exit_code = earlier.statement.predicate.exit_code.clone();
                return Err(OutputError::SameRun { path: path.to_owned(), exit_code });
            }
            if !same {
                statement.predicate.replaces = Some(DigestSet { sha256: earlier.sha256 });
            }
        }
        let receipt = seal(&statement)?;
        let test_result = test_result(&statement).map_err(ReceiptError::Canonical)?;
        let sign = |payload: &[u8]| {
            key.map(|key| serde_json_canonicalizer::to_vec(&key.sign(IN_TOTO, payload)))
                .transpose()
                .map_err(ReceiptError::Canonical)
        };
        let signed = sign(&receipt)?;
        let signed_test_result = test_result.as_deref().map(sign).transpose()?.flatten();
        let mut outputs = Self { files: vec![(path.to_owned(), receipt)], stale: Vec::new() };
        for (suffix, bytes) in
            [("test-result.json", test_result), ("dsse.json", signed), ("test-result.dsse.json", signed_test_result)]
        {
            let beside = path.with_extension(suffix);
            match bytes {
                Some(bytes) => outputs.files.push((beside, bytes)),
                None => outputs.stale.push(beside),
            }
        }
        Ok(outputs)
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Writes every file, each whole or not at all. What stands beside an earlier receipt goes first: at no moment does
    /// a file vouch for a receipt that it was not made of.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self) -> Result<(), FileError> {
        for path in self.stale.iter().chain(self.files.iter().skip(1).map(|(path, _)| path)) {
            match fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(FileError::Io { path: path.clone(), source }),
            }
        }
        self.files.iter().try_for_each(|(path, bytes)| write_atomic(path, bytes, Existing::Replace))
    }
}

fn of_one_run(earlier: &Statement, new: &Statement) -> bool {
    let key = |statement: &Statement| {
        let bindings = &statement.predicate.bindings;
        (bindings.policy.digest.sha256, bindings.case_matrix.digest.sha256)
    };
    key(earlier) == key(new)
}
