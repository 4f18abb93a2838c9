//! From KDL nodes to a policy.

use std::collections::BTreeMap;

use kdl::KdlDocument;
use miette::SourceSpan;

use super::model::{EvidenceSpec, Limits, Policy, ReportItem, ReportKind, RuleBlock, RuleSpec};
use crate::matrix::RowKind;
use crate::rules::{Check, CountEnvelope, KINDS, Kind, Rule as _};
use crate::syntax::{FromKdl, Issue, Issues, Node, Sink, Source, Spanned, parse, suggest, unfit_name};

/// The row kinds that a block of rules can have.
const BLOCK_KINDS: [(&str, RowKind); 3] =
    [("forced", RowKind::Forced), ("ordinary", RowKind::Ordinary), ("disabled", RowKind::Disabled)];

const SECTIONS: [&str; 5] = ["oracle", "limits", "evidence", "rules", "report"];

pub(super) fn read(source: Source) -> Result<Policy, Issues> {
    let copy = source.clone();
    parse(&source, |document, sink| {
        let mut root = only_node(document, "policy", sink)?;
        let policy = policy(&mut root, copy, sink);
        root.finish();
        let policy = policy?;
        super::check::names(&policy, sink);
        Some(policy)
    })
}

/// The one node that a file of this kind holds.
fn only_node<'a>(document: &'a KdlDocument, name: &'static str, sink: &'a Sink) -> Option<Node<'a>> {
    let mut found = None;
    for node in document.nodes() {
        let node = Node::new(node, sink);
        if node.name() != name {
            node.unknown("policy::unknown-node", "top-level node", &[name]);
        } else if found.is_some() {
            let issue = Issue::error("policy::duplicate", "a file holds one policy", node.name_span(), "a second one");
            sink.push(issue.help("move it to a file of its own"));
        } else {
            found = Some(node);
        }
    }
    if found.is_none() {
        let issue = Issue::error("policy::missing", "the file holds no `policy`", document.span(), "nothing here");
        sink.push(issue.help("begin with: policy \"name\" schema=1 { … }"));
    }
    found
}

fn policy(root: &mut Node<'_>, source: Source, sink: &Sink) -> Option<Policy> {
    let name = root.argument::<String>("a name").filter(|name| check_name(root, name));
    schema(root);
    let mut seen: BTreeMap<&str, SourceSpan> = BTreeMap::new();
    let (mut limits, mut evidence) = (None, None);
    let (mut blocks, mut reports) = (Vec::new(), Vec::new());
    for mut node in root.children() {
        let section = node.name();
        let unique = section != "rules";
        if let Some(first) = seen.get(section).filter(|_| unique) {
            sink.push(duplicate(&format!("`{section}`"), node.name_span(), *first));
        }
        seen.entry(section).or_insert(node.name_span());
        match section {
            "oracle" => oracle_section(&mut node),
            "limits" => limits = limits_section(&mut node),
            "evidence" => evidence = evidence_section(&mut node),
            "rules" => blocks.extend(rules_section(&mut node, sink)),
            "report" => reports.extend(report_section(&mut node)),
            _ => {
                node.unknown("policy::unknown-node", "section", &SECTIONS);
                continue;
            }
        }
        node.finish();
    }
    let misspelled = seen.keys().any(|known| !SECTIONS.contains(known));
    for section in ["oracle", "limits", "evidence"] {
        if !misspelled && !seen.contains_key(section) {
            let message = format!("the policy has no `{section}`");
            let issue = Issue::error("policy::missing", message, root.name_span(), "in this policy");
            sink.push(issue.help("see a shipped policy for the sections that every policy needs"));
        }
    }
    if blocks.iter().all(|block: &RuleBlock| block.rules.is_empty()) {
        let message = "the policy has no rule, and would prove nothing";
        sink.push(Issue::error("policy::no-rules", message, root.name_span(), "in this policy"));
    }
    Some(Policy { source, name: name?, limits: limits?, evidence: evidence?, blocks, reports })
}

