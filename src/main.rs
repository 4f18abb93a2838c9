//! The command line of nucleus-gate. Everything is in the library.

// Library code never panics on what it is given. Tests may.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable
)]

fn main() -> nucleus_gate::gate::ExitCode {
    nucleus_gate::cli::main()
}
