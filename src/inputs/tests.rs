//! Generator v1 and the recorded files against the digests pinned when the evidence was recorded.

use std::fs;
use std::path::Path;

use super::*;
use rand_core::RngCore as _;

const EIGHT: [f32; 8] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999];
const HEAVY_32000: [f32; 8] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97];

/// Case, digest of its logits, digest of its p.
const PINNED: [(&str, &str, &str); 27] = [
    (
        "normal-1024",
        "e309364455218b2d34701310e6ac57480f4044fb3fc2a1cac7e3738dfb8842e5",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "normal-32000",
        "5299d022ad21b294a48960cc443e1052daeaa1f7c4fbb16a72ba8ddb058598c0",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "normal-128256",
        "c385ee6cfdc57efcbc548f5690e57d1a17710ef7e6095a0fd14a3698cfd131f1",
        "588d70d6477abc9fb842e338943d4767500a18b779ac874a46f7b315e394ea07",
    ),
    (
        "normal-128256-high",
        "d46a1ce144994a5eaccf59244d45dde867e841cdd9e496a20e693ecdf41ba2bc",
        "bbdf56633f73fa2096771553dc87097d2128ce6b61a83fbcb7013aa5971aed18",
    ),
    (
        "heavy-50257",
        "1be1155e3ab915f9692aa538a79276e44424735ce2c87a8cf95d19c547fb83c7",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "heavy-151936",
        "0d217f2d22d07bd5846e6a56759d61ecca4e2ba8a4e4715470400d1df866eaa9",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "sharp-151936",
        "0c047e699a7d6b772f5759ddb6651203b8af8618cb174c78777e6fffd86c5cd3",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "uniform-32000",
        "7208b27ed2142d151ffc0b1b7b4b074672bb97bfa8743cd0b9fb37669b3255c4",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "bf16-normal-151936",
        "30ae460f9164bf844bcb08de17eb559a09323ff89d832627cfbc4fb7336b80a1",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "bf16-heavy-151936",
        "86d550f2a3d5476a9664766e58f8cae70e3746735dbf9c8d6a16432a562661fe",
        "ea095945f5350e21ad490d64fe809eafd0deec086dfcc9d354591786e3360895",
    ),
    (
        "bf16-heavy-32000",
        "8d6852cc6aea6b4869ac4ceced9db0902125946837eb725893571cfe56024a43",
        "71b8538d1986f7f5fb68184d57ed19cc8f9b5106675fad98340fb3068c401679",
    ),
    (
        "forced-32000",
        "d0d222aa98c5c62cf9d94f8f96927dac5704cefb094bb1aeae1bbe34dae5cd9d",
        "6c147f27b813285cf98f50489faddb4f79a228b2cfa5b5fb709f230bce27e222",
    ),
    (
        "forced-151936",
        "e3f7d53b0d0b33b700ad6a674d1ee98ccb094663daa5d3751b126ed54dc809ad",
        "b12359618e9ee55a2acfbfa0a8d89ae85eb45c38204d263dd9c4f39a4916894c",
    ),
    (
        "ties-16-levels",
        "42f6f26af701ff5d65e4c661e2fd9dd4e07514b8a7ae095fb82dfb46e3c0d690",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "ties-64-levels-wide",
        "92737ae6029788299377a6a81e294d34a9c3573f9af2fa3f30b7df9687421af1",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "adjacent-fp32",
        "55fce11d885f3105ae65dc4a95e3ad4005161fdfcc9effd90ecc2fd099dfa3d9",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "huge-two-level",
        "5b9ce9b0200b7c0e47a333df36a56834254349dab9bc80aebd0ea93ed19205c7",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "all-equal",
        "398ea13efc50d181f0a0e451cefec310805d801e2e1e8301162b41e9cc0e1b2b",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "signed-zeros",
        "d1390795cc0fe3be718f8bfac3b8ab2430657be59993d78808f775c8311afe44",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "subnormal",
        "0105da811448ba1b672a63cea12397c59a49141aeb6dd1f947be9475e10e1492",
        "a02830a3a0676d1d9ca5ceba4f6dded7ec445477a77cb8b052dec7b2c945cc88",
    ),
    (
        "dyadic-exact",
        "64c5d17c1183c0d573d8a877182bb7d8b18fadbf1c97891cb03d035598bda246",
        "11ab1d432a7940d1df1a43dddfbe1ed6c70d132a70b28f8cc2ccd5a63e8a672e",
    ),
    (
        "upstream-seed42-8x1024",
        "0336573f7ff0459cbffce53c048b38bc7689e582c5e52b3663364696cf7c9868",
        "1af61814bc6135f6a75ad3f72edaf209dbce0da1aca8dbe8e1580b41936b2fce",
    ),
    (
        "upstream-seed42-8x32000",
        "9c3ee08b30f886f4cdfdf010af856a5730ca4525bdb4948844bbdae42aa1c5b0",
        "1af61814bc6135f6a75ad3f72edaf209dbce0da1aca8dbe8e1580b41936b2fce",
    ),
    (
        "smollm2-135m-49152",
        "1dec7c80e20745991ad264422954022b8c246ab5df5af9787d7d3a03bf9472a4",
        "8b338aa6c275636edb1bc78faa05cd87c950f3241107ced4c7636de50f35b8f3",
    ),
    (
        "gemma3-270m-262144",
        "5d303ea8a7ec6e7ed1550dac0f7f565476fc575d29090313e309c9b9a3044e8e",
        "30a30ead23adb8ec24a8cf65e6551f2d407167ad02228325dc543efe8b2c24c5",
    ),
    (
        "smollm2-135m-bf16",
        "554bef5d21f873ffa3a083222da0f60bf447d7c19689b6033bffc045c794d294",
        "78d28cdf260aa54fe3e832ddac82b8da6fff491231126befd062d25faaf8152b",
    ),
    (
        "shifted-top-ties",
        "e0500fff6ebac3cbce2e8548d332ecaebff08052b88d445a0d3a09c9c08cd4eb",
        "ed69cc142bcb64e32df85c702dc30703254f7e84f42799b202062153c2e020e4",
    ),
];

