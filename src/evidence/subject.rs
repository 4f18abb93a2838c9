//! `subject.json`: which build of which kernel ran, on what, by which harness.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Sha256;
use crate::json::{self, JsonError};

/// The schema that this version reads and writes.
pub const SCHEMA: &str = "nucleus-gate/subject/v1";

/// Who a bundle's evidence is of. Unknown fields are refused: a misspelled `patch_of` must not read as "no patch". A
/// later shape gets a later schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// [`SCHEMA`].
    pub schema: String,
    /// The subject's name.
    pub name: String,
    /// What ran, in words.
    pub description: String,
    /// The engine that the kernel belongs to.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// The sources that the kernel was built from.
    pub sources: Vec<Source>,
    /// The device that it ran on.
    pub device: Device,
    /// Versions of what it ran under, by name.
    pub runtime: BTreeMap<String, String>,
    /// What captured the evidence.
    pub harness: Harness,
    /// The recorded cases, in the order run.
    pub cases: Vec<String>,
    /// Where the subject is another one with a patch applied: which, and by which patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_of: Option<PatchOf>,
}

/// One source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its path in the engine's tree.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Sha256,
}

/// The device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As the driver names it.
    pub name: String,
    /// Compute capability, major and minor, of a CUDA device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<[u32; 2]>,
    /// Multiprocessors of a CUDA device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
}

/// The program that captured the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Its name.
    pub name: String,
    /// The digest of its bytes.
    pub sha256: Sha256,
}

/// What a patched subject was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchOf {
    /// The unpatched subject's name.
    pub subject: String,
    /// The digest of the patch file.
    pub patch_sha256: Sha256,
}

impl Subject {
    /// Reads `subject.json`.
    ///
    /// # Errors
    /// [`SubjectError`].
    pub fn read(bytes: &[u8]) -> Result<Self, SubjectError> {
        let subject: Self = json::from_slice(bytes)?;
        if subject.schema == SCHEMA { Ok(subject) } else { Err(SubjectError::Schema { found: subject.schema }) }
    }

    /// The driver's version, where the harness recorded it (in `runtime`).
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        self.runtime.get("driver").map(String::as_str)
    }
}

/// Why `subject.json` is not readable.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Not JSON, a key twice, or not the fields of a subject.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Another schema.
    #[error("schema `{found}`, expected `{SCHEMA}`")]
    Schema {
        /// As stated.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn recorded(bundle: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200");
        fs::read_to_string(folder.join(bundle).join("subject.json")).unwrap()
    }

    #[test]
    fn the_recorded_subjects_read_and_write_back() {
        for bundle in ["stock", "patch", "monolithic-0.32.0"] {
            let subject = Subject::read(recorded(bundle).as_bytes()).unwrap();
            assert_eq!((subject.name.as_str(), subject.cases.len()), (bundle, 27));
            assert_eq!(subject.patch_of.is_some(), bundle == "patch");
            assert_eq!(subject.driver(), None);
            assert_eq!(Subject::read(&serde_json::to_vec(&subject).unwrap()).unwrap(), subject);
        }
    }

    #[test]
    fn misspelled_doubled_and_foreign_subjects_are_refused() {
        let refused = |from: &str, to: &str| {
            let text = recorded("patch").replacen(from, to, 1);
            Subject::read(text.as_bytes()).expect_err(from).to_string()
        };
        assert!(refused("patch_of", "patch-of").contains("unknown field `patch-of`"));
        assert!(refused("\"engine\"", "\"name\"").contains("the key `name` stands twice"));
        assert!(refused("subject/v1", "subject/v2").contains("schema `nucleus-gate/subject/v2`"));
        assert!(refused("7748c8", "7748C8").contains("64 lowercase hexadecimal digits"));
    }
}
