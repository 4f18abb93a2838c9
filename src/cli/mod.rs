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
mod threads;
mod verify;

pub use failure::Failure;

use std::panic::{AssertUnwindSafe, catch_unwind};

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
    guarded(|| threads::start().and_then(|()| cli.command.run())).unwrap_or_else(|failure| failure.report())
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Check(check) => check.run(),
            Self::Run(run) => run.run(),
            Self::Capture(capture) => capture.run(),
            Self::Inputs(inputs) => inputs.run(),
            Self::Verify(verify) => verify.run(),
            Self::Policy(policy) => policy.run(),
            Self::Explain(explain) => explain.run(),
            Self::Keygen(keygen) => keygen.run(),
            Self::Oracle(oracle) => oracle.run(),
        }
    }
}

/// The last line of defence: a panic, of whatever thread, ends the call as an internal error.
fn guarded(call: impl FnOnce() -> Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
    // Nothing that the call left half-done is looked at again.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::internal(format!("it panicked: {}", said.unwrap_or("no reason was given"))))
    })
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
    fn a_panic_is_an_internal_error() {
        let ends =
            |call: &dyn Fn() -> Result<ExitCode, Failure>| guarded(call).unwrap_or_else(|failure| failure.report());
        assert_eq!(ends(&|| panic!("on purpose")), ExitCode::Internal);
        assert_eq!(ends(&|| panic!("{}", 1)), ExitCode::Internal);
        assert_eq!(ends(&|| rayon::join(|| panic!("on purpose"), || ()).0), ExitCode::Internal);
        assert_eq!(ends(&|| Ok(ExitCode::Violated)), ExitCode::Violated);
    }

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
