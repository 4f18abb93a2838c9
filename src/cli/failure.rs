//! Why a call ends before there is an outcome to report.

use crate::fsio::FileError;
use crate::gate::{ExitCode, Fault, FaultClass};
use crate::report::render_issues;
use crate::syntax::Issues;
use crate::text::sanitize;

/// A call that ends with a message on stderr.
#[derive(Debug)]
pub enum Failure {
    /// The issues of a policy, a matrix or a lock.
    Issues(Issues),
    /// More than one, all of which are said; the worst decides the exit code.
    Several(Vec<Failure>),
    /// Anything else.
    Message {
        /// How the process ends.
        exit: ExitCode,
        /// The stable code.
        code: String,
        /// What is wrong.
        message: String,
        /// The next step.
        help: String,
    },
}

impl Failure {
    /// A wrong invocation, or something that the call needs and that is not there.
    pub fn invocation(code: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Message { exit: ExitCode::Invocation, code: code.into(), message: message.into(), help: help.into() }
    }

    /// A stop before a verdict.
    pub fn stopped(code: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Message { exit: ExitCode::Stopped, code: code.into(), message: message.into(), help: help.into() }
    }

    /// Something is not the frozen thing, or not what was signed.
    pub fn drift(code: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Message { exit: ExitCode::Drift, code: code.into(), message: message.into(), help: help.into() }
    }

    /// What kept inputs from being had: the first, and how many more.
    pub fn of_faults(faults: &[Fault]) -> Self {
        let Some(first) = faults.first() else { return Self::internal("nothing was run, and nothing is wrong") };
        let exit = faults.iter().map(|fault| ExitCode::of_class(fault.class)).max().unwrap_or(ExitCode::Stopped);
        let more = match faults.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let message = format!("{}{more}", first.message);
        Self::Message { exit, code: first.code.clone(), message, help: first.help.clone() }
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> String {
        match self {
            Self::Issues(issues) => issues.to_string(),
            Self::Several(list) => list.iter().map(Self::message).collect::<Vec<_>>().join("; "),
            Self::Message { message, .. } => message.clone(),
        }
    }

    /// A file that could not be written: the run has no record, and so no verdict.
    pub fn unwritten(error: &FileError) -> Self {
        Self::stopped(error.code(), error.to_string(), "free the path, or name another file")
    }

    /// What the gate would say of a case.
    pub fn fault(fault: &Fault) -> Self {
        let exit = ExitCode::of_class(fault.class);
        Self::Message { exit, code: fault.code.clone(), message: fault.message.clone(), help: fault.help.clone() }
    }

    /// As a fault of the run that it ends.
    pub fn as_fault(&self) -> Fault {
        let (class, code, message, help) = match self {
            Self::Message { exit, code, message, help } => {
                let class = match exit {
                    ExitCode::Drift => FaultClass::Drift,
                    ExitCode::Invocation => FaultClass::Invocation,
                    ExitCode::Passed
                    | ExitCode::Violated
                    | ExitCode::Stopped
                    | ExitCode::NothingEvaluated
                    | ExitCode::Internal => FaultClass::Stopped,
                };
                (class, code.as_str(), message.clone(), help.as_str())
            }
            Self::Issues(_) | Self::Several(_) => (FaultClass::Stopped, "internal", self.message(), ""),
        };
        Fault { class, code: code.to_owned(), message, help: help.to_owned(), place: None }
    }

    /// An error of the program itself.
    pub fn internal(message: impl Into<String>) -> Self {
        let help = "this is a fault of nucleus-gate: report it with the command and the inputs".to_owned();
        Self::Message { exit: ExitCode::Internal, code: "internal".to_owned(), message: message.into(), help }
    }

    /// Says it on stderr, and gives the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        use std::io::Write as _;
        let screen = super::screen::stderr();
        let (text, exit) = match self {
            Self::Several(list) => {
                return list.iter().map(Self::report).fold(ExitCode::Passed, ExitCode::max);
            }
            Self::Issues(issues) => (render_issues(issues, &screen) + "\n", ExitCode::Invocation),
            Self::Message { exit, code, message, help } => {
                (format!("error[{code}]: {}\n  help: {}\n", sanitize(message), sanitize(help)), *exit)
            }
        };
        // A closed stderr changes nothing of the outcome.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        exit
    }
}
