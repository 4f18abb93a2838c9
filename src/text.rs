//! Strings from outside, made safe for a terminal, a log or a page.

use std::borrow::Cow;

/// Whether a character could steer a terminal or reorder text: control and bidirectional formatting characters.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// The text with every unsafe character replaced by U+FFFD. Newlines and tabs stay: the gate's own messages have them.
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let replace = |c: char| c != '\n' && c != '\t' && is_unsafe(c);
    if text.contains(replace) {
        Cow::Owned(text.chars().map(|c| if replace(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}