fn recipe(distribution: Distribution, seed: u64, vocab: u32, sigma: f64) -> Recipe {
    Recipe { distribution, seed, vocab, sigma, round: Rounding::None }
}

fn bf16(recipe: Recipe) -> Recipe {
    Recipe { round: Rounding::Bf16, ..recipe }
}

/// Tokens 7919 * (row + 1) mod vocab, as the recorded forced cases have them.
fn forces(vocab: u32, logits: &[f32]) -> Vec<Force> {
    (0..).zip(logits).map(|(row, &logit)| Force { row, token: 7919 * (row + 1) % vocab, logit }).collect()
}

/// The inputs of a recorded case: by its recipe, else from its file.
fn inputs(case: &str) -> Inputs {
    use Distribution::{Heavy, Normal, Uniform};
    let plain = |recipe: Recipe, p: &[f32]| generate(&recipe, p, &[]).unwrap();
    match case {
        "normal-1024" => plain(recipe(Normal, 42, 1024, 1.0), &EIGHT),
        "normal-32000" => plain(recipe(Normal, 42, 32000, 1.0), &EIGHT),
        "normal-128256" => plain(recipe(Normal, 42, 128256, 1.0), &EIGHT[..4]),
        "normal-128256-high" => plain(recipe(Normal, 43, 128256, 1.0), &EIGHT[4..]),
        "heavy-50257" => plain(recipe(Heavy, 44, 50257, 2.0), &EIGHT),
        "heavy-151936" => plain(recipe(Heavy, 45, 151936, 2.0), &EIGHT),
        "sharp-151936" => plain(recipe(Normal, 46, 151936, 4.0), &EIGHT),
        "uniform-32000" => plain(recipe(Uniform, 47, 32000, 1.0), &EIGHT),
        "bf16-normal-151936" => plain(bf16(recipe(Normal, 51, 151936, 2.0)), &EIGHT),
        "bf16-heavy-151936" => plain(bf16(recipe(Heavy, 52, 151936, 2.0)), &EIGHT),
        "bf16-heavy-32000" => plain(bf16(recipe(Heavy, 53, 32000, 1.2)), &HEAVY_32000.repeat(4)),
        "forced-32000" => {
            let forces = forces(32000, &[1e3, 1e4, 1e5, 1e6, 1e7, 1e9, 1e20, 3e38]);
            generate(&recipe(Normal, 48, 32000, 1.0), &[0.9; 8], &forces).unwrap()
        }
        "forced-151936" => {
            let forces = forces(151936, &[1e4, 1e6, 1e9, 1e30]);
            generate(&recipe(Normal, 49, 151936, 1.0), &[0.95; 4], &forces).unwrap()
        }
        file => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200/inputs");
            read(&fs::read(folder.join(format!("{file}.safetensors"))).unwrap()).unwrap()
        }
    }
}

