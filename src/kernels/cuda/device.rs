//! One device: what it is, the code compiled for it, and runs on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaStream};
use cudarc::nvrtc::Ptx;

use super::error::{CudaError, driver};
use super::launch::{Batch, Code, Shape};
use super::nvrtc::{Compiled, Target, compile};
use super::sources;
use crate::digest::Sha256;
use crate::inputs::Inputs;
use crate::kernels::{Kernel, Launch, Machine};

/// Devices that the driver finds.
pub(super) fn count() -> Result<usize, CudaError> {
    // SAFETY: loading the driver's library, whose initializers are made to be run by loading.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let count = driver("cuInit or cuDeviceGetCount", CudaContext::device_count())?;
    match usize::try_from(count) {
        Ok(0) | Err(_) => Err(CudaError::NoDevice),
        Ok(count) => Ok(count),
    }
}

/// A device that is ready to run the kernels.
pub struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    machine: Machine,
    capability: (u32, u32),
    shared_limit: usize,
    /// What was compiled already.
    codes: Mutex<BTreeMap<CodeKey, Arc<Code>>>,
}

/// A source's path and the macros it was compiled with.
type CodeKey = (&'static str, Vec<String>);

impl Device {
    /// Opens the device and notes what it is.
    ///
    /// # Errors
    /// [`CudaError::Driver`] with the call that failed.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let context = driver("cuDevicePrimaryCtxRetain", CudaContext::new(ordinal))?;
        // One stream uses every buffer, so that none needs an event to wait for.
        // SAFETY: no buffer is ever used from another stream.
        unsafe { context.disable_event_tracking() };
        let stream = driver("cuStreamCreate", context.new_stream())?;
        let name = driver("cuDeviceGetName", context.name())?;
        let (major, minor) = driver("cuDeviceGetAttribute", context.compute_capability())?;
        let attribute = |attribute| {
            driver("cuDeviceGetAttribute", context.attribute(attribute)).map(|value| u32::try_from(value).unwrap_or(0))
        };
        let multiprocessors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let shared = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let capability = (u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0));
        let mut runtime = BTreeMap::from([
            ("nucleus-gate".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("cuda-driver-api".to_owned(), driver_api()?),
        ]);
        if let Some(version) = driver_version() {
            runtime.insert("driver".to_owned(), version);
        }
        let machine =
            Machine { device: name, capability: Some([capability.0, capability.1]), multiprocessors, runtime };
        let codes = Mutex::new(BTreeMap::new());
        Ok(Self { context, stream, machine, capability, shared_limit: shared as usize, codes })
    }

    /// What it is.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The launch shape of a kernel for a batch.
    ///
    /// # Errors
    /// [`CudaError::Vocabulary`].
    pub fn shape(&self, kernel: Kernel, batch: usize, vocab: usize) -> Result<Shape, CudaError> {
        let has_clusters = self.capability >= (9, 0);
        Shape::of(kernel, batch, vocab, self.machine.multiprocessors as usize, self.shared_limit, has_clusters)
    }

    /// The code of a kernel for a launch shape, compiled and loaded once.
    pub(super) fn load(&self, kernel: Kernel, shape: &Shape) -> Result<Arc<Code>, CudaError> {
        let source = sources::of(kernel);
        let key = (source.path, shape.defines());
        // A poisoned lock only means that a thread died here: what is in the map is whole.
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = codes.get(&key) {
            return Ok(Arc::clone(code));
        }
        let (major, minor) = self.capability;
        let Compiled { code, options, compiler } = compile(source, Target::Cubin(major, minor), &key.1)?;
        let cubin_sha256 = Sha256::of(&code);
        let module = driver("cuModuleLoadData", self.context.load_module(Ptx::from_binary(code)))?;
        let code = Arc::new(Code { module, cubin_sha256, options, compiler, source });
        codes.insert(key, Arc::clone(&code));
        Ok(code)
    }

    /// Copies a batch to the device.
    ///
    /// # Errors
    /// [`CudaError::Driver`] with the call that failed.
    pub fn upload(&self, inputs: &Inputs) -> Result<Batch, CudaError> {
        let logits = driver("cuMemcpyHtoDAsync", self.stream.clone_htod(inputs.logits()))?;
        let p = driver("cuMemcpyHtoDAsync", self.stream.clone_htod(inputs.p()))?;
        let output = driver("cuMemAllocAsync", self.stream.alloc_zeros::<f32>(inputs.logits().len()))?;
        Ok(Batch { logits, p, output, batch: inputs.batch(), vocab: inputs.vocab(), scratch: None })
    }

    /// Runs one kernel on an uploaded batch, into an output filled with poison. Also returns the rows that it flagged.
    ///
    /// # Errors
    /// As [`CudaError`] says.
    pub fn run(&self, kernel: Kernel, batch: &mut Batch) -> Result<(Launch, Vec<usize>), CudaError> {
        let shape = self.shape(kernel, batch.batch, batch.vocab)?;
        let code = self.load(kernel, &shape)?;
        super::launch::run(self, kernel, &shape, &code, batch)
    }

    /// Whether the inputs on the device are still those that were copied there.
    ///
    /// # Errors
    /// [`CudaError::InputChanged`] or [`CudaError::Driver`].
    pub fn check_inputs(&self, batch: &Batch, inputs: &Inputs) -> Result<(), CudaError> {
        let logits = driver("cuMemcpyDtoHAsync", self.stream.clone_dtoh(&batch.logits))?;
        let p = driver("cuMemcpyDtoHAsync", self.stream.clone_dtoh(&batch.p))?;
        driver("cuStreamSynchronize", self.stream.synchronize())?;
        let same = Sha256::of_f32(&logits) == inputs.logits_sha256() && Sha256::of_f32(&p) == inputs.p_sha256();
        if same { Ok(()) } else { Err(CudaError::InputChanged) }
    }
}

/// The version of the driver's interface, such as 13.0.
fn driver_api() -> Result<String, CudaError> {
    let mut version = 0;
    // SAFETY: the library is loaded; the place is written.
    driver("cuDriverGetVersion", unsafe { cudarc::driver::sys::cuDriverGetVersion(&raw mut version) }.result())?;
    Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// The kernel module's version, such as 580.159.04, where the system tells it.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    line.split_whitespace().find(is_version).map(str::to_owned)
}
