//! The receipt: what was judged, by what, and what came of it, as an in-toto Statement v1 in canonical JSON (RFC 8785).
//!
//! It binds everything that the verdict rests on by SHA-256, and carries each row's facts, so that a reader can check it
//! without the evidence. Numbers are strings: no reader rounds them.

mod build;
mod evaluator;
mod statement;

pub use evaluator::Evaluator;
pub use statement::{
    Bindings, Boundary, Case, CaseEvidence, Descriptor, DigestSet, EvaluatorBinding, Execution, FileBinding, Harness,
    InputFile, OracleBinding, PREDICATE_TYPE, Patch, Predicate, Report, Row, RowOracle, RowSubject, Rule,
    STATEMENT_TYPE, Statement, StopReason, SubjectBinding, Violation,
};

use crate::gate::Run;

/// The receipt of a run, as canonical JSON.
///
/// # Errors
/// Only where the types hold something that canonical JSON cannot say, which they do not.
pub fn receipt(run: &Run, evaluator: &Evaluator) -> Result<Vec<u8>, serde_json::Error> {
    serde_json_canonicalizer::to_vec(&build::statement(run, evaluator))
}
