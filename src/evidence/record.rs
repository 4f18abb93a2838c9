//! Writes evidence: what a harness of ours records.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rayon::prelude::*;
use safetensors::Dtype;

use super::bundle::SUBJECT_FILE;
use super::case::RowEvidence;
use super::dispatch::Dispatch;
use super::subject::Subject;
use crate::digest::Sha256;
use crate::fsio::{Existing, FileError, Hold, write_atomic};
use crate::inputs::Inputs;
use crate::tensors::{Tensor, encode};

/// One case as it ran.
#[derive(Debug, Clone, Copy)]
pub struct Recording<'a> {
    /// The case's name.
    pub case: &'a str,
    /// What the kernel saw.
    pub inputs: &'a Inputs,
    /// The masked logits, fp32, [batch, vocab], row-major.
    pub output: &'a [f32],
    /// How it was launched.
    pub dispatch: &'a Dispatch,
    /// Where the kernel was called again on the same batch: the tokens of each row whose output bits differed, [batch].
    pub repeat_differs: Option<&'a [u32]>,
}

/// Why a recording was not written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The output is not of the inputs' shape.
    #[error("case `{case}`: {found} output logits, expected {expected}")]
    Shape {
        /// The case.
        case: String,
        /// Logits given.
        found: usize,
        /// Logits expected.
        expected: usize,
    },
    /// A case's name makes no file name, or the cases are not those that the subject lists, in its order.
    #[error("case `{case}` is not the one that subject.json lists there, or makes no file name")]
    Case {
        /// The case.
        case: String,
    },
    /// A file or the folder could not be written, or the folder exists.
    #[error(transparent)]
    File(#[from] FileError),
    /// `subject.json` could not be written.
    #[error("subject.json: {0}")]
    Subject(#[from] serde_json::Error),
}

impl RecordingError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "recording-shape",
            Self::Case { .. } => "recording-case",
            Self::File(error) => error.code(),
            Self::Subject(_) => "recording-subject",
        }
    }
}

/// The evidence file of a recording. Masks and counts where the output is nothing but input logits and -inf, so that
/// masks rebuild it; else the whole output, so that nothing of a faulty one is lost.
///
/// # Errors
/// [`RecordingError::Shape`].
pub fn encode_case(recording: &Recording<'_>) -> Result<Vec<u8>, RecordingError> {
    let Recording { case, inputs, output, dispatch, repeat_differs } = *recording;
    let (batch, vocab, expected) = (inputs.batch(), inputs.vocab(), inputs.logits().len());
    if output.len() != expected {
        return Err(RecordingError::Shape { case: case.to_owned(), found: output.len(), expected });
    }
    if let Some(rows) = repeat_differs.filter(|rows| rows.len() != batch) {
        return Err(RecordingError::Shape { case: case.to_owned(), found: rows.len(), expected: batch });
    }
    let pairs = inputs.logits().par_chunks_exact(vocab).zip(output.par_chunks_exact(vocab));
    let rows: Vec<RowEvidence> = pairs.map(|(logits, output)| RowEvidence::from_output(logits, output)).collect();
    let metadata = BTreeMap::from([
        ("case", case.to_owned()),
        ("batch", batch.to_string()),
        ("vocab", vocab.to_string()),
        ("logits_sha256", inputs.logits_sha256().to_string()),
        ("p_sha256", inputs.p_sha256().to_string()),
        ("output_sha256", Sha256::of_f32(output).to_string()),
        ("dispatch", dispatch.canonical.clone()),
    ]);
    let counts = |name, counts: &[u32]| {
        let data = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        Tensor { name, dtype: Dtype::U32, shape: vec![batch], data }
    };
    let mut tensors: Vec<Tensor<'_>> = repeat_differs.map(|rows| counts("repeat_differs", rows)).into_iter().collect();
    if rows.iter().any(|row| row.nan > 0 || row.altered > 0) {
        let data = output.iter().flat_map(|value| value.to_le_bytes()).collect();
        let output = Tensor { name: "output", dtype: Dtype::F32, shape: vec![batch, vocab], data };
        tensors.push(output);
        return Ok(encode(&metadata, &tensors));
    }
    let zeros = vec![0; batch];
    let data = rows.iter().flat_map(|row| row.kept.to_lsb_bytes()).collect();
    let kept = Tensor { name: "kept", dtype: Dtype::U8, shape: vec![batch, vocab.div_ceil(8)], data };
    tensors.extend([counts("altered", &zeros), counts("nan", &zeros), kept]);
    Ok(encode(&metadata, &tensors))
}

/// Writes a bundle of `subject` and its `cases` (name and evidence file, in the subject's order) as `folder`, whole or
/// not at all. An existing folder is not replaced.
///
/// # Errors
/// [`RecordingError::Case`], [`RecordingError::File`] or [`RecordingError::Subject`].
pub fn write_bundle(folder: &Path, subject: &Subject, cases: &[(&str, Vec<u8>)]) -> Result<(), RecordingError> {
    let file_name = |case: &str| !case.is_empty() && !case.contains(['/', '\\']) && !case.contains(char::is_control);
    for index in 0..cases.len().max(subject.cases.len()) {
        let (given, listed) = (cases.get(index).map(|(case, _)| *case), subject.cases.get(index).map(String::as_str));
        if given != listed || !given.is_some_and(file_name) {
            return Err(RecordingError::Case { case: given.or(listed).unwrap_or_default().to_owned() });
        }
    }
    let path = folder.to_owned();
    match fs::symlink_metadata(folder) {
        Ok(_) => return Err(FileError::Exists { path }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(FileError::Io { path, source }.into()),
    }
    let io = |source| FileError::Io { path: path.clone(), source };
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _hold = Hold::signals();
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nucleus-gate-").suffix(".tmp").permissions(fs::Permissions::from_mode(0o755));
    let temporary = builder.tempdir_in(parent).map_err(io)?;
    for (case, bytes) in cases {
        write_atomic(&temporary.path().join(format!("{case}.safetensors")), bytes, Existing::Keep)?;
    }
    let mut text = serde_json::to_vec_pretty(subject)?;
    text.push(b'\n');
    write_atomic(&temporary.path().join(SUBJECT_FILE), &text, Existing::Keep)?;
    fs::rename(temporary.path(), folder).map_err(io)?;
    let _renamed = temporary.keep();
    Ok(())
}
