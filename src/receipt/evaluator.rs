//! The program that judges, as the receipt names it.

use std::io;

use crate::digest::Sha256;

/// This program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluator {
    /// Its version.
    pub version: &'static str,
    /// The digest of the running executable.
    pub sha256: Sha256,
}

impl Evaluator {
    /// The running executable.
    ///
    /// # Errors
    /// Where the executable cannot be read.
    pub fn running() -> io::Result<Self> {
        Ok(Self { version: env!("CARGO_PKG_VERSION"), sha256: Sha256::of_this_program()? })
    }
}
