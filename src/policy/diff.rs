//! What a change of a policy lets through, rule by rule, from each kind's own strictness order.

use miette::SourceSpan;

use super::model::{Policy, ReportItem, RuleSpec};
use crate::matrix::RowKind;
use crate::rules::Strictness;
use crate::syntax::Spanned;

/// What became of one decision of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It lets the same through.
    Unchanged,
    /// It lets less through.
    Tightened,
    /// It lets more through.
    Loosened,
    /// It lets through what was stopped, and stops what was let through; or nobody can say.
    Incomparable,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl Change {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Tightened => "tightened",
            Self::Loosened => "loosened",
            Self::Incomparable => "incomparable",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }

    fn of(strictness: Strictness) -> Self {
        match strictness {
            Strictness::Equal => Self::Unchanged,
            Strictness::Tighter => Self::Tightened,
            Strictness::Looser => Self::Loosened,
            Strictness::Incomparable => Self::Incomparable,
        }
    }
}

/// One decision of a policy, before and after.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name: a rule's id, `limits.max-batch`, `evidence.dispatch`, `report.…`.
    pub name: String,
    /// What became of it.
    pub change: Change,
    /// Whether it decides; a report item without `deny` does not.
    pub decides: bool,
    /// As written before, on one line.
    pub old: Option<String>,
    /// As written now.
    pub new: Option<String>,
    /// Where it stood.
    pub old_span: Option<SourceSpan>,
    /// Where it stands.
    pub new_span: Option<SourceSpan>,
    /// What differs, a part each: `max-difference 3 -> 5`.
    pub parts: Vec<String>,
}

impl Item {
    /// Whether it lets something through that was stopped before.
    #[must_use]
    pub fn lets_more_through(&self) -> bool {
        self.decides
            && match self.change {
                Change::Loosened | Change::Incomparable | Change::Removed => true,
                Change::Unchanged | Change::Tightened | Change::Added => false,
            }
    }
}

/// Every decision of two policies: limits, evidence, rules, reports, in the order of the new file, then what is gone.
#[must_use]
pub fn diff(old: &Policy, new: &Policy) -> Vec<Item> {
    let mut items = limits(old, new);
    items.extend(evidence(old, new));
    items.extend(rules(old, new));
    items.extend(reports(old, new));
    items
}

fn limits(old: &Policy, new: &Policy) -> Vec<Item> {
    let (old, new) = (&old.limits, &new.limits);
    let wide = |limit: Spanned<u32>| Spanned::new(u64::from(limit.value), limit.span);
    [
        ("max-vocab", wide(old.max_vocab), wide(new.max_vocab)),
        ("max-batch", wide(old.max_batch), wide(new.max_batch)),
        ("timeout-seconds", wide(old.timeout_seconds), wide(new.timeout_seconds)),
        ("max-artifact-bytes", old.max_artifact_bytes, new.max_artifact_bytes),
    ]
    .into_iter()
    .map(|(name, old, new)| {
        let change = Change::of(Strictness::of_limit(&old.value, &new.value));
        let text = |limit: Spanned<u64>| Some(format!("limits {name}={}", limit.value));
        Item {
            name: format!("limits.{name}"),
            change,
            decides: true,
            old: text(old),
            new: text(new),
            old_span: Some(old.span),
            new_span: Some(new.span),
            parts: changed(name, Some(&old.value.to_string()), Some(&new.value.to_string())),
        }
    })
    .collect()
}

fn evidence(old: &Policy, new: &Policy) -> Vec<Item> {
    let mut items = Vec::new();
    let (old, new) = (&old.evidence, &new.evidence);
    let place =
        |list: &[Spanned<String>], name: &str| list.iter().find(|known| known.value == name).map(|known| known.span);
    let gone = old.subjects.iter().filter(|subject| place(&new.subjects, &subject.value).is_none());
    for subject in new.subjects.iter().chain(gone) {
        let text = format!("subject {:?}", subject.value);
        let (before, after) = (place(&old.subjects, &subject.value), place(&new.subjects, &subject.value));
        items.push(present(format!("evidence.subject.{}", subject.value), &text, before, after));
    }
    // Neither line has a place of its own in the model: the block's subjects stand for it.
    let block = |subjects: &[Spanned<String>]| subjects.first().map(|subject| subject.span);
    let pinned = |on: bool, span: Option<SourceSpan>| on.then_some(span.unwrap_or_else(|| (0, 0).into()));
    let (before, after) =
        (pinned(old.pinned_sources, block(&old.subjects)), pinned(new.pinned_sources, block(&new.subjects)));
    if before.or(after).is_some() {
        items.push(present("evidence.pinned-sources".to_owned(), "pinned-sources", before, after));
    }
    if old.dispatch.is_some() || new.dispatch.is_some() {
        let text = |path: &Option<Spanned<String>>| path.as_ref().map(|path| format!("dispatch {:?}", path.value));
        let span = |path: &Option<Spanned<String>>| path.as_ref().map(|path| path.span);
        let (before, after) = (text(&old.dispatch), text(&new.dispatch));
        let change = match (&before, &after) {
            (Some(before), Some(after)) if before == after => Change::Unchanged,
            (Some(_), Some(_)) => Change::Incomparable,
            (Some(_), None) => Change::Removed,
            (None, _) => Change::Added,
        };
        items.push(Item {
            name: "evidence.dispatch".to_owned(),
            change,
            decides: true,
            parts: changed("", before.as_deref(), after.as_deref()),
            old: before,
            new: after,
            old_span: span(&old.dispatch),
            new_span: span(&new.dispatch),
        });
    }
    items
}

