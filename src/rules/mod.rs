//! The rules, one file a kind. A file's doc comment is the page that `nucleus-gate explain` prints.

mod recorded;
mod row;
mod strictness;
mod verdict;

pub use recorded::Where;
pub use row::{OracleRow, Row, SubjectRow};
pub use strictness::Strictness;
pub use verdict::{Finding, Verdict};

use crate::matrix::RowKind;
use crate::syntax::{Issue, Node, Spanned};

/// One kind of rule: its parameters and what they mean for a row.
pub trait Rule: Sized {
    /// The kind's name in a policy.
    const NAME: &'static str;
    /// The row kinds that it can judge.
    const ROWS: &'static [RowKind];

    /// Reads the parameters that follow the subject. Everything wrong is reported to the node.
    fn decode(node: &mut Node<'_>) -> Option<Self>;

    /// The parameters that follow the subject, as a policy writes them; an argument has an empty name.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The strictness order: what `new` lets through, compared with this rule on the same subject.
    fn strictness(&self, new: &Self) -> Strictness;

    /// What the rule demands of `subject`, as one sentence.
    fn sentence(&self, subject: &str) -> String;

    /// Judges one subject's output on one row.
    fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict;

    /// Other subjects that the rule reads.
    fn other_subjects(&self) -> Vec<&Spanned<String>> {
        Vec::new()
    }
}

/// A kind as the registry knows it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The name in a policy.
    pub name: &'static str,
    /// The row kinds that it can judge.
    pub rows: &'static [RowKind],
    /// The source file, whose doc comment explains the rule.
    source: &'static str,
}

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The page that explains the rule, in Markdown.
    #[must_use]
    pub fn page(&self) -> String {
        page(self.source)
    }
}

/// A string as a policy writes it.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Reads a property that names the reference set. The oracle is the only one.
pub(crate) fn reference(node: &mut Node<'_>, key: &'static str) -> Option<Spanned<String>> {
    let name = node.property::<String>(key)?;
    if name.value != "oracle" {
        let message = format!("`{key}` names `{}`; the only reference is the oracle", name.value);
        let issue = Issue::error("policy::unknown-reference", message, name.span, "not a reference");
        node.report(issue.help(format!("write {key}=\"oracle\"")));
        return None;
    }
    Some(name)
}

/// The `//!` lines of a source file, in Markdown.
#[must_use]
pub fn page(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n") + "\n"
}

macro_rules! registry {
    ($($module:ident :: $kind:ident),* $(,)?) => {
        $(mod $module;)*
        $(pub use $module::$kind;)*

        /// A decoded rule of any kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Check {
            $(#[doc = concat!("See `", stringify!($module), ".rs`.")] $kind($kind),)*
        }

        /// Every kind of rule, in the order of the handbook.
        pub const KINDS: &[Kind] = &[
            $(Kind {
                name: <$kind as Rule>::NAME,
                rows: <$kind as Rule>::ROWS,
                source: include_str!(concat!(stringify!($module), ".rs")),
            },)*
        ];

        impl Check {
            /// Reads the parameters of a node whose name is the kind's. `None` also where the name is no kind.
            pub fn decode(node: &mut Node<'_>) -> Option<Self> {
                match node.name() {
                    $(name if name == <$kind as Rule>::NAME => <$kind as Rule>::decode(node).map(Self::$kind),)*
                    _ => None,
                }
            }

            /// The kind's name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => <$kind as Rule>::NAME,)*
                }
            }

            /// The parameters that follow the subject, as a policy writes them; an argument has an empty name.
            #[must_use]
            pub fn parameters(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$kind(rule) => rule.parameters(),)*
                }
            }

            /// What `new` lets through, compared with this rule on the same subject. Two kinds have no order.
            #[must_use]
            pub fn strictness(&self, new: &Self) -> Strictness {
                match (self, new) {
                    $((Self::$kind(old), Self::$kind(new)) => old.strictness(new),)*
                    _ => Strictness::Incomparable,
                }
            }

            /// What the rule demands of `subject`, as one sentence.
            #[must_use]
            pub fn sentence(&self, subject: &str) -> String {
                match self {
                    $(Self::$kind(rule) => rule.sentence(subject),)*
                }
            }

            /// Judges one subject's output on one row.
            #[must_use]
            pub fn judge(&self, row: &Row<'_>, subject: &SubjectRow<'_>) -> Verdict {
                match self {
                    $(Self::$kind(rule) => rule.judge(row, subject),)*
                }
            }

            /// Other subjects that the rule reads.
            #[must_use]
            pub fn other_subjects(&self) -> Vec<&Spanned<String>> {
                match self {
                    $(Self::$kind(rule) => rule.other_subjects(),)*
                }
            }
        }
    };
}

registry! {
    retains_forced::RetainsForced,
    no_nan::NoNan,
    not_all_masked::NotAllMasked,
    selects_argmax::SelectsArgmax,
    exact_count::ExactCount,
    superset::Superset,
    prefix::Prefix,
    count_envelope::CountEnvelope,
    symmetric_difference::SymmetricDifference,
    unaltered::Unaltered,
    masked_value::MaskedValue,
    repeatable::Repeatable,
    row_independent::RowIndependent,
    untouched::Untouched,
}

#[cfg(test)]
mod tests;
