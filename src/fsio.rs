//! Files, read within a bound and written whole or not at all.

mod hold;
mod unnamed;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use hold::Hold;

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is a folder, a device or the like, or a link where none may be.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The file has more bytes than allowed.
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes allowed.
        limit: u64,
    },
    /// The path exists and must not be replaced.
    #[error("{} exists already and is not replaced", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
}

impl FileError {
    /// What is wrong, without the path.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::NotRegular { .. } => "not a regular file".to_owned(),
            Self::TooLarge { limit, .. } => format!("more than {limit} bytes"),
            Self::Exists { .. } => "exists already and is not replaced".to_owned(),
        }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "file-missing",
            Self::Io { .. } => "file-io",
            Self::NotRegular { .. } => "file-not-regular",
            Self::TooLarge { .. } => "file-too-large",
            Self::Exists { .. } => "file-exists",
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
    move |source| FileError::Io { path: path.to_owned(), source }
}

/// The bytes of the regular file at `path` (links are followed), `limit` bytes at most.
///
/// # Errors
/// [`FileError::Io`], [`FileError::NotRegular`] or [`FileError::TooLarge`].
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    // Looked at before opening: to open a device may do something.
    regular(path, &fs::metadata(path).map_err(io_error(path))?)?;
    let (file, size) = open_regular(path)?;
    let too_large = || FileError::TooLarge { path: path.to_owned(), limit };
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // One byte beyond the limit shows a file that grew since.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io_error(path))?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// The file, and its size, by what was opened: the path may name another since it was looked at. Nothing waits: a pipe
/// needs no writer to be opened and refused, and what only claims to be regular fails where it has no bytes yet.
fn open_regular(path: &Path) -> Result<(File, u64), FileError> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(io_error(path))?;
    let meta = file.metadata().map_err(io_error(path))?;
    regular(path, &meta)?;
    Ok((file, meta.len()))
}

fn regular(path: &Path, meta: &Metadata) -> Result<(), FileError> {
    if meta.is_file() { Ok(()) } else { Err(FileError::NotRegular { path: path.to_owned() }) }
}

/// Whether [`write_atomic`] may replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Keep it, and fail.
    Keep,
}

/// Writes `bytes` to `path`: to a file without a name, flushed to disk, then named. A reader sees the old file, no file
/// or the whole new one, and of a killed process nothing half-written is left. Where the file system has no files without
/// a name, it is a temporary one beside; an interrupt waits until that is gone.
///
/// # Errors
/// [`FileError::Io`]; [`FileError::NotRegular`] where something stands that is no file; [`FileError::Exists`] under
/// [`Existing::Keep`].
pub fn write_atomic(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), FileError> {
    write_with_mode(path, bytes, existing, 0o644)
}

/// As [`write_atomic`], readable by the owner alone from the first byte on. Nothing is replaced.
///
/// # Errors
/// [`FileError::Io`] or [`FileError::Exists`].
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_with_mode(path, bytes, Existing::Keep, 0o600)
}

/// The folder that holds `path`: the current one for a bare name.
#[must_use]
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_with_mode(path: &Path, bytes: &[u8], existing: Existing, mode: u32) -> Result<(), FileError> {
    Whole::with_mode(path, bytes, mode)?.put(existing)
}

/// A file that is whole and on disk, and not yet in its place: several can be made before the first one shows.
#[derive(Debug)]
pub struct Whole<'p> {
    path: &'p Path,
    mode: u32,
    held: Held,
    _hold: Hold,
}

#[derive(Debug)]
enum Held {
    Unnamed(File),
    Named(tempfile::NamedTempFile),
}

