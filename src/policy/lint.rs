//! What a policy can say and should not. Names, duplicates and requirements that do not exist are errors of decoding;
//! these are rules that fit the language and prove nothing, or less than they seem to.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::model::{Policy, RuleBlock, RuleSpec};
use crate::matrix::{Case, CaseKind, Expectation, Matrix, Origin, RowKind};
use crate::rules::{Check, CountEnvelope};
use crate::syntax::{Issue, Spanned, suggest};

/// The dispatch paths that a matrix's evidence records, by subject.
pub type Paths = BTreeMap<String, BTreeSet<String>>;

/// The most rules that one is said to contradict.
const MAX_CONTRADICTED: usize = 8;

/// Everything that the linter says of the policy by itself.
#[must_use]
pub fn lint(policy: &Policy) -> Vec<Issue> {
    let mut issues = Vec::new();
    for block in &policy.blocks {
        let mut demands: BTreeMap<_, &RuleSpec> = BTreeMap::new();
        for (index, rule) in block.rules.iter().enumerate() {
            let earlier = block.rules.iter().take(index);
            let demand = (rule.check.name(), &rule.subject.value, rule.check.parameters(), value(&rule.on_dispatch));
            match demands.entry(demand) {
                Entry::Occupied(first) => issues.push(duplicate(first.get(), rule)),
                Entry::Vacant(place) => {
                    place.insert(rule);
                }
            }
            issues.extend(earlier.filter_map(|first| contradiction(first, rule)).take(MAX_CONTRADICTED));
            issues.extend(requirement(block, rule));
            issues.extend(dispatch(policy, rule));
            if let Check::CountEnvelope(envelope) = &rule.check {
                issues.extend(vacuous(policy, envelope));
            }
        }
    }
    issues.extend(unused_subjects(policy));
    issues
}

/// Two rules of one block that demand the same under two ids.
fn duplicate(first: &RuleSpec, rule: &RuleSpec) -> Issue {
    let message = format!("`{}` demands what `{}` already does", rule.id.value, first.id.value);
    let issue = Issue::error("policy::duplicate-rule", message, rule.span, "the same rule again");
    issue.and(first.span, "first here").help("remove one of the two")
}

fn value(text: &Option<Spanned<String>>) -> Option<&str> {
    text.as_ref().map(|text| text.value.as_str())
}

/// Two rules that no output can satisfy together.
fn contradiction(first: &RuleSpec, rule: &RuleSpec) -> Option<Issue> {
    let elsewhere = first.on_dispatch.as_ref().zip(rule.on_dispatch.as_ref()).is_some_and(|(a, b)| a.value != b.value);
    if first.subject.value != rule.subject.value || elsewhere {
        return None;
    }
    let keeps_some = |check: &Check| {
        matches!(check, Check::RetainsForced(_) | Check::NotAllMasked(_) | Check::SelectsArgmax(_) | Check::Superset(_))
    };
    let why = match (&first.check, &rule.check) {
        (Check::ExactCount(one), Check::ExactCount(other)) if one.count.value != other.count.value => {
            "two numbers of kept tokens cannot both be exact"
        }
        (Check::ExactCount(none), other) | (other, Check::ExactCount(none))
            if *none.count == 0 && keeps_some(other) =>
        {
            "no token may be kept, and one must be"
        }
        _ => return None,
    };
    let message = format!("`{}` contradicts `{}`: {why}", rule.id.value, first.id.value);
    let issue = Issue::error("policy::contradiction", message, rule.span, "this rule");
    Some(issue.and(first.span, "and this one").help("no output can satisfy both: remove or correct one"))
}

/// A rule that is bounded by another subject means nothing where that subject under-keeps.
fn requirement(block: &RuleBlock, rule: &RuleSpec) -> Option<Issue> {
    let Check::SymmetricDifference(check) = &rule.check else { return None };
    let bound = &check.at_most;
    let covers = |other: &RuleSpec| matches!(other.check, Check::Superset(_)) && other.subject.value == bound.value;
    let required = rule.requires.as_ref();
    if required.is_some_and(|id| block.rules.iter().any(|other| other.id.value == id.value && covers(other))) {
        return None;
    }
    let message =
        format!("`{}` is bounded by {}, whether or not {} covers the oracle", rule.id.value, bound.value, bound.value);
    let issue = Issue::error("policy::missing-requirement", message, bound.span, "this bound may itself be wrong");
    let issue = match required {
        Some(id) => issue.and(id.span, format!("does not say that {} covers the oracle", bound.value)),
        None => issue,
    };
    Some(match block.rules.iter().find(|other| covers(other)) {
        Some(cover) => {
            let help = format!("add requires=\"{}\" to the rule", cover.id.value);
            issue.and(cover.span, "the rule to require").help(help)
        }
        None => {
            let name = &bound.value;
            issue.help(format!(
                "add superset \"{name}\" of=\"oracle\" id=\"{name}-covers-oracle\" above it, and require it"
            ))
        }
    })
}

