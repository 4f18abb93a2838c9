//! One function a probe: it breaks the project in one place and runs the program.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use nucleus_gate::digest::Sha256;
use nucleus_gate::inputs::{self, Distribution, Inputs, Recipe, Rounding};

use crate::project::{MATRIX, POLICY, Project, generated};

pub type Scenario = fn(&mut Project) -> Output;

/// Every probe, by its name in the table.
pub const ALL: [(&str, Scenario); 70] = [
    // Missing and unreadable outputs.
    ("stock output missing, bundle pinned without it", |p| recorded_without(p, "stock")),
    ("patch output missing, bundle pinned without it", |p| recorded_without(p, "patch")),
    ("patch output missing", |p| {
        fs::remove_file(p.evidence("patch", "plain")).unwrap();
        p.check()
    }),
    ("bundle missing", |p| {
        fs::remove_dir_all(p.path("stock")).unwrap();
        p.check()
    }),
    ("output truncated", |p| {
        recorded(p, |mut bytes| {
            bytes.truncate(bytes.len() - 1);
            bytes
        })
    }),
    ("output cut inside its header", |p| recorded(p, |bytes| bytes[..100].to_vec())),
    ("output empty", |p| recorded(p, |_| Vec::new())),
    ("output unparsable", |p| recorded(p, |bytes| swapped(bytes, "{\"__meta", "[\"__meta"))),
    ("a header that claims a gigabyte", |p| {
        recorded(p, |mut bytes| {
            bytes[..8].copy_from_slice(&(1u64 << 30).to_le_bytes());
            bytes
        })
    }),
    ("a tensor twice", |p| recorded(p, |bytes| swapped(bytes, "\"altered\":", "\"nan\":    "))),
    ("wrong dtype", |p| recorded(p, |bytes| swapped(bytes, "\"U32\"", "\"I32\""))),
    ("wrong shape", |p| recorded(p, |bytes| swapped(bytes, "[2,8]", "[8,2]"))),
    ("a tensor too many", |p| recorded(p, |bytes| swapped(bytes, "\"nan\":{", "\"nam\":{"))),
    ("no dispatch recorded", |p| recorded(p, |bytes| swapped(bytes, "\"dispatch\"", "\"dispatsh\""))),
    ("counts that contradict the output's digest", |p| {
        recorded(p, |mut bytes| {
            // Both counts of the first row: its `altered` and its `nan`.
            let at = bytes.len() - 16 - 16;
            (bytes[at], bytes[at + 8]) = (1, 1);
            bytes
        })
    }),
    ("a duplicate key in subject.json", |p| {
        p.edit("patch/subject.json", "\"engine\":", "\"name\": \"x\", \"engine\":");
        p.pin();
        p.check()
    }),
    ("a link in a bundle", |p| {
        let file = p.evidence("patch", "plain");
        fs::rename(&file, p.path("moved")).unwrap();
        symlink(p.path("moved"), &file).unwrap();
        p.check()
    }),
    // Outputs that break a rule.
    ("NaN in stock", |p| output(p, 0, |row| row[0] = f32::NAN)),
    ("NaN in patch", |p| output(p, 1, |row| row[0] = f32::NAN)),
    ("patch masks a whole row", |p| output(p, 1, |row| row.fill(f32::NEG_INFINITY))),
    ("stock masks a whole row", |p| output(p, 0, |row| row.fill(f32::NEG_INFINITY))),
    ("patch changes a kept logit", |p| {
        output(p, 1, |row| {
            let kept = row.iter().position(|logit| logit.is_finite()).unwrap();
            row[kept] *= 1.5;
        })
    }),
    ("patch keeps four tokens too many", |p| {
        let logits = p.case("plain").inputs.row(0).unwrap().to_vec();
        output(p, 1, |row| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
            let kept = row.iter().filter(|logit| logit.is_finite()).count();
            order[kept..kept + 4].iter().for_each(|&token| row[token] = logits[token]);
        })
    }),
    ("patch drops the forced token", |p| {
        p.case("forced").outputs[1][..64].fill(f32::NEG_INFINITY);
        p.freeze();
        p.check()
    }),
    // Hashes and bindings.
    ("one mask bit changed", |p| {
        let file = p.evidence("patch", "plain");
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(file, bytes).unwrap();
        p.check()
    }),
    ("one mask bit changed, bundle pinned so", |p| {
        recorded(p, |mut bytes| {
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        })
    }),
    ("recorded on other logits", |p| {
        let other = p.case("plain").inputs.logits_sha256().to_string();
        recorded(p, |bytes| swapped(bytes, &other, &Sha256::of(b"other").to_string()))
    }),
    ("recorded on another p", |p| {
        let other = p.case("plain").inputs.p_sha256().to_string();
        recorded(p, |bytes| swapped(bytes, &other, &Sha256::of(b"other").to_string()))
    }),
    ("the evidence of another case", |p| {
        fs::copy(p.evidence("patch", "filed"), p.evidence("patch", "plain")).unwrap();
        p.pin();
        p.check()
    }),
    ("an input file changed", |p| {
        let file = p.path("inputs/filed.safetensors");
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(file, bytes).unwrap();
        p.check()
    }),
    ("another seed under the same digests", |p| {
        p.edit(MATRIX, "seed=1 ", "seed=9 ");
        p.check()
    }),
    ("a source pinned otherwise", |p| {
        p.edit(MATRIX, "sha256=\"f6dd4d", "sha256=\"06dd4d");
        p.check()
    }),
    ("the patch pinned otherwise", |p| {
        p.edit(MATRIX, "patch-sha256=\"7748", "patch-sha256=\"0748");
        p.check()
    }),
    ("another dispatch path", |p| recorded(p, |bytes| swapped(bytes, "cuda-split", "cuda-other"))),
    ("a dispatch path that steers a terminal", |p| {
        p.record(|bytes| swapped(bytes, "cuda-split", "cu\\\\u001bs"));
        on_screen_and_json(p)
    }),
    ("a dispatch path that reorders text", |p| {
        p.record(|bytes| swapped(bytes, "cuda-split", "cuda-\u{202e}xx"));
        on_screen_and_json(p)
    }),
    // Inputs.
    ("an input file missing", |p| {
        fs::remove_file(p.path("inputs/filed.safetensors")).unwrap();
        p.check()
    }),
    ("an input file without logits", |p| {
        let file = p.path("inputs/filed.safetensors");
        let bytes = swapped(fs::read(&file).unwrap(), "\"logits\":", "\"lagits\":");
        fs::write(file, bytes).unwrap();
        p.pin();
        p.check()
    }),
    ("exact ties, the wrong one kept", |p| {
        ties(p);
        let row = &mut p.case("ties").outputs[1];
        let last = row.iter().rposition(|logit| logit.is_finite()).unwrap();
        (row[last], row[last + 1]) = (f32::NEG_INFINITY, 1.0);
        p.freeze();
        p.check()
    }),
    ("exact ties, all kernels right", |p| {
        ties(p);
        p.freeze();
        p.check()
    }),
    ("adjacent fp32 logits, all kernels right", |p| {
        let logits = (0..64).map(|step| f32::from_bits(1f32.to_bits() + step)).collect();
        p.add_file("adjacent", "probe", "expect \"accept\"", Inputs::new(64, logits, vec![0.5]).unwrap());
        p.freeze();
        p.check()
    }),
    ("huge finite logits, all kernels right", |p| {
        let logits = (0..64u8).map(|i| if i % 2 == 0 { 3e38 } else { -3e38 }).collect();
        p.add_file("huge", "probe", "expect \"accept\"", Inputs::new(64, logits, vec![0.5]).unwrap());
        p.freeze();
        p.check()
    }),
    ("p that is 1 only as fp32", |p| {
        let inputs = Inputs::new(64, vec![0.0; 64], vec![0.999_999_999_9_f64 as f32]).unwrap();
        p.add_file("p", "ordinary", "", inputs);
        p.freeze();
        p.check()
    }),
    ("p that is 0 only as fp32, declared", |p| {
        let inputs = Inputs::new(64, vec![0.0; 64], vec![1e-60_f64 as f32]).unwrap();
        p.add_file("p", "probe", "expect \"reject\" code=\"invalid-p\"", inputs);
        p.freeze();
        p.check()
    }),
    ("a non-finite logit", |p| {
        non_finite(p, "ordinary", "");
        p.check()
    }),
    ("a non-finite logit, declared", |p| {
        non_finite(p, "probe", "expect \"reject\" code=\"non-finite-logit\"");
        p.check()
    }),
    ("a declared violation that does not happen", |p| {
        let inputs = generated("", 8, &[0.5]).inputs;
        p.add_file("calm", "probe", "expect \"violation\" rule=\"prefix\"", inputs);
        p.freeze();
        p.check()
    }),
    // Policy and matrix.
    ("a matrix with zero cases", |p| {
        p.cases.clear();
        p.pin();
        p.check()
    }),
    ("a policy with zero rules", |p| {
        let text = fs::read_to_string(p.path(POLICY)).unwrap();
        fs::write(p.path(POLICY), text.split("    // One token").next().unwrap().to_owned() + "}\n").unwrap();
        p.check()
    }),
    ("a case without evidence added", |p| {
        p.cases.push(generated("added", 9, &[0.5]));
        p.pin();
        p.check()
    }),
    ("a path that is absolute", |p| {
        p.edit(MATRIX, "file \"inputs/", "file \"/inputs/");
        p.check()
    }),
    ("a path that leaves the root", |p| {
        p.edit(MATRIX, "file \"inputs/", "file \"../inputs/");
        p.check()
    }),
    ("a link that leaves the root", |p| {
        let outside = tempfile::NamedTempFile::new().unwrap();
        fs::remove_file(p.path("inputs/filed.safetensors")).unwrap();
        symlink(outside.path(), p.path("inputs/filed.safetensors")).unwrap();
        p.check()
    }),
    // Limits.
    ("vocabulary above the limit", |p| limit(p, "max-vocab=262144", "max-vocab=63")),
    ("batch above the limit", |p| limit(p, "max-batch=64", "max-batch=1")),
    ("bundle above the artifact limit", |p| limit(p, "max-artifact-bytes=67108864", "max-artifact-bytes=1500")),
    ("receipt above the artifact limit", |p| limit(p, "max-artifact-bytes=67108864", "max-artifact-bytes=9000")),
    ("wall clock above the limit", slow),
    // Receipts.
    ("receipt: a byte changed", |p| verified(p, |p| p.edit("nucleus-gate-receipt.json", "\"passed\"", "\"pussed\""))),
    ("receipt: a space added", |p| verified(p, |p| p.edit("nucleus-gate-receipt.json", ":", ": "))),
    ("receipt: a key twice", |p| {
        verified(p, |p| p.edit("nucleus-gate-receipt.json", "\"decision\":", "\"decision\":\"pass\",\"decision\":"))
    }),
    ("receipt: policy changed since", |p| verified(p, |p| p.edit(POLICY, "max-difference=3", "max-difference=4"))),
    ("receipt: case order changed since", |p| {
        verified(p, |p| {
            p.cases.swap(0, 2);
            p.pin();
        })
    }),
    ("receipt: a case dropped since", |p| {
        verified(p, |p| {
            p.cases.pop();
            p.pin();
        })
    }),
    ("receipt: evidence changed since", |p| verified(p, |p| p.edit("patch/subject.json", "NVIDIA", "nvidia"))),
    ("receipt: unsigned where a key is demanded", |p| {
        p.run(&["keygen", "k"]);
        p.receipt();
        p.run(&["verify", "nucleus-gate-receipt.json", "--key", "k.pub"])
    }),
    ("receipt: signed, a byte changed", |p| {
        signed(p);
        let path = p.path("nucleus-gate-receipt.dsse.json");
        let text = fs::read_to_string(&path).unwrap();
        // One base64 digit inside the payload.
        let at = text.len() / 2;
        let other = if &text[at..=at] == "A" { "B" } else { "A" };
        fs::write(path, format!("{}{other}{}", &text[..at], &text[at + 1..])).unwrap();
        p.run(&["verify", "nucleus-gate-receipt.dsse.json", "--key", "k.pub"])
    }),
    ("receipt: signed with another key", |p| {
        signed(p);
        p.run(&["keygen", "other"]);
        p.run(&["verify", "nucleus-gate-receipt.dsse.json", "--key", "other.pub"])
    }),
    ("receipt: of a failed run, authentic", |p| {
        output(p, 1, |row| row[0] = f32::NAN);
        p.verify()
    }),
    ("receipt: an earlier run of the same policy and matrix", |p| {
        let file = p.evidence("patch", "plain");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, b"").unwrap();
        p.check();
        fs::write(&file, bytes).unwrap();
        p.check()
    }),
];

