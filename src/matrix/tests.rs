//! Every code of the matrix has a text that trips it; the fit texts trip none.

use proptest::prelude::*;

use super::{CaseKind, Expectation, Matrix, Origin, REJECTIONS, RowKind};
use crate::digest::Sha256;
use crate::inputs::{Distribution, Rounding};
use crate::oracle::OracleError;
use crate::syntax::{Issues, Source};

const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// `matrix "m" schema=1 { … }` with every `…` replaced by a digest.
fn matrix(body: &str) -> String {
    format!("matrix \"m\" schema=1 {{\n{body}\n}}\n").replace('…', DIGEST)
}

fn read(text: &str) -> Result<Matrix, Issues> {
    Matrix::read(Source::new("m.kdl", text))
}

/// The text has exactly this one issue, and its first label underlines exactly this text.
#[track_caller]
fn assert_issue(text: &str, code: &str, underlined: &str) {
    let issues = read(text).expect_err("the text has an issue");
    let found: Vec<_> = issues.list.iter().map(|issue| (issue.code, &issue.message)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let issue = &issues.list[0];
    let span = issue.labels[0].0;
    let shown = &text[span.offset()..span.offset() + span.len()];
    assert_eq!((issue.code, shown), (code, underlined), "{}", issue.message);
}

#[track_caller]
fn assert_fit(text: &str) -> Matrix {
    read(text).unwrap_or_else(|issues| panic!("{:#?}", issues.list))
}

const ORDINARY: &str = r#"case "a" kind="ordinary" {
    generated "normal" seed=42 vocab=100 sigma=1.0
    p 0.1 0.5
    input logits-sha256="…" p-sha256="…"
}"#;
const FORCED: &str = r#"case "f" kind="forced" {
    generated "heavy" seed=1 vocab=100 sigma=1.5 round="bf16"
    p 0.9 1.0 times=2
    disabled 1 3
    force row=0 token=7 logit=1e9
    force row=2 token=99 logit=3e38
    input logits-sha256="…" p-sha256="…"
}"#;
const PROBE: &str = r#"case "b" kind="probe" {
    file "matrices/inputs/b.safetensors" sha256="…"
    input logits-sha256="…" p-sha256="…"
    expect "violation" rule="prefix" { rows 1 2; }
    expect "violation" rule="no-nan" { rows 2; }
    expect "reject" code="invalid-p" { rows 3; }
}"#;
const SUBJECT: &str = r#"subject "stock" bundle="matrices/recorded/stock" bundle-sha256="…" patch-sha256="…" {
    source "engine/a.py" sha256="…"
    source "engine/b.py" sha256="…"
}"#;

/// The block with one part of it replaced; the part must be there.
#[track_caller]
fn with(block: &str, part: &str, instead: &str) -> String {
    assert!(block.contains(part), "{part}");
    matrix(&block.replacen(part, instead, 1))
}

#[test]
fn every_part_is_decoded() {
    let text = matrix(&[SUBJECT, ORDINARY, FORCED, PROBE].join("\n"));
    let matrix = assert_fit(&text);
    let at = |span: miette::SourceSpan| &text[span.offset()..span.offset() + span.len()];
    assert_eq!(matrix.name.value, "m");
    let [subject] = matrix.subjects.as_slice() else { panic!() };
    assert_eq!((subject.name.value.as_str(), subject.bundle.value.as_str()), ("stock", "matrices/recorded/stock"));
    assert_eq!(subject.bundle_sha256.value, Sha256::of(b"abc"));
    assert!(subject.patch_sha256.is_some());
    assert_eq!(subject.sources[1].path.value, "engine/b.py");
    let [ordinary, forced, probe] = matrix.cases.as_slice() else { panic!() };
    assert_eq!(at(ordinary.span), "case \"a\" kind=\"ordinary\"");
    assert_eq!(ordinary.row_kind(1), RowKind::Ordinary);

    let Origin::Generated { recipe, p, .. } = &forced.origin else { panic!() };
    assert_eq!((recipe.distribution, recipe.seed, recipe.vocab), (Distribution::Heavy, 1, 100));
    assert_eq!((recipe.sigma, recipe.round), (1.5, Rounding::Bf16));
    assert_eq!(p.iter().map(|p| p.value).collect::<Vec<_>>(), [0.9, 1.0, 0.9, 1.0]);
    assert_eq!([0, 1, 2, 3].map(|row| forced.row_kind(row)), {
        use RowKind::{Disabled, Forced};
        [Forced, Disabled, Forced, Disabled]
    });
    assert_eq!(forced.force_of(2).map(|force| (force.token.value, force.logit.unwrap().value)), Some((99, 3e38)));
    assert!(forced.force_of(1).is_none());

    assert_eq!(probe.kind.value, CaseKind::Probe);
    assert_eq!(probe.row_kind(0), RowKind::Probe);
    let Origin::File { path, .. } = &probe.origin else { panic!() };
    assert_eq!(path.value, "matrices/inputs/b.safetensors");
    assert!(probe.expects_violation("prefix", 1) && probe.expects_violation("prefix", 2));
    assert!(!probe.expects_violation("prefix", 0) && !probe.expects_violation("no-nan", 1));
    assert_eq!((probe.rejection_expected(3), probe.rejection_expected(1)), (Some("invalid-p"), None));
    assert_eq!(at(probe.expectations[2].span()), "expect \"reject\" code=\"invalid-p\"");
}

