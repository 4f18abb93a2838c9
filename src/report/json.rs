//! The report for machines. Its schema has a version of its own; numbers beyond 2^53 and thresholds are strings.

use serde::Serialize;

use super::diagnostic::{rule_code, rule_id};
use crate::digest::Sha256;
use crate::gate::{
    CaseOutcome, Execution, ExitCode, Fault, Place, RowOracle, RowOutcome, Run, Status, Violation, ViolationOf,
};
use crate::oracle::Certificate;
use crate::text::sanitize_json;

/// The schema of the JSON report.
pub const SCHEMA: &str = "nucleus-gate/report/v1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    policy: File<'a>,
    matrix: File<'a>,
    freeze: FreezeJson,
    execution: &'static str,
    decision: &'static str,
    exit_code: u8,
    faults: Vec<FaultJson<'a>>,
    rules: Vec<RuleJson<'a>>,
    reports: Vec<ReportJson<'a>>,
    cases: Vec<CaseJson<'a>>,
    violations: Vec<ViolationJson<'a>>,
    timing: Timing,
}

#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    file: &'a str,
    sha256: Sha256,
}

/// Whether both are the frozen ones: `frozen`, `unfrozen` (and why) or `no-lock`.
#[derive(Serialize)]
struct FreezeJson {
    state: &'static str,
    why: Option<String>,
}

#[derive(Serialize)]
struct FaultJson<'a> {
    class: &'static str,
    code: &'a str,
    case: Option<&'a str>,
    message: &'a str,
    help: &'a str,
    place: Option<PlaceJson<'a>>,
}

/// Bytes of one of the two files whose digests stand above.
#[derive(Serialize)]
struct PlaceJson<'a> {
    file: &'static str,
    offset: usize,
    length: usize,
    line: usize,
    label: &'a str,
}

#[derive(Serialize)]
struct RuleJson<'a> {
    id: &'a str,
    kind: &'static str,
    passed: u64,
    violated: u64,
    declared: u64,
    not_applicable: u64,
    not_evaluated: u64,
    not_evaluated_declared: u64,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    id: &'a str,
    holds: Option<bool>,
    count: u64,
    of: u64,
    summary: &'a str,
    details: &'a [String],
}

#[derive(Serialize)]
struct CaseJson<'a> {
    name: &'a str,
    batch: Option<u32>,
    vocab: Option<u32>,
    logits_sha256: Option<Sha256>,
    p_sha256: Option<Sha256>,
    evidence: Vec<EvidenceJson<'a>>,
    faults: Vec<&'a str>,
    rows: Vec<RowJson<'a>>,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    subject: &'a str,
    dispatch: &'a str,
    output_sha256: Sha256,
    file_sha256: Sha256,
}

#[derive(Serialize)]
struct RowJson<'a> {
    row: u32,
    kind: &'static str,
    p_bits: String,
    verdict: &'static str,
    oracle: OracleJson,
    subjects: Vec<SubjectJson<'a>>,
    rules: Vec<JudgementJson<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum OracleJson {
    Nucleus {
        count: u32,
        last_kept: u32,
        next_dropped: Option<u32>,
        normalizer_bits: String,
        target_bits: String,
        /// Whether it is also the nucleus of exact reals.
        certificate: Option<&'static str>,
        /// The precision that a certificate needed beyond binary64's.
        certificate_bits: Option<u32>,
    },
    Disabled,
    Rejected {
        code: &'static str,
    },
}

#[derive(Serialize)]
struct SubjectJson<'a> {
    name: &'a str,
    kept: u64,
    nan: u32,
    altered: u32,
    missing: u64,
    extra: u64,
    kept_sha256: Sha256,
}

#[derive(Serialize)]
struct JudgementJson<'a> {
    rule: &'a str,
    status: &'static str,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct ViolationJson<'a> {
    code: String,
    rule: &'a str,
    case: Option<&'a str>,
    row: Option<u32>,
    message: &'a str,
    observed: &'a str,
    allowed: &'a str,
    difference: u64,
    token: Option<u32>,
    facts: &'a [String],
    place: Option<PlaceJson<'a>>,
}

