//! The oracle against golden vectors that an independent implementation computed: plain Python, `math.exp` and
//! `math.fsum`.
//!
//! Python's exp was glibc's, which is not correctly rounded: about 0.08 % of its results are one unit in the last place
//! off. So a sum need not agree to the bit: it might be off by what these can move it by. None is: counts, orders,
//! tokens, rejections and all sums agree exactly.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helper functions of tests, too, may fail by panic")]

use std::collections::BTreeMap;
use std::path::Path;

use nucleus_gate::inputs::{Distribution, Force, Recipe, Rounding, generate};
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

/// The golden row agrees with `ours`.
fn agrees(case: &Case, ours: Result<Nucleus, OracleError>) {
    let name = format!("{} row {}", case.case, case.row);
    if let Some(reject) = &case.reject {
        assert_eq!(ours.map_err(rejection), Err(reject.as_str()), "{name}");
        return;
    }
    let ours = ours.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(Some(ours.count), case.count, "{name}");
    assert_eq!(Some(ours.first), case.first, "{name}");
    assert_eq!(Some(ours.last_kept), case.last_kept, "{name}");
    assert_eq!(ours.boundary.token(), ours.last_kept, "{name}");
    assert_eq!(ours.next_dropped, case.next_dropped, "{name}");
    let golden = [&case.normalizer, &case.target, &case.prefix, &case.prefix_before];
    let golden = golden.map(|sum| sum.as_deref().map(hex_float));
    assert_eq!([ours.normalizer, ours.target, ours.prefix, ours.prefix_before].map(Some), golden, "{name}");
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
    let mut rows = 0;
    for case in &cases {
        let path = inputs.join(format!("{}.safetensors", case.case));
        if !path.exists() {
            continue; // A generated case: see the next test.
        }
        let (logits, p, vocab) = files.entry(&case.case).or_insert_with(|| read_inputs(&path));
        let (logits, p) = (&logits[case.row * *vocab..(case.row + 1) * *vocab], p[case.row]);
        assert_eq!(p.to_bits(), hex_bits(&case.p_bits).to_bits());
        agrees(case, nucleus(logits, p));
        rows += 1;
    }
    assert_eq!(rows, 107);
}

/// The generated cases: name, distribution, seed, vocabulary, sigma, rounding.
const GENERATED: [(&str, Distribution, u64, u32, f64, Rounding); 13] = [
    ("normal-1024", Distribution::Normal, 42, 1024, 1.0, Rounding::None),
    ("normal-32000", Distribution::Normal, 42, 32_000, 1.0, Rounding::None),
    ("normal-128256", Distribution::Normal, 42, 128_256, 1.0, Rounding::None),
    ("normal-128256-high", Distribution::Normal, 43, 128_256, 1.0, Rounding::None),
    ("heavy-50257", Distribution::Heavy, 44, 50_257, 2.0, Rounding::None),
    ("heavy-151936", Distribution::Heavy, 45, 151_936, 2.0, Rounding::None),
    ("sharp-151936", Distribution::Normal, 46, 151_936, 4.0, Rounding::None),
    ("uniform-32000", Distribution::Uniform, 47, 32_000, 1.0, Rounding::None),
    ("forced-32000", Distribution::Normal, 48, 32_000, 1.0, Rounding::None),
    ("forced-151936", Distribution::Normal, 49, 151_936, 1.0, Rounding::None),
    ("bf16-normal-151936", Distribution::Normal, 51, 151_936, 2.0, Rounding::Bf16),
    ("bf16-heavy-151936", Distribution::Heavy, 52, 151_936, 2.0, Rounding::Bf16),
    ("bf16-heavy-32000", Distribution::Heavy, 53, 32_000, 1.2, Rounding::Bf16),
];

/// The logits that are forced in each row of a generated case: row r's is at token 7919 * (r + 1) modulo the
/// vocabulary.
fn forced(name: &str, vocab: u32) -> Vec<Force> {
    let logits: &[f32] = match name {
        "forced-32000" => &[1e3, 1e4, 1e5, 1e6, 1e7, 1e9, 1e20, 3e38],
        "forced-151936" => &[1e4, 1e6, 1e9, 1e30],
        _ => &[],
    };
    (0..).zip(logits).map(|(row, &logit)| Force { row, token: 7919 * (row + 1) % vocab, logit }).collect()
}

#[test]
fn generated_inputs_agree() {
    let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
    let mut rows = 0;
    for (name, distribution, seed, vocab, sigma, round) in GENERATED {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.case == name).collect();
        let p: Vec<f32> = cases.iter().map(|case| hex_bits(&case.p_bits)).collect();
        let recipe = Recipe { distribution, seed, vocab, sigma, round };
        let inputs = generate(&recipe, &p, &forced(name, vocab)).unwrap();
        for case in cases {
            agrees(case, nucleus(inputs.row(case.row).unwrap(), p[case.row]));
            rows += 1;
        }
    }
    assert_eq!(rows, 116);
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
