//! `nucleus-gate explain`: what a rule, a fault or a code means, and what to do next.

use super::{Failure, screen};
use crate::explain;
use crate::gate::ExitCode;

/// Explain a rule, a fault of the zoo, or the code of a diagnostic
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// The name of a rule or fault, or a code as in error[CODE]
    #[arg(required_unless_present_any = ["all", "list"])]
    topic: Option<String>,
    /// Print the whole handbook: policies/RULES.md
    #[arg(long, conflicts_with = "topic")]
    all: bool,
    /// List everything that can be explained
    #[arg(long, conflicts_with_all = ["topic", "all"])]
    list: bool,
}

impl Explain {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let text = match &self.topic {
            Some(topic) => explain::page(topic).ok_or_else(|| {
                let help = explain::suggestion(topic).unwrap_or_else(|| "see: nucleus-gate explain --list".to_owned());
                Failure::invocation("cli::unknown-topic", format!("there is nothing called `{topic}`"), help)
            })?,
            None if self.all => explain::handbook(),
            None => explain::topics().into_iter().map(|topic| topic + "\n").collect(),
        };
        screen::print(&text)?;
        Ok(ExitCode::Passed)
    }
}
