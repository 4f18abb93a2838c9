//! `nucleus-gate policy lint`: what fits the language and proves less than it seems to.

use std::path::PathBuf;

use super::load::Files;
use super::{Failure, screen};
use crate::gate::{self, ExitCode};
use crate::policy::{lint, lint_with};
use crate::report::render_issues;
use crate::syntax::{Issue, Issues, Severity, Source};

/// Look for rules that cannot fail, contradict each other, or that a matrix never reaches
///
/// Exit codes: 0 nothing, or warnings alone; 2 errors, or warnings under --strict.
#[derive(Debug, clap::Args)]
pub(super) struct Lint {
    /// The policy: a file, or builtin:NAME [default: policies/split-top-p.kdl]
    policy: Option<String>,
    /// A matrix that the policy is meant for
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// The project root, where the paths in the matrix begin
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Warnings are errors
    #[arg(long)]
    strict: bool,
}

impl Lint {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = Files { policy: self.policy.clone(), matrix: self.matrix.clone(), root: self.root.clone() };
        let (policy, mut found) = if self.matrix.is_some() {
            let loaded = files.load()?;
            let paths = gate::dispatch_paths(&loaded.policy, &loaded.matrix, &loaded.root);
            let (with_matrix, in_matrix) = lint_with(&loaded.policy, &loaded.matrix, &paths);
            let mut issues = lint(&loaded.policy);
            issues.extend(with_matrix);
            let found = vec![(loaded.policy.source.clone(), issues), (loaded.matrix.source.clone(), in_matrix)];
            (loaded.policy, found)
        } else {
            let policy = files.policy_alone()?;
            let found = vec![(policy.source.clone(), lint(&policy))];
            (policy, found)
        };
        if self.strict {
            let all = found.iter_mut().flat_map(|(_, issues)| issues);
            all.for_each(|issue| issue.severity = Severity::Error);
        }
        screen::print(&text(policy.source.name(), &found))?;
        let refused = found.iter().flat_map(|(_, issues)| issues).any(|issue| issue.severity == Severity::Error);
        Ok(if refused { ExitCode::Invocation } else { ExitCode::Passed })
    }
}

fn text(name: &str, found: &[(Source, Vec<Issue>)]) -> String {
    let drawn = found.iter().filter(|(_, issues)| !issues.is_empty());
    let drawn = drawn.map(|(source, issues)| {
        let issues = Issues::new(source.clone(), issues.clone());
        render_issues(&issues, &screen::stdout()) + "\n"
    });
    let mut out: String = drawn.collect();
    let count =
        |severity| found.iter().flat_map(|(_, issues)| issues).filter(|issue| issue.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    out += &format!("{name}: {errors} errors, {warnings} warnings\n");
    out
}
