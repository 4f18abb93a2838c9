//! The files of a receipt: the statement itself, a test-result beside it, and envelopes of both where it is signed.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::seal::{ReceiptError, open, seal};
use super::statement::{DigestSet, STATEMENT_TYPE, Statement};
use super::test_result::{PREDICATE_TYPE, test_result};
use crate::digest::Sha256;
use crate::dsse::{Envelope, IN_TOTO, SecretKey};
use crate::fsio::{Existing, FileError, Hold, Whole, folder, read_bounded};
use crate::json;

/// The most bytes of a receipt that are read.
pub const MAX_BYTES: u64 = 64 << 20;

/// How long a call waits for another one that writes into the same folder, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_millis(20);
const LOCK_WAITS: u32 = 500;

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
    /// A file beside the receipt is not one that belongs to it.
    #[error("{}: {why}; it is not replaced", path.display())]
    Beside {
        /// The file.
        path: PathBuf,
        /// What it is, or is not.
        why: &'static str,
    },
    /// What stands there is not what stood there when the run began.
    #[error("{} was written or removed by another call while this one ran", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Something holds the folder.
    #[error("{} is locked by another process", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
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
            Self::Foreign { .. } | Self::Beside { .. } => "receipt-foreign-file",
            Self::Changed { .. } => "receipt-changed-meanwhile",
            Self::Locked { .. } => "receipt-folder-locked",
            Self::SameRun { .. } => "receipt-earlier-run",
            Self::Receipt(error) => error.code(),
        }
    }
}

/// The files beside the receipt at `path`: its test-result, its envelope and the test-result's. They are named as the
/// receipt, without a final `.json`, so that two receipts in a folder share none.
#[must_use]
pub fn beside(path: &Path) -> [PathBuf; 3] {
    let stem = stem(path).unwrap_or_else(|| path.file_name().unwrap_or_default().as_bytes());
    let name = |suffix: &str| path.with_file_name(OsString::from_vec([stem, suffix.as_bytes()].concat()));
    [name(".test-result.json"), name(".dsse.json"), name(".test-result.dsse.json")]
}

/// The name without a final `.json`, where it has one.
fn stem(path: &Path) -> Option<&[u8]> {
    path.file_name()?.as_bytes().strip_suffix(b".json").filter(|stem| !stem.is_empty())
}