fn check_name(node: &Node<'_>, name: &Spanned<String>) -> bool {
    unfit_name("policy::name", name).map(|issue| node.report(issue)).is_none()
}

fn schema(node: &mut Node<'_>) {
    if let Some(schema) = node.property::<u32>("schema").filter(|schema| **schema != 1) {
        let message = format!("schema {} is unknown; this build reads schema 1", *schema);
        node.report(Issue::error("policy::unknown-schema", message, schema.span, "unknown"));
    }
}

/// The one oracle that exists, spelled out so that the policy says what it rests on.
fn oracle_section(node: &mut Node<'_>) {
    let fixed = |node: &Node<'_>, found: Option<Spanned<String>>, wanted: &str| {
        if let Some(found) = found.filter(|found| found.value != wanted) {
            let message = format!("the oracle has no `{}`", found.value);
            let issue = Issue::error("policy::unsupported-oracle", message, found.span, "not what this build computes");
            node.report(issue.help(format!("write \"{wanted}\"")));
        }
    };
    let kind = node.argument("the oracle's arithmetic");
    fixed(node, kind, "binary64");
    for (key, wanted) in [("order", "logit-desc token-asc"), ("scan", "neumaier"), ("certify", "exact-sum")] {
        let found = node.property(key);
        fixed(node, found, wanted);
    }
}

fn limits_section(node: &mut Node<'_>) -> Option<Limits> {
    let max_vocab = positive(node, "max-vocab");
    let max_batch = positive(node, "max-batch");
    let timeout_seconds = positive(node, "timeout-seconds");
    let max_artifact_bytes = positive(node, "max-artifact-bytes");
    Some(Limits {
        max_vocab: max_vocab?,
        max_batch: max_batch?,
        timeout_seconds: timeout_seconds?,
        max_artifact_bytes: max_artifact_bytes?,
    })
}

fn positive<T: FromKdl + Default + PartialEq>(node: &mut Node<'_>, key: &'static str) -> Option<Spanned<T>> {
    let value = node.property::<T>(key)?;
    if value.value == T::default() {
        let issue = Issue::error("policy::zero-limit", format!("`{key}` is 0"), value.span, "nothing could run");
        node.report(issue.help("give the largest size that a run may have"));
    }
    Some(value)
}

fn evidence_section(node: &mut Node<'_>) -> Option<EvidenceSpec> {
    let mut spec = EvidenceSpec { subjects: Vec::new(), pinned_sources: false, dispatch: None };
    let mut identical = false;
    let mut seen: BTreeMap<&str, SourceSpan> = BTreeMap::new();
    let mut subjects: BTreeMap<String, SourceSpan> = BTreeMap::new();
    for mut child in node.children() {
        let name = child.name();
        if let Some(first) = seen.get(name).filter(|_| name != "subject") {
            child.report(duplicate(&format!("`{name}`"), child.name_span(), *first));
        }
        seen.entry(name).or_insert(child.name_span());
        match name {
            "subject" => spec.subjects.extend(subject(&mut child, &mut subjects)),
            "identical-inputs" => identical = true,
            "pinned-sources" => spec.pinned_sources = true,
            "dispatch" => spec.dispatch = child.argument("a dispatch path"),
            _ => {
                let known = ["subject", "identical-inputs", "pinned-sources", "dispatch"];
                child.unknown("policy::unknown-node", "evidence requirement", &known);
                continue;
            }
        }
        child.finish();
    }
    if spec.subjects.is_empty() {
        let message = "the evidence names no subject";
        node.report(Issue::error("policy::no-subjects", message, node.name_span(), "add subject \"patch\""));
    }
    if !identical {
        let message = "the evidence does not demand identical inputs";
        let issue = Issue::error("policy::missing-identical-inputs", message, node.name_span(), "in this block");
        node.report(issue.help("add the line identical-inputs; outputs of different inputs cannot be compared"));
    }
    Some(spec)
}