/// A line that is there or not.
fn present(name: String, text: &str, before: Option<SourceSpan>, after: Option<SourceSpan>) -> Item {
    let change = match (before, after) {
        (Some(_), Some(_)) => Change::Unchanged,
        (Some(_), None) => Change::Removed,
        (None, _) => Change::Added,
    };
    Item {
        name,
        change,
        decides: true,
        old: before.map(|_| text.to_owned()),
        new: after.map(|_| text.to_owned()),
        old_span: before,
        new_span: after,
        parts: Vec::new(),
    }
}

fn rules(old: &Policy, new: &Policy) -> Vec<Item> {
    let find = |policy, id: &str| -> Option<(RowKind, &RuleSpec)> {
        Policy::placed_rules(policy).find(|(_, rule)| rule.id.value == id)
    };
    let mut items: Vec<Item> = new
        .placed_rules()
        .map(|(kind, rule)| match find(old, &rule.id.value) {
            Some((old_kind, old_rule)) => rule_item(old_kind, old_rule, kind, rule),
            None => one_sided(rule.id.value.clone(), true, Change::Added, rule.text(), rule.span),
        })
        .collect();
    let gone = old.placed_rules().filter(|(_, rule)| find(new, &rule.id.value).is_none());
    items.extend(gone.map(|(_, rule)| one_sided(rule.id.value.clone(), true, Change::Removed, rule.text(), rule.span)));
    items
}

fn rule_item(old_kind: RowKind, old: &RuleSpec, new_kind: RowKind, new: &RuleSpec) -> Item {
    let text = |condition: &Option<Spanned<String>>| condition.as_ref().map(|text| text.value.clone());
    let strictness = Strictness::of_choice(&old_kind, &new_kind)
        .and(Strictness::of_choice(&old.subject.value, &new.subject.value))
        .and(old.check.strictness(&new.check))
        .and(Strictness::of_condition(text(&old.on_dispatch).as_ref(), text(&new.on_dispatch).as_ref()))
        .and(Strictness::of_condition(text(&old.requires).as_ref(), text(&new.requires).as_ref()));
    let mut parts = changed("rows", Some(old_kind.name()), Some(new_kind.name()));
    parts.extend(changed("kind", Some(old.check.name()), Some(new.check.name())));
    parts.extend(changed("subject", Some(&old.subject.value), Some(&new.subject.value)));
    parts.extend(parameters(&old.parameters(), &new.parameters()));
    Item {
        name: new.id.value.clone(),
        change: Change::of(strictness),
        decides: true,
        old: Some(old.text()),
        new: Some(new.text()),
        old_span: Some(old.span),
        new_span: Some(new.span),
        parts,
    }
}

fn parameters(old: &[(&'static str, String)], new: &[(&'static str, String)]) -> Vec<String> {
    let value = |list: &[(&'static str, String)], name: &str| {
        list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    let gone = old.iter().filter(|(name, _)| value(new, name).is_none());
    let names = new.iter().chain(gone).map(|(name, _)| *name);
    names.flat_map(|name| changed(name, value(old, name).as_deref(), value(new, name).as_deref())).collect()
}

fn changed(name: &str, old: Option<&str>, new: Option<&str>) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    let space = if name.is_empty() { "" } else { " " };
    vec![format!("{name}{space}{} -> {}", old.unwrap_or("none"), new.unwrap_or("none"))]
}

fn one_sided(name: String, decides: bool, change: Change, text: String, span: SourceSpan) -> Item {
    let added = change == Change::Added;
    Item {
        name,
        change,
        decides,
        old: (!added).then(|| text.clone()),
        new: added.then_some(text),
        old_span: (!added).then_some(span),
        new_span: added.then_some(span),
        parts: Vec::new(),
    }
}

fn reports(old: &Policy, new: &Policy) -> Vec<Item> {
    let name = |item: &ReportItem| format!("report.{}", item.id.value);
    let find = |list: &[ReportItem], id: &str| list.iter().find(|item| item.id.value == id).cloned();
    let mut items: Vec<Item> = new
        .reports
        .iter()
        .map(|item| match find(&old.reports, &item.id.value) {
            None => one_sided(name(item), item.decides(), Change::Added, item.text(), item.span),
            Some(before) => {
                let change = match (before.decides(), item.decides()) {
                    _ if before.text() == item.text() => Change::Unchanged,
                    (false, true) => Change::Tightened,
                    (true, false) => Change::Loosened,
                    (true, true) | (false, false) => Change::Incomparable,
                };
                Item {
                    name: name(item),
                    change,
                    decides: before.decides() || item.decides(),
                    parts: changed("", Some(&before.text()), Some(&item.text())),
                    old: Some(before.text()),
                    new: Some(item.text()),
                    old_span: Some(before.span),
                    new_span: Some(item.span),
                }
            }
        })
        .collect();
    let gone = old.reports.iter().filter(|item| find(&new.reports, &item.id.value).is_none());
    items.extend(gone.map(|item| one_sided(name(item), item.decides(), Change::Removed, item.text(), item.span)));
    items
}
