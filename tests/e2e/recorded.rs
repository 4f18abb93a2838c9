//! What is known of the recorded vLLM kernels is exactly what the gate reports: these are facts found on a machine.

use crate::common::{judge, rows};
use nucleus_gate::gate::{Decision, Execution, ExitCode, RowOracle, RowOutcome, Run, Status, ViolationOf};

const STOCK: usize = 0;
const PATCH: usize = 1;

fn oracle_count(row: &RowOutcome) -> u64 {
    match row.oracle {
        RowOracle::Nucleus(nucleus) => u64::from(nucleus.count),
        RowOracle::Disabled | RowOracle::Rejected(_) => panic!("row {} has no nucleus", row.row),
    }
}

/// Every (rule id, case, row) that is violated as declared.
fn declared(run: &Run) -> Vec<(String, String, u32)> {
    let mut found = Vec::new();
    for case in &run.cases {
        for row in &case.rows {
            for judgement in &row.judgements {
                if let Status::Declared(_) = judgement.status {
                    let rule = run.policy.rules().nth(judgement.rule).unwrap();
                    found.push((rule.id.value.clone(), case.name.clone(), row.row));
                }
            }
        }
    }
    found
}

/// Every (rule id, case, row) that is violated against expectation.
fn violated(run: &Run) -> Vec<(String, String, u32)> {
    run.violations()
        .map(|violation| {
            let (case, row) = violation.at.unwrap();
            let id = match violation.of {
                ViolationOf::Rule(rule) => run.policy.rules().nth(rule).unwrap().id.value.clone(),
                ViolationOf::Report(_) | ViolationOf::Expectation(_) => "expected-outcome".to_owned(),
            };
            (id, run.cases[case].name.clone(), row)
        })
        .collect()
}

#[test]
fn the_default_matrix_passes_and_decides_every_row() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    assert_eq!((run.execution, run.decision), (Execution::Complete, Decision::Pass));
    assert_eq!(ExitCode::of(&run), ExitCode::Passed);
    assert_eq!(run.cases.len(), 24);
    assert!(run.cases.iter().all(|case| case.rows.len() == case.shape.unwrap().0 as usize));
    assert!(run.cases.iter().flat_map(|case| &case.rows).all(RowOutcome::passes));
    let report = |id: &str| run.reports.iter().find(|report| report.id == id).unwrap();
    assert_eq!((report("reproduces-fault").count, report("reproduces-fault").of), (5, 12));
    assert_eq!(report("upstream-envelope").holds, Some(true));
}

#[test]
fn stock_masks_five_forced_rows_whole_and_the_patch_keeps_the_forced_token_alone() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    for (case, masked) in [("forced-32000", &[5, 6, 7][..]), ("forced-151936", &[2, 3])] {
        for row in rows(&run, case) {
            let stock_kept = u64::from(!masked.contains(&row.row));
            assert_eq!(row.subjects[STOCK].kept, stock_kept, "{case} row {}", row.row);
            assert_eq!((row.subjects[PATCH].kept, row.subjects[PATCH].forced_kept), (1, Some(true)));
            assert_eq!(oracle_count(row), 1);
        }
    }
}

#[test]
fn every_ordinary_fp32_row_is_covered_by_both_kernels() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    for (spec, case) in run.matrix.cases.iter().zip(&run.cases) {
        let ordinary = spec.kind.value == nucleus_gate::matrix::CaseKind::Ordinary;
        for row in case.rows.iter().filter(|row| ordinary && !matches!(row.oracle, RowOracle::Disabled)) {
            let clean = |subject: usize| {
                let facts = &row.subjects[subject];
                (facts.missing, facts.nan, facts.altered) == (0, 0, 0)
            };
            assert!(clean(STOCK) && clean(PATCH), "{} row {}", case.name, row.row);
            assert!(row.subjects[PATCH].extra <= row.subjects[STOCK].extra, "{} row {}", case.name, row.row);
        }
    }
}

#[test]
fn the_two_masks_differ_on_three_bf16_rows_where_the_patch_is_the_oracle() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    let rows = rows(&run, "bf16-normal-151936");
    let differing: Vec<_> =
        rows.iter().filter(|row| row.subjects[STOCK].kept_sha256 != row.subjects[PATCH].kept_sha256).collect();
    assert_eq!(differing.len(), 3);
    for row in &differing {
        let patch = &row.subjects[PATCH];
        assert_eq!((patch.missing, patch.extra, patch.kept), (0, 0, oracle_count(row)));
        assert!(row.subjects[STOCK].kept > patch.kept);
    }
    assert!(differing.iter().any(|row| (row.subjects[STOCK].kept, row.subjects[PATCH].kept) == (12_122, 12_120)));
}

