//! Launch shapes, buffers and launches of each kernel.

use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, CUfunction_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaFunction, CudaModule, CudaSlice, LaunchConfig, PushKernelArg};
use serde_json::{Map, Value};

use super::device::Device;
use super::error::{CudaError, driver};
use super::sources::HEADER;
use crate::digest::Sha256;
use crate::kernels::cpu::split;
use crate::kernels::{Kernel, Launch, POISON, SourceFile};

/// Threads of every block.
const THREADS: u32 = 1024;
/// Bytes of `Slice`, `State` and `Probe` in `split_top_p.cu`, and of `Result` in `exact_top_p.cu`.
const SLICE_BYTES: usize = 12;
const STATE_BYTES: usize = 32;
const PROBE_BYTES: usize = 12;
const RESULT_BYTES: usize = 16;
/// At least what `exact_top_p.cu` shares beside a slice of the row.
const EXACT_SHARED_BYTES: usize = 44 * 1024;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks, in x and y.
    pub grid: [u32; 2],
    /// Slices a row (split), blocks of a cluster (exact), or 1.
    pub blocks_a_row: u32,
    /// Whether the exact kernel keeps its slice in shared memory.
    pub cached: bool,
    /// Tokens a block of the exact kernel takes.
    pub length: u32,
    kernel: Kernel,
}

impl Shape {
    /// The shape for a batch on a device of `multiprocessors`, `shared_limit` bytes of shared memory a block, with or
    /// without thread block clusters.
    ///
    /// # Errors
    /// [`CudaError::Vocabulary`].
    pub fn of(
        kernel: Kernel,
        batch: usize,
        vocab: usize,
        multiprocessors: usize,
        shared_limit: usize,
        has_clusters: bool,
    ) -> Result<Self, CudaError> {
        let too_wide = || CudaError::Vocabulary { vocab };
        let rows = u32::try_from(batch).map_err(|_| too_wide())?;
        let narrow = |value: usize| u32::try_from(value).map_err(|_| too_wide());
        let shape = |grid, blocks_a_row, cached, length| Self { grid, blocks_a_row, cached, length, kernel };
        match kernel {
            Kernel::Stock | Kernel::Patch => {
                let slices = narrow(split::slices(batch, multiprocessors))?;
                Ok(shape([slices, rows], slices, false, 0))
            }
            Kernel::Sort => Ok(shape([rows, 1], 1, false, 0)),
            Kernel::Exact if !has_clusters => Ok(shape([1, rows], 1, false, narrow(vocab.next_multiple_of(4))?)),
            Kernel::Exact => {
                let length = |cluster: usize| vocab.div_ceil(cluster).next_multiple_of(4);
                let fits = |cluster: usize| EXACT_SHARED_BYTES + 4 * length(cluster) <= shared_limit;
                let mut cluster = 16;
                // Clusters of 16 blocks need 16 free multiprocessors in one cluster of the chip, and pack badly.
                let crowded = |cluster: usize| cluster * batch * if cluster == 16 { 2 } else { 1 } > multiprocessors;
                while cluster > 2 && crowded(cluster) && fits(cluster / 2) {
                    cluster /= 2;
                }
                if !fits(cluster) {
                    return Err(too_wide());
                }
                Ok(shape([narrow(cluster)?, rows], narrow(cluster)?, true, narrow(length(cluster))?))
            }
        }
    }

    /// The macros that the shape is compiled with.
    #[must_use]
    pub fn defines(&self) -> Vec<String> {
        match self.kernel {
            Kernel::Stock | Kernel::Patch | Kernel::Sort => Vec::new(),
            Kernel::Exact => {
                vec![format!("CLUSTER={}", self.blocks_a_row), format!("CACHED={}", u8::from(self.cached))]
            }
        }
    }
}

/// Device times of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Microseconds a run, of several replays of one graph each, ascending.
    pub microseconds: Vec<f32>,
}

impl Timing {
    /// The median.
    #[must_use]
    pub fn median(&self) -> f32 {
        self.microseconds.get(self.microseconds.len() / 2).copied().unwrap_or(f32::NAN)
    }
}

