//! The report on a screen.

use std::fmt::Write as _;

use super::boundary::wrapped;
use super::{Screen, boundary, diagnostic, selection, summary};
use crate::gate::{self, Decision, Execution, ExitCode, Run, Violation};
use crate::text::{amount, sanitize};

/// Details of a report item that are shown.
const DETAILS: usize = 3;

/// The whole report, ending in the verdict.
#[must_use]
pub fn human(run: &Run, screen: &Screen) -> String {
    let mut out = String::new();
    if let Some(complaint) = run.freeze.complaint() {
        out += &wrapped("UNFROZEN: ", &complaint, screen);
    }
    for (what, source) in [("policy", &run.policy.source), ("matrix", &run.matrix.source)] {
        let _ = writeln!(out, "{what}  {}\n        sha256 {}", source.name(), source.sha256());
    }
    out.push('\n');
    faults(run, screen, &mut out);
    violations(run, screen, &mut out);
    let _ = write!(out, "By case\n{}\n", summary::cases(run, screen));
    // Counts of nothing would read like findings.
    if run.cases.iter().any(|case| !case.rows.is_empty()) {
        let _ = write!(out, "By rule\n{}\n", summary::rules(run, screen));
        reports(run, screen, &mut out);
    }
    verdict(run, screen, &mut out);
    out
}

fn faults(run: &Run, screen: &Screen, out: &mut String) {
    let all: Vec<_> = run.all_faults().collect();
    // The same thing said of many cases is shown once.
    let mut shown: Vec<&str> = Vec::new();
    for fault in &all {
        let seen = shown.iter().filter(|code| **code == fault.code).count();
        if seen < 2 && shown.len() < selection::SHOWN {
            shown.push(&fault.code);
            let _ = writeln!(out, "{}", screen.draw(&diagnostic::fault(run, fault)));
        }
    }
    if all.len() > shown.len() {
        let _ = writeln!(out, "and {} more, by case below and in the JSON report\n", all.len() - shown.len());
    }
}

fn violations(run: &Run, screen: &Screen, out: &mut String) {
    let shown = selection::shown(run);
    for violation in &shown {
        one(run, violation, screen, out);
    }
    let counted = selection::counted(run, &shown);
    if !counted.is_empty() {
        let _ = writeln!(out, "Further violations, listed in the JSON report");
        for (case, violations, rows) in counted {
            let _ = writeln!(out, "  {}: {violations} on {}", sanitize(case), amount(rows as u64, "row"));
        }
        out.push('\n');
    }
}

fn one(run: &Run, violation: &Violation, screen: &Screen, out: &mut String) {
    out.push_str(&screen.draw(&diagnostic::violation(run, violation)));
    let finding = &violation.finding;
    if let Some(neighbourhood) = &violation.neighbourhood {
        let _ = writeln!(out, "\n  the boundary by rank; of target = mass so far / (p * Z)");
        out.push_str(&boundary::table(neighbourhood, finding.focus, screen));
    }
    for fact in &finding.facts {
        out.push_str(&wrapped("note: ", fact, screen));
    }
    if let Some(command) = reproducer(run, violation) {
        let _ = writeln!(out, "  help: reproduce this row with\n        {command}");
    }
    out.push('\n');
}

/// The command that judges this row alone.
fn reproducer(run: &Run, violation: &Violation) -> Option<String> {
    let (case, row) = violation.at?;
    let case = run.matrix.cases.get(case)?;
    let unfrozen = if run.freeze.complaint().is_some() { " --unfrozen" } else { "" };
    Some(format!(
        "nucleus-gate check{unfrozen} --policy {} --matrix {} --case {} --row {row}",
        run.policy.source.name(),
        run.matrix.source.name(),
        sanitize(&case.name.value)
    ))
}

