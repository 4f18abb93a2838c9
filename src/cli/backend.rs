//! What runs the kernels of a call.

use std::path::{Component, Path};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::Failure;
use super::load::Loaded;
use crate::evidence::{Bundle, RecordingError, is_bundle, write_bundle};
use crate::fsio::FileError;
use crate::gate::{self, Fault};
use crate::kernels::capture::{self, Capture, CaptureError, Captured};
use crate::kernels::cpu::{CpuBackend, DEFAULT_MULTIPROCESSORS};
use crate::kernels::cuda::{CudaBackend, CudaError};
use crate::kernels::{Backend, BackendError, Kernel};
use crate::matrix::Pinned;
use crate::syntax::{Spanned, unfit_name};

/// Which backend, on which devices.
#[derive(Debug, clap::Args)]
pub(super) struct BackendArgs {
    /// Where the kernels run [default: cuda where there is a device, else cpu]
    #[arg(long, value_enum)]
    backend: Option<Choice>,
    /// The CUDA devices, as in 0,1 [default: all]. Cases are spread over them; the result is the same
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    devices: Option<Vec<usize>>,
}

/// A backend by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Choice {
    /// CUDA devices
    Cuda,
    /// A model of the same algorithms, in the same arithmetic, on the CPU
    Cpu,
}

/// A backend that is ready.
pub(super) struct Opened {
    pub backend: Box<dyn Backend>,
    pub choice: Choice,
}

impl BackendArgs {
    /// Opens the backend. Without a choice, a machine without a CUDA device gets the CPU model, and is told so.
    pub(super) fn open(&self) -> Result<Opened, Failure> {
        let cpu = || Opened { backend: Box::new(CpuBackend::new(DEFAULT_MULTIPROCESSORS)), choice: Choice::Cpu };
        self.check_devices()?;
        if self.backend == Some(Choice::Cpu) {
            return Ok(cpu());
        }
        match CudaBackend::new(self.devices.as_deref()) {
            Ok(backend) => Ok(Opened { backend: Box::new(backend), choice: Choice::Cuda }),
            Err(error @ (CudaError::NoDriver | CudaError::NoDevice))
                if self.backend.is_none() && self.devices.is_none() =>
            {
                super::screen::note(&format!("{error}: the CPU model runs instead"));
                Ok(cpu())
            }
            Err(error) => Err(Failure::invocation(error.code(), error.to_string(), error.help())),
        }
    }

    /// That devices are named to a backend that has some, and each once: a case has one of them to itself.
    fn check_devices(&self) -> Result<(), Failure> {
        let Some(devices) = &self.devices else { return Ok(()) };
        if self.backend == Some(Choice::Cpu) {
            let help = "leave out --devices, or use --backend cuda";
            return Err(Failure::invocation("cli::no-devices", "the CPU model runs on no device", help));
        }
        let twice =
            devices.iter().enumerate().find(|(index, device)| devices.iter().take(*index).any(|d| d == *device));
        twice.map_or(Ok(()), |(_, device)| {
            let message = format!("--devices names device {device} twice");
            Err(Failure::invocation("cli::device-twice", message, "name each device once"))
        })
    }
}

/// The kernel of that name, for the command line.
pub(super) fn kernel(name: &str) -> Result<Kernel, String> {
    Kernel::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Kernel::ALL.into_iter().map(Kernel::name).collect();
        format!("there are: {}", names.join(", "))
    })
}

/// A bundle that was written.
pub(super) struct Written {
    subject: crate::evidence::Subject,
    bundle: String,
    sha256: crate::digest::Sha256,
    /// The bytes of all its files.
    pub(super) bytes: u64,
}

impl Written {
    /// As a matrix pins it.
    pub(super) fn pinned(&self) -> Pinned<'_> {
        Pinned { subject: &self.subject, bundle: self.bundle.clone(), sha256: self.sha256 }
    }
}

/// Captures the subjects over every case of the matrix, within the policy's limits, and writes a bundle each, named as the
/// subject, into `folder`.
pub(super) fn capture(
    backend: &dyn Backend,
    loaded: &Loaded,
    subjects: &[Captured],
    folder: &Path,
    started: Instant,
) -> Result<Vec<Written>, Failure> {
    check_destination(loaded, subjects, folder)?;
    let limits = &loaded.policy.limits;
    let (timeout, max_bytes) = (u64::from(*limits.timeout_seconds), *limits.max_artifact_bytes);
    let cases: Vec<String> = loaded.matrix.cases.iter().map(|case| case.name.value.clone()).collect();
    let progress = progress(cases.len());
    let harness = capture::this_harness()
        .map_err(|error| Failure::internal(format!("the running executable cannot be read: {error}")))?;
    let capture = Capture {
        backend,
        subjects,
        cases: &cases,
        harness,
        max_bytes,
        stop: &|| started.elapsed().as_secs() >= timeout,
        progress: &|done| progress.set_position(done as u64),
    };
    let inputs = |index: usize| {
        let case = loaded.matrix.cases.get(index);
        case.map_or_else(|| Err(None), |case| gate::inputs(limits, &loaded.root, case).map_err(Some))
    };
    let evidence = capture.run(&inputs);
    progress.finish_and_clear();
    let evidence = evidence.map_err(|error| failure(error, timeout))?;
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::stopped("cli::out", format!("{}: {error}", folder.display()), "name another folder with --out")
    })?;
    evidence
        .into_iter()
        .map(|evidence| {
            let path = folder.join(&evidence.subject.name);
            let cases: Vec<(&str, Vec<u8>)> =
                evidence.cases.iter().map(|(case, bytes)| (case.as_str(), bytes.clone())).collect();
            write_bundle(&path, &evidence.subject, &cases).map_err(|error| unwritten(&error))?;
            let bundle = Bundle::open(&path, max_bytes);
            let bundle = bundle.map_err(|error| Failure::stopped(error.code(), error.to_string(), "capture again"))?;
            let bytes = size(&path)?;
            Ok(Written { sha256: bundle.sha256(), bundle: relative(&path, loaded)?, subject: evidence.subject, bytes })
        })
        .collect()
}

