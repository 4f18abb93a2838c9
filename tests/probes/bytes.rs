//! A changed byte of anything that a run or a receipt is bound to is drift or unreadable, never a verdict.

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::everything;
use crate::project::{MATRIX, Project};

const RECEIPT: &str = "nucleus-gate-receipt.json";

#[test]
fn a_changed_byte_of_a_bound_file_is_drift_or_unreadable() {
    let project = Project::new();
    assert_eq!(project.run(&["policy", "freeze"]).status.code(), Some(0));
    let bound = project.files();
    project.receipt();
    let receipt = (RECEIPT.to_owned(), fs::read(project.path(RECEIPT)).unwrap());
    let change = (any::<Index>(), any::<Index>(), 1..=255u8);
    proptest!(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() }, |((file, at, by) in change)| {
        let (name, good) = if file.index(bound.len() + 1) == 0 { &receipt } else { file.get(&bound) };
        let at = at.index(good.len());
        let mut bad = good.clone();
        bad[at] ^= by;
        fs::write(project.path(name), bad).unwrap();
        let mut calls = vec![vec!["verify", RECEIPT]];
        if name != RECEIPT {
            calls.push(vec!["check", "--matrix", MATRIX, "--receipt", "other.json", "--replace"]);
        }
        let ended: Vec<_> = calls.iter().map(|call| (call[0], project.run(call))).collect();
        fs::write(project.path(name), good).unwrap();
        for (call, output) in ended {
            let exit = output.status.code();
            prop_assert!(
                exit == Some(3) || exit == Some(5),
                "{call}: byte {at} of {name} by {by:#04x}: exit {exit:?}\n{}",
                everything(&output)
            );
        }
    });
    assert_eq!(project.run(&["verify", RECEIPT]).status.code(), Some(0), "everything is as it was");
}
