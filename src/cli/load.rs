//! Finding and reading the policy and the matrix of a call.

use std::path::{Path, PathBuf};

use super::Failure;
use crate::digest::Sha256;
use crate::matrix::Matrix;
use crate::policy::{Freeze, Frozen, LOCK_PATH, Lock, Policy, builtin};
use crate::receipt::Places;
use crate::root::ProjectRoot;
use crate::syntax::{MAX_TEXT, Source};
use crate::text::sanitize;

/// The shipped policy of a call without `--policy`.
pub(super) const DEFAULT_POLICY: &str = "split-top-p";

/// The matrix of a call without `--matrix`.
pub(super) const DEFAULT_MATRIX: &str = "matrices/vllm-large-logit-fix.kdl";

/// Policies and matrices are read by people; a larger file is a mistake.
pub(super) const MAX_BYTES: u64 = MAX_TEXT as u64;

/// Where a call looks for its files.
#[derive(Debug, clap::Args)]
pub(super) struct Files {
    /// The policy: a file, or builtin:NAME for one of the shipped ones
    #[arg(long, value_name = "FILE")]
    pub policy: Option<String>,
    /// The matrix of cases
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// The project root, where the paths in the matrix begin [default: the nearest folder above the matrix that holds
    /// policies/]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// A call's policy and matrix, decoded.
pub(super) struct Loaded {
    pub policy: Policy,
    pub matrix: Matrix,
    pub root: ProjectRoot,
    pub places: Places,
    /// Whether both are what the project's lock lists.
    pub freeze: Freeze,
}

/// A call's policy and matrix, not yet decoded: whether they are the frozen ones shows before whether they are any good.
pub(super) struct Unread {
    pub policy: Raw,
    matrix: Raw,
    root: ProjectRoot,
    places: Places,
    pub freeze: Freeze,
}

impl Unread {
    /// Decodes both files. All issues of both are reported.
    pub(super) fn decode(self) -> Result<Loaded, Failure> {
        let Self { policy, matrix, root, places, freeze } = self;
        match (decode_policy(policy), decode_matrix(matrix)) {
            (Ok(policy), Ok(matrix)) => Ok(Loaded { policy, matrix, root, places, freeze }),
            (Err(policy), Err(matrix)) => Err(Failure::Several(vec![policy, matrix])),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
        }
    }
}

/// A file as it lies there.
pub(super) struct Raw {
    pub name: String,
    bytes: Vec<u8>,
}

impl Raw {
    pub(super) fn sha256(&self) -> Sha256 {
        Sha256::of(&self.bytes)
    }

    fn source(self) -> Result<Source, Failure> {
        let text = String::from_utf8(self.bytes).map_err(|error| {
            let message = format!("{} is not UTF-8: {error}", self.name);
            Failure::invocation("cli::not-utf-8", message, "save the file as UTF-8")
        })?;
        Ok(Source::new(self.name, text))
    }
}

fn decode_policy(raw: Raw) -> Result<Policy, Failure> {
    Policy::read(raw.source()?).map_err(Failure::Issues)
}

fn decode_matrix(raw: Raw) -> Result<Matrix, Failure> {
    Matrix::read(raw.source()?).map_err(Failure::Issues)
}

impl Files {
    /// Reads and decodes both files and finds the root.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        self.read()?.decode()
    }

    /// The same, with another policy (a shipped one's name) and another matrix where none is named.
    pub(super) fn load_with(&self, default_policy: &str, default_matrix: &str) -> Result<Loaded, Failure> {
        self.read_with(default_policy, default_matrix)?.decode()
    }

    /// Reads both files, finds the root, and holds the files to its lock.
    pub(super) fn read(&self) -> Result<Unread, Failure> {
        self.read_with(DEFAULT_POLICY, DEFAULT_MATRIX)
    }

