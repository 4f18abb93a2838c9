//! nucleus-gate holds two versions of a top-p (nucleus) sampling kernel, *stock* and *patch*, row by row against a
//! certified binary64 *oracle*, under a declarative *policy* whose hash goes into the *receipt*.
//!
//! Data flows one way: `policy` and `matrix` are read, `matrix` builds `inputs`, `oracle` and `evidence` describe each
//! row, `gate` applies `rules` to them, `report` and `receipt` say what came of it.

// Library code never panics on what it is given. Tests may.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable
)]

pub mod cli;
pub mod digest;
pub mod dsse;
pub mod evidence;
pub mod explain;
pub mod fsio;
pub mod gate;
pub mod inputs;
pub mod json;
pub mod kernels;
pub mod matrix;
pub mod oracle;
pub mod policy;
pub mod proof;
pub mod receipt;
pub mod report;
pub mod root;
pub mod rules;
pub mod syntax;
pub mod tensors;
pub mod text;
