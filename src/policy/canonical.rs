//! A policy without its layout: one line a decision, the same for every way to write it.

use super::model::{Policy, ReportItem, ReportKind, RuleSpec};
use crate::digest::Sha256;
use crate::matrix::RowKind;
use crate::rules::Check;

impl Policy {
    /// Everything that the policy decides, a line each, sorted. Layout, comments, order and the policy's name are not in
    /// it.
    #[must_use]
    pub fn canonical(&self) -> String {
        let limits = &self.limits;
        let mut lines = vec![
            "oracle binary64".to_owned(),
            format!("limits max-vocab={}", *limits.max_vocab),
            format!("limits max-batch={}", *limits.max_batch),
            format!("limits timeout-seconds={}", *limits.timeout_seconds),
            format!("limits max-artifact-bytes={}", *limits.max_artifact_bytes),
            "evidence identical-inputs".to_owned(),
        ];
        lines.extend(self.evidence.subjects.iter().map(|subject| format!("evidence subject {:?}", subject.value)));
        lines.extend(self.evidence.pinned_sources.then(|| "evidence pinned-sources".to_owned()));
        lines.extend(self.evidence.dispatch.iter().map(|path| format!("evidence dispatch {:?}", path.value)));
        for block in &self.blocks {
            lines.extend(block.rules.iter().map(|rule| format!("rules {} {}", block.kind.name(), rule.text())));
        }
        lines.extend(self.reports.iter().map(|item| format!("report {}", item.text())));
        lines.sort_unstable();
        lines.join("\n") + "\n"
    }

    /// The semantic hash: the digest of [`Policy::canonical`]. Equal for two policies that differ in layout, comments,
    /// order or name alone.
    #[must_use]
    pub fn semantic_sha256(&self) -> Sha256 {
        Sha256::of(self.canonical().as_bytes())
    }

    /// Every rule with the kind of its block, in the order of the file.
    pub fn placed_rules(&self) -> impl Iterator<Item = (RowKind, &RuleSpec)> {
        self.blocks.iter().flat_map(|block| block.rules.iter().map(move |rule| (block.kind.value, rule)))
    }
}

impl RuleSpec {
    /// The rule as a policy writes it, on one line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} {:?}", self.check.name(), self.subject.value);
        self.parameters().iter().for_each(|(name, value)| push(&mut text, name, value));
        if self.id.value != self.check.name() {
            push(&mut text, "id", &format!("{:?}", self.id.value));
        }
        text
    }

    /// The kind's parameters, then the conditions that any rule can have.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let quoted = |text: &crate::syntax::Spanned<String>| format!("{:?}", text.value);
        let mut parameters = self.check.parameters();
        parameters.extend(self.requires.as_ref().map(|id| ("requires", quoted(id))));
        parameters.extend(self.on_dispatch.as_ref().map(|path| ("on-dispatch", quoted(path))));
        parameters
    }
}

impl ReportItem {
    /// The item as a policy writes it, on one line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} {:?}", self.kind.name(), self.subject.value);
        let parameters = match &self.kind {
            ReportKind::ReproducesFault { deny: Some(deny) } if deny.value => vec![("deny", "#true".to_owned())],
            ReportKind::ReproducesFault { .. } | ReportKind::Minimality => Vec::new(),
            ReportKind::MaskEquality => vec![("against", "\"oracle\"".to_owned())],
            ReportKind::UpstreamEnvelope(envelope) => Check::CountEnvelope(envelope.clone()).parameters(),
        };
        parameters.iter().for_each(|(name, value)| push(&mut text, name, value));
        if self.id.value != self.kind.name() {
            push(&mut text, "id", &format!("{:?}", self.id.value));
        }
        text
    }

    /// Whether it can end a run: `reproduces-fault` with `deny`.
    #[must_use]
    pub fn decides(&self) -> bool {
        matches!(&self.kind, ReportKind::ReproducesFault { deny: Some(deny) } if deny.value)
    }
}

fn push(text: &mut String, name: &str, value: &str) {
    text.push(' ');
    if !name.is_empty() {
        text.push_str(name);
        text.push('=');
    }
    text.push_str(value);
}