/// The bytes of a folder's files.
fn size(folder: &Path) -> Result<u64, Failure> {
    let sizes = std::fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.metadata()?.len())).sum());
    sizes.map_err(|error| Failure::stopped("cli::out", format!("{}: {error}", folder.display()), "capture again"))
}

/// That a matrix could name each bundle, before anything runs or is written.
fn check_destination(loaded: &Loaded, subjects: &[Captured], folder: &Path) -> Result<(), Failure> {
    for Captured { name, .. } in subjects {
        if let Some(unfit) = unfit_name("cli::name", &Spanned::new(name.clone(), (0, 0).into())) {
            let message = format!("`{name}` can be no subject's name: {}", unfit.message);
            return Err(Failure::invocation("cli::name", message, "name it with letters, digits and hyphens"));
        }
    }
    // The nearest folder that exists says where it leads, through links; what will be made below it must not lead up.
    let standing = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(Path::new(""));
    let found = if standing.as_os_str().is_empty() { Path::new(".") } else { standing }.canonicalize();
    let inside = found.is_ok_and(|found| found.starts_with(loaded.root.path()));
    let below = folder.strip_prefix(standing).unwrap_or(folder);
    if !inside || below.components().any(|part| part == Component::ParentDir) {
        return Err(outside(folder, loaded));
    }
    if is_bundle(folder) {
        let message = format!("{} is a bundle of recorded evidence, which holds no folders", folder.display());
        return Err(Failure::invocation("cli::out-is-bundle", message, "name another folder with --out"));
    }
    let taken = subjects.iter().map(|subject| folder.join(&subject.name)).find(|path| path.symlink_metadata().is_ok());
    taken.map_or(Ok(()), |path| Err(unwritten(&FileError::Exists { path }.into())))
}

fn outside(path: &Path, loaded: &Loaded) -> Failure {
    let message = format!("{} lies outside the project root {}", path.display(), loaded.root.path().display());
    Failure::invocation("cli::out-outside-root", message, "name a folder inside it with --out")
}

/// A path inside the project root, as a matrix names it.
fn relative(path: &Path, loaded: &Loaded) -> Result<String, Failure> {
    let inside = path.canonicalize().ok();
    let inside = inside.as_deref().and_then(|path| path.strip_prefix(loaded.root.path()).ok()?.to_str());
    inside.map(str::to_owned).ok_or_else(|| outside(path, loaded))
}

fn unwritten(error: &RecordingError) -> Failure {
    Failure::stopped(error.code(), error.to_string(), "free the path, or name another folder with --out")
}

/// The policy's timeout, limits and devices, as a call ends with them.
fn failure(error: CaptureError<Option<Box<Fault>>>, timeout: u64) -> Failure {
    let message = error.to_string();
    match error {
        CaptureError::Inputs(Some(fault)) => Failure::fault(&fault),
        CaptureError::Inputs(None) => Failure::internal("a case is missing"),
        CaptureError::Backend { error: BackendError::Stopped, .. } => {
            let message = format!("the kernels had not finished within the policy's {timeout} seconds");
            Failure::stopped("limit::timeout", message, "run on a faster machine, or fewer cases; nothing was written")
        }
        CaptureError::Backend { error: BackendError::Cuda(error), .. } => match &error {
            CudaError::NoCompiler => Failure::invocation(error.code(), message, error.help()),
            error => Failure::stopped(error.code(), message, error.help()),
        },
        CaptureError::TooLarge { .. } => {
            Failure::stopped("limit::artifact-bytes", message, "capture fewer cases; nothing was written")
        }
        CaptureError::Row(error) => Failure::internal(error.to_string()),
        CaptureError::Recording(error) => unwritten(&error),
        CaptureError::Dispatch(error) => Failure::internal(error.to_string()),
    }
}

/// A bar on stderr, where that is a terminal.
fn progress(cases: usize) -> ProgressBar {
    let bar = ProgressBar::new(cases as u64);
    match ProgressStyle::with_template("{bar:30} {pos} of {len} cases, {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_once_and_to_a_backend_that_has_some() {
        let refused = |backend, devices: Option<&[usize]>| {
            let checked = BackendArgs { backend, devices: devices.map(<[usize]>::to_vec) }.check_devices();
            checked.err().map(|failure| failure.message())
        };
        assert!(refused(Some(Choice::Cpu), Some(&[0])).unwrap().contains("no device"));
        for backend in [None, Some(Choice::Cuda)] {
            assert!(refused(backend, Some(&[0, 1, 0])).unwrap().contains("device 0 twice"));
            assert_eq!(refused(backend, Some(&[1, 0])), None);
            assert_eq!(refused(backend, None), None);
        }
        assert_eq!(refused(Some(Choice::Cpu), None), None);
    }
}
