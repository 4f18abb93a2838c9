//! The weights of a block: exp(logit - max), correctly rounded, eight at a time.
//!
//! A correctly rounded exponential has one possible result, so the weights are the same bits on every machine and equal
//! to `core_math::exp`, which decides the few arguments that the vector code leaves undecided.
//!
//! # Why the vector result is correctly rounded where it is not marked undecided
//!
//! Let h = ln(2)/16 and -708 <= x <= 0. All bounds below are absolute.
//!
//! - k is x/h rounded to an integer: x * RN(1/h) + 1.5 * 2^52 is rounded to a multiple of 1. RN(1/h) is off by 2^-53 of
//!   itself and |x/h| < 2^14, so |x - k*h| <= h * (1/2 + 2^-39) < 0.02167. Write k = 16*m + j with 0 <= j < 16.
//! - h = H + L with H a multiple of 2^-43, so that x - k*H is exact: it is x for k = 0; otherwise |x| > 2^-6, and the
//!   difference is a multiple of 2^-58 below 2^-5.
//! - T(j) is 2^(j/16) rounded, D(j) = j*h - ln T(j) rounded (below 2^-53). e^x = 2^m * T(j) * e^y with
//!   y = x - k*H - k*L + D(j): the table's error has moved into the argument, where it costs nothing.
//! - c = D(j) - k*L is off by less than 2^-84 (|k*L| < 2^-32). r = RN(x - k*H + c), and r_low is the rest: exact
//!   (Dekker's fast two-sum) when |x - k*H| >= |c|, else off by less than 2^-82. |r_low| <= 2^-59, |r| < 0.02167.
//! - e^y = 1 + r + r_low + r^2 * q(r) + r_low * (e^r - 1) + ...: the last term, which is left out, is below 2^-64.5. q
//!   is the Taylor polynomial 1/2 + r/6 + ... + r^6/8!; the rest of the series is below 2^-68.
//! - q is off by less than 2^-53.9 (its last step's half unit is 2^-54, the steps before are scaled by r), RN(r^2) by
//!   2^-65, and low = RN(RN(r^2) * q + r_low), below 2^-12, rounds by 2^-66: in sum 1.0 * 2^-64.
//! - high = RN(T*r + T); T - high is exact (Sterbenz), and the error of high, T*r + (T - high), is rounded by 2^-107.
//!   Then rest = RN(T * low + error), below 2^-11, rounds by 2^-65; so do the sums rest + D and rest - D below.
//! - With T < 1.92: |T*e^y - (high + rest)| < 1.92 * (1.0 + 0.71 + 0.06) * 2^-64 + 2 * 2^-65 < 4.5 * 2^-64. D = 5 *
//!   2^-64.
//! - So T*e^y lies between high + (rest - D) and high + (rest + D); where both round to one number, that is T*e^y
//!   rounded. About one in 400 arguments is left undecided. The result times 2^m is normal (x >= -708), hence exact.

use super::block::{TOKENS, VECTORS, Weights};
use super::simd::{Fused, Simd, both};

