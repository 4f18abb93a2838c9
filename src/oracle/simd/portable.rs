//! Plain arrays, for every machine. The compiler uses what the target's baseline offers.

use super::{ONE_UPPER, Simd};
use crate::oracle::exp;
use std::array::from_fn;

/// Plain arrays.
#[derive(Debug, Clone, Copy)]
pub(in crate::oracle) struct Portable;

impl Simd for Portable {
    type F64 = [f64; 8];

    #[inline(always)]
    fn splat(self, x: f64) -> [f64; 8] {
        [x; 8]
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> [f64; 8] {
        *from
    }
    #[inline(always)]
    fn store(self, to: &mut [f64; 8], x: [f64; 8]) {
        *to = x;
    }
    #[inline(always)]
    fn widen(self, from: &[f32; 8]) -> [f64; 8] {
        from_fn(|lane| f64::from(from[lane]))
    }
    #[inline(always)]
    fn add(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        from_fn(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    fn sub(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        from_fn(|lane| a[lane] - b[lane])
    }
    #[inline(always)]
    fn max(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    fn at_least(self, a: [f64; 8], b: [f64; 8]) -> u8 {
        (0..8).fold(0, |bits, lane| bits | u8::from(a[lane] >= b[lane]) << lane)
    }
    #[inline(always)]
    fn keep_at_least(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        from_fn(|lane| if a[lane] >= b[lane] { a[lane] } else { 0.0 })
    }
    #[inline(always)]
    fn or(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        from_fn(|lane| f64::from_bits(a[lane].to_bits() | b[lane].to_bits()))
    }
    #[inline(always)]
    fn any(self, a: [f64; 8]) -> bool {
        a != [0.0; 8]
    }
    #[inline(always)]
    fn distances(self, x: [f64; 8], shift: u32, caps: &[u32; 8], to: &mut [u32; 8]) {
        *to = from_fn(|lane| {
            let distance = ONE_UPPER.wrapping_sub((x[lane].to_bits() >> 32) as u32);
            (distance >> (shift & 31)).min(caps[lane])
        });
    }
    #[inline(always)]
    fn exp(self, x: [[f64; 8]; 2]) -> ([[f64; 8]; 2], [u8; 2]) {
        (x.map(|x| x.map(exp::scalar)), [0; 2])
    }
    #[inline(always)]
    fn exp_rough(self, x: [[f64; 8]; 2]) -> [[f64; 8]; 2] {
        x.map(|x| x.map(exp::scalar))
    }
}
