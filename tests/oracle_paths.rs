//! The fast oracle gives the plain definition's result, to the bit, on each instruction set: the order, the count, the
//! boundary, every sum, every rejection.
#![expect(clippy::unwrap_used, reason = "the helper functions of tests, too, may fail by panic")]

use nucleus_gate::oracle::{Isa, OracleError, RankKey, Workspace, define, nuclei, nucleus};
use proptest::prelude::*;

/// One workspace for each instruction set of this machine.
fn workspaces() -> Vec<(Isa, Workspace)> {
    Isa::ALL.into_iter().filter_map(|isa| Some((isa, Workspace::with_isa(isa).ok()?))).collect()
}

/// Whether all paths give what the definition gives. The sums' bits count: f64's Debug text names them all.
fn check(workspaces: &mut [(Isa, Workspace)], logits: &[f32], p: f32) -> Result<u32, OracleError> {
    let expected = define(logits, p);
    for (isa, workspace) in workspaces {
        let ours = workspace.nucleus(logits, p);
        assert_eq!(
            format!("{ours:?}"),
            format!("{:?}", expected.as_ref().map(|(_, nucleus)| nucleus)),
            "{isa:?}, {} tokens, p = {p}",
            logits.len()
        );
        if let Ok((order, nucleus)) = &expected {
            // Up to the boundary and one more; now and then all.
            let count = if logits.len().is_multiple_of(8) { logits.len() } else { nucleus.count as usize + 1 };
            let ranked: Vec<u32> = workspace.order(logits, count).unwrap().iter().map(|key| key.token()).collect();
            assert_eq!(ranked, order[..count.min(logits.len())], "{isa:?}");
        }
    }
    expected.map(|(_, nucleus)| nucleus.count)
}

/// Finite fp32 numbers that are neighbours, or equal, or far apart.
fn row() -> impl Strategy<Value = Vec<f32>> {
    let finite = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite());
    let length = prop_oneof![3 => 1..40usize, 3 => 40..1500usize, 1 => 1500..6000usize];
    (0..13u8, length, finite, any::<u64>(), 0.01f32..200.0).prop_map(|(shape, length, base, seed, spread)| {
        let mut state = seed | 1;
        let mut draw = move || {
            // Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut unit = move || (draw() >> 40) as f32 / (1u64 << 24) as f32;
        let values = (0..length).map(|_| {
            let (u, v) = (unit(), unit());
            match shape {
                0 => spread * (u + v - 1.0),
                1 => f32::from_bits((spread * (u - v)).to_bits() & 0xffff_0000), // bfloat16: ties
                2 => (8.0 * u).floor() * spread / 8.0,                           // few levels
                3 => f32::from_bits(spread.to_bits() + (4.0 * u) as u32),        // neighbours
                4 => base,
                5 => f32::from_bits((u * 8_000_000.0) as u32) * if v < 0.5 { -1.0 } else { 1.0 }, // subnormal
                6 => (u - 0.5) * 2.0 * f32::MAX,
                7 => {
                    if v < 0.7 {
                        -3.0e38
                    } else {
                        spread * u
                    }
                } // masked tokens
                8 => {
                    if v < 0.5 {
                        -0.0
                    } else {
                        (2.0 * u).floor() * 0.0 - if u < 0.1 { 100.0 } else { 0.0 }
                    }
                }
                // Far tails: light, at the limit of what is far (where the normalizer stays open), and a masked row.
                9 => {
                    if u < 0.01 {
                        2.0 * v
                    } else {
                        -17.0 - spread * v
                    }
                }
                10 => {
                    if u < 0.002 {
                        0.0
                    } else {
                        -(length as f32).ln() - 5.0 - 0.2 * v
                    }
                }
                11 => {
                    if u < 0.03 {
                        -40.0 * v
                    } else {
                        -1e9
                    }
                }
                _ => base * (1.0 - u * v * f32::EPSILON * 8.0),
            }
        });
        values.map(|x| if x.is_finite() { x } else { base }).collect()
    })
}

/// p of (0, 1): anything, ratios, and the extremes.
fn probability() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => 0.0001f32..0.9999,
        2 => (1..64u32, 64..65u32).prop_map(|(k, n)| k as f32 / n as f32),
        2 => (1..1000u32, 1000..1001u32).prop_map(|(k, n)| k as f32 / n as f32),
        1 => (1..0x3f80_0000u32).prop_map(f32::from_bits),
        1 => (1..1000u32).prop_map(|ulps| f32::from_bits(0x3f80_0000 - ulps)),
        1 => (1..100u32).prop_map(f32::from_bits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn every_path_equals_the_definition(logits in row(), p in probability()) {
        let _ = check(&mut workspaces(), &logits, p);
    }

    #[test]
    fn rejections_are_the_same(mut logits in row(), bad in 0..3usize, at in any::<prop::sample::Index>(), p in any::<f32>()) {
        let _ = check(&mut workspaces(), &logits, p);
        let at = at.index(logits.len());
        logits[at] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][bad];
        let error = check(&mut workspaces(), &logits, 0.5).unwrap_err();
        prop_assert_eq!(error.code(), "non-finite-logit");
    }
}

