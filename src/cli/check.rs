//! `nucleus-gate check`: judge recorded evidence.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::load::{Files, Loaded};
use super::{Failure, screen};
use crate::dsse::SecretKey;
use crate::fsio::{Existing, write_atomic};
use crate::gate::{self, ExitCode, Run, Selection};
use crate::receipt::{self, Earlier, Evaluator, OutputError, Places};
use crate::report;

/// Judge the recorded evidence of a matrix under a policy: report, receipt, exit code
///
/// Exit codes: 0 every rule decided and passed; 1 a rule was violated; 2 wrong invocation, policy or matrix; 3 stopped
/// before a verdict; 4 nothing was evaluated; 5 drift; 70 internal error.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    files: Files,
    /// Where the receipt is written. Beside it: FILE.test-result.json for a run that decided, and with --sign an envelope
    /// of each (.dsse.json)
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
    /// Judge this case alone. A selection never ends in a verdict: no receipt, exit code 3
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Judge this row of the case alone
    #[arg(long, value_name = "N", requires = "case")]
    row: Option<u32>,
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

impl Check {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let Loaded { policy, matrix, root, places } = self.files.load()?;
        let key = self.sign.as_deref().map(SecretKey::read).transpose();
        let key = key.map_err(|error| {
            Failure::invocation(error.code(), error.to_string(), "make a key pair with: nucleus-gate keygen FILE")
        })?;
        // Whatever stands in the receipt's way is found before anything is judged.
        let earlier = if self.case.is_none() { receipt::earlier(&self.receipt).map_err(obstructed)? } else { None };
        let selection = self.case.clone().map(|case| Selection { case, row: self.row });
        let run = gate::run(&policy, &matrix, &gate::Context { root: &root, started, selection });
        let written = self.write(&run, &places, earlier.as_ref(), key.as_ref());
        let printed = screen::print(&render(&run, self.format, &screen::stdout())?);
        let failures = [written.err(), printed.err()].into_iter().flatten().map(|failure| failure.report());
        Ok(failures.fold(ExitCode::of(&run), ExitCode::max))
    }

    /// Writes every file of the run, or none where they are larger than the policy allows.
    fn write(
        &self,
        run: &Run,
        places: &Places,
        earlier: Option<&Earlier>,
        key: Option<&SecretKey>,
    ) -> Result<(), Failure> {
        let mut files = Vec::new();
        for output in &self.output {
            files.push((output.path.as_path(), render(run, output.format, &report::Screen::plain())?.into_bytes()));
        }
        let receipt = match self.case {
            Some(_) => None,
            None => {
                let statement = receipt::statement(run, &evaluator()?, places);
                let outputs = receipt::Outputs::new(&self.receipt, statement, earlier, self.replace, key);
                Some(outputs.map_err(obstructed)?)
            }
        };
        let reports: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let bytes = reports + receipt.as_ref().map_or(0, receipt::Outputs::bytes);
        let limit = *run.policy.limits.max_artifact_bytes;
        if bytes > limit {
            let message = format!("the run would write {bytes} bytes; the policy allows {limit}");
            return Err(Failure::stopped(
                "limit::artifact-bytes",
                message,
                "write fewer reports, or judge fewer cases",
            ));
        }
        for (path, bytes) in files {
            write_atomic(path, &bytes, Existing::Replace).map_err(|error| Failure::unwritten(&error))?;
        }
        receipt.map_or(Ok(()), |outputs| outputs.write().map_err(|error| Failure::unwritten(&error)))
    }
}

fn obstructed(error: OutputError) -> Failure {
    let help = match &error {
        OutputError::File(_) | OutputError::Foreign { .. } => "name another file with --receipt FILE",
        OutputError::SameRun { .. } => {
            "find out why it differs (verify --replay says where); to replace the earlier receipt and be named as doing \
             so: --replace"
        }
        OutputError::Receipt(_) => return Failure::internal(error.to_string()),
    };
    Failure::invocation(error.code(), error.to_string(), help)
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
