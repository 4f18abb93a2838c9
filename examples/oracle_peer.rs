//! The oracle's side of `benches/peers.py`: answers commands on stdin, one a line, each with a line of JSON.
//!
//! - `write KIND FILE` writes the kind's first row as little-endian fp32.
//! - `time KIND ISA REPEATS` certifies that row at p = fp32(0.95), one worker: milliseconds.
//! - `workers N REPEATS` certifies 64 rows of each generated kind in a pool of N workers: milliseconds.
//! - `copy BYTES REPEATS` copies memory: milliseconds.

use std::error::Error;
use std::io::BufRead as _;
use std::path::Path;
use std::time::Instant;

use nucleus_gate::inputs::{Distribution, Inputs, Recipe, Rounding, generate, read};
use nucleus_gate::oracle::{Isa, Workspace, nuclei};
use serde_json::{Value, json};

const P: f32 = 0.95;
const VOCAB: u32 = 151_936;
const GENERATED: [(&str, Distribution, f64); 3] =
    [("flat", Distribution::Normal, 1.0), ("sharp", Distribution::Normal, 4.0), ("peaked", Distribution::Heavy, 2.0)];

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> Answer<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["write", kind, file] => write(kind, Path::new(file))?,
            ["time", kind, isa, repeats] => time(kind, isa, repeats.parse()?)?,
            ["workers", count, repeats] => workers(count.parse()?, repeats.parse()?)?,
            ["copy", bytes, repeats] => copy(bytes.parse()?, repeats.parse()?),
            _ => return Err(format!("unknown command: {line}").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

fn inputs(kind: &str, rows: usize) -> Answer<Inputs> {
    if let Some((_, distribution, sigma)) = GENERATED.into_iter().find(|(name, ..)| *name == kind) {
        let recipe = Recipe { distribution, seed: 46, vocab: VOCAB, sigma, round: Rounding::None };
        return Ok(generate(&recipe, &vec![P; rows], &[])?);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200/inputs");
    Ok(read(&std::fs::read(folder.join(kind).with_extension("safetensors"))?)?)
}

fn first_row(kind: &str) -> Answer<Vec<f32>> {
    Ok(inputs(kind, 1)?.row(0).unwrap_or_default().to_vec())
}

fn write(kind: &str, file: &Path) -> Answer<Value> {
    let row = first_row(kind)?;
    std::fs::write(file, row.iter().flat_map(|logit| logit.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(json!({ "tokens": row.len() }))
}

/// What is computed must be computed.
fn keep<T>(result: &T) {
    std::hint::black_box(result);
}

/// The median and the least of `repeats` timings, in milliseconds.
fn timings(repeats: usize, mut work: impl FnMut()) -> [f64; 2] {
    let mut times: Vec<f64> = (0..repeats.max(1))
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    [times[times.len() / 2], times[0]]
}

fn time(kind: &str, isa: &str, repeats: usize) -> Answer<Value> {
    let row = first_row(kind)?;
    let isa = Isa::ALL.into_iter().find(|known| known.name() == isa).unwrap_or_else(Isa::detect);
    let Ok(mut workspace) = Workspace::with_isa(isa) else {
        return Ok(json!({ "isa": isa.name(), "nucleus": null }));
    };
    let nucleus = workspace.nucleus(&row, P)?;
    let total = timings(repeats, || keep(&workspace.nucleus(&row, P)));
    let weights = timings(repeats, || keep(&workspace.weights(&row)));
    let count = nucleus.count as usize;
    let order = timings(repeats, || keep(&workspace.order(&row, count)));
    Ok(json!({ "isa": isa.name(), "count": count, "nucleus": total, "weights": weights, "order": order }))
}

fn workers(count: usize, repeats: usize) -> Answer<Value> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build()?;
    let batches = GENERATED.iter().map(|(kind, ..)| inputs(kind, 64)).collect::<Answer<Vec<_>>>()?;
    let times = timings(repeats, || {
        pool.install(|| {
            for batch in &batches {
                std::hint::black_box(nuclei(batch.logits(), batch.vocab(), batch.p(), &|| false));
            }
        });
    });
    Ok(json!({ "workers": count, "rows": 64 * batches.len(), "time": times }))
}

fn copy(bytes: usize, repeats: usize) -> Value {
    let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
    json!({ "bytes": bytes, "time": timings(repeats, || std::hint::black_box(&mut to).copy_from_slice(&from)) })
}
