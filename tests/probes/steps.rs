//! The steps of a scenario: how a project is broken, and what is run on it. `tests/scenarios/README.md` lists them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use kdl::KdlNode;
use nucleus_gate::inputs::Inputs;

use crate::everything;
use crate::project::{MATRIX, Project};
use crate::scenario::Ran;

pub fn children(node: &KdlNode) -> &[KdlNode] {
    node.children().map_or(&[], |children| children.nodes())
}

/// The `index`th argument, a string.
pub fn text(node: &KdlNode, index: usize) -> String {
    let value = node.get(index).and_then(|value| value.as_string());
    value.unwrap_or_else(|| panic!("{node}: a string at {index}")).to_owned()
}

fn texts(node: &KdlNode) -> Vec<String> {
    let arguments = node.entries().iter().filter(|entry| entry.name().is_none());
    arguments.filter_map(|entry| entry.value().as_string()).map(str::to_owned).collect()
}

fn numbers(node: &KdlNode) -> Vec<f64> {
    let arguments = node.entries().iter().filter(|entry| entry.name().is_none()).map(|entry| entry.value());
    arguments.filter_map(|value| value.as_float().or_else(|| Some(value.as_integer()? as f64))).collect()
}

fn integer(node: &KdlNode, name: &str) -> Option<i64> {
    node.get(name).and_then(|value| value.as_integer()).map(|value| i64::try_from(value).unwrap())
}

fn property(node: &KdlNode, name: &str) -> String {
    node.get(name).and_then(|value| value.as_string()).unwrap_or_else(|| panic!("{node}: {name}=")).to_owned()
}

/// An offset, counted from the end where it is negative.
fn offset(at: i64, length: usize) -> usize {
    let length = i64::try_from(length).unwrap();
    usize::try_from(if at < 0 { length + at } else { at }).unwrap()
}

/// Whether the step runs the program.
pub fn is_command(step: &KdlNode) -> bool {
    ["check", "verify", "run"].contains(&step.name().value())
}

/// The exit code that the command must end with.
pub fn exit(step: &KdlNode) -> i32 {
    integer(step, "exit").unwrap_or(0).try_into().unwrap()
}

/// Runs the program as the step says.
pub fn command(project: &Project, step: &KdlNode) -> Ran {
    let (mut arguments, named) = (Vec::new(), texts(step));
    match step.name().value() {
        "check" => arguments.extend(["check", "--matrix", MATRIX]),
        "verify" => arguments.extend(["verify", "nucleus-gate-receipt.json"]),
        _ => {}
    }
    arguments.extend(named.iter().map(String::as_str));
    let output = match step.name().value() {
        "run" => project.run(&arguments),
        _ => project.run_as_it_is(&arguments),
    };
    let said = everything(&output).replace(project.path("").display().to_string().trim_end_matches('/'), "{root}");
    Ran { line: arguments.join(" "), said, exit: output.status.code(), expected: exit(step) }
}

/// Breaks the project as the step says.
pub fn apply(project: &mut Project, step: &KdlNode) {
    match step.name().value() {
        "pin" => project.pin(),
        "record" => project.record(),
        "case" => case(project, step),
        "cases" => project.retain(&texts(step)),
        "output" => children(step).iter().for_each(|change| output(project, step, change)),
        "slow-case" => project.add_slow_case(text(step, 0)),
        _ => file(project, step),
    }
}

/// A step on a file or folder of the project.
fn file(project: &Project, step: &KdlNode) {
    let path = project.path(&text(step, 0));
    let change = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    };
    match step.name().value() {
        "remove" if path.is_dir() => fs::remove_dir_all(path).unwrap(),
        "remove" => fs::remove_file(path).unwrap(),
        "copy" => drop(fs::copy(project.path(&property(step, "from")), path).unwrap()),
        "write" => fs::write(path, text(step, 1)).unwrap(),
        "link" => {
            let moved = project.path(&property(step, "to"));
            fs::rename(&path, &moved).unwrap();
            symlink(moved, path).unwrap();
        }
        "pipe" => {
            fs::remove_file(&path).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        "truncate" => {
            change(&|bytes| bytes.truncate(offset(integer(step, "bytes").unwrap(), bytes.len())));
        }
        "set" => change(&|bytes| {
            let at = offset(integer(step, "at").unwrap(), bytes.len());
            for (index, value) in numbers(step).into_iter().enumerate() {
                bytes[at + index] = value as u8;
            }
        }),
        "flip" => change(&|bytes| {
            let at = offset(integer(step, "at").unwrap(), bytes.len());
            bytes[at] ^= 1;
        }),
        "replace" => project.edit(&text(step, 0), &text(step, 1), &text(step, 2)),
        "overwrite" => change(&|bytes| overwrite(bytes, text(step, 1).as_bytes(), text(step, 2).as_bytes())),
        other => panic!("there is no step `{other}`; tests/scenarios/README.md lists them: {step}"),
    }
}

/// Replaces every `from` by `to`, which is as long: offsets in the file stay as they are.
fn overwrite(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let found = |bytes: &[u8]| bytes.windows(from.len()).position(|window| window == from);
    let mut at = found(bytes).expect("there is one at least");
    loop {
        bytes[at..at + to.len()].copy_from_slice(to);
        match found(&bytes[at + to.len()..]) {
            Some(next) => at += to.len() + next,
            None => return,
        }
    }
}

/// Adds a case with one row of logits and an input file, on which both kernels are perfect.
fn case(project: &mut Project, step: &KdlNode) {
    let (mut logits, mut p, mut expect) = (Vec::new(), Vec::new(), String::new());
    for line in children(step) {
        match line.name().value() {
            "logits" => logits = numbers(line).into_iter().map(|logit| logit as f32).collect(),
            "p" => p = numbers(line).into_iter().map(|p| p as f32).collect(),
            "expect" => expect = line.to_string().trim().to_owned(),
            other => panic!("a case has no `{other}`"),
        }
    }
    let inputs = Inputs::new(logits.len(), logits, p).unwrap();
    project.add_file(&text(step, 0), &property(step, "kind"), &expect, inputs);
}

/// Changes the first row of a subject's output on a case.
fn output(project: &mut Project, step: &KdlNode, change: &KdlNode) {
    let (subject, name) = (text(step, 0), text(step, 1));
    let case = project.case(&name);
    let vocab = case.inputs.vocab();
    let logits = case.inputs.row(0).unwrap().to_vec();
    let row = &mut case.outputs[usize::from(subject == "patch")][..vocab];
    let mut order: Vec<usize> = (0..vocab).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    let kept = row.iter().filter(|logit| **logit != f32::NEG_INFINITY).count();
    let count = || numbers(change).first().map_or(1, |count| *count as usize);
    match change.name().value() {
        "make-nan" => row[order[0]] = f32::NAN,
        "alter" => row[order[0]] *= 1.5,
        "mask-all" => row.fill(f32::NEG_INFINITY),
        "mask-last" => order[kept - count()..kept].iter().for_each(|&token| row[token] = f32::NEG_INFINITY),
        "swap-boundary" => {
            (row[order[kept - 1]], row[order[kept]]) = (f32::NEG_INFINITY, logits[order[kept]]);
        }
        "mask-rank" => row[order[count()]] = f32::NEG_INFINITY,
        "keep-next" => order[kept..kept + count()].iter().for_each(|&token| row[token] = logits[token]),
        "keep-rank" => row[order[count()]] = logits[order[count()]],
        other => panic!("an output has no `{other}`"),
    }
}