/// RN(1/h).
const INVERSE_STEP: f64 = f64::from_bits(0x4037_1547_652b_82fe);
/// H: h to 39 bits.
const STEP_HIGH: f64 = f64::from_bits(0x3fa6_2e42_fefa_4000);
/// L: RN(h - H).
const STEP_LOW: f64 = f64::from_bits(0xbd08_432a_1b0e_2634);
/// A number near it, below 2^53, is a multiple of 1; the low bits of its pattern are its integer part's.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;
/// The vector code's smallest argument.
const SMALLEST: f64 = -708.0;
/// D: 5 * 2^-64.
const DOUBT: f64 = 5.0 / (1u128 << 64) as f64;
/// T: 2^(j/16), rounded.
static POWERS: [f64; 16] = table([
    0x3ff0_0000_0000_0000,
    0x3ff0_b558_6cf9_890f,
    0x3ff1_72b8_3c7d_517b,
    0x3ff2_387a_6e75_6238,
    0x3ff3_06fe_0a31_b715,
    0x3ff3_dea6_4c12_3422,
    0x3ff4_bfda_d536_2a27,
    0x3ff5_ab07_dd48_5429,
    0x3ff6_a09e_667f_3bcd,
    0x3ff7_a114_73eb_0187,
    0x3ff8_ace5_422a_a0db,
    0x3ff9_c491_82a3_f090,
    0x3ffa_e89f_995a_d3ad,
    0x3ffc_199b_dd85_529c,
    0x3ffd_5818_dcfb_a487,
    0x3ffe_a4af_a2a4_90da,
]);
/// D: j * h - ln T(j), rounded.
static OFFSETS: [f64; 16] = table([
    0x0,
    0x3c97_9aa6_5d83_7b6c,
    0xbc80_1b15_eaa5_9348,
    0x3c96_8efd_e3a8_a894,
    0x3c83_4d75_4db0_abb6,
    0x3c85_9f48_a72a_4c6d,
    0x3c76_90ce_bb7a_afb0,
    0x3c90_63e1_e21c_5409,
    0xbc93_b3ef_bf5e_2229,
    0xbc7b_32dc_b94d_a51d,
    0x3c8d_b72f_c1f0_eab4,
    0x3c71_affc_2b91_ce27,
    0x3c8c_1a77_92cb_3387,
    0x3c73_6eae_30af_0cb3,
    0x3c74_a385_a63d_07a7,
    0xbc8f_f712_8fd3_91f1,
]);

const fn table(bits: [u64; 16]) -> [f64; 16] {
    let mut numbers = [0.0; 16];
    let mut index = 0;
    while index < 16 {
        numbers[index] = f64::from_bits(bits[index]);
        index += 1;
    }
    numbers
}

/// exp of each lane (from -708 to 0; where it is less, the result is of no use), and a bit for each lane that is
/// undecided. Two vectors at once, step by step, so that none waits for its own last step.
#[inline(always)]
pub(super) fn vector<S: Fused>(simd: S, x: [S::F64; 2]) -> ([S::F64; 2], [u8; 2]) {
    let shifted = both!(i => simd.fma(x[i], simd.splat(INVERSE_STEP), simd.splat(TO_INTEGER)));
    let k = both!(i => simd.sub(shifted[i], simd.splat(TO_INTEGER)));
    let reduced = both!(i => simd.fma(k[i], simd.splat(-STEP_HIGH), x[i]));
    let correction = both!(i => simd.fma(k[i], simd.splat(-STEP_LOW), simd.lookup(&OFFSETS, shifted[i])));
    let r = both!(i => simd.add(reduced[i], correction[i]));
    let r_low = both!(i => simd.add(simd.sub(reduced[i], r[i]), correction[i]));

    let square = both!(i => simd.mul(r[i], r[i]));
    let q = series(simd, r, square);
    let low = both!(i => simd.fma(square[i], q[i], r_low[i]));

    let power = both!(i => simd.lookup(&POWERS, shifted[i]));
    let high = both!(i => simd.fma(power[i], r[i], power[i]));
    let error = both!(i => simd.fma(power[i], r[i], simd.sub(power[i], high[i])));
    let rest = both!(i => simd.fma(power[i], low[i], error[i]));
    let above = both!(i => simd.add(high[i], simd.add(rest[i], simd.splat(DOUBT))));
    let below = both!(i => simd.add(high[i], simd.sub(rest[i], simd.splat(DOUBT))));

    (both!(i => simd.scale(above[i], shifted[i])), both!(i => simd.differ(above[i], below[i])))
}

/// q = 1/2 + r * ((1/6 + r/24) + r^2 * ((1/120 + r/720) + r^2 * (1/5040 + r/40320)))
#[inline(always)]
fn series<S: Fused>(simd: S, r: [S::F64; 2], square: [S::F64; 2]) -> [S::F64; 2] {
    let third = both!(i => simd.fma(r[i], simd.splat(1.0 / 24.0), simd.splat(1.0 / 6.0)));
    let fifth = both!(i => simd.fma(r[i], simd.splat(1.0 / 720.0), simd.splat(1.0 / 120.0)));
    let seventh = both!(i => simd.fma(r[i], simd.splat(1.0 / 40320.0), simd.splat(1.0 / 5040.0)));
    let q = both!(i => simd.fma(square[i], seventh[i], fifth[i]));
    let q = both!(i => simd.fma(square[i], q[i], third[i]));
    both!(i => simd.fma(q[i], r[i], simd.splat(0.5)))
}

