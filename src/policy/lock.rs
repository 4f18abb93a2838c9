//! The lock file: which policies and matrices are frozen, and with which bytes.

use std::collections::BTreeMap;

use miette::SourceSpan;

use crate::digest::Sha256;
use crate::syntax::{Issue, Issues, Node, Source, parse};

/// Where the lock stands, relative to the project root.
pub const LOCK_PATH: &str = "policies/nucleus-gate.lock";

const HEAD: &str = "\
// What is frozen: `nucleus-gate policy freeze` writes this file, and `check` refuses a policy or a matrix that is not the
// one listed here. `sha256` is that of the file's bytes; `semantic` is that of what a policy decides, whatever its layout.
";

/// What a frozen file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// A policy.
    Policy,
    /// A matrix.
    Matrix,
}

impl Frozen {
    /// Its name in a lock.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Matrix => "matrix",
        }
    }
}

/// One frozen file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Frozen,
    /// Its path, relative to the project root, with `/`.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Sha256,
    /// The semantic hash of a policy.
    pub semantic: Option<Sha256>,
}

/// A decoded lock.
#[derive(Debug, Clone)]
pub struct Lock {
    /// The file.
    pub source: Source,
    /// The frozen files, each once.
    pub entries: Vec<Entry>,
}

/// Why a file is not the frozen one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfrozen {
    /// The lock does not list it.
    #[error("is not frozen: the lock does not list it")]
    NotListed,
    /// The lock lists it with other bytes.
    #[error("is not the frozen one: the lock has {frozen}, it hashes to {found}")]
    Changed {
        /// As frozen.
        frozen: Sha256,
        /// As found.
        found: Sha256,
    },
}

impl Unfrozen {
    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotListed => "lock::not-listed",
            Self::Changed { .. } => "lock::changed",
        }
    }
}

impl Lock {
    /// Reads a lock.
    ///
    /// # Errors
    /// Every issue of the file at once.
    pub fn read(source: Source) -> Result<Self, Issues> {
        let entries = parse(&source, |document, sink| {
            let [node] = document.nodes() else {
                let message = "a lock holds one `lock` node and nothing else";
                let issue = Issue::error("lock::not-a-lock", message, document.span(), "expected: lock schema=1 { … }");
                sink.push(issue.help("write it anew with: nucleus-gate policy freeze"));
                return None;
            };
            let mut node = Node::new(node, sink);
            if node.name() != "lock" {
                node.unknown("lock::unknown-node", "top-level node", &["lock"]);
                return None;
            }
            if let Some(schema) = node.property::<u32>("schema").filter(|schema| **schema != 1) {
                let message = format!("schema {} is unknown; this build reads schema 1", *schema);
                node.report(Issue::error("lock::unknown-schema", message, schema.span, "unknown"));
            }
            // Held against the entries by `Lock::is_whole`.
            let _ = node.property::<Sha256>("entries-sha256");
            let entries = entries(&mut node);
            node.finish();
            Some(entries)
        })?;
        Ok(Self { source, entries })
    }

    /// The text of a lock with these files, in the order of their kinds and paths.
    #[must_use]
    pub fn render(entries: &[Entry]) -> String {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|entry| (entry.kind.name() != "policy", entry.path.as_str()));
        let line = |entry: &Entry| {
            let semantic = entry.semantic.map_or_else(String::new, |hash| format!(" \\\n        semantic=\"{hash}\""));
            format!("    {} {:?} \\\n        sha256=\"{}\"{semantic}\n", entry.kind.name(), entry.path, entry.sha256)
        };
        let lines: String = sorted.into_iter().map(line).collect();
        let digest = Sha256::of(lines.as_bytes());
        format!("{HEAD}\nlock schema=1 entries-sha256=\"{digest}\" {{\n{lines}}}\n")
    }

    /// Whether the lock is as it was written: one spelling, and the digest of its own lines. A changed line of another
    /// file's would go unnoticed otherwise, until that file is judged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        Self::render(&self.entries) == self.source.text()
    }

    /// Whether the file at `path` (relative to the root) with this digest is the frozen one.
    ///
    /// # Errors
    /// [`Unfrozen`].
    pub fn verify(&self, kind: Frozen, path: &str, found: Sha256) -> Result<(), Unfrozen> {
        let entry = self.entries.iter().find(|entry| entry.kind == kind && entry.path == path);
        match entry.ok_or(Unfrozen::NotListed)?.sha256 {
            frozen if frozen == found => Ok(()),
            frozen => Err(Unfrozen::Changed { frozen, found }),
        }
    }
}

