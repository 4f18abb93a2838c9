//! Text from outside, made safe to show.

use std::borrow::Cow;

/// `text` with control characters (line breaks and tabs included), line and paragraph separators and bidirectional
/// controls each replaced by U+FFFD. Everything that reaches a terminal, a log or a report from outside passes here:
/// no escape sequence runs, no name reorders the text around it, no name starts a line of its own.
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(text.chars().map(|c| if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a character could steer a terminal or the reading order.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A count and what it counts, as in "1 row" and "2 rows".
#[must_use]
pub fn amount(count: impl Into<u64>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// JSON text as serde_json writes it, with what [`sanitize`] replaces replaced inside its strings, escaped or not; line
/// breaks and tabs stay, as escapes. The text reads as the same document otherwise.
#[must_use]
pub fn sanitize_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            // Every escape that serde_json writes: these two forms name control characters, the others are harmless.
            '\\' => match chars.next() {
                Some('u') => {
                    chars.by_ref().take(4).for_each(drop);
                    out.push(char::REPLACEMENT_CHARACTER);
                }
                Some('b' | 'f' | 'r') => out.push(char::REPLACEMENT_CHARACTER),
                other => out.extend(['\\'].into_iter().chain(other)),
            },
            // Layout: inside a string a line break is an escape.
            '\n' => out.push(c),
            _ if is_unsafe(c) => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(sanitize("smollm2-135m, p = 0.9, größer, 猫"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0u32, 1, 2].map(|count| amount(count, "row")), ["0 rows", "1 row", "2 rows"]);
    }

    #[test]
    fn what_steers_a_terminal_or_the_reading_order_is_replaced() {
        assert_eq!(sanitize("a\u{1b}[31mb"), "a\u{fffd}[31mb");
        assert_eq!(sanitize("a\r\nb\tc\u{7f}\u{9b}"), "a\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}");
        assert_eq!(sanitize("x\u{202e}gpj\u{2069}\u{200f}\u{061c}"), "x\u{fffd}gpj\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(sanitize("one\u{2028}two"), "one\u{fffd}two");
    }

    #[test]
    fn json_stays_the_same_document_but_for_what_steers() {
        let value =
            serde_json::json!({"a": "x\u{1b}\u{202e}\u{85}\r", "b": ["line\nbreak\ttab", "\"\\u0041\\"], "猫": 1.5});
        let text = sanitize_json(&serde_json::to_string_pretty(&value).unwrap());
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({"a": "x\u{fffd}\u{fffd}\u{fffd}\u{fffd}", "b": ["line\nbreak\ttab", "\"\\u0041\\"], "猫": 1.5});
        assert_eq!(read, expected);
    }
}
