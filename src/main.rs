//! The command line of nucleus-gate.
fn main() {}