/// Whether a run's policy and matrix are the frozen ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freeze {
    /// The project has no lock: nothing is frozen.
    NoLock,
    /// Both are what the lock with this digest lists.
    Frozen(Sha256),
    /// They are not, and why: a file each.
    Unfrozen(Vec<(String, Unfrozen)>),
}

impl Freeze {
    /// Holds files (kind, path relative to the root, digest) to a lock.
    #[must_use]
    pub fn of(lock: Option<&Lock>, files: &[(Frozen, String, Sha256)]) -> Self {
        let Some(lock) = lock else { return Self::NoLock };
        let wrong = files.iter().filter_map(|(kind, path, found)| {
            let why = lock.verify(*kind, path, *found).err()?;
            Some((format!("{} {path}", kind.name()), why))
        });
        let wrong: Vec<_> = wrong.collect();
        if wrong.is_empty() { Self::Frozen(lock.source.sha256()) } else { Self::Unfrozen(wrong) }
    }

    /// The state in one word, for machines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoLock => "no-lock",
            Self::Frozen(_) => "frozen",
            Self::Unfrozen(_) => "unfrozen",
        }
    }

    /// What is not frozen, as one sentence; none where all is.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        match self {
            Self::Frozen(_) => None,
            Self::NoLock => Some("no lock: nothing is frozen".to_owned()),
            Self::Unfrozen(files) => {
                let files: Vec<String> = files.iter().map(|(file, why)| format!("{file} {why}")).collect();
                Some(files.join("; "))
            }
        }
    }

    /// Whether a file has other bytes than the lock lists.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        match self {
            Self::Frozen(_) | Self::NoLock => false,
            Self::Unfrozen(files) => files.iter().any(|(_, why)| matches!(why, Unfrozen::Changed { .. })),
        }
    }

    /// Why a call that asks for frozen files is refused; none where they are.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let (code, step) = match self {
            Self::Frozen(_) => return None,
            Self::NoLock => ("lock::missing", "restore the lock, or write it with `nucleus-gate policy freeze`"),
            Self::Unfrozen(files) => {
                let (file, why) = files.first()?;
                (why.code(), step(file, *why))
            }
        };
        Some(Refusal { code, help: format!("{step}; --unfrozen judges it all the same, and says so") })
    }
}

/// Why what is not frozen is not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: &'static str,
    /// The next step.
    pub help: String,
}

/// The next step for a file (its kind and path) that is not frozen.
fn step(file: &str, why: Unfrozen) -> &'static str {
    let (kind, path) = file.split_once(' ').unwrap_or(("", file));
    let lies = |folder: &str| path.strip_prefix(folder).is_some_and(|name| !name.contains('/'));
    let freezable = lies("policies/") || lies("matrices/");
    match why {
        Unfrozen::NotListed if !freezable => {
            "only what lies in policies/ and matrices/ is frozen: use a file there, or move this one there and write the \
             lock with `nucleus-gate policy freeze`"
        }
        Unfrozen::NotListed if kind == "matrix" => {
            "review the matrix, then freeze it with `nucleus-gate policy freeze`"
        }
        Unfrozen::Changed { .. } if kind == "matrix" => {
            "restore the frozen matrix; or review the change, then freeze it with `nucleus-gate policy freeze`"
        }
        Unfrozen::NotListed => {
            "review the policy with `nucleus-gate policy diff`, then freeze it with `nucleus-gate policy freeze`"
        }
        Unfrozen::Changed { .. } => {
            "restore the frozen policy; or review the change with `nucleus-gate policy diff`, then freeze it with \
             `nucleus-gate policy freeze`"
        }
    }
}

