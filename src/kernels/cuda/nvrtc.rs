//! The run-time compiler: a source, embedded in this program, to the code of one device.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::error::CudaError;
use super::sources::HEADER;
use crate::kernels::SourceFile;

/// Names a folder that holds libnvrtc, where the dynamic linker does not find it.
pub const FOLDER_VARIABLE: &str = "NUCLEUS_GATE_NVRTC";

/// What to compile to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The machine code of a device of this compute capability.
    Cubin(u32, u32),
    /// Portable assembly for that capability and later ones.
    Ptx(u32, u32),
}

/// Compiled code.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The cubin, or the text of the PTX with a final NUL.
    pub code: Vec<u8>,
    /// The options it was compiled with.
    pub options: Vec<String>,
    /// The compiler's version.
    pub compiler: String,
}

/// Compiles `source` with `defines` (NAME=VALUE).
///
/// # Errors
/// [`CudaError::NoCompiler`], [`CudaError::Compile`] or [`CudaError::Compiler`].
pub fn compile(source: SourceFile, target: Target, defines: &[String]) -> Result<Compiled, CudaError> {
    load()?;
    let architecture = match target {
        Target::Cubin(major, minor) => format!("--gpu-architecture=sm_{major}{minor}"),
        Target::Ptx(major, minor) => format!("--gpu-architecture=compute_{major}{minor}"),
    };
    // No contraction: an operation is fused where the source says fma, and nowhere else.
    let mut options = vec![architecture, "--fmad=false".into(), "--std=c++17".into(), "--device-int128".into()];
    options.extend(defines.iter().map(|define| format!("-D{define}")));
    let program = Program::new(source)?;
    program.compile(source, &options)?;
    let code = match target {
        // SAFETY: both functions take the live program and fill what they are given, as `read` requires.
        Target::Cubin(..) => program.read("nvrtcGetCUBIN", sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)?,
        // SAFETY: as above.
        Target::Ptx(..) => program.read("nvrtcGetPTX", sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)?,
    };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is loaded; the two places are written.
    check("nvrtcVersion", unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
    Ok(Compiled { code, options, compiler: format!("nvrtc {major}.{minor}") })
}

/// Loads the library once, from the folder named by [`FOLDER_VARIABLE`] if it is set.
fn load() -> Result<(), CudaError> {
    static LOADED: OnceLock<bool> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
            // Once a library is loaded, later requests by its bare name find it.
            for path in libraries(&PathBuf::from(folder)) {
                // SAFETY: the compiler's own libraries, whose initializers are made to be run by loading.
                if let Ok(library) = unsafe { libloading::Library::new(path) } {
                    std::mem::forget(library);
                }
            }
        }
        // SAFETY: as above.
        unsafe { sys::is_culib_present() }
    });
    if *loaded { Ok(()) } else { Err(CudaError::NoCompiler) }
}

/// The compiler's libraries in `folder`, the one that the other needs first.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is = |path: &Path, start: &str| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(start) && !name.contains(".alt."))
    };
    let mut found: Vec<PathBuf> = names.filter(|path| is(path, "libnvrtc")).collect();
    found.sort_by_key(|path| (!is(path, "libnvrtc-builtins.so"), path.clone()));
    found
}

struct Program(nvrtcProgram);

impl Program {
    fn new(source: SourceFile) -> Result<Self, CudaError> {
        let text = |text: &str| {
            let reason = |_| CudaError::Compile { source_file: source.path, log: "a NUL byte in the source".into() };
            CString::new(text).map_err(reason)
        };
        let (code, name) = (text(source.text)?, text(source.path)?);
        let (header, header_name) = (text(HEADER.text)?, text("numerics.cuh")?);
        let (headers, header_names) = ([header.as_ptr()], [header_name.as_ptr()]);
        let mut program = ptr::null_mut();
        // SAFETY: all strings live over the call, which copies them; one header, one name.
        let result = unsafe {
            sys::nvrtcCreateProgram(
                &raw mut program,
                code.as_ptr(),
                name.as_ptr(),
                1,
                headers.as_ptr(),
                header_names.as_ptr(),
            )
        };
        check("nvrtcCreateProgram", result)?;
        Ok(Self(program))
    }

    fn compile(&self, source: SourceFile, options: &[String]) -> Result<(), CudaError> {
        let options: Vec<CString> = options.iter().filter_map(|option| CString::new(option.as_str()).ok()).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is live, and the options live over the call.
        let result = unsafe { sys::nvrtcCompileProgram(self.0, pointers.len() as i32, pointers.as_ptr()) };
        if result == nvrtcResult::NVRTC_ERROR_COMPILATION {
            let log = self.read("nvrtcGetProgramLog", sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog)?;
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
            return Err(CudaError::Compile { source_file: source.path, log });
        }
        check("nvrtcCompileProgram", result)
    }

    /// Reads what the program holds through a function for its size and one for its bytes.
    fn read(
        &self,
        call: &'static str,
        size: unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult,
        bytes: unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult,
    ) -> Result<Vec<u8>, CudaError> {
        let mut length = 0;
        // SAFETY: the program is live; the place is written.
        check(call, unsafe { size(self.0, &raw mut length) })?;
        let mut buffer = vec![0u8; length];
        // SAFETY: the buffer has the size that the compiler just gave.
        check(call, unsafe { bytes(self.0, buffer.as_mut_ptr().cast()) })?;
        Ok(buffer)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once. Nothing can be done about a failure here.
        let _destroyed = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

fn check(call: &'static str, result: nvrtcResult) -> Result<(), CudaError> {
    if result == nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    // SAFETY: the function returns a static string for any result.
    let reason = unsafe { CStr::from_ptr(sys::nvrtcGetErrorString(result)) }.to_string_lossy().into_owned();
    Err(CudaError::Compiler { call, reason })
}
