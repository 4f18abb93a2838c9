//! Every way that a run can be broken, a folder each: `tests/scenarios/` holds them, `tests/README.md` their table.

mod bytes;
mod project;
mod scenario;
mod signals;
mod steps;
mod timeout;
mod verify;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use project::Project;
use scenario::{Ran, Scenario};

fn everything(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// What the last command of a scenario shows, without what differs from run to run.
fn screen(ran: &[Ran]) -> String {
    let mut text = String::new();
    for Ran { line, exit, .. } in ran {
        let exit = exit.map_or_else(|| "no exit code".to_owned(), |exit| format!("exit code {exit}"));
        let _ = writeln!(text, "$ nucleus-gate {}  # {exit}", nucleus_gate::text::sanitize(line));
    }
    text.push('\n');
    // From the line that counts time on to the next.
    let mut timing = false;
    for line in ran.last().map_or("", |last| &last.said).lines() {
        timing = (timing || line.contains(" rows decided;")) && !line.contains("nuclei of exact reals");
        if !timing {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// What is wrong with how a scenario ended.
fn wrong(scenario: &Scenario, ran: &[Ran]) -> Vec<String> {
    let mut wrong = Vec::new();
    for command in ran {
        if command.exit != Some(command.expected) {
            wrong.push(format!("`{}` ended with {:?}, not {}", command.line, command.exit, command.expected));
        }
        if command.said.contains(['\u{1b}', '\u{202e}']) {
            wrong.push("what steers a terminal reached the output".to_owned());
        }
    }
    if !ran.last().is_some_and(|last| last.said.contains(&scenario.code)) {
        wrong.push(format!("`{}` is not said", scenario.code));
    }
    wrong.into_iter().map(|wrong| format!("{}: {wrong}", scenario.name)).collect()
}

#[test]
fn every_scenario_ends_as_it_says() {
    let scenarios = scenario::all();
    let mut failures = Vec::new();
    for scenario in &scenarios {
        let ran = scenario.play(&mut Project::new());
        let wrong = wrong(scenario, &ran);
        if !wrong.is_empty() {
            failures.push(format!("{}\n{}", wrong.join("\n"), screen(&ran)));
        } else if scenario.steady {
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(scenario::folder().join(&scenario.name));
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!("screen", screen(&ran)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_readme_lists_every_scenario() {
    let mut table = "| scenario | breaks | gives | exit |\n| --- | --- | --- | --- |\n".to_owned();
    for Scenario { name, title, code, exit, .. } in scenario::all() {
        let _ = writeln!(table, "| [{name}](scenarios/{name}/scenario.kdl) | {title} | `{code}` | {exit} |");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, listed) = readme.split_once("## Scenarios").unwrap();
    let start = listed.find("| scenario |").unwrap_or(listed.len());
    let current = format!("{before}## Scenarios{}{table}", &listed[..start]);
    // As the snapshots are.
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(path, current).unwrap();
    } else {
        assert!(readme == current, "run: INSTA_UPDATE=always cargo test --test probes; the table should be\n{table}");
    }
}

#[test]
fn what_is_broken_passes_when_it_is_whole() {
    let project = Project::new();
    let output = project.check();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    assert_eq!(project.verify().status.code(), Some(0));
}
