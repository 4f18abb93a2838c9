//! `nucleus-gate oracle`, as a user calls it.
#![expect(clippy::unwrap_used, reason = "the helper functions of tests, too, may fail by panic")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn input(name: &str) -> PathBuf {
    let inputs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200/inputs");
    inputs.join(name).with_extension("safetensors")
}

fn oracle(file: &PathBuf, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
    command.arg("oracle").arg(file).args(arguments).env("COLUMNS", "80").output().unwrap()
}

fn exit(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The code of the error on stderr.
fn error(output: &Output) -> &str {
    assert_eq!(stdout(output), "");
    let text = std::str::from_utf8(&output.stderr).unwrap();
    text.strip_prefix("error[").and_then(|rest| rest.split_once(']')).unwrap().0
}

#[test]
fn a_row_of_a_language_model() {
    let output = oracle(&input("smollm2-135m-49152"), &["--row", "1"]);
    assert_eq!(exit(&output), 0);
    let (_, row) = stdout(&output).split_once("\n\n").unwrap();
    insta::assert_snapshot!(row, @r"
    row 1: 49152 tokens, p = 0.5 (0x3f000000)
      nucleus           1 of 49152 tokens; the first is 7042
      mass              0.7725321196101009, 2.725e-1 above p
      without the last  0.0, 5.000e-1 below p
      certificate       proven for exact reals by binary64's rounding bounds
          rank    token          logit  fp32 bits       weight
             1     7042       17.37126 0x418af857   1.000000e0
             2      260      14.888589 0x416e37a9  8.351986e-2  dropped
             3     4528      13.244973 0x4153eb69  1.614271e-2  dropped
             4     2250      13.009467 0x415026c7  1.275550e-2  dropped
    ");
}

#[test]
fn an_exact_tie_and_what_rounding_moved_are_named() {
    let tie = oracle(&input("all-equal"), &["--row", "0", "--p", "0.5"]);
    assert!(stdout(&tie).contains("an exact tie"), "{}", stdout(&tie));
    let moved = oracle(&input("dyadic-exact"), &["--row", "0"]);
    assert!(stdout(&moved).contains("not the boundary of exact reals"), "{}", stdout(&moved));
    assert_eq!((exit(&tie), exit(&moved)), (0, 0), "a diagnostic, not a verdict");
}

#[test]
fn json_holds_every_row_and_the_bits_of_every_number() {
    let output = oracle(&input("upstream-seed42-8x1024"), &["--format", "json"]);
    // Two rows have p = 1.
    assert_eq!(exit(&output), 3);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "nucleus-gate/oracle/v1");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let rejected: Vec<_> = rows.iter().filter(|row| row["nucleus"].is_null()).map(|row| row["row"].as_u64()).collect();
    assert_eq!(rejected, [Some(4), Some(6)]);
    assert_eq!(rows[4]["error"]["code"], "invalid-p");
    let nucleus = &rows[0]["nucleus"];
    for sum in ["normalizer", "target", "prefix", "prefix_before"] {
        let bits = format!("{:#018x}", nucleus[sum]["value"].as_f64().unwrap().to_bits());
        assert_eq!(nucleus[sum]["bits"], bits, "{sum}");
    }
    let boundary = nucleus["boundary"].as_array().unwrap();
    let last = boundary.iter().rfind(|near| near["kept"] == true).unwrap();
    assert_eq!((&last["token"], &last["rank"]), (&nucleus["last_kept"], &nucleus["count"]));
    let next = boundary.iter().find(|near| near["kept"] == false).unwrap();
    assert_eq!(next["token"], nucleus["next_dropped"]);
    assert_eq!(nucleus["certificate"], "proven");
}

#[test]
fn what_is_wrong_is_named_with_a_code() {
    let file = input("all-equal");
    let cases = [
        (oracle(&file, &["--row", "99"]), 2, "oracle-no-such-row"),
        (oracle(&file, &["--p", "1"]), 2, "invalid-p"),
        (oracle(&file, &["--p", "nan"]), 2, "invalid-p"),
        (oracle(&input("no-such-file"), &[]), 3, "file-missing"),
        (oracle(&PathBuf::from(env!("CARGO_MANIFEST_DIR")), &[]), 3, "file-not-regular"),
        (oracle(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), &[]), 3, "oracle-file-format"),
    ];
    for (output, code, name) in &cases {
        assert_eq!((exit(output), error(output)), (*code, *name));
    }
}

/// A file of npy logits, with no p of its own.
#[test]
fn npy_needs_a_p() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logits.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([0.0f32, 2.0, 1.0].map(f32::to_le_bytes).as_flattened());
    std::fs::write(&file, bytes).unwrap();
    let output = oracle(&file, &["--p", "0.9"]);
    assert_eq!(exit(&output), 0);
    assert!(stdout(&output).contains("2 of 3 tokens; the first is 1"), "{}", stdout(&output));
    let output = oracle(&file, &[]);
    assert_eq!((exit(&output), error(&output)), (2, "oracle-no-p"));
}

/// One-token rows: the most there may be, and one more.
#[test]
fn more_rows_than_a_call_certifies_are_taken_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logits.safetensors");
    let rows = |rows: usize| {
        let header = format!(r#"{{"logits":{{"dtype":"BF16","shape":[{rows},1],"data_offsets":[0,{}]}}}}"#, 2 * rows);
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; 2 * rows]].concat();
        std::fs::write(&file, bytes).unwrap();
    };
    rows(65_537);
    let output = oracle(&file, &["--p", "0.5"]);
    assert_eq!((exit(&output), error(&output)), (2, "oracle-too-many-rows"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--row"));
    assert_eq!(exit(&oracle(&file, &["--p", "0.5", "--row", "65536"])), 0);
    rows(65_536);
    let output = oracle(&file, &["--p", "0.5"]);
    assert_eq!(exit(&output), 0);
    assert!(stdout(&output).contains("\nrow 65535: "));
}
