//! Signed envelopes (DSSE, <https://github.com/secure-systems-lab/dsse>) with Ed25519 keys in PEM files: PKCS#8 for the
//! secret key, SubjectPublicKeyInfo for the public one, as openssl reads and writes them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    self, DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::digest::Sha256;
use crate::fsio::{Existing, FileError, Hold, read_bounded, write_atomic, write_secret};
use crate::json::{self, JsonError};

/// The payload type of in-toto statements.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The most bytes of a key file.
const MAX_KEY: u64 = 4096;

/// The bytes that are signed: `"DSSEv1" SP LEN(type) SP type SP LEN(body) SP body`.
fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// A key that signs.
#[derive(Debug)]
pub struct SecretKey(SigningKey);

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file holds no Ed25519 key of the right kind.
    #[error("{path} is no Ed25519 {kind} key in PEM: {source}")]
    Malformed {
        /// The file.
        path: String,
        /// `secret` or `public`.
        kind: &'static str,
        /// What the decoder said.
        source: pkcs8::Error,
    },
    /// A key could not be written as PEM.
    #[error("the key cannot be written as PEM: {0}")]
    Encoding(#[from] pkcs8::Error),
    /// The system gave no randomness.
    #[error("the system gave no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

impl KeyError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Malformed { .. } => "key-malformed",
            Self::Encoding(_) => "key-encoding",
            Self::Randomness(_) => "key-randomness",
        }
    }
}

/// Whether the file at `path` can be read by others than its owner.
#[must_use]
pub fn is_shared(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o044 != 0)
}