#[test]
fn without_rows_an_outcome_is_declared_of_every_row() {
    let probe = r#"case "b" kind="probe" {
        generated "uniform" seed=1 vocab=10 sigma=1.0
        p 0.5 0.5
        input logits-sha256="…" p-sha256="…"
        expect "violation" rule="prefix"
    }"#;
    let fit = assert_fit(&matrix(probe));
    assert!(fit.cases[0].expects_violation("prefix", 0) && fit.cases[0].expects_violation("prefix", 1));
    let accept = assert_fit(&with(probe, r#"expect "violation" rule="prefix""#, r#"expect "accept""#));
    assert!(matches!(accept.cases[0].expectations.as_slice(), [Expectation::Accept { .. }]));
}

#[test]
fn a_file_case_names_its_forced_tokens_without_logits() {
    let file = r#"case "f" kind="forced" {
        file "matrices/f.safetensors" sha256="…"
        input logits-sha256="…" p-sha256="…"
        force row=1 token=7
    }"#;
    let fit = assert_fit(&matrix(file));
    let case = &fit.cases[0];
    assert_eq!(case.force_of(1).map(|force| (force.token.value, force.logit)), Some((7, None)));
    assert_issue(&with(file, "token=7", "token=7 logit=1e9"), "matrix::force-with-logit", "1e9");
    let codes = |p: &[f32], vocab| case.misfits(p, vocab).iter().map(|issue| issue.code).collect::<Vec<_>>();
    assert_eq!(codes(&[1.0, 0.5], 8), ["matrix::row-without-force"]);
    assert_eq!(
        codes(&[0.5], 7),
        ["matrix::row-out-of-range", "matrix::token-out-of-range", "matrix::row-without-force"]
    );
}

#[test]
fn the_file() {
    assert_issue("", "matrix::no-matrix", "");
    assert_issue("policy \"p\"", "matrix::unknown-node", "policy");
    let twice = matrix(ORDINARY) + "matrix \"n\" schema=1 {}";
    assert_issue(&twice, "matrix::second-matrix", "matrix \"n\" schema=1");
    assert_issue(&matrix(ORDINARY).replace("schema=1", "schema=2"), "matrix::schema", "2");
    assert_issue(&matrix(ORDINARY).replace(" schema=1", ""), "kdl::missing-property", "matrix");
    assert_issue(&matrix(SUBJECT), "matrix::no-cases", "matrix \"m\" schema=1");
    assert_issue(&with(ORDINARY, "case", "cases\ncase"), "matrix::unknown-node", "cases");
}

