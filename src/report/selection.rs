//! Which violations and faults are shown in full.

use crate::gate::{Run, Violation};

/// Diagnostics shown in full; the rest are counted, a line a case.
pub(super) const SHOWN: usize = 10;

/// The violations to show: one a case first, the largest difference first, then the rest in the same order.
pub(super) fn shown(run: &Run) -> Vec<&Violation> {
    let mut all: Vec<&Violation> = run.violations().collect();
    all.sort_by_key(|violation| std::cmp::Reverse(violation.finding.difference));
    let mut cases = Vec::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for violation in all {
        let case = violation.at.map(|(case, _)| case);
        if cases.contains(&case) {
            rest.push(violation);
        } else {
            cases.push(case);
            first.push(violation);
        }
    }
    first.into_iter().chain(rest).take(SHOWN).collect()
}

/// Violations that are not shown, by case: (case, violations, rows).
pub(super) fn counted<'a>(run: &'a Run, shown: &[&Violation]) -> Vec<(&'a str, usize, usize)> {
    let hidden: Vec<(usize, u32)> = run
        .violations()
        .filter(|violation| !shown.iter().any(|other| std::ptr::eq(*other, *violation)))
        .filter_map(|violation| violation.at)
        .collect();
    let of_case = |index: usize| hidden.iter().filter(move |(case, _)| *case == index);
    run.cases
        .iter()
        .map(|case| {
            let mut rows: Vec<u32> = of_case(case.index).map(|(_, row)| *row).collect();
            rows.dedup();
            (case.name.as_str(), of_case(case.index).count(), rows.len())
        })
        .filter(|(_, violations, _)| *violations > 0)
        .collect()
}
