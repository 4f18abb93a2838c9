//! From a run to its receipt.

use std::collections::BTreeMap;

use super::statement as s;
use super::{Evaluator, Places};
use crate::digest::Sha256;
use crate::gate::{self, CaseOutcome, ExitCode, RowOracle, RowOutcome, Run, Status};
use crate::matrix::Origin;
use crate::policy::Freeze;
use crate::report::rule_id;

pub(super) fn statement(run: &Run, evaluator: &Evaluator, places: &Places) -> s::Statement {
    s::Statement {
        kind: s::STATEMENT_TYPE.to_owned(),
        subject: subjects(run),
        predicate_type: s::PREDICATE_TYPE.to_owned(),
        predicate: s::Predicate {
            schema_version: s::SCHEMA_VERSION.to_owned(),
            receipt_sha256: None,
            replaces: None,
            execution: execution(run),
            decision: run.decision.name().to_owned(),
            exit_code: ExitCode::of(run).number().to_string(),
            bindings: bindings(run, evaluator, places),
            cases: run.cases.iter().map(|case| self::case(run, case)).collect(),
            rules: rules(run),
            violations: run.violations().map(|violation| self::violation(run, violation)).collect(),
            reports: run.reports.iter().map(report).collect(),
        },
    }
}

fn descriptor(name: &str, sha256: Sha256) -> s::Descriptor {
    s::Descriptor { name: name.to_owned(), digest: digest(sha256) }
}

fn digest(sha256: Sha256) -> s::DigestSet {
    s::DigestSet { sha256 }
}

/// The sources and patches of every subject, by unique names.
fn subjects(run: &Run) -> Vec<s::Descriptor> {
    let mut out = Vec::new();
    for subject in subject_bindings(run) {
        for source in subject.sources {
            out.push(s::Descriptor { name: format!("{}/{}", subject.name, source.name), digest: source.digest });
        }
        if let Some(patch) = subject.patch {
            out.push(s::Descriptor { name: format!("{}/patch-of-{}", subject.name, patch.of), digest: patch.digest });
        }
    }
    out
}

fn execution(run: &Run) -> s::Execution {
    let whole = run.faults.iter().map(|fault| (None, fault));
    let cases = run.cases.iter().flat_map(|case| case.faults.iter().map(|fault| (Some(case.name.clone()), fault)));
    let decided = run.cases.iter().filter(|case| case.faults.is_empty() && !case.rows.is_empty()).count();
    s::Execution {
        status: match run.execution {
            gate::Execution::Complete => "complete",
            gate::Execution::Stopped => "incomplete",
        }
        .to_owned(),
        stop_reasons: whole
            .chain(cases)
            .map(|(case, fault)| s::StopReason {
                class: fault.class.name().to_owned(),
                code: fault.code.clone(),
                case,
                message: crate::text::sanitize(&fault.message).into_owned(),
            })
            .collect(),
        expected_cases: run.matrix.cases.len().to_string(),
        decided_cases: decided.to_string(),
    }
}

fn bindings(run: &Run, evaluator: &Evaluator, places: &Places) -> s::Bindings {
    let limits = &run.policy.limits;
    let file = |name: &str, source: &crate::syntax::Source, place: &str| s::FileBinding {
        name: name.to_owned(),
        file: place.to_owned(),
        digest: digest(source.sha256()),
    };
    s::Bindings {
        policy: file(&run.policy.name, &run.policy.source, &places.policy),
        policy_semantic_sha256: run.policy.semantic_sha256(),
        case_matrix: file(&run.matrix.name, &run.matrix.source, &places.matrix),
        freeze: s::FreezeBinding {
            state: run.freeze.name().to_owned(),
            lock_sha256: match &run.freeze {
                Freeze::Frozen(lock) => Some(*lock),
                Freeze::NoLock | Freeze::Unfrozen(_) => None,
            },
            why: run.freeze.complaint(),
        },
        oracle: s::OracleBinding {
            arithmetic: "binary64".to_owned(),
            order: "logit-desc token-asc".to_owned(),
            exp: "correctly rounded".to_owned(),
            scan: "neumaier".to_owned(),
            certify: "exact-sum".to_owned(),
        },
        evaluator: s::EvaluatorBinding {
            name: "nucleus-gate".to_owned(),
            version: evaluator.version.to_owned(),
            digest: digest(evaluator.sha256),
        },
        limits: BTreeMap::from([
            ("max-vocab".to_owned(), limits.max_vocab.to_string()),
            ("max-batch".to_owned(), limits.max_batch.to_string()),
            ("timeout-seconds".to_owned(), limits.timeout_seconds.to_string()),
            ("max-artifact-bytes".to_owned(), limits.max_artifact_bytes.to_string()),
        ]),
        subjects: subject_bindings(run),
    }
}

