//! Kernels that run here.

pub mod faults;
pub mod mutations;