/// exp of each lane (from -708 to 0), within 2^-51 of itself: T is rounded by 2^-53, its product with e^r - 1 (below
/// 0.022, where the roundings of r, r^2 and q count for less than 2^-57) and the sum by 2^-53 at most; e^r - 1 - r -
/// r^2 * q is below 2^-68.
#[inline(always)]
pub(super) fn rough<S: Fused>(simd: S, x: [S::F64; 2]) -> [S::F64; 2] {
    let shifted = both!(i => simd.fma(x[i], simd.splat(INVERSE_STEP), simd.splat(TO_INTEGER)));
    let k = both!(i => simd.sub(shifted[i], simd.splat(TO_INTEGER)));
    let reduced = both!(i => simd.fma(k[i], simd.splat(-STEP_HIGH), x[i]));
    let r = both!(i => simd.fma(k[i], simd.splat(-STEP_LOW), reduced[i]));
    let square = both!(i => simd.mul(r[i], r[i]));
    let q = series(simd, r, square);
    let power = both!(i => simd.lookup(&POWERS, shifted[i]));
    let less_one = both!(i => simd.fma(square[i], q[i], r[i]));
    both!(i => simd.scale(simd.fma(power[i], less_one[i], power[i]), shifted[i]))
}

/// exp of one number, correctly rounded. exp(-746) is below half the smallest subnormal number.
pub(super) fn scalar(x: f64) -> f64 {
    if x < -746.0 { 0.0 } else { core_math::exp(x) }
}

/// The weights of `logits` (fp32, at most a block of them, from `low` to `max`).
#[inline(always)]
pub(super) fn weigh<S: Simd>(simd: S, logits: &[f32], low: f64, max: f64, weights: &mut Weights) {
    let Some(logits) = logits.as_array::<TOKENS>() else {
        let mut padded = [max as f32; TOKENS];
        if let Some(row) = padded.get_mut(..logits.len()) {
            row.copy_from_slice(logits);
        }
        weigh_full::<S, true>(simd, &padded, max, weights);
        if let Some(padding) = weights.as_flattened_mut().get_mut(logits.len()..) {
            padding.fill(0.0);
        }
        return;
    };
    if low - max < SMALLEST {
        weigh_full::<S, true>(simd, logits, max, weights);
    } else {
        weigh_full::<S, false>(simd, logits, max, weights);
    }
}

/// The weights of two vectors.
#[inline(always)]
pub(super) fn weigh_pair<S: Simd>(simd: S, logits: &[[f32; 8]; 2], max: f64, weights: &mut [[f64; 8]; 2]) {
    let differences = both!(i => simd.sub(simd.widen(&logits[i]), simd.splat(max)));
    let (exponentials, undecided) = simd.exp(differences);
    for half in 0..2 {
        simd.store(&mut weights[half], exponentials[half]);
        let mut bits = undecided[half] | simd.at_least(simd.splat(SMALLEST), differences[half]);
        while bits != 0 {
            let lane = bits.trailing_zeros() as usize;
            weights[half][lane] = scalar(f64::from(logits[half][lane]) - max);
            bits &= bits - 1;
        }
    }
}

