//! The terminal, as far as it is known.

use std::io::IsTerminal;

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

fn screen(terminal: bool) -> Screen {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let measured = terminal.then(terminal_size::terminal_size).flatten().map(|(width, _)| usize::from(width.0));
    let width = columns.or(measured).unwrap_or(DEFAULT_WIDTH).clamp(40, MAX_WIDTH);
    Screen { width, color: terminal && !set("NO_COLOR") && !dumb }
}
