//! What a rule, a fault of the zoo or the code of a diagnostic means. The pages of rules and faults are the doc comments of
//! their source files.

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;

use crate::kernels::faults::{EXACT, FAULTS, Model};
use crate::kernels::mutations::MUTATIONS;
use crate::matrix::RowKind;
use crate::rules::{KINDS, Kind};

const CODES: &str = include_str!("codes.md");

/// What is reported beside the verdict, and the one violation that is no rule's: name and meaning.
const REPORTS: [(&str, &str); 5] = [
    (
        "reproduces-fault",
        "On how many forced rows the subject drops the forced token or masks the row. A stock that never does has \
         reproduced nothing. With `deny=#true` a count of 0 is a violation.",
    ),
    ("mask-equality", "On how many rows the subject keeps exactly the oracle's set."),
    (
        "minimality",
        "On how many rows the subject keeps no token too many: dropping its lowest-ranked kept token takes the mass below \
         p.",
    ),
    (
        "upstream-envelope",
        "The envelope of the engine's own test, case by case over ordinary and forced rows: the largest difference in kept \
         counts against the case's largest reference count. It hides which tokens are kept, and lets a large row excuse a \
         small one.",
    ),
    (
        "expected-outcome",
        "A probe must show exactly the violations that its matrix declares. One that does not happen is a violation too: \
         the kernel changed, and the matrix must say so. Correct the kernel, or declare the new outcome and review it.",
    ),
];

/// What a row is judged as: the kind of its case, except for disabled rows.
const ROW_KINDS: [(RowKind, &str); 4] = [
    (
        RowKind::Forced,
        "One token's logit is set far above the rest, so that the nucleus is that token alone. A kernel that loses it masks the \
         row whole.",
    ),
    (RowKind::Ordinary, "The whole contract is asked of it, row by row; nothing is averaged."),
    (
        RowKind::Probe,
        "It must show what the matrix declares of it with `expect`: that it is accepted, that it violates certain rules, or that \
         the oracle rejects its input. It is judged by the ordinary rules.",
    ),
    (
        RowKind::Disabled,
        "Its p is 1 or more, which switches top-p off: the kernel must return it untouched. The matrix lists such rows with \
         `disabled`.",
    ),
];

/// A line of the table of codes.
struct Code<'t> {
    code: &'t str,
    meaning: &'t str,
    next: &'t str,
}

fn codes() -> impl Iterator<Item = Code<'static>> {
    CODES.lines().skip(2).filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let code = cells.next()?.trim_matches('`');
        Some(Code { code, meaning: cells.next()?, next: cells.next()? })
    })
}

/// What to do next about a diagnostic of this code.
#[must_use]
pub fn next_step(code: &str) -> Option<&'static str> {
    codes().find(|known| known.code == code).map(|known| known.next)
}

/// The page of a rule, a report, a kind of row, a fault, a mutation or a code, in Markdown. In a report, rules carry the
/// prefix `rule::` and the oracle's rejections `oracle::`.
#[must_use]
pub fn page(topic: &str) -> Option<String> {
    let topic = topic.strip_prefix("rule::").unwrap_or(topic);
    if let Some((name, meaning)) = REPORTS.iter().find(|(name, _)| *name == topic) {
        return Some(format!("# {name}\n\n{meaning}\n"));
    }
    if let Some((kind, meaning)) = ROW_KINDS.iter().find(|(kind, _)| kind.name() == topic) {
        return Some(format!("# {}\n\n{meaning}\n", kind.name()));
    }
    if let Some(kind) = Kind::find(topic) {
        return Some(kind.page());
    }
    let models = FAULTS.iter().chain([&EXACT]).chain(MUTATIONS);
    if let Some(model) = models.into_iter().find(|model| model.name == topic) {
        return Some(model_page(model));
    }
    let code = topic.strip_prefix("oracle::").unwrap_or(topic);
    let Code { code, meaning, next } = codes().find(|known| known.code == code)?;
    Some(format!("# {code}\n\n{meaning}\n\n## What to do next\n{next}\n"))
}

fn model_page(model: &Model) -> String {
    let page = model.page();
    if page.starts_with("# ") { page } else { format!("# {}\n\n{page}", model.name) }
}

/// Everything that has a page: rules, reports, kinds of rows, faults, mutations, codes.
#[must_use]
pub fn topics() -> Vec<String> {
    let rules = KINDS.iter().map(|kind| kind.name);
    let models = FAULTS.iter().chain([&EXACT]).chain(MUTATIONS).map(|model| model.name);
    rules
        .chain(REPORTS.map(|(name, _)| name))
        .chain(ROW_KINDS.map(|(kind, _)| kind.name()))
        .chain(models)
        .chain(codes().map(|code| code.code))
        .map(str::to_owned)
        .collect()
}

/// The nearest topic, as a help text.
#[must_use]
pub fn suggestion(topic: &str) -> Option<String> {
    let topics = topics();
    let nearest = topics.iter().min_by_key(|known| strsim::damerau_levenshtein(topic, known))?;
    let distance = strsim::damerau_levenshtein(topic, nearest);
    (distance <= 1 + nearest.len() / 4).then(|| format!("did you mean `{nearest}`?"))
}

/// The handbook: every rule, every fault and every code, in Markdown. `policies/RULES.md` is this text.
#[must_use]
pub fn handbook() -> String {
    let mut out = "<!-- Generated by `nucleus-gate explain --all`. Edit the doc comments of the rules instead. -->\n\n\
                   # The rules, the fault zoo and the codes\n\n\
                   [Rules](#rules) judge one row of one subject. [Faults](#the-fault-zoo) are model kernels that a policy\n\
                   must catch; [mutations](#mutations) are right answers with one change. [Codes](#codes) name diagnostics.\n"
        .to_owned();
    out += "\n## Rows\n\n| kind | meaning |\n| --- | --- |\n";
    ROW_KINDS.iter().for_each(|(kind, meaning)| out += &format!("| {} | {meaning} |\n", kind.name()));
    out += "\n## Rules\n\n| rule | row kinds |\n| --- | --- |\n";
    for kind in KINDS {
        let rows: Vec<&str> = kind.rows.iter().map(|row| row.name()).collect();
        out += &format!("| [{0}](#{0}) | {1} |\n", kind.name, rows.join(", "));
    }
    out += "\nProbe rows are judged by the ordinary rules.\n";
    KINDS.iter().for_each(|kind| out += &deeper(&kind.page()));
    out += "\n## Reports\n\n| name | meaning |\n| --- | --- |\n";
    REPORTS.iter().for_each(|(name, meaning)| out += &format!("| {name} | {meaning} |\n"));
    out += "\n## The fault zoo\n";
    FAULTS.iter().chain([&EXACT]).for_each(|model| out += &deeper(&model_page(model)));
    out += "\n## Mutations\n\n| mutation | what is changed |\n| --- | --- |\n";
    MUTATIONS.iter().for_each(|model| out += &format!("| {} | {} |\n", model.name, model.summary()));
    out + "\n## Codes\n\n" + CODES
}

/// A page two levels down.
fn deeper(page: &str) -> String {
    let lines =
        page.lines().map(|line| if line.starts_with('#') { format!("##{line}\n") } else { format!("{line}\n") });
    format!("\n{}", lines.collect::<String>())
}
