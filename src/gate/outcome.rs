//! What came of a run: typed, complete, and judged nowhere else.

use std::time::Duration;

use miette::SourceSpan;

use super::Neighbourhood;
use super::tally::RuleTally;
use crate::digest::Sha256;
use crate::evidence::Subject;
use crate::matrix::{Matrix, RowKind};
use crate::oracle::{Certificate, Nucleus, OracleError};
use crate::policy::{Freeze, Policy};
use crate::rules::Finding;

/// Everything that a run found.
#[derive(Debug, Clone)]
pub struct Run {
    /// The policy.
    pub policy: Policy,
    /// The matrix.
    pub matrix: Matrix,
    /// Whether policy and matrix are the frozen ones. A run alone knows no lock; its caller says.
    pub freeze: Freeze,
    /// The subjects, in the policy's order.
    pub subjects: Vec<RunSubject>,
    /// What stopped the run as a whole.
    pub faults: Vec<Fault>,
    /// Every case, in the matrix's order.
    pub cases: Vec<CaseOutcome>,
    /// Every rule, in the policy's order.
    pub rules: Vec<RuleTally>,
    /// Every report item, in the policy's order.
    pub reports: Vec<ReportOutcome>,
    /// Whether everything was decided.
    pub execution: Execution,
    /// What was decided.
    pub decision: Decision,
    /// The time spent in the oracle, summed over workers.
    pub oracle_time: Duration,
    /// The wall-clock time of the run.
    pub elapsed: Duration,
    /// How many workers shared it.
    pub workers: usize,
}

impl Run {
    /// What kept the run from leaving its files. Without them it is no verdict.
    pub fn unrecorded(&mut self, fault: Fault) {
        self.faults.push(fault);
        self.execution = Execution::Stopped;
    }

    /// Faults of the run and of every case.
    pub fn all_faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().chain(self.cases.iter().flat_map(|case| &case.faults))
    }

    /// Every undeclared violation, in the order of cases, rows and rules.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        let rows = self.cases.iter().flat_map(|case| case.rows.iter().flat_map(RowOutcome::violations));
        rows.chain(self.reports.iter().filter_map(|report| report.violation.as_ref()))
    }
}

/// Whether a run went to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// Every row of every case was decided.
    Complete,
    /// Something was not judged; the faults say what and why.
    Stopped,
}

/// What a run decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No rule was violated on any row that was judged, and at least one applied.
    Pass,
    /// A rule was violated.
    Fail,
    /// No rule decided anything.
    NotEvaluated,
}

impl Decision {
    /// The name in reports and receipts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotEvaluated => "not-evaluated",
        }
    }
}

/// Why something was not judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What kind of stop it is.
    pub class: FaultClass,
    /// The stable code.
    pub code: String,
    /// What is wrong, with expected and found.
    pub message: String,
    /// The next step.
    pub help: String,
    /// Where in the policy or the matrix.
    pub place: Option<Place>,
}

/// A place in one of the two files, with the words that stand under it.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// In the policy.
    Policy(SourceSpan, String),
    /// In the matrix.
    Matrix(SourceSpan, String),
}

/// The classes of stop, by exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultClass {
    /// 5: something is not the frozen thing.
    Drift,
    /// 2: policy and matrix do not fit each other.
    Invocation,
    /// 3: unreadable or missing evidence, an ambiguous oracle, a limit, a timeout.
    Stopped,
    /// 4: no deciding rule applied to any row.
    NothingEvaluated,
}

impl FaultClass {
    /// The name in reports and receipts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::Invocation => "invocation",
            Self::Stopped => "stopped",
            Self::NothingEvaluated => "nothing-evaluated",
        }
    }
}

/// A subject as the run found it.
#[derive(Debug, Clone)]
pub struct RunSubject {
    /// Its name in the policy.
    pub name: String,
    /// The digest of its bundle, where it could be read.
    pub bundle_sha256: Option<Sha256>,
    /// Every file of the bundle with its digest, sorted by name.
    pub files: Vec<(String, Sha256)>,
    /// What its subject.json says, where it could be read.
    pub subject: Option<Subject>,
}

/// What came of one case.
#[derive(Debug, Clone)]
pub struct CaseOutcome {
    /// Its place in the matrix.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Rows and tokens, where the inputs could be built.
    pub shape: Option<(u32, u32)>,
    /// Digests of logits and p as built or read.
    pub inputs: Option<(Sha256, Sha256)>,
    /// The evidence as read, in the order of the subjects; empty where it was not needed or could not be read.
    pub evidence: Vec<SubjectCase>,
    /// Why the case was not judged, or not wholly. Empty for a judged case.
    pub faults: Vec<Fault>,
    /// The rows; empty for a case that was not judged.
    pub rows: Vec<RowOutcome>,
    /// Time in the oracle.
    pub(super) oracle_nanos: u64,
}

/// One subject's evidence of one case.
#[derive(Debug, Clone)]
pub struct SubjectCase {
    /// The subject.
    pub subject: String,
    /// The dispatch path.
    pub dispatch: String,
    /// Everything that the evidence says of the dispatch, as canonical JSON.
    pub dispatch_facts: String,
    /// The digest of the raw output.
    pub output_sha256: Sha256,
    /// The digest of the evidence file.
    pub file_sha256: Sha256,
}