    fn read_with(&self, default_policy: &str, default_matrix: &str) -> Result<Unread, Failure> {
        let base = self.base()?;
        let policy = self.policy(base.as_ref(), default_policy)?;
        let matrix = match (&self.matrix, &base) {
            (Some(path), Some(base)) if path.exists() && !base.holds(path) => {
                let message =
                    format!("{} lies outside the project root {}", path.display(), shown(base.path()).display());
                let help = "copy it there, or name the folder where its paths begin with --root DIR";
                return Err(Failure::invocation("cli::matrix-outside-root", message, help));
            }
            (Some(path), _) => read_raw(path),
            (None, Some(base)) => read_raw(&base.path().join(default_matrix)),
            (None, None) => Err(Failure::invocation(
                "cli::no-matrix",
                "there is no matrix here: this folder is not inside a checkout",
                "name one with --matrix FILE; matrices and evidence are not part of the binary",
            )),
        }?;
        let root = base.ok_or_else(|| {
            Failure::invocation(
                "cli::no-root",
                "no folder above the matrix holds policies/",
                "name the folder where the matrix's paths begin with --root DIR",
            )
        })?;
        let places = places(&root, &policy.name, &matrix.name);
        let freeze = freeze(&root, policy.sha256(), matrix.sha256(), &places)?;
        Ok(Unread { policy, matrix, root, places, freeze })
    }

    /// The policy alone, as named or the shipped default.
    pub(super) fn policy_alone(&self) -> Result<Policy, Failure> {
        decode_policy(self.policy(self.base()?.as_ref(), DEFAULT_POLICY)?)
    }

    /// The project root, or the current folder where there is none.
    pub(super) fn base_or_here(&self) -> Result<ProjectRoot, Failure> {
        let here = || ProjectRoot::at(Path::new("."));
        match self.base()? {
            Some(root) => Ok(root),
            None => here().map_err(|error| Failure::invocation("cli::no-root", error.to_string(), "use --root DIR")),
        }
    }

    /// The project root: as named, above the matrix, or above the current folder.
    pub(super) fn base(&self) -> Result<Option<ProjectRoot>, Failure> {
        if let Some(root) = &self.root {
            let root = ProjectRoot::at(root).map_err(|error| {
                let message = format!("--root {}: {error}", root.display());
                Failure::invocation("cli::no-root", message, "name an existing folder")
            })?;
            return Ok(Some(root));
        }
        let found = match &self.matrix {
            Some(matrix) => ProjectRoot::above(matrix),
            None => ProjectRoot::around(Path::new(".")),
        };
        found.map(outermost).transpose()
    }

    fn policy(&self, base: Option<&ProjectRoot>, default: &str) -> Result<Raw, Failure> {
        let raw = |source: Source| Raw { name: source.name().to_owned(), bytes: source.text().as_bytes().to_vec() };
        let shipped = base.map(|base| base.path().join("policies").join(format!("{default}.kdl")));
        match (self.policy.as_deref(), shipped) {
            (Some(name), _) if name.starts_with("builtin:") => shipped_as(name, base).map(raw),
            (Some(path), _) => read_raw(Path::new(path)),
            // A project has its own policies: the one in this program may be another.
            (None, Some(shipped)) if base.is_some_and(ProjectRoot::has_policies) => read_raw(&shipped),
            (None, _) => builtin(&format!("builtin:{default}"))
                .map(raw)
                .ok_or_else(|| Failure::internal(format!("the policy {default} is not part of this binary"))),
        }
    }
}

/// The policy `builtin:NAME`. A project that has another one of its own may mean that.
fn shipped_as(name: &str, base: Option<&ProjectRoot>) -> Result<Source, Failure> {
    let source = builtin(name).ok_or_else(|| {
        let help = crate::policy::builtin_names().join(", ");
        Failure::invocation("cli::unknown-builtin", format!("there is no {name}"), format!("there are: {help}"))
    })?;
    let file = format!("policies/{}.kdl", name.trim_start_matches("builtin:"));
    let own = base.and_then(|base| crate::fsio::read_bounded(&base.path().join(&file), MAX_BYTES).ok());
    if own.is_some_and(|own| own != source.text().as_bytes()) {
        let message = format!("the project has a {file} that is not {name}");
        return Err(Failure::invocation(
            "cli::builtin-shadowed",
            message,
            format!("name the one that is meant: --policy {file}"),
        ));
    }
    Ok(source)
}