fn subject(node: &mut Node<'_>, known: &mut BTreeMap<String, SourceSpan>) -> Option<Spanned<String>> {
    let name = node.argument::<String>("a subject's name").filter(|name| check_name(node, name))?;
    if let Some(first) = known.get(&name.value) {
        node.report(duplicate(&format!("subject `{}`", name.value), name.span, *first));
    }
    known.entry(name.value.clone()).or_insert(name.span);
    if name.value == "oracle" {
        let message = "`oracle` is the reference, not a subject";
        node.report(Issue::error("policy::unknown-subject", message, name.span, "not a subject"));
    }
    Some(name)
}

fn rules_section(node: &mut Node<'_>, sink: &Sink) -> Option<RuleBlock> {
    let text = node.property::<String>("kind");
    let kind = text.and_then(|text| {
        let found = BLOCK_KINDS.iter().find(|(name, _)| *name == text.value);
        if found.is_none() {
            let message = format!("no rules can be written for row kind `{}`", text.value);
            let mut issue = Issue::error("policy::unknown-row-kind", message, text.span, "no such block");
            issue.help = match text.value.as_str() {
                "probe" => Some("probe rows are judged by the ordinary rules".to_owned()),
                other => suggest(other, BLOCK_KINDS.iter().map(|(name, _)| *name)),
            };
            sink.push(issue);
        }
        found.map(|(_, kind)| Spanned::new(*kind, text.span))
    });
    let rules: Vec<RuleSpec> =
        node.children().into_iter().filter_map(|child| rule(child, kind.map(|k| k.value))).collect();
    Some(RuleBlock { kind: kind?, rules })
}

fn rule(mut node: Node<'_>, block: Option<RowKind>) -> Option<RuleSpec> {
    let Some(kind) = Kind::find(node.name()) else {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        node.unknown("policy::unknown-rule", "rule", &known);
        return None;
    };
    if let Some(block) = block.filter(|block| !kind.rows.contains(block)) {
        let rows: Vec<&str> = kind.rows.iter().map(|row| row.name()).collect();
        let message = format!("`{}` cannot judge {} rows", kind.name, block.name());
        let issue = Issue::error("policy::wrong-block", message, node.name_span(), "not in this block");
        node.report(issue.help(format!("it judges: {}", rows.join(", "))));
    }
    let span = node.head_span();
    let named = Spanned::new(node.name().to_owned(), node.name_span());
    let subject = node.argument("the subject that it judges");
    let id = node.optional("id").filter(|id| check_name(&node, id)).unwrap_or(named);
    let requires = node.optional("requires");
    let on_dispatch = node.optional("on-dispatch");
    let check = Check::decode(&mut node);
    node.finish();
    Some(RuleSpec { id, span, subject: subject?, requires, on_dispatch, check: check? })
}

fn report_section(node: &mut Node<'_>) -> Vec<ReportItem> {
    node.children().into_iter().filter_map(report_item).collect()
}

fn report_item(mut node: Node<'_>) -> Option<ReportItem> {
    let name = node.name();
    if !ReportKind::NAMES.contains(&name) {
        node.unknown("policy::unknown-report", "report item", &ReportKind::NAMES);
        return None;
    }
    let span = node.span();
    let named = Spanned::new(name.to_owned(), node.name_span());
    let subject = node.argument("the subject that it is about");
    let id = node.optional("id").filter(|id| check_name(&node, id)).unwrap_or(named);
    let kind = match name {
        "reproduces-fault" => Some(ReportKind::ReproducesFault { deny: node.optional("deny") }),
        "mask-equality" => crate::rules::reference(&mut node, "against").map(|_| ReportKind::MaskEquality),
        "minimality" => Some(ReportKind::Minimality),
        _ => CountEnvelope::decode(&mut node).map(ReportKind::UpstreamEnvelope),
    };
    node.finish();
    Some(ReportItem { id, span, subject: subject?, kind: kind? })
}

/// A thing given twice, with both places.
pub(super) fn duplicate(what: &str, again: SourceSpan, first: SourceSpan) -> Issue {
    let issue = Issue::error("policy::duplicate", format!("{what} is given twice"), again, "given again here");
    issue.and(first, "first given here").help("keep one of the two")
}
