//! AVX-512: one register of eight lanes.

use super::{Fused, Kernel, ONE_UPPER, Simd};
use crate::oracle::exp;
use std::arch::x86_64::*;

/// A proof that the machine has AVX-512 F, DQ and VL: there is no value where it has not.
#[derive(Debug, Clone, Copy)]
pub(in crate::oracle) struct Avx512(());

impl Avx512 {
    /// The proof, where there is one.
    pub(in crate::oracle) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }

    /// Runs `kernel` where the compiler may use AVX-512 for all that is inlined into it.
    pub(in crate::oracle) fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
        fn inner<K: Kernel>(proof: Avx512, kernel: K) -> K::Output {
            kernel.run(proof)
        }
        // SAFETY: `self` proves that the machine has the features.
        unsafe { inner(self, kernel) }
    }
}

// SAFETY, for every block below: the value of `Avx512` proves that the machine has the instructions; loads and stores
// go through references to arrays of the full width.
impl Simd for Avx512 {
    type F64 = __m512d;

    #[inline(always)]
    fn splat(self, x: f64) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_set1_pd(x) }
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_loadu_pd(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, to: &mut [f64; 8], x: __m512d) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_pd(to.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn widen(self, from: &[f32; 8]) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from.as_ptr())) }
    }
    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_sub_pd(a, b) }
    }
    #[inline(always)]
    fn max(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_max_pd(a, b) }
    }
    #[inline(always)]
    fn at_least(self, a: __m512d, b: __m512d) -> u8 {
        // SAFETY: as above.
        unsafe { _mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b) }
    }
    #[inline(always)]
    fn keep_at_least(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b), a) }
    }
    #[inline(always)]
    fn or(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_or_pd(a, b) }
    }
    #[inline(always)]
    fn any(self, a: __m512d) -> bool {
        // SAFETY: as above.
        unsafe { _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(a, _mm512_setzero_pd()) != 0 }
    }
    #[inline(always)]
    fn distances(self, x: __m512d, shift: u32, caps: &[u32; 8], to: &mut [u32; 8]) {
        // SAFETY: as above.
        unsafe {
            let upper = _mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(_mm512_castpd_si512(x)));
            let distance = _mm256_sub_epi32(_mm256_set1_epi32(ONE_UPPER as i32), upper);
            let distance = _mm256_srl_epi32(distance, _mm_cvtsi32_si128(shift as i32));
            let caps = _mm256_loadu_si256(caps.as_ptr().cast());
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_min_epu32(distance, caps));
        }
    }
    #[inline(always)]
    fn exp(self, x: [__m512d; 2]) -> ([__m512d; 2], [u8; 2]) {
        exp::vector(self, x)
    }
    #[inline(always)]
    fn exp_rough(self, x: [__m512d; 2]) -> [__m512d; 2] {
        exp::rough(self, x)
    }
}

impl Fused for Avx512 {
    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn lookup(self, table: &'static [f64; 16], x: __m512d) -> __m512d {
        // SAFETY: as above; the table holds two registers.
        unsafe {
            let low = _mm512_loadu_pd(table.as_ptr());
            let high = _mm512_loadu_pd(table.as_ptr().add(8));
            // The permutation looks at no bits but the low four.
            _mm512_permutex2var_pd(low, _mm512_castpd_si512(x), high)
        }
    }
    #[inline(always)]
    fn scale(self, a: __m512d, k: __m512d) -> __m512d {
        // SAFETY: as above.
        unsafe {
            let whole = _mm512_and_si512(_mm512_castpd_si512(k), _mm512_set1_epi64(0xfff0));
            let exponent = _mm512_slli_epi64::<48>(whole);
            _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a), exponent))
        }
    }
    #[inline(always)]
    fn differ(self, a: __m512d, b: __m512d) -> u8 {
        // SAFETY: as above.
        unsafe { _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(a, b) }
    }
}