fn read_key(path: &Path) -> Result<String, FileError> {
    let bytes = read_bounded(path, MAX_KEY)?;
    // What is no text is no PEM either: the decoder refuses it with its own words.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl SecretKey {
    /// A new key from the system's randomness.
    ///
    /// # Errors
    /// [`KeyError::Randomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Reads a PKCS#8 PEM file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Malformed`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let key = SigningKey::from_pkcs8_pem(&read_key(path)?);
        key.map(Self).map_err(|source| KeyError::Malformed { path: path.display().to_string(), kind: "secret", source })
    }

    /// Writes the secret key to `secret` (readable by its owner alone) and its public key to `public`: both or neither.
    /// Neither file is replaced.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Encoding`].
    pub fn write(&self, secret: &Path, public: &Path) -> Result<(), KeyError> {
        let public_pem = self.0.verifying_key().to_public_key_pem(LineEnding::LF).map_err(pkcs8::Error::from)?;
        // Without the public key, as RFC 8410 has it: with it, it would be of a version that openssl 3.0 does not read.
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let secret_pem = pair.to_pkcs8_pem(LineEnding::LF)?;
        for path in [secret, public] {
            if fs::symlink_metadata(path).is_ok() {
                return Err(FileError::Exists { path: path.to_owned() }.into());
            }
        }
        let _hold = Hold::signals();
        // The public key last: where it stands, the secret one does as well.
        write_secret(secret, secret_pem.as_bytes())?;
        write_atomic(public, public_pem.as_bytes(), Existing::Keep).map_err(|error| {
            // A secret key without its public one is of no use, and a risk. The error that matters is the first.
            let _ = fs::remove_file(secret);
            error.into()
        })
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// `payload`, signed.
    #[must_use]
    pub fn sign(&self, payload_type: &str, payload: &[u8]) -> Envelope {
        let signature = self.0.sign(&pre_authentication_encoding(payload_type, payload));
        let sig = STANDARD.encode(signature.to_bytes());
        Envelope {
            payload: STANDARD.encode(payload),
            payload_type: payload_type.to_owned(),
            signatures: vec![EnvelopeSignature { keyid: self.public().id().to_string(), sig }],
        }
    }
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo PEM file.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::Malformed`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_public_key_pem(&read_key(path)?).map_err(pkcs8::Error::from);
        key.map(Self).map_err(|source| KeyError::Malformed { path: path.display().to_string(), kind: "public", source })
    }

    /// The digest of the raw key (32 bytes): the envelope's `keyid`.
    #[must_use]
    pub fn id(&self) -> Sha256 {
        Sha256::of(self.0.as_bytes())
    }
}

/// A payload and its signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: String,
    sig: String,
}

/// Why an envelope proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not an envelope.
    #[error("not a signed envelope: {0}")]
    Json(#[from] JsonError),
    /// Another payload type.
    #[error("the payload type is `{found}`, expected `{expected}`")]
    PayloadType {
        /// As stated.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The payload or a signature is no canonical base64.
    #[error("the {what} is not base64: {source}")]
    Base64 {
        /// `payload` or `signature`.
        what: &'static str,
        /// What the decoder said.
        source: base64::DecodeError,
    },
    /// Not exactly one signature.
    #[error("{found} signatures, expected one")]
    Count {
        /// Signatures in the envelope.
        found: usize,
    },
    /// Signed with another key, as the envelope says itself.
    #[error("signed with key {found}, not with the given key {expected}")]
    OtherKey {
        /// As stated.
        found: String,
        /// The given key's id.
        expected: Sha256,
    },
    /// The signature does not verify.
    #[error("the signature does not verify with key {key}: the payload, its type or the signature was changed")]
    Signature {
        /// The given key's id.
        key: Sha256,
    },
}

impl EnvelopeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json(_) => "envelope-json",
            Self::PayloadType { .. } => "envelope-payload-type",
            Self::Base64 { .. } => "envelope-base64",
            Self::Count { .. } => "envelope-signatures",
            Self::OtherKey { .. } => "signature-other-key",
            Self::Signature { .. } => "signature-invalid",
        }
    }
}

impl Envelope {
    /// Reads the JSON of an envelope.
    ///
    /// # Errors
    /// [`EnvelopeError::Json`].
    pub fn read(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        Ok(json::from_slice(bytes)?)
    }

    /// The payload, unverified: for reading what an envelope claims where no key is given.
    ///
    /// # Errors
    /// [`EnvelopeError::PayloadType`] or [`EnvelopeError::Base64`].
    pub fn unverified_payload(&self, payload_type: &'static str) -> Result<Vec<u8>, EnvelopeError> {
        if self.payload_type != payload_type {
            return Err(EnvelopeError::PayloadType { found: self.payload_type.clone(), expected: payload_type });
        }
        STANDARD.decode(&self.payload).map_err(|source| EnvelopeError::Base64 { what: "payload", source })
    }

    /// The very bytes that `key` signed as `payload_type`. Stricter than DSSE asks: exactly one signature, and its
    /// `keyid` (which nothing protects) must be the key's.
    ///
    /// # Errors
    /// As [`EnvelopeError`] says.
    pub fn verify(&self, payload_type: &'static str, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
        let payload = self.unverified_payload(payload_type)?;
        let [EnvelopeSignature { keyid, sig }] = self.signatures.as_slice() else {
            return Err(EnvelopeError::Count { found: self.signatures.len() });
        };
        if *keyid != key.id().to_string() {
            return Err(EnvelopeError::OtherKey { found: keyid.clone(), expected: key.id() });
        }
        let sig = STANDARD.decode(sig).map_err(|source| EnvelopeError::Base64 { what: "signature", source })?;
        let invalid = |_| EnvelopeError::Signature { key: key.id() };
        let signature = Signature::from_slice(&sig).map_err(invalid)?;
        key.0.verify_strict(&pre_authentication_encoding(payload_type, &payload), &signature).map_err(invalid)?;
        Ok(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey(SigningKey::from_bytes(&[seed; 32]))
    }

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        let bytes = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn a_signature_is_that_of_rfc_8032() {
        // RFC 8032, section 7.1, test 1 (the empty message), shows that keys are what that standard says they are.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let secret = SecretKey(SigningKey::from_bytes(Sha256::parse(seed).unwrap().as_bytes()));
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(secret.public().0.as_bytes(), Sha256::parse(public).unwrap().as_bytes());
        assert!(hex(&secret.0.sign(b"").to_bytes()).starts_with("e5564300c360ac729086e2cc806e828a"));
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_signed_payload_verifies_and_comes_back() {
        let envelope = key(1).sign(IN_TOTO, b"{}");
        let json = serde_json::to_vec(&envelope).unwrap();
        assert_eq!(Envelope::read(&json).unwrap().verify(IN_TOTO, &key(1).public()).unwrap(), b"{}");
    }

    #[test]
    fn each_tampered_envelope_has_its_code() {
        let good = key(1).sign(IN_TOTO, b"{}");
        let code = |change: &dyn Fn(&mut Envelope)| {
            let mut envelope = good.clone();
            change(&mut envelope);
            envelope.verify(IN_TOTO, &key(1).public()).expect_err("must be refused").code()
        };
        assert_eq!(code(&|e| e.payload = STANDARD.encode(b"[]")), "signature-invalid");
        assert_eq!(code(&|e| e.payload.push('!')), "envelope-base64");
        assert_eq!(code(&|e| e.payload = "e31=".to_owned()), "envelope-base64"); // `{}` with a stray bit
        assert_eq!(code(&|e| e.payload_type.push('x')), "envelope-payload-type");
        assert_eq!(code(&|e| e.signatures.clear()), "envelope-signatures");
        assert_eq!(code(&|e| e.signatures.extend(good.signatures.clone())), "envelope-signatures");
        assert_eq!(code(&|e| e.signatures = key(2).sign(IN_TOTO, b"{}").signatures), "signature-other-key");
        assert_eq!(code(&|e| e.signatures[0].sig = "AAAA".to_owned()), "signature-invalid");
        assert_eq!(code(&|e| e.signatures[0].sig = STANDARD.encode([7; 64])), "signature-invalid");
        assert_eq!(code(&|e| e.signatures[0].sig.push('*')), "envelope-base64");
        let other_type = key(1).sign("text/plain", b"{}");
        assert_eq!(code(&|e| e.signatures = other_type.signatures.clone()), "signature-invalid");
        assert_eq!(Envelope::read(b"{\"payload\":\"\"}").expect_err("must be refused").code(), "envelope-json");
    }

    #[test]
    fn keys_are_written_once_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let [secret, public] = ["key.pem", "key.pub"].map(|name| folder.path().join(name));
        let key = SecretKey::generate().unwrap();
        key.write(&secret, &public).unwrap();
        assert_eq!(SecretKey::read(&secret).unwrap().public(), key.public());
        assert_eq!(PublicKey::read(&public).unwrap(), key.public());
        assert_eq!(key.write(&secret, &public).unwrap_err().code(), "file-exists");
        let other = folder.path().join("other.pem");
        assert_eq!(key.write(&other, &public).unwrap_err().code(), "file-exists");
        assert!(!other.exists(), "no secret key without its public one");
        assert_eq!(key.write(&other, &folder.path().join("no/other.pub")).unwrap_err().code(), "file-missing");
        assert!(!other.exists(), "no secret key without its public one");
        assert_eq!(SecretKey::read(&public).unwrap_err().code(), "key-malformed");
        assert_eq!(PublicKey::read(&secret).unwrap_err().code(), "key-malformed");
        assert_eq!(PublicKey::read(&folder.path().join("none")).unwrap_err().code(), "file-missing");
        assert_ne!(SecretKey::generate().unwrap().public(), key.public());
    }

    #[test]
    fn a_secret_key_is_written_as_openssl_reads_it_and_read_in_either_form() {
        let folder = tempfile::tempdir().unwrap();
        let [secret, public, old] = ["key.pem", "key.pub", "old.pem"].map(|name| folder.path().join(name));
        key(7).write(&secret, &public).unwrap();
        let pem = fs::read_to_string(&secret).unwrap();
        let der = STANDARD.decode(pem.lines().nth(1).unwrap()).unwrap();
        // RFC 8410, section 7: a sequence of 46 bytes, version 0, Ed25519, the seed; nothing after it.
        assert_eq!(hex(&der), format!("302e020100300506032b657004220420{}", "07".repeat(32)));
        let with_public = key(7).0.to_pkcs8_pem(LineEnding::LF).unwrap();
        assert_ne!(*with_public, pem);
        fs::write(&old, with_public.as_bytes()).unwrap();
        for form in [&secret, &old] {
            assert_eq!(SecretKey::read(form).unwrap().public(), key(7).public());
        }
        // A public key that is not the secret one's.
        let other = KeypairBytes { secret_key: [7; 32], public_key: KeypairBytes::from(&key(8).0).public_key };
        fs::write(&old, other.to_pkcs8_pem(LineEnding::LF).unwrap().as_bytes()).unwrap();
        assert_eq!(SecretKey::read(&old).unwrap_err().code(), "key-malformed");
    }

    #[test]
    fn a_key_that_others_can_read_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let [secret, public] = ["key.pem", "key.pub"].map(|name| folder.path().join(name));
        key(1).write(&secret, &public).unwrap();
        assert!(!is_shared(&secret));
        for mode in [0o640, 0o604] {
            fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
            assert!(is_shared(&secret), "{mode:o}");
        }
    }
}