/// A root that nobody named must not lie inside a project with a lock: its files would escape that lock.
pub(super) fn outermost(root: ProjectRoot) -> Result<ProjectRoot, Failure> {
    let Some(around) = root.locked_around() else { return Ok(root) };
    let message = format!(
        "{} holds policies/, and lies inside {}, which has a lock",
        shown(root.path()).display(),
        shown(around).display()
    );
    Err(Failure::invocation("cli::nested-root", message, "name the one that is meant with --root DIR"))
}

pub(super) fn read_matrix(path: &Path) -> Result<Matrix, Failure> {
    decode_matrix(read_raw(path)?)
}

/// Reads a KDL file, bounded. Its name is shown relative to the current folder where it lies inside.
pub(super) fn read(path: &Path) -> Result<Source, Failure> {
    read_raw(path)?.source()
}

fn read_raw(path: &Path) -> Result<Raw, Failure> {
    let name = shown(path);
    // The name is what reports and receipts say, and what they say must lead to the file.
    if name.to_str().is_none_or(|name| sanitize(name) != name) {
        let message = format!("{} holds what cannot be shown, or is not UTF-8", name.display());
        return Err(Failure::invocation("cli::file-name", message, "rename the file or its folder"));
    }
    let bytes = crate::fsio::read_bounded(path, MAX_BYTES).map_err(|error| {
        Failure::invocation(error.code(), error.to_string(), "name an existing one with --policy FILE or --matrix FILE")
    })?;
    Ok(Raw { name: name.display().to_string(), bytes })
}

/// Where a receipt says that the two files of these names are.
pub(super) fn places(root: &ProjectRoot, policy: &str, matrix: &str) -> Places {
    Places { policy: place(root, policy), matrix: place(root, matrix) }
}

/// Holds both files, by their digests, to the project's lock, if it has one.
pub(super) fn freeze(root: &ProjectRoot, policy: Sha256, matrix: Sha256, places: &Places) -> Result<Freeze, Failure> {
    let path = root.path().join(LOCK_PATH);
    // Only a name that is not there means that there is no lock: a link to nowhere, or what cannot be looked at, does not.
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Freeze::NoLock),
        Err(error) => return Err(unreadable_lock(&error.to_string())),
        Ok(_) => {}
    }
    let source = read(&path).map_err(|failure| unreadable_lock(&failure.message()))?;
    let lock = Lock::read(source)
        .map_err(|issues| Failure::Several(vec![Failure::Issues(issues), unreadable_lock("it does not decode")]))?;
    if !lock.is_whole() {
        let message = format!("{LOCK_PATH} is not as it was written: a line of it was changed by hand");
        let help = "restore it; or review what it freezes, and write it with: nucleus-gate policy freeze";
        return Err(Failure::drift("lock::altered", message, help));
    }
    let policy_path = match places.policy.strip_prefix("builtin:") {
        Some(name) => format!("policies/{name}.kdl"),
        None => places.policy.clone(),
    };
    let files = [(Frozen::Policy, policy_path, policy), (Frozen::Matrix, places.matrix.clone(), matrix)];
    Ok(Freeze::of(Some(&lock), &files))
}

fn unreadable_lock(why: &str) -> Failure {
    let message = format!("{LOCK_PATH} cannot be read: {why}");
    Failure::drift(
        "lock::unreadable",
        message,
        "restore it; or review what it freezes, and run: nucleus-gate policy freeze",
    )
}

/// Where a file lies as a receipt says it: relative to the root, wherever the call was made.
fn place(root: &ProjectRoot, name: &str) -> String {
    let inside = Path::new(name).canonicalize().ok();
    let inside = inside.and_then(|path| Some(path.strip_prefix(root.path()).ok()?.display().to_string()));
    inside.unwrap_or_else(|| name.to_owned())
}

/// The path relative to the current folder, where it lies inside.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let inside = here.ok().and_then(|here| Some(path.canonicalize().ok()?.strip_prefix(here).ok()?.to_path_buf()));
    // The current folder itself has no name relative to itself.
    let inside = inside.map(|path| if path.as_os_str().is_empty() { PathBuf::from(".") } else { path });
    inside.unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_shown_relative_to_the_current_one() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(shown(&here), Path::new("."));
        assert_eq!(shown(Path::new(".")), Path::new("."));
        assert_eq!(shown(&here.join("policies")), Path::new("policies"));
        assert_eq!(shown(Path::new("/")), Path::new("/"));
    }
}
