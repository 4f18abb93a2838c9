//! Device times of every kernel at 1, 8 and 64 rows of 151,936 tokens, by events around replays of a CUDA graph.
//!
//! `cargo run --release --example kernel_times`: medians, smallest and largest of 25 replays of 20 runs each, in microseconds.

use std::error::Error;

use nucleus_gate::inputs::{Distribution, Recipe, Rounding, generate};
use nucleus_gate::kernels::Backend as _;
use nucleus_gate::kernels::Kernel;
use nucleus_gate::kernels::cuda::CudaBackend;

const VOCAB: u32 = 151_936;

fn main() -> Result<(), Box<dyn Error>> {
    let backend = CudaBackend::new(Some(&[0])).map_err(|error| format!("{error}; {}", error.help()))?;
    let device = backend.devices().first().ok_or("no device")?;
    println!("{:?}", backend.machine());
    println!("{:<14} {:>4}  {:<6} {:>9} {:>9} {:>9}", "logits", "rows", "kernel", "median", "smallest", "largest");
    let logits = [
        ("heavy, 2", Distribution::Heavy, 2.0, Rounding::None),
        ("normal, 1", Distribution::Normal, 1.0, Rounding::None),
        ("normal, 2 bf16", Distribution::Normal, 2.0, Rounding::Bf16),
        ("all equal", Distribution::Uniform, 0.0, Rounding::None),
    ];
    for (name, distribution, sigma, round) in logits {
        for rows in [1, 8, 64] {
            let recipe = Recipe { distribution, seed: 45, vocab: VOCAB, sigma, round };
            let inputs = generate(&recipe, &vec![0.9; rows], &[])?;
            let mut batch = device.upload(&inputs)?;
            for kernel in Kernel::ALL {
                let shape = device.shape(kernel, rows, VOCAB as usize)?;
                let timing = device.time(kernel, &shape, &mut batch, 25, 20)?;
                let (smallest, largest) = (timing.microseconds.first(), timing.microseconds.last());
                let (smallest, largest) = (smallest.copied().unwrap_or(f32::NAN), largest.copied().unwrap_or(f32::NAN));
                let median = timing.median();
                println!("{name:<14} {rows:>4}  {kernel:<6} {median:>9.1} {smallest:>9.1} {largest:>9.1}");
            }
        }
    }
    Ok(())
}
