//! A KDL node whose parts are taken one by one; what nobody takes is unknown, and an error.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kdl::{KdlEntry, KdlNode};
use miette::SourceSpan;

use super::{FromKdl, Issue, Sink, Spanned};

/// A node being decoded. Call [`Node::finish`] last.
#[derive(Debug)]
pub struct Node<'a> {
    node: &'a KdlNode,
    sink: &'a Sink,
    arguments: std::collections::VecDeque<&'a KdlEntry>,
    properties: BTreeMap<&'a str, &'a KdlEntry>,
    known: Vec<&'static str>,
    takes_children: bool,
}

impl<'a> Node<'a> {
    /// Opens a node. Type annotations and repeated properties are errors.
    pub fn new(node: &'a KdlNode, sink: &'a Sink) -> Self {
        let mut properties: BTreeMap<&str, &KdlEntry> = BTreeMap::new();
        let mut arguments = std::collections::VecDeque::new();
        if let Some(ty) = node.ty() {
            sink.push(annotation(ty.span()));
        }
        for entry in node.entries() {
            if let Some(ty) = entry.ty() {
                sink.push(annotation(ty.span()));
            }
            let Some(name) = entry.name() else {
                arguments.push_back(entry);
                continue;
            };
            match properties.entry(name.value()) {
                Entry::Occupied(first) => {
                    let message = format!("`{}` is given twice", name.value());
                    let issue = Issue::error("kdl::duplicate-property", message, entry.span(), "given again here");
                    sink.push(issue.and(first.get().span(), "first given here").help("keep one of the two"));
                }
                Entry::Vacant(place) => {
                    place.insert(entry);
                }
            }
        }
        Self { node, sink, arguments, properties, known: Vec::new(), takes_children: false }
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.node.name().value()
    }

    /// Where the name stands.
    #[must_use]
    pub fn name_span(&self) -> SourceSpan {
        self.node.name().span()
    }

    /// Where the whole node stands, children included.
    #[must_use]
    pub fn span(&self) -> SourceSpan {
        self.node.span()
    }

    /// Where the node's head stands: its name, arguments and properties, without a block.
    #[must_use]
    pub fn head_span(&self) -> SourceSpan {
        let end = |span: SourceSpan| span.offset() + span.len();
        let start = self.name_span().offset();
        let last = self.node.entries().iter().map(|entry| end(entry.span())).max();
        SourceSpan::new(start.into(), last.unwrap_or(end(self.name_span())).saturating_sub(start))
    }

    /// Takes everything that is left unread: of a line that is already refused, its parts are no errors of their own.
    pub fn ignore_rest(&mut self) {
        self.arguments.clear();
        self.properties.clear();
        self.takes_children = true;
    }

    /// Reports an issue.
    pub fn report(&self, issue: Issue) {
        self.sink.push(issue);
    }

    /// The next argument, if there is one.
    pub fn optional_argument<T: FromKdl>(&mut self) -> Option<Spanned<T>> {
        let entry = self.arguments.pop_front()?;
        self.read(entry)
    }

    /// The next argument; `what` says what it means where it is missing.
    pub fn argument<T: FromKdl>(&mut self, what: &str) -> Option<Spanned<T>> {
        if self.arguments.is_empty() {
            let message = format!("`{}` needs {what}", self.name());
            let label = format!("expected {} after this", T::EXPECTED);
            self.report(Issue::error("kdl::missing-argument", message, self.name_span(), label));
            return None;
        }
        self.optional_argument()
    }

    /// How many arguments are left.
    #[must_use]
    pub fn arguments_left(&self) -> usize {
        self.arguments.len()
    }

    /// All arguments that are left.
    pub fn arguments<T: FromKdl>(&mut self) -> Vec<Spanned<T>> {
        let entries: Vec<_> = self.arguments.drain(..).collect();
        entries.into_iter().filter_map(|entry| self.read(entry)).collect()
    }

