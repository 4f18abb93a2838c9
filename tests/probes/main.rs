//! Every way that a run can be broken, as a table: `tests/README.md` says what each gives, and this runs each.

mod project;
mod scenarios;
mod signals;
mod verify;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

/// Probe, code and exit code of every row of the table in `tests/README.md`.
fn table() -> Vec<(String, String, i32)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let cells = |line: &str| -> Option<(String, String, i32)> {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let (probe, code, exit) = (cells.next()?, cells.next()?, cells.next()?);
        // Tables of other things have more columns.
        let row = (probe.to_owned(), code.trim_matches('`').to_owned(), exit.parse().ok()?);
        cells.next().is_none().then_some(row)
    };
    let (_, probes) = text.split_once("## Probes").unwrap();
    probes.lines().filter_map(cells).collect()
}

fn everything(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn every_probe_gives_what_the_table_says() {
    let scenarios: BTreeMap<&str, scenarios::Scenario> = scenarios::ALL.into_iter().collect();
    assert_eq!(scenarios.len(), scenarios::ALL.len(), "a probe has one scenario");
    let table = table();
    let mut wrong = Vec::new();
    for (probe, code, exit) in &table {
        let Some(scenario) = scenarios.get(probe.as_str()) else {
            wrong.push(format!("{probe}: no scenario"));
            continue;
        };
        let output = scenario(&mut project::Project::new());
        let said = everything(&output);
        if output.status.code() != Some(*exit) || !said.contains(code) {
            wrong.push(format!("{probe}: expected {code}, exit {exit}; got exit {:?}\n{said}", output.status.code()));
        }
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{probe}: what steers a terminal reached the output");
    }
    let missing = scenarios.keys().filter(|probe| !table.iter().any(|(name, _, _)| name == *probe));
    wrong.extend(missing.map(|probe| format!("{probe}: not in the table")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn what_is_broken_passes_when_it_is_whole() {
    let project = project::Project::new();
    let output = project.check();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    assert_eq!(project.verify().status.code(), Some(0));
}