#[test]
fn boundary_inputs_show_exactly_the_declared_faults() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    let mut expected = Vec::new();
    let mut expect = |rule: &str, case: &str, rows: &[u32]| {
        expected.extend(rows.iter().map(|row| (rule.to_owned(), case.to_owned(), *row)));
    };
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    expect("count-envelope", "adjacent-fp32", &[1, 2, 3]);
    expect("stock-covers-oracle", "huge-two-level", &all);
    expect("count-envelope", "all-equal", &all);
    expect("count-envelope", "signed-zeros", &[7]);
    expect("count-envelope", "subnormal", &all);
    for row in [1, 4] {
        expect("stock-covers-oracle", "shifted-top-ties", &[row]);
        expect("patch-covers-oracle", "shifted-top-ties", &[row]);
    }
    assert_eq!(declared(&run), expected);
    let counts = |case: &str, row: usize| {
        let row = &rows(&run, case)[row];
        (row.subjects[PATCH].kept, oracle_count(row))
    };
    assert_eq!(counts("adjacent-fp32", 1), (529, 512));
    assert_eq!(counts("adjacent-fp32", 2), (631, 615));
    assert_eq!(counts("adjacent-fp32", 3), (1035, 1024));
    assert_eq!(counts("signed-zeros", 7), (2048, 1916));
    assert!((0..8).all(|row| counts("all-equal", row).0 == 1024));
    for row in rows(&run, "huge-two-level") {
        assert_eq!((row.subjects[STOCK].kept, row.subjects[PATCH].missing, row.subjects[PATCH].extra), (0, 0, 0));
    }
}

#[test]
fn disabled_rows_are_rows_4_and_6_of_the_upstream_controls() {
    let run = judge("split-top-p", "vllm-large-logit-fix");
    for case in ["upstream-seed42-8x1024", "upstream-seed42-8x32000"] {
        let disabled: Vec<u32> = rows(&run, case)
            .iter()
            .filter(|row| matches!(row.oracle, RowOracle::Disabled))
            .map(|row| row.row)
            .collect();
        assert_eq!(disabled, [4, 6], "{case}");
    }
}

#[test]
fn the_patched_kernel_keeps_no_prefix_on_two_bf16_rows() {
    let run = judge("split-top-p", "vllm-bf16-rows");
    assert_eq!(ExitCode::of(&run), ExitCode::Violated);
    let prefix = |case: &str, row| ("prefix".to_owned(), case.to_owned(), row);
    assert_eq!(violated(&run), [prefix("bf16-heavy-151936", 7), prefix("bf16-heavy-32000", 29)]);
    let first = run.violations().next().unwrap();
    assert_eq!(first.finding.observed, "token 129992 dropped, token 146056 kept");
    assert!(first.finding.message.contains("token 129992 (logit 9.9375)"), "{}", first.finding.message);
    assert!(first.finding.message.contains("token 146056 (logit 9.9375)"), "{}", first.finding.message);
    let upstream = run.reports.iter().find(|report| report.id == "upstream-envelope").unwrap();
    assert_eq!((upstream.holds, upstream.of), (Some(true), 4));
}

#[test]
fn the_monolithic_kernel_under_keeps_real_logits_and_keeps_forced_rows_whole() {
    let run = judge("any-dispatch", "vllm-monolithic");
    assert_eq!(ExitCode::of(&run), ExitCode::Violated);
    let row = &rows(&run, "smollm2-135m-49152")[7];
    assert_eq!((row.subjects[PATCH].kept, oracle_count(row)), (8_840, 9_885));
    let found = violated(&run);
    assert!(found.contains(&("patch-covers-oracle".to_owned(), "smollm2-135m-49152".to_owned(), 7)));
    for (case, vocab, batch) in [("forced-32000", 32_000, 8), ("forced-151936", 151_936, 4)] {
        for row in 0..batch {
            assert_eq!(rows(&run, case)[row as usize].subjects[PATCH].kept, vocab);
            assert!(found.contains(&("exact-count".to_owned(), case.to_owned(), row)), "{case} row {row}");
        }
    }
}

#[test]
fn another_dispatch_path_is_drift_and_nothing_is_judged() {
    let run = judge("split-top-p", "vllm-monolithic");
    assert_eq!(ExitCode::of(&run), ExitCode::Drift);
    assert!(run.cases.iter().all(|case| case.rows.is_empty()));
    assert_eq!(run.decision, Decision::NotEvaluated);
}
