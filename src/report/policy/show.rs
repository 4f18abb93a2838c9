//! A policy in plain sentences.

use crate::matrix::RowKind;
use crate::policy::{Policy, ReportItem, ReportKind, RuleSpec};
use crate::report::Screen;
use crate::report::boundary::{indent, plain_table};
use crate::text::sanitize;

/// Every decision of the policy as a sentence, with its id.
#[must_use]
pub fn show(policy: &Policy, screen: &Screen) -> String {
    let mut out = format!("policy    {} ({})\n", sanitize(&policy.name.value), policy.source.name());
    out += &format!("sha256    {}\nsemantic  {}\n", policy.source.sha256(), policy.semantic_sha256());
    out += &section("Limits", vec![("limits".to_owned(), limits(policy))], screen);
    out += &section("Evidence", vec![("evidence".to_owned(), evidence(policy))], screen);
    for block in &policy.blocks {
        let title = match block.kind.value {
            RowKind::Forced => "Forced rows",
            RowKind::Ordinary | RowKind::Probe => "Ordinary rows, and probes but for what the matrix declares",
            RowKind::Disabled => "Disabled rows",
        };
        let rules = block.rules.iter().map(|rule| (rule.id.value.clone(), rule_sentence(rule)));
        out += &section(title, rules.collect(), screen);
    }
    let reports = policy.reports.iter().map(|item| (item.id.value.clone(), report_sentence(item)));
    out += &section("Reported beside the verdict", reports.collect(), screen);
    out
}

fn section(title: &str, lines: Vec<(String, String)>, screen: &Screen) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut table = plain_table(screen.width.saturating_sub(2));
    for (id, sentence) in lines {
        table.add_row([sanitize(&id).into_owned(), sanitize(&sentence).into_owned()]);
    }
    format!("\n{title}\n{}", indent(&table.to_string()))
}

fn limits(policy: &Policy) -> String {
    let limits = &policy.limits;
    format!(
        "At most {} tokens a row, {} rows a case, {} seconds a run, and {} bytes read of a bundle or written by a run.",
        *limits.max_vocab, *limits.max_batch, *limits.timeout_seconds, *limits.max_artifact_bytes
    )
}

fn evidence(policy: &Policy) -> String {
    let spec = &policy.evidence;
    let subjects: Vec<&str> = spec.subjects.iter().map(|subject| subject.value.as_str()).collect();
    let mut text = format!("Of {}, recorded on identical inputs", subjects.join(" and "));
    if spec.pinned_sources {
        text += ", built from the pinned sources";
    }
    if let Some(path) = &spec.dispatch {
        text += &format!(", on dispatch path {}", path.value);
    }
    text + "."
}

fn rule_sentence(rule: &RuleSpec) -> String {
    let mut text = rule.check.sentence(&rule.subject.value);
    if let Some(path) = &rule.on_dispatch {
        text += &format!(" Applies on dispatch path {} only.", path.value);
    }
    if let Some(requires) = &rule.requires {
        text += &format!(" Evaluated only where {} passed.", requires.value);
    }
    text
}

fn report_sentence(item: &ReportItem) -> String {
    let subject = &item.subject.value;
    match &item.kind {
        ReportKind::ReproducesFault { .. } if item.decides() => {
            format!("On how many forced rows {subject} drops the forced token or masks the row. None is a violation.")
        }
        ReportKind::ReproducesFault { .. } => {
            format!("On how many forced rows {subject} drops the forced token or masks the row.")
        }
        ReportKind::MaskEquality => format!("On how many rows {subject} keeps exactly the oracle's set."),
        ReportKind::Minimality => format!("On how many rows {subject} keeps no token too many."),
        ReportKind::UpstreamEnvelope(envelope) => format!(
            "Case by case, as upstream tests it: the largest difference of {subject}'s counts from the oracle's is at most \
             {}, or less than {} of the case's largest count.",
            *envelope.max_difference,
            envelope.relative_below.text()
        ),
    }
}
