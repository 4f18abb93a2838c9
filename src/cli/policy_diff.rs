//! `nucleus-gate policy diff`: what a change of a policy lets through.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::load::{self, DEFAULT_POLICY, Files};
use super::policy_freeze::kdl_files;
use super::{Failure, git, screen};
use crate::gate::{self, ExitCode, Fault};
use crate::matrix::Matrix;
use crate::policy::{Policy, builtin};
use crate::proof::{Review, price, prove, recorded, zoo};
use crate::report;
use crate::root::ProjectRoot;
use crate::syntax::Source;

/// Say what a change of a policy lets through, rule by rule
///
/// OLD and NEW are files or builtin:NAME. With one argument it is OLD, and NEW is the default policy as it stands; an OLD
/// that is no file is a git revision of it: policy diff HEAD~1, or policy diff HEAD~1 policies/mine.kdl.
///
/// The fault zoo runs on its own small cases, beside exact subjects and beside subjects with the same fault.
///
/// Exit codes: 0 nothing more gets through, or all of it is acknowledged; 1 something does; 2, 3 and 5 as in check, also of
/// the evidence: what is missing, unreadable or drifted was not compared; 4 no recorded row was compared. A matrix of other
/// subjects or of another dispatch path than a policy's is no failure, unless the call names it with --matrix.
#[derive(Debug, clap::Args)]
pub(super) struct Diff {
    /// The policy before: a file, builtin:NAME, or a git revision of NEW
    old: String,
    /// The policy now [default: policies/split-top-p.kdl]
    new: Option<String>,
    /// A decision that may let more through, by its name in this report; may be repeated
    #[arg(long, value_name = "NAME")]
    acknowledge: Vec<String>,
    /// Also judge recorded evidence under both policies
    #[arg(long)]
    evidence: bool,
    /// The matrix of that evidence; may be repeated [default: every matrix in matrices/ that names subjects]
    #[arg(long, value_name = "FILE", requires = "evidence")]
    matrix: Vec<PathBuf>,
    /// Leave out the fault zoo
    #[arg(long)]
    no_zoo: bool,
    /// What stdout shows
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The project root
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

impl Diff {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = Files { policy: self.new.clone(), matrix: None, root: self.root.clone() };
        let root = files.base_or_here()?;
        let new = files.policy_alone()?;
        let old = Policy::read(self.old(&root)?).map_err(Failure::Issues)?;
        let mut review = Review::new(old, new, self.acknowledge.clone());
        // Where no decision differs, nothing that is judged can.
        let differs = review.changed().next().is_some();
        if differs && !self.no_zoo {
            let zoo = zoo().map_err(|issues| Failure::internal(issues.to_string()))?;
            let proof = |policy| prove(policy, &[&zoo], &root).map_err(|faults| Failure::of_faults(&faults));
            review.prices = Some(price(&proof(&review.old)?, &proof(&review.new)?));
        }
        if differs && self.evidence {
            for matrix in self.matrices(&root)? {
                let context = || gate::Context { root: &root, started: Instant::now(), selection: None };
                let old = gate::run(&review.old, &matrix, &context());
                let new = gate::run(&review.new, &matrix, &context());
                let mut recorded = recorded(&old, &new);
                // Of all matrices, some are of other policies; one that the call names is to be compared.
                if !self.matrix.is_empty() {
                    recorded.demand();
                }
                review.recorded.push(recorded);
            }
        }
        let text = match self.format {
            Format::Text => report::policy::review_text(&review),
            Format::Markdown => report::policy::review_markdown(&review),
            Format::Json => {
                report::policy::review_json(&review).map_err(|error| Failure::internal(error.to_string()))?
            }
        };
        screen::print(&text)?;
        let lets_through = if review.open().next().is_some() { ExitCode::Violated } else { ExitCode::Passed };
        let unjudged = if differs && self.evidence { unjudged(&review) } else { None };
        Ok(unjudged.map_or(lets_through, |failure| failure.report().max(lets_through)))
    }

    /// The old policy: a shipped one, a file, or a revision of the new file.
    fn old(&self, root: &ProjectRoot) -> Result<Source, Failure> {
        if let Some(source) = builtin(&self.old) {
            return Ok(source);
        }
        if Path::new(&self.old).is_file() {
            return load::read(Path::new(&self.old));
        }
        let file = match &self.new {
            Some(new) => PathBuf::from(new),
            None => root.path().join(format!("policies/{DEFAULT_POLICY}.kdl")),
        };
        git::revision(&self.old, &file)
    }

    /// The matrices that the call names, or all that name recorded evidence.
    fn matrices(&self, root: &ProjectRoot) -> Result<Vec<Matrix>, Failure> {
        if !self.matrix.is_empty() {
            return self.matrix.iter().map(|path| load::read_matrix(path)).collect();
        }
        let folder = root.path().join("matrices");
        let all = kdl_files(&folder)?.into_iter().map(|name| load::read_matrix(&folder.join(name)));
        let all: Vec<Matrix> = all.collect::<Result<_, _>>()?;
        // A matrix without subjects has no recorded evidence.
        Ok(all.into_iter().filter(|matrix| !matrix.subjects.is_empty()).collect())
    }
}

/// Evidence that was asked for and not compared: what nobody looked at shows nothing.
fn unjudged(review: &Review) -> Option<Failure> {
    let faults = review.recorded.iter().flat_map(|recorded| &recorded.faults).cloned();
    let mut faults: Vec<Fault> = faults.collect();
    faults.sort_by_key(|fault| Reverse(ExitCode::of_class(fault.class)));
    if !faults.is_empty() {
        return Some(Failure::of_faults(&faults));
    }
    let compared: usize = review.recorded.iter().map(|recorded| recorded.rows).sum();
    (compared == 0).then(|| Failure::Message {
        exit: ExitCode::NothingEvaluated,
        code: "cli::nothing-compared".to_owned(),
        message: "no recorded row was compared: no matrix is of evidence that both policies judge".to_owned(),
        help: "name a matrix of theirs with --matrix FILE, or leave out --evidence".to_owned(),
    })
}
