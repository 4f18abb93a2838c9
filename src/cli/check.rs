//! `nucleus-gate check`: judge recorded evidence.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::load::{Files, Loaded};
use super::{Failure, screen};
use crate::fsio::{Existing, write_atomic};
use crate::gate::{self, ExitCode, Run, Selection};
use crate::receipt::{self, Evaluator};
use crate::report;

/// Judge the recorded evidence of a matrix under a policy: report, receipt, exit code
///
/// Exit codes: 0 every rule decided and passed; 1 a rule was violated; 2 wrong invocation, policy or matrix; 3 stopped
/// before a verdict; 4 nothing was evaluated; 5 drift; 70 internal error.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    reporting: Reporting,
    /// Judge this case alone. A selection never ends in a verdict: no receipt, exit code 3
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Judge this row of the case alone
    #[arg(long, value_name = "N", requires = "case")]
    row: Option<u32>,
}

/// What a judged run leaves behind.
#[derive(Debug, clap::Args)]
pub(super) struct Reporting {
    /// Where the receipt is written
    #[arg(long, value_name = "FILE", default_value = "nucleus-gate-receipt.json")]
    receipt: PathBuf,
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

impl Check {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let Loaded { policy, matrix, root } = self.files.load()?;
        let selection = self.case.clone().map(|case| Selection { case, row: self.row });
        let run = gate::run(&policy, &matrix, &gate::Context { root: &root, started, selection });
        self.reporting.report(&run, self.case.is_none())
    }
}

impl Reporting {
    /// Writes the files of a judged run, the receipt if it may have one, and prints it.
    pub(super) fn report(&self, run: &Run, with_receipt: bool) -> Result<ExitCode, Failure> {
        let mut files = Vec::new();
        for output in &self.output {
            files.push((output.path.as_path(), render(run, output.format, &report::Screen::plain())?.into_bytes()));
        }
        if with_receipt {
            files.push((self.receipt.as_path(), receipt(run)?));
        }
        let written = write_all(run, &files);
        let printed = screen::print(&render(run, self.format, &screen::stdout())?);
        written.and(printed)?;
        Ok(ExitCode::of(run))
    }
}

fn receipt(run: &Run) -> Result<Vec<u8>, Failure> {
    let evaluator = Evaluator::running()
        .map_err(|error| Failure::internal(format!("the running executable cannot be read: {error}")))?;
    receipt::receipt(run, &evaluator).map_err(|error| Failure::internal(error.to_string()))
}

/// Writes every file of the run, or none where they are larger than the policy allows.
fn write_all(run: &Run, files: &[(&Path, Vec<u8>)]) -> Result<(), Failure> {
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let limit = *run.policy.limits.max_artifact_bytes;
    if bytes > limit {
        let message = format!("the run would write {bytes} bytes; the policy allows {limit}");
        return Err(Failure::stopped("limit::artifact-bytes", message, "write fewer reports, or judge fewer cases"));
    }
    for (path, bytes) in files {
        write_atomic(path, bytes, Existing::Replace).map_err(|error| Failure::unwritten(&error))?;
    }
    Ok(())
}

fn render(run: &Run, format: Format, screen: &report::Screen) -> Result<String, Failure> {
    match format {
        Format::Human => Ok(report::human(run, screen)),
        Format::Json => report::json(run).map_err(|error| Failure::internal(error.to_string())),
    }
}
