//! The names that a file gives: of cases, subjects, policies, matrices and rules.

use super::{Issue, Spanned};

const MAX_NAME: usize = 128;

/// What keeps a name from being one, as an issue with `code`. Names are told apart by people and name files: no two that
/// differ may look alike.
#[must_use]
pub fn unfit_name(code: &'static str, name: &Spanned<String>) -> Option<Issue> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let problem = match name.value.as_str() {
        "" => "a name is not empty",
        "." | ".." => "a name is not a folder's",
        text if !text.chars().all(fits) => "a name has ASCII letters, digits and `-`, `_`, `.`, `+` alone",
        text if text.len() > MAX_NAME => "a name has at most 128 characters",
        _ => return None,
    };
    let issue = Issue::error(code, problem, name.span, "not a fit name");
    Some(issue.help("choose a name such as heavy-151936"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_look_alike() {
        let unfit = |name: &str| unfit_name("matrix::name", &Spanned::new(name.to_owned(), (0, 0).into())).is_some();
        for name in ["a", "A-1_b.c+d", "...", &"x".repeat(128)] {
            assert!(!unfit(name), "{name}");
        }
        for name in ["", ".", "..", "a b", "a/b", "a\\b", "a\u{200b}", "ä", "a\u{308}", "a:b", &"x".repeat(129)] {
            assert!(unfit(name), "{name:?}");
        }
    }
}
