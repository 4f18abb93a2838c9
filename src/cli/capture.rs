//! `nucleus-gate capture`: run a kernel on this machine and keep what it did.

use std::path::PathBuf;
use std::time::Instant;

use super::Failure;
use super::backend::{BackendArgs, capture, kernel};
use super::load::Files;
use crate::gate::ExitCode;
use crate::kernels::Kernel;
use crate::kernels::capture::Captured;

/// Run a kernel over a matrix's cases and write its evidence bundle
///
/// The bundle is the folder DIR/NAME, written whole or not at all, within the policy's limits. Each batch runs twice into
/// outputs filled with a NaN pattern, and some rows alone; what differed is part of the evidence.
#[derive(Debug, clap::Args)]
pub(super) struct Capture {
    #[command(flatten)]
    backend: BackendArgs,
    /// The kernel: stock, patch, sort or exact
    #[arg(long, value_name = "KERNEL", value_parser = kernel)]
    kernel: Kernel,
    /// The subject's name in policies and matrices [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder that gets the bundle, inside the project root
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    files: Files,
}

impl Capture {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let opened = self.backend.open()?;
        let loaded = self.files.load()?;
        let name = self.name.clone().unwrap_or_else(|| self.kernel.name().to_owned());
        let subject = Captured { name, kernel: self.kernel };
        let written = capture(opened.backend.as_ref(), &loaded, &[subject], &self.out, started)?;
        for bundle in &written {
            let pin = bundle.pinned();
            super::screen::print(&format!("{}  {}\n", pin.sha256, crate::text::sanitize(&pin.bundle)))?;
        }
        Ok(ExitCode::Passed)
    }
}