#[test]
fn names() {
    let long = "x".repeat(129);
    for bad in ["", "..", "a/b", "a\\\\b", "a\\u{202e}b", "a\\u{200b}", "ü", long.as_str()] {
        assert_issue(&with(ORDINARY, "\"a\"", &format!("\"{bad}\"")), "matrix::name", &format!("\"{bad}\""));
    }
    assert_fit(&with(ORDINARY, "\"a\"", &format!("\"{}\"", "-_.+".repeat(32))));
    assert_issue(&matrix(&[ORDINARY, ORDINARY].join("\n")), "matrix::duplicate-case", "\"a\"");
    assert_issue(&matrix(&[SUBJECT, SUBJECT, ORDINARY].join("\n")), "matrix::duplicate-subject", "\"stock\"");
    // A case and a subject may share a name.
    assert_fit(&matrix(&[SUBJECT, &ORDINARY.replace("\"a\"", "\"stock\"")].join("\n")));
}

#[test]
fn subjects() {
    let both = |part, instead| with(&[SUBJECT, ORDINARY].join("\n"), part, instead);
    assert_issue(&both("engine/b.py", "engine/a.py"), "matrix::duplicate-source", "\"engine/a.py\"");
    assert_issue(&both("    source \"engine/a.py\" sha256=\"…\"", "    sauce"), "matrix::unknown-node", "sauce");
    assert_issue(&both(" bundle-sha256=\"…\"", ""), "kdl::missing-property", "subject");
    assert_issue(&both("patch-sha256", "patch-sha"), "kdl::unknown-property", "patch-sha");
    for bad in ["", "/etc", "../up", "a/../b", "a//b", "./a", "C:/a", "a\\\\b"] {
        let text = both("matrices/recorded/stock", bad);
        assert_issue(&text, "matrix::path", &format!("\"{bad}\""));
    }
}

#[test]
fn origins() {
    let generated = "generated \"normal\" seed=42 vocab=100 sigma=1.0";
    assert_issue(&with(ORDINARY, generated, ""), "matrix::missing-line", "case \"a\" kind=\"ordinary\"");
    assert_issue(&with(ORDINARY, "p 0.1 0.5", ""), "matrix::missing-line", "case \"a\" kind=\"ordinary\"");
    let inputs = "input logits-sha256=\"…\" p-sha256=\"…\"";
    assert_issue(&with(ORDINARY, inputs, ""), "matrix::missing-line", "case \"a\" kind=\"ordinary\"");
    assert_issue(&with(ORDINARY, " p-sha256=\"…\"", ""), "kdl::missing-property", "input");
    let file = format!("file \"b\" sha256=\"{DIGEST}\"");
    let both = format!("{generated}\n{file}");
    assert_issue(&with(ORDINARY, generated, &both), "matrix::two-origins", &file);
    assert_issue(&with(ORDINARY, generated, &file), "matrix::p-beside-file", "p 0.1 0.5");
    assert_issue(&with(ORDINARY, "p 0.1 0.5", "p 0.1\np 0.5"), "matrix::repeated-line", "p");
    assert_issue(&with(ORDINARY, "\"normal\"", "\"norml\""), "matrix::unknown-distribution", "\"norml\"");
    assert_issue(&with(FORCED, "\"bf16\"", "\"fp8\""), "matrix::unknown-rounding", "\"fp8\"");
    assert_issue(&with(ORDINARY, "\"ordinary\"", "\"ordinry\""), "matrix::unknown-kind", "\"ordinry\"");
    assert_issue(&with(ORDINARY, "p 0.1", "q 0.1\np 0.1"), "matrix::unknown-node", "q");
}

#[test]
fn numbers() {
    assert_issue(&with(ORDINARY, "vocab=100", "vocab=0"), "matrix::out-of-range", "0");
    assert_issue(&with(ORDINARY, "vocab=100", "vocab=4294967296"), "kdl::wrong-value", "4294967296");
    for number in ["0x10", "0o7", "0b1"] {
        assert_issue(&with(ORDINARY, "seed=42", &format!("seed={number}")), "kdl::wrong-value", number);
    }
    assert_fit(&with(ORDINARY, "seed=42", "seed=1_000"));
    assert_issue(&with(ORDINARY, "sigma=1.0", "sigma=-1"), "matrix::out-of-range", "-1");
    assert_issue(&with(ORDINARY, "sigma=1.0", "sigma=#inf"), "kdl::wrong-value", "#inf");
    assert_issue(&with(ORDINARY, "0.5", "0.5 times=0"), "matrix::out-of-range", "0");
    assert_issue(&with(ORDINARY, "0.5", "0.5 times=32769"), "matrix::out-of-range", "32769");
    assert_fit(&with(ORDINARY, "0.5", "0.5 times=32768"));
    assert_issue(&with(ORDINARY, "p 0.1 0.5", "p"), "kdl::missing-argument", "p");
    assert_issue(&with(ORDINARY, "0.5", "half"), "kdl::wrong-value", "half");
    // p >= 1 without `disabled` is for the oracle to reject.
    assert_fit(&with(ORDINARY, "0.5", "1.0"));
}

