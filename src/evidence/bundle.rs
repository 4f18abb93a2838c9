//! A subject's bundle: `subject.json` and one safetensors file a case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::case::{CaseEvidence, read_case};
use super::dispatch::Dispatch;
use super::error::{EvidenceError, Problem, Unreadable};
use super::subject::Subject;
use crate::digest::{Hasher, Sha256};
use crate::fsio::{FileError, read_bounded};
use crate::inputs::Inputs;
use crate::tensors::TensorFile;

/// The file that says who the subject is.
pub const SUBJECT_FILE: &str = "subject.json";

/// The most files a bundle may hold.
pub const MAX_FILES: usize = 1024;

const EXTENSION: &str = ".safetensors";

/// The bytes of a bundle, all read once: what is hashed is what is parsed.
#[derive(Debug, Clone)]
pub struct Bundle {
    files: BTreeMap<String, File>,
}

#[derive(Debug, Clone)]
struct File {
    bytes: Vec<u8>,
    sha256: Sha256,
}

fn unreadable(file: &str, problem: impl Into<Problem>) -> EvidenceError {
    Unreadable { file: file.to_owned(), problem: problem.into() }.into()
}

/// Whether `folder` holds a bundle, and so nothing else may be written into it.
#[must_use]
pub fn is_bundle(folder: &Path) -> bool {
    folder.join(SUBJECT_FILE).symlink_metadata().is_ok()
}

impl Bundle {
    /// Reads every file of `folder`, `max_bytes` in all at most. Nothing is parsed yet: a caller compares
    /// [`Self::sha256`] with the pinned digest first.
    ///
    /// # Errors
    /// [`Problem::File`], [`Problem::Entry`] or [`Problem::TooManyFiles`].
    pub fn open(folder: &Path, max_bytes: u64) -> Result<Self, EvidenceError> {
        // The folder's own name: where the project lies is no part of what is found.
        let own = folder.file_name().map_or(folder, Path::new);
        let shown = own.display().to_string();
        let io = |source| unreadable(&shown, FileError::Io { path: own.to_owned(), source });
        let (mut contents, mut left) = (Vec::new(), max_bytes);
        for entry in fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Lossy names and line breaks would make two folders hash alike. `file_type` does not follow links.
            let plain = entry.file_name().to_str().is_some_and(|name| !name.contains(char::is_control));
            if !plain || !entry.file_type().map_err(io)?.is_file() {
                return Err(unreadable(&name, Problem::Entry));
            }
            if contents.len() == MAX_FILES {
                return Err(unreadable(&shown, Problem::TooManyFiles { limit: MAX_FILES }));
            }
            let bytes = read_bounded(&entry.path(), left).map_err(|error| match error {
                // The limit is the bundle's, not the file's.
                FileError::TooLarge { .. } => {
                    unreadable(&shown, FileError::TooLarge { path: own.to_owned(), limit: max_bytes })
                }
                error @ (FileError::Io { .. } | FileError::NotRegular { .. } | FileError::Exists { .. }) => {
                    unreadable(&name, error)
                }
            })?;
            left -= bytes.len() as u64;
            contents.push((name, bytes));
        }
        let hashed = |(name, bytes): (String, Vec<u8>)| (name, File { sha256: Sha256::of(&bytes), bytes });
        Ok(Self { files: contents.into_par_iter().map(hashed).collect() })
    }

    /// The bundle's digest: that of the lines `<sha256>  <name>\n`, sorted by name.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        let mut hasher = Hasher::default();
        self.file_digests().for_each(|(name, digest)| hasher.update(format!("{digest}  {name}\n").as_bytes()));
        hasher.finish()
    }

    /// Each file's name and digest, sorted by name.
    pub fn file_digests(&self) -> impl Iterator<Item = (&str, Sha256)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file.sha256))
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn files_len(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// Who the subject is. The cases that it lists are exactly those that the bundle holds, each once.
    ///
    /// # Errors
    /// [`Problem::Missing`], [`Problem::Subject`] or [`Problem::Cases`].
    pub fn subject(&self) -> Result<Subject, EvidenceError> {
        let subject = Subject::read(&self.file(SUBJECT_FILE)?.bytes).map_err(|e| unreadable(SUBJECT_FILE, e))?;
        let mut extra: BTreeSet<&str> = self.files.keys().map(String::as_str).collect();
        extra.remove(SUBJECT_FILE);
        let mut without_file: Vec<String> = subject.cases.clone();
        without_file.retain(|case| !extra.remove(format!("{case}{EXTENSION}").as_str()));
        if without_file.is_empty() && extra.is_empty() {
            return Ok(subject);
        }
        let extra = extra.into_iter().map(str::to_owned).collect();
        Err(unreadable(SUBJECT_FILE, Problem::Cases { listed: subject.cases.len(), missing: without_file, extra }))
    }

    /// The evidence of case `name`, which ran on `inputs`.
    ///
    /// # Errors
    /// As [`EvidenceError`] says.
    pub fn case(&self, name: &str, inputs: &Inputs) -> Result<CaseEvidence, EvidenceError> {
        let file_name = format!("{name}{EXTENSION}");
        let file = self.file(&file_name)?;
        read_case(&file_name, &file.bytes, file.sha256, name, inputs)
    }

    /// The dispatch path that the evidence of case `name` states, without reading anything else of it.
    ///
    /// # Errors
    /// [`Problem::Missing`], [`Problem::Tensor`], [`Problem::HeaderMissing`] or [`Problem::Dispatch`].
    pub fn dispatch(&self, name: &str) -> Result<Dispatch, EvidenceError> {
        let file_name = format!("{name}{EXTENSION}");
        let tensors =
            TensorFile::parse(&self.file(&file_name)?.bytes).map_err(|error| unreadable(&file_name, error))?;
        let stated = tensors.metadata("dispatch").ok_or(Problem::HeaderMissing { key: "dispatch" });
        let stated = stated.map_err(|problem| unreadable(&file_name, problem))?;
        Dispatch::read(stated).map_err(|error| unreadable(&file_name, error))
    }

    fn file(&self, name: &str) -> Result<&File, EvidenceError> {
        self.files.get(name).ok_or_else(|| unreadable(name, Problem::Missing))
    }
}
