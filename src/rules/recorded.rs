//! Where a rule about further calls applies.

use super::{Strictness, Verdict, quoted};
use crate::syntax::{Issue, Node, suggest};

/// Whether evidence must hold the further calls that a rule compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Everywhere: evidence without such calls leaves the rule not evaluated, and the run does not pass.
    Everywhere,
    /// Only where the evidence holds such calls.
    Recorded,
}

impl Where {
    /// Reads `where="recorded"`, if it stands there.
    pub(super) fn decode(node: &mut Node<'_>) -> Option<Self> {
        let given = node.has("where");
        let Some(text) = node.optional::<String>("where") else {
            return (!given).then_some(Self::Everywhere);
        };
        if text.value == "recorded" {
            return Some(Self::Recorded);
        }
        let message = format!("unknown condition `{}`", text.value);
        let mut issue = Issue::error("policy::unknown-condition", message, text.span, "no such condition");
        issue.help = suggest(&text.value, ["recorded"].into_iter());
        node.report(issue);
        None
    }

    /// As a policy writes it.
    pub(super) fn parameters(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Everywhere => Vec::new(),
            Self::Recorded => vec![("where", quoted("recorded"))],
        }
    }

    /// What `new` lets through, compared with this.
    pub(super) fn strictness(self, new: Self) -> Strictness {
        match (self, new) {
            (Self::Everywhere, Self::Everywhere) | (Self::Recorded, Self::Recorded) => Strictness::Equal,
            (Self::Everywhere, Self::Recorded) => Strictness::Looser,
            (Self::Recorded, Self::Everywhere) => Strictness::Tighter,
        }
    }

    /// The end of a sentence.
    pub(super) fn clause(self) -> &'static str {
        match self {
            Self::Everywhere => "",
            Self::Recorded => ", where such calls were recorded",
        }
    }

    /// The verdict on evidence without such calls.
    pub(super) fn unrecorded(self, why: &str) -> Verdict {
        match self {
            Self::Everywhere => Verdict::NotEvaluated(why.to_owned()),
            Self::Recorded => Verdict::NotApplicable(why.to_owned()),
        }
    }
}