#[test]
fn forces_and_disabled_rows() {
    assert_issue(&with(FORCED, "disabled", "force row=0 token=1 logit=1\ndisabled"), "matrix::duplicate-row", "0");
    assert_issue(&with(FORCED, "disabled", "force row=4 token=1 logit=1\ndisabled"), "matrix::row-out-of-range", "4");
    assert_issue(&with(FORCED, "token=99", "token=100"), "matrix::token-out-of-range", "100");
    assert_issue(&with(FORCED, " logit=1e9", ""), "matrix::force-without-logit", "force row=0 token=7");
    assert_issue(
        &with(FORCED, "disabled 1 3", "disabled 1"),
        "matrix::row-without-force",
        "case \"f\" kind=\"forced\"",
    );
    assert_issue(&with(FORCED, "disabled 1 3", "disabled 1 3 1"), "matrix::duplicate-row", "1");
    assert_issue(&with(FORCED, "disabled 1 3", "disabled 1 3 4"), "matrix::row-out-of-range", "4");
    assert_issue(&with(FORCED, "disabled", "force row=1 token=1 logit=1\ndisabled"), "matrix::contradiction", "1");
    let ordinary = ORDINARY.replace("p 0.1 0.5", "p 0.1 0.5\nforce row=0 token=0 logit=1e9");
    let force = "force row=0 token=0 logit=1e9";
    assert_issue(&matrix(&ordinary), "matrix::force-outside-forced", force);
    // A probe may force what it declares to be rejected.
    let rejected = "force row=0 token=0 logit=#nan\n    expect \"reject\" code=\"non-finite-logit\" { rows 0; }";
    let probe = ORDINARY.replace("ordinary", "probe").replace("p 0.1 0.5", &format!("p 0.1 0.5\n{rejected}"));
    assert!(assert_fit(&matrix(&probe)).cases[0].generated_forces()[0].logit.is_nan());
    assert_issue(&with(ORDINARY, "p 0.1 0.5", "p 0.1 0.5\ndisabled 0"), "matrix::not-disabled", "0");
    assert_fit(&with(ORDINARY, "p 0.1 0.5", "p 1.0 0.5\ndisabled 0"));
}

