//! Captures evidence: runs kernels over the cases of a matrix and encodes what they did.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::backend::{Backend, BackendError, Kernel, Launch};
use crate::digest::Sha256;
use crate::evidence::{
    Device, Dispatch, DispatchError, Harness, Recording, RecordingError, SCHEMA, Source, Subject, encode_case,
};
use crate::inputs::{Inputs, InputsError};

/// Runs of each kernel on each batch: the first is the evidence, the second is compared with it.
const REPEATS: usize = 2;

/// A subject to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The subject's name, as a policy knows it.
    pub name: String,
    /// The kernel that it is.
    pub kernel: Kernel,
}

/// A subject's evidence, not written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Who it is.
    pub subject: Subject,
    /// Each case's name and evidence file, in order.
    pub cases: Vec<(String, Vec<u8>)>,
}

/// Why a capture ended without evidence.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError<E> {
    /// A case's inputs are missing or not the pinned ones.
    #[error("a case's inputs cannot be had")]
    Inputs(E),
    /// A kernel gave no output.
    #[error("case `{case}`: {error}")]
    Backend {
        /// The case.
        case: String,
        /// Why.
        error: BackendError,
    },
    /// The evidence would be larger than allowed.
    #[error("the evidence grows beyond {limit} bytes with case `{case}`")]
    TooLarge {
        /// The case that passed the limit.
        case: String,
        /// The limit.
        limit: u64,
    },
    /// The rows of a case could not be run alone.
    #[error(transparent)]
    Row(#[from] InputsError),
    /// The evidence could not be encoded.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The dispatch could not be encoded.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// What to capture, and within which limits.
pub struct Capture<'a> {
    /// What runs the kernels.
    pub backend: &'a dyn Backend,
    /// The subjects. All see the very same input bytes.
    pub subjects: &'a [Captured],
    /// The cases' names, in order.
    pub cases: &'a [String],
    /// The program that captures.
    pub harness: Harness,
    /// Bytes that all evidence files together may take.
    pub max_bytes: u64,
    /// Asked between runs; once true, the capture ends.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told after each case how many are done.
    pub progress: &'a (dyn Fn(usize) + Sync),
}

/// A case's evidence files, one a subject.
type Files = Vec<Vec<u8>>;

type Outcome<E> = Result<Files, CaptureError<E>>;

