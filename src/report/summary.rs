//! Tables by case and by rule: counts, never percentages.

use comfy_table::{CellAlignment, ColumnConstraint, Table};

use super::Screen;
use super::boundary::{indent, plain_table, wrapped};
use crate::gate::{CaseOutcome, Run};
use crate::matrix::CaseKind;
use crate::text::sanitize;

/// A line a case.
pub(super) fn cases(run: &Run, screen: &Screen) -> String {
    let mut table = plain_table(screen.width.saturating_sub(2));
    table.set_header(match narrow(screen) {
        false => ["case", "kind", "rows", "passed", "violated", "declared", "stopped by"],
        true => ["case", "kind", "rows", "passed", "viol.", "decl.", "stopped by"],
    });
    for (spec, case) in run.matrix.cases.iter().zip(&run.cases) {
        let kind = match spec.kind.value {
            CaseKind::Ordinary => "ordinary",
            CaseKind::Forced => "forced",
            CaseKind::Probe => "probe",
        };
        let rows = case.shape.map_or_else(|| "?".to_owned(), |(batch, _)| batch.to_string());
        let violated = case.rows.iter().filter(|row| row.violations().next().is_some()).count();
        let passed = case.rows.iter().filter(|row| row.passes()).count();
        let mut faults: Vec<&str> = case.faults.iter().map(|fault| fault.code.as_str()).collect();
        faults.dedup();
        table.add_row([
            sanitize(&case.name).into_owned(),
            kind.to_owned(),
            rows,
            passed.to_string(),
            violated.to_string(),
            declared(case).to_string(),
            faults.join(", "),
        ]);
    }
    right(&mut table, 2..6, screen);
    if let Some(kind) = table.column_mut(1).filter(|_| narrow(screen)) {
        kind.set_constraint(ColumnConstraint::Hidden);
    }
    indent(&table.to_string())
}

/// Rows with a declared violation or rejection.
fn declared(case: &CaseOutcome) -> usize {
    use crate::gate::{RowOracle, Status};
    let declared = |status: &Status| matches!(status, Status::Declared(_));
    case.rows
        .iter()
        .filter(|row| {
            matches!(row.oracle, RowOracle::Rejected(_)) || row.judgements.iter().any(|j| declared(&j.status))
        })
        .count()
}

/// A line a rule.
pub(super) fn rules(run: &Run, screen: &Screen) -> String {
    let mut table = plain_table(screen.width.saturating_sub(2));
    table.set_header(match narrow(screen) {
        false => ["rule", "passed", "violated", "declared", "not applicable", "not evaluated"],
        true => ["rule", "passed", "viol.", "decl.", "n/a", "not ev."],
    });
    for tally in &run.rules {
        table.add_row([
            sanitize(&tally.id).into_owned(),
            tally.passed.to_string(),
            tally.violated.to_string(),
            tally.declared.to_string(),
            tally.not_applicable.to_string(),
            tally.not_evaluated.to_string(),
        ]);
    }
    right(&mut table, 1..6, screen);
    let idle: Vec<&str> =
        run.rules.iter().filter(|tally| tally.decided() == 0).map(|tally| tally.id.as_str()).collect();
    let idle = if idle.is_empty() { String::new() } else { format!("applied to no row: {}", idle.join(", ")) };
    indent(&table.to_string()) + &wrapped("", &idle, screen)
}

/// Abbreviated headers and one space between columns.
fn narrow(screen: &Screen) -> bool {
    screen.width < 80
}

fn right(table: &mut Table, columns: std::ops::Range<usize>, screen: &Screen) {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, if narrow(screen) { 1 } else { 2 }));
    });
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
