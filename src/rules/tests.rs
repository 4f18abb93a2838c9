//! For each rule one row that trips it and one that does not.

use super::*;
use crate::evidence::{KeptSet, RowEvidence};
use crate::oracle;
use crate::syntax::{Source, parse};

/// Five tokens in rank order 0, 1, 2, 3, 4; at p = 0.8 the oracle keeps the first three.
const LOGITS: [f32; 5] = [3.0, 2.5, 2.5, 1.0, 0.0];

/// Decodes `rule "subject" …` as a policy would.
fn check(text: &str) -> Check {
    let source = Source::new("rule.kdl", text);
    parse(&source, |document, sink| {
        let mut node = Node::new(document.nodes().first()?, sink);
        node.argument::<String>("a subject")?;
        let check = Check::decode(&mut node);
        node.finish();
        check
    })
    .unwrap_or_else(|issues| panic!("{:?}", issues.list))
}

/// A subject that keeps `kept` and writes its input's bits.
fn output(logits: &[f32], kept: &[u32]) -> RowEvidence {
    let keep = |token: usize| kept.contains(&(token as u32));
    let output: Vec<f32> =
        logits.iter().enumerate().map(|(token, &x)| if keep(token) { x } else { f32::NEG_INFINITY }).collect();
    RowEvidence::from_output(logits, &output)
}

struct Scene {
    logits: Vec<f32>,
    kind: RowKind,
    oracle: Option<OracleRow>,
    forced: Option<u32>,
}

impl Scene {
    fn ordinary() -> Self {
        let nucleus = oracle::nucleus(&LOGITS, 0.8).unwrap();
        assert_eq!(nucleus.count, 3);
        let oracle = Some(OracleRow::new(nucleus, &LOGITS));
        Self { logits: LOGITS.to_vec(), kind: RowKind::Ordinary, oracle, forced: None }
    }

    fn forced() -> Self {
        let mut logits = LOGITS.to_vec();
        logits[3] = 1e9;
        let nucleus = oracle::nucleus(&logits, 0.8).unwrap();
        let oracle = Some(OracleRow::new(nucleus, &logits));
        Self { logits, kind: RowKind::Forced, oracle, forced: Some(3) }
    }

    fn disabled() -> Self {
        Self { logits: LOGITS.to_vec(), kind: RowKind::Disabled, oracle: None, forced: None }
    }

    fn judge_with(&self, rule: &str, patch: &RowEvidence, stock: &[u32]) -> Verdict {
        let stock = output(&self.logits, stock);
        let subjects = [
            SubjectRow { name: "stock", output: &stock, dispatch: "cuda-split" },
            SubjectRow { name: "patch", output: patch, dispatch: "cuda-split" },
        ];
        let row = Row {
            kind: self.kind,
            logits: &self.logits,
            oracle: self.oracle.as_ref(),
            forced: self.forced,
            subjects: &subjects,
        };
        check(rule).judge(&row, &subjects[1])
    }

    fn judge(&self, rule: &str, kept: &[u32]) -> Verdict {
        self.judge_with(rule, &output(&self.logits, kept), &[0, 1, 2])
    }
}

#[track_caller]
fn violated(verdict: Verdict) -> Finding {
    match verdict {
        Verdict::Violated(finding) => finding,
        other => panic!("expected a violation, got {other:?}"),
    }
}

#[test]
fn forced_rules_hold_on_exactly_the_forced_token() {
    for rule in ["retains-forced", "no-nan", "not-all-masked", "selects-argmax"] {
        assert_eq!(Scene::forced().judge(&format!("{rule} \"patch\""), &[3]), Verdict::Passed, "{rule}");
    }
    assert_eq!(Scene::forced().judge("exact-count \"patch\" 1", &[3]), Verdict::Passed);
}

