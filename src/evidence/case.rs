//! The evidence of one case.

use rayon::prelude::*;

use super::dispatch::Dispatch;
use super::error::{Drift, Drifted, EvidenceError, Problem, Unreadable};
use super::kept_set::{KeptSet, KeptSetError};
use crate::digest::{Hasher, Sha256};
use crate::inputs::Inputs;
use crate::tensors::TensorFile;

/// What a subject did with one case's inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseEvidence {
    /// A row of the inputs each, in order.
    pub rows: Vec<RowEvidence>,
    /// How the kernel was launched.
    pub dispatch: Dispatch,
    /// The digest of the logits that the subject saw: the inputs'.
    pub logits_sha256: Sha256,
    /// The digest of the p that the subject saw: the inputs'.
    pub p_sha256: Sha256,
    /// The digest of the raw fp32 output.
    pub output_sha256: Sha256,
    /// The digest of the evidence file.
    pub file_sha256: Sha256,
}

/// What a subject did with one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowEvidence {
    /// The tokens whose output is not exactly -inf. A masked logit written as any other value, however small, counts as
    /// kept and altered; a NaN counts as kept.
    pub kept: KeptSet,
    /// NaNs in the output.
    pub nan: u32,
    /// Kept tokens whose output bits are not the input's.
    pub altered: u32,
    /// The token of the largest output.
    pub argmax: Argmax,
    /// Which tokens are altered, where the output itself was recorded and any is.
    pub altered_tokens: Option<KeptSet>,
    /// Tokens whose output bits differed in a repeated call on the same batch; none where there was no such call.
    pub repeat_differs: Option<u32>,
    /// Tokens whose output bits differed where the row ran alone or in a larger batch; none where it did not.
    pub company_differs: Option<u32>,
}

/// The token of the largest output of a row, the lowest of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argmax {
    /// This one.
    Token(u32),
    /// None: the whole row is masked.
    AllMasked,
    /// Not known: the output has NaNs, or altered logits whose values were not recorded.
    Unknown,
}

impl RowEvidence {
    /// The facts of one row of a raw output, given the row's input logits (both \[vocab\]).
    #[must_use]
    pub fn from_output(logits: &[f32], output: &[f32]) -> Self {
        let vocab = output.len() as u32;
        let mut values = output.iter();
        let kept = KeptSet::from_fn(vocab, |_| values.next().is_some_and(|&value| value != f32::NEG_INFINITY));
        let nan = output.iter().filter(|value| value.is_nan()).count() as u32;
        let differs = |(a, b): &(&f32, &f32)| **a != f32::NEG_INFINITY && a.to_bits() != b.to_bits();
        let altered = output.iter().zip(logits).filter(differs).count() as u32;
        let argmax = if nan > 0 { Argmax::Unknown } else { argmax(output, &kept) };
        let altered_tokens = (altered > 0).then(|| {
            let mut pairs = output.iter().zip(logits);
            KeptSet::from_fn(vocab, |_| pairs.next().is_some_and(|pair| differs(&pair)))
        });
        Self { kept, nan, altered, argmax, altered_tokens, repeat_differs: None, company_differs: None }
    }

    /// The facts of one row as stated by a harness.
    fn stated(row: usize, logits: &[f32], kept: KeptSet, nan: u32, altered: u32) -> Result<Self, Problem> {
        let count = kept.count();
        let contradiction = |why| Err(Problem::Row { row, kept: count, nan, altered, why });
        if nan > count || altered > count {
            return contradiction("more than were kept");
        }
        if nan > altered && !logits.iter().any(|logit| logit.is_nan()) {
            return contradiction("a NaN is an altered logit, as no input is NaN");
        }
        let row = |kept, argmax| Self {
            kept,
            nan,
            altered,
            argmax,
            altered_tokens: None,
            repeat_differs: None,
            company_differs: None,
        };
        if altered > 0 || nan > 0 {
            return Ok(row(kept, Argmax::Unknown));
        }
        let infinite = |token: u32| logits.get(token as usize) == Some(&f32::NEG_INFINITY);
        if kept.iter().any(infinite) {
            return contradiction("a kept, unaltered logit is -inf, which is what a masked one is");
        }
        let argmax = argmax(logits, &kept);
        Ok(row(kept, argmax))
    }
}