/// That whatever stands beside the receipt at `path` may go.
fn look_beside(path: &Path) -> Result<(), OutputError> {
    let refuse = |path: &Path, why| Err(OutputError::Beside { path: path.to_owned(), why });
    let [result, signed, signed_result] = beside(path);
    let is_receipt: fn(&[u8]) -> bool = |bytes| open(bytes).is_ok();
    for (path, is_ours, why) in [
        (result, is_test_result as fn(&[u8]) -> bool, "not the test-result of a receipt"),
        (signed, |bytes| payload(bytes).is_some_and(|payload| open(&payload).is_ok()), "not the envelope of a receipt"),
        (
            signed_result,
            |bytes| payload(bytes).is_some_and(|payload| is_test_result(&payload)),
            "not the envelope of a test-result",
        ),
    ] {
        if standing(&path)?.is_some_and(|bytes| !is_ours(&bytes)) {
            return refuse(&path, why);
        }
    }
    // `r` and `r.json` would share their files.
    let twin = match stem(path) {
        Some(stem) => OsString::from_vec(stem.to_vec()),
        None => OsString::from_vec([path.file_name().unwrap_or_default().as_bytes(), b".json"].concat()),
    };
    let twin = path.with_file_name(twin);
    match read_bounded(&twin, MAX_BYTES) {
        Ok(bytes) if is_receipt(&bytes) => refuse(&twin, "the receipt whose files would have the same names"),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// What an envelope holds.
fn payload(bytes: &[u8]) -> Option<Vec<u8>> {
    Envelope::read(bytes).ok()?.unverified_payload(IN_TOTO).ok()
}

/// Whether this is a test-result that names policy and matrix as ours do.
fn is_test_result(bytes: &[u8]) -> bool {
    let Ok(value) = json::from_slice::<Value>(bytes) else { return false };
    let mut configuration = value.pointer("/predicate/configuration").and_then(Value::as_array).into_iter().flatten();
    value.get("_type").is_some_and(|kind| kind == STATEMENT_TYPE)
        && value.get("predicateType").is_some_and(|kind| kind == PREDICATE_TYPE)
        && configuration.any(|entry| entry.get("name").is_some_and(|name| name == "case-matrix"))
}

/// The bytes of the file, or nothing where there is none.
fn standing(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match read_bounded(path, MAX_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The receipt that stands at `path`, or nothing where nothing does.
///
/// # Errors
/// [`OutputError::File`] or [`OutputError::Foreign`]; [`OutputError::Beside`] where the files of a receipt there would
/// replace what belongs to no receipt, or to another.
pub fn earlier(path: &Path) -> Result<Option<Earlier>, OutputError> {
    let Some(bytes) = standing(path)? else { return look_beside(path).map(|()| None) };
    match open(&bytes) {
        Ok(statement) => look_beside(path).map(|()| Some(Earlier { statement, sha256: Sha256::of(&bytes) })),
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
    path: PathBuf,
    /// The digest of the receipt.
    sha256: Sha256,
    /// The digest of what it replaces.
    earlier: Option<Sha256>,
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
        let mut outputs = Self {
            path: path.to_owned(),
            sha256: Sha256::of(&receipt),
            earlier: earlier.map(|earlier| earlier.sha256),
            files: vec![(path.to_owned(), receipt)],
            stale: Vec::new(),
        };
        for (beside, bytes) in beside(path).into_iter().zip([test_result, signed, signed_test_result]) {
            match bytes {
                Some(bytes) => outputs.files.push((beside, bytes)),
                None if still_true(&beside, &outputs.files) => {}
                None => outputs.stale.push(beside),
            }
        }
        Ok(outputs)
    }

    /// What is replaced, in words: an earlier receipt that says something else, and its files that go.
    #[must_use]
    pub fn replaced(&self) -> Vec<String> {
        let earlier = self.earlier.filter(|earlier| *earlier != self.sha256);
        let gone = self.stale.iter().filter(|path| path.exists());
        let names = gone.map(|path| format!("{}, which was of an earlier receipt", path.display()));
        earlier.map(|sha256| format!("the receipt {sha256}")).into_iter().chain(names).collect()
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Takes the receipt's folder for this call alone, and looks again at what stands there: of two runs that began on
    /// the same receipt, or on none, the second to end does not replace what the first one said.
    ///
    /// # Errors
    /// [`OutputError::Changed`], [`OutputError::Locked`], and as [`earlier`].
    pub fn claim(&self) -> Result<Claim<'_>, OutputError> {
        let folder = folder(&self.path);
        let io = |source| FileError::Io { path: folder.to_owned(), source };
        let lock = File::open(folder).map_err(io)?;
        let mut waits = LOCK_WAITS;
        while let Err(error) = lock.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(io(source).into()),
                TryLockError::WouldBlock if waits == 0 => {
                    return Err(OutputError::Locked { folder: folder.to_owned() });
                }
                TryLockError::WouldBlock => waits -= 1,
            }
            std::thread::sleep(LOCK_WAIT);
        }
        let found = earlier(&self.path)?.map(|earlier| earlier.sha256);
        if found != self.earlier && found != Some(self.sha256) {
            return Err(OutputError::Changed { path: self.path.clone() });
        }
        Ok(Claim { outputs: self, _lock: lock })
    }
}

/// A folder where no other call writes a receipt while this lives, and where one may be written.
#[derive(Debug)]
pub struct Claim<'a> {
    outputs: &'a Outputs,
    _lock: File,
}

impl Claim<'_> {
    /// Writes every file, each whole or not at all. What stands beside an earlier receipt goes first: at no moment does
    /// a file vouch for a receipt that it was not made of.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(self) -> Result<(), FileError> {
        let Outputs { files, stale, .. } = self.outputs;
        let _hold = Hold::signals();
        // A full disk is found before anything goes.
        let whole: Vec<Whole> = files.iter().map(|(path, bytes)| Whole::new(path, bytes)).collect::<Result<_, _>>()?;
        for path in stale.iter().chain(files.iter().skip(1).map(|(path, _)| path)) {
            match fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(FileError::Io { path: path.clone(), source }),
            }
        }
        whole.into_iter().try_for_each(|file| file.put(Existing::Replace))
    }
}

/// Whether an envelope holds one of these files: nobody signed it now, but what was signed is said again.
fn still_true(envelope: &Path, files: &[(PathBuf, Vec<u8>)]) -> bool {
    let held = read_bounded(envelope, MAX_BYTES).ok().and_then(|bytes| payload(&bytes));
    held.is_some_and(|held| files.iter().any(|(_, bytes)| *bytes == held))
}

fn of_one_run(earlier: &Statement, new: &Statement) -> bool {
    let key = |statement: &Statement| {
        let bindings = &statement.predicate.bindings;
        (bindings.policy.digest.sha256, bindings.case_matrix.digest.sha256)
    };
    key(earlier) == key(new)
}
