//! The case matrix: which subjects are compared, on which inputs, in which order, and what a probe must show.

mod case;
mod decode;
mod expectation;
mod model;
mod repin;
#[cfg(test)]
mod tests;

pub use expectation::Expectation;
pub use model::{
    Case, CaseKind, ForceSpec, InputPins, MAX_ROWS, Matrix, Origin, REJECTIONS, RowKind, SourcePin, SubjectSpec,
};
pub use repin::{Pinned, repin};