/// The code of a kernel on a device.
pub struct Code {
    pub(super) module: Arc<CudaModule>,
    pub(super) cubin_sha256: Sha256,
    pub(super) options: Vec<String>,
    pub(super) compiler: String,
    pub(super) source: SourceFile,
}

/// A batch on the device.
pub struct Batch {
    pub(super) logits: CudaSlice<f32>,
    pub(super) p: CudaSlice<f32>,
    pub(super) output: CudaSlice<f32>,
    pub(super) batch: usize,
    pub(super) vocab: usize,
    pub(super) scratch: Option<Scratch>,
}

/// What kernels write beside their output.
pub(super) struct Scratch {
    statistics: CudaSlice<u8>,
    states: CudaSlice<u8>,
    probes: CudaSlice<u8>,
    sort: CudaSlice<u32>,
    results: CudaSlice<u32>,
}

impl Scratch {
    fn new(device: &Device, batch: usize, vocab: usize) -> Result<Self, CudaError> {
        let bytes = |bytes| driver("cuMemAllocAsync", device.stream.alloc_zeros::<u8>(bytes));
        let words = |words| driver("cuMemAllocAsync", device.stream.alloc_zeros::<u32>(words));
        Ok(Self {
            statistics: bytes(batch * split::MAX_SLICES * SLICE_BYTES)?,
            states: bytes((split::ROUNDS + 1) * batch * STATE_BYTES)?,
            probes: bytes(split::ROUNDS * batch * split::MAX_SLICES * split::PIVOTS * PROBE_BYTES)?,
            sort: words(4 * batch * vocab)?,
            results: words(batch * RESULT_BYTES / 4)?,
        })
    }
}

