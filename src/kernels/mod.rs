//! Kernels that run here.

pub mod faults;
