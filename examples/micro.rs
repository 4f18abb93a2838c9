//! x
use nucleus_gate::oracle::*;
use std::time::Instant;
fn main() {
    for n in [1024usize, 8192, 32768, 65536, 151_552] {
        let logits: Vec<f32> = (0..n).map(|i| -(((i * 7919) % 10007) as f32) * 0.001).collect();
        for isa in [Isa::Avx2, Isa::Avx512] {
            let mut ws = Workspace::with_isa(isa).unwrap();
            let reps = 30_000_000 / n;
            let mut best = f64::MAX;
            let mut bestn = f64::MAX;
            for _ in 0..20 {
                let t = Instant::now();
                for _ in 0..reps / 20 {
                    std::hint::black_box(ws.weights(&logits).unwrap());
                }
                best = best.min(t.elapsed().as_secs_f64() / (reps / 20) as f64 / n as f64 * 1e9);
                let t = Instant::now();
                for _ in 0..reps / 20 {
                    std::hint::black_box(ws.nucleus(&logits, 0.95).unwrap());
                }
                bestn = bestn.min(t.elapsed().as_secs_f64() / (reps / 20) as f64 / n as f64 * 1e9);
            }
            println!("{n} {isa:?} weights {best:.3} ns/token = {:.1} cycles/8, nucleus {bestn:.3}", best * 8.0 * 3.5);
        }
    }
}
