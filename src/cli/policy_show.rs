//! `nucleus-gate policy show`: the policy in plain sentences.

use super::load::Files;
use super::{Failure, screen};
use crate::gate::ExitCode;
use crate::report;

/// Show a policy in plain sentences, one a rule, with its two hashes
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The policy: a file, or builtin:NAME [default: policies/split-top-p.kdl]
    policy: Option<String>,
}

impl Show {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = Files { policy: self.policy.clone(), matrix: None, root: None };
        let policy = files.policy_alone()?;
        screen::print(&report::policy::show(&policy, &screen::stdout()))?;
        Ok(ExitCode::Passed)
    }
}
