//! `nucleus-gate check`: judge recorded evidence.

use std::time::Instant;

use super::Failure;
use super::load::{Files, Loaded};
use super::reporting::Reporting;
use crate::gate::{self, ExitCode, Selection};

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

impl Check {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let Loaded { policy, matrix, root, places } = self.files.load()?;
        let prepared = self.reporting.prepare(self.case.is_none())?;
        let selection = self.case.clone().map(|case| Selection { case, row: self.row });
        let run = gate::run(&policy, &matrix, &gate::Context { root: &root, started, selection });
        self.reporting.report(&run, &places, &prepared)
    }
}
