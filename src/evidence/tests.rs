//! Bundles as recorded, and each way that one can be bad.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::inputs::{self, Inputs};

const BATCH: usize = 2;
const VOCAB: usize = 70;

/// Two rows of 70 distinct logits.
fn sample() -> Inputs {
    let logits = (0..BATCH * VOCAB).map(|i| ((i * 37) % 101) as f32 * 0.125).collect();
    Inputs::new(VOCAB, logits, vec![0.5, 0.9]).unwrap()
}

/// What a kernel made of them: logits above 6 stay.
fn masked(inputs: &Inputs) -> Vec<f32> {
    inputs.logits().iter().map(|&logit| if logit > 6.0 { logit } else { f32::NEG_INFINITY }).collect()
}

fn dispatch() -> Dispatch {
    Dispatch::read(r#"{"path":"cuda-split","kernels":["a"],"grid":[4],"splits":2}"#).unwrap()
}

fn encoded(inputs: &Inputs, output: &[f32]) -> Vec<u8> {
    encode_case(&Recording { case: "c", inputs, output, dispatch: &dispatch(), repeat_differs: None }).unwrap()
}

fn read(bytes: &[u8]) -> Result<CaseEvidence, EvidenceError> {
    CaseEvidence::read("c.safetensors", bytes, "c", &sample())
}

fn code(bytes: &[u8]) -> &'static str {
    read(bytes).expect_err("must be refused").code()
}

/// `bytes` with the first `from` replaced by `to`, of equal length.
fn swap(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect(from);
    [&bytes[..at], to.as_bytes(), &bytes[at + to.len()..]].concat()
}

/// `bytes` with the byte `from_end` places before the end changed by `change`.
fn poke(bytes: &[u8], from_end: usize, change: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.len() - from_end;
    bytes[at] = change(bytes[at]);
    bytes
}

const MASK: usize = VOCAB.div_ceil(8) * BATCH;

#[test]
fn both_forms_give_the_same_facts() {
    let (inputs, output) = (sample(), masked(&sample()));
    let compact = encoded(&inputs, &output);
    let evidence = read(&compact).unwrap();
    assert_eq!(evidence.rows.len(), BATCH);
    assert_eq!(evidence.dispatch, dispatch());
    assert_eq!(evidence.output_sha256, crate::digest::Sha256::of_f32(&output));
    for (index, row) in evidence.rows.iter().enumerate() {
        assert_eq!(*row, RowEvidence::from_output(inputs.row(index).unwrap(), &output[index * VOCAB..][..VOCAB]));
        assert_eq!((row.nan, row.altered), (0, 0));
        assert!(row.kept.iter().all(|token| inputs.row(index).unwrap()[token as usize] > 6.0));
    }
}

#[test]
fn an_output_of_other_values_is_recorded_whole() {
    let (inputs, mut output) = (sample(), masked(&sample()));
    let masked_token = output.iter().position(|&value| value == f32::NEG_INFINITY).unwrap();
    output[masked_token] = f32::MIN; // not -inf: kept, and altered
    output[VOCAB] = f32::NAN;
    let bytes = encoded(&inputs, &output);
    let evidence = read(&bytes).unwrap();
    let [first, second] = evidence.rows.as_slice() else { panic!("two rows") };
    assert!(first.kept.contains(masked_token as u32) && second.kept.contains(0));
    assert_eq!((first.nan, first.altered), (0, 1));
    assert_eq!((second.nan, second.altered), (1, 1));
    assert!(matches!(first.argmax, Argmax::Token(_)));
    assert_eq!(second.argmax, Argmax::Unknown);
    assert_eq!(code(&poke(&bytes, 1, |byte| byte ^ 1)), "drift-output");
}

#[test]
fn argmax_is_the_lowest_of_the_largest() {
    let row = |output: &[f32]| RowEvidence::from_output(&[1.0, 3.0, 3.0], output).argmax;
    let none = f32::NEG_INFINITY;
    assert_eq!(row(&[1.0, 3.0, 3.0]), Argmax::Token(1));
    assert_eq!(row(&[none, none, 3.0]), Argmax::Token(2));
    assert_eq!(row(&[none, none, none]), Argmax::AllMasked);
}

