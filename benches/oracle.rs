//! How fast the oracle certifies a row: `cargo bench --bench oracle`. See `README.md` beside this file.
//!
//! Four kinds of rows at p = 0.95: flat (normal, sigma 1), sharp (normal, sigma 4), peaked (heavy, sigma 2), and real
//! next-token logits of two language models.

use std::fmt;
use std::path::Path;

use divan::Bencher;
use divan::counter::ItemsCount;
use nucleus_gate::inputs::{Distribution, Inputs, Recipe, Rounding, generate, read};
use nucleus_gate::oracle::{Isa, Workspace, nuclei};

fn main() {
    divan::main();
}

const P: f32 = 0.95;
/// Rows that are worked on in turn.
const ROWS: usize = 8;
const VOCABULARIES: [u32; 5] = [1024, 8192, 32_000, 151_936, 262_144];

/// Where a row comes from.
#[derive(Clone, Copy)]
enum Rows {
    Generated { name: &'static str, distribution: Distribution, sigma: f64, vocab: u32 },
    Recorded { name: &'static str },
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated { name, vocab, .. } => write!(f, "{name}, {vocab} tokens"),
            Self::Recorded { name } => write!(f, "{name}"),
        }
    }
}

fn rows() -> impl Iterator<Item = Rows> {
    let kinds = [
        ("flat", Distribution::Normal, 1.0),
        ("sharp", Distribution::Normal, 4.0),
        ("peaked", Distribution::Heavy, 2.0),
    ];
    let generated = kinds.into_iter().flat_map(|(name, distribution, sigma)| {
        VOCABULARIES.map(|vocab| Rows::Generated { name, distribution, sigma, vocab })
    });
    generated.chain([Rows::Recorded { name: "smollm2-135m-49152" }, Rows::Recorded { name: "gemma3-270m-262144" }])
}

#[expect(clippy::expect_used, reason = "a benchmark without its rows has nothing to do")]
fn load(rows: Rows) -> Inputs {
    match rows {
        Rows::Generated { distribution, sigma, vocab, .. } => {
            let recipe = Recipe { distribution, seed: 46, vocab, sigma, round: Rounding::None };
            generate(&recipe, &[P; ROWS], &[]).expect("a recipe within limits")
        }
        Rows::Recorded { name } => {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200/inputs");
            let bytes = std::fs::read(path.join(name).with_extension("safetensors")).expect("the recorded inputs");
            read(&bytes).expect("inputs")
        }
    }
}

/// One worker, one row after the other, on one instruction set.
fn one_worker(bencher: Bencher<'_, '_>, rows: Rows, isa: Isa) {
    let Ok(mut workspace) = Workspace::with_isa(isa) else {
        println!("{}: not on this machine", isa.name());
        return;
    };
    let inputs = load(rows);
    let mut row = 0;
    bencher.counter(ItemsCount::new(inputs.vocab())).bench_local(|| {
        row = (row + 1) % inputs.batch();
        workspace.nucleus(inputs.row(row).unwrap_or_default(), P)
    });
}

#[divan::bench(args = rows())]
fn avx512(bencher: Bencher<'_, '_>, rows: Rows) {
    one_worker(bencher, rows, Isa::Avx512);
}

#[divan::bench(args = rows())]
fn avx2(bencher: Bencher<'_, '_>, rows: Rows) {
    one_worker(bencher, rows, Isa::Avx2);
}

#[divan::bench(args = rows())]
fn portable(bencher: Bencher<'_, '_>, rows: Rows) {
    one_worker(bencher, rows, Isa::Portable);
}

/// The canonical order of the whole row, which the nucleus does not need.
#[divan::bench(args = rows())]
fn order(bencher: Bencher<'_, '_>, rows: Rows) {
    let inputs = load(rows);
    let mut workspace = Workspace::new();
    let mut row = 0;
    bencher.counter(ItemsCount::new(inputs.vocab())).bench_local(|| {
        row = (row + 1) % inputs.batch();
        workspace.order(inputs.row(row).unwrap_or_default(), inputs.vocab()).map(<[_]>::len)
    });
}

/// All workers, the rows of a batch in parallel.
#[divan::bench(args = rows())]
fn all_workers(bencher: Bencher<'_, '_>, rows: Rows) {
    let inputs = load(rows);
    let p = vec![P; inputs.batch()];
    bencher
        .counter(ItemsCount::new(inputs.vocab() * inputs.batch()))
        .bench_local(|| nuclei(inputs.logits(), inputs.vocab(), &p, &|| false));
}