#[test]
fn the_first_draw_is_the_specified_one() {
    assert_eq!(generate::stream(42, 0).next_u64(), 3_558_805_150_288_452_066);
}

#[test]
fn every_recorded_case_hashes_as_pinned() {
    for (case, logits, p) in PINNED {
        let inputs = inputs(case);
        assert_eq!(inputs.logits_sha256().to_string(), logits, "{case}");
        assert_eq!(inputs.p_sha256().to_string(), p, "{case}");
    }
}

#[test]
fn a_written_file_reads_back_equal() {
    let inputs = generate(&recipe(Distribution::Uniform, 1, 5, 1.0), &[0.5, 0.9], &[]).unwrap();
    let bytes = write(&inputs, "c");
    assert_eq!(read(&bytes).unwrap(), inputs);
    assert_eq!(inputs.row(1), Some(&inputs.logits()[5..]));
    assert_eq!(inputs.row(2), None);
}

#[test]
fn each_bad_recipe_has_its_code() {
    let good = recipe(Distribution::Normal, 1, 8, 1.0);
    let code = |recipe: Recipe, p: &[f32], forces: &[Force]| generate(&recipe, p, forces).expect_err("refused").code();
    let force = |row, token| Force { row, token, logit: 1.0 };
    assert!(generate(&good, &[0.5], &[force(0, 7), force(0, 6)]).is_ok());
    assert_eq!(code(good, &[], &[]), "inputs-empty");
    assert_eq!(code(Recipe { vocab: 0, ..good }, &[0.5], &[]), "inputs-empty");
    assert_eq!(code(Recipe { vocab: u32::MAX, ..good }, &[0.5], &[]), "inputs-too-large");
    assert_eq!(code(Recipe { sigma: f64::INFINITY, ..good }, &[0.5], &[]), "inputs-sigma");
    assert_eq!(code(good, &[0.5], &[force(1, 0)]), "inputs-force-outside");
    assert_eq!(code(good, &[0.5], &[force(0, 8)]), "inputs-force-outside");
    assert_eq!(code(good, &[0.5], &[force(0, 7), force(0, 7)]), "inputs-force-twice");
    assert_eq!(Inputs::new(3, vec![0.0; 5], vec![0.5; 2]).expect_err("refused").code(), "inputs-shape");
}

#[test]
fn each_bad_file_has_its_code() {
    let inputs = Inputs::new(3, vec![0.0; 6], vec![0.5; 2]).unwrap();
    let bytes = write(&inputs, "c");
    let code = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        read(&bytes).expect_err("refused").code()
    };
    assert_eq!(code("\"logits\":{", "\"logitz\":{"), "tensor-unexpected");
    assert_eq!(code("[2,3]", "[3,2]"), "tensor-shape");
    assert_eq!(code("[2,3]", "[6]  "), "tensor-shape");
    assert_eq!(code("\"dtype\":\"F32\"", "\"dtype\":\"I32\""), "tensor-dtype");
    let digest = inputs.p_sha256().to_string();
    assert_eq!(code(&digest, &"0".repeat(64)), "inputs-header-digest");
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(read(&longer).expect_err("refused").code(), "tensor-layout");
    assert_eq!(read(&bytes[..bytes.len() - 1]).expect_err("refused").code(), "tensor-layout");
}