#[test]
fn every_mask_bit_is_protected() {
    let bytes = encoded(&sample(), &masked(&sample()));
    for from_end in 1..=MASK {
        for bit in 0..8 {
            // Bytes 1 and 10 from the end are the last of a row: 6 of their bits are tokens.
            let expected = if matches!(from_end, 1 | 10) && bit >= 6 { "evidence-padding" } else { "drift-output" };
            assert_eq!(code(&poke(&bytes, from_end, |byte| byte ^ 1 << bit)), expected, "{from_end} {bit}");
        }
    }
}

#[test]
fn counts_that_cannot_be_are_contradictions() {
    let bytes = encoded(&sample(), &masked(&sample()));
    let (nan, altered) = (MASK + 4 * BATCH, MASK + 8 * BATCH);
    let one = |_| 1;
    assert_eq!(code(&poke(&bytes, nan, one)), "evidence-contradiction"); // a NaN, yet nothing altered
    assert_eq!(code(&poke(&bytes, altered, |_| 71)), "evidence-contradiction"); // more than kept
    let stated = poke(&poke(&bytes, nan, one), altered, one); // possible, but the plain output hashes as recorded
    assert_eq!(code(&stated), "evidence-contradiction");
    let digest = crate::digest::Sha256::of_f32(&masked(&sample())).to_string();
    let evidence = read(&swap(&stated, &digest, &"0".repeat(64))).unwrap();
    assert_eq!(evidence.rows[0].argmax, Argmax::Unknown);
}

#[test]
fn a_kept_minus_infinity_is_a_contradiction() {
    let mut logits = sample().logits().to_vec();
    logits[3] = f32::NEG_INFINITY;
    let inputs = Inputs::new(VOCAB, logits, vec![0.5, 0.9]).unwrap();
    let bytes = encoded(&inputs, inputs.logits());
    let read = |bytes: &[u8]| CaseEvidence::read("c.safetensors", bytes, "c", &inputs);
    assert!(read(&bytes).is_ok());
    let kept = poke(&bytes, MASK, |byte| byte | 1 << 3); // rebuilds to the same bytes
    assert_eq!(read(&kept).expect_err("refused").code(), "evidence-contradiction");
}

