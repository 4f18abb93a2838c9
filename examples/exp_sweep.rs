//! Holds the oracle's weights to core-math's exponential on as many values as asked for, on each instruction set of this
//! machine: `cargo run --release --example exp_sweep -- 500000000`. The tests do the same on a few hundred thousand.

use std::error::Error;

use nucleus_gate::oracle::{Isa, Workspace};
use rand_core::RngCore as _;
use rand_pcg::Pcg64;

fn main() -> Result<(), Box<dyn Error>> {
    let values: u64 = std::env::args().nth(1).map_or(Ok(50_000_000), |values| values.parse())?;
    let mut random = Pcg64::new(values.into(), 1);
    let mut workspaces: Vec<(Isa, Workspace)> =
        Isa::ALL.into_iter().filter_map(|isa| Some((isa, Workspace::with_isa(isa).ok()?))).collect();
    let mut unit = move || (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
    const ROW: u64 = 100_000;
    for round in 0..values.div_ceil(ROW) {
        // Maxima of many bits, so that the differences have all 53; spreads from 2^-20 to beyond underflow.
        let max = (unit() - 0.5) * (-20.0 * unit()).exp2();
        let spread = 750.0 * (-30.0 * unit() * unit()).exp2();
        let mut row: Vec<f32> = (1..ROW).map(|_| max - spread * unit()).collect();
        row.push(max);
        for (isa, workspace) in &mut workspaces {
            for (logit, weight) in row.iter().zip(workspace.weights(&row)?) {
                let x = f64::from(*logit) - f64::from(max);
                let expected = core_math::exp(x);
                if weight.to_bits() != expected.to_bits() {
                    return Err(format!("{}: exp({x:e}) is {expected:e}, not {weight:e}", isa.name()).into());
                }
            }
        }
        if round % 500 == 499 {
            println!("{} values agree", (round + 1) * ROW);
        }
    }
    Ok(())
}
