//! What a harness recorded of the launch: the path taken, the kernels, their shape and code.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::digest::Sha256;
use crate::json::{self, JsonError};

/// The launch of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The path's name, such as `cuda-split`; `unknown` where the harness could not tell.
    pub path: String,
    /// Kernels in launch order.
    pub kernels: Vec<String>,
    /// The launch grid, empty where there is none.
    pub grid: Vec<u64>,
    /// The digests of the compiled kernels, by kernel.
    pub cubin_sha256: BTreeMap<String, Sha256>,
    /// Everything recorded, these fields and others, as canonical JSON (RFC 8785): what a receipt binds.
    pub canonical: String,
}

/// The fields that the gate reads. Others (splits, rounds, fanout, what another backend adds) are bound, not read.
#[derive(Deserialize)]
struct Fields {
    path: String,
    kernels: Vec<String>,
    grid: Vec<u64>,
    #[serde(default)]
    cubin_sha256: BTreeMap<String, Sha256>,
}

/// Why a recorded dispatch is not readable.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// Not JSON, a key twice, or without the fields that every dispatch has.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A number that canonical JSON does not keep: a fraction, or an integer beyond 2^53 - 1.
    #[error("the number {number} is not an integer within 2^53 - 1")]
    Number {
        /// As read.
        number: String,
    },
    /// The canonical form could not be written.
    #[error("no canonical form: {0}")]
    Canonical(#[from] serde_json::Error),
}

impl Dispatch {
    /// Reads the JSON text of a dispatch.
    ///
    /// # Errors
    /// [`DispatchError`].
    pub fn read(text: &str) -> Result<Self, DispatchError> {
        let value: Value = json::from_slice(text.as_bytes())?;
        exact_numbers(&value)?;
        let Fields { path, kernels, grid, cubin_sha256 } = json::from_slice(text.as_bytes())?;
        let canonical = serde_json_canonicalizer::to_string(&value)?;
        Ok(Self { path, kernels, grid, cubin_sha256, canonical })
    }
}

fn exact_numbers(value: &Value) -> Result<(), DispatchError> {
    const LARGEST: u64 = (1 << 53) - 1;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|n| n.unsigned_abs() <= LARGEST) => Ok(()),
        Value::Number(number) => Err(DispatchError::Number { number: number.to_string() }),
        Value::Array(values) => values.iter().try_for_each(exact_numbers),
        Value::Object(map) => map.values().try_for_each(exact_numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_text_is_one_for_one_content() {
        let one = Dispatch::read(r#"{"path":"cuda-split","kernels":["a","b"],"grid":[128],"splits":16}"#).unwrap();
        let two =
            Dispatch::read(r#"{"splits": 16, "grid": [128], "kernels": ["a", "b"], "path": "cuda-split"}"#).unwrap();
        assert_eq!(one, two);
        assert_eq!(one.canonical, r#"{"grid":[128],"kernels":["a","b"],"path":"cuda-split","splits":16}"#);
    }

    #[test]
    fn what_cannot_be_bound_exactly_is_refused() {
        let refused = |rest: &str| {
            let text = format!(r#"{{"path":"p","kernels":[],"grid":[]{rest}}}"#);
            Dispatch::read(&text).map(|dispatch| dispatch.canonical)
        };
        assert!(refused("").is_ok());
        assert!(matches!(refused(r#","x":[{"y":0.5}]"#), Err(DispatchError::Number { .. })));
        assert!(matches!(refused(r#","x":9007199254740992"#), Err(DispatchError::Number { .. })));
        assert!(refused(r#","x":9007199254740991"#).is_ok());
        assert!(matches!(refused(r#","path":"q""#), Err(DispatchError::Json(_))));
        assert!(matches!(Dispatch::read(r#"{"path":"p","kernels":[]}"#), Err(DispatchError::Json(_))));
    }
}
