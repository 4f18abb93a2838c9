//! The shipped policies, part of the binary so that an installed one needs no checkout.

use crate::syntax::Source;

const SHIPPED: [(&str, &str); 3] = [
    ("builtin:split-top-p", include_str!("../../policies/split-top-p.kdl")),
    ("builtin:any-dispatch", include_str!("../../policies/any-dispatch.kdl")),
    ("builtin:cpu-model", include_str!("../../policies/cpu-model.kdl")),
];

/// The shipped policy of that name, such as `builtin:split-top-p`. Its bytes are those of the file in a checkout.
#[must_use]
pub fn builtin(name: &str) -> Option<Source> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(name, text)| Source::new(*name, *text))
}

/// The names of the shipped policies.
#[must_use]
pub fn builtin_names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}
