//! The terminal, as far as it is known.

use std::io::{ErrorKind, IsTerminal, Write as _};

use super::Failure;
use crate::report::Screen;

/// Columns for a pipe or a file.
const DEFAULT_WIDTH: usize = 100;

/// Wider lines are hard to read.
const MAX_WIDTH: usize = 120;

/// Standard output.
pub(super) fn stdout() -> Screen {
    screen(std::io::stdout().is_terminal())
}

/// Standard error.
pub(super) fn stderr() -> Screen {
    screen(std::io::stderr().is_terminal())
}

/// Writes data to standard output. A reader that closed the pipe has what it wanted; anything else is an error.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::stopped("cli::stdout", format!("stdout: {error}"), "free the place that stdout goes to")),
    })
}

fn screen(terminal: bool) -> Screen {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let measured = terminal.then(terminal_size::terminal_size).flatten().map(|(width, _)| usize::from(width.0));
    let width = columns.or(measured).unwrap_or(DEFAULT_WIDTH).clamp(40, MAX_WIDTH);
    Screen { width, color: terminal && !set("NO_COLOR") && !dumb }
}

/// Says something on stderr that is neither data nor an error.
pub(super) fn note(text: &str) {
    // A closed stderr changes nothing of the outcome.
    let _ = writeln!(std::io::stderr().lock(), "note: {}", crate::text::sanitize(text));
}
