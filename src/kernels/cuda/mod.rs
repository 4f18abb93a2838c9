//! The kernels on CUDA devices: libraries are loaded at run time, sources compiled for the device found.

mod device;
mod error;
mod launch;
pub mod nvrtc;
pub mod sources;

pub use device::Device;
pub use error::CudaError;
pub use launch::{Shape, Timing};

use crate::inputs::Inputs;
use crate::kernels::{Backend, BackendError, Kernel, Launch, Machine, SourceFile, settle_flagged};

/// Runs the kernels on one or several devices of one kind.
pub struct CudaBackend {
    devices: Vec<Device>,
    machine: Machine,
}

impl CudaBackend {
    /// The devices of these numbers, or all that the driver finds.
    ///
    /// # Errors
    /// As [`CudaError`] says: no driver, no device, no such device, no compiler, devices of several kinds.
    pub fn new(ordinals: Option<&[usize]>) -> Result<Self, CudaError> {
        let found = device::count()?;
        let all: Vec<usize> = (0..found).collect();
        let mut devices = Vec::new();
        for &ordinal in ordinals.unwrap_or(&all) {
            if ordinal >= found {
                return Err(CudaError::UnknownDevice { ordinal, found });
            }
            devices.push(Device::open(ordinal)?);
        }
        let first = devices.first().ok_or(CudaError::NoDevice)?;
        let machine = first.machine().clone();
        if let Some(other) = devices.iter().map(Device::machine).find(|other| **other != machine) {
            return Err(CudaError::MixedDevices { first: machine.device, other: other.device.clone() });
        }
        Ok(Self { devices, machine })
    }

    /// The devices, in the order named.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }
}

impl Backend for CudaBackend {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn slots(&self) -> usize {
        self.devices.len()
    }

    fn sources(&self, kernel: Kernel) -> Vec<SourceFile> {
        vec![sources::HEADER, sources::of(kernel)]
    }

    fn run(
        &self,
        slot: usize,
        inputs: &Inputs,
        kernels: &[Kernel],
        repeats: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<Launch>>, BackendError> {
        let device = self.devices.get(slot).ok_or(CudaError::NoDevice)?;
        let mut batch = device.upload(inputs)?;
        let mut launches = Vec::new();
        for &kernel in kernels {
            let mut repeated = Vec::new();
            for _ in 0..repeats {
                if stop() {
                    return Err(BackendError::Stopped);
                }
                let (mut launch, flagged) = device.run(kernel, &mut batch)?;
                if kernel == Kernel::Exact {
                    settle_flagged(inputs, &flagged, &mut launch);
                }
                repeated.push(launch);
            }
            launches.push(repeated);
        }
        device.check_inputs(&batch, inputs)?;
        Ok(launches)
    }
}
