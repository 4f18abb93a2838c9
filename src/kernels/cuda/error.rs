//! What can go wrong between this program and a device.

use cudarc::driver::DriverError;

/// Why CUDA gave no output.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// No driver library on this machine.
    #[error("no CUDA driver on this machine: libcuda.so.1 was not found")]
    NoDriver,
    /// A driver, but no device.
    #[error("the CUDA driver finds no device")]
    NoDevice,
    /// A device that is not there.
    #[error("there is no CUDA device {ordinal}: the driver finds {found}")]
    UnknownDevice {
        /// As asked for.
        ordinal: usize,
        /// Devices found.
        found: usize,
    },
    /// Devices that differ: evidence of one run would come from two.
    #[error("CUDA devices differ: `{first}` and `{other}`")]
    MixedDevices {
        /// The first device.
        first: String,
        /// The one that differs.
        other: String,
    },
    /// No run-time compiler.
    #[error("no CUDA run-time compiler: libnvrtc was not found")]
    NoCompiler,
    /// The compiler refused a source.
    #[error("{source_file} does not compile: {log}")]
    Compile {
        /// The file.
        source_file: &'static str,
        /// What the compiler said.
        log: String,
    },
    /// A call of the compiler failed.
    #[error("{call} failed: {reason}")]
    Compiler {
        /// The function.
        call: &'static str,
        /// What it returned.
        reason: String,
    },
    /// A call of the driver failed.
    #[error("{call} failed: {reason}")]
    Driver {
        /// The function.
        call: &'static str,
        /// What it returned.
        reason: String,
    },
    /// A kernel changed its input.
    #[error("the input bytes on the device are not those that were copied there")]
    InputChanged,
    /// A row that the exact kernel has no room for.
    #[error("a row of {vocab} tokens does not fit the device's shared memory")]
    Vocabulary {
        /// Tokens a row.
        vocab: usize,
    },
    /// A result that no kernel writes.
    #[error("row {row} of the exact kernel's results holds {outcome}, which is no outcome")]
    Outcome {
        /// The row.
        row: usize,
        /// As read.
        outcome: u32,
    },
}

impl CudaError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDriver => "cuda-no-driver",
            Self::NoDevice => "cuda-no-device",
            Self::UnknownDevice { .. } => "cuda-unknown-device",
            Self::MixedDevices { .. } => "cuda-mixed-devices",
            Self::NoCompiler => "cuda-no-compiler",
            Self::Compile { .. } => "cuda-compile",
            Self::Compiler { .. } => "cuda-compiler-call",
            Self::Driver { .. } => "cuda-driver-call",
            Self::InputChanged => "cuda-input-changed",
            Self::Vocabulary { .. } => "cuda-vocabulary",
            Self::Outcome { .. } => "cuda-outcome",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoDriver | Self::NoDevice => "run on a machine with an NVIDIA driver and GPU, or use `--backend cpu`",
            Self::UnknownDevice { .. } | Self::MixedDevices { .. } => "name devices of one kind with `--devices`",
            Self::NoCompiler => {
                "install the CUDA toolkit's NVRTC (major version 13), or set NUCLEUS_GATE_NVRTC to the folder of \
                 libnvrtc.so.13"
            }
            Self::Compile { .. } => "the compiler's log names the line",
            Self::Compiler { .. } | Self::Driver { .. } | Self::InputChanged | Self::Outcome { .. } => {
                "check the device with `nvidia-smi`; the run wrote no evidence"
            }
            Self::Vocabulary { .. } => "the exact kernel keeps a row in shared memory; leave it out of this run",
        }
    }
}

/// Names the call in its error.
pub(super) fn driver<T>(call: &'static str, result: Result<T, DriverError>) -> Result<T, CudaError> {
    result.map_err(|error| CudaError::Driver { call, reason: error.to_string() })
}