impl Capture<'_> {
    /// Runs every case, `inputs` giving the inputs of the case of an index, spread over the backend's slots. The result
    /// does not depend on how many there are.
    ///
    /// # Errors
    /// The first case's, in their order, that failed.
    pub fn run<E: Send>(
        &self,
        inputs: &(dyn Fn(usize) -> Result<Inputs, E> + Sync),
    ) -> Result<Vec<Evidence>, CaptureError<E>> {
        let done: Vec<Mutex<Option<Outcome<E>>>> = self.cases.iter().map(|_| Mutex::new(None)).collect();
        let (next, finished, bytes, failed) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let work = |slot: usize| {
            while !failed.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let (Some(case), Some(place)) = (self.cases.get(index), done.get(index)) else { break };
                let files = self.case(slot, case, index, inputs).and_then(|files| {
                    let size = files.iter().map(Vec::len).sum();
                    let total = bytes.fetch_add(size, Ordering::Relaxed) + size;
                    let limit = self.max_bytes;
                    let within = total as u64 <= limit;
                    if within { Ok(files) } else { Err(CaptureError::TooLarge { case: case.clone(), limit }) }
                });
                failed.fetch_or(files.is_err(), Ordering::Relaxed);
                if let Ok(mut place) = place.lock() {
                    *place = Some(files);
                }
                (self.progress)(finished.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        // Where this thread is the pool, another would wait for it.
        let others = if rayon::current_thread_index().is_some() { 0 } else { self.backend.slots() };
        let work = &work;
        std::thread::scope(|scope| {
            for slot in 1..others {
                // Slots share the cases: without a thread for this one, the others take its part.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || work(slot));
            }
            work(0);
        });
        let mut evidence: Vec<Evidence> = self
            .subjects
            .iter()
            .map(|subject| Evidence { subject: self.subject(subject), cases: Vec::new() })
            .collect();
        for (case, files) in self.cases.iter().zip(done) {
            let stopped = || CaptureError::Backend { case: case.clone(), error: BackendError::Stopped };
            let files = files.into_inner().ok().flatten().ok_or_else(stopped)??;
            for (evidence, file) in evidence.iter_mut().zip(files) {
                evidence.cases.push((case.clone(), file));
            }
        }
        Ok(evidence)
    }

    fn case<E>(
        &self,
        slot: usize,
        case: &str,
        index: usize,
        inputs: &(dyn Fn(usize) -> Result<Inputs, E> + Sync),
    ) -> Result<Files, CaptureError<E>> {
        let inputs = inputs(index).map_err(CaptureError::Inputs)?;
        let failed = |error| CaptureError::Backend { case: case.to_owned(), error };
        let kernels: Vec<Kernel> = self.subjects.iter().map(|subject| subject.kernel).collect();
        let launches = self.backend.run(slot, &inputs, &kernels, REPEATS, self.stop).map_err(failed)?;
        let alone = self.rows_alone(slot, &inputs, &kernels, &launches).map_err(|error| match error {
            RowError::Inputs(error) => error.into(),
            RowError::Backend(error) => failed(error),
        })?;
        let mut files = Files::new();
        for (launches, alone) in launches.into_iter().zip(alone) {
            let [first, second] = launches.as_slice() else { continue };
            let mut facts = first.dispatch.clone();
            facts.insert("rows_alone".to_owned(), alone);
            let dispatch = Dispatch::read(&Value::Object(facts).to_string())?;
            let differs = differing(&first.output, &second.output, inputs.vocab());
            let recording = Recording {
                case,
                inputs: &inputs,
                output: &first.output,
                dispatch: &dispatch,
                repeat_differs: Some(&differs),
            };
            files.push(encode_case(&recording)?);
        }
        Ok(files)
    }

    /// The tokens whose output bits differ where a row runs alone: of the first, the middle and the last row, for each
    /// kernel. A fact for the record, as an object of counts by row.
    fn rows_alone(
        &self,
        slot: usize,
        inputs: &Inputs,
        kernels: &[Kernel],
        launches: &[Vec<Launch>],
    ) -> Result<Vec<Value>, RowError> {
        let mut sample = vec![0, inputs.batch() / 2, inputs.batch() - 1];
        sample.dedup();
        let mut counts: Vec<Map<String, Value>> = kernels.iter().map(|_| Map::new()).collect();
        for row in sample {
            let (Some(logits), Some(&p)) = (inputs.row(row), inputs.p().get(row)) else { continue };
            let single = Inputs::new(inputs.vocab(), logits.to_vec(), vec![p]).map_err(RowError::Inputs)?;
            let alone = self.backend.run(slot, &single, kernels, 1, self.stop).map_err(RowError::Backend)?;
            for ((counts, alone), batch) in counts.iter_mut().zip(alone).zip(launches) {
                let in_batch = batch.first().and_then(|first| first.output.chunks_exact(inputs.vocab()).nth(row));
                let (Some(alone), Some(in_batch)) = (alone.first(), in_batch) else { continue };
                counts.insert(
                    row.to_string(),
                    json!(differing(&alone.output, in_batch, inputs.vocab()).iter().sum::<u32>()),
                );
            }
        }
        Ok(counts.into_iter().map(Value::Object).collect())
    }

    fn subject(&self, captured: &Captured) -> Subject {
        let machine = self.backend.machine();
        let source = |file: super::SourceFile| Source { path: file.path.to_owned(), sha256: file.sha256() };
        Subject {
            schema: SCHEMA.to_owned(),
            name: captured.name.clone(),
            description: captured.kernel.description().to_owned(),
            engine: "nucleus-gate".to_owned(),
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            sources: self.backend.sources(captured.kernel).into_iter().map(source).collect(),
            device: Device {
                name: machine.device.clone(),
                capability: machine.capability,
                multiprocessors: Some(machine.multiprocessors),
            },
            runtime: machine.runtime.clone(),
            harness: self.harness.clone(),
            cases: self.cases.to_vec(),
            patch_of: None,
        }
    }
}

enum RowError {
    Inputs(InputsError),
    Backend(BackendError),
}

/// Values whose bits differ, by row.
fn differing(one: &[f32], other: &[f32], vocab: usize) -> Vec<u32> {
    let differ = |(a, b): (&[f32], &[f32])| a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count() as u32;
    one.chunks_exact(vocab).zip(other.chunks_exact(vocab)).map(differ).collect()
}

/// The harness that this program is: the digest of the running executable.
///
/// # Errors
/// Where it cannot be read.
pub fn this_harness() -> std::io::Result<Harness> {
    Ok(Harness { name: "nucleus-gate".to_owned(), sha256: Sha256::of_this_program()? })
}