#[test]
fn each_bad_header_has_its_code() {
    let inputs = sample();
    let bytes = encoded(&inputs, &masked(&inputs));
    let (logits, p) = (inputs.logits_sha256().to_string(), inputs.p_sha256().to_string());
    let other = "0".repeat(64);
    assert_eq!(code(&swap(&bytes, &logits, &other)), "drift-logits");
    assert_eq!(code(&swap(&bytes, &p, &other)), "drift-p");
    assert_eq!(code(&swap(&bytes, &p, &other.replace('0', "G"))), "evidence-header");
    assert_eq!(code(&swap(&bytes, r#""case":"c""#, r#""case":"d""#)), "evidence-header");
    assert_eq!(code(&swap(&bytes, r#""batch":"2""#, r#""batch":"3""#)), "evidence-header");
    assert_eq!(code(&swap(&bytes, r#""vocab":"70""#, r#""vocab":"71""#)), "evidence-header");
    assert_eq!(code(&swap(&bytes, r#""dispatch""#, r#""dispotch""#)), "evidence-header-missing");
    assert_eq!(code(&swap(&bytes, r#"\"path\""#, r#"\"pith\""#)), "evidence-dispatch");
}

#[test]
fn each_bad_tensor_has_its_code() {
    let bytes = encoded(&sample(), &masked(&sample()));
    assert_eq!(code(&swap(&bytes, r#""nan":{"#, r#""Nan":{"#)), "tensor-unexpected");
    assert_eq!(
        code(&swap(&bytes, r#"{"data_offsets":[0,8],"dtype":"U32""#, r#"{"data_offsets":[0,8],"dtype":"I32""#)),
        "tensor-dtype"
    );
    assert_eq!(code(&swap(&bytes, r#""shape":[2,9]"#, r#""shape":[9,2]"#)), "tensor-shape");
    assert_eq!(code(&bytes[..bytes.len() - 1]), "tensor-layout");
    assert_eq!(code(&poke(&bytes, bytes.len() - 3, |_| 0xff)), "tensor-header-length");
    let only = |name: &str| {
        let none = crate::tensors::Tensor { name, dtype: safetensors::Dtype::U8, shape: vec![0], data: vec![] };
        let mut metadata: std::collections::BTreeMap<&str, String> = Default::default();
        let file = crate::tensors::TensorFile::parse(&bytes).unwrap();
        for key in ["case", "batch", "vocab", "logits_sha256", "p_sha256", "output_sha256", "dispatch"] {
            metadata.insert(key, file.metadata(key).unwrap().to_owned());
        }
        code(&crate::tensors::encode(&metadata, &[none]))
    };
    assert_eq!(only("mask"), "evidence-form");
    assert_eq!(only("kept"), "tensor-shape");
    assert_eq!(only("output"), "tensor-dtype");
}

fn subject(cases: &[&str]) -> Subject {
    let text = fs::read(recorded().join("patch/subject.json")).unwrap();
    let cases = cases.iter().map(|&case| case.to_owned()).collect();
    Subject { cases, ..Subject::read(&text).unwrap() }
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200")
}

#[test]
fn a_written_bundle_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle");
    let bytes = encoded(&sample(), &masked(&sample()));
    write_bundle(&path, &subject(&["c"]), &[("c", bytes.clone())]).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary folder stays");
    let bundle = Bundle::open(&path, 1 << 20).unwrap();
    assert_eq!(bundle.subject().unwrap(), subject(&["c"]));
    assert_eq!(bundle.case("c", &sample()).unwrap(), read(&bytes).unwrap());

    let error = |subject: &Subject, cases: &[(&str, Vec<u8>)], path: &Path| {
        write_bundle(path, subject, cases).expect_err("must be refused").code()
    };
    assert_eq!(error(&subject(&["c"]), &[("c", bytes.clone())], &path), "file-exists");
    let other = folder.path().join("other");
    assert_eq!(error(&subject(&["c", "d"]), &[("c", bytes.clone())], &other), "recording-case");
    assert_eq!(error(&subject(&["c"]), &[("d", bytes.clone())], &other), "recording-case");
    assert_eq!(error(&subject(&[]), &[("c", bytes.clone())], &other), "recording-case");
    assert_eq!(error(&subject(&["../c"]), &[("../c", bytes)], &other), "recording-case");
    assert!(!other.exists());
    let shape = Recording { case: "c", inputs: &sample(), output: &[0.0], dispatch: &dispatch(), repeat_differs: None };
    assert_eq!(encode_case(&shape).expect_err("must be refused").code(), "recording-shape");
}

#[test]
fn each_bad_bundle_has_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle");
    let bytes = encoded(&sample(), &masked(&sample()));
    write_bundle(&path, &subject(&["c"]), &[("c", bytes.clone())]).unwrap();
    let size = Bundle::open(&path, u64::MAX).unwrap().files_len();
    let open = |limit| Bundle::open(&path, limit).map_err(|error| error.code());
    assert!(open(size).is_ok());
    assert_eq!(open(size - 1).expect_err("refused"), "file-too-large");
    assert_eq!(Bundle::open(&folder.path().join("none"), size).expect_err("refused").code(), "file-missing");
    assert_eq!(open(size).unwrap().case("d", &sample()).expect_err("refused").code(), "evidence-missing");
    assert_eq!(open(size).unwrap().case("../bundle/c", &sample()).expect_err("refused").code(), "evidence-missing");

    fs::write(path.join("d.safetensors"), b"x").unwrap();
    assert_eq!(open(u64::MAX).unwrap().subject().expect_err("refused").code(), "evidence-cases");
    fs::remove_file(path.join("d.safetensors")).unwrap();

    std::os::unix::fs::symlink(path.join("c.safetensors"), path.join("d.safetensors")).unwrap();
    assert_eq!(open(u64::MAX).expect_err("refused"), "evidence-entry");
    fs::remove_file(path.join("d.safetensors")).unwrap();
    fs::create_dir(path.join("e")).unwrap();
    assert_eq!(open(u64::MAX).expect_err("refused"), "evidence-entry");
    fs::remove_dir(path.join("e")).unwrap();
    fs::write(path.join("a\nb"), b"x").unwrap();
    assert_eq!(open(u64::MAX).expect_err("refused"), "evidence-entry");
    fs::remove_file(path.join("a\nb")).unwrap();

    let crowd = folder.path().join("crowd");
    fs::create_dir(&crowd).unwrap();
    (0..MAX_FILES).for_each(|index| fs::write(crowd.join(index.to_string()), b"").unwrap());
    assert!(Bundle::open(&crowd, 0).is_ok());
    fs::write(crowd.join("more"), b"").unwrap();
    assert_eq!(Bundle::open(&crowd, 0).expect_err("refused").code(), "evidence-too-many-files");

    fs::write(path.join(SUBJECT_FILE), "{}").unwrap();
    assert_eq!(open(u64::MAX).unwrap().subject().expect_err("refused").code(), "evidence-subject");
    fs::remove_file(path.join(SUBJECT_FILE)).unwrap();
    assert_eq!(open(u64::MAX).unwrap().subject().expect_err("refused").code(), "evidence-missing");
}

#[test]
fn the_recorded_bundles_read_clean() {
    let cases = ["signed-zeros", "upstream-seed42-8x1024", "shifted-top-ties", "huge-two-level"];
    for bundle in ["stock", "patch", "monolithic-0.32.0"] {
        let bundle = Bundle::open(&recorded().join(bundle), 16 << 20).unwrap();
        assert_eq!(bundle.subject().unwrap().cases.len(), 27);
        for case in cases {
            let file = recorded().join(format!("inputs/{case}.safetensors"));
            let inputs = inputs::read(&fs::read(file).unwrap()).unwrap();
            let evidence = bundle.case(case, &inputs).unwrap();
            assert_eq!(evidence.rows.len(), inputs.batch());
            assert!(evidence.rows.iter().all(|row| row.nan == 0 && row.altered == 0));
        }
    }
}

#[test]
fn a_bundle_hashes_as_the_sorted_lines_of_its_files() {
    let bundle = Bundle::open(&recorded().join("patch"), 16 << 20).unwrap();
    let lines: String = bundle.file_digests().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    assert_eq!(bundle.sha256(), crate::digest::Sha256::of(lines.as_bytes()));
    assert_eq!(lines.lines().count(), 28);
    assert_eq!(bundle.sha256().to_string(), "b7b9d9d54472a4f081424948b38376db7d50c706af6874605abdc81eb3787ea4");
}

/// The compact form with further tensors, u32 of this many values.
fn with_further(name: &str, values: &[u32]) -> Vec<u8> {
    use crate::tensors::{Tensor, encode};
    use safetensors::Dtype;
    let (inputs, output) = (sample(), masked(&sample()));
    let kept = inputs.logits().chunks_exact(VOCAB).zip(output.chunks_exact(VOCAB));
    let kept = kept.flat_map(|(logits, output)| RowEvidence::from_output(logits, output).kept.to_lsb_bytes()).collect();
    let counts = |name, values: &[u32]| Tensor {
        name,
        dtype: Dtype::U32,
        shape: vec![values.len()],
        data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    let kept = Tensor { name: "kept", dtype: Dtype::U8, shape: vec![BATCH, VOCAB.div_ceil(8)], data: kept };
    let metadata = std::collections::BTreeMap::from([
        ("case", "c".to_owned()),
        ("batch", BATCH.to_string()),
        ("vocab", VOCAB.to_string()),
        ("logits_sha256", inputs.logits_sha256().to_string()),
        ("p_sha256", inputs.p_sha256().to_string()),
        ("output_sha256", crate::digest::Sha256::of_f32(&output).to_string()),
        ("dispatch", dispatch().canonical),
    ]);
    encode(&metadata, &[counts("altered", &[0; BATCH]), counts("nan", &[0; BATCH]), kept, counts(name, values)])
}

#[test]
fn further_calls_are_read_where_they_were_recorded() {
    let rows = |bytes: &[u8]| read(bytes).unwrap().rows;
    let facts = |row: &RowEvidence| (row.repeat_differs, row.company_differs);
    let none = rows(&encoded(&sample(), &masked(&sample())));
    assert!(none.iter().all(|row| facts(row) == (None, None)));
    let repeated = rows(&with_further("repeat_differs", &[0, 70]));
    assert_eq!(repeated.iter().map(facts).collect::<Vec<_>>(), [(Some(0), None), (Some(70), None)]);
    let company = rows(&with_further("company_differs", &[1, 0]));
    assert_eq!(company.iter().map(facts).collect::<Vec<_>>(), [(None, Some(1)), (None, Some(0))]);
    assert_eq!(code(&with_further("repeat_differs", &[0, 71])), "evidence-contradiction");
    let shape = code(&with_further("company_differs", &[0]));
    assert!(shape.starts_with("tensor"), "{shape}");
}