/// `DEEP` says that some differences may be below the vector code's smallest argument.
#[inline(always)]
fn weigh_full<S: Simd, const DEEP: bool>(simd: S, logits: &[f32; TOKENS], max: f64, weights: &mut Weights) {
    let mut undecided = [0u8; VECTORS];
    let (vectors, _) = logits.as_chunks::<8>();
    let maximum = simd.splat(max);
    let groups = vectors.as_chunks::<2>().0.iter().zip(weights.as_chunks_mut::<2>().0);
    for ((logits, weights), undecided) in groups.zip(undecided.as_chunks_mut::<2>().0) {
        let differences = both!(i => simd.sub(simd.widen(&logits[i]), maximum));
        let (exponentials, masks) = simd.exp(differences);
        for (weights, exponential) in weights.iter_mut().zip(exponentials) {
            simd.store(weights, exponential);
        }
        *undecided = masks;
        if DEEP {
            for (undecided, difference) in undecided.iter_mut().zip(differences) {
                *undecided |= simd.at_least(simd.splat(SMALLEST), difference);
            }
        }
    }
    let all = vectors.as_flattened();
    let (words, _) = undecided.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        // Bit b of word w belongs to token 64 * w + b of the block.
        let mut bits = u64::from_le_bytes(*word);
        while bits != 0 {
            let token = 64 * index + bits.trailing_zeros() as usize;
            if let (Some(weight), Some(&logit)) = (weights.as_flattened_mut().get_mut(token), all.get(token)) {
                *weight = scalar(f64::from(logit) - max);
            }
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Isa, Kernel, dispatch};
    use super::*;
    use dashu_float::FBig;
    use dashu_float::round::mode::HalfEven;
    use rand_core::RngCore;
    use rand_pcg::Pcg64;

    /// exp of arguments, and how many were undecided.
    struct ExpOf<'a>(&'a [[f64; 8]; 2]);

    impl Kernel for ExpOf<'_> {
        type Output = ([[f64; 8]; 2], [u8; 2]);

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let (x, undecided) = simd.exp([simd.load(&self.0[0]), simd.load(&self.0[1])]);
            let mut out = [[0.0; 8]; 2];
            simd.store(&mut out[0], x[0]);
            simd.store(&mut out[1], x[1]);
            (out, undecided)
        }
    }

    fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// What is decided equals core-math's result; returns how many of the 16 were not.
    fn check(isa: Isa, arguments: &[[f64; 8]; 2]) -> u32 {
        let (ours, undecided) = dispatch(isa, ExpOf(arguments));
        for (lane, (&x, ours)) in arguments.as_flattened().iter().zip(ours.as_flattened()).enumerate() {
            if undecided[lane / 8] >> (lane % 8) & 1 == 0 {
                assert_eq!(ours.to_bits(), core_math::exp(x).to_bits(), "{isa:?}: exp({x:e})");
            }
        }
        undecided.iter().map(|mask| mask.count_ones()).sum()
    }

    #[test]
    fn what_is_decided_is_correctly_rounded_and_little_is_not() {
        let mut random = Pcg64::new(1, 2);
        let mut uniform = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        // From near 0 to near -708, and magnitudes down to 2^-60.
        type Draw = fn(f64, f64) -> f64;
        let draws: [(Draw, f64); 4] = [
            (|a, _| -a, 1.0 / 200.0),
            (|a, _| -30.0 * a, 1.0 / 200.0),
            (|a, _| -707.9 * a, 1.0 / 200.0),
            (|a, b| -a * (-60.0 * b).exp2(), 1.0 / 200.0),
        ];
        for isa in available() {
            for (draw, most) in draws {
                let (mut undecided, rounds) = (0, 8000);
                for _ in 0..rounds {
                    undecided += check(isa, &[[0; 8]; 2].map(|lanes| lanes.map(|_| draw(uniform(), uniform()))));
                }
                assert!(f64::from(undecided) <= most * 16.0 * f64::from(rounds), "{isa:?}: {undecided}");
            }
        }
    }

    #[test]
    fn the_rough_exponential_is_within_its_bound() {
        struct RoughOf<'a>(&'a [[f64; 8]; 2]);
        impl Kernel for RoughOf<'_> {
            type Output = [[f64; 8]; 2];
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) -> Self::Output {
                let x = simd.exp_rough([simd.load(&self.0[0]), simd.load(&self.0[1])]);
                let mut out = [[0.0; 8]; 2];
                simd.store(&mut out[0], x[0]);
                simd.store(&mut out[1], x[1]);
                out
            }
        }
        let mut random = Pcg64::new(7, 8);
        for isa in available() {
            for _ in 0..20_000 {
                let x = [[0; 8]; 2].map(|lanes| lanes.map(|_| -700.0 * (random.next_u64() as f64 * 2f64.powi(-64))));
                for (x, ours) in x.as_flattened().iter().zip(dispatch(isa, RoughOf(&x)).as_flattened()) {
                    let exact = core_math::exp(*x);
                    // Theirs is off by 2^-53 itself.
                    assert!((ours - exact).abs() <= exact * (2f64.powi(-51) - 2f64.powi(-53)), "{isa:?}: exp({x:e})");
                }
            }
        }
    }

    #[test]
    fn arguments_at_the_edges() {
        let step = std::f64::consts::LN_2 / 32.0;
        let mut edges = vec![-0.0, 0.0, -5e-324, -f64::MIN_POSITIVE, -1e-17, -708.0, -707.999_999_9];
        // Where k changes, and whole multiples of the step.
        edges.extend((0..32_680).step_by(37).flat_map(|n| {
            let x = -f64::from(n) * step;
            [x.next_up().min(0.0), x, x.next_down()]
        }));
        for isa in available() {
            for chunk in edges.chunks_exact(16) {
                let lanes: [f64; 16] = chunk.try_into().unwrap();
                check(isa, lanes.as_chunks::<8>().0.try_into().unwrap());
            }
        }
    }

    #[test]
    fn weights_of_a_block_are_core_maths() {
        struct WeighOf<'a>(&'a [f32], f64, &'a mut Weights);
        impl Kernel for WeighOf<'_> {
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                let low = self.0.iter().copied().fold(f32::MAX, f32::min);
                weigh(simd, self.0, f64::from(low), self.1, self.2);
            }
        }
        let mut random = Pcg64::new(3, 4);
        // Full and partial blocks; differences of many bits, subnormal results, underflow.
        for (len, spread) in
            [(TOKENS, 30.0), (TOKENS, 707.9), (TOKENS, 760.0), (TOKENS, 1e30), (1, 1.0), (7, 40.0), (1000, 800.0)]
        {
            let max = 1.0 + 1e-6f32;
            let logits: Vec<f32> =
                (0..len).map(|_| max - spread * (random.next_u32() >> 8) as f32 / (1 << 24) as f32).collect();
            for isa in available() {
                let mut weights = [[1.0; 8]; VECTORS];
                dispatch(isa, WeighOf(&logits, f64::from(max), &mut weights));
                let weights = weights.as_flattened();
                for (logit, weight) in logits.iter().zip(weights) {
                    let x = f64::from(*logit) - f64::from(max);
                    assert_eq!(weight.to_bits(), core_math::exp(x).to_bits(), "{isa:?}: exp({x:e})");
                }
                assert!(weights[len..].iter().all(|weight| weight.to_bits() == 0), "{isa:?}: the padding");
            }
        }
    }

    #[test]
    fn two_correctly_rounded_exponentials_agree() {
        let mut random = Pcg64::new(5, 6);
        for _ in 0..200_000 {
            let x = -750.0 * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            assert_eq!(scalar(x).to_bits(), metallic::exp(x).to_bits(), "exp({x:e})");
        }
        assert_eq!((scalar(-746.0), scalar(-746.1), core_math::exp(-746.0)), (0.0, 0.0, 0.0));
    }

    /// The constants are what the proof says: computed again with 300 bits.
    #[test]
    fn constants_are_rounded_as_the_proof_says() {
        type Wide = FBig<HalfEven, 2>;
        let wide = |x: f64| Wide::try_from(x).unwrap().with_precision(300).value();
        let step = wide(2.0).ln() / wide(16.0);
        let nearest = |x: &Wide| x.to_f64().value();
        assert_eq!(nearest(&(wide(1.0) / &step)), INVERSE_STEP);
        assert_eq!(STEP_HIGH * (1u64 << 43) as f64 % 1.0, 0.0);
        assert_eq!(nearest(&(&step - wide(STEP_HIGH))), STEP_LOW);
        assert_eq!(DOUBT, 5.0 * 2f64.powi(-64));
        for (j, (power, offset)) in POWERS.into_iter().zip(OFFSETS).enumerate() {
            let exact = wide(j as f64) * &step;
            assert_eq!(nearest(&exact.exp()), power, "T({j})");
            assert_eq!(nearest(&(exact - wide(power).ln())), offset, "D({j})");
        }
    }
}