fn subject_bindings(run: &Run) -> Vec<s::SubjectBinding> {
    let pairs = run.subjects.iter().filter_map(|found| {
        let spec = run.matrix.subjects.iter().find(|spec| spec.name.value == found.name)?;
        Some((found, spec))
    });
    pairs
        .map(|(found, spec)| {
            let recorded = found.subject.as_ref();
            let pinned = || spec.sources.iter().map(|pin| (pin.path.value.clone(), pin.sha256.value)).collect();
            let sources: Vec<(String, Sha256)> = recorded.map_or_else(pinned, |subject| {
                subject.sources.iter().map(|source| (source.path.clone(), source.sha256)).collect()
            });
            s::SubjectBinding {
                name: found.name.clone(),
                bundle: spec.bundle.value.clone(),
                pinned_bundle_sha256: spec.bundle_sha256.value,
                found_bundle_sha256: found.bundle_sha256,
                files: found.files.iter().map(|(name, sha256)| descriptor(name, *sha256)).collect(),
                engine: recorded.map(|subject| format!("{} {}", subject.engine, subject.engine_version)),
                sources: sources.iter().map(|(name, sha256)| descriptor(name, *sha256)).collect(),
                patch: recorded
                    .and_then(|subject| subject.patch_of.as_ref())
                    .map(|patch| s::Patch { of: patch.subject.clone(), digest: digest(patch.patch_sha256) }),
                harness: recorded.map(|subject| s::Harness {
                    name: subject.harness.name.clone(),
                    digest: digest(subject.harness.sha256),
                }),
                device: recorded.map(|subject| subject.device.name.clone()),
                driver: recorded.and_then(|subject| subject.driver()).unwrap_or("not recorded").to_owned(),
                runtime: recorded.map(|subject| subject.runtime.clone()).unwrap_or_default(),
            }
        })
        .collect()
}

fn case(run: &Run, case: &CaseOutcome) -> s::Case {
    let origin = run.matrix.cases.get(case.index).map(|spec| &spec.origin);
    s::Case {
        name: case.name.clone(),
        batch: case.shape.map(|(batch, _)| batch.to_string()),
        vocab: case.shape.map(|(_, vocab)| vocab.to_string()),
        logits_sha256: case.inputs.map(|(logits, _)| logits),
        p_sha256: case.inputs.map(|(_, p)| p),
        file: match origin {
            Some(Origin::File { path, sha256, .. }) => {
                Some(s::InputFile { path: path.value.clone(), digest: digest(sha256.value) })
            }
            Some(Origin::Generated { .. }) | None => None,
        },
        evidence: case
            .evidence
            .iter()
            .map(|evidence| s::CaseEvidence {
                subject: evidence.subject.clone(),
                output_sha256: evidence.output_sha256,
                file_sha256: evidence.file_sha256,
                // It was parsed when it was read; a text that is not JSON any more is bound as text.
                dispatch: serde_json::from_str(&evidence.dispatch_facts)
                    .unwrap_or_else(|_| evidence.dispatch_facts.clone().into()),
            })
            .collect(),
        rows: case.rows.iter().map(|row| self::row(run, row)).collect(),
    }
}

fn row(run: &Run, row: &RowOutcome) -> s::Row {
    let declared = row.judgements.iter().filter(|judgement| matches!(judgement.status, Status::Declared(_)));
    s::Row {
        row: row.row.to_string(),
        kind: row.kind.name().to_owned(),
        p_bits: format!("{:#010x}", row.p.to_bits()),
        verdict: row.verdict().to_owned(),
        oracle: match row.oracle {
            RowOracle::Nucleus(nucleus) => s::RowOracle {
                boundary: Some(s::Boundary {
                    count: nucleus.count.to_string(),
                    last_kept: nucleus.last_kept.to_string(),
                    next_dropped: nucleus.next_dropped.map(|token| token.to_string()),
                    normalizer_bits: format!("{:#018x}", nucleus.normalizer.to_bits()),
                    target_bits: format!("{:#018x}", nucleus.target.to_bits()),
                }),
                rejected: None,
            },
            RowOracle::Disabled => s::RowOracle { boundary: None, rejected: None },
            RowOracle::Rejected(error) => s::RowOracle { boundary: None, rejected: Some(error.code().to_owned()) },
        },
        subjects: row
            .subjects
            .iter()
            .map(|facts| s::RowSubject {
                kept: facts.kept.to_string(),
                missing: facts.missing.to_string(),
                extra: facts.extra.to_string(),
                nan: facts.nan.to_string(),
                altered: facts.altered.to_string(),
                kept_sha256: facts.kept_sha256,
            })
            .collect(),
        declared: declared
            .filter_map(|judgement| run.policy.rules().nth(judgement.rule))
            .map(|rule| rule.id.value.clone())
            .collect(),
    }
}

fn rules(run: &Run) -> Vec<s::Rule> {
    let pairs = run.policy.rules().zip(&run.rules);
    pairs
        .map(|(rule, tally)| s::Rule {
            id: tally.id.clone(),
            kind: rule.check.name().to_owned(),
            passed: tally.passed.to_string(),
            violated: tally.violated.to_string(),
            declared: tally.declared.to_string(),
            not_applicable: tally.not_applicable.to_string(),
            not_evaluated: tally.not_evaluated.to_string(),
        })
        .collect()
}

fn violation(run: &Run, violation: &gate::Violation) -> s::Violation {
    s::Violation {
        rule: rule_id(run, violation).to_owned(),
        case: violation.at.and_then(|(case, _)| run.cases.get(case)).map(|case| case.name.clone()),
        row: violation.at.map(|(_, row)| row.to_string()),
        observed: violation.finding.observed.clone(),
        allowed: violation.finding.allowed.clone(),
    }
}

fn report(report: &gate::ReportOutcome) -> s::Report {
    s::Report { id: report.id.clone(), holds: report.holds, count: report.count.to_string(), of: report.of.to_string() }
}
