//! Values that a KDL entry can hold.

use kdl::KdlValue;

use super::Decimal;
use crate::digest::Sha256;

/// A type that can be read from a KDL value. `repr` is the value as written.
pub trait FromKdl: Sized {
    /// What was expected, as in "expected a whole number".
    const EXPECTED: &'static str;

    /// Reads the value, or `None` where it is something else.
    fn from_kdl(value: &KdlValue, repr: &str) -> Option<Self>;
}

impl FromKdl for String {
    const EXPECTED: &'static str = "a string";

    fn from_kdl(value: &KdlValue, _repr: &str) -> Option<Self> {
        value.as_string().map(str::to_owned)
    }
}

impl FromKdl for bool {
    const EXPECTED: &'static str = "#true or #false";

    fn from_kdl(value: &KdlValue, _repr: &str) -> Option<Self> {
        value.as_bool()
    }
}

impl FromKdl for u32 {
    const EXPECTED: &'static str = "a whole number from 0 to 4294967295, in decimal";

    fn from_kdl(value: &KdlValue, repr: &str) -> Option<Self> {
        whole(value, repr)?.try_into().ok()
    }
}

impl FromKdl for u64 {
    const EXPECTED: &'static str = "a whole number from 0 to 18446744073709551615, in decimal";

    fn from_kdl(value: &KdlValue, repr: &str) -> Option<Self> {
        whole(value, repr)?.try_into().ok()
    }
}

impl FromKdl for f64 {
    const EXPECTED: &'static str = "a finite decimal number";

    fn from_kdl(value: &KdlValue, repr: &str) -> Option<Self> {
        number_text(value, repr)?.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

impl FromKdl for f32 {
    const EXPECTED: &'static str = "a decimal number in the range of binary32 (or #nan, #inf, #-inf)";

    /// The binary32 value nearest to the decimal, rounded once. Only the keywords are not finite.
    fn from_kdl(value: &KdlValue, repr: &str) -> Option<Self> {
        match repr {
            "#nan" => Some(Self::NAN),
            "#inf" => Some(Self::INFINITY),
            "#-inf" => Some(Self::NEG_INFINITY),
            _ => number_text(value, repr)?.parse().ok().filter(|number: &Self| number.is_finite()),
        }
    }
}

/// A whole number as it is meant to be read: in decimal.
fn whole(value: &KdlValue, repr: &str) -> Option<i128> {
    number_text(value, repr)?;
    value.as_integer()
}

/// The text of a number that Rust can parse; hexadecimal and friends are refused where a decimal is meant.
fn number_text(value: &KdlValue, repr: &str) -> Option<String> {
    match value {
        KdlValue::Integer(_) | KdlValue::Float(_) => {
            let text: String = repr.chars().filter(|c| *c != '_').collect();
            text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)).then_some(text)
        }
        KdlValue::String(_) | KdlValue::Bool(_) | KdlValue::Null => None,
    }
}

impl FromKdl for Sha256 {
    const EXPECTED: &'static str = "a SHA-256 digest as 64 lowercase hexadecimal digits";

    fn from_kdl(value: &KdlValue, _repr: &str) -> Option<Self> {
        value.as_string().and_then(Self::parse)
    }
}

impl FromKdl for Decimal {
    const EXPECTED: &'static str = "a decimal in quotes, such as \"0.005\", at most 18 digits";

    fn from_kdl(value: &KdlValue, _repr: &str) -> Option<Self> {
        value.as_string().and_then(Self::parse)
    }
}
