//! The kernels' algorithms on the CPU, in the device's arithmetic and reduction order: every mask is a pure function of
//! the row, p and the number of multiprocessors that the split is made for.

mod backend;
pub mod exact;
mod lanes;
pub mod sort;
pub mod split;

pub use backend::{CpuBackend, DEFAULT_MULTIPROCESSORS};
