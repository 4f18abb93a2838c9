//! JSON from outside: one document, no duplicate keys.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Why bytes are not the JSON document that they should be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(#[from] serde_json::Error);

/// Reads `bytes` as one JSON document of type `T`. An object with a key twice is refused, at any depth: which of the
/// two values a reader takes is not defined, so that two readers could see two documents. Nesting is bounded by
/// serde_json (128).
///
/// # Errors
/// [`JsonError`] with line and column, for bytes that are not JSON, hold a key twice or are no `T`.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    UniqueKeys.deserialize(&mut reader)?;
    reader.end()?;
    Ok(serde_json::from_slice(bytes)?)
}

/// Walks a document and keeps nothing of it.
#[derive(Clone, Copy)]
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if let Some(key) = seen.replace(key) {
                return Err(de::Error::custom(format!("the key `{key}` stands twice in one object")));
            }
            map.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_key_twice_is_refused_at_any_depth() {
        assert!(from_slice::<Value>(br#"{"a":1,"b":[{"a":-1.5},null,true,"a"]}"#).is_ok());
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            let error = from_slice::<Value>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("the key `a` stands twice"), "{error}");
        }
    }

    #[test]
    fn one_document_and_bounded_nesting() {
        assert!(from_slice::<Value>(b"{} {}").is_err());
        assert!(from_slice::<Value>(b"").is_err());
        assert!(from_slice::<Value>("[".repeat(100_000).as_bytes()).is_err());
    }
}
