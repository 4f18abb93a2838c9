//! What a probe must show, and which declarations contradict each other.

use std::collections::BTreeMap;

use miette::SourceSpan;

use super::{CaseKind, REJECTIONS};
use crate::syntax::{Issue, Node, Spanned, suggest};

/// One declared outcome. Without rows it is declared of every row.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// No rule is violated on any row.
    Accept {
        /// Where its line stands.
        span: SourceSpan,
    },
    /// A rule is violated.
    Violation {
        /// The id of a rule of the policy.
        rule: Spanned<String>,
        /// The rows, or every row.
        rows: Option<Vec<Spanned<u32>>>,
        /// Where its line stands.
        span: SourceSpan,
    },
    /// The oracle refuses the row.
    Reject {
        /// The oracle's code, one of [`REJECTIONS`].
        code: Spanned<String>,
        /// The rows, or every row.
        rows: Option<Vec<Spanned<u32>>>,
        /// Where its line stands.
        span: SourceSpan,
    },
}

impl Expectation {
    /// Where its line stands.
    #[must_use]
    pub fn span(&self) -> SourceSpan {
        match self {
            Self::Accept { span } | Self::Violation { span, .. } | Self::Reject { span, .. } => *span,
        }
    }

    /// The rows that it names; empty where it is declared of every row.
    #[must_use]
    pub fn rows(&self) -> &[Spanned<u32>] {
        self.named_rows().unwrap_or_default()
    }

    /// Whether it is declared of this row.
    #[must_use]
    pub fn covers(&self, row: u32) -> bool {
        self.named_rows().is_none_or(|rows| rows.iter().any(|named| named.value == row))
    }

    fn named_rows(&self) -> Option<&[Spanned<u32>]> {
        match self {
            Self::Accept { .. } => None,
            Self::Violation { rows, .. } | Self::Reject { rows, .. } => rows.as_deref(),
        }
    }

    /// What it says, whatever the rows: two that say the same of one row are a repetition.
    fn says(&self) -> (Outcome, &str) {
        match self {
            Self::Accept { .. } => (Outcome::Accept, ""),
            Self::Violation { rule, .. } => (Outcome::Violation, &rule.value),
            Self::Reject { code, .. } => (Outcome::Reject, &code.value),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Accept,
    Violation,
    Reject,
}

impl Outcome {
    /// The outcomes that cannot hold beside it of one row.
    fn excludes(self) -> &'static [Self] {
        match self {
            Self::Accept => &[Self::Violation, Self::Reject],
            Self::Violation => &[Self::Accept, Self::Reject],
            Self::Reject => &[Self::Accept, Self::Violation, Self::Reject],
        }
    }
}

/// Where outcomes were first declared: of any row, of every row, of one.
#[derive(Default)]
struct Declared {
    first: Option<SourceSpan>,
    everywhere: Option<SourceSpan>,
    rows: BTreeMap<u32, SourceSpan>,
}

impl Declared {
    fn add(&mut self, expectation: &Expectation) {
        let span = expectation.span();
        self.first.get_or_insert(span);
        match expectation.named_rows() {
            None => {
                self.everywhere.get_or_insert(span);
            }
            Some(rows) => rows.iter().for_each(|row| {
                self.rows.entry(row.value).or_insert(span);
            }),
        }
    }

