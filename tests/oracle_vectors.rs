//! The oracle against golden vectors that an independent implementation computed: plain Python, `math.exp` and
//! `math.fsum`.
//!
//! Python's exp was glibc's, which is not correctly rounded: about 0.08 % of its results are one unit in the last place
//! off. Counts, orders, tokens and rejections must agree exactly. A sum must agree to the bit unless one of its weights
//! met such a result, so that it may differ by what these can move: 2^-52 of itself and one rounding. How many sums
//! agree to the bit is the same on every machine, and is asserted too.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helper functions of tests, too, may fail by panic")]

use std::collections::BTreeMap;
use std::path::Path;

use nucleus_gate::oracle::{Nucleus, OracleError, certify, define, nucleus};
use serde::Deserialize;

const CASES: &str = include_str!("vectors/oracle-cases.json");
const SMALL: &str = include_str!("vectors/oracle-small.json");
const CERTIFY: &str = include_str!("vectors/certify.json");

/// `0x1.8000000000000p-106`, as Python's `float.hex` writes it.
fn hex_float(text: &str) -> f64 {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (mantissa, exponent) = digits.strip_prefix("0x").unwrap().split_once('p').unwrap();
    let (whole, fraction) = mantissa.split_once('.').unwrap();
    let integer = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - 4 * fraction.len() as i32;
    // Two exact steps, for exponents below the normal range.
    let half = exponent / 2;
    sign * integer as f64 * 2f64.powi(half) * 2f64.powi(exponent - half)
}

fn hex_bits(text: &str) -> f32 {
    f32::from_bits(u32::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap())
}

/// The golden text of a rejection, from our code.
fn rejection(error: OracleError) -> &'static str {
    match error {
        OracleError::EmptyRow => "empty row",
        OracleError::NonFiniteLogit { .. } => "non-finite logit",
        OracleError::InvalidP { .. } => "invalid p",
        OracleError::AmbiguousBoundary { .. } => "ambiguous",
    }
}

#[derive(Deserialize)]
struct Case {
    case: String,
    row: usize,
    p_bits: String,
    reject: Option<String>,
    count: Option<u32>,
    first: Option<u32>,
    last_kept: Option<u32>,
    next_dropped: Option<u32>,
    normalizer: Option<String>,
    target: Option<String>,
    prefix: Option<String>,
    prefix_before: Option<String>,
}

/// What glibc's last-place errors can move a sum by.
fn near(ours: f64, golden: f64) -> bool {
    (ours - golden).abs() <= golden * (2.0 * f64::EPSILON)
}

/// The golden row agrees with `ours`; returns how many of the four sums agree to the bit.
fn agrees(case: &Case, ours: Result<Nucleus, OracleError>) -> usize {
    let name = format!("{} row {}", case.case, case.row);
    if let Some(reject) = &case.reject {
        assert_eq!(ours.map_err(rejection), Err(reject.as_str()), "{name}");
        return 0;
    }
    let ours = ours.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(Some(ours.count), case.count, "{name}");
    assert_eq!(Some(ours.first), case.first, "{name}");
    assert_eq!(Some(ours.last_kept), case.last_kept, "{name}");
    assert_eq!(ours.boundary.token(), ours.last_kept, "{name}");
    assert_eq!(ours.next_dropped, case.next_dropped, "{name}");
    let sums = [
        (ours.normalizer, &case.normalizer),
        (ours.target, &case.target),
        (ours.prefix, &case.prefix),
        (ours.prefix_before, &case.prefix_before),
    ];
    sums.into_iter()
        .filter(|(ours, golden)| {
            let golden = hex_float(golden.as_ref().unwrap());
            assert!(near(*ours, golden), "{name}: {ours:e} for {golden:e}");
            ours.to_bits() == golden.to_bits()
        })
        .count()
}

/// The logits ([batch, vocab]) and p of an input file, with its vocabulary.
fn read_inputs(path: &Path) -> (Vec<f32>, Vec<f32>, usize) {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).unwrap().data().chunks_exact(4).collect::<Vec<_>>();
        data.into_iter().map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    (floats("logits"), floats("p"), file.tensor("logits").unwrap().shape()[1])
}

#[test]
fn recorded_input_files_agree() {
    let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
    assert_eq!(cases.len(), 223);
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200/inputs");
    let mut files: BTreeMap<&str, _> = BTreeMap::new();
    let (mut rows, mut same_bits) = (0, 0);
    for case in &cases {
        let path = inputs.join(format!("{}.safetensors", case.case));
        if !path.exists() {
            continue; // A generated case: the next test.
        }
        let (logits, p, vocab) = files.entry(&case.case).or_insert_with(|| read_inputs(&path));
        let (logits, p) = (&logits[case.row * *vocab..(case.row + 1) * *vocab], p[case.row]);
        assert_eq!(p.to_bits(), hex_bits(&case.p_bits).to_bits());
        same_bits += agrees(case, nucleus(logits, p));
        rows += 1;
    }
    assert_eq!(rows, 107);
    assert_eq!(same_bits, 4 * 103, "all but the four rejected rows");
}

#[derive(Deserialize)]
struct Small {
    name: String,
    logits_bits: Vec<String>,
    p_bits: String,
    reject: Option<String>,
    kept: Option<Vec<u32>>,
    order: Option<Vec<u32>>,
    count: Option<u32>,
    normalizer: Option<String>,
    target: Option<String>,
}

#[test]
fn small_rows_agree() {
    let rows: Vec<Small> = serde_json::from_str(SMALL).unwrap();
    assert_eq!(rows.len(), 30);
    for row in rows {
        let name = &row.name;
        let logits: Vec<f32> = row.logits_bits.iter().map(|bits| hex_bits(bits)).collect();
        let p = hex_bits(&row.p_bits);
        let ours = define(&logits, p);
        assert_eq!(nucleus(&logits, p).map_err(rejection), ours.clone().map(|(_, ours)| ours).map_err(rejection));
        let (order, ours) = match ours {
            Ok(ours) => ours,
            Err(error) => {
                assert_eq!(Some(rejection(error)), row.reject.as_deref(), "{name}");
                continue;
            }
        };
        assert_eq!(Some(&order), row.order.as_ref(), "{name}");
        assert_eq!(Some(ours.count), row.count, "{name}");
        let mut kept = order[..ours.count as usize].to_vec();
        kept.sort_unstable();
        assert_eq!(Some(kept), row.kept, "{name}");
        assert_eq!(Some(ours.normalizer), row.normalizer.as_deref().map(hex_float), "{name}");
        assert_eq!(Some(ours.target), row.target.as_deref().map(hex_float), "{name}");
    }
}

#[derive(Deserialize)]
struct Weights {
    name: String,
    weights: Vec<String>,
    target: String,
    count: Option<usize>,
}

#[test]
fn adversarial_weights_are_certified_or_ambiguous_as_recorded() {
    let rows: Vec<Weights> = serde_json::from_str(CERTIFY).unwrap();
    assert_eq!(rows.len(), 30);
    assert_eq!(rows.iter().filter(|row| row.count.is_none()).count(), 24);
    for row in rows {
        let weights: Vec<f64> = row.weights.iter().map(|weight| hex_float(weight)).collect();
        let ours = certify(&weights, hex_float(&row.target)).map(|certified| certified.count);
        assert_eq!(ours.map_err(rejection), row.count.ok_or("ambiguous"), "{}", row.name);
    }
}