/// Splitmix64.
fn random(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Large rows: sums of many terms, full buckets, and a workspace that is reused from large to small.
#[test]
fn large_rows_equal_the_definition() {
    let mut workspaces = workspaces();
    let mut unit = random(7);
    for tokens in [262_144, 151_936, 65_537, 65_536, 1025, 1024, 1023, 1] {
        let bell: Vec<f32> = (0..tokens).map(|_| (0..12).map(|_| unit()).sum::<f32>() - 6.0).collect();
        let rows: [Vec<f32>; 6] = [
            bell.clone(),
            bell.iter().map(|x| 4.0 * x).collect(),
            bell.iter().map(|x| 2.0 * (x + x * x * x / 8.0)).collect(),
            bell.iter().map(|x| f32::from_bits((2.0 * x).to_bits() & 0xffff_0000)).collect(),
            vec![-1.5; tokens],
            (0..tokens).map(|token| if token % 3 == 0 { f32::MIN } else { bell[token] }).collect(),
        ];
        for (row, logits) in rows.iter().enumerate() {
            for p in [[0.5f32, 0.95], [0.1, 1.0f32.next_down()], [0.75, 1e-30]][row % 3] {
                check(&mut workspaces, logits, p).unwrap();
            }
        }
    }
}

/// Prefix sums that hit the target, or miss it by the least: what only the literal scan decides.
#[test]
fn exact_hits_equal_the_definition() {
    let mut workspaces = workspaces();
    for tokens in 1..70u32 {
        for kept in 1..tokens {
            let p = kept as f32 / tokens as f32;
            for p in [p.next_down(), p, p.next_up()] {
                check(&mut workspaces, &vec![3.25; tokens as usize], p).unwrap();
                // One more token, of a weight that rounding may or may not see.
                for least in [-30.0, -36.0, -37.0, -100.0] {
                    let mut logits = vec![0.0; tokens as usize];
                    logits.push(least);
                    let _ = check(&mut workspaces, &logits, p);
                }
            }
        }
    }
}

/// Few tokens and a mask: their sum is often half-way between two numbers, and what is masked weighs exactly nothing.
#[test]
fn masked_rows_equal_the_definition() {
    let mut workspaces = workspaces();
    for step in 1..120 {
        for masked in [-710.0, -744.0, -746.0, -1e9, f32::MIN] {
            let mut logits = vec![masked; 1024 + step];
            logits[step] = 0.0;
            logits[2 * step] = -0.005 * step as f32;
            check(&mut workspaces, &logits, 0.4).unwrap();
        }
    }
}

/// The token after the nucleus is far, and the last block, which is not full, holds lighter ones with their exact weights.
#[test]
fn a_far_token_is_the_next_one_before_lighter_tokens_that_are_not_masked_as_far() {
    let mut logits = vec![-20.0; 2724];
    for token in [3, 572, 1030, 2040] {
        logits[token] = 0.0;
    }
    logits[607] = -13.0;
    logits[2048..].fill(-14.0);
    assert_eq!(check(&mut workspaces(), &logits, 0.951), Ok(4));
    assert_eq!(nucleus(&logits, 0.951).unwrap().next_dropped, Some(607));
}

#[test]
fn a_workspace_holds_at_most_six_megabytes_at_262144_tokens() {
    let mut unit = random(11);
    let bell: Vec<f32> = (0..262_144).map(|_| (0..12).map(|_| unit()).sum::<f32>()).collect();
    for (_, mut workspace) in workspaces() {
        // All equal and p = 1/2: every key is needed, twice over.
        for logits in [&bell, &vec![0.0; 262_144]] {
            workspace.nucleus(logits, 0.5).unwrap();
            workspace.order(logits, logits.len()).unwrap();
        }
        assert!(workspace.bytes() > 262_144 * 8, "the weights alone");
        assert!(workspace.bytes() <= 6_000_000, "{}", workspace.bytes());
    }
}

#[test]
fn rows_in_parallel_are_the_rows_one_by_one_and_stop_when_told() {
    let mut unit = random(13);
    let (vocab, p) = (500, vec![0.1, 0.5, 0.9, 1.0, 0.99]);
    let logits: Vec<f32> = (0..vocab * p.len()).map(|_| 10.0 * unit()).collect();
    let expected: Vec<_> = logits.chunks(vocab).zip(&p).map(|(logits, &p)| Some(nucleus(logits, p))).collect();
    assert_eq!(nuclei(&logits, vocab, &p, &|| false), expected);
    assert_eq!(nuclei(&logits, vocab, &p, &|| true), vec![None; p.len()]);
}

#[test]
fn weights_come_by_token_and_the_boundary_is_the_last_kept() {
    let logits = [0.5f32, 3.0, -1.0, 3.0];
    for (_, mut workspace) in workspaces() {
        let weights = workspace.weights(&logits).unwrap();
        assert_eq!(weights, [core_math::exp(-2.5), 1.0, core_math::exp(-4.0), 1.0]);
        let nucleus = workspace.nucleus(&logits, 0.9).unwrap();
        assert_eq!((nucleus.count, nucleus.first, nucleus.last_kept, nucleus.next_dropped), (2, 1, 3, Some(0)));
        assert_eq!(nucleus.boundary, RankKey::new(3.0, 3));
        assert_eq!(workspace.weights(&[f32::NAN]).unwrap_err().code(), "non-finite-logit");
        assert_eq!(workspace.order(&[], 1).unwrap_err().code(), "empty-row");
    }
}
