//! A matrix for newly captured evidence: the cases of an existing one, other subjects.

use std::fmt::Write as _;

use kdl::KdlDocument;

use crate::digest::Sha256;
use crate::evidence::Subject;
use crate::syntax::{Source, parse};

/// A captured subject and where its bundle lies.
#[derive(Debug)]
pub struct Pinned<'a> {
    /// Who it is.
    pub subject: &'a Subject,
    /// The bundle's folder, relative to the project root.
    pub bundle: String,
    /// The bundle's digest.
    pub sha256: Sha256,
}

/// The text of a matrix named `name` that holds the cases of `source`, in their own words, and these subjects.
/// `None` where `source` is no matrix.
#[must_use]
pub fn repin(source: &Source, name: &str, subjects: &[Pinned<'_>]) -> Option<String> {
    // Nesting can hide from all that decodes it, behind a `/-`: only this parser's stack is made for it.
    parse(source, |document, _| rewritten(document, source, name, subjects)).ok()
}

fn rewritten(document: &KdlDocument, source: &Source, name: &str, subjects: &[Pinned<'_>]) -> Option<String> {
    let matrix = document.nodes().iter().find(|node| node.name().value() == "matrix")?;
    let mut text = format!("// The cases of {}, and evidence captured by nucleus-gate.\n\n", source.name());
    let quoted = |value: &str| format!("{value:?}");
    let _ = writeln!(text, "matrix {} schema=1 {{", quoted(name));
    for Pinned { subject, bundle, sha256 } in subjects {
        let (name, bundle) = (quoted(&subject.name), quoted(bundle));
        let _ = writeln!(text, "    subject {name} bundle={bundle} \\\n        bundle-sha256=\"{sha256}\" {{");
        for source in &subject.sources {
            let path = quoted(&source.path);
            let _ = writeln!(text, "        source {path} sha256=\"{}\"", source.sha256);
        }
        text.push_str("    }\n");
    }
    for case in matrix.children()?.nodes().iter().filter(|node| node.name().value() == "case") {
        let _ = write!(text, "{case}");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("}\n");
    Some(text)
}
