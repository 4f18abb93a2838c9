//! x
use dashu_float::{
    FBig,
    round::mode::{Down, HalfEven, Up},
};
use std::time::Instant;
fn main() {
    for prec in [128usize, 192, 256, 512] {
        let n = 2000;
        let t = Instant::now();
        let mut acc = FBig::<Down, 2>::ZERO.with_precision(prec).value();
        for i in 0..n {
            let x = -(i as f64) * 0.0123 - 0.001;
            let f = FBig::<Down, 2>::try_from(x).unwrap().with_precision(prec).value();
            acc += f.exp();
        }
        println!("{prec} {:.3} us/exp {}", t.elapsed().as_secs_f64() * 1e6 / n as f64, acc.to_f64().value());
    }
    let _ = (FBig::<Up, 2>::ONE, FBig::<HalfEven, 2>::ONE);
}
