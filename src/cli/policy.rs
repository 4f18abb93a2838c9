//! `nucleus-gate policy`: for those who write policies and those who review them.

use super::{Failure, policy_diff, policy_freeze, policy_lint, policy_show, policy_test};
use crate::gate::ExitCode;

/// Lint, show, test, freeze and compare policies
#[derive(Debug, clap::Subcommand)]
pub(super) enum Policy {
    Lint(policy_lint::Lint),
    Show(policy_show::Show),
    Test(policy_test::Test),
    Freeze(policy_freeze::Freeze),
    Diff(policy_diff::Diff),
}

impl Policy {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Lint(lint) => lint.run(),
            Self::Show(show) => show.run(),
            Self::Test(test) => test.run(),
            Self::Freeze(freeze) => freeze.run(),
            Self::Diff(diff) => diff.run(),
        }
    }
}