#[test]
fn expectations() {
    let expect = |line: &str| with(PROBE, "expect \"violation\" rule=\"no-nan\" { rows 2; }", line);
    assert_issue(&expect("expect \"rejct\" code=\"x\" { rows 1; }"), "matrix::unknown-expectation", "\"rejct\"");
    assert_issue(&expect("expect \"reject\" code=\"invalid\""), "matrix::unknown-code", "\"invalid\"");
    assert_issue(&expect("expect \"violation\" { rows 2; }"), "kdl::missing-property", "expect");
    assert_issue(&expect("expect \"violation\" rule=\"no-nan\" { row 2; }"), "matrix::unknown-node", "row");
    assert_issue(&expect("expect \"violation\" rule=\"no-nan\" { rows; }"), "kdl::missing-argument", "rows");
    assert_issue(&expect("expect \"violation\" rule=\"no-nan\" { rows 2; rows 1; }"), "matrix::repeated-line", "rows");
    assert_issue(&expect("expect \"violation\" rule=\"no-nan\" { rows 2 2; }"), "matrix::duplicate-row", "2");
    let again = "expect \"violation\" rule=\"prefix\"";
    assert_issue(&expect("expect \"violation\" rule=\"prefix\" { rows 2; }"), "matrix::duplicate-expectation", again);
    let beside = "expect \"violation\" rule=\"no-nan\"";
    assert_issue(&expect(beside), "matrix::contradiction", "expect \"reject\" code=\"invalid-p\"");
    assert_issue(
        &expect("expect \"violation\" rule=\"no-nan\" { rows 3; }"),
        "matrix::contradiction",
        "expect \"reject\" code=\"invalid-p\"",
    );
    assert_issue(&expect("disabled 3"), "matrix::contradiction", "3");
    let accept = PROBE.lines().filter(|line| !line.contains("expect")).collect::<Vec<_>>().join("\n");
    assert_issue(&matrix(&accept), "matrix::probe-without-expectation", "case \"b\" kind=\"probe\"");
    let accept = accept.replace('}', "expect \"accept\"\n}");
    assert_fit(&matrix(&accept));
    let both = accept.replace('}', "expect \"reject\" code=\"invalid-p\"\n}");
    assert_issue(&matrix(&both), "matrix::contradiction", "expect \"reject\" code=\"invalid-p\"");
    let outside = with(ORDINARY, "p 0.1", "expect \"accept\"\np 0.1");
    assert_issue(&outside, "matrix::expectation-outside-probe", "expect \"accept\"");
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text = matrix(&[SUBJECT, ORDINARY, FORCED, PROBE].join("\n"))
        .replace("schema=1", "schema=9")
        .replace("engine/b.py", "/b.py")
        .replace("vocab=100 sigma=1.0", "vocab=0 sigma=1.0")
        .replace("token=99", "token=100")
        .replace("code=\"invalid-p\"", "code=\"invalid\"");
    let codes: Vec<_> = read(&text).unwrap_err().list.iter().map(|issue| issue.code).collect();
    assert_eq!(
        codes,
        [
            "matrix::schema",
            "matrix::path",
            "matrix::out-of-range",
            "matrix::token-out-of-range",
            "matrix::unknown-code"
        ]
    );
}

#[test]
fn the_rejections_are_the_oracles() {
    let all = [
        OracleError::EmptyRow,
        OracleError::NonFiniteLogit { token: 0, logit: f32::NAN },
        OracleError::InvalidP { p: 1.0 },
        OracleError::AmbiguousBoundary { scan: None },
    ];
    assert_eq!(all.map(|error| error.code()), REJECTIONS);
}

/// Files made of the language's own words, in any order: most are wrong, none may panic.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "matrix",
        "case",
        "subject",
        "source",
        "generated",
        "file",
        "p",
        "force",
        "disabled",
        "input",
        "expect",
        "rows",
        "\"a\"",
        "\"normal\"",
        "\"accept\"",
        "\"violation\"",
        "\"reject\"",
        "kind=\"probe\"",
        "kind=\"forced\"",
        "seed=1",
        "vocab=3",
        "sigma=1.0",
        "row=0",
        "token=2",
        "logit=#nan",
        "times=4294967295",
        "times=2",
        "0",
        "0.5",
        "1e9",
        "-1",
        "schema=1",
        "code=\"invalid-p\"",
        "rule=\"prefix\"",
        "sha256=\"x\"",
        "{",
        "}",
        "\n",
        ";",
        "(u8)",
        "/-",
    ]);
    prop::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_text_panics(body in words(), noise in "\\PC{0,40}") {
        let _ = read(&body);
        let _ = read(&matrix(&body));
        let _ = read(&matrix(&format!("{ORDINARY}\n{noise}")));
    }

    /// Any part of a fit file may be missing.
    #[test]
    fn no_cut_panics(from in 0usize..1500, to in 0usize..1500) {
        let text = matrix(&[SUBJECT, ORDINARY, FORCED, PROBE].join("\n"));
        let kept: String = text.char_indices().filter(|(at, _)| !(from..to).contains(at)).map(|(_, c)| c).collect();
        let _ = read(&kept);
    }
}

fn shipped(name: &str) -> Matrix {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices").join(name);
    assert_fit(&std::fs::read_to_string(path).unwrap())
}

