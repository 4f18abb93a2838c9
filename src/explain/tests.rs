//! Every code in the sources has its line in the table, and the generated files are current.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The string literals of a text that are `word::word` or, inside a function `code`, `word-word`.
fn codes_of(text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let literals = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let spaces = ["cli", "gate", "kdl", "limit", "lock", "matrix", "policy", "receipt", "verify", "run", "capture"];
    let scoped =
        |literal: &String| literal.split_once("::").is_some_and(|(space, rest)| spaces.contains(&space) && word(rest));
    let mut found: BTreeSet<String> = text.lines().flat_map(literals).filter(scoped).collect();
    for body in text.split("fn code(").skip(1) {
        let body = body.split("\n    }").next().unwrap();
        found.extend(body.lines().flat_map(literals).filter(|literal| word(literal)));
    }
    found
}

#[test]
fn every_code_is_explained_and_every_explained_code_exists() {
    let mut files = Vec::new();
    sources(&project().join("src"), &mut files);
    let mut found: BTreeSet<String> =
        files.iter().flat_map(|file| codes_of(&std::fs::read_to_string(file).unwrap())).collect();
    found.insert("internal".to_owned());
    let explained: Vec<&str> = codes().map(|code| code.code).collect();
    let unique: BTreeSet<String> = explained.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(unique.len(), explained.len(), "a code is explained twice");
    let missing: Vec<_> = found.difference(&unique).collect();
    let unknown: Vec<_> = unique.difference(&found).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "in src/explain/codes.md: add {missing:?}, remove {unknown:?}");
    assert!(explained.is_sorted(), "the table is not sorted");
}

#[test]
fn every_topic_has_a_page_of_its_own() {
    let topics = topics();
    let unique: BTreeSet<&String> = topics.iter().collect();
    assert_eq!(unique.len(), topics.len(), "a name is used twice");
    for topic in &topics {
        assert!(page(topic).is_some_and(|page| page.starts_with(&format!("# {topic}\n\n"))), "{topic}");
    }
    assert_eq!(page("oracle::invalid-p"), page("invalid-p"));
    assert_eq!(page("rule::prefix"), page("prefix"));
    assert_eq!(page("no-such-thing-at-all"), None);
    assert_eq!(suggestion("count-envelop").as_deref(), Some("did you mean `count-envelope`?"));
    assert_eq!(suggestion("zzzzzzzzzzzz"), None);
}

/// The codes are a public promise: a change of the list is reviewed.
#[test]
fn the_list_of_codes() {
    let list: Vec<&str> = codes().map(|code| code.code).collect();
    insta::assert_snapshot!(list.join("\n"));
}

#[test]
fn the_handbook_is_current() {
    let written = std::fs::read_to_string(project().join("policies/RULES.md")).unwrap();
    assert!(written == handbook(), "run: nucleus-gate explain --all > policies/RULES.md");
}
