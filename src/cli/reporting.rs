//! What a judged run leaves behind: the report on stdout and in files, the receipt and its envelope.

use std::path::{Path, PathBuf};

use super::{Failure, keygen, screen};
use crate::dsse::SecretKey;
use crate::fsio::{Existing, folder, read_bounded, write_atomic};
use crate::gate::{ExitCode, Run};
use crate::matrix::{Matrix, Origin};
use crate::policy::{LOCK_PATH, Policy};
use crate::receipt::{self, Earlier, Evaluator, OutputError, Places};
use crate::report;

/// The options of every call that judges.
#[derive(Debug, clap::Args)]
pub(super) struct Reporting {
    /// Where the receipt is written. Beside it, named as FILE without .json: FILE.test-result.json for a run that decided,
    /// and with --sign an envelope of each (.dsse.json)
    #[arg(long, value_name = "FILE", default_value = "nucleus-gate-receipt.json")]
    receipt: PathBuf,
    /// Replace the receipt of an earlier run of this policy and matrix that came to something else; the new one names it
    #[arg(long)]
    replace: bool,
    /// Sign the receipt with this secret key (Ed25519, PKCS#8 PEM)
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// What stdout shows
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Also write the report to a file, as in json=report.json
    #[arg(long, value_name = "FORMAT=FILE", value_parser = output)]
    output: Vec<Output>,
}

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Human,
    Json,
}

/// A report in a file.
#[derive(Debug, Clone)]
struct Output {
    format: Format,
    path: PathBuf,
}

fn output(text: &str) -> Result<Output, String> {
    let (format, path) = text.split_once('=').ok_or("write FORMAT=FILE, as in json=report.json")?;
    let format = <Format as clap::ValueEnum>::from_str(format, false)?;
    if path.is_empty() {
        return Err("the file's name is missing after `=`".to_owned());
    }
    Ok(Output { format, path: Path::new(path).to_path_buf() })
}

/// What must be in order before anything is judged: the key, and whatever stands in the receipt's way.
pub(super) struct Prepared {
    key: Option<SecretKey>,
    earlier: Option<Earlier>,
    with_receipt: bool,
    /// Bytes that the run has written before it is judged.
    written: u64,
}

impl Prepared {
    /// Counts what the run has written already to what it may write.
    pub(super) fn after(self, written: u64) -> Self {
        Self { written, ..self }
    }
}

impl Reporting {
    /// Reads the key and the earlier receipt. A call that judges a part of a matrix gets no receipt.
    pub(super) fn prepare(&self, with_receipt: bool) -> Result<Prepared, Failure> {
        self.each_once(with_receipt)?;
        let key = self.sign.as_deref().map(keygen::read_secret).transpose().map_err(|error| {
            Failure::invocation(error.code(), error.to_string(), "make a key pair with: nucleus-gate keygen FILE")
        })?;
        let earlier = if with_receipt { receipt::earlier(&self.receipt).map_err(obstructed)? } else { None };
        Ok(Prepared { key, earlier, with_receipt, written: 0 })
    }

    /// Every file that the call may write.
    fn outputs(&self, with_receipt: bool) -> Vec<PathBuf> {
        let receipts =
            with_receipt.then(|| [vec![self.receipt.clone()], receipt::beside(&self.receipt).to_vec()].concat());
        receipts.into_iter().flatten().chain(self.output.iter().map(|output| output.path.clone())).collect()
    }

    /// That no file is written twice, and none over the key.
    fn each_once(&self, with_receipt: bool) -> Result<(), Failure> {
        let outputs = self.outputs(with_receipt);
        let resolved: Vec<PathBuf> = outputs.iter().map(|path| resolve(path)).collect();
        for (index, (path, found)) in outputs.iter().zip(&resolved).enumerate() {
            if resolved.iter().take(index).any(|before| before == found) {
                let message = format!("{} would be written twice", path.display());
                return Err(Failure::invocation("cli::output-twice", message, "name another file with --output"));
            }
        }
        self.spare(with_receipt, self.sign.iter().cloned())?;
        self.output.iter().try_for_each(|output| replaceable(&output.path))
    }

    /// That no file is written over one of these, or into one of these folders.
    fn spare(&self, with_receipt: bool, inputs: impl Iterator<Item = PathBuf>) -> Result<(), Failure> {
        let inputs: Vec<PathBuf> =
            inputs.flat_map(|path| [Some(resolve(&path)), path.canonicalize().ok()]).flatten().collect();
        for output in self.outputs(with_receipt) {
            let found = resolve(&output);
            if inputs.iter().any(|input| found.starts_with(input)) {
                let message = format!("{} is an input of this run, or part of one", output.display());
                return Err(Failure::invocation("cli::output-is-input", message, "name another file to write"));
            }
        }
        Ok(())
    }

    /// That no file is written over what the run reads: policy, matrix, lock, inputs and evidence.
    pub(super) fn spare_inputs(
        &self,
        policy: &Policy,
        matrix: &Matrix,
        root: &Path,
        with_receipt: bool,
    ) -> Result<(), Failure> {
        let files = matrix.cases.iter().filter_map(|case| match &case.origin {
            Origin::File { path, .. } => Some(path.value.as_str()),
            Origin::Generated { .. } => None,
        });
        let inside =
            files.chain(matrix.subjects.iter().map(|subject| subject.bundle.value.as_str())).chain([LOCK_PATH]);
        let named = [policy.source.name(), matrix.source.name()].map(PathBuf::from);
        self.spare(with_receipt, named.into_iter().chain(inside.map(|path| root.join(path))))
    }

