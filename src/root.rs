//! The project root, and the only way to turn a path that a file names into one that may be opened.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The folder that every path named in a matrix or a lock is relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRoot(PathBuf);

/// Why a path that a file names is not opened.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The path is empty, or has an empty, `.` or `..` component, a backslash or a NUL.
    #[error("`{path}` is not a plain relative path: no empty, `.` or `..` component, no backslash")]
    NotPlain {
        /// As written.
        path: String,
    },
    /// The path is absolute.
    #[error("`{path}` is absolute: paths are relative to the project root")]
    Absolute {
        /// As written.
        path: String,
    },
    /// A link on the way leads outside the root.
    #[error("`{path}` leads outside the project root through a link")]
    Leaves {
        /// As written.
        path: String,
    },
    /// Nothing is there, or it cannot be reached.
    #[error("`{path}` cannot be reached: {source}")]
    Unreachable {
        /// As written.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl PathError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotPlain { .. } => "path-not-plain",
            Self::Absolute { .. } => "path-absolute",
            Self::Leaves { .. } => "path-leaves-root",
            Self::Unreachable { .. } => "path-unreachable",
        }
    }
}

impl ProjectRoot {
    /// The root at `folder`.
    ///
    /// # Errors
    /// When `folder` does not exist or cannot be reached.
    pub fn at(folder: &Path) -> io::Result<Self> {
        folder.canonicalize().map(Self)
    }

    /// The nearest folder above `file`, as it is written, that holds `policies/`, or `None`. Links on the way are not
    /// followed: a link to another project's file does not move the root there.
    #[must_use]
    pub fn above(file: &Path) -> Option<Self> {
        let mut folder = PathBuf::new();
        for part in std::path::absolute(file).ok()?.parent()?.components() {
            match part {
                // Whatever link this leaves, the file must lie inside the root all the same: see `holds`.
                Component::ParentDir => drop(folder.pop()),
                part => folder.push(part),
            }
        }
        folder.ancestors().find(|folder| folder.join("policies").is_dir()).and_then(|folder| Self::at(folder).ok())
    }

    /// Whether the existing `file` lies inside the root, all links followed.
    #[must_use]
    pub fn holds(&self, file: &Path) -> bool {
        file.canonicalize().is_ok_and(|file| file.starts_with(&self.0))
    }

    /// The nearest folder around this root that has a lock: whose files would escape it, if this were the root.
    #[must_use]
    pub fn locked_around(&self) -> Option<&Path> {
        let locked = |folder: &&Path| folder.join(crate::policy::LOCK_PATH).symlink_metadata().is_ok();
        self.0.ancestors().skip(1).find(locked)
    }

    /// The nearest folder that holds `policies/`, `folder` itself or one above it, or `None`.
    #[must_use]
    pub fn around(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        folder.ancestors().find(|folder| folder.join("policies").is_dir()).map(|folder| Self(folder.to_owned()))
    }

    /// Whether there is a `policies` in it, whatever it is.
    #[must_use]
    pub fn has_policies(&self) -> bool {
        self.0.join("policies").symlink_metadata().is_ok()
    }

    /// The root folder, absolute and without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The existing file or folder that `path` names, absolute and without links, and inside the root.
    ///
    /// # Errors
    /// As [`PathError`] says.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, PathError> {
        let owned = || path.to_owned();
        if Path::new(path).is_absolute() {
            return Err(PathError::Absolute { path: owned() });
        }
        // Checked on the text: `Path::components` would silently drop `.` and doubled separators.
        let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
        if !path.split('/').all(plain) {
            return Err(PathError::NotPlain { path: owned() });
        }
        let found = self.0.join(path).canonicalize();
        let found = found.map_err(|source| PathError::Unreachable { path: owned(), source })?;
        if found.starts_with(&self.0) { Ok(found) } else { Err(PathError::Leaves { path: owned() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn code(root: &ProjectRoot, path: &str) -> &'static str {
        root.resolve(path).expect_err(path).code()
    }

    #[test]
    fn paths_stay_inside_the_root() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("project");
        fs::create_dir_all(inner.join("policies")).unwrap();
        fs::create_dir_all(inner.join("matrices")).unwrap();
        fs::write(outer.path().join("secret"), "x").unwrap();
        fs::write(inner.join("matrices/m.kdl"), "x").unwrap();
        let root = ProjectRoot::above(&inner.join("matrices/m.kdl")).unwrap();
        assert_eq!(root, ProjectRoot::at(&inner).unwrap());
        assert_eq!(root.resolve("matrices/m.kdl").unwrap(), root.path().join("matrices/m.kdl"));

        for path in ["", "..", "../secret", "matrices/../../secret", "./matrices", "matrices//m.kdl", "a\\b", "a\0b"] {
            assert_eq!(code(&root, path), "path-not-plain", "{path:?}");
        }
        assert_eq!(code(&root, &outer.path().join("secret").display().to_string()), "path-absolute");
        assert_eq!(code(&root, "matrices/absent"), "path-unreachable");

        std::os::unix::fs::symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        std::os::unix::fs::symlink(inner.join("matrices"), inner.join("within")).unwrap();
        assert_eq!(code(&root, "link"), "path-leaves-root");
        assert_eq!(root.resolve("within/m.kdl").unwrap(), root.path().join("matrices/m.kdl"));
    }

    #[test]
    fn a_link_or_a_nested_folder_does_not_move_the_root_off_a_lock() {
        let outer = tempfile::tempdir().unwrap();
        let folder = |name: &str| outer.path().join(name);
        for name in ["a/policies", "a/matrices/policies", "b/policies", "b/matrices"] {
            fs::create_dir_all(folder(name)).unwrap();
        }
        for name in ["a/m.kdl", "a/matrices/m.kdl", "b/matrices/m.kdl", "a/policies/nucleus-gate.lock"] {
            fs::write(folder(name), "x").unwrap();
        }
        let a = ProjectRoot::at(&folder("a")).unwrap();
        std::os::unix::fs::symlink(folder("b/matrices/m.kdl"), folder("a/link.kdl")).unwrap();
        std::os::unix::fs::symlink(folder("b/matrices"), folder("a/elsewhere")).unwrap();
        for file in ["a/link.kdl", "a/elsewhere/m.kdl", "a/elsewhere/../elsewhere/m.kdl"] {
            assert_eq!(ProjectRoot::above(&folder(file)), Some(a.clone()), "{file}");
            assert!(!a.holds(&folder(file)), "{file}");
        }
        assert!(a.holds(&folder("a/m.kdl")) && !a.holds(&folder("a/absent")));
        assert_eq!(a.locked_around(), None);
        let nested = ProjectRoot::above(&folder("a/matrices/m.kdl")).unwrap();
        assert_eq!(nested.locked_around(), Some(a.path()));
    }

    #[test]
    fn no_policies_folder_means_no_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("m.kdl"), "x").unwrap();
        assert_eq!(ProjectRoot::above(&folder.path().join("m.kdl")), None);
    }
}
