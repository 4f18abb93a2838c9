//! From a statement to its bytes and back. A receipt has one spelling: canonical JSON that holds its own digest.

use super::statement::{PREDICATE_TYPE, SCHEMA_VERSION, STATEMENT_TYPE, Statement};
use crate::digest::Sha256;
use crate::json::{self, JsonError};

/// Why bytes are no receipt.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// Not JSON, a key twice, or not the fields of a receipt.
    #[error("not a receipt: {0}")]
    Json(#[from] JsonError),
    /// Another type of statement, predicate, or version of it.
    #[error("the {what} is `{found}`, expected `{expected}`")]
    Type {
        /// Which.
        what: &'static str,
        /// As stated.
        found: String,
        /// The only one read.
        expected: &'static str,
    },
    /// A receipt, but not as it was written.
    #[error("its bytes are not the canonical JSON of what they say: something was changed after it was written")]
    NotCanonical,
    /// A receipt whose digest of itself is another one.
    #[error("it states {} as its own digest and has {found}: something was changed after it was written", stated.map_or_else(|| "nothing".to_owned(), |sha256| sha256.to_string()))]
    Altered {
        /// As stated.
        stated: Option<Sha256>,
        /// Of what it says.
        found: Sha256,
    },
    /// The canonical form could not be written.
    #[error("no canonical form: {0}")]
    Canonical(serde_json::Error),
}

impl ReceiptError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json(_) => "receipt-json",
            Self::Type { .. } => "receipt-type",
            Self::NotCanonical => "receipt-not-canonical",
            Self::Altered { .. } => "receipt-altered",
            Self::Canonical(_) => "receipt-canonical",
        }
    }
}

/// The bytes of the receipt: canonical JSON with its own digest in it.
///
/// # Errors
/// [`ReceiptError::Canonical`], where the types hold something that canonical JSON cannot say, which they do not.
pub fn seal(statement: &Statement) -> Result<Vec<u8>, ReceiptError> {
    let mut statement = statement.clone();
    statement.predicate.receipt_sha256 = Some(own_digest(&statement)?);
    canonical(&statement)
}

/// The receipt that `bytes` are: well-formed, in its one spelling, and with the digest that it states of itself.
///
/// # Errors
/// As [`ReceiptError`] says.
pub fn open(bytes: &[u8]) -> Result<Statement, ReceiptError> {
    let statement: Statement = json::from_slice(bytes)?;
    let predicate = &statement.predicate;
    for (what, found, expected) in [
        ("statement type", &statement.kind, STATEMENT_TYPE),
        ("predicate type", &statement.predicate_type, PREDICATE_TYPE),
        ("schema version", &predicate.schema_version, SCHEMA_VERSION),
    ] {
        if found != expected {
            return Err(ReceiptError::Type { what, found: found.clone(), expected });
        }
    }
    if canonical(&statement)? != bytes {
        return Err(ReceiptError::NotCanonical);
    }
    match (predicate.receipt_sha256, own_digest(&statement)?) {
        (Some(stated), found) if stated == found => Ok(statement),
        (stated, found) => Err(ReceiptError::Altered { stated, found }),
    }
}

fn own_digest(statement: &Statement) -> Result<Sha256, ReceiptError> {
    let mut blank = statement.clone();
    blank.predicate.receipt_sha256 = None;
    Ok(Sha256::of(&canonical(&blank)?))
}

fn canonical(statement: &Statement) -> Result<Vec<u8>, ReceiptError> {
    serde_json_canonicalizer::to_vec(statement).map_err(ReceiptError::Canonical)
}
