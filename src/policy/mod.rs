//! Policies: KDL to typed rules that keep their places.

mod builtin;
mod check;
mod decode;
mod model;

#[cfg(test)]
mod tests;

pub use builtin::{builtin, builtin_names};
pub use model::{EvidenceSpec, Limits, Policy, ReportItem, ReportKind, RuleBlock, RuleSpec};
