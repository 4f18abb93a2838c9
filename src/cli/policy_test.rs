//! `nucleus-gate policy test`: the proof that a policy can fail.

use std::path::PathBuf;

use super::load::{Files, Loaded};
use super::{Failure, screen};
use crate::gate::ExitCode;
use crate::proof::{prove, zoo};
use crate::report;

/// Prove that a policy can fail: run the fault zoo and mutations of right answers under it
///
/// The models run on the cases of the matrix and on the small cases of the zoo. Exit codes: 0 every fault is caught, every
/// rule is tripped and the exact kernel is accused of nothing; 1 otherwise; 2 and 3 as in check.
#[derive(Debug, clap::Args)]
pub(super) struct Test {
    /// The policy: a file, or builtin:NAME [default: policies/split-top-p.kdl]
    policy: Option<String>,
    /// The matrix of cases [default: matrices/vllm-large-logit-fix.kdl]
    #[arg(long, value_name = "FILE", conflicts_with = "zoo_only")]
    matrix: Option<PathBuf>,
    /// The project root, where the paths in the matrix begin
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Run on the small cases of the zoo alone: no checkout is needed
    #[arg(long)]
    zoo_only: bool,
}

impl Test {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = Files { policy: self.policy.clone(), matrix: self.matrix.clone(), root: self.root.clone() };
        let zoo = zoo().map_err(|issues| Failure::internal(issues.to_string()))?;
        let (policy, matrices, root) = if self.zoo_only {
            let root = files.base_or_here()?;
            (files.policy_alone()?, vec![zoo], root)
        } else {
            let Loaded { policy, matrix, root, .. } = files.load()?;
            (policy, vec![matrix, zoo], root)
        };
        let list: Vec<_> = matrices.iter().collect();
        let proof = prove(&policy, &list, &root).map_err(|faults| Failure::of_faults(&faults))?;
        let names: Vec<String> = matrices.iter().map(|matrix| matrix.source.name().to_owned()).collect();
        screen::print(&report::policy::proof(&policy, &names, &proof, &screen::stdout()))?;
        Ok(if proof.holds() { ExitCode::Passed } else { ExitCode::Violated })
    }
}
