//! Policies: KDL to typed rules that keep their places.

mod builtin;
mod check;
mod decode;
mod lint;
mod model;

#[cfg(test)]
mod lint_tests;
#[cfg(test)]
mod tests;

pub use builtin::{builtin, builtin_names};
pub use lint::{Paths, lint, lint_with};
pub use model::{EvidenceSpec, Limits, Policy, ReportItem, ReportKind, RuleBlock, RuleSpec};
