//! `nucleus-gate inputs`: write a matrix's inputs for a harness in another language.

use std::path::{Path, PathBuf};

use super::Failure;
use super::load::Files;
use crate::evidence::is_bundle;
use crate::fsio::{Existing, FileError, read_bounded, write_atomic};
use crate::gate::{self, ExitCode};
use crate::inputs;

/// Write a matrix's inputs as safetensors, one file a case
///
/// `logits` f32 [batch, vocab] and `p` f32 [batch], the bytes that the matrix pins. Each file's digest and name go to stdout.
#[derive(Debug, clap::Args)]
pub(super) struct Inputs {
    /// The folder that gets the files
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write this case alone
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    #[command(flatten)]
    files: Files,
}

impl Inputs {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let loaded = self.files.load()?;
        let limits = &loaded.policy.limits;
        let wanted = |name: &str| self.case.as_deref().is_none_or(|case| case == name);
        let cases: Vec<_> = loaded.matrix.cases.iter().filter(|case| wanted(&case.name.value)).collect();
        if cases.is_empty() {
            let message = format!("the matrix has no case {}", self.case.as_deref().unwrap_or_default());
            return Err(Failure::invocation("cli::no-case", message, "name one that the matrix holds"));
        }
        let mut files = Vec::new();
        let mut bytes = 0;
        for case in cases {
            let made = gate::inputs(limits, &loaded.root, case).map_err(|fault| Failure::fault(&fault))?;
            let file = inputs::write(&made, &case.name.value);
            bytes += file.len() as u64;
            if bytes > *limits.max_artifact_bytes {
                let message = format!("the inputs are larger than the policy's {} bytes", *limits.max_artifact_bytes);
                return Err(Failure::stopped("limit::artifact-bytes", message, "write fewer cases with --case"));
            }
            files.push((case.name.value.as_str(), file));
        }
        if is_bundle(&self.out) {
            let message = format!("{} is a bundle of recorded evidence", self.out.display());
            return Err(Failure::invocation("cli::out-is-bundle", message, "name another folder with --out"));
        }
        std::fs::create_dir_all(&self.out).map_err(|error| {
            Failure::stopped("cli::out", format!("{}: {error}", self.out.display()), "name another folder with --out")
        })?;
        let mut listed = String::new();
        for (case, file) in &files {
            let name = format!("{case}.safetensors");
            write(&self.out.join(&name), file)?;
            listed.push_str(&format!("{}  {name}\n", crate::digest::Sha256::of(file)));
        }
        super::screen::print(&listed)?;
        Ok(ExitCode::Passed)
    }
}

/// Writes a file where none is. One with the same bytes may stay.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    match write_atomic(path, bytes, Existing::Keep) {
        Err(FileError::Exists { .. }) if read_bounded(path, bytes.len() as u64).is_ok_and(|found| found == bytes) => {
            Ok(())
        }
        written => written.map_err(|error| Failure::unwritten(&error)),
    }
}
