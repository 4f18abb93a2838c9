//! The receipt's shape. Counts, seeds and thresholds are decimal strings; bit patterns are hexadecimal strings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Sha256;

/// in-toto's type of a statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// The type of this project's predicate.
pub const PREDICATE_TYPE: &str = "urn:nucleus-gate:receipt:v1";

/// The version of the predicate's shape.
pub const SCHEMA_VERSION: &str = "1";

/// An in-toto Statement v1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub kind: String,
    /// What was judged: the kernels' sources and the patch. Names are unique.
    pub subject: Vec<Descriptor>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What came of it.
    pub predicate: Predicate,
}

/// A thing and its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: DigestSet,
}

/// in-toto's digest set, with the one algorithm that this project uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestSet {
    /// SHA-256.
    pub sha256: Sha256,
}

/// What was judged, by what, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Predicate {
    /// The version of this shape.
    pub schema_version: String,
    /// The digest of this statement's canonical JSON with `null` here: one id for one content.
    pub receipt_sha256: Option<Sha256>,
    /// The receipt that this one replaces, by the digest of its file.
    pub replaces: Option<DigestSet>,
    /// Whether the run went to its end.
    pub execution: Execution,
    /// `pass`, `fail` or `not-evaluated`. A pass needs a complete execution too.
    pub decision: String,
    /// The exit code of the run.
    pub exit_code: String,
    /// Everything that the verdict rests on.
    pub bindings: Bindings,
    /// Every case of the matrix, in its order.
    pub cases: Vec<Case>,
    /// Every rule of the policy, in its order.
    pub rules: Vec<Rule>,
    /// Every violation, in the order of cases, rows and rules.
    pub violations: Vec<Violation>,
    /// What is reported beside the verdict.
    pub reports: Vec<Report>,
}

/// Whether the run went to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Execution {
    /// `complete` or `incomplete`.
    pub status: String,
    /// Why it is incomplete.
    pub stop_reasons: Vec<StopReason>,
    /// Cases of the matrix.
    pub expected_cases: String,
    /// Cases of which every row was decided.
    pub decided_cases: String,
}

/// One reason why a run is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopReason {
    /// `drift`, `invocation`, `stopped` or `nothing-evaluated`.
    pub class: String,
    /// The stable code.
    pub code: String,
    /// The case, where it is one case's.
    pub case: Option<String>,
    /// What was expected and found.
    pub message: String,
}

/// Whether policy and matrix were the frozen ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FreezeBinding {
    /// `frozen`, `unfrozen` or `no-lock`.
    pub state: String,
    /// The lock that lists them.
    pub lock_sha256: Option<Sha256>,
    /// What is not frozen.
    pub why: Option<String>,
}

/// Everything that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Bindings {
    /// The policy's bytes.
    pub policy: FileBinding,
    /// The digest of the policy's decoded rules, whatever the layout.
    pub policy_semantic_sha256: Sha256,
    /// The matrix's bytes.
    pub case_matrix: FileBinding,
    /// Whether both were the frozen ones.
    pub freeze: FreezeBinding,
    /// The oracle's parameters.
    pub oracle: OracleBinding,
    /// The program that judged.
    pub evaluator: EvaluatorBinding,
    /// The limits of the run, as the policy has them.
    pub limits: BTreeMap<String, String>,
    /// The kernels and their evidence.
    pub subjects: Vec<SubjectBinding>,
}

/// A file by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileBinding {
    /// The name that it gives itself.
    pub name: String,
    /// Where it lies: relative to the project root, or `builtin:NAME`; else as the call named it. Not part of its
    /// identity.
    pub file: String,
    /// Its digest.
    pub digest: DigestSet,
}

/// The oracle's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OracleBinding {
    /// The arithmetic.
    pub arithmetic: String,
    /// The canonical order.
    pub order: String,
    /// How the exponential rounds.
    pub exp: String,
    /// How the boundary is found.
    pub scan: String,
    /// How it is certified.
    pub certify: String,
}

/// The program that judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorBinding {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its executable.
    pub digest: DigestSet,
}