fn entries(node: &mut Node<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut listed: BTreeMap<String, SourceSpan> = BTreeMap::new();
    for mut child in node.children() {
        let kind = match child.name() {
            "policy" => Frozen::Policy,
            "matrix" => Frozen::Matrix,
            _ => {
                child.unknown("lock::unknown-node", "kind of file", &["policy", "matrix"]);
                continue;
            }
        };
        let path = child.argument::<String>("a path");
        let sha256 = child.property::<Sha256>("sha256");
        let semantic = match kind {
            Frozen::Policy => child.property::<Sha256>("semantic").map(|hash| hash.value),
            Frozen::Matrix => None,
        };
        if let Some(path) = path.as_ref().filter(|path| path.value.chars().any(crate::text::is_unsafe)) {
            let message = "a frozen file's path has no control or bidirectional characters";
            let issue = Issue::error("lock::path", message, path.span, "not a fit path");
            child.report(issue.help("rename the file, then write the lock anew with `policy freeze`"));
        }
        if let (Some(path), Some(sha256)) = (path, sha256) {
            if let Some(first) = listed.get(&path.value) {
                let message = format!("`{}` is listed twice", path.value);
                let issue = Issue::error("lock::duplicate", message, path.span, "listed again here");
                child.report(issue.and(*first, "first listed here").help("keep one of the two"));
            }
            listed.entry(path.value.clone()).or_insert(path.span);
            entries.push(Entry { kind, path: path.value, sha256: sha256.value, semantic });
        }
        child.finish();
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Frozen, path: &str) -> Entry {
        let semantic = (kind == Frozen::Policy).then(|| Sha256::of(b"meaning"));
        Entry { kind, path: path.to_owned(), sha256: Sha256::of(path.as_bytes()), semantic }
    }

    fn read(text: &str) -> Result<Lock, Issues> {
        Lock::read(Source::new("lock", text))
    }

    #[track_caller]
    fn assert_issue(text: &str, code: &str, underlined: &str) {
        let issues = read(text).expect_err("the text has an issue");
        let [issue] = issues.list.as_slice() else { panic!("{:?}", issues.list) };
        let span = issue.labels[0].0;
        assert_eq!((issue.code, &text[span.offset()..span.offset() + span.len()]), (code, underlined));
    }

    #[test]
    fn what_is_written_reads_back_and_verifies() {
        let files = [entry(Frozen::Matrix, "matrices/m.kdl"), entry(Frozen::Policy, "policies/p.kdl")];
        let text = Lock::render(&files);
        let lock = read(&text).unwrap();
        assert_eq!(lock.entries, [files[1].clone(), files[0].clone()]);
        let good = Sha256::of(b"policies/p.kdl");
        assert_eq!(lock.verify(Frozen::Policy, "policies/p.kdl", good), Ok(()));
        assert_eq!(lock.verify(Frozen::Matrix, "policies/p.kdl", good), Err(Unfrozen::NotListed));
        assert_eq!(lock.verify(Frozen::Policy, "policies/q.kdl", good), Err(Unfrozen::NotListed));
        let other = Sha256::of(b"other");
        let changed = Unfrozen::Changed { frozen: good, found: other };
        assert_eq!(lock.verify(Frozen::Policy, "policies/p.kdl", other), Err(changed));
        assert_eq!((Unfrozen::NotListed.code(), changed.code()), ("lock::not-listed", "lock::changed"));
    }

    #[test]
    fn a_run_is_frozen_only_where_both_files_are() {
        let lock = read(&Lock::render(&[entry(Frozen::Policy, "p"), entry(Frozen::Matrix, "m")])).unwrap();
        let file = |kind, path: &str, bytes: &str| (kind, path.to_owned(), Sha256::of(bytes.as_bytes()));
        let (policy, matrix) = (file(Frozen::Policy, "p", "p"), file(Frozen::Matrix, "m", "m"));
        assert_eq!(Freeze::of(None, std::slice::from_ref(&policy)), Freeze::NoLock);
        let frozen = Freeze::of(Some(&lock), &[policy.clone(), matrix.clone()]);
        assert_eq!((frozen.name(), frozen.complaint()), ("frozen", None));
        let changed = Freeze::of(Some(&lock), &[file(Frozen::Policy, "p", "other"), matrix]);
        assert_eq!(changed.name(), "unfrozen");
        assert!(changed.complaint().unwrap().starts_with("policy p is not the frozen one: the lock has "));
        let unknown = Freeze::of(Some(&lock), &[policy, file(Frozen::Matrix, "n", "m")]);
        assert_eq!(unknown.complaint().unwrap(), "matrix n is not frozen: the lock does not list it");
    }

    #[test]
    fn a_refusal_names_the_step_that_fits_the_file() {
        let refusal = |file: &str, why| Freeze::Unfrozen(vec![(file.to_owned(), why)]).refusal().unwrap();
        let changed = Unfrozen::Changed { frozen: Sha256::of(b"a"), found: Sha256::of(b"b") };
        assert_eq!(Freeze::Frozen(Sha256::of(b"lock")).refusal(), None);
        assert_eq!(Freeze::NoLock.refusal().unwrap().code, "lock::missing");
        assert_eq!(Freeze::NoLock.complaint().unwrap(), "no lock: nothing is frozen");
        for why in [changed, Unfrozen::NotListed] {
            let (policy, matrix) = (refusal("policy policies/p.kdl", why), refusal("matrix matrices/m.kdl", why));
            assert_eq!((policy.code, matrix.code), (why.code(), why.code()));
            assert!(policy.help.contains("policy diff") && !matrix.help.contains("policy diff"), "{matrix:?}");
            assert!(!policy.help.contains("only what lies") && !matrix.help.contains("only what lies"), "{matrix:?}");
        }
        for outside in ["policy mine.kdl", "matrix nucleus-gate-run/1/matrix.kdl", "matrix matrices/sub/m.kdl"] {
            assert!(refusal(outside, Unfrozen::NotListed).help.starts_with("only what lies in policies/"), "{outside}");
        }
    }

    #[test]
    fn a_lock_has_one_spelling_and_its_own_digest() {
        let fit = Lock::render(&[entry(Frozen::Policy, "p"), entry(Frozen::Matrix, "m")]);
        assert!(read(&fit).unwrap().is_whole());
        let other = (Sha256::of(b"m").to_string(), Sha256::of(b"n").to_string());
        for changed in [fit.replace(&other.0, &other.1), fit.replace("// What", "// That"), fit.clone() + "\n"] {
            assert_ne!(changed, fit);
            assert!(!read(&changed).unwrap().is_whole());
        }
    }

    #[test]
    fn each_code_has_a_text_that_trips_it() {
        let fit = Lock::render(&[entry(Frozen::Policy, "p"), entry(Frozen::Matrix, "m")]);
        assert_issue("", "lock::not-a-lock", "");
        assert_issue("look schema=1 {}", "lock::unknown-node", "look");
        assert_issue(&fit.replace("schema=1", "schema=2"), "lock::unknown-schema", "2");
        let (_, lines) = fit.split_once(" {\n").unwrap();
        assert_issue(&format!("lock schema=1 {{\n{lines}"), "kdl::missing-property", "lock");
        assert_issue(&fit.replace("    matrix ", "    matrx "), "lock::unknown-node", "matrx");
        assert_issue(&fit.replace("\"m\"", "\"p\""), "lock::duplicate", "\"p\"");
        assert_issue(&fit.replace("\"m\"", "\"\\u{7f}\""), "lock::path", "\"\\u{7f}\"");
        assert_issue(&fit.replace("\"m\"", "\"m\" semantic=\"x\""), "kdl::unknown-property", "semantic");
    }
}
