//! A file as it stood at a git revision.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::Failure;
use super::load::MAX_BYTES;
use crate::syntax::Source;

/// The file at `revision` of the repository that holds it.
pub(super) fn revision(revision: &str, file: &Path) -> Result<Source, Failure> {
    let refused = |message: String| {
        let help = "name an existing policy file, or a revision of a file that git tracks, such as HEAD~1";
        Failure::invocation("cli::no-revision", message, help)
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.is_empty() || revision.is_empty() || revision.starts_with('-') || revision.contains(':') {
        return Err(refused(format!("`{revision}` is neither a file nor a git revision")));
    }
    // `REV:./name` is relative to the folder that git runs in.
    let object = format!("{revision}:./{name}");
    let mut git = Command::new("git");
    git.args(["cat-file", "blob", &object]).current_dir(folder);
    let output = bounded(&mut git, MAX_BYTES);
    let output = output.map_err(|error| refused(format!("`{revision}` is no file, and git cannot be run: {error}")))?;
    if output.stdout.len() as u64 > MAX_BYTES {
        let message = format!("{} at {revision} has more than {MAX_BYTES} bytes", file.display());
        return Err(Failure::invocation("file-too-large", message, "name a revision of a policy"));
    }
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        return Err(refused(format!("`{revision}` is no file, and no revision of {}: {said}", file.display())));
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|error| refused(format!("{} at {revision} is not UTF-8: {error}", file.display())))?;
    Ok(Source::new(format!("{name} at {revision}"), text))
}

/// Runs the command for what it writes. One that writes more than `limit` bytes is ended after one more.
fn bounded(command: &mut Command, limit: u64) -> io::Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |stdout| stdout.take(limit.saturating_add(1)).read_to_end(&mut bytes));
    if read.is_err() || bytes.len() as u64 > limit {
        // One that has ended already cannot be ended.
        let _ = child.kill();
    }
    let output = child.wait_with_output()?;
    read.map(|_| Output { stdout: bytes, ..output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_to_its_limit() {
        let written = |script: &str| bounded(Command::new("sh").args(["-c", script]), 5).unwrap();
        let whole = written("printf 12345; echo said >&2; exit 3");
        assert_eq!((whole.stdout.as_slice(), whole.stderr.as_slice()), (&b"12345"[..], &b"said\n"[..]));
        assert_eq!(whole.status.code(), Some(3));
        assert_eq!(written("exec cat /dev/zero").stdout.len(), 6);
        assert!(bounded(&mut Command::new("no-such-program"), 5).is_err());
    }
}