/// A kernel and its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SubjectBinding {
    /// The subject.
    pub name: String,
    /// Its bundle, relative to the project root.
    pub bundle: String,
    /// The digest that the matrix pins.
    pub pinned_bundle_sha256: Sha256,
    /// The digest found, where the bundle could be read.
    pub found_bundle_sha256: Option<Sha256>,
    /// Every file found in the bundle, sorted by name.
    pub files: Vec<Descriptor>,
    /// The engine and its version, as recorded.
    pub engine: Option<String>,
    /// The sources as recorded; as pinned where nothing could be read.
    pub sources: Vec<Descriptor>,
    /// The patch that made it, as recorded.
    pub patch: Option<Patch>,
    /// What captured the evidence.
    pub harness: Option<Harness>,
    /// The device, as recorded.
    pub device: Option<String>,
    /// The driver, or `not recorded`.
    pub driver: String,
    /// Versions of what it ran under.
    pub runtime: BTreeMap<String, String>,
}

/// The patch that made a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The subject that was patched.
    pub of: String,
    /// The patch.
    pub digest: DigestSet,
}

/// What captured the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub digest: DigestSet,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Rows, where the inputs could be built.
    pub batch: Option<String>,
    /// Tokens a row.
    pub vocab: Option<String>,
    /// The digest of the logits as built or read.
    pub logits_sha256: Option<Sha256>,
    /// The digest of p.
    pub p_sha256: Option<Sha256>,
    /// The input file, of a case that is not generated.
    pub file: Option<InputFile>,
    /// What each subject returned.
    pub evidence: Vec<CaseEvidence>,
    /// Every row that was judged.
    pub rows: Vec<Row>,
}

/// An input file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Relative to the project root.
    pub path: String,
    /// As pinned; a file that has drifted stops its case.
    pub digest: DigestSet,
}

/// One subject's evidence of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CaseEvidence {
    /// The subject.
    pub subject: String,
    /// The digest of the raw output.
    pub output_sha256: Sha256,
    /// The digest of the evidence file.
    pub file_sha256: Sha256,
    /// Everything recorded of the launch: path, kernels, shape, compiled code.
    pub dispatch: serde_json::Value,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Row {
    /// The row.
    pub row: String,
    /// `forced`, `ordinary`, `probe` or `disabled`.
    pub kind: String,
    /// The bits of p (fp32).
    pub p_bits: String,
    /// `passed`, `violated` or `not-evaluated`.
    pub verdict: String,
    /// What the oracle said.
    pub oracle: RowOracle,
    /// What each subject returned, in the order of the subjects.
    pub subjects: Vec<RowSubject>,
    /// Rules violated as the matrix declares.
    pub declared: Vec<String>,
}

/// What the oracle said of a row: a boundary, or the code of a declared rejection, or nothing for a disabled row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowOracle {
    /// The certified boundary.
    pub boundary: Option<Boundary>,
    /// The code of the declared rejection.
    pub rejected: Option<String>,
}

/// A certified boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Boundary {
    /// Tokens in the nucleus.
    pub count: String,
    /// The last of them.
    pub last_kept: String,
    /// The first token outside.
    pub next_dropped: Option<String>,
    /// The bits of the normalizer (binary64).
    pub normalizer_bits: String,
    /// The bits of the target.
    pub target_bits: String,
}

/// One subject's output on a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RowSubject {
    /// Kept tokens.
    pub kept: String,
    /// Oracle tokens that it drops.
    pub missing: String,
    /// Kept tokens that the oracle drops.
    pub extra: String,
    /// NaNs.
    pub nan: String,
    /// Kept tokens whose bits are not the input's.
    pub altered: String,
    /// The kept set: bit t of byte t/8, least significant bit first, padded with 0.
    pub kept_sha256: Sha256,
}

/// One rule over all rows. Not applicable is a count of its own, and never a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Rows on which it holds.
    pub passed: String,
    /// Rows on which it is violated against expectation.
    pub violated: String,
    /// Rows on which it is violated as declared.
    pub declared: String,
    /// Rows on which it does not apply.
    pub not_applicable: String,
    /// Rows on which it could not be evaluated.
    pub not_evaluated: String,
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// The rule's id; `expected-outcome` for a declared outcome that did not happen.
    pub rule: String,
    /// The case.
    pub case: Option<String>,
    /// The row.
    pub row: Option<String>,
    /// What was observed.
    pub observed: String,
    /// What is allowed.
    pub allowed: String,
}

/// One report item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its id.
    pub id: String,
    /// Whether what it looks for holds everywhere.
    pub holds: Option<bool>,
    /// Rows or cases on which it holds.
    pub count: String,
    /// Rows or cases on which it was evaluated.
    pub of: String,
}
