//! One `case` of a matrix.

use std::collections::BTreeMap;

use miette::SourceSpan;

use super::decode::{Names, check_path};
use super::{Case, CaseKind, Expectation, ForceSpec, InputPins, MAX_ROWS, Origin};
use crate::digest::Sha256;
use crate::inputs::{Distribution, Recipe, Rounding};
use crate::syntax::{Issue, Node, Spanned, suggest};

const LINES: [&str; 7] = ["generated", "file", "p", "force", "disabled", "input", "expect"];

/// The lines of a case as they are found. `None` inside a pair: the line stood there but had errors of its own.
#[derive(Default)]
struct Lines {
    generated: Option<(SourceSpan, Option<Recipe>)>,
    file: Option<(SourceSpan, Option<FilePin>)>,
    p: Option<(SourceSpan, Option<Vec<Spanned<f32>>>)>,
    input: Option<(SourceSpan, Option<InputPins>)>,
    disabled: Option<(SourceSpan, Vec<Spanned<u32>>)>,
    forces: Vec<ForceSpec>,
    expectations: Vec<Expectation>,
    /// A `force` or `expect` line was refused: what follows from its absence is no error of its own.
    refused: bool,
}

struct FilePin {
    path: Spanned<String>,
    sha256: Spanned<Sha256>,
}

/// Decodes a case. Its name is taken even where the rest has errors.
pub(super) fn decode(mut node: Node<'_>, names: &mut Names) -> Option<Case> {
    let span = node.head_span();
    let name = names.take(&mut node, "case", "matrix::duplicate-case");
    let kind = node.property::<String>("kind").and_then(|kind| {
        let known = [("ordinary", CaseKind::Ordinary), ("forced", CaseKind::Forced), ("probe", CaseKind::Probe)];
        keyword(&node, &kind, "matrix::unknown-kind", "case kind", &known)
    });
    let mut lines = Lines::default();
    for child in node.children() {
        lines.take(child);
    }
    lines.check_forces(&node, kind.map(|kind| kind.value));
    let disabled: &[Spanned<u32>] = lines.disabled.as_ref().map_or(&[], |(_, rows)| rows);
    if !lines.refused {
        let kind = kind.map(|kind| kind.value);
        super::expectation::check(kind, span, &lines.expectations, disabled, &|issue| node.report(issue));
    }
    let case = lines.into_case(&node, name, kind);
    node.finish();
    case
}

impl Lines {
    fn take(&mut self, mut node: Node<'_>) {
        let span = node.head_span();
        match node.name() {
            "generated" => {
                repeated(&node, self.generated.as_ref().map(|line| line.0));
                self.generated = Some((span, recipe(&mut node)));
            }
            "file" => {
                repeated(&node, self.file.as_ref().map(|line| line.0));
                self.file = Some((span, file_pin(&mut node)));
            }
            "p" => {
                repeated(&node, self.p.as_ref().map(|line| line.0));
                self.p = Some((span, p_values(&mut node)));
            }
            "input" => {
                repeated(&node, self.input.as_ref().map(|line| line.0));
                let logits_sha256 = node.property("logits-sha256");
                let p_sha256 = node.property("p-sha256");
                let pins = logits_sha256.zip(p_sha256);
                self.input = Some((span, pins.map(|(logits_sha256, p_sha256)| InputPins { logits_sha256, p_sha256 })));
            }
            "disabled" => {
                repeated(&node, self.disabled.as_ref().map(|line| line.0));
                self.disabled = Some((span, row_list(&mut node)));
            }
            "force" => match force(&mut node) {
                Some(force) => self.forces.push(force),
                None => self.refused = true,
            },
            "expect" => {
                match super::expectation::decode(node) {
                    Some(expectation) => self.expectations.push(expectation),
                    None => self.refused = true,
                }
                return;
            }
            _ => return node.unknown("matrix::unknown-node", "line of `case`", &LINES),
        }
        node.finish();
    }