    /// Writes the files of a judged run and prints its report. A file or a screen that fails is worse than a pass: what is
    /// shown of a run without its files is no pass either.
    pub(super) fn report(&self, mut run: Run, places: &Places, prepared: &Prepared) -> Result<ExitCode, Failure> {
        let written = self.write(&run, places, prepared);
        if let Err(failure) = &written {
            run.unrecorded(failure.as_fault());
        }
        let mut text = render(&run, self.format, &screen::stdout())?;
        if let (Format::Human, true, Ok(replaced)) = (self.format, prepared.with_receipt, &written) {
            text += &format!("  receipt    {}\n", crate::text::sanitize(&self.receipt.display().to_string()));
            for what in replaced {
                text += &format!("  replaces   {}\n", crate::text::sanitize(what));
            }
        }
        let printed = screen::print(&text);
        let failures = [written.err(), printed.err()].into_iter().flatten().map(|failure| failure.report());
        Ok(failures.fold(ExitCode::of(&run), ExitCode::max))
    }

    /// Writes every file of the run, or none where they are larger than the policy allows. Gives what was replaced.
    fn write(&self, run: &Run, places: &Places, prepared: &Prepared) -> Result<Vec<String>, Failure> {
        let mut files = Vec::new();
        for output in &self.output {
            files.push((output.path.as_path(), render(run, output.format, &report::Screen::plain())?.into_bytes()));
        }
        let receipt = if prepared.with_receipt { Some(self.receipt(run, places, prepared)?) } else { None };
        let reports: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let bytes = prepared.written + reports + receipt.as_ref().map_or(0, receipt::Outputs::bytes);
        let limit = *run.policy.limits.max_artifact_bytes;
        if bytes > limit {
            let message = format!("all files of the run would be {bytes} bytes; the policy allows {limit}");
            let help = "write fewer reports, or judge fewer cases";
            return Err(Failure::stopped("limit::artifact-bytes", message, help));
        }
        let claim = receipt.as_ref().map(receipt::Outputs::claim).transpose().map_err(|error| match error {
            OutputError::File(error) => Failure::unwritten(&error),
            other => obstructed(other),
        })?;
        for (path, bytes) in files {
            write_atomic(path, &bytes, Existing::Replace).map_err(|error| Failure::unwritten(&error))?;
        }
        let replaced = receipt.as_ref().map(receipt::Outputs::replaced).unwrap_or_default();
        claim.map_or(Ok(()), |claim| claim.write().map_err(|error| Failure::unwritten(&error)))?;
        Ok(replaced)
    }

    fn receipt(&self, run: &Run, places: &Places, prepared: &Prepared) -> Result<receipt::Outputs, Failure> {
        let statement = receipt::statement(run, &evaluator()?, places);
        let (earlier, key) = (prepared.earlier.as_ref(), prepared.key.as_ref());
        receipt::Outputs::new(&self.receipt, statement, earlier, self.replace, key).map_err(obstructed)
    }
}

fn obstructed(error: OutputError) -> Failure {
    let help = match &error {
        OutputError::File(_) | OutputError::Foreign { .. } | OutputError::Beside { .. } => {
            "name another file with --receipt FILE"
        }
        OutputError::SameRun { .. } => {
            "find out why it differs (verify --replay says where); to replace the earlier receipt and be named as doing \
             so: --replace"
        }
        OutputError::Changed { .. } => {
            "see what the other call came to; a run that did not please is not repeated until one does"
        }
        OutputError::Locked { .. } => {
            let help = "let the other process end, or name a file in another folder with --receipt FILE";
            return Failure::stopped(error.code(), error.to_string(), help);
        }
        OutputError::Receipt(_) => return Failure::internal(error.to_string()),
    };
    Failure::invocation(error.code(), error.to_string(), help)
}

/// That nothing stands at `path`, or an earlier report.
fn replaceable(path: &Path) -> Result<(), Failure> {
    let refuse = |code: &str, why: String| {
        let message = format!("{}: {why}; it is not replaced", path.display());
        Err(Failure::invocation(code, message, "name another file with --output"))
    };
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(meta) if !meta.is_file() => refuse("file-not-regular", "not a regular file".to_owned()),
        Ok(_) => match read_bounded(path, receipt::MAX_BYTES) {
            Ok(bytes) if report::is_report(&bytes) => Ok(()),
            Ok(_) => refuse("cli::output-foreign", "not a report of nucleus-gate".to_owned()),
            Err(error) => refuse(error.code(), error.reason()),
        },
    }
}

/// Where a file lies or will lie, through links of its folder. A link at its end is not followed.
fn resolve(path: &Path) -> PathBuf {
    match (folder(path).canonicalize(), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        (Err(_), _) | (_, None) => path.to_owned(),
    }
}

/// This program, as receipts name it.
pub(super) fn evaluator() -> Result<Evaluator, Failure> {
    Evaluator::running().map_err(|error| Failure::internal(format!("the running executable cannot be read: {error}")))
}

fn render(run: &Run, format: Format, screen: &report::Screen) -> Result<String, Failure> {
    match format {
        Format::Human => Ok(report::human(run, screen)),
        Format::Json => report::json(run).map_err(|error| Failure::internal(error.to_string())),
    }
}