    /// The first of them that shares a row with this one.
    fn meets(&self, expectation: &Expectation) -> Option<SourceSpan> {
        let Some(rows) = expectation.named_rows() else { return self.first };
        let shared = rows.iter().filter_map(|row| self.rows.get(&row.value)).copied();
        shared.chain(self.everywhere).min_by_key(SourceSpan::offset)
    }
}

/// Decodes an `expect` line.
pub(super) fn decode(mut node: Node<'_>) -> Option<Expectation> {
    let span = node.head_span();
    let outcome = node.argument::<String>("an outcome: \"accept\", \"violation\" or \"reject\"");
    let decoded = outcome.and_then(|outcome| match outcome.as_str() {
        "accept" => Some(Expectation::Accept { span }),
        "violation" => {
            let rule = node.property::<String>("rule");
            let rows = rows(&mut node);
            Some(Expectation::Violation { rule: rule?, rows: rows?, span })
        }
        "reject" => {
            let code = node.property::<String>("code").filter(|code| known_code(&node, code));
            let rows = rows(&mut node);
            Some(Expectation::Reject { code: code?, rows: rows?, span })
        }
        unknown => {
            let message = format!("unknown outcome `{unknown}`");
            let mut issue = Issue::error("matrix::unknown-expectation", message, outcome.span, "no such outcome");
            issue.help = suggest(unknown, ["accept", "violation", "reject"].into_iter());
            node.report(issue);
            // Nothing is known of such a line: its properties are not errors of their own.
            node.ignore_rest();
            None
        }
    });
    node.finish();
    decoded
}

fn known_code(node: &Node<'_>, code: &Spanned<String>) -> bool {
    let known = REJECTIONS.contains(&code.value.as_str());
    if !known {
        let message = format!("unknown rejection code `{}`", code.value);
        let mut issue = Issue::error("matrix::unknown-code", message, code.span, "the oracle has no such code");
        issue.help = suggest(&code.value, REJECTIONS.into_iter());
        node.report(issue);
    }
    known
}

/// `None`: an error, reported. `Some(None)`: no `rows` line.
fn rows(node: &mut Node<'_>) -> Option<Option<Vec<Spanned<u32>>>> {
    let mut found: Option<Vec<Spanned<u32>>> = None;
    let mut refused = false;
    for mut child in node.children() {
        if child.name() != "rows" {
            child.unknown("matrix::unknown-node", "line of `expect`", &["rows"]);
            refused = true;
            continue;
        }
        if found.is_some() {
            let message = "`rows` stands twice in one `expect`";
            child.report(Issue::error("matrix::repeated-line", message, child.name_span(), "again here"));
        }
        found = Some(super::case::row_list(&mut child));
        child.finish();
    }
    refused |= found.as_ref().is_some_and(Vec::is_empty);
    (!refused).then_some(found)
}

/// Reports what cannot stand together in one case.
pub(super) fn check(
    kind: Option<CaseKind>,
    head: SourceSpan,
    list: &[Expectation],
    disabled: &[Spanned<u32>],
    report: &dyn Fn(Issue),
) {
    match (kind, list.first()) {
        (Some(CaseKind::Probe), None) => {
            let message = "a probe must say what it expects";
            let issue =
                Issue::error("matrix::probe-without-expectation", message, head, "no `expect` line in this case");
            report(issue.help("add `expect \"accept\"`, or the violations or the rejection it must show"));
        }
        (Some(CaseKind::Ordinary | CaseKind::Forced), Some(first)) => {
            let message = "only a probe declares outcomes; other cases must pass";
            let issue =
                Issue::error("matrix::expectation-outside-probe", message, first.span(), "not in this kind of case");
            report(issue.and(head, "the case").help("make it kind=\"probe\", or remove the line"));
        }
        (None, _) | (Some(CaseKind::Probe), Some(_)) | (Some(CaseKind::Ordinary | CaseKind::Forced), None) => {}
    }
    let mut alike: BTreeMap<(Outcome, &str), Declared> = BTreeMap::new();
    let mut of_kind: BTreeMap<Outcome, Declared> = BTreeMap::new();
    let disabled: BTreeMap<u32, SourceSpan> = disabled.iter().map(|row| (row.value, row.span)).collect();
    for later in list {
        let says = later.says();
        let excluded = || says.0.excludes().iter().filter_map(|outcome| of_kind.get(outcome)?.meets(later));
        if let Some(earlier) = alike.get(&says).and_then(|declared| declared.meets(later)) {
            let message = "the same outcome is declared twice for a row";
            let issue = Issue::error("matrix::duplicate-expectation", message, later.span(), "again here");
            report(issue.and(earlier, "first here"));
        } else if let Some(earlier) = excluded().min_by_key(SourceSpan::offset) {
            let message = "these two outcomes cannot both hold of a row";
            let issue = Issue::error("matrix::contradiction", message, later.span(), "this one");
            report(issue.and(earlier, "and this one"));
        }
        alike.entry(says).or_default().add(later);
        of_kind.entry(says.0).or_default().add(later);
        for row in later.rows() {
            if let Some(off) = disabled.get(&row.value) {
                let message = format!("row {} is disabled: no outcome can be declared of it", row.value);
                let issue = Issue::error("matrix::contradiction", message, row.span, "expected here");
                report(issue.and(*off, "disabled here"));
            }
        }
    }
}
