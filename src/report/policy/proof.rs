//! The proof of a policy as two tables: faults by the rules that caught them, rules by the models that tripped them.

use crate::policy::Policy;
use crate::proof::{Catch, Expected, ModelOutcome, Proof};
use crate::report::Screen;
use crate::report::boundary::{indent, plain_table};
use crate::text::sanitize;

/// The proof. `matrices` names the matrices that were run, in their order.
#[must_use]
pub fn proof(policy: &Policy, matrices: &[String], proof: &Proof, screen: &Screen) -> String {
    let mut out = format!("policy    {}\n", policy.source.name());
    out += &format!("sha256    {}\n", policy.source.sha256());
    for matrix in matrices {
        out += &format!("matrix    {}\n", sanitize(matrix));
    }
    out += &format!("\nFaults of the zoo, in the place of the patch\n{}", faults(matrices, proof, screen));
    out += &format!("\nRules\n{}", rules(proof, screen));
    out + "\n" + &verdict(proof)
}

fn faults(matrices: &[String], proof: &Proof, screen: &Screen) -> String {
    let mut table = plain_table(screen.width.saturating_sub(2));
    table.set_header(["fault", "caught by (rows)", "first on"]);
    for outcome in proof.outcomes.iter().filter(|outcome| outcome.expected != Expected::Priced) {
        let rules = outcome.by_rule(proof.ids());
        let rules: Vec<String> = rules.iter().map(|(rule, rows)| format!("{rule} {rows}")).collect();
        let caught = match (outcome.expected, rules.is_empty()) {
            (Expected::Clean, true) => format!("none; clean on {} rows", outcome.judged),
            (Expected::Clean, false) => format!("ACCUSED: {}", rules.join(", ")),
            (Expected::Caught | Expected::Priced, true) => "NOT CAUGHT".to_owned(),
            (Expected::Caught | Expected::Priced, false) => rules.join(", "),
        };
        let first = outcome.catches.first().map_or_else(String::new, |catch| first(matrices, catch));
        table.add_row([outcome.model.name.to_owned(), sanitize(&caught).into_owned(), sanitize(&first).into_owned()]);
    }
    indent(&table.to_string())
}

fn first(matrices: &[String], catch: &Catch) -> String {
    let row = catch.rows.first().copied().unwrap_or_default();
    let zoo = matrices.len() > 1 && catch.matrix + 1 == matrices.len();
    let matrix = if zoo { "zoo: " } else { "" };
    format!("{matrix}{} row {row}", catch.case)
}

fn rules(proof: &Proof, screen: &Screen) -> String {
    let mut table = plain_table(screen.width.saturating_sub(2));
    table.set_header(["rule", "tripped by"]);
    for trip in &proof.trips {
        let models = if trip.models.is_empty() { "NOTHING".to_owned() } else { trip.models.join(", ") };
        table.add_row([sanitize(&trip.rule).into_owned(), models]);
    }
    indent(&table.to_string())
}

fn verdict(proof: &Proof) -> String {
    let faults = || proof.outcomes.iter().filter(|outcome| outcome.expected == Expected::Caught);
    let caught = faults().filter(|outcome| !outcome.catches.is_empty()).count();
    let tripped = proof.trips.iter().filter(|trip| !trip.models.is_empty()).count();
    let clean = |outcome: &&ModelOutcome| outcome.expected == Expected::Clean;
    let exact = match proof.wrong().find(clean) {
        None => "the exact kernel is accused of nothing".to_owned(),
        Some(outcome) => match &outcome.open {
            Some((case, why)) if outcome.catches.is_empty() => {
                format!("the exact kernel is left undecided on {}: {}", sanitize(case), sanitize(why))
            }
            Some(_) | None => "the exact kernel is accused".to_owned(),
        },
    };
    let mut out = format!(
        "{caught} of {} faults caught; {tripped} of {} rules tripped; {exact}\n",
        faults().count(),
        proof.trips.len()
    );
    if !proof.holds() {
        out += "not proven: a fault that nothing catches, a rule that nothing trips and an accused exact kernel are errors\n";
    }
    out
}
