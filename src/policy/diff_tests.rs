//! What each kind of edit of the shipped policy is called.

use super::*;
use crate::syntax::Source;

const SHIPPED: &str = include_str!("../../policies/split-top-p.kdl");

fn policy(text: &str) -> Policy {
    Policy::read(Source::new("p.kdl", text)).unwrap_or_else(|issues| panic!("{:?}", issues.list))
}

#[track_caller]
fn with(part: &str, instead: &str) -> String {
    assert!(SHIPPED.contains(part), "{part}");
    SHIPPED.replacen(part, instead, 1)
}

/// Everything that is not unchanged: name, change, whether it lets more through, and what differs.
fn changes(old: &str, new: &str) -> Vec<(String, Change, bool, Vec<String>)> {
    let items = diff(&policy(old), &policy(new));
    let changed = items.into_iter().filter(|item| item.change != Change::Unchanged);
    changed.map(|item| (item.name.clone(), item.change, item.lets_more_through(), item.parts)).collect()
}

/// An edit of the shipped policy has this effect, and undoing it has the opposite one.
#[track_caller]
fn assert_change(part: &str, instead: &str, name: &str, change: Change, back: Change, parts: &[&str]) {
    let edited = with(part, instead);
    let [(found, was, more, differs)] = &changes(SHIPPED, &edited)[..] else {
        panic!("{:?}", changes(SHIPPED, &edited))
    };
    assert_eq!((found.as_str(), *was), (name, change));
    assert_eq!(*more, matches!(change, Change::Loosened | Change::Incomparable | Change::Removed));
    assert_eq!(differs, parts);
    let [(found, was, ..)] = &changes(&edited, SHIPPED)[..] else { panic!("{:?}", changes(&edited, SHIPPED)) };
    assert_eq!((found.as_str(), *was), (name, back));
}

#[test]
fn layout_comments_and_order_change_nothing() {
    let commented = SHIPPED.replace("    limits", "    // Another comment.\n\n    limits").replace("    ", "\t");
    assert_eq!(changes(SHIPPED, &commented), []);
    let reordered = with("        retains-forced \"patch\"\n", "").replacen(
        "        not-all-masked \"patch\"\n",
        "        not-all-masked \"patch\"\n        retains-forced \"patch\"\n",
        1,
    );
    assert_eq!(changes(SHIPPED, &reordered), []);
    for same in [&commented, &reordered] {
        assert_ne!(policy(same).source.sha256(), policy(SHIPPED).source.sha256());
        assert_eq!(policy(same).semantic_sha256(), policy(SHIPPED).semantic_sha256());
    }
    assert_ne!(
        policy(&with("max-difference=3", "max-difference=4")).semantic_sha256(),
        policy(SHIPPED).semantic_sha256()
    );
}

#[test]
fn parameters() {
    use Change::{Incomparable, Loosened, Tightened};
    let parts = ["max-difference 3 -> 5"];
    assert_change("max-difference=3", "max-difference=5", "count-envelope", Loosened, Tightened, &parts);
    let parts = ["relative-below \"0.005\" -> \"0.01\""];
    assert_change("below=\"0.005\"", "below=\"0.01\"", "count-envelope", Loosened, Tightened, &parts);
    let parts = ["ties \"token-asc\" -> \"any\""];
    assert_change("ties=\"token-asc\"", "ties=\"any\"", "prefix", Loosened, Tightened, &parts);
    let parts = ["on-dispatch \"cuda-split\" -> none"];
    assert_change(" on-dispatch=\"cuda-split\"", "", "exact-count", Tightened, Loosened, &parts);
    let parts = [" 1 -> 2".trim_start()];
    assert_change("\"patch\" 1 on", "\"patch\" 2 on", "exact-count", Incomparable, Incomparable, &parts);
    let parts = ["subject patch -> stock"];
    assert_change("unaltered \"patch\"", "unaltered \"stock\"", "unaltered", Incomparable, Incomparable, &parts);
    let parts = ["kind no-nan -> not-all-masked"];
    assert_change(
        "no-nan \"patch\" id=\"patch-no-nan\"",
        "not-all-masked \"patch\" id=\"patch-no-nan\"",
        "patch-no-nan",
        Incomparable,
        Incomparable,
        &parts,
    );
}

#[test]
fn presence() {
    use Change::{Added, Removed};
    assert_change("        prefix \"patch\" ties=\"token-asc\"\n", "", "prefix", Removed, Added, &[]);
    assert_change("        pinned-sources\n", "", "evidence.pinned-sources", Removed, Added, &[]);
    let parts = ["dispatch \"cuda-split\" -> none"];
    assert_change("        dispatch \"cuda-split\"\n", "", "evidence.dispatch", Removed, Added, &parts);
    assert_change(
        "        subject \"patch\"\n",
        "        subject \"patch\"\n        subject \"third\"\n",
        "evidence.subject.third",
        Added,
        Removed,
        &[],
    );
}

#[test]
fn limits_and_paths() {
    use Change::{Incomparable, Loosened, Tightened};
    let parts = ["max-batch 64 -> 128"];
    assert_change("max-batch=64", "max-batch=128", "limits.max-batch", Loosened, Tightened, &parts);
    let parts = ["dispatch \"cuda-split\" -> dispatch \"other\""];
    assert_change(
        "        dispatch \"cuda-split\"\n",
        "        dispatch \"other\"\n",
        "evidence.dispatch",
        Incomparable,
        Incomparable,
        &parts,
    );
}

#[test]
fn a_report_decides_only_with_deny() {
    let deny = with("reproduces-fault \"stock\"", "reproduces-fault \"stock\" deny=#true");
    let [(name, change, more, _)] = &changes(SHIPPED, &deny)[..] else { panic!() };
    assert_eq!((name.as_str(), *change, *more), ("report.reproduces-fault", Change::Tightened, false));
    let [(_, change, more, _)] = &changes(&deny, SHIPPED)[..] else { panic!() };
    assert_eq!((*change, *more), (Change::Loosened, true));
    let dropped = with("        minimality \"patch\"\n", "");
    let [(_, change, more, _)] = &changes(SHIPPED, &dropped)[..] else { panic!() };
    assert_eq!((*change, *more), (Change::Removed, false));
}
