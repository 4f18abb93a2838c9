//! What is reported beside the verdict.

use super::outcome::{CaseOutcome, ReportOutcome, RowOracle, RowOutcome, SubjectFacts, Violation, ViolationOf};
use crate::matrix::RowKind;
use crate::policy::{Policy, ReportItem, ReportKind};
use crate::rules::{CountEnvelope, Finding};

pub(super) fn evaluate(policy: &Policy, cases: &[CaseOutcome]) -> Vec<ReportOutcome> {
    policy.reports.iter().enumerate().map(|(index, item)| report(policy, index, item, cases)).collect()
}

fn report(policy: &Policy, index: usize, item: &ReportItem, cases: &[CaseOutcome]) -> ReportOutcome {
    let subject = policy.evidence.subjects.iter().position(|subject| subject.value == item.subject.value);
    let subject = subject.unwrap_or(usize::MAX);
    let name = &item.subject.value;
    match &item.kind {
        ReportKind::ReproducesFault { deny } => {
            let rows = rows(cases, subject, |row| row.kind == RowKind::Forced);
            let faulty = |facts: &SubjectFacts| facts.forced_kept == Some(false) || facts.kept == 0;
            let mut outcome = count(item, &rows, |_, facts| faulty(facts), false);
            outcome.holds = (outcome.of > 0).then_some(outcome.count > 0);
            outcome.summary = match outcome.count {
                0 if outcome.of == 0 => "the matrix has no forced row".to_owned(),
                0 => format!("{name} shows the fault on none of {} forced rows: nothing is reproduced", outcome.of),
                count => format!("{name} drops the forced token on {count} of {} forced rows", outcome.of),
            };
            let denied = deny.filter(|deny| deny.value && outcome.count == 0);
            outcome.violation = denied.map(|deny| Violation {
                of: ViolationOf::Report(index),
                at: None,
                finding: Finding::new(outcome.summary.clone(), 0, "at least 1").at(deny.span, "0 is denied here"),
                neighbourhood: None,
            });
            outcome
        }
        ReportKind::MaskEquality => {
            let rows = rows(cases, subject, |row| matches!(row.oracle, RowOracle::Nucleus(_)));
            let mut outcome = count(item, &rows, |_, facts| facts.missing + facts.extra == 0, true);
            outcome.summary = format!("{name} equals the oracle on {} of {} rows", outcome.count, outcome.of);
            outcome
        }
        ReportKind::Minimality => {
            let rows = rows(cases, subject, |row| matches!(row.oracle, RowOracle::Nucleus(_)));
            // Without its last token a set of n has the reference prefix n - 1, below p exactly when n <= the oracle's count.
            let minimal = |row: &RowOutcome, facts: &SubjectFacts| facts.kept <= nucleus_count(row);
            let mut outcome = count(item, &rows, minimal, true);
            outcome.summary = format!("{name} keeps no token too many on {} of {} rows", outcome.count, outcome.of);
            outcome
        }
        ReportKind::UpstreamEnvelope(envelope) => upstream(item, envelope, cases, subject),
    }
}

fn nucleus_count(row: &RowOutcome) -> u64 {
    match row.oracle {
        RowOracle::Nucleus(nucleus) => u64::from(nucleus.count),
        RowOracle::Disabled | RowOracle::Rejected(_) => 0,
    }
}

type NamedRow<'a> = (&'a CaseOutcome, &'a RowOutcome, &'a SubjectFacts);

fn rows<'a>(cases: &'a [CaseOutcome], subject: usize, wanted: impl Fn(&RowOutcome) -> bool) -> Vec<NamedRow<'a>> {
    let rows = cases.iter().flat_map(|case| case.rows.iter().map(move |row| (case, row)));
    rows.filter(|(_, row)| wanted(row))
        .filter_map(|(case, row)| Some((case, row, row.subjects.get(subject)?)))
        .collect()
}

/// Counts rows; the details list those that are not `good`, or those that hold.
fn count(
    item: &ReportItem,
    rows: &[NamedRow<'_>],
    holds: impl Fn(&RowOutcome, &SubjectFacts) -> bool,
    good: bool,
) -> ReportOutcome {
    let details = rows.iter().filter(|(_, row, facts)| holds(row, facts) != good);
    let count = rows.iter().filter(|(_, row, facts)| holds(row, facts)).count() as u64;
    ReportOutcome {
        id: item.id.value.clone(),
        holds: (!rows.is_empty()).then_some(count == rows.len() as u64),
        count,
        of: rows.len() as u64,
        summary: String::new(),
        details: details
            .map(|(case, row, facts)| {
                format!("{} row {}: {} kept, oracle {}", case.name, row.row, facts.kept, nucleus_count(row))
            })
            .collect(),
        violation: None,
    }
}

/// Upstream compares kept counts over a batch: the largest difference against the batch's largest reference count.
fn upstream(item: &ReportItem, envelope: &CountEnvelope, cases: &[CaseOutcome], subject: usize) -> ReportOutcome {
    let judged = |row: &&RowOutcome| {
        let counted = matches!(row.kind, RowKind::Ordinary | RowKind::Forced);
        counted && matches!(row.oracle, RowOracle::Nucleus(_))
    };
    let (mut passed, mut of, mut details) = (0, 0, Vec::new());
    for case in cases {
        let pairs: Vec<(u64, u64)> = case
            .rows
            .iter()
            .filter(judged)
            .filter_map(|row| Some((row.subjects.get(subject)?.kept, nucleus_count(row))))
            .collect();
        let Some(largest) = pairs.iter().map(|(_, reference)| *reference).max() else { continue };
        let difference = pairs.iter().map(|(kept, reference)| kept.abs_diff(*reference)).max().unwrap_or_default();
        let passes =
            difference <= *envelope.max_difference || envelope.relative_below.exceeds_ratio(difference, largest);
        of += 1;
        passed += u64::from(passes);
        if !passes {
            details.push(format!("{}: largest difference {difference}, largest count {largest}", case.name));
        }
    }
    let verdict = match of {
        0 => "not evaluated",
        _ if passed == of => "pass",
        _ => "fail",
    };
    ReportOutcome {
        id: item.id.value.clone(),
        holds: (of > 0).then_some(passed == of),
        count: passed,
        of,
        summary: format!("{verdict} ({passed} of {of} cases)"),
        details,
        violation: None,
    }
}