/// What came of one row.
#[derive(Debug, Clone)]
pub struct RowOutcome {
    /// The row.
    pub row: u32,
    /// How it is judged.
    pub kind: RowKind,
    /// Its p (fp32).
    pub p: f32,
    /// What the oracle said.
    pub oracle: RowOracle,
    /// Whether the nucleus is also the one of exact reals, where the row has one. Changes no verdict.
    pub certificate: Option<Certificate>,
    /// The subjects' outputs in numbers, in the order of the subjects.
    pub subjects: Vec<SubjectFacts>,
    /// Every rule of the row's kind, by index into the policy's rules.
    pub judgements: Vec<Judgement>,
    /// Declared outcomes that did not happen.
    pub absent: Vec<Violation>,
}

impl RowOutcome {
    /// Whether every rule was decided and none was violated against expectation.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.violations().next().is_none() && !self.judgements.iter().any(|judgement| judgement.status.is_open())
    }

    /// `passed`, `violated` or `not-evaluated`.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.violations().next().is_some(), self.passes()) {
            (true, _) => "violated",
            (false, true) => "passed",
            (false, false) => "not-evaluated",
        }
    }

    /// The undeclared violations, and the declared ones that did not happen.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        let violated = self.judgements.iter().filter_map(|judgement| match &judgement.status {
            Status::Violated(violation) => Some(violation.as_ref()),
            Status::Passed | Status::Declared(_) | Status::NotApplicable(_) | Status::NotEvaluated { .. } => None,
        });
        violated.chain(&self.absent)
    }
}

/// What the oracle said of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowOracle {
    /// The certified nucleus.
    Nucleus(Nucleus),
    /// A disabled row has none.
    Disabled,
    /// The declared rejection.
    Rejected(OracleError),
}

/// One subject's output on one row, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectFacts {
    /// Kept tokens.
    pub kept: u64,
    /// NaNs.
    pub nan: u32,
    /// Kept tokens whose bits are not the input's.
    pub altered: u32,
    /// Oracle tokens that are dropped.
    pub missing: u64,
    /// Kept tokens that the oracle drops.
    pub extra: u64,
    /// Whether the forced token is kept, on a forced row.
    pub forced_kept: Option<bool>,
    /// The digest of the kept set (least significant bit first, padded with zeros).
    pub kept_sha256: Sha256,
}

/// One rule on one row.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Index into the policy's rules.
    pub rule: usize,
    /// What came of it.
    pub status: Status,
}

/// What came of one rule on one row.
#[derive(Debug, Clone)]
pub enum Status {
    /// It holds.
    Passed,
    /// It is violated.
    Violated(Box<Violation>),
    /// It is violated, as the matrix declares of this probe row.
    Declared(Finding),
    /// It has nothing to say of this row.
    NotApplicable(String),
    /// It could not be evaluated.
    NotEvaluated {
        /// Why.
        why: String,
        /// Whether that follows from a declared violation, and so counts as decided.
        declared: bool,
    },
}

impl Status {
    /// Whether the row is left undecided by it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::NotEvaluated { declared, .. } => !declared,
            Self::Passed | Self::Violated(_) | Self::Declared(_) | Self::NotApplicable(_) => false,
        }
    }
}

/// A violation with everything that a reader needs.
#[derive(Debug, Clone)]
pub struct Violation {
    /// What is violated.
    pub of: ViolationOf,
    /// The case's index and the row, for a violation of a row.
    pub at: Option<(usize, u32)>,
    /// The numbers.
    pub finding: Finding,
    /// The boundary's neighbourhood, where the row has one.
    pub neighbourhood: Option<Neighbourhood>,
}

/// What a violation violates.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationOf {
    /// A rule, by index into the policy's rules.
    Rule(usize),
    /// A report item with `deny`, by index into the policy's reports.
    Report(usize),
    /// A declared outcome of the matrix, by its place.
    Expectation(SourceSpan),
}

/// What came of one report item.
#[derive(Debug, Clone)]
pub struct ReportOutcome {
    /// The id.
    pub id: String,
    /// Whether what it looks for holds everywhere; nothing where it applied nowhere.
    pub holds: Option<bool>,
    /// Rows (or cases) on which it holds.
    pub count: u64,
    /// Rows (or cases) on which it was evaluated.
    pub of: u64,
    /// One sentence.
    pub summary: String,
    /// The places where it does not hold, a line each.
    pub details: Vec<String>,
    /// The violation, for an item with `deny`.
    pub violation: Option<Violation>,
}

/// The two axes, from everything that was found.
pub(super) fn axes(faults: &[Fault], cases: &[CaseOutcome], reports: &[ReportOutcome]) -> (Execution, Decision) {
    let complete = faults.is_empty() && cases.iter().all(|case| case.faults.is_empty());
    let execution = if complete { Execution::Complete } else { Execution::Stopped };
    let rows = || cases.iter().flat_map(|case| &case.rows);
    let violated = rows().any(|row| row.violations().next().is_some());
    let denied = reports.iter().any(|report| report.violation.is_some());
    let open = rows().any(|row| row.judgements.iter().any(|judgement| judgement.status.is_open()));
    let decided = rows().any(|row| !row.judgements.is_empty() || matches!(row.oracle, RowOracle::Rejected(_)));
    let decision = match (violated || denied, decided && !open) {
        (true, _) => Decision::Fail,
        (false, true) => Decision::Pass,
        (false, false) => Decision::NotEvaluated,
    };
    (execution, decision)
}