#[test]
fn forced_rules_trip() {
    let scene = Scene::forced();
    let finding = violated(scene.judge("retains-forced \"patch\"", &[0, 1]));
    assert_eq!(finding.message, "patch drops the forced token 3 (logit 1000000000.0); it keeps 2 tokens");
    assert!(violated(scene.judge("not-all-masked \"patch\"", &[])).message.contains("masks all 5 tokens"));
    assert!(
        violated(scene.judge("selects-argmax \"patch\"", &[0, 1])).message.contains("token 0 (logit 3.0) comes first")
    );
    assert!(violated(scene.judge("selects-argmax \"patch\"", &[])).message.contains("every token is masked"));
    let finding = violated(scene.judge("exact-count \"patch\" 1", &[3, 0]));
    assert_eq!((finding.observed.as_str(), finding.allowed.as_str(), finding.difference), ("2", "1", 1));
}

#[test]
fn argmax_is_not_known_of_altered_logits() {
    let scene = Scene::forced();
    let altered = RowEvidence { altered: 1, argmax: crate::evidence::Argmax::Unknown, ..output(&scene.logits, &[3]) };
    let finding = violated(scene.judge_with("selects-argmax \"patch\"", &altered, &[3]));
    assert!(finding.message.contains("0 NaN, 1 altered logits"), "{}", finding.message);
}

#[test]
fn nan_and_altered_logits_are_counted() {
    let scene = Scene::ordinary();
    let nan = RowEvidence { nan: 2, ..output(&LOGITS, &[0, 1, 2]) };
    let altered = RowEvidence { altered: 4, ..output(&LOGITS, &[0, 1, 2]) };
    assert_eq!(violated(scene.judge_with("no-nan \"patch\"", &nan, &[0])).observed, "2");
    assert_eq!(scene.judge_with("no-nan \"patch\"", &altered, &[0]), Verdict::Passed);
    assert_eq!(violated(scene.judge_with("unaltered \"patch\"", &altered, &[0])).observed, "4");
    assert_eq!(scene.judge_with("unaltered \"patch\"", &nan, &[0]), Verdict::Passed);
}

#[test]
fn a_missing_nucleus_token_is_an_under_keep() {
    let rule = "superset \"patch\" of=\"oracle\"";
    assert_eq!(Scene::ordinary().judge(rule, &[0, 1, 2, 3]), Verdict::Passed);
    let finding = violated(Scene::ordinary().judge(rule, &[0, 2, 3]));
    assert_eq!(
        finding.message,
        "patch drops 1 of the 3 tokens that the oracle keeps; the first is token 1 (logit 2.5)"
    );
    assert_eq!(finding.focus, Some(1));
}

#[test]
fn a_hole_is_no_prefix() {
    let rule = "prefix \"patch\" ties=\"token-asc\"";
    for kept in [&[][..], &[0], &[0, 1], &[0, 1, 2, 3, 4]] {
        assert_eq!(Scene::ordinary().judge(rule, kept), Verdict::Passed, "{kept:?}");
    }
    let finding = violated(Scene::ordinary().judge(rule, &[0, 1, 3]));
    assert_eq!(finding.message, "patch drops token 2 (logit 2.5) and keeps token 3 (logit 1.0), which ranks below it");
    assert_eq!((finding.focus, finding.also, finding.difference), (Some(2), Some(3), 1));
}

#[test]
fn a_tie_order_is_demanded_only_where_the_policy_says_so() {
    assert!(matches!(Scene::ordinary().judge("prefix \"patch\" ties=\"token-asc\"", &[0, 2]), Verdict::Violated(_)));
    assert_eq!(Scene::ordinary().judge("prefix \"patch\" ties=\"any\"", &[0, 2]), Verdict::Passed);
    assert!(matches!(Scene::ordinary().judge("prefix \"patch\" ties=\"any\"", &[0, 3]), Verdict::Violated(_)));
}

