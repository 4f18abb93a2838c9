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
            if error.use_stderr() {
                return misused(&error);
            }
            // Help and version are answers, not errors: they must reach their reader.
            return if error.print().is_ok() { ExitCode::Passed } else { ExitCode::Stopped };
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

/// Says what is wrong with the arguments, which it quotes: they may hold anything.
fn misused(error: &clap::Error) -> ExitCode {
    use std::io::Write as _;
    let text = safe(&error.render().to_string());
    // A closed stderr changes nothing of the outcome.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::Invocation
}

/// A text of several lines, each safe to show.
fn safe(text: &str) -> String {
    text.lines().map(|line| crate::text::sanitize(line).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_arguments_steers_no_terminal() {
        let said = |argument: &str| {
            let error = Cli::try_parse_from(["nucleus-gate", argument]).unwrap_err();
            safe(&error.render().to_string())
        };
        let plain = Cli::try_parse_from(["nucleus-gate", "chekc"]).unwrap_err().render().to_string();
        assert_eq!(said("chekc"), plain);
        let shown = said("a\u{1b}[31m\u{202e}\u{9b}b");
        assert!(shown.contains("\u{fffd}\u{fffd}b"), "{shown:?}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{shown:?}");
    }
}
