//! AVX2 and FMA: two registers of four lanes.

use super::{Fused, Kernel, ONE_UPPER, Simd};
use crate::oracle::exp;
use std::arch::x86_64::*;

/// A proof that the machine has AVX2 and FMA: there is no value where it has not.
#[derive(Debug, Clone, Copy)]
pub(in crate::oracle) struct Avx2(());

impl Avx2 {
    /// The proof, where there is one.
    pub(in crate::oracle) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }

    /// Runs `kernel` where the compiler may use AVX2 for all that is inlined into it.
    pub(in crate::oracle) fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
        fn inner<K: Kernel>(proof: Avx2, kernel: K) -> K::Output {
            kernel.run(proof)
        }
        // SAFETY: `self` proves that the machine has the features.
        unsafe { inner(self, kernel) }
    }
}

type Pair = [__m256d; 2];

/// One bit a lane, from the lanes' sign bits.
#[inline(always)]
fn bits(_proof: Avx2, mask: Pair) -> u8 {
    // SAFETY: the proof.
    unsafe { (_mm256_movemask_pd(mask[0]) | _mm256_movemask_pd(mask[1]) << 4) as u8 }
}

// SAFETY, for every block below: the value of `Avx2` proves that the machine has the instructions; loads and stores go
// through references to arrays of the full width.
impl Simd for Avx2 {
    type F64 = Pair;

    #[inline(always)]
    fn splat(self, x: f64) -> Pair {
        // SAFETY: as above.
        unsafe { [_mm256_set1_pd(x); 2] }
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_loadu_pd(from.as_ptr().add(4 * half)) })
    }
    #[inline(always)]
    fn store(self, to: &mut [f64; 8], x: Pair) {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_pd(to.as_mut_ptr(), x[0]);
            _mm256_storeu_pd(to.as_mut_ptr().add(4), x[1]);
        }
    }
    #[inline(always)]
    fn widen(self, from: &[f32; 8]) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_cvtps_pd(_mm_loadu_ps(from.as_ptr().add(4 * half))) })
    }
    #[inline(always)]
    fn add(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_add_pd(a[half], b[half]) })
    }
    #[inline(always)]
    fn sub(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_sub_pd(a[half], b[half]) })
    }
    #[inline(always)]
    fn max(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_max_pd(a[half], b[half]) })
    }
    #[inline(always)]
    fn at_least(self, a: Pair, b: Pair) -> u8 {
        // SAFETY: as above.
        bits(self, both!(half => unsafe { _mm256_cmp_pd::<_CMP_GE_OQ>(a[half], b[half]) }))
    }
    #[inline(always)]
    fn keep_at_least(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_and_pd(a[half], _mm256_cmp_pd::<_CMP_GE_OQ>(a[half], b[half])) })
    }
    #[inline(always)]
    fn or(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_or_pd(a[half], b[half]) })
    }
    #[inline(always)]
    fn any(self, a: Pair) -> bool {
        self.differ(a, self.splat(0.0)) != 0
    }
    #[inline(always)]
    fn distances(self, x: Pair, shift: u32, caps: &[u32; 8], to: &mut [u32; 8]) {
        // SAFETY: as above.
        unsafe {
            // The upper halves of lanes 0, 1, 4, 5 and 2, 3, 6, 7; then in order.
            let mixed = _mm256_shuffle_ps::<0xdd>(_mm256_castpd_ps(x[0]), _mm256_castpd_ps(x[1]));
            let upper = _mm256_permute4x64_epi64::<0xd8>(_mm256_castps_si256(mixed));
            let distance = _mm256_sub_epi32(_mm256_set1_epi32(ONE_UPPER as i32), upper);
            let distance = _mm256_srl_epi32(distance, _mm_cvtsi32_si128(shift as i32));
            let caps = _mm256_loadu_si256(caps.as_ptr().cast());
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_min_epu32(distance, caps));
        }
    }
    #[inline(always)]
    fn exp(self, x: [Pair; 2]) -> ([Pair; 2], [u8; 2]) {
        exp::vector(self, x)
    }
    #[inline(always)]
    fn exp_rough(self, x: [Pair; 2]) -> [Pair; 2] {
        exp::rough(self, x)
    }
}

impl Fused for Avx2 {
    #[inline(always)]
    fn mul(self, a: Pair, b: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_mul_pd(a[half], b[half]) })
    }
    #[inline(always)]
    fn fma(self, a: Pair, b: Pair, c: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe { _mm256_fmadd_pd(a[half], b[half], c[half]) })
    }
    #[inline(always)]
    fn lookup(self, table: &'static [f64; 16], x: Pair) -> Pair {
        // SAFETY: as above; four bits cannot point past the table's 16 entries.
        both!(half => unsafe {
            let index = _mm256_and_si256(_mm256_castpd_si256(x[half]), _mm256_set1_epi64x(0xf));
            _mm256_i64gather_pd::<8>(table.as_ptr(), index)
        })
    }
    #[inline(always)]
    fn scale(self, a: Pair, k: Pair) -> Pair {
        // SAFETY: as above.
        both!(half => unsafe {
            let whole = _mm256_and_si256(_mm256_castpd_si256(k[half]), _mm256_set1_epi64x(0xfff0));
            let exponent = _mm256_slli_epi64::<48>(whole);
            _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a[half]), exponent))
        })
    }
    #[inline(always)]
    fn differ(self, a: Pair, b: Pair) -> u8 {
        // SAFETY: as above.
        bits(self, both!(half => unsafe { _mm256_cmp_pd::<_CMP_NEQ_UQ>(a[half], b[half]) }))
    }
}
