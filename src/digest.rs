//! SHA-256 digests: the only identity that the gate trusts.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;

/// A SHA-256 digest. Written and read as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest of the little-endian binary32 bytes of `values`, in order.
    #[must_use]
    pub fn of_f32(values: &[f32]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update_f32(values);
        hasher.finish()
    }

    /// The digest of the running program.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of_this_program() -> io::Result<Self> {
        // The file that runs, even where its name is gone by now or names another.
        #[cfg(target_os = "linux")]
        let program = "/proc/self/exe";
        #[cfg(not(target_os = "linux"))]
        let program = std::env::current_exe()?;
        let mut file = File::open(program)?;
        // Piece by piece: a program is large, and memory may be scarce.
        let (mut hasher, mut buffer) = (Hasher::default(), [0u8; 1 << 14]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(count) => hasher.update(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads exactly 64 lowercase hexadecimal digits. `None` for anything else: a digest has one spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut out = [0u8; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Some(Self(out))
    }

    /// The raw digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected 64 lowercase hexadecimal digits"))
    }
}

/// An incremental SHA-256.
#[derive(Default, Clone)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds the little-endian bytes of binary32 values.
    pub fn update_f32(&mut self, values: &[f32]) {
        // A fixed buffer: no copy of the whole tensor, and no assumption on the host's byte order.
        let mut buffer = [0u8; 4096];
        for chunk in values.chunks(1024) {
            for (slot, value) in buffer.chunks_exact_mut(4).zip(chunk) {
                slot.copy_from_slice(&value.to_le_bytes());
            }
            self.0.update(buffer.get(..chunk.len() * 4).unwrap_or_default());
        }
    }

    /// The digest of everything added.
    #[must_use]
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_its_file() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(Sha256::of_this_program().unwrap(), Sha256::of(&file));
    }

    #[test]
    fn one_spelling_only() {
        let digest = Sha256::of(b"abc");
        let text = digest.to_string();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Sha256::parse(&text), Some(digest));
        assert_eq!(Sha256::parse(&text.to_uppercase()), None);
        assert_eq!(Sha256::parse(&text[1..]), None);
        assert_eq!(Sha256::parse(&format!("{}g", &text[1..])), None);
    }

    #[test]
    fn floats_hash_as_their_little_endian_bytes() {
        let values: Vec<f32> = (0..3000).map(|i| i as f32 * 0.25).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(Sha256::of_f32(&values), Sha256::of(&bytes));
    }
}
