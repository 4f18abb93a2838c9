//! Names that must agree inside a policy: subjects, ids, requirements.

use super::decode::duplicate;
use super::model::{Policy, RuleBlock, RuleSpec};
use crate::syntax::{Issue, Sink, Spanned, suggest};

/// Reports every name that means nothing, or two things.
pub(super) fn names(policy: &Policy, sink: &Sink) {
    // A rule that could not be decoded is missing here: what requires it would be an echo of its error.
    let all_rules_are_here = sink.is_clean();
    let rules = policy.rules().map(|rule| (&rule.id, rule.check.other_subjects(), &rule.subject));
    let reports = policy.reports.iter().map(|item| (&item.id, Vec::new(), &item.subject));
    let mut ids: Vec<&Spanned<String>> = Vec::new();
    for (id, others, subject) in rules.chain(reports) {
        if let Some(first) = ids.iter().find(|known| known.value == id.value) {
            let issue = duplicate(&format!("rule id `{}`", id.value), id.span, first.span);
            sink.push(issue.help("name one of the two with id=\"…\""));
        }
        ids.push(id);
        others.into_iter().chain([subject]).for_each(|name| known_subject(policy, name, sink));
    }
    for (index, block) in policy.blocks.iter().enumerate() {
        if let Some(first) = policy.blocks.iter().take(index).find(|first| *first.kind == *block.kind) {
            let what = format!("the block of {} rows", block.kind.name());
            sink.push(duplicate(&what, block.kind.span, first.kind.span));
        }
        for (index, rule) in block.rules.iter().enumerate().filter(|_| all_rules_are_here) {
            requirement(block, index, rule, sink);
        }
    }
}

fn known_subject(policy: &Policy, name: &Spanned<String>, sink: &Sink) {
    let subjects = || policy.evidence.subjects.iter().map(|subject| subject.value.as_str());
    if !subjects().any(|subject| subject == name.value) {
        let message = format!("unknown subject `{}`", name.value);
        let mut issue = Issue::error("policy::unknown-subject", message, name.span, "not declared in `evidence`");
        issue.help = suggest(&name.value, subjects());
        sink.push(issue);
    }
}

/// A requirement stands earlier in the same block: it looks at the same row, and cannot go round in a circle.
fn requirement(block: &RuleBlock, index: usize, rule: &RuleSpec, sink: &Sink) {
    let Some(requires) = &rule.requires else { return };
    let earlier = || block.rules.iter().take(index).map(|rule| rule.id.value.as_str());
    if earlier().any(|id| id == requires.value) {
        return;
    }
    let message = format!("`{}` requires `{}`, which is no earlier rule of its block", rule.id.value, requires.value);
    let mut issue = Issue::error("policy::unknown-requirement", message, requires.span, "no earlier rule has this id");
    issue.help = match block.rules.iter().any(|other| other.id.value == requires.value) {
        true => Some("move that rule above this one".to_owned()),
        false => suggest(&requires.value, earlier()),
    };
    sink.push(issue);
}