fn argmax(values: &[f32], kept: &KeptSet) -> Argmax {
    let value = |token: u32| values.get(token as usize).copied().unwrap_or(f32::NAN);
    let larger = |best: u32, token: u32| if value(token) > value(best) { token } else { best };
    kept.iter().reduce(larger).map_or(Argmax::AllMasked, Argmax::Token)
}

impl CaseEvidence {
    /// Reads the bytes of an evidence file, named `file` in errors, as the evidence of `case` on `inputs`.
    ///
    /// # Errors
    /// As [`EvidenceError`] says.
    pub fn read(file: &str, bytes: &[u8], case: &str, inputs: &Inputs) -> Result<Self, EvidenceError> {
        read_case(file, bytes, Sha256::of(bytes), case, inputs)
    }
}

/// Reads the safetensors file `file` (`bytes`, of digest `file_sha256`) as the evidence of `case` on `inputs`.
pub(super) fn read_case(
    file: &str,
    bytes: &[u8],
    file_sha256: Sha256,
    case: &str,
    inputs: &Inputs,
) -> Result<CaseEvidence, EvidenceError> {
    let unreadable = |problem: Problem| Unreadable { file: file.to_owned(), problem };
    let drift = |what, expected, found| {
        if expected == found { Ok(()) } else { Err(Drift { file: file.to_owned(), what, expected, found }) }
    };
    let tensors = TensorFile::parse(bytes).map_err(|error| unreadable(error.into()))?;
    let header = Header::read(&tensors, case).map_err(unreadable)?;
    drift(Drifted::Logits, inputs.logits_sha256(), header.logits_sha256)?;
    drift(Drifted::P, inputs.p_sha256(), header.p_sha256)?;
    header_is(&tensors, "batch", &inputs.batch().to_string()).map_err(unreadable)?;
    header_is(&tensors, "vocab", &inputs.vocab().to_string()).map_err(unreadable)?;

    let mut rows = if tensors.has("output") {
        let (rows, found) = rows_of_output(&tensors, inputs).map_err(unreadable)?;
        drift(Drifted::Output, header.output_sha256, found)?;
        rows
    } else {
        let rows = rows_as_stated(&tensors, inputs).map_err(unreadable)?;
        let rebuilt = rebuild(inputs, &rows);
        let total = |count: fn(&RowEvidence) -> u32| rows.iter().map(|row| u64::from(count(row))).sum();
        let (nan, altered): (u64, u64) = (total(|row| row.nan), total(|row| row.altered));
        if (nan, altered) == (0, 0) {
            drift(Drifted::Output, header.output_sha256, rebuilt)?;
        } else if rebuilt == header.output_sha256 {
            return Err(unreadable(Problem::Rebuilt { nan, altered, output: rebuilt }).into());
        }
        rows
    };
    further_calls(&tensors, &mut rows).map_err(unreadable)?;
    let Header { dispatch, logits_sha256, p_sha256, output_sha256 } = header;
    Ok(CaseEvidence { rows, dispatch, logits_sha256, p_sha256, output_sha256, file_sha256 })
}

/// What the header of an evidence file states.
struct Header {
    dispatch: Dispatch,
    logits_sha256: Sha256,
    p_sha256: Sha256,
    output_sha256: Sha256,
}

impl Header {
    fn read(file: &TensorFile<'_>, case: &str) -> Result<Self, Problem> {
        header_is(file, "case", case)?;
        let digest = |key| {
            let found = header(file, key)?;
            let expected = "64 lowercase hexadecimal digits";
            let error = || Problem::Header { key, expected: expected.to_owned(), found: found.to_owned() };
            Sha256::parse(found).ok_or_else(error)
        };
        Ok(Self {
            logits_sha256: digest("logits_sha256")?,
            p_sha256: digest("p_sha256")?,
            output_sha256: digest("output_sha256")?,
            dispatch: Dispatch::read(header(file, "dispatch")?)?,
        })
    }
}

fn header<'a>(file: &'a TensorFile<'_>, key: &'static str) -> Result<&'a str, Problem> {
    file.metadata(key).ok_or(Problem::HeaderMissing { key })
}

fn header_is(file: &TensorFile<'_>, key: &'static str, expected: &str) -> Result<(), Problem> {
    match header(file, key)? {
        found if found == expected => Ok(()),
        found => Err(Problem::Header { key, expected: format!("`{expected}`"), found: found.to_owned() }),
    }
}