fn recorded_without(p: &mut Project, subject: &str) -> Output {
    fs::remove_file(p.evidence(subject, "plain")).unwrap();
    p.pin();
    p.check()
}

fn recorded(p: &mut Project, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Output {
    p.record(change);
    p.check()
}

/// Both reports, and the receipt.
fn on_screen_and_json(p: &Project) -> Output {
    let mut output = p.check();
    output.stdout.extend(p.run(&["check", "--replace", "--matrix", MATRIX]).stdout);
    output.stdout.extend(p.verify().stdout);
    output
}

/// `bytes` with every `from` replaced by `to`, of equal length; there is one at least.
fn swapped(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let length = from.len();
    // The header's length must not change.
    let to = if to.len() > length { &to[..length] } else { to };
    let at: Vec<usize> = (0..=bytes.len() - length).filter(|&at| &bytes[at..at + length] == from.as_bytes()).collect();
    assert!(!at.is_empty(), "{from}");
    for at in at {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes[at + to.len()..at + length].fill(b' ');
    }
    bytes
}

/// Changes the first row of a kernel's output on `plain`, as if it had been recorded so.
fn output(p: &mut Project, subject: usize, change: impl FnOnce(&mut [f32])) -> Output {
    change(&mut p.case("plain").outputs[subject][..64]);
    p.freeze();
    p.check()
}

fn ties(p: &mut Project) {
    let inputs = Inputs::new(64, vec![1.0; 64], vec![0.5]).unwrap();
    p.add_file("ties", "probe", "expect \"accept\"", inputs);
}

fn non_finite(p: &mut Project, kind: &'static str, expect: &'static str) {
    let mut logits = vec![0.0; 64];
    logits[5] = f32::INFINITY;
    p.add_file("infinite", kind, expect, Inputs::new(64, logits, vec![0.5]).unwrap());
    p.freeze();
}

fn limit(p: &mut Project, from: &str, to: &str) -> Output {
    p.edit(POLICY, from, to);
    p.check()
}

/// Cases that no machine judges in a second, after one that every machine does.
fn slow(p: &mut Project) -> Output {
    let recipe =
        Recipe { distribution: Distribution::Normal, seed: 3, vocab: 262_144, sigma: 1.0, round: Rounding::None };
    let inputs = inputs::generate(&recipe, &[0.5; 32], &[]).unwrap();
    let masked = vec![f32::NEG_INFINITY; inputs.logits().len()];
    for name in ["slow-1", "slow-2", "slow-3", "slow-4", "slow-5", "slow-6"] {
        let lines = "generated \"normal\" seed=3 vocab=262144 sigma=1.0\n        p 0.5 times=32".to_owned();
        let outputs = [masked.clone(), masked.clone()];
        p.cases.push(crate::project::Case {
            name,
            kind: "ordinary",
            lines,
            expect: "",
            inputs: inputs.clone(),
            outputs,
        });
    }
    p.freeze();
    p.edit(POLICY, "timeout-seconds=120", "timeout-seconds=1");
    let output = p.check();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = |case: usize| report["cases"][case]["rows"].as_array().unwrap().len();
    assert_eq!(report["execution"], "stopped");
    assert_eq!(rows(0), 2, "what was decided in time is in the report");
    assert!((3..9).any(|case| rows(case) < 32), "what was not is not");
    output
}

/// A passing receipt, then a change, then what `verify` says.
fn verified(p: &mut Project, change: impl FnOnce(&mut Project)) -> Output {
    p.receipt();
    change(p);
    p.verify()
}

fn signed(p: &mut Project) {
    p.run(&["keygen", "k"]);
    assert_eq!(p.run(&["check", "--matrix", MATRIX, "--sign", "k"]).status.code(), Some(0));
    let verified = p.run(&["verify", "nucleus-gate-receipt.dsse.json", "--key", "k.pub"]);
    assert_eq!(verified.status.code(), Some(0));
}
