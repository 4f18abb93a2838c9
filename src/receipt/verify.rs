//! Whether everything that a receipt binds still has those bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::statement::{Statement, SubjectBinding};
use crate::digest::Sha256;
use crate::evidence::Bundle;
use crate::fsio::read_bounded;
use crate::policy::LOCK_PATH;
use crate::root::ProjectRoot;

/// One bound thing, then and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The file, or what else is bound.
    pub what: String,
    /// Its digest in the receipt; nothing for a file that was added since.
    pub bound: Option<Sha256>,
    /// Its digest now, or why there is none.
    pub found: Result<Sha256, String>,
}

impl Checked {
    /// Whether it is what was bound.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.bound.is_some() && self.bound == self.found.as_ref().ok().copied()
    }

    /// `what`, bound as `bound`, as it is now.
    pub fn new(what: impl Into<String>, bound: Sha256, found: Result<Sha256, impl Display>) -> Self {
        Self { what: what.into(), bound: Some(bound), found: found.map_err(|error| error.to_string()) }
    }
}

/// The lock and every evidence and input file that the receipt binds, compared with what lies under `root`. At most
/// `max_bytes` of a bundle or a file are read.
#[must_use]
pub fn bound_files(statement: &Statement, root: &ProjectRoot, max_bytes: u64) -> Vec<Checked> {
    let mut checked: Vec<Checked> = Vec::new();
    for subject in &statement.predicate.bindings.subjects {
        checked.extend(bundle(subject, root, max_bytes));
    }
    let lock = statement.predicate.bindings.freeze.lock_sha256.map(|sha256| (LOCK_PATH, sha256));
    let files = statement.predicate.cases.iter().filter_map(|case| case.file.as_ref());
    for (path, bound) in lock.into_iter().chain(files.map(|file| (file.path.as_str(), file.digest.sha256))) {
        let found = root.resolve(path).map_err(|error| error.to_string()).and_then(|path| {
            read_bounded(&path, max_bytes).map(|bytes| Sha256::of(&bytes)).map_err(|error| error.to_string())
        });
        checked.push(Checked::new(path, bound, found));
    }
    checked
}

/// A bundle file by file, and as a whole.
fn bundle(subject: &SubjectBinding, root: &ProjectRoot, max_bytes: u64) -> Vec<Checked> {
    let bound = subject.found_bundle_sha256.unwrap_or(subject.pinned_bundle_sha256);
    let opened = root.resolve(&subject.bundle).map_err(|error| error.to_string());
    let opened = opened.and_then(|path| Bundle::open(&path, max_bytes).map_err(|error| error.to_string()));
    let bundle = match opened {
        Ok(bundle) => bundle,
        Err(error) => return vec![Checked::new(&subject.bundle, bound, Err(error))],
    };
    let mut checked = vec![Checked::new(&subject.bundle, bound, Ok::<_, String>(bundle.sha256()))];
    let now: BTreeMap<&str, Sha256> = bundle.file_digests().collect();
    let then: BTreeMap<&str, Sha256> =
        subject.files.iter().map(|file| (file.name.as_str(), file.digest.sha256)).collect();
    // A run that could not read the bundle bound no files.
    let names: BTreeSet<&str> = now.keys().chain(then.keys()).copied().filter(|_| !then.is_empty()).collect();
    checked.extend(names.into_iter().map(|name| Checked {
        what: format!("{}/{name}", subject.bundle),
        bound: then.get(name).copied(),
        found: now.get(name).copied().ok_or_else(|| "missing".to_owned()),
    }));
    checked
}