#[test]
fn half_a_percent_exactly_fails() {
    // 2,000 equal logits at p = 0.5: the oracle keeps exactly 1,000.
    let logits = vec![1.0f32; 2000];
    let nucleus = oracle::nucleus(&logits, 0.5).unwrap();
    assert_eq!(nucleus.count, 1000);
    let oracle = Some(OracleRow::new(nucleus, &logits));
    let scene = Scene { oracle, logits, kind: RowKind::Ordinary, forced: None };
    let rule = |relative: &str| {
        format!("count-envelope \"patch\" against=\"oracle\" max-difference=3 relative-below=\"{relative}\"")
    };
    let keep = |n: u32| (0..n).collect::<Vec<u32>>();
    for near in [997, 1000, 1003] {
        assert_eq!(scene.judge(&rule("0"), &keep(near)), Verdict::Passed, "{near}");
    }
    assert!(matches!(scene.judge(&rule("0"), &keep(1004)), Verdict::Violated(_)));
    assert_eq!(scene.judge(&rule("0.005"), &keep(1004)), Verdict::Passed);
    assert_eq!(scene.judge(&rule("0.005001"), &keep(1005)), Verdict::Passed);
    let finding = violated(scene.judge(&rule("0.005"), &keep(1005)));
    assert_eq!((finding.observed.as_str(), finding.difference), ("1005 kept for 1000", 5));
    assert!(matches!(scene.judge(&rule("0.005"), &keep(995)), Verdict::Violated(_)));
}

#[test]
fn the_patch_may_not_be_further_off_than_stock() {
    let rule = "symmetric-difference \"patch\" against=\"oracle\" at-most=\"stock\"";
    let scene = Scene::ordinary();
    let patch = output(&LOGITS, &[0, 1, 2, 3]);
    assert_eq!(scene.judge_with(rule, &patch, &[0, 1, 2, 4]), Verdict::Passed);
    let finding = violated(scene.judge_with(rule, &patch, &[0, 1, 2]));
    assert_eq!(
        finding.message,
        "patch differs from the oracle on 1 token; stock differs on 0, and no more are allowed"
    );
}

#[test]
fn a_disabled_row_comes_back_untouched() {
    let rule = "untouched \"patch\"";
    assert_eq!(Scene::disabled().judge(rule, &[0, 1, 2, 3, 4]), Verdict::Passed);
    assert!(matches!(Scene::disabled().judge(rule, &[0, 1, 2, 3]), Verdict::Violated(_)));
    let altered = RowEvidence { altered: 1, ..output(&LOGITS, &[0, 1, 2, 3, 4]) };
    assert!(matches!(Scene::disabled().judge_with(rule, &altered, &[0]), Verdict::Violated(_)));
    let mut with_hole = Scene::disabled();
    with_hole.logits[4] = f32::NEG_INFINITY;
    assert_eq!(with_hole.judge(rule, &[0, 1, 2, 3]), Verdict::Passed);
}

#[test]
fn a_rule_that_needs_the_oracle_never_passes_without_it() {
    let rule = "superset \"patch\" of=\"oracle\"";
    let without = Scene { oracle: None, ..Scene::ordinary() };
    assert_eq!(without.judge(rule, &[0, 1, 2, 3, 4]), Verdict::no_oracle());
}

#[test]
fn kept_sets_are_those_of_the_boundary_key() {
    let scene = Scene::ordinary();
    let kept = &scene.oracle.as_ref().unwrap().kept;
    assert_eq!(*kept, KeptSet::from_fn(5, |token| token < 3));
}

#[test]
fn names_are_unique_and_every_rule_has_its_page() {
    for (index, kind) in KINDS.iter().enumerate() {
        assert!(KINDS.iter().skip(index + 1).all(|other| other.name != kind.name), "{}", kind.name);
        let page = kind.page();
        for heading in ["# ", "## Why", "## Example", "## Reading the numbers", "## What to do next"] {
            assert!(page.contains(heading), "the page of {} lacks {heading}", kind.name);
        }
    }
}

