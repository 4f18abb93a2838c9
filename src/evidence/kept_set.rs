//! The tokens that a kernel kept, as a bitset.

use crate::digest::Sha256;

/// A set of tokens of one row: bit `t % 64` of word `t / 64` says that token `t` is in. Counts, differences and
/// supersets are word operations. Bits at and beyond the vocabulary are 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSet {
    vocab: u32,
    words: Vec<u64>,
}

/// Why bytes are no kept set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeptSetError {
    /// Not ceil(vocab / 8) bytes.
    #[error("{found} bytes, expected {expected}")]
    Length {
        /// Bytes given.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// A bit beyond the vocabulary is set.
    #[error("the last byte is {byte:#04x}: a padding bit is set")]
    Padding {
        /// The last byte.
        byte: u8,
    },
}

impl KeptSet {
    /// Reads ceil(vocab / 8) bytes: bit `t % 8` (least significant first) of byte `t / 8` is token `t`.
    ///
    /// # Errors
    /// [`KeptSetError::Length`], or [`KeptSetError::Padding`] where a bit beyond `vocab` is set.
    pub fn from_lsb_bytes(bytes: &[u8], vocab: u32) -> Result<Self, KeptSetError> {
        let expected = vocab.div_ceil(8) as usize;
        if bytes.len() != expected {
            return Err(KeptSetError::Length { found: bytes.len(), expected });
        }
        if let (Some(&byte), used @ 1..) = (bytes.last(), vocab % 8)
            && byte >> used != 0
        {
            return Err(KeptSetError::Padding { byte });
        }
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let (whole, rest) = bytes.as_chunks();
        let mut words: Vec<u64> = whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        if !rest.is_empty() {
            words.push(word(rest));
        }
        Ok(Self { vocab, words })
    }

    /// The tokens below `vocab` that `keep` says true of.
    pub fn from_fn(vocab: u32, mut keep: impl FnMut(u32) -> bool) -> Self {
        let words = (0..vocab.div_ceil(64)).map(|word| {
            let first = word * 64;
            let bits = (vocab - first).min(64);
            (0..bits).fold(0, |word, bit| word | u64::from(keep(first + bit)) << bit)
        });
        Self { vocab, words: words.collect() }
    }

    /// The form that [`Self::from_lsb_bytes`] reads.
    #[must_use]
    pub fn to_lsb_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.vocab.div_ceil(8) as usize);
        bytes
    }

    /// The number of tokens that could be in.
    #[must_use]
    pub fn len_vocab(&self) -> u32 {
        self.vocab
    }

    /// The words, ascending, [ceil(vocab / 64)].
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of tokens that are in.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no token is in: the kernel masked the whole row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether `token` is in.
    #[must_use]
    pub fn contains(&self, token: u32) -> bool {
        self.words.get(token as usize / 64).is_some_and(|word| word >> (token % 64) & 1 == 1)
    }

    /// The tokens that are in, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.words).flat_map(|(index, &word)| Bits(word).map(move |bit| index * 64 + bit))
    }

    /// The number of tokens that are in exactly one of the two sets. Sets over different vocabularies differ in the
    /// tokens that only one can hold as well.
    #[must_use]
    pub fn symmetric_difference(&self, other: &Self) -> u64 {
        self.zip(other).map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
    }

    /// Whether every token of `other` is in.
    #[must_use]
    pub fn is_superset(&self, other: &Self) -> bool {
        self.first_missing(other).is_none()
    }

    /// The lowest token that is in `other` and not in this set.
    #[must_use]
    pub fn first_missing(&self, other: &Self) -> Option<u32> {
        let (index, word) = (0u32..).zip(self.zip(other)).find(|(_, (a, b))| b & !a != 0)?;
        Some(index * 64 + (word.1 & !word.0).trailing_zeros())
    }

    /// The words of both sets side by side, 0 where one has ended.
    fn zip(&self, other: &Self) -> impl Iterator<Item = (u64, u64)> {
        let words = |set: &Self, index| set.words.get(index).copied().unwrap_or_default();
        (0..self.words.len().max(other.words.len())).map(move |index| (words(self, index), words(other, index)))
    }

    /// The digest of [`Self::to_lsb_bytes`].
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        Sha256::of(&self.to_lsb_bytes())
    }
}

/// The positions of a word's ones, ascending.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(vocab: u32, tokens: &[u32]) -> KeptSet {
        KeptSet::from_fn(vocab, |token| tokens.contains(&token))
    }

    #[test]
    fn bytes_are_least_significant_bit_first_and_padded_with_zeros() {
        let set = of(11, &[0, 3, 10]);
        assert_eq!(set.to_lsb_bytes(), [0b1001, 0b100]);
        assert_eq!(KeptSet::from_lsb_bytes(&[0b1001, 0b100], 11), Ok(set));
        assert_eq!(KeptSet::from_lsb_bytes(&[0, 0b1000], 11), Err(KeptSetError::Padding { byte: 8 }));
        assert_eq!(KeptSet::from_lsb_bytes(&[0], 11), Err(KeptSetError::Length { found: 1, expected: 2 }));
        assert_eq!(KeptSet::from_lsb_bytes(&[0xff, 0xff], 16).unwrap().count(), 16);
    }

    #[test]
    fn supersets_name_the_first_missing_token() {
        let (small, large) = (of(200, &[5, 130]), of(200, &[5, 64, 130]));
        assert!(large.is_superset(&small) && large.is_superset(&large));
        assert_eq!(small.first_missing(&large), Some(64));
        assert_eq!(large.first_missing(&small), None);
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(
            vocab in 1u32..300,
            a in prop::collection::btree_set(0u32..300, 0..60),
            b in prop::collection::btree_set(0u32..300, 0..60),
        ) {
            let clip = |tokens: &BTreeSet<u32>| tokens.range(..vocab).copied().collect::<BTreeSet<u32>>();
            let (a, b) = (clip(&a), clip(&b));
            let [sa, sb] = [&a, &b].map(|tokens| KeptSet::from_fn(vocab, |token| tokens.contains(&token)));
            prop_assert_eq!(sa.iter().collect::<BTreeSet<u32>>(), a.clone());
            prop_assert_eq!(sa.count() as usize, a.len());
            prop_assert_eq!(sa.is_empty(), a.is_empty());
            prop_assert_eq!((0..300).filter(|&token| sa.contains(token)).count(), a.len());
            prop_assert_eq!(sa.symmetric_difference(&sb), a.symmetric_difference(&b).count() as u64);
            prop_assert_eq!(sa.is_superset(&sb), a.is_superset(&b));
            prop_assert_eq!(sa.first_missing(&sb), b.difference(&a).next().copied());
            prop_assert_eq!(KeptSet::from_lsb_bytes(&sa.to_lsb_bytes(), vocab), Ok(sa));
        }
    }
}
