//! `nucleus-gate check`: judge recorded evidence.

use std::time::Instant;

use super::Failure;
use super::load::{Files, Loaded, Raw};
use super::reporting::Reporting;
use crate::digest::Sha256;
use crate::gate::{self, ExitCode, Selection};
use crate::policy::Freeze;

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
    /// Judge a policy or matrix that is not the frozen one, or a project without a lock; the report and the receipt say so
    #[arg(long)]
    unfrozen: bool,
    /// Refuse any policy but the one with this SHA-256
    #[arg(long, value_name = "HEX", value_parser = digest)]
    expect_policy_sha256: Option<Sha256>,
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
        let files = self.files.read()?;
        let refused = self.refuse_unfrozen(&files.policy, &files.freeze);
        // What is not listed may simply be the wrong file; what has changed since is drift, whether it decodes or not.
        let drifted = files.freeze.has_changed() || self.expect_policy_sha256.is_some();
        let Loaded { policy, matrix, root, places, freeze } = match (files.decode(), refused) {
            (Ok(loaded), Ok(())) => loaded,
            (Err(undecodable), Err(refused)) if drifted => return Err(Failure::Several(vec![undecodable, refused])),
            (Err(failure), _) | (Ok(_), Err(failure)) => return Err(failure),
        };
        let with_receipt = self.case.is_none();
        self.reporting.spare_inputs(&policy, &matrix, root.path(), with_receipt)?;
        let prepared = self.reporting.prepare(with_receipt)?;
        let selection = self.case.clone().map(|case| Selection { case, row: self.row });
        let mut run = gate::run(&policy, &matrix, &gate::Context { root: &root, started, selection });
        run.freeze = freeze;
        self.reporting.report(run, &places, &prepared)
    }

    /// What is not frozen is not judged, unless the call says so.
    fn refuse_unfrozen(&self, policy: &Raw, freeze: &Freeze) -> Result<(), Failure> {
        let found = policy.sha256();
        if let Some(expected) = self.expect_policy_sha256.filter(|expected| *expected != found) {
            let message = format!("{} hashes to {found}; the call expects {expected}", policy.name);
            let help = "use the expected policy, or review the change and pin its hash";
            return Err(Failure::drift("lock::other-policy", message, help));
        }
        match (freeze.refusal(), freeze.complaint()) {
            (Some(refusal), Some(complaint)) if !self.unfrozen => {
                Err(Failure::drift(refusal.code, complaint, refusal.help))
            }
            _ => Ok(()),
        }
    }
}

fn digest(text: &str) -> Result<Sha256, String> {
    Sha256::parse(text).ok_or_else(|| "expected 64 lowercase hexadecimal digits".to_owned())
}
