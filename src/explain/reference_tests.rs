//! The reference page of the two languages, held to the decoders and to every shipped file.

use std::collections::BTreeSet;
use std::path::Path;

use kdl::{KdlDocument, KdlNode};

use crate::matrix::Matrix;
use crate::policy::{Policy, ReportKind, lint};
use crate::rules::KINDS;
use crate::syntax::Source;

const REFERENCE: &str = include_str!("../../policies/REFERENCE.md");

/// The texts between backquotes, of the prose alone.
fn spans() -> String {
    let mut in_block = false;
    let mut out = String::new();
    for line in REFERENCE.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            line.split('`').skip(1).step_by(2).for_each(|span| out = format!("{out}{span}\n"));
        }
    }
    out
}

fn names(nodes: &[KdlNode], found: &mut BTreeSet<String>) {
    for node in nodes {
        found.insert(node.name().value().to_owned());
        let properties = node.entries().iter().filter_map(|entry| entry.name());
        found.extend(properties.map(|name| format!("{}=", name.value())));
        names(node.children().map_or(&[], |children| children.nodes()), found);
    }
}

fn shipped() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["policies", "matrices"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let paths = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "kdl"));
    let texts: Vec<String> = paths.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(texts.len() >= 6);
    texts
}

#[test]
fn every_word_of_the_shipped_files_is_in_the_reference() {
    let mut used = BTreeSet::new();
    for text in shipped() {
        names(text.parse::<KdlDocument>().unwrap().nodes(), &mut used);
    }
    let spans = spans();
    let words: BTreeSet<&str> = spans.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '=')).collect();
    let known =
        |name: &str| words.contains(name) || words.iter().any(|word| name.ends_with('=') && word.starts_with(name));
    let missing: Vec<_> = used.iter().filter(|name| !known(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_rule_and_report_has_its_line_with_its_row_kinds() {
    for kind in KINDS {
        let rows: Vec<&str> = kind.rows.iter().map(|row| row.name()).collect();
        let line = REFERENCE.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name)));
        assert!(line.is_some_and(|line| line.contains(&format!("| {} |", rows.join(", ")))), "{}: {line:?}", kind.name);
    }
    for name in ReportKind::NAMES {
        assert!(REFERENCE.contains(&format!("\n| `{name}` |")), "{name}");
    }
}

#[test]
fn the_examples_decode() {
    let blocks: Vec<&str> = REFERENCE.split("```kdl\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [policy, matrix] = blocks.as_slice() else { panic!("{} examples", blocks.len()) };
    let policy = Policy::read(Source::new("p", *policy)).unwrap_or_else(|issues| panic!("{:?}", issues.list));
    assert!(lint(&policy).is_empty());
    Matrix::read(Source::new("m", *matrix)).unwrap_or_else(|issues| panic!("{:?}", issues.list));
}