    /// A property that may be left out.
    pub fn optional<T: FromKdl>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        self.known.push(key);
        let entry = self.properties.remove(key)?;
        self.read(entry)
    }

    /// Whether the property stands there, not yet taken.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.properties.contains_key(key)
    }

    /// A property that must be there.
    pub fn property<T: FromKdl>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        if !self.has(key) {
            self.known.push(key);
            let message = format!("`{}` needs `{key}=`", self.name());
            let label = format!("add {key}= with {}", T::EXPECTED);
            self.report(Issue::error("kdl::missing-property", message, self.name_span(), label));
            return None;
        }
        self.optional(key)
    }

    /// The children, each opened in turn.
    pub fn children(&mut self) -> Vec<Node<'a>> {
        self.takes_children = true;
        let sink = self.sink;
        self.node
            .children()
            .map_or_else(Vec::new, |children| children.nodes().iter().map(|child| Node::new(child, sink)).collect())
    }

    /// Reports everything that nobody took.
    pub fn finish(self) {
        for entry in &self.arguments {
            let message = format!("`{}` takes no further argument", self.name());
            self.report(Issue::error("kdl::extra-argument", message, value_span(entry), "not expected here"));
        }
        for (name, entry) in &self.properties {
            let message = format!("`{}` has no property `{name}`", self.name());
            let span = entry.name().map_or(entry.span(), |name| name.span());
            let mut issue = Issue::error("kdl::unknown-property", message, span, "unknown");
            issue.help = suggest(name, self.known.iter().copied());
            self.report(issue);
        }
        if let (false, Some(children)) = (self.takes_children, self.node.children()) {
            let message = format!("`{}` takes no block", self.name());
            self.report(Issue::error("kdl::extra-block", message, children.span(), "not expected here"));
        }
    }

    /// Reports this node as unknown, with the nearest known name, and drops it.
    pub fn unknown(self, code: &'static str, what: &str, known: &[&str]) {
        let message = format!("unknown {what} `{}`", self.name());
        let mut issue = Issue::error(code, message, self.name_span(), format!("no such {what}"));
        issue.help = suggest(self.name(), known.iter().copied());
        self.report(issue);
    }

    fn read<T: FromKdl>(&self, entry: &KdlEntry) -> Option<Spanned<T>> {
        let span = value_span(entry);
        let repr = entry.format().map(|format| format.value_repr.clone());
        let repr = repr.unwrap_or_else(|| entry.value().to_string());
        let read = T::from_kdl(entry.value(), &repr);
        if read.is_none() {
            let message = match entry.name() {
                Some(name) => format!("`{}` of `{}` is not {}", name.value(), self.name(), T::EXPECTED),
                None => format!("this value of `{}` is not {}", self.name(), T::EXPECTED),
            };
            let label = format!("expected {}", T::EXPECTED);
            self.report(Issue::error("kdl::wrong-value", message, span, label));
        }
        read.map(|value| Spanned::new(value, span))
    }
}

/// The most known names that a help looks through, and the longest name that it looks for.
const MAX_SUGGESTED: usize = 100;
const MAX_SOUGHT: usize = 200;

/// The nearest known name, as a help text; all of them where none is near.
#[must_use]
pub fn suggest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    let known: Vec<&str> = known.take(MAX_SUGGESTED).collect();
    let nearest = known
        .iter()
        .filter(|_| name.len() <= MAX_SOUGHT)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, candidate)) => Some(format!("did you mean `{candidate}`?")),
        None if known.is_empty() => None,
        None => Some(format!("known here: {}", known.join(", "))),
    }
}

fn annotation(span: SourceSpan) -> Issue {
    Issue::error("kdl::type-annotation", "type annotations have no meaning here", span, "remove this")
}

/// The place of an entry's value: the entry's span ends with the value's text.
fn value_span(entry: &KdlEntry) -> SourceSpan {
    match entry.format() {
        Some(format) => {
            let length = format.value_repr.len();
            let end = entry.span().offset() + entry.span().len();
            SourceSpan::new(end.saturating_sub(length).into(), length)
        }
        None => entry.span(),
    }
}
