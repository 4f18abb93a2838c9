//! Evidence: what a subject (one build of a kernel) did with the inputs, as a bundle of files. Read and written here,
//! judged elsewhere.

mod bundle;
mod case;
mod dispatch;
mod error;
mod kept_set;
mod record;
mod subject;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, MAX_FILES, SUBJECT_FILE, is_bundle};
pub use case::{Argmax, CaseEvidence, RowEvidence};
pub use dispatch::{Dispatch, DispatchError};
pub use error::{Drift, Drifted, EvidenceError, Problem, Unreadable};
pub use kept_set::{KeptSet, KeptSetError};
pub use record::{Recording, RecordingError, encode_case, write_bundle};
pub use subject::{Device, Harness, PatchOf, SCHEMA, Source, Subject, SubjectError};