impl<'p> Whole<'p> {
    /// Writes `bytes` beside `path`.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn new(path: &'p Path, bytes: &[u8]) -> Result<Self, FileError> {
        Self::with_mode(path, bytes, 0o644)
    }

    fn with_mode(path: &'p Path, bytes: &[u8], mode: u32) -> Result<Self, FileError> {
        let hold = Hold::signals();
        let held = match unnamed::open(folder(path), mode) {
            Some(file) => Held::Unnamed(file),
            None => Held::Named(names(mode).tempfile_in(folder(path)).map_err(io_error(path))?),
        };
        let mut file = match &held {
            Held::Unnamed(file) => file,
            Held::Named(file) => file.as_file(),
        };
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io_error(path))?;
        Ok(Self { path, mode, held, _hold: hold })
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// As [`write_atomic`].
    pub fn put(self, existing: Existing) -> Result<(), FileError> {
        let path = self.path;
        // A rename would put a file in the place of a device, a pipe or a link.
        if existing == Existing::Replace && fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(FileError::NotRegular { path: path.to_owned() });
        }
        let put = match (self.held, existing) {
            (Held::Named(file), Existing::Replace) => file.persist(path).map(drop).map_err(|e| e.error),
            (Held::Named(file), Existing::Keep) => file.persist_noclobber(path).map(drop).map_err(|e| e.error),
            (Held::Unnamed(file), existing) => match unnamed::link(&file, path) {
                // Only a rename replaces: the file, whole already, gets another name first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && existing == Existing::Replace => {
                    let named = names(self.mode).make_in(folder(path), |name| unnamed::link(&file, name));
                    named.and_then(|named| named.persist(path).map(drop).map_err(|e| e.error))
                }
                linked => linked,
            },
        };
        put.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Exists { path: path.to_owned() },
            _ => io_error(path)(error),
        })
    }
}

/// Names of files that are not yet in their place.
fn names(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(".nucleus-gate-").suffix(".tmp").permissions(fs::Permissions::from_mode(mode));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_bounded_and_only_of_regular_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        fs::write(&file, b"12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert_eq!(read_bounded(&file, 4).unwrap_err().code(), "file-too-large");
        assert_eq!(read_bounded(folder.path(), 5).unwrap_err().code(), "file-not-regular");
        assert_eq!(read_bounded(Path::new("/dev/zero"), 5).unwrap_err().code(), "file-not-regular");
        assert_eq!(read_bounded(&folder.path().join("g"), 5).unwrap_err().code(), "file-missing");
    }

    /// As where a file is swapped for a pipe after it was looked at.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, file] = ["pipe", "f"].map(|name| folder.path().join(name));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(open_regular(&pipe).unwrap_err().code(), "file-not-regular");
        assert_eq!(read_bounded(&pipe, 5).unwrap_err().code(), "file-not-regular");
        fs::write(&file, b"12345").unwrap();
        assert_eq!(open_regular(&file).unwrap().1, 5);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_bounded(&link, 5).unwrap(), b"12345");
    }

    #[test]
    fn what_is_not_whole_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        // Where the file system has none, a temporary file beside takes its place.
        let Some(file) = unnamed::open(folder.path(), 0o644) else { return };
        (&file).write_all(b"half").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn writes_replace_or_keep_and_leave_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        write_atomic(&file, b"one", Existing::Keep).unwrap();
        assert_eq!(write_atomic(&file, b"two", Existing::Keep).unwrap_err().code(), "file-exists");
        assert_eq!(fs::read(&file).unwrap(), b"one");
        write_atomic(&file, b"two", Existing::Replace).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o644);
        let secret = folder.path().join("secret");
        write_secret(&secret, b"k").unwrap();
        assert_eq!(mode(&secret), 0o600);
        assert_eq!(write_secret(&secret, b"l").unwrap_err().code(), "file-exists");
        assert_eq!(write_atomic(&folder.path().join("no/f"), b"x", Existing::Keep).unwrap_err().code(), "file-missing");
        let other = tempfile::tempdir().unwrap();
        let socket = other.path().join("socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for there in [other.path(), &socket] {
            assert_eq!(write_atomic(there, b"x", Existing::Replace).unwrap_err().code(), "file-not-regular");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