/// A rule for a path that the policy's own evidence block excludes.
fn dispatch(policy: &Policy, rule: &RuleSpec) -> Option<Issue> {
    let (on, demanded) = (rule.on_dispatch.as_ref()?, policy.evidence.dispatch.as_ref()?);
    let message =
        format!("`{}` applies on `{}` only, and the evidence must be of `{}`", rule.id.value, on.value, demanded.value);
    let issue = Issue::error("policy::unreachable-dispatch", message, on.span, "never taken");
    let issue = issue.and(demanded.span, "the only path that is not drift");
    (on.value != demanded.value).then(|| issue.help("name the demanded path, or remove on-dispatch"))
}

/// An envelope that admits everything, or a clause of it that admits nothing.
fn vacuous(policy: &Policy, envelope: &CountEnvelope) -> Option<Issue> {
    let largest = policy.limits.max_vocab;
    let vocab = u64::from(*largest);
    let because = format!("no row has more than {vocab} tokens");
    if *envelope.max_difference >= vocab {
        let message = format!("the envelope can never bind: {because}");
        let issue =
            Issue::error("policy::vacuous-envelope", message, envelope.max_difference.span, "admits every count");
        return Some(
            issue.and(largest.span, "the largest vocabulary").help("demand a difference that can be exceeded"),
        );
    }
    if envelope.relative_below.exceeds_ratio(vocab, 1) {
        let message = format!("the envelope can never bind: {because}");
        let issue =
            Issue::error("policy::vacuous-envelope", message, envelope.relative_below.span, "admits every count");
        return Some(issue.and(largest.span, "the largest vocabulary").help("demand a share that can be exceeded"));
    }
    let dead = !envelope.relative_below.is_zero()
        && !envelope.relative_below.exceeds_ratio(*envelope.max_difference + 1, vocab);
    let message = "the relative clause never admits a count that the absolute one refuses";
    let issue = Issue::warning("policy::dead-parameter", message, envelope.relative_below.span, "has no effect");
    let issue =
        issue.and(envelope.max_difference.span, "already admits as much").and(largest.span, "for up to so many tokens");
    dead.then(|| issue.help("write relative-below=\"0\", which says so"))
}

fn unused_subjects(policy: &Policy) -> Vec<Issue> {
    let used = |name: &str| {
        let rules = policy.rules().any(|rule| {
            rule.subject.value == name || rule.check.other_subjects().iter().any(|other| other.value == name)
        });
        rules || policy.reports.iter().any(|item| item.subject.value == name)
    };
    let unused = policy.evidence.subjects.iter().filter(|subject| !used(&subject.value));
    let issue = |subject: &Spanned<String>| {
        let message = format!("subject `{}` must have evidence, and no rule looks at it", subject.value);
        Issue::warning("policy::unused-subject", message, subject.span, "not used")
            .help("add a rule for it, or remove it")
    };
    unused.map(issue).collect()
}

/// What a matrix cannot reach of a policy, and what does not fit between the two: issues of the policy's file and of the
/// matrix's.
#[must_use]
pub fn lint_with(policy: &Policy, matrix: &Matrix, paths: &Paths) -> (Vec<Issue>, Vec<Issue>) {
    let mut issues = unreached_blocks(policy, matrix);
    issues.extend(unreached_rules(policy, paths));
    for subject in &policy.evidence.subjects {
        // A matrix without subjects is for kernels that run here.
        if !matrix.subjects.is_empty() && !matrix.subjects.iter().any(|spec| spec.name.value == subject.value) {
            let message = format!("matrix `{}` declares no subject `{}`", matrix.name.value, subject.value);
            let mut issue = Issue::error("policy::subject-not-in-matrix", message, subject.span, "not in the matrix");
            issue.help = suggest(&subject.value, matrix.subjects.iter().map(|spec| spec.name.value.as_str()));
            issues.push(issue);
        }
    }
    issues.extend(small_limits(policy, matrix));
    (issues, matrix_issues(policy, matrix))
}

