//! A file as it stood at a git revision.

use std::path::Path;
use std::process::Command;

use super::Failure;
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
    let output = Command::new("git").args(["cat-file", "blob", &object]).current_dir(folder).output();
    let output = output.map_err(|error| refused(format!("`{revision}` is no file, and git cannot be run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        return Err(refused(format!("`{revision}` is no file, and no revision of {}: {said}", file.display())));
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|error| refused(format!("{} at {revision} is not UTF-8: {error}", file.display())))?;
    Ok(Source::new(format!("{name} at {revision}"), text))
}
