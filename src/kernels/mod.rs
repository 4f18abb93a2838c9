//! Kernels that run here.
//!
//! Real ones: the split top-p of the recorded engine (stock and patch), the sort reference and an exact one, as CUDA C++
//! (`kernels/`) on the devices of the machine, or as a model of the same algorithm, in the same arithmetic and order, on
//! the CPU. And models of faults. They produce outputs and say how; they judge nothing.

mod backend;
pub mod capture;
pub mod cpu;
pub mod cuda;
pub mod faults;
pub mod mutations;
pub mod numerics;
mod settle;
#[cfg(test)]
mod tests;

pub use backend::{Backend, BackendError, Kernel, Launch, Machine, POISON, SourceFile};
use backend::{cut_row, settle_flagged};
pub use settle::settle;
