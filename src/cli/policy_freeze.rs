//! `nucleus-gate policy freeze`: writes the lock.

use std::path::{Path, PathBuf};

use super::load::{self, Files};
use super::{Failure, screen};
use crate::fsio::{Existing, write_atomic};
use crate::gate::ExitCode;
use crate::matrix::Matrix;
use crate::policy::{Entry, Frozen, LOCK_PATH, Lock, Policy, lint};
use crate::root::ProjectRoot;
use crate::syntax::{Issues, Severity};
use crate::text::amount;

/// Freeze every policy and matrix of the project: write their hashes into policies/nucleus-gate.lock
///
/// From then on, check refuses a policy or matrix that is not the frozen one. Exit codes: 0 written (or, with --check, up to
/// date); 2 a file does not decode or does not pass the linter; 5 with --check, when the lock is not up to date.
#[derive(Debug, clap::Args)]
pub(super) struct Freeze {
    /// The project root [default: the nearest folder that holds policies/]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Write nothing; say whether the lock is up to date
    #[arg(long)]
    check: bool,
}

impl Freeze {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = Files { policy: None, matrix: None, root: self.root.clone() };
        let root = files.base()?.ok_or_else(|| {
            let help = "name the folder that holds policies/ with --root DIR";
            Failure::invocation("cli::no-root", "no folder here or above holds policies/", help)
        })?;
        if !root.has_policies() {
            let message = format!("{} has no folder policies/", root.path().display());
            return Err(Failure::invocation(
                "cli::no-policies",
                message,
                "make it, for the project's policies and its lock",
            ));
        }
        let entries = entries(&root)?;
        let path = root.path().join(LOCK_PATH);
        let text = Lock::render(&entries);
        let known = path.exists().then(|| load::read(&path)).transpose()?;
        let current = known.as_ref().is_some_and(|lock| lock.text() == text);
        if self.check && !current {
            let message = format!("{LOCK_PATH} is not what freezing these files would write");
            return Err(Failure::drift(
                "lock::stale",
                message,
                "review the change, then run: nucleus-gate policy freeze",
            ));
        }
        if !current {
            write_atomic(&path, text.as_bytes(), Existing::Replace).map_err(|error| Failure::unwritten(&error))?;
        }
        let word = if current { "up to date" } else { "written" };
        let mut out = format!("{LOCK_PATH}: {word}, {}\n", amount(entries.len() as u64, "file"));
        entries.iter().for_each(|entry| out += &format!("  {} {}  {}\n", entry.kind.name(), entry.sha256, entry.path));
        screen::print(&out)?;
        Ok(ExitCode::Passed)
    }
}

/// Every policy and matrix of the project. All must decode, and policies must pass the linter: what is frozen is meant.
fn entries(root: &ProjectRoot) -> Result<Vec<Entry>, Failure> {
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (kind, folder) in [(Frozen::Policy, "policies"), (Frozen::Matrix, "matrices")] {
        for name in kdl_files(&root.path().join(folder))? {
            let source = load::read(&root.path().join(folder).join(&name))?;
            let sha256 = source.sha256();
            let semantic = match kind {
                Frozen::Policy => Policy::read(source).and_then(linted).map(|policy| Some(policy.semantic_sha256())),
                Frozen::Matrix => Matrix::read(source).map(|_| None),
            };
            match semantic {
                Ok(semantic) => entries.push(Entry { kind, path: format!("{folder}/{name}"), sha256, semantic }),
                Err(issues) => wrong.push(issues),
            }
        }
    }
    if wrong.is_empty() { Ok(entries) } else { Err(Failure::Several(wrong.into_iter().map(Failure::Issues).collect())) }
}

fn linted(policy: Policy) -> Result<Policy, Issues> {
    let errors: Vec<_> = lint(&policy).into_iter().filter(|issue| issue.severity == Severity::Error).collect();
    if errors.is_empty() { Ok(policy) } else { Err(Issues::new(policy.source, errors)) }
}

/// The names of a folder's KDL files, sorted; none where there is no folder.
pub(super) fn kdl_files(folder: &Path) -> Result<Vec<String>, Failure> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let unreadable = |error: std::io::Error| {
        let message = format!("{}: {error}", folder.display());
        Failure::invocation("cli::folder", message, "make the folder readable")
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let shown = name.to_string_lossy();
        if !shown.ends_with(".kdl") {
            continue;
        }
        match name.to_str() {
            Some(name) if !name.contains(crate::text::is_unsafe) => names.push(name.to_owned()),
            Some(_) | None => {
                let message = format!("{}/{shown}: a name with control characters, or no UTF-8", folder.display());
                return Err(Failure::invocation("cli::file-name", message, "rename the file"));
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}