    /// What is wrong between the `force` lines and the rest of the case.
    fn check_forces(&self, node: &Node<'_>, kind: Option<CaseKind>) {
        let generated = self.generated.is_some();
        let disabled: BTreeMap<u32, SourceSpan> =
            self.disabled.iter().flat_map(|(_, rows)| rows).map(|row| (row.value, row.span)).collect();
        let mut forced: BTreeMap<u32, SourceSpan> = BTreeMap::new();
        for force in &self.forces {
            let row = force.row.value;
            if let Some(first) = forced.get(&row) {
                let issue = Issue::error(
                    "matrix::duplicate-row",
                    format!("row {row} is forced twice"),
                    force.row.span,
                    "forced again here",
                );
                node.report(issue.and(*first, "first forced here"));
            } else {
                forced.insert(row, force.row.span);
            }
            if let Some(off) = disabled.get(&row) {
                let message = format!("row {row} is both forced and disabled");
                let issue = Issue::error("matrix::contradiction", message, force.row.span, "forced here");
                node.report(issue.and(*off, "disabled here"));
            }
            match (&force.logit, generated, self.file.is_some()) {
                (None, true, _) => {
                    let message = "a generated case's forced token needs its logit";
                    let issue = Issue::error("matrix::force-without-logit", message, force.span, "no `logit=` here");
                    node.report(issue.help("add logit= with the value to set, such as 1e9"));
                }
                (Some(logit), false, true) => {
                    let message = "a file's logits are what they are: `logit=` sets nothing here";
                    let issue = Issue::error("matrix::force-with-logit", message, logit.span, "has no effect");
                    node.report(issue.help("remove logit=; row and token say which token the file forces"));
                }
                (None, false, _) | (Some(_), _, _) => {}
            }
        }
        if let (Some(CaseKind::Ordinary), Some(first)) = (kind, self.forces.first()) {
            let message = "an ordinary case forces no token";
            let issue = Issue::error("matrix::force-outside-forced", message, first.span, "not in this kind of case");
            node.report(
                issue.and(node.head_span(), "the case").help(
                    "make it kind=\"forced\" (or \"probe\", to declare what must come of it), or remove the line",
                ),
            );
        }
    }

    fn into_case(
        self,
        node: &Node<'_>,
        name: Option<Spanned<String>>,
        kind: Option<Spanned<CaseKind>>,
    ) -> Option<Case> {
        let missing = |line: &str, help: &str| {
            let message = format!("the case has no `{line}` line");
            let issue = Issue::error("matrix::missing-line", message, node.head_span(), format!("needs `{line}`"));
            node.report(issue.help(help));
        };
        let origin = match (self.generated, self.file, self.p) {
            (Some((first, _)), Some((second, _)), _) => {
                let message = "a case is generated or a file, not both";
                let issue = Issue::error("matrix::two-origins", message, second, "this one");
                node.report(issue.and(first, "and this one"));
                None
            }
            (Some((_, recipe)), None, Some((_, p))) => {
                recipe.zip(p).map(|(recipe, p)| Origin::Generated { recipe, p, forces: self.forces })
            }
            (Some(_), None, None) => {
                missing("p", "add p with one value a row, such as p 0.5 0.9");
                None
            }
            (None, Some((_, file)), None) => {
                file.map(|FilePin { path, sha256 }| Origin::File { path, sha256, forces: self.forces })
            }
            (None, Some(_), Some((p, _))) => {
                let message = "a file holds its own p";
                node.report(Issue::error("matrix::p-beside-file", message, p, "not beside `file`"));
                None
            }
            (None, None, _) => {
                missing("generated", "add a `generated` line with its `p`, or a `file` line");
                None
            }
        };
        if self.input.is_none() {
            missing("input", "pin the inputs: input logits-sha256=\"…\" p-sha256=\"…\"");
        }
        let case = Case {
            name: name?,
            span: node.head_span(),
            kind: kind?,
            origin: origin?,
            disabled: self.disabled.map(|(_, rows)| rows).unwrap_or_default(),
            input: self.input.and_then(|(_, pins)| pins)?,
            expectations: self.expectations,
        };
        if let (Origin::Generated { recipe, p, .. }, false) = (&case.origin, self.refused) {
            let p: Vec<f32> = p.iter().map(|p| p.value).collect();
            case.misfits(&p, recipe.vocab as usize).into_iter().for_each(|issue| node.report(issue));
        }
        Some(case)
    }
}

fn repeated(node: &Node<'_>, first: Option<SourceSpan>) {
    if let Some(first) = first {
        let message = format!("`{}` stands twice in one case", node.name());
        let issue = Issue::error("matrix::repeated-line", message, node.name_span(), "again here");
        node.report(issue.and(first, "first here"));
    }
}

