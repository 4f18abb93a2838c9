//! The command line: one file a subcommand, no logic of its own.

mod backend;
mod capture;
mod check;
mod explain;
mod failure;
mod git;
mod inputs;
mod keygen;
mod load;
mod oracle;
mod policy;
mod policy_diff;
mod policy_freeze;
mod policy_lint;
mod policy_show;
mod policy_test;
mod reporting;
mod run;
mod screen;
mod verify;

pub use failure::Failure;

use clap::{Parser, Subcommand};

use crate::gate::ExitCode;

/// Hold two versions of a top-p sampling kernel against a certified oracle, row by row, under a frozen policy.
#[derive(Debug, Parser)]
#[command(name = "nucleus-gate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Run(run::Run),
    Capture(capture::Capture),
    Inputs(inputs::Inputs),
    Verify(verify::Verify),
    #[command(subcommand)]
    Policy(policy::Policy),
    Explain(explain::Explain),
    Keygen(keygen::Keygen),
    Oracle(oracle::Oracle),
}

/// Runs the command line of this process. Never panics: an internal error is exit code 70.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors: they must reach their reader.
            let printed = error.print().is_ok();
            return match (error.use_stderr(), printed) {
                (true, _) => ExitCode::Invocation,
                (false, true) => ExitCode::Passed,
                (false, false) => ExitCode::Stopped,
            };
        }
    };
    let outcome = match cli.command {
        Command::Check(check) => check.run(),
        Command::Run(run) => run.run(),
        Command::Capture(capture) => capture.run(),
        Command::Inputs(inputs) => inputs.run(),
        Command::Verify(verify) => verify.run(),
        Command::Policy(policy) => policy.run(),
        Command::Explain(explain) => explain.run(),
        Command::Keygen(keygen) => keygen.run(),
        Command::Oracle(oracle) => oracle.run(),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
