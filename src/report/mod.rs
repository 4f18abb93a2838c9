//! A run as people and machines read it: one typed model ([`crate::gate::Run`]), one renderer a file.

mod boundary;
mod diagnostic;
mod human;
mod json;
pub mod policy;
mod selection;
mod summary;

pub use diagnostic::{Screen, render_issues, rule_id};
pub use human::human;
pub use json::{SCHEMA, json};

/// Whether these bytes are a report that was written to a file, for people or for machines.
#[must_use]
pub fn is_report(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let schema = || Some(serde_json::from_str::<serde_json::Value>(text).ok()?.get("schema")? == SCHEMA);
    human::is_human(text) || schema().unwrap_or_default()
}
