//! What a rule says of a row.

use miette::SourceSpan;

/// A rule's answer for one row. Exhaustive on purpose: a new outcome must be handled everywhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The rule holds.
    Passed,
    /// The rule is violated.
    Violated(Finding),
    /// The rule has nothing to say of this row, and why.
    NotApplicable(String),
    /// The rule could not be evaluated, and why: never a pass.
    NotEvaluated(String),
}

/// A violation, with its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// One sentence with the observed and the allowed numbers.
    pub message: String,
    /// What was observed, for machines.
    pub observed: String,
    /// What the rule allows, for machines.
    pub allowed: String,
    /// The exact parameter in the policy that is violated; the rule's own place where it has none.
    pub at: Option<SourceSpan>,
    /// The words under that place.
    pub label: String,
    /// How far off, in tokens: the worst is shown first.
    pub difference: u64,
    /// The token on which the boundary table centres.
    pub focus: Option<u32>,
    /// Another token that the table must show.
    pub also: Option<u32>,
    /// Further facts, a line each.
    pub facts: Vec<String>,
}

impl Finding {
    /// A finding with its sentence and the two numbers.
    #[must_use]
    pub fn new(message: impl Into<String>, observed: impl ToString, allowed: impl ToString) -> Self {
        Self {
            message: message.into(),
            observed: observed.to_string(),
            allowed: allowed.to_string(),
            at: None,
            label: "violated here".to_owned(),
            difference: 0,
            focus: None,
            also: None,
            facts: Vec::new(),
        }
    }

    /// Points at the parameter that is violated.
    #[must_use]
    pub fn at(mut self, span: SourceSpan, label: impl Into<String>) -> Self {
        self.at = Some(span);
        self.label = label.into();
        self
    }

    /// Labels the rule itself.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Says how far off the row is, in tokens.
    #[must_use]
    pub fn difference(mut self, difference: u64) -> Self {
        self.difference = difference;
        self
    }

    /// Centres the boundary table on a token.
    #[must_use]
    pub fn focus(mut self, token: Option<u32>) -> Self {
        self.focus = token;
        self
    }

    /// Shows another token in the table.
    #[must_use]
    pub fn also(mut self, token: u32) -> Self {
        self.also = Some(token);
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }
}

impl Verdict {
    /// A rule that needs the oracle met a row without its answer.
    #[must_use]
    pub fn no_oracle() -> Self {
        Self::NotEvaluated("the oracle has no nucleus for this row".to_owned())
    }
}