#[test]
fn the_shipped_matrices() {
    let default = shipped("vllm-large-logit-fix.kdl");
    let names = |matrix: &Matrix| matrix.cases.iter().map(|case| case.name.value.clone()).collect::<Vec<_>>();
    assert_eq!(default.cases.len(), 24);
    let bf16 = shipped("vllm-bf16-rows.kdl");
    assert_eq!(names(&bf16), ["bf16-normal-151936", "bf16-heavy-151936", "bf16-heavy-32000", "smollm2-135m-bf16"]);
    assert!(bf16.cases.iter().all(|case| case.kind.value == CaseKind::Ordinary));

    // The same cases and expectations, byte for byte, under another patch.
    let monolithic = shipped("vllm-monolithic.kdl");
    let cases = |matrix: &Matrix| {
        let text = matrix.source.text().to_owned();
        text[matrix.cases[0].span.offset()..].to_owned()
    };
    assert_eq!(cases(&monolithic), cases(&default));
    assert_eq!(monolithic.subjects[1].bundle.value, "matrices/recorded/vllm-h200/monolithic-0.32.0");

    let forced: usize = default.cases.iter().map(|case| case.forces().len()).sum();
    assert_eq!(forced, 12);
    let order = names(&default);
    assert_eq!((order[0].as_str(), order[23].as_str()), ("normal-1024", "shifted-top-ties"));
}

/// Every file that a shipped matrix names has the bytes that it pins.
#[test]
fn the_shipped_pins() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["vllm-large-logit-fix.kdl", "vllm-bf16-rows.kdl", "vllm-monolithic.kdl"] {
        for case in shipped(name).cases {
            if let Origin::File { path, sha256, .. } = case.origin {
                let bytes = std::fs::read(root.join(&path.value)).unwrap();
                assert_eq!(Sha256::of(&bytes), sha256.value, "{}", path.value);
            }
        }
    }
}

/// Every generated case hashes to what the matrix pins.
#[test]
fn the_generated_inputs() {
    let cases =
        [shipped("vllm-large-logit-fix.kdl"), shipped("vllm-bf16-rows.kdl")].map(|matrix| matrix.cases).concat();
    for case in cases {
        if let Origin::Generated { recipe, p, .. } = &case.origin {
            let p: Vec<f32> = p.iter().map(|p| p.value).collect();
            let inputs = crate::inputs::generate(recipe, &p, &case.generated_forces()).unwrap();
            assert_eq!(inputs.logits_sha256(), case.input.logits_sha256.value, "{}", case.name.value);
            assert_eq!(inputs.p_sha256(), case.input.p_sha256.value, "{}", case.name.value);
        }
    }
}

/// What an issue says does not grow with the file, nor do the issues with the pairs of lines.
#[test]
fn repetitions_are_reported_once_each() {
    let probe = |lines: &str| with(PROBE, "    expect \"violation\" rule=\"prefix\" { rows 1 2; }", lines);
    let alone = |lines: &str| probe(lines).replace("expect \"violation\" rule=\"no-nan\" { rows 2; }", "");
    let accepts = alone(&"    expect \"accept\"\n".repeat(100)).replace("expect \"reject\" code=\"invalid-p\"", "//");
    let issues = read(&accepts).unwrap_err();
    assert_eq!((issues.list.len(), issues.more), (99, 0));
    let first = issues.list[0].labels[1].0;
    assert!(
        issues.list.iter().all(|issue| issue.code == "matrix::duplicate-expectation" && issue.labels[1].0 == first)
    );
    let rules: String =
        (0..100).map(|rule| format!("    expect \"violation\" rule=\"r{rule}\" {{ rows 1 2; }}\n")).collect();
    assert_fit(&probe(&rules));
}

#[test]
fn rows_without_a_force_are_counted() {
    let text = with(FORCED, "times=2", "times=32768").replace("disabled 1 3", "");
    let issues = read(&text).unwrap_err();
    let [issue] = issues.list.as_slice() else { panic!("{:?}", issues.list) };
    assert!(issue.message.ends_with("in row 1, 3, 4, 5, 6, 7, 8, 9 and 65526 more"), "{}", issue.message);
}

/// Hidden from the decoder behind a `/-`, the nesting is still the parser's.
#[test]
fn a_repinned_matrix_may_nest_deeply_where_nothing_is_decoded() {
    let blocks = 2000;
    let hidden = format!("/-x \"}}\" {}{}\n{ORDINARY}", "{\na \"}\" ".repeat(blocks), "}".repeat(blocks));
    let matrix = assert_fit(&matrix(&hidden));
    assert!(super::repin(&matrix.source, "m", &[]).is_some_and(|text| text.contains("case \"a\"")));
}