fn keyword<T: Copy>(
    node: &Node<'_>,
    word: &Spanned<String>,
    code: &'static str,
    what: &str,
    known: &[(&str, T)],
) -> Option<Spanned<T>> {
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == word.value) {
        return Some(Spanned::new(*value, word.span));
    }
    let mut issue =
        Issue::error(code, format!("unknown {what} `{}`", word.value), word.span, format!("no such {what}"));
    issue.help = suggest(&word.value, known.iter().map(|(name, _)| *name));
    node.report(issue);
    None
}

fn recipe(node: &mut Node<'_>) -> Option<Recipe> {
    let distribution = node.argument::<String>("a distribution").and_then(|word| {
        let known =
            [("normal", Distribution::Normal), ("heavy", Distribution::Heavy), ("uniform", Distribution::Uniform)];
        keyword(node, &word, "matrix::unknown-distribution", "distribution", &known)
    });
    let seed = node.property::<u64>("seed");
    let vocab = node.property::<u32>("vocab").filter(|vocab| {
        let fit = vocab.value > 0;
        if !fit {
            let message = "a row has at least one token";
            node.report(Issue::error("matrix::out-of-range", message, vocab.span, "at least 1"));
        }
        fit
    });
    let sigma = node.property::<f64>("sigma").filter(|sigma| {
        let fit = sigma.value > 0.0;
        if !fit {
            let message = "sigma is a scale: a positive number";
            node.report(Issue::error("matrix::out-of-range", message, sigma.span, "above 0"));
        }
        fit
    });
    let round = match node.optional::<String>("round") {
        Some(word) => keyword(node, &word, "matrix::unknown-rounding", "rounding", &[("bf16", Rounding::Bf16)])?.value,
        None => Rounding::None,
    };
    Some(Recipe {
        distribution: distribution?.value,
        seed: seed?.value,
        vocab: vocab?.value,
        sigma: sigma?.value,
        round,
    })
}

fn file_pin(node: &mut Node<'_>) -> Option<FilePin> {
    let path = node.argument::<String>("a path").inspect(|path| check_path(node, path));
    let sha256 = node.property::<Sha256>("sha256");
    Some(FilePin { path: path?, sha256: sha256? })
}

/// One value a row: the list, `times` times.
fn p_values(node: &mut Node<'_>) -> Option<Vec<Spanned<f32>>> {
    let written = node.arguments_left();
    let first = node.argument::<f32>("one value a row");
    let list: Vec<_> = first.into_iter().chain(node.arguments::<f32>()).collect();
    let times = if node.has("times") { Some(node.optional::<u32>("times")?) } else { node.optional::<u32>("times") };
    if written == 0 || list.len() < written {
        return None;
    }
    let repeat = times.map_or(1, |times| times.value) as usize;
    let rows = list.len().saturating_mul(repeat);
    if rows == 0 || rows > MAX_ROWS as usize {
        let message = format!("a case has 1 to {MAX_ROWS} rows; this one has {rows}");
        let span = times.map_or(node.head_span(), |times| times.span);
        node.report(Issue::error("matrix::out-of-range", message, span, "makes the number of rows"));
        return None;
    }
    Some(list.repeat(repeat))
}

fn force(node: &mut Node<'_>) -> Option<ForceSpec> {
    let span = node.head_span();
    let row = node.property::<u32>("row");
    let token = node.property::<u32>("token");
    let logit = node.has("logit").then(|| node.optional::<f32>("logit"));
    if logit.is_none() {
        // Known all the same, so that a misspelling of it is recognised.
        node.optional::<f32>("logit");
    }
    let logit = match logit {
        Some(read) => Some(read?),
        None => None,
    };
    Some(ForceSpec { row: row?, token: token?, logit, span })
}

/// The row numbers of a line, each once.
pub(super) fn row_list(node: &mut Node<'_>) -> Vec<Spanned<u32>> {
    let Some(first) = node.argument::<u32>("row numbers") else { return Vec::new() };
    let mut rows: Vec<Spanned<u32>> = vec![first];
    let mut named = BTreeMap::from([(first.value, first.span)]);
    for row in node.arguments::<u32>() {
        if let Some(first) = named.get(&row.value) {
            let message = format!("row {} is named twice", row.value);
            let issue = Issue::error("matrix::duplicate-row", message, row.span, "named again here");
            node.report(issue.and(*first, "first named here"));
        } else {
            named.insert(row.value, row.span);
            rows.push(row);
        }
    }
    rows
}