/// The tensors, u32 \[batch\], that a harness adds where it made further calls on the same rows.
const FURTHER: [&str; 2] = ["repeat_differs", "company_differs"];

fn further_calls(file: &TensorFile<'_>, rows: &mut [RowEvidence]) -> Result<(), Problem> {
    let read = |name| if file.has(name) { file.u32(name, &[rows.len()]).map(Some) } else { Ok(None) };
    let [repeat, company] = [read(FURTHER[0])?, read(FURTHER[1])?];
    let at = |counts: &Option<Vec<u32>>, row: usize| counts.as_ref().and_then(|counts| counts.get(row).copied());
    for (index, row) in rows.iter_mut().enumerate() {
        (row.repeat_differs, row.company_differs) = (at(&repeat, index), at(&company, index));
        let vocab = row.kept.len_vocab();
        if row.repeat_differs.into_iter().chain(row.company_differs).any(|count| count > vocab) {
            let why = "a further call differs on more tokens than there are";
            let (kept, nan, altered) = (row.kept.count(), row.nan, row.altered);
            return Err(Problem::Row { row: index, kept, nan, altered, why });
        }
    }
    Ok(())
}

/// The rows of a recorded raw output, and its digest.
fn rows_of_output(file: &TensorFile<'_>, inputs: &Inputs) -> Result<(Vec<RowEvidence>, Sha256), Problem> {
    if ["kept", "nan", "altered"].iter().any(|name| file.has(name)) {
        return Err(Problem::Form);
    }
    file.only(&["output", FURTHER[0], FURTHER[1]])?;
    let output = file.f32("output", &[inputs.batch(), inputs.vocab()])?;
    let pairs = inputs.logits().par_chunks_exact(inputs.vocab()).zip(output.par_chunks_exact(inputs.vocab()));
    let rows = pairs.map(|(logits, output)| RowEvidence::from_output(logits, output)).collect();
    Ok((rows, Sha256::of_f32(&output)))
}

/// The rows of recorded masks and counts.
fn rows_as_stated(file: &TensorFile<'_>, inputs: &Inputs) -> Result<Vec<RowEvidence>, Problem> {
    if !["kept", "nan", "altered"].iter().any(|name| file.has(name)) {
        return Err(Problem::Form);
    }
    file.only(&["kept", "nan", "altered", FURTHER[0], FURTHER[1]])?;
    let (batch, vocab) = (inputs.batch(), inputs.vocab());
    let bytes = vocab.div_ceil(8);
    let kept = file.u8("kept", &[batch, bytes])?;
    let (nan, altered) = (file.u32("nan", &[batch])?, file.u32("altered", &[batch])?);
    let rows = inputs.logits().par_chunks_exact(vocab).zip(kept.par_chunks_exact(bytes)).zip(nan).zip(altered);
    let rows = rows.enumerate().map(|(row, (((logits, kept), nan), altered))| {
        let kept = KeptSet::from_lsb_bytes(kept, vocab as u32).map_err(|error| match error {
            KeptSetError::Padding { byte } => Problem::Padding { row, byte },
            // The tensor's shape has been checked.
            KeptSetError::Length { .. } => Problem::Form,
        })?;
        RowEvidence::stated(row, logits, kept, nan, altered)
    });
    // Collected first, so that the error is always that of the first bad row.
    rows.collect::<Vec<_>>().into_iter().collect()
}

/// The digest of the output rebuilt from inputs and masks: the logit where kept, -inf elsewhere.
fn rebuild(inputs: &Inputs, rows: &[RowEvidence]) -> Sha256 {
    let mut hasher = Hasher::default();
    let mut output = vec![0.0; inputs.vocab()];
    for (logits, row) in inputs.logits().chunks_exact(inputs.vocab()).zip(rows) {
        for ((output, logits), &word) in output.chunks_mut(64).zip(logits.chunks(64)).zip(row.kept.words()) {
            for (bit, (output, &logit)) in output.iter_mut().zip(logits).enumerate() {
                *output = if word >> bit & 1 == 1 { logit } else { f32::NEG_INFINITY };
            }
        }
        hasher.update_f32(&output);
    }
    hasher.finish()
}
