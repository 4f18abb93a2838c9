//! The exit code, a public promise, decided here alone.

use super::{Decision, Execution, FaultClass, Run};

/// How a call ended. The order of the variants is the order in which the worst wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    /// 0: every rule decided and passed.
    Passed,
    /// 1: a rule was violated.
    Violated,
    /// 4: nothing was evaluated.
    NothingEvaluated,
    /// 3: stopped before a verdict.
    Stopped,
    /// 2: wrong invocation, policy or matrix; or a driver, device or key is missing.
    Invocation,
    /// 5: drift.
    Drift,
    /// 70: an internal error.
    Internal,
}

impl ExitCode {
    /// The process exit code.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Violated => 1,
            Self::Invocation => 2,
            Self::Stopped => 3,
            Self::NothingEvaluated => 4,
            Self::Drift => 5,
            Self::Internal => 70,
        }
    }

    /// The exit code of a fault.
    #[must_use]
    pub fn of_class(class: FaultClass) -> Self {
        match class {
            FaultClass::Drift => Self::Drift,
            FaultClass::Invocation => Self::Invocation,
            FaultClass::Stopped => Self::Stopped,
            FaultClass::NothingEvaluated => Self::NothingEvaluated,
        }
    }

    /// The exit code of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let faults = run.all_faults().map(|fault| Self::of_class(fault.class));
        let decided = match (run.execution, run.decision) {
            (_, Decision::Fail) => Self::Violated,
            (Execution::Complete, Decision::Pass) => Self::Passed,
            // Stopped runs have faults that say more; a row that nothing decided is no pass.
            (Execution::Stopped, Decision::Pass | Decision::NotEvaluated) => Self::NothingEvaluated,
            (Execution::Complete, Decision::NotEvaluated) => Self::Stopped,
        };
        faults.chain([decided]).max().unwrap_or(Self::Internal)
    }
}

impl std::process::Termination for ExitCode {
    fn report(self) -> std::process::ExitCode {
        self.number().into()
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode::{self, *};

    #[test]
    fn the_worst_wins_in_the_promised_order() {
        let order = [Internal, Drift, Invocation, Stopped, NothingEvaluated, Violated, Passed];
        assert_eq!(order.map(ExitCode::number), [70, 5, 2, 3, 4, 1, 0]);
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