#[test]
fn masks_are_minus_infinity() {
    let (rule, scene) = ("masked-value \"patch\"", Scene::ordinary());
    assert_eq!(scene.judge(rule, &[0, 1, 2]), Verdict::Passed);
    let masked_with = |value: f32| RowEvidence::from_output(&LOGITS, &[3.0, 2.5, 2.5, f32::NEG_INFINITY, value]);
    let finding = violated(scene.judge_with(rule, &masked_with(-1e4), &[0, 1, 2]));
    assert_eq!(
        finding.message,
        "patch writes neither -inf nor the input to 1 token outside the oracle's set; the first is token 4 (logit 0.0)"
    );
    // A token more, with the input's bits, is kept and not masked; a changed token of the set is for `unaltered`.
    assert_eq!(scene.judge_with(rule, &masked_with(0.0), &[0, 1, 2]), Verdict::Passed);
    let inside = RowEvidence::from_output(&LOGITS, &[3.5, 2.5, 2.5, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    assert_eq!(scene.judge_with(rule, &inside, &[0, 1, 2]), Verdict::Passed);
    // Counts without tokens decide nothing.
    let counted = RowEvidence { altered_tokens: None, ..masked_with(-1e4) };
    assert!(matches!(scene.judge_with(rule, &counted, &[0, 1, 2]), Verdict::NotEvaluated(_)));
}

#[test]
fn further_calls_return_the_same_bits() {
    let scene = Scene::ordinary();
    let with = |differs: Option<u32>| RowEvidence {
        repeat_differs: differs,
        company_differs: differs,
        ..output(&LOGITS, &[0, 1, 2])
    };
    for rule in ["repeatable", "row-independent"] {
        for condition in ["", " where=\"recorded\""] {
            let judge = |differs| scene.judge_with(&format!("{rule} \"patch\"{condition}"), &with(differs), &[0, 1, 2]);
            assert_eq!(judge(Some(0)), Verdict::Passed);
            assert_eq!(violated(judge(Some(3))).difference, 3);
            match judge(None) {
                Verdict::NotEvaluated(_) => assert_eq!(condition, ""),
                Verdict::NotApplicable(_) => assert_eq!(condition, " where=\"recorded\""),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Old rule, new rule, and what the new one is.
#[test]
fn every_parameter_has_its_strictness_order() {
    use Strictness::{Equal, Incomparable, Looser, Tighter};
    let envelope = |difference: u32, relative: &str| {
        format!("count-envelope \"patch\" against=\"oracle\" max-difference={difference} relative-below=\"{relative}\"")
    };
    let ties = |order: &str| format!("prefix \"patch\" ties=\"{order}\"");
    let at_most = |subject: &str| format!("symmetric-difference \"p\" against=\"oracle\" at-most=\"{subject}\"");
    let pairs = [
        (envelope(3, "0.005"), envelope(5, "0.005"), Looser),
        (envelope(3, "0.005"), envelope(3, "0.01"), Looser),
        (envelope(3, "0.005"), envelope(2, "0.005"), Tighter),
        (envelope(3, "0.005"), envelope(3, "0.0050"), Equal),
        (envelope(3, "0.005"), envelope(5, "0.001"), Incomparable),
        (ties("token-asc"), ties("any"), Looser),
        (ties("any"), ties("token-asc"), Tighter),
        (ties("any"), ties("any"), Equal),
        ("exact-count \"patch\" 1".to_owned(), "exact-count \"patch\" 2".to_owned(), Incomparable),
        (at_most("stock"), at_most("other"), Incomparable),
        ("repeatable \"patch\"".to_owned(), "repeatable \"patch\" where=\"recorded\"".to_owned(), Looser),
        ("row-independent \"p\" where=\"recorded\"".to_owned(), "row-independent \"p\"".to_owned(), Tighter),
        ("no-nan \"patch\"".to_owned(), "unaltered \"patch\"".to_owned(), Incomparable),
    ];
    for (old, new, expected) in pairs {
        assert_eq!(check(&old).strictness(&check(&new)), expected, "{old} -> {new}");
    }
    for kind in
        ["retains-forced", "no-nan", "not-all-masked", "selects-argmax", "unaltered", "masked-value", "untouched"]
    {
        let rule = check(&format!("{kind} \"patch\""));
        assert_eq!(rule.strictness(&rule), Equal, "{kind}");
    }
}
