//! nucleus-gate holds two versions of a top-p (nucleus) sampling kernel, *stock* and *patch*, row by row against a
//! certified binary64 *oracle*, under a declarative *policy* whose hash goes into the *receipt*.
//!
//! Data flows one way: `policy` and `matrix` are read, `matrix` builds `inputs`, `oracle` and `evidence` describe each
//! row, `gate` applies `rules` to them, `report` and `receipt` say what came of it.

pub mod digest;
pub mod evidence;
pub mod fsio;
pub mod inputs;
pub mod json;
pub mod matrix;
pub mod oracle;
pub mod root;
pub mod syntax;
pub mod tensors;
pub mod text;
