//! The shipped policy against the zoo, and policies that are not proven.

use super::*;

const SHIPPED: &str = include_str!("../../policies/split-top-p.kdl");

fn prove_text(policy: &str) -> Proof {
    let root = ProjectRoot::at(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let policy = Policy::read(Source::new("p.kdl", policy)).unwrap_or_else(|issues| panic!("{:?}", issues.list));
    prove(&policy, &[&zoo().unwrap()], &root).unwrap()
}

#[track_caller]
fn with(part: &str, instead: &str) -> String {
    assert!(SHIPPED.contains(part), "{part}");
    SHIPPED.replacen(part, instead, 1)
}

fn wrong(proof: &Proof) -> Vec<&str> {
    proof.wrong().map(|outcome| outcome.model.name).collect()
}

fn untripped(proof: &Proof) -> Vec<&str> {
    proof.untripped().map(|trip| trip.rule.as_str()).collect()
}

#[test]
fn the_shipped_policy_catches_every_fault_and_accuses_nothing_else() {
    let proof = prove_text(SHIPPED);
    assert!(proof.holds(), "{:?} {:?}", wrong(&proof), untripped(&proof));
    let exact = &proof.outcomes[0];
    assert_eq!((exact.model.name, exact.catches.len(), exact.open.as_ref()), ("exact", 0, None));
    assert_eq!(exact.judged, 107);
    let caught = proof.outcomes.iter().filter(|outcome| outcome.expected == Expected::Caught);
    assert_eq!(caught.count(), 22);
}

#[test]
fn a_policy_for_small_cases_is_proven_on_the_zoo_all_the_same() {
    let limits = "max-vocab=262144 max-batch=64";
    assert!(prove_text(&with(limits, "max-vocab=128 max-batch=2")).holds());
}

#[test]
fn a_fault_that_nothing_catches_is_an_error() {
    let proof = prove_text(&with("        repeatable \"patch\" where=\"recorded\"\n", ""));
    assert_eq!(wrong(&proof), ["ties-change-between-calls"]);
    assert!(!proof.holds());
    let proof = prove_text(&with("        untouched \"patch\"\n", "        no-nan \"patch\" id=\"disabled-no-nan\"\n"));
    assert_eq!(wrong(&proof), ["p-one-zeroes-a-faint-tail", "p-one-becomes-greedy"]);
}

#[test]
fn a_rule_that_nothing_trips_is_an_error() {
    let wide = "max-difference=262143 relative-below=\"0\"";
    let proof = prove_text(&with("max-difference=3 relative-below=\"0.005\"", wide));
    assert_eq!(untripped(&proof), ["count-envelope"]);
    assert!(!proof.holds());
}

#[test]
fn a_policy_that_accuses_the_exact_kernel_is_an_error() {
    let proof = prove_text(&with("exact-count \"patch\" 1", "exact-count \"patch\" 2"));
    assert_eq!(wrong(&proof), ["exact"]);
    let undecided = with(" requires=\"stock-covers-oracle\"", " requires=\"stock-covers-oracle\" on-dispatch=\"x\"");
    assert!(prove_text(&undecided).untripped().any(|trip| trip.rule == "symmetric-difference"));
}
