//! Thresholds as their author wrote them.

/// An exact non-negative decimal, kept with its text. Compared by value: `0.5` and `0.50` are equal.
#[derive(Debug, Clone)]
pub struct Decimal {
    text: String,
    numerator: u64,
    denominator: u64,
}

impl Decimal {
    /// Reads digits with an optional fraction, at most 18 digits in all: `"0.005"` is exactly 5/1000.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let well_formed = !whole.is_empty() && digits(whole) && digits(fraction) && !text.ends_with('.');
        if !well_formed || whole.len() + fraction.len() > 18 {
            return None;
        }
        let numerator = format!("{whole}{fraction}").parse().ok()?;
        let denominator = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        Some(Self { text: text.to_owned(), numerator, denominator })
    }

    /// The text as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether part/whole is strictly below this, in exact arithmetic. False where whole is 0.
    #[must_use]
    pub fn exceeds_ratio(&self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator) < u128::from(self.numerator) * u128::from(whole)
    }

    /// Whether the value is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.numerator == 0
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        let right = u128::from(other.numerator) * u128::from(self.denominator);
        left.cmp(&right)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn half_a_percent_exactly_is_not_below_half_a_percent() {
        let limit = Decimal::parse("0.005").unwrap();
        assert!(limit.exceeds_ratio(4, 1000));
        assert!(!limit.exceeds_ratio(5, 1000));
        assert!(limit.exceeds_ratio(5, 1001));
        assert!(!limit.exceeds_ratio(0, 0));
    }

    #[test]
    fn one_notation_only() {
        for bad in ["", ".5", "5.", "-1", "1e3", "0,5", "+1", " 1", "1.2.3", "1234567890.1234567890"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
        assert!(Decimal::parse("0.50").unwrap() > Decimal::parse("0.499").unwrap());
        assert_eq!(Decimal::parse("0.50"), Decimal::parse("0.5"));
        assert!(Decimal::parse("2").unwrap() > Decimal::parse("0.5").unwrap());
    }
}
