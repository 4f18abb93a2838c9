//! Which of two rules lets more through.

/// What a new rule is, compared with the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Both let the same through.
    Equal,
    /// Everything that the new one lets through, the old one does too, but not the other way round.
    Tighter,
    /// Everything that the old one lets through, the new one does too, but not the other way round.
    Looser,
    /// Each lets something through that the other stops, or nobody can say.
    Incomparable,
}

impl Strictness {
    /// Both parts of a rule together: looser in one and tighter in the other is incomparable.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Equal, part) | (part, Self::Equal) => part,
            (Self::Tighter, Self::Tighter) => Self::Tighter,
            (Self::Looser, Self::Looser) => Self::Looser,
            (Self::Incomparable, _) | (_, Self::Incomparable) => Self::Incomparable,
            (Self::Tighter, Self::Looser) | (Self::Looser, Self::Tighter) => Self::Incomparable,
        }
    }

    /// Of a limit: the larger one lets more through.
    #[must_use]
    pub fn of_limit<T: PartialOrd>(old: &T, new: &T) -> Self {
        match old.partial_cmp(new) {
            Some(std::cmp::Ordering::Equal) => Self::Equal,
            Some(std::cmp::Ordering::Less) => Self::Looser,
            Some(std::cmp::Ordering::Greater) => Self::Tighter,
            None => Self::Incomparable,
        }
    }

    /// Of a condition under which alone a rule applies: with it, more gets through.
    #[must_use]
    pub fn of_condition<T: PartialEq>(old: Option<&T>, new: Option<&T>) -> Self {
        match (old, new) {
            (None, None) => Self::Equal,
            (Some(old), Some(new)) if old == new => Self::Equal,
            (None, Some(_)) => Self::Looser,
            (Some(_), None) => Self::Tighter,
            (Some(_), Some(_)) => Self::Incomparable,
        }
    }

    /// Of two values without an order.
    #[must_use]
    pub fn of_choice<T: PartialEq>(old: &T, new: &T) -> Self {
        if old == new { Self::Equal } else { Self::Incomparable }
    }
}

#[cfg(test)]
mod tests {
    use super::Strictness::{self, Equal, Incomparable, Looser, Tighter};

    #[test]
    fn parts_combine() {
        let all = [Equal, Tighter, Looser, Incomparable];
        for one in all {
            assert_eq!(one.and(Equal), one);
            assert_eq!(one.and(one), one);
            for other in all {
                assert_eq!(one.and(other), other.and(one));
            }
        }
        assert_eq!(Tighter.and(Looser), Incomparable);
        assert_eq!(Tighter.and(Incomparable), Incomparable);
    }

    #[test]
    fn limits_conditions_and_choices() {
        assert_eq!([2, 3, 4].map(|new| Strictness::of_limit(&3, &new)), [Tighter, Equal, Looser]);
        assert_eq!(Strictness::of_limit(&0.0, &f64::NAN), Incomparable);
        let condition = |old, new| Strictness::of_condition(old, new);
        assert_eq!(condition(None::<&i32>, None), Equal);
        assert_eq!((condition(Some(&1), Some(&1)), condition(Some(&1), Some(&2))), (Equal, Incomparable));
        assert_eq!((condition(None, Some(&1)), condition(Some(&1), None)), (Looser, Tighter));
        assert_eq!((Strictness::of_choice(&1, &1), Strictness::of_choice(&1, &2)), (Equal, Incomparable));
    }
}
