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