fn row_kinds(matrix: &Matrix) -> Vec<RowKind> {
    let mut kinds = Vec::new();
    for case in &matrix.cases {
        kinds.push(match case.kind.value {
            CaseKind::Ordinary | CaseKind::Probe => RowKind::Ordinary,
            CaseKind::Forced => RowKind::Forced,
        });
        if !case.disabled.is_empty() {
            kinds.push(RowKind::Disabled);
        }
    }
    kinds
}

fn unreached_blocks(policy: &Policy, matrix: &Matrix) -> Vec<Issue> {
    let kinds = row_kinds(matrix);
    let unreached = policy.blocks.iter().filter(|block| !kinds.contains(&block.kind.value));
    let issue = |block: &RuleBlock| {
        let message =
            format!("matrix `{}` has no {} row: the block decides nothing there", matrix.name.value, block.kind.name());
        Issue::warning("policy::unreached-block", message, block.kind.span, "no such row in the matrix")
            .help("add a case of this kind to the matrix")
    };
    unreached.map(issue).collect()
}

fn unreached_rules(policy: &Policy, paths: &Paths) -> Vec<Issue> {
    let unreached = policy.rules().filter_map(|rule| {
        let on = rule.on_dispatch.as_ref()?;
        let taken = paths.get(&rule.subject.value)?;
        if taken.contains(&on.value) {
            return None;
        }
        let known: Vec<&str> = taken.iter().map(String::as_str).collect();
        let message = format!("no case meets `{}`: {} takes {}", rule.id.value, rule.subject.value, known.join(", "));
        let mut issue = Issue::warning("policy::unreached-rule", message, on.span, "no case takes this path");
        issue.help = suggest(&on.value, known.into_iter());
        Some(issue)
    });
    unreached.collect()
}

/// A limit that some case of the matrix exceeds; the case that exceeds it most is named.
fn small_limits(policy: &Policy, matrix: &Matrix) -> Vec<Issue> {
    let shapes = || {
        matrix.cases.iter().filter_map(|case| match &case.origin {
            Origin::Generated { recipe, p, .. } => Some((case, recipe.vocab, p.len() as u32)),
            Origin::File { .. } => None,
        })
    };
    let widest = shapes().max_by_key(|(_, vocab, _)| *vocab).map(|(case, vocab, _)| (case, vocab));
    let tallest = shapes().max_by_key(|(.., batch)| *batch).map(|(case, _, batch)| (case, batch));
    let limits = [(policy.limits.max_vocab, "tokens a row", widest), (policy.limits.max_batch, "rows", tallest)];
    let issue = |(limit, what, largest): (Spanned<u32>, &str, Option<(&Case, u32)>)| {
        let (case, found) = largest.filter(|(_, found)| *found > limit.value)?;
        let message = format!("case `{}` has {found} {what}; it would stop every run", case.name.value);
        let issue = Issue::error("policy::limit-below-matrix", message, limit.span, "smaller than the matrix needs");
        Some(issue.help("raise the limit, or take a smaller case"))
    };
    limits.into_iter().filter_map(issue).collect()
}

fn matrix_issues(policy: &Policy, matrix: &Matrix) -> Vec<Issue> {
    let mut issues = Vec::new();
    for spec in &matrix.subjects {
        if !policy.evidence.subjects.iter().any(|subject| subject.value == spec.name.value) {
            let message = format!("policy `{}` knows no subject `{}`", policy.name.value, spec.name.value);
            let mut issue = Issue::error("matrix::subject-not-in-policy", message, spec.name.span, "not in the policy");
            issue.help =
                suggest(&spec.name.value, policy.evidence.subjects.iter().map(|subject| subject.value.as_str()));
            issues.push(issue);
        }
    }
    let ids = || policy.rules_for(RowKind::Probe).iter().map(|rule| rule.id.value.as_str());
    for expectation in matrix.cases.iter().flat_map(|case| &case.expectations) {
        let Expectation::Violation { rule, .. } = expectation else { continue };
        if !ids().any(|id| id == rule.value) {
            let message = format!("policy `{}` has no ordinary rule `{}`", policy.name.value, rule.value);
            let mut issue = Issue::error("matrix::unknown-rule", message, rule.span, "no such rule id");
            issue.help = suggest(&rule.value, ids());
            issues.push(issue);
        }
    }
    issues
}
