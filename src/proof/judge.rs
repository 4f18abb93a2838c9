//! One case: every model's output on it, judged row by row.

use std::collections::BTreeMap;

use super::outcome::{Company, Expected, ModelOutcome};
use crate::evidence::RowEvidence;
use crate::gate;
use crate::inputs::Inputs;
use crate::kernels::faults::{Batch, EXACT, Model, Output};
use crate::matrix::{Case, RowKind};
use crate::policy::Policy;
use crate::rules::{Check, OracleRow, Row, SubjectRow, Verdict, Where};
use crate::syntax::Spanned;

/// A model with every place in which it runs: its outputs are the same in all of them.
pub(super) struct Placed {
    pub model: Model,
    pub places: Vec<Place>,
}

/// The place of one subject.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub expected: Expected,
    pub subject: usize,
    pub company: Company,
}

impl Placed {
    /// The outcomes before any case, one a place.
    pub fn outcomes(&self) -> impl Iterator<Item = ModelOutcome> + '_ {
        let outcome = |place: &Place| ModelOutcome::new(self.model, place.expected, place.subject, place.company);
        self.places.iter().map(outcome)
    }
}

/// What a model met in one place on one case.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The rows on which each rule was violated, by rule id (`dispatch` for the demanded path).
    pub violated: BTreeMap<String, Vec<u32>>,
    /// Why a rule was left undecided, the first time.
    pub open: Option<String>,
    /// The rows that were judged.
    pub rows: usize,
}

/// A case with what all models on it share.
pub(super) struct Scene<'a> {
    policy: &'a Policy,
    case: &'a Case,
    batch: Batch<'a>,
    oracle: Vec<Option<OracleRow>>,
    exact: Vec<RowEvidence>,
    further: bool,
}

/// Cases of up to so many logits get further calls. What a kernel does with its neighbours shows on small cases, and large
/// ones would take five times as long.
const FURTHER_LOGITS: usize = 1 << 19;

/// Whether the policy demands further calls of every case.
fn demands_further(policy: &Policy) -> bool {
    policy.rules().any(|rule| match &rule.check {
        Check::Repeatable(rule) => rule.recorded == Where::Everywhere,
        Check::RowIndependent(rule) => rule.recorded == Where::Everywhere,
        _ => false,
    })
}

impl<'a> Scene<'a> {
    pub fn new(policy: &'a Policy, case: &'a Case, inputs: &'a Inputs) -> Self {
        let batch = Batch::new(inputs.logits(), inputs.vocab(), inputs.p());
        let mut oracle: Vec<Option<OracleRow>> = (0..batch.len()).map(|_| None).collect();
        for row in batch.live() {
            if let (Some(slot), Some(nucleus)) = (oracle.get_mut(row.index), row.nucleus()) {
                *slot = Some(OracleRow::new(*nucleus, row.logits));
            }
        }
        let further = inputs.logits().len() <= FURTHER_LOGITS || demands_further(policy);
        let mut scene = Self { policy, case, batch, oracle, exact: Vec::new(), further };
        scene.exact = scene.evidence(EXACT).0;
        scene
    }

    /// A model's evidence of the case, and the name of the other path that it took, if it took one.
    fn evidence(&self, model: Model) -> (Vec<RowEvidence>, Option<&'static str>) {
        let (batch, vocab) = (&self.batch, self.batch.vocab());
        let first = (model.run)(batch, 0);
        let own = |row: usize| RowEvidence::from_output(batch.row(row), slice(&first, row, vocab));
        let mut evidence: Vec<RowEvidence> = (0..batch.len()).map(own).collect();
        let path = if self.further { self.further_calls(model, &first, &mut evidence) } else { None };
        (evidence, first.path.or(path))
    }

    /// Calls the model again, on each row alone, and on the case twice over; returns the other path of the largest call.
    fn further_calls(&self, model: Model, first: &Output, evidence: &mut [RowEvidence]) -> Option<&'static str> {
        let (batch, rows, vocab) = (&self.batch, self.batch.len(), self.batch.vocab());
        let again = (model.run)(batch, 1);
        let twice = (model.run)(&batch.select((0..rows).chain(0..rows)), 0);
        for (row, evidence) in evidence.iter_mut().enumerate() {
            let alone = (model.run)(&batch.select([row]), 0);
            let own = slice(first, row, vocab);
            let company = [slice(&twice, row, vocab), slice(&twice, rows + row, vocab), slice(&alone, 0, vocab)];
            evidence.repeat_differs = Some(differing(own, slice(&again, row, vocab)));
            evidence.company_differs = company.into_iter().map(|other| differing(own, other)).max();
        }
        twice.path
    }

    /// Judges a model on this case, in each of its places.
    pub fn judge(&self, placed: &Placed) -> Vec<Tally> {
        let (evidence, other) = self.evidence(placed.model);
        placed.places.iter().map(|place| self.judge_in(*place, &evidence, other)).collect()
    }

    fn judge_in(&self, place: Place, evidence: &[RowEvidence], other: Option<&'static str>) -> Tally {
        let demanded = self.policy.evidence.dispatch.as_ref();
        let own = demanded.map_or("model", |path| path.value.as_str());
        let mut tally = Tally::default();
        if let (Some(_), Some(_)) = (demanded, other) {
            tally.violated.insert("dispatch".to_owned(), (0..self.batch.len() as u32).collect());
        }
        for (index, (faulty, exact)) in evidence.iter().zip(&self.exact).enumerate() {
            let subject = |(number, name): (usize, &'a Spanned<String>)| {
                let runs_model = number == place.subject || place.company == Company::Same;
                let (output, dispatch) = if runs_model { (faulty, other.unwrap_or(own)) } else { (exact, own) };
                SubjectRow { name: &name.value, output, dispatch }
            };
            let subjects: Vec<SubjectRow<'_>> = self.policy.evidence.subjects.iter().enumerate().map(subject).collect();
            self.row(index, &subjects, &mut tally);
        }
        tally
    }

    fn row(&self, index: usize, subjects: &[SubjectRow<'_>], tally: &mut Tally) {
        let row = index as u32;
        let kind = self.case.row_kind(row);
        let oracle = self.oracle.get(index).and_then(Option::as_ref);
        // A row that the oracle rejects has no right answer; that it is declared is the matrix's affair.
        if oracle.is_none() && kind != RowKind::Disabled {
            return;
        }
        tally.rows += 1;
        let view = Row {
            kind,
            logits: self.batch.row(index),
            oracle,
            forced: self.case.force_of(row).map(|force| force.token.value),
            subjects,
        };
        for (spec, verdict) in gate::verdicts(self.policy, &view) {
            match verdict {
                Verdict::Passed | Verdict::NotApplicable(_) => {}
                Verdict::Violated(_) => tally.violated.entry(spec.id.value.clone()).or_default().push(row),
                Verdict::NotEvaluated(why) => {
                    tally.open.get_or_insert_with(|| format!("{}: {why}", spec.id.value));
                }
            }
        }
    }
}

fn slice(output: &Output, row: usize, vocab: usize) -> &[f32] {
    output.logits.get(row * vocab..(row + 1) * vocab).unwrap_or_default()
}

fn differing(one: &[f32], other: &[f32]) -> u32 {
    if one.len() != other.len() {
        return one.len() as u32;
    }
    one.iter().zip(other).filter(|(a, b)| a.to_bits() != b.to_bits()).count() as u32
}
