//! A change of a policy as a reviewer reads it: what changed, what was acknowledged, and what gets through.

use super::price::Price;
use crate::gate::Fault;
use crate::policy::{Change, Item, Policy, diff};

/// A recorded row whose verdict differs between the two policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// The case.
    pub case: String,
    /// The row.
    pub row: u32,
    /// The ids of the rules that it violated under the old policy, or left open.
    pub old: Vec<String>,
    /// Under the new policy.
    pub new: Vec<String>,
}

impl Turned {
    /// Whether it passes now and did not.
    #[must_use]
    pub fn gets_through(&self) -> bool {
        self.new.is_empty()
    }
}

/// What the recorded evidence of one matrix shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The matrix's name.
    pub matrix: String,
    /// Rows that both policies judged.
    pub rows: usize,
    /// Why it is not evidence for these two policies, where it is none for one of them. Nothing is missing.
    pub apart: Option<Fault>,
    /// What kept it from being judged wholly where it should have been, the worst first.
    pub faults: Vec<Fault>,
    /// The rows whose verdict differs.
    pub turned: Vec<Turned>,
}

impl Recorded {
    /// Demands evidence for both policies: that it is none is then a fault like any other.
    pub fn demand(&mut self) {
        self.faults.extend(self.apart.take());
    }

    /// Why not every row was compared: in two words, and what was found.
    #[must_use]
    pub fn gaps(&self) -> Vec<(&'static str, String)> {
        let said = |fault: &Fault| format!("{} ({})", fault.message, fault.code);
        let apart = self.apart.iter().map(|fault| ("not comparable", said(fault)));
        let more = match self.faults.len() {
            0 | 1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        let faults = self.faults.first().map(|fault| ("not all judged", said(fault) + &more));
        apart.chain(faults).collect()
    }
}

/// A change of a policy.
#[derive(Debug, Clone)]
pub struct Review {
    /// The policy before.
    pub old: Policy,
    /// The policy now.
    pub new: Policy,
    /// Every decision.
    pub items: Vec<Item>,
    /// The names that the reviewer acknowledges.
    pub acknowledged: Vec<String>,
    /// What the zoo shows, unless it was left out.
    pub prices: Option<Vec<Price>>,
    /// What recorded evidence shows, a matrix each, where it was asked for.
    pub recorded: Vec<Recorded>,
}

impl Review {
    /// Compares two policies.
    #[must_use]
    pub fn new(old: Policy, new: Policy, acknowledged: Vec<String>) -> Self {
        let items = diff(&old, &new);
        Self { old, new, items, acknowledged, prices: None, recorded: Vec::new() }
    }

    /// The decisions that differ.
    pub fn changed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.change != Change::Unchanged)
    }

    /// Whether the item is acknowledged by name.
    #[must_use]
    pub fn is_acknowledged(&self, item: &Item) -> bool {
        self.acknowledged.contains(&item.name)
    }

    /// The decisions that let more through and that nobody acknowledged.
    pub fn open(&self) -> impl Iterator<Item = &Item> {
        self.changed().filter(|item| item.lets_more_through() && !self.is_acknowledged(item))
    }

    /// The acknowledged names that name nothing that lets more through: a misspelling, or no longer needed.
    pub fn idle_acknowledgements(&self) -> impl Iterator<Item = &str> {
        let needed = |name: &str| self.changed().any(|item| item.lets_more_through() && item.name == name);
        self.acknowledged.iter().map(String::as_str).filter(move |name| !needed(name))
    }

    /// How many decisions had this change.
    #[must_use]
    pub fn count(&self, change: Change) -> usize {
        self.items.iter().filter(|item| item.change == change).count()
    }

    /// The review in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        if self.changed().next().is_none() {
            let same = self.old.source.sha256() == self.new.source.sha256();
            let why = if same { "the same bytes" } else { "only layout, comments, order or the name differ" };
            return format!("no rule changed: {why}");
        }
        let words = [Change::Loosened, Change::Incomparable, Change::Removed, Change::Added, Change::Tightened];
        let counts = words.map(|change| (self.count(change), change.name()));
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
        let counts: Vec<String> = counts.collect();
        let tail = match (self.changed().any(Item::lets_more_through), self.open().count()) {
            (false, _) => "nothing more gets through".to_owned(),
            (true, 0) => "more gets through, all of it acknowledged".to_owned(),
            (true, open) => format!("more gets through: {open} not acknowledged"),
        };
        format!("{}; {tail}", counts.join(", "))
    }
}
