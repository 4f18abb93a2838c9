//! The few vector operations that the oracle's kernels need, eight binary64 lanes at a time, in three instruction sets.
//!
//! The kernels are written once, over [`Simd`]. Every operation here is a single IEEE-754 operation a lane (or moves
//! bits), so a kernel gives the same bits on each instruction set by construction; the exponential, where the
//! instruction sets differ, is correctly rounded on each.

/// The expression for index 0 and for index 1. A closure would not do: the compiler need not inline one, and outside of
/// the kernel it may not use the kernel's instructions.
macro_rules! both {
    ($index:ident => $expression:expr) => {
        [
            {
                let $index = 0;
                $expression
            },
            {
                let $index = 1;
                $expression
            },
        ]
    };
}
pub(super) use both;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod isa;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub use isa::{Isa, UnsupportedIsa};
pub(super) use portable::Portable;

/// The upper half of the bit pattern of 1.0.
pub(super) const ONE_UPPER: u32 = 0x3ff0_0000;

/// Eight binary64 lanes. A value of an implementing type is a proof that the machine has the instructions.
pub(super) trait Simd: Copy {
    /// Eight binary64 numbers.
    type F64: Copy;

    /// `x` in every lane.
    fn splat(self, x: f64) -> Self::F64;
    /// The numbers of `from`, in order.
    fn load(self, from: &[f64; 8]) -> Self::F64;
    /// Writes the lanes to `to`, in order.
    fn store(self, to: &mut [f64; 8], x: Self::F64);
    /// The numbers of `from`, widened exactly.
    fn widen(self, from: &[f32; 8]) -> Self::F64;
    /// a + b, rounded once.
    fn add(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// a - b, rounded once.
    fn sub(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// The larger of a and b; neither is NaN.
    fn max(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// One bit a lane (lane 0 lowest): a >= b.
    fn at_least(self, a: Self::F64, b: Self::F64) -> u8;
    /// `a` where a >= b, and 0 elsewhere.
    fn keep_at_least(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// The bit patterns, or-ed.
    fn or(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// Whether any lane is other than zero.
    fn any(self, a: Self::F64) -> bool;
    /// For each lane (0 <= x <= 1) the smaller of `caps` and the distance of the upper half of x's bit pattern from
    /// that of 1.0, shifted right by `shift` (below 32).
    fn distances(self, x: Self::F64, shift: u32, caps: &[u32; 8], to: &mut [u32; 8]);
    /// exp of each lane, and one bit a lane that is set where the result is not known to be correctly rounded.
    fn exp(self, x: [Self::F64; 2]) -> ([Self::F64; 2], [u8; 2]);
    /// exp of each lane (from -708 to 0), within 2^-51 of itself.
    fn exp_rough(self, x: [Self::F64; 2]) -> [Self::F64; 2];
}

/// What the vector exponentials need on top: see `exp.rs`.
pub(super) trait Fused: Simd {
    /// a * b, rounded once.
    fn mul(self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// a * b + c, rounded once.
    fn fma(self, a: Self::F64, b: Self::F64, c: Self::F64) -> Self::F64;
    /// For each lane the entry of `table` that the low four bits of the lane's bit pattern name.
    fn lookup(self, table: &'static [f64; 16], x: Self::F64) -> Self::F64;
    /// a * 2^m for the integer m in bits 4 to 15 (two's complement) of the bit pattern of `k`. The result must be
    /// normal.
    fn scale(self, a: Self::F64, k: Self::F64) -> Self::F64;
    /// One bit a lane: a and b differ, or either is NaN.
    fn differ(self, a: Self::F64, b: Self::F64) -> u8;
}

/// Work that is written once and compiled for each instruction set.
pub(super) trait Kernel {
    /// What it returns.
    type Output;
    /// Does it. To be `#[inline(always)]`, and so all that it calls a lot: only then may the compiler use the
    /// instruction set.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` on `isa`, or on the portable path where this machine lacks it.
pub(super) fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Portable => {}
        Isa::Avx2 => {
            if let Some(proof) = Avx2::new() {
                return proof.call(kernel);
            }
        }
        Isa::Avx512 => {
            if let Some(proof) = Avx512::new() {
                return proof.call(kernel);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
    kernel.run(Portable)
}
