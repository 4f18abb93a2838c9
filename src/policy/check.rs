//! Names that must agree inside a policy: subjects, ids, requirements.

use std::collections::{BTreeMap, BTreeSet};

use miette::SourceSpan;

use super::decode::duplicate;
use super::model::{Policy, RuleBlock, RuleSpec};
use crate::matrix::RowKind;
use crate::syntax::{Issue, Sink, Spanned, suggest};

/// Reports every name that means nothing, or two things.
pub(super) fn names(policy: &Policy, sink: &Sink) {
    // A rule that could not be decoded is missing here: what requires it would be an echo of its error.
    let all_rules_are_here = sink.is_clean();
    let rules = policy.rules().map(|rule| (&rule.id, rule.check.other_subjects(), &rule.subject));
    let reports = policy.reports.iter().map(|item| (&item.id, Vec::new(), &item.subject));
    let mut ids: BTreeMap<&str, SourceSpan> = BTreeMap::new();
    let subjects: BTreeSet<&str> = policy.evidence.subjects.iter().map(|subject| subject.value.as_str()).collect();
    for (id, others, subject) in rules.chain(reports) {
        if let Some(first) = ids.get(id.value.as_str()) {
            let issue = duplicate(&format!("rule id `{}`", id.value), id.span, *first);
            sink.push(issue.help("name one of the two with id=\"…\""));
        }
        ids.entry(&id.value).or_insert(id.span);
        others.into_iter().chain([subject]).for_each(|name| known_subject(&subjects, name, sink));
    }
    let mut blocks: BTreeMap<RowKind, SourceSpan> = BTreeMap::new();
    for block in &policy.blocks {
        if let Some(first) = blocks.get(&block.kind.value) {
            let what = format!("the block of {} rows", block.kind.name());
            sink.push(duplicate(&what, block.kind.span, *first));
        }
        blocks.entry(block.kind.value).or_insert(block.kind.span);
        let mut earlier = BTreeSet::new();
        for (index, rule) in block.rules.iter().enumerate().filter(|_| all_rules_are_here) {
            requirement(block, index, &earlier, rule, sink);
            earlier.insert(rule.id.value.as_str());
        }
    }
}

fn known_subject(subjects: &BTreeSet<&str>, name: &Spanned<String>, sink: &Sink) {
    if !subjects.contains(name.value.as_str()) {
        let message = format!("unknown subject `{}`", name.value);
        let mut issue = Issue::error("policy::unknown-subject", message, name.span, "not declared in `evidence`");
        issue.help = suggest(&name.value, subjects.iter().copied());
        sink.push(issue);
    }
}

/// A requirement stands earlier in the same block: it looks at the same row, and cannot go round in a circle.
fn requirement(block: &RuleBlock, index: usize, earlier: &BTreeSet<&str>, rule: &RuleSpec, sink: &Sink) {
    let Some(requires) = &rule.requires else { return };
    if earlier.contains(requires.value.as_str()) {
        return;
    }
    let message = format!("`{}` requires `{}`, which is no earlier rule of its block", rule.id.value, requires.value);
    let mut issue = Issue::error("policy::unknown-requirement", message, requires.span, "no earlier rule has this id");
    issue.help = match block.rules.iter().any(|other| other.id.value == requires.value) {
        true => Some("move that rule above this one".to_owned()),
        false => suggest(&requires.value, block.rules.iter().take(index).map(|rule| rule.id.value.as_str())),
    };
    sink.push(issue);
}
