//! Policies: KDL to typed rules that keep their places.

mod builtin;
mod canonical;
mod check;
mod decode;
mod diff;
mod lint;
mod lock;
mod model;

#[cfg(test)]
mod diff_tests;
#[cfg(test)]
mod lint_tests;
#[cfg(test)]
mod tests;

pub use builtin::{builtin, builtin_names};
pub use diff::{Change, Item, diff};
pub use lint::{Paths, lint, lint_with};
pub use lock::{Entry, Freeze, Frozen, LOCK_PATH, Lock, Refusal, Unfrozen};
pub use model::{EvidenceSpec, Limits, Policy, ReportItem, ReportKind, RuleBlock, RuleSpec};
