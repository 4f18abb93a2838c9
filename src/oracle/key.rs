//! The canonical order of tokens, as one integer.

/// A token's rank key: a smaller key is a higher rank, so that an ascending sort of keys is the canonical order
/// (logit descending, token id ascending; -0.0 and 0.0 are the same logit).
///
/// The high 32 bits are the complement of the logit's monotone bits, the low 32 bits are the token id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankKey(u64);

impl RankKey {
    /// The key of `token` with `logit`. The logit must not be NaN: NaN has no place in the order.
    #[must_use]
    #[inline]
    pub fn new(logit: f32, token: u32) -> Self {
        // Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
        let bits = (logit + 0.0).to_bits();
        let monotone = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
        Self(u64::from(!monotone) << 32 | u64::from(token))
    }

    /// The token id.
    #[must_use]
    #[inline]
    pub fn token(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::RankKey;

    #[test]
    fn ascending_keys_are_descending_logits_then_ascending_ids() {
        let order = [f32::INFINITY, 2.0, 1.0, f32::MIN_POSITIVE, 0.0, -f32::MIN_POSITIVE, -1.0, f32::NEG_INFINITY];
        for pair in order.windows(2) {
            assert!(RankKey::new(pair[0], 9) < RankKey::new(pair[1], 0), "{pair:?}");
        }
        assert!(RankKey::new(1.0, 3) < RankKey::new(1.0, 4));
        assert!(RankKey::new(-0.0, 3) < RankKey::new(0.0, 4));
        assert!(RankKey::new(0.0, 3) < RankKey::new(-0.0, 4));
        assert_eq!(RankKey::new(1.0, 77).token(), 77);
    }
}