#[derive(Serialize)]
struct Timing {
    oracle_worker_microseconds: u64,
    elapsed_microseconds: u64,
    workers: usize,
}

/// The whole report as pretty-printed JSON with a final newline.
///
/// # Errors
/// Never in practice: the types hold nothing that JSON cannot say.
pub fn json(run: &Run) -> Result<String, serde_json::Error> {
    let file = |source: &'_ crate::syntax::Source| (source.sha256(), source.name().to_owned());
    let ((policy_sha256, policy_file), (matrix_sha256, matrix_file)) =
        (file(&run.policy.source), file(&run.matrix.source));
    let report = Report {
        schema: SCHEMA,
        freeze: FreezeJson { state: run.freeze.name(), why: run.freeze.complaint() },
        policy: File { name: &run.policy.name, file: &policy_file, sha256: policy_sha256 },
        matrix: File { name: &run.matrix.name, file: &matrix_file, sha256: matrix_sha256 },
        execution: match run.execution {
            Execution::Complete => "complete",
            Execution::Stopped => "stopped",
        },
        decision: run.decision.name(),
        exit_code: ExitCode::of(run).number(),
        faults: faults(run),
        rules: rules(run),
        reports: reports(run),
        cases: run.cases.iter().map(|case| case_json(run, case)).collect(),
        violations: run.violations().map(|violation| violation_json(run, violation)).collect(),
        timing: Timing {
            oracle_worker_microseconds: run.oracle_time.as_micros() as u64,
            elapsed_microseconds: run.elapsed.as_micros() as u64,
            workers: run.workers,
        },
    };
    Ok(sanitize_json(&serde_json::to_string_pretty(&report)?) + "\n")
}

fn faults(run: &Run) -> Vec<FaultJson<'_>> {
    let whole = run.faults.iter().map(|fault| (None, fault));
    let cases = run.cases.iter().flat_map(|case| case.faults.iter().map(|fault| (Some(case.name.as_str()), fault)));
    whole.chain(cases).map(|(case, fault)| fault_json(run, case, fault)).collect()
}

fn fault_json<'a>(run: &'a Run, case: Option<&'a str>, fault: &'a Fault) -> FaultJson<'a> {
    FaultJson {
        class: fault.class.name(),
        code: &fault.code,
        case,
        message: &fault.message,
        help: &fault.help,
        place: fault.place.as_ref().map(|place| match place {
            Place::Policy(span, label) => place_json(run, true, *span, label),
            Place::Matrix(span, label) => place_json(run, false, *span, label),
        }),
    }
}

fn place_json<'a>(run: &'a Run, policy: bool, span: miette::SourceSpan, label: &'a str) -> PlaceJson<'a> {
    let source = if policy { &run.policy.source } else { &run.matrix.source };
    PlaceJson {
        file: if policy { "policy" } else { "matrix" },
        offset: span.offset(),
        length: span.len(),
        line: source.line(span.offset()),
        label,
    }
}

fn rules(run: &Run) -> Vec<RuleJson<'_>> {
    let pairs = run.policy.rules().zip(&run.rules);
    pairs
        .map(|(rule, tally)| RuleJson {
            id: &tally.id,
            kind: rule.check.name(),
            passed: tally.passed,
            violated: tally.violated,
            declared: tally.declared,
            not_applicable: tally.not_applicable,
            not_evaluated: tally.not_evaluated,
            not_evaluated_declared: tally.not_evaluated_declared,
        })
        .collect()
}

fn reports(run: &Run) -> Vec<ReportJson<'_>> {
    run.reports
        .iter()
        .map(|report| ReportJson {
            id: &report.id,
            holds: report.holds,
            count: report.count,
            of: report.of,
            summary: &report.summary,
            details: &report.details,
        })
        .collect()
}