fn reports(run: &Run, screen: &Screen, out: &mut String) {
    if run.reports.is_empty() {
        return;
    }
    let _ = writeln!(out, "Beside the verdict");
    for report in &run.reports {
        out.push_str(&wrapped("", &format!("{}: {}", report.id, report.summary), screen));
        for detail in report.details.iter().take(DETAILS) {
            out.push_str(&wrapped("    ", detail, screen));
        }
        if report.details.len() > DETAILS {
            let _ = writeln!(out, "      and {} more in the JSON report", report.details.len() - DETAILS);
        }
    }
    out.push('\n');
}

/// Counts of certificates: whether the binary64 nuclei are also those of exact reals.
fn certificates(run: &Run) -> String {
    let all: Vec<_> = run.cases.iter().flat_map(|case| &case.rows).filter_map(|row| row.certificate).collect();
    let mut names: Vec<&str> = all.iter().map(|certificate| certificate.name()).collect();
    names.sort_unstable();
    names.dedup();
    let count = |name: &str| all.iter().filter(|certificate| certificate.name() == name).count();
    let counts: Vec<String> = names.iter().map(|name| format!("{} {name}", count(name))).collect();
    format!("nuclei of exact reals: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") })
}

fn verdict(run: &Run, screen: &Screen, out: &mut String) {
    let rows: usize = run.cases.iter().map(|case| case.rows.len()).sum();
    let violated = run.cases.iter().flat_map(|case| &case.rows).filter(|row| row.violations().next().is_some()).count();
    let judged = run.cases.iter().filter(|case| !case.rows.is_empty()).count();
    let counts = format!(
        "{judged} of {} cases, {rows} rows decided; oracle {:.3} s of worker time on {} workers, {:.2} s in all",
        run.cases.len(),
        run.oracle_time.as_secs_f64(),
        run.workers,
        run.elapsed.as_secs_f64()
    );
    out.push_str(&wrapped("", &counts, screen));
    out.push_str(&wrapped("", &certificates(run), screen));
    let execution = match run.execution {
        Execution::Complete => "complete",
        Execution::Stopped => "stopped before a verdict",
    };
    let violations = amount(run.violations().count() as u64, "violation");
    let selected = run.faults.iter().any(|fault| fault.code == gate::SELECTION);
    let decision = match run.decision {
        Decision::Pass if selected => "none: a selection never ends in a verdict; its rows pass".to_owned(),
        Decision::Fail if selected => {
            format!("none: a selection never ends in a verdict; {violations} on {}", amount(violated as u64, "row"))
        }
        Decision::Pass if run.execution == Execution::Stopped => {
            "no verdict: the rows that were decided pass".to_owned()
        }
        Decision::Pass => "pass".to_owned(),
        Decision::Fail => format!("fail: {violations} on {}", amount(violated as u64, "row")),
        Decision::NotEvaluated => "not evaluated".to_owned(),
    };
    let upstream =
        run.reports.iter().zip(&run.policy.reports).filter(|(_, item)| item.kind.name() == "upstream-envelope");
    let beside: String = upstream.map(|(report, _)| format!("upstream envelope: {}; ", report.summary)).collect();
    let _ = writeln!(out, "  execution  {execution}\n  decision   {decision}");
    let gates = format!("{beside}this gate: {violations}");
    out.push_str(&wrapped("           ", &gates, screen));
    let _ = writeln!(out, "  exit code  {}", ExitCode::of(run).number());
    if ExitCode::of(run) == ExitCode::Passed {
        out.push_str(&wrapped("", &meaning(run), screen));
    }
}

/// Whether the text begins and ends as reports for people do.
pub(super) fn is_human(text: &str) -> bool {
    let begins = text.starts_with("policy  ") || text.starts_with("  UNFROZEN: ");
    begins && text.contains("\n        sha256 ") && text.contains("\n  exit code  ")
}

/// What a pass means, and what it does not.
fn meaning(run: &Run) -> String {
    let reproduced = run.reports.iter().any(|report| report.id == "reproduces-fault" && report.holds == Some(true));
    let fault =
        if reproduced { "the forced-token masking fault shows in stock and not in the patch, and " } else { "" };
    format!(
        "This means: {fault}on this bounded set of rows the patch shows no detected regression against the contract. \
         It proves nothing about top-p in general."
    )
}
