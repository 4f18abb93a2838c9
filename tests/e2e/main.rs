//! The gate from end to end, on the shipped evidence and on broken copies of it.

mod common;
mod exit;
mod flood;
mod interrupt;
mod kernels;
mod outputs;
mod policy;
mod receipt;
mod receipt_forms;
mod recorded;
mod screen;
mod system;
mod tamper;