fn case_json<'a>(run: &'a Run, case: &'a CaseOutcome) -> CaseJson<'a> {
    CaseJson {
        name: &case.name,
        batch: case.shape.map(|(batch, _)| batch),
        vocab: case.shape.map(|(_, vocab)| vocab),
        logits_sha256: case.inputs.map(|(logits, _)| logits),
        p_sha256: case.inputs.map(|(_, p)| p),
        evidence: case
            .evidence
            .iter()
            .map(|evidence| EvidenceJson {
                subject: &evidence.subject,
                dispatch: &evidence.dispatch,
                output_sha256: evidence.output_sha256,
                file_sha256: evidence.file_sha256,
            })
            .collect(),
        faults: case.faults.iter().map(|fault| fault.code.as_str()).collect(),
        rows: case.rows.iter().map(|row| row_json(run, row)).collect(),
    }
}

fn row_json<'a>(run: &'a Run, row: &'a RowOutcome) -> RowJson<'a> {
    RowJson {
        row: row.row,
        kind: row.kind.name(),
        p_bits: format!("{:#010x}", row.p.to_bits()),
        verdict: row.verdict(),
        oracle: match row.oracle {
            RowOracle::Nucleus(nucleus) => OracleJson::Nucleus {
                count: nucleus.count,
                last_kept: nucleus.last_kept,
                next_dropped: nucleus.next_dropped,
                normalizer_bits: format!("{:#018x}", nucleus.normalizer.to_bits()),
                target_bits: format!("{:#018x}", nucleus.target.to_bits()),
                certificate: row.certificate.map(Certificate::name),
                certificate_bits: row.certificate.and_then(Certificate::bits),
            },
            RowOracle::Disabled => OracleJson::Disabled,
            RowOracle::Rejected(error) => OracleJson::Rejected { code: error.code() },
        },
        subjects: run
            .subjects
            .iter()
            .zip(&row.subjects)
            .map(|(subject, facts)| SubjectJson {
                name: &subject.name,
                kept: facts.kept,
                nan: facts.nan,
                altered: facts.altered,
                missing: facts.missing,
                extra: facts.extra,
                kept_sha256: facts.kept_sha256,
            })
            .collect(),
        rules: row
            .judgements
            .iter()
            .filter_map(|judgement| {
                let (status, why) = match &judgement.status {
                    Status::Passed => ("passed", None),
                    Status::Violated(violation) => ("violated", Some(violation.finding.message.as_str())),
                    Status::Declared(finding) => ("declared", Some(finding.message.as_str())),
                    Status::NotApplicable(why) => ("not-applicable", Some(why.as_str())),
                    Status::NotEvaluated { why, .. } => ("not-evaluated", Some(why.as_str())),
                };
                Some(JudgementJson { rule: &run.policy.rules().nth(judgement.rule)?.id.value, status, why })
            })
            .collect(),
    }
}

fn violation_json<'a>(run: &'a Run, violation: &'a Violation) -> ViolationJson<'a> {
    let finding = &violation.finding;
    let place = match &violation.of {
        ViolationOf::Rule(index) => run.policy.rules().nth(*index).map(|rule| (true, finding.at.unwrap_or(rule.span))),
        ViolationOf::Report(index) => {
            run.policy.reports.get(*index).map(|item| (true, finding.at.unwrap_or(item.span)))
        }
        ViolationOf::Expectation(span) => Some((false, *span)),
    };
    ViolationJson {
        code: rule_code(run, violation),
        rule: rule_id(run, violation),
        case: violation.at.and_then(|(case, _)| run.cases.get(case)).map(|case| case.name.as_str()),
        row: violation.at.map(|(_, row)| row),
        message: &finding.message,
        observed: &finding.observed,
        allowed: &finding.allowed,
        difference: finding.difference,
        token: finding.focus,
        facts: &finding.facts,
        place: place.map(|(policy, span)| place_json(run, policy, span, &finding.label)),
    }
}