/// A kernel's functions, in launch order, and its dynamic shared memory.
struct Functions {
    functions: Vec<(&'static str, CudaFunction)>,
    shared_bytes: u32,
}

impl Functions {
    fn load(device: &Device, kernel: Kernel, shape: &Shape, code: &Code) -> Result<Self, CudaError> {
        let names: &[&'static str] = match kernel {
            Kernel::Stock => &["split_top_p_statistics", "split_top_p_step", "split_top_p_mask_stock"],
            Kernel::Patch => &["split_top_p_statistics", "split_top_p_step", "split_top_p_mask_patch"],
            Kernel::Sort => &["sort_top_p"],
            Kernel::Exact => &["exact_top_p"],
        };
        let load = |name: &&'static str| Ok((*name, driver("cuModuleGetFunction", code.module.load_function(name))?));
        let functions = names.iter().map(load).collect::<Result<Vec<_>, CudaError>>()?;
        let mut shared_bytes = 0;
        if let (Kernel::Exact, [(_, function)]) = (kernel, functions.as_slice()) {
            let symbol = code.module.get_global("exact_top_p_shared_bytes", &device.stream);
            let symbol = driver("cuModuleGetGlobal", symbol)?;
            let own = driver("cuMemcpyDtoHAsync", device.stream.clone_dtoh(&symbol))?;
            driver("cuStreamSynchronize", device.stream.synchronize())?;
            let own = own.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            shared_bytes = own + if shape.cached { 4 * shape.length } else { 0 };
            let set = |attribute, value: u32| {
                let value = i32::try_from(value).unwrap_or(i32::MAX);
                driver("cuFuncSetAttribute", function.set_attribute(attribute, value))
            };
            set(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)?;
            if shape.blocks_a_row > 8 {
                set(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
            }
        }
        Ok(Self { functions, shared_bytes })
    }
}

/// Enqueues one run of a kernel.
fn enqueue(
    device: &Device,
    kernel: Kernel,
    shape: &Shape,
    functions: &Functions,
    batch: &mut Batch,
) -> Result<(), CudaError> {
    let Batch { logits, p, output, vocab, scratch, .. } = batch;
    let Some(Scratch { statistics, states, probes, sort, results }) = scratch else { return Ok(()) };
    let vocab = i32::try_from(*vocab).map_err(|_| CudaError::Vocabulary { vocab: *vocab })?;
    let length = i32::try_from(shape.length).unwrap_or(i32::MAX);
    let [x, y] = shape.grid;
    let config =
        LaunchConfig { grid_dim: (x, y, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: functions.shared_bytes };
    let rounds = i32::try_from(split::ROUNDS).unwrap_or(i32::MAX);
    match (kernel, functions.functions.as_slice()) {
        (Kernel::Stock | Kernel::Patch, [(_, statistics_of), (_, step), (_, mask)]) => {
            let mut launch = device.stream.launch_builder(statistics_of);
            launch.arg(&*logits).arg(&vocab).arg(&mut *statistics);
            // SAFETY: the arguments are those of `split_top_p_statistics`, the buffers sized for the grid.
            driver("cuLaunchKernel", unsafe { launch.launch(config) })?;
            for round in 0..rounds {
                let mut launch = device.stream.launch_builder(step);
                launch.arg(&*logits).arg(&*p).arg(&vocab).arg(&round).arg(&*statistics);
                launch.arg(&mut *states).arg(&mut *probes);
                // SAFETY: as above, `split_top_p_step`.
                driver("cuLaunchKernel", unsafe { launch.launch(config) })?;
            }
            let mut launch = device.stream.launch_builder(mask);
            launch.arg(&*logits).arg(&*p).arg(&vocab).arg(&*statistics).arg(&mut *states).arg(&*probes);
            launch.arg(&mut *output);
            // SAFETY: as above, `split_top_p_mask_*`.
            driver("cuLaunchKernel", unsafe { launch.launch(config) })?;
        }
        (Kernel::Sort, [(_, function)]) => {
            let mut launch = device.stream.launch_builder(function);
            launch.arg(&*logits).arg(&*p).arg(&vocab).arg(&mut *sort).arg(&mut *output);
            // SAFETY: as above, `sort_top_p`.
            driver("cuLaunchKernel", unsafe { launch.launch(config) })?;
        }
        (Kernel::Exact, [(_, function)]) => {
            let mut launch = device.stream.launch_builder(function);
            launch.arg(&*logits).arg(&*p).arg(&vocab).arg(&length).arg(&mut *output).arg(&mut *results);
            // SAFETY: as above, `exact_top_p`; the grid is a multiple of the cluster that it was compiled for.
            driver("cuLaunchKernel", unsafe { launch.launch(config) })?;
        }
        (Kernel::Stock | Kernel::Patch | Kernel::Sort | Kernel::Exact, _) => {}
    }
    Ok(())
}

/// Runs a kernel once into a poisoned output.
pub(super) fn run(
    device: &Device,
    kernel: Kernel,
    shape: &Shape,
    code: &Code,
    batch: &mut Batch,
) -> Result<(Launch, Vec<usize>), CudaError> {
    let functions = Functions::load(device, kernel, shape, code)?;
    // Fresh scratch for each run: nothing is carried over from an earlier one.
    batch.scratch = Some(Scratch::new(device, batch.batch, batch.vocab)?);
    let poison = vec![f32::from_bits(POISON); batch.output.len()];
    driver("cuMemcpyHtoDAsync", device.stream.memcpy_htod(&poison, &mut batch.output))?;
    enqueue(device, kernel, shape, &functions, batch)?;
    driver("cuStreamSynchronize", device.stream.synchronize())?;
    let output = driver("cuMemcpyDtoHAsync", device.stream.clone_dtoh(&batch.output))?;
    driver("cuStreamSynchronize", device.stream.synchronize())?;
    let mut launch = Launch { output, dispatch: dispatch(kernel, shape, code, &functions) };
    let mut flagged = Vec::new();
    if let (Kernel::Exact, Some(scratch)) = (kernel, &batch.scratch) {
        let results = driver("cuMemcpyDtoHAsync", device.stream.clone_dtoh(&scratch.results))?;
        driver("cuStreamSynchronize", device.stream.synchronize())?;
        let mut rejected = Vec::new();
        for (row, result) in results.chunks_exact(RESULT_BYTES / 4).enumerate() {
            match result.get(2).copied() {
                Some(0 | 2) => {}
                Some(1) => flagged.push(row),
                Some(3) => rejected.push(row),
                outcome => return Err(CudaError::Outcome { row, outcome: outcome.unwrap_or(u32::MAX) }),
            }
        }
        launch.dispatch.insert("rejected_rows".to_owned(), rejected.into());
    }
    batch.scratch = None;
    Ok((launch, flagged))
}

fn dispatch(kernel: Kernel, shape: &Shape, code: &Code, functions: &Functions) -> Map<String, Value> {
    let names: Vec<&str> = functions.functions.iter().map(|(name, _)| *name).collect();
    let launched = match names.as_slice() {
        [statistics, step, mask] => {
            let mut launched = vec![*statistics];
            launched.extend(std::iter::repeat_n(*step, split::ROUNDS));
            launched.push(mask);
            launched
        }
        names => names.to_vec(),
    };
    let cubin = |name: &&str| ((*name).to_owned(), Value::from(code.cubin_sha256.to_string()));
    let source = |file: &SourceFile| (file.path.to_owned(), Value::from(file.sha256().to_string()));
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    let path = match kernel {
        Kernel::Stock | Kernel::Patch => "cuda-split",
        Kernel::Sort => "cuda-sort",
        Kernel::Exact => "cuda-exact",
    };
    set("path", path.into());
    set("kernels", launched.into());
    set("grid", shape.grid.to_vec().into());
    set("block", vec![THREADS].into());
    set("shared_bytes", functions.shared_bytes.into());
    set("cubin_sha256", Value::Object(names.iter().map(cubin).collect()));
    set("source_sha256", Value::Object([HEADER, code.source].iter().map(source).collect()));
    set("options", code.options.clone().into());
    set("compiler", code.compiler.clone().into());
    match kernel {
        Kernel::Stock | Kernel::Patch => {
            set("splits", shape.blocks_a_row.into());
            set("rounds", split::ROUNDS.into());
            set("fanout", split::PIVOTS.into());
        }
        Kernel::Exact => {
            set("cluster", shape.blocks_a_row.into());
        }
        Kernel::Sort => {}
    }
    fields
}

impl Device {
    /// Times a kernel on an uploaded batch: `runs` replays of a graph of `repeats` runs each, by events.
    ///
    /// # Errors
    /// As [`CudaError`] says.
    pub fn time(
        &self,
        kernel: Kernel,
        shape: &Shape,
        batch: &mut Batch,
        runs: usize,
        repeats: u16,
    ) -> Result<Timing, CudaError> {
        let code = self.load(kernel, shape)?;
        let functions = Functions::load(self, kernel, shape, &code)?;
        batch.scratch = Some(Scratch::new(self, batch.batch, batch.vocab)?);
        enqueue(self, kernel, shape, &functions, batch)?;
        driver("cuStreamSynchronize", self.stream.synchronize())?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        driver("cuStreamBeginCapture", self.stream.begin_capture(mode))?;
        let enqueued = (0..repeats).try_for_each(|_| enqueue(self, kernel, shape, &functions, batch));
        let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = driver("cuStreamEndCapture", self.stream.end_capture(flags))?;
        enqueued?;
        let missing = || CudaError::Driver { call: "cuStreamEndCapture", reason: "no graph".to_owned() };
        let graph = graph.ok_or_else(missing)?;
        let event = || driver("cuEventCreate", self.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)));
        let mut microseconds = Vec::new();
        for run in 0..runs + 3 {
            let (start, end) = (event()?, event()?);
            driver("cuEventRecord", start.record(&self.stream))?;
            driver("cuGraphLaunch", graph.launch())?;
            driver("cuEventRecord", end.record(&self.stream))?;
            let elapsed = driver("cuEventElapsedTime", start.elapsed_ms(&end))?;
            // The first few warm up.
            if run >= 3 {
                microseconds.push(elapsed * 1000.0 / f32::from(repeats));
            }
        }
        microseconds.sort_by(f32::total_cmp);
        batch.scratch = None;
        Ok(Timing { microseconds })
    }
}
