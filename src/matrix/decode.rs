//! From KDL to a matrix: everything wrong in a file is reported at once.

use std::collections::BTreeMap;

use kdl::KdlDocument;
use miette::SourceSpan;

use super::{Case, Matrix, SourcePin, SubjectSpec};
use crate::digest::Sha256;
use crate::syntax::{Issue, Issues, Node, Sink, Source, Spanned, parse, unfit_name};

impl Matrix {
    /// Reads a matrix.
    ///
    /// # Errors
    /// Every issue of the file, in the order of its places.
    pub fn read(source: Source) -> Result<Self, Issues> {
        parse(&source, |document, sink| decode(document, sink, &source))
    }
}

fn decode(document: &KdlDocument, sink: &Sink, source: &Source) -> Option<Matrix> {
    let mut matrix = None;
    let mut first = None;
    for mut node in document.nodes().iter().map(|node| Node::new(node, sink)) {
        if node.name() != "matrix" {
            node.unknown("matrix::unknown-node", "top-level node", &["matrix"]);
        } else if let Some(first) = first {
            let message = "a file holds one matrix";
            sink.push(
                Issue::error("matrix::second-matrix", message, node.head_span(), "a second one")
                    .and(first, "the first"),
            );
        } else {
            first = Some(node.head_span());
            matrix = decode_matrix(&mut node, source);
            node.finish();
        }
    }
    if document.nodes().is_empty() {
        let message = "the file holds no `matrix` node";
        let issue =
            Issue::error("matrix::no-matrix", message, (0, 0).into(), "expected matrix \"name\" schema=1 { … }");
        sink.push(issue);
    }
    matrix
}

fn decode_matrix(node: &mut Node<'_>, source: &Source) -> Option<Matrix> {
    let name = node.argument::<String>("a name").filter(|name| check_name(node, name));
    check_schema(node);
    let mut subjects: Vec<SubjectSpec> = Vec::new();
    let mut cases: Vec<Case> = Vec::new();
    let mut names = Names::default();
    let mut has_case = false;
    for child in node.children() {
        match child.name() {
            "subject" => subjects.extend(decode_subject(child, &mut names)),
            "case" => {
                has_case = true;
                cases.extend(super::case::decode(child, &mut names));
            }
            _ => child.unknown("matrix::unknown-node", "line of `matrix`", &["subject", "case"]),
        }
    }
    if !has_case {
        let message = "the matrix has no case: nothing would be evaluated";
        node.report(Issue::error("matrix::no-cases", message, node.head_span(), "no `case` in this matrix"));
    }
    Some(Matrix { source: source.clone(), name: name?, subjects, cases })
}

fn check_schema(node: &mut Node<'_>) {
    if let Some(schema) = node.property::<u32>("schema").filter(|schema| schema.value != 1) {
        let message = format!("schema {} is not known to this version", schema.value);
        let issue = Issue::error("matrix::schema", message, schema.span, "only 1 is known");
        node.report(issue.help("use a release of nucleus-gate that knows this schema"));
    }
}

/// The names given so far, each with the place of its first use: repetitions are errors even where the node itself has
/// others.
#[derive(Default)]
pub(super) struct Names(BTreeMap<(&'static str, String), SourceSpan>);

impl Names {
    /// Reads the node's name and reports it where it is unfit or already taken.
    pub(super) fn take(
        &mut self,
        node: &mut Node<'_>,
        what: &'static str,
        code: &'static str,
    ) -> Option<Spanned<String>> {
        let name = node.argument::<String>("a name")?;
        if !check_name(node, &name) {
            return None;
        }
        if let Some(first) = self.0.get(&(what, name.value.clone())) {
            let message = format!("{what} `{}` is declared twice", name.value);
            node.report(
                Issue::error(code, message, name.span, "declared again here").and(*first, "first declared here"),
            );
            return None;
        }
        self.0.insert((what, name.value.clone()), name.span);
        Some(name)
    }
}

/// A name is shown to people and names a file in a bundle.
fn check_name(node: &Node<'_>, name: &Spanned<String>) -> bool {
    unfit_name("matrix::name", name).map(|issue| node.report(issue)).is_none()
}

/// A path inside the project: relative, `/` between its parts, none of them `..`.
pub(super) fn check_path(node: &Node<'_>, path: &Spanned<String>) {
    let text = path.value.as_str();
    let problem = if text.is_empty() {
        "the path is empty"
    } else if text.starts_with('/') || text.contains(['\\', ':']) || text.chars().any(crate::text::is_unsafe) {
        "a path is relative to the project root, with `/` between its parts"
    } else if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        "a path has no empty, `.` or `..` part: it does not leave the project root"
    } else {
        return;
    };
    node.report(Issue::error("matrix::path", problem, path.span, "not a fit path"));
}

fn decode_subject(mut node: Node<'_>, names: &mut Names) -> Option<SubjectSpec> {
    let span = node.head_span();
    let name = names.take(&mut node, "subject", "matrix::duplicate-subject");
    let bundle = node.property::<String>("bundle").inspect(|path| check_path(&node, path));
    let bundle_sha256 = node.property::<Sha256>("bundle-sha256");
    let patch_sha256 = node.optional::<Sha256>("patch-sha256");
    let mut sources: Vec<SourcePin> = Vec::new();
    let mut paths: BTreeMap<String, SourceSpan> = BTreeMap::new();
    for mut child in node.children() {
        if child.name() != "source" {
            child.unknown("matrix::unknown-node", "line of `subject`", &["source"]);
            continue;
        }
        let path = child.argument::<String>("the source's path");
        let sha256 = child.property::<Sha256>("sha256");
        if let (Some(path), Some(sha256)) = (path, sha256) {
            check_path(&child, &path);
            if let Some(first) = paths.get(&path.value) {
                let message = format!("source `{}` is pinned twice", path.value);
                let issue = Issue::error("matrix::duplicate-source", message, path.span, "pinned again here");
                child.report(issue.and(*first, "first pinned here"));
            }
            paths.entry(path.value.clone()).or_insert(path.span);
            sources.push(SourcePin { path, sha256 });
        }
        child.finish();
    }
    node.finish();
    Some(SubjectSpec { name: name?, span, bundle: bundle?, bundle_sha256: bundle_sha256?, patch_sha256, sources })
}
