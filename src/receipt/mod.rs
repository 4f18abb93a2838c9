//! The receipt: what was judged, by what, and what came of it, as an in-toto Statement v1 in canonical JSON (RFC 8785).
//!
//! It binds everything that the verdict rests on by SHA-256, and carries each row's facts, so that a reader can check it
//! without the evidence. Numbers are strings: no reader rounds them.

mod arithmetic;
mod build;
mod consistency;
mod evaluator;
mod files;
mod replay;
mod seal;
mod statement;
mod test_result;
mod unjudged;
mod verify;

pub use consistency::inconsistencies;
pub use evaluator::Evaluator;
pub use files::{Claim, Earlier, MAX_BYTES, OutputError, Outputs, beside, earlier};
pub use replay::{Difference, differences};
pub use seal::{ReceiptError, open, seal};
pub use statement::{
    Bindings, Boundary, Case, CaseEvidence, Descriptor, DigestSet, EvaluatorBinding, Execution, FileBinding,
    FreezeBinding, Harness, InputFile, OracleBinding, PREDICATE_TYPE, Patch, Predicate, Report, Row, RowOracle,
    RowSubject, Rule, SCHEMA_VERSION, STATEMENT_TYPE, Statement, StopReason, SubjectBinding, Violation,
};
pub use test_result::{PREDICATE_TYPE as TEST_RESULT_TYPE, is_test_result, test_result};
pub use unjudged::{new_faults, unlike};
pub use verify::{Checked, bound_files};

use crate::gate::Run;

/// Where policy and matrix of a run lie: relative to the project root, or `builtin:NAME`, or as the call named them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The policy.
    pub policy: String,
    /// The matrix.
    pub matrix: String,
}

/// The receipt of a run, not sealed yet.
#[must_use]
pub fn statement(run: &Run, evaluator: &Evaluator, places: &Places) -> Statement {
    build::statement(run, evaluator, places)
}
