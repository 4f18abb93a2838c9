//! Changes one byte at a time of everything that a verdict rests on, and counts how `check` and `verify` end: none may
//! end with 0.
//!
//! ```sh
//! cargo run --release --example byte_changes -- 100000         # changes; a seed may follow
//! ```
//!
//! Each change is of a random byte of a random file, to another random value, in a copy of the project. Policy, matrix,
//! lock and receipt are given to the program itself, whole. A changed input or evidence file is given to the gate with the
//! one case that it belongs to (the gate looks at every bundle first, whatever the case), because a whole run takes most
//! of a second; one change in 100 of these is given to `check` as well, and one in 100 of all to `verify`, with the receipt
//! of the files as they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use nucleus_gate::gate::{self, Context, ExitCode as Gate, Selection};
use nucleus_gate::matrix::{Matrix, Origin};
use nucleus_gate::policy::Policy;
use nucleus_gate::root::ProjectRoot;
use nucleus_gate::syntax::Source;
use rand_core::{RngCore as _, SeedableRng as _};
use rand_pcg::Pcg64;

const POLICY: &str = "policies/split-top-p.kdl";
const MATRIX: &str = "matrices/vllm-large-logit-fix.kdl";
const LOCK: &str = "policies/nucleus-gate.lock";
const RECEIPT: &str = "nucleus-gate-receipt.json";
const SUBJECTS: [&str; 2] = ["matrices/recorded/vllm-h200/stock", "matrices/recorded/vllm-h200/patch"];

/// What is done with a changed file.
#[derive(Clone)]
enum Judge {
    /// `check`, by the program.
    Check,
    /// `verify`, by the program.
    Verify,
    /// The gate, with this case alone.
    Case(String),
}

/// A copy of the project that one worker changes.
struct Copy {
    folder: tempfile::TempDir,
    policy: Policy,
    matrix: Matrix,
    root: ProjectRoot,
}

impl Copy {
    fn new(receipt: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in [POLICY, MATRIX, LOCK] {
            copy(&checkout.join(file), &folder.path().join(file));
        }
        for part in SUBJECTS.into_iter().chain(["matrices/recorded/vllm-h200/inputs"]) {
            for entry in fs::read_dir(checkout.join(part)).expect("the shipped evidence") {
                let name = Path::new(part).join(entry.expect("an entry").file_name());
                copy(&checkout.join(&name), &folder.path().join(name));
            }
        }
        fs::write(folder.path().join(RECEIPT), receipt).expect("the receipt is written");
        let read = |file: &str| Source::new(file, fs::read_to_string(folder.path().join(file)).expect("a text file"));
        let policy = Policy::read(read(POLICY)).expect("the shipped policy");
        let matrix = Matrix::read(read(MATRIX)).expect("the shipped matrix");
        let root = ProjectRoot::at(folder.path()).expect("the copy");
        Self { folder, policy, matrix, root }
    }

    fn run(&self, arguments: &[&str]) -> i32 {
        let output = Command::new(program()).args(arguments).current_dir(self.folder.path()).output();
        output.ok().and_then(|output| output.status.code()).unwrap_or(-1)
    }

    fn judge(&self, judge: &Judge) -> i32 {
        match judge {
            Judge::Check => self.run(&["check", "--receipt", "other.json", "--replace"]),
            Judge::Verify => self.run(&["verify", RECEIPT]),
            Judge::Case(case) => {
                let selection = Some(Selection { case: case.clone(), row: None });
                let context = Context { root: &self.root, started: Instant::now(), selection };
                let mut run = gate::run(&self.policy, &self.matrix, &context);
                // That a selection has no verdict is not what is looked for here.
                run.faults.retain(|fault| fault.code != "gate::selection");
                if run.all_faults().next().is_none() { 0 } else { i32::from(Gate::of(&run).number()) }
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("the folder is made");
    fs::copy(from, to).expect("the file is copied");
}

/// The program, built beside this example.
fn program() -> PathBuf {
    let here = std::env::current_exe().expect("this program");
    here.parent().and_then(Path::parent).expect("the build folder").join("nucleus-gate")
}

/// Every file that may change, with what judges it, by kind: a kind is as likely as any other.
fn targets(matrix: &Matrix) -> Vec<(&'static str, Vec<(String, Judge)>)> {
    let whole = |file: &str, judge| vec![(file.to_owned(), judge)];
    let cases = || matrix.cases.iter();
    let inputs = cases().filter_map(|case| match &case.origin {
        Origin::File { path, .. } => Some((path.value.clone(), Judge::Case(case.name.value.clone()))),
        Origin::Generated { .. } => None,
    });
    let evidence = SUBJECTS.into_iter().flat_map(|folder| {
        let small = Judge::Case("dyadic-exact".to_owned());
        let files = cases()
            .map(move |case| (format!("{folder}/{}.safetensors", *case.name), Judge::Case(case.name.value.clone())));
        files.chain([(format!("{folder}/subject.json"), small)])
    });
    vec![
        ("policy", whole(POLICY, Judge::Check)),
        ("matrix", whole(MATRIX, Judge::Check)),
        ("lock", whole(LOCK, Judge::Check)),
        ("receipt", whole(RECEIPT, Judge::Verify)),
        ("inputs", inputs.collect()),
        ("evidence", evidence.collect()),
    ]
}

/// What judges one change in 100 of an input or evidence file as well.
fn whole(kind: &str) -> [(String, Judge); 2] {
    [(format!("{kind}, whole"), Judge::Check), (format!("{kind}, verified"), Judge::Verify)]
}

/// One worker's share: exit codes by kind, and every change that ended with 0.
fn work(copy: &Copy, changes: u64, seed: u64) -> (BTreeMap<(String, i32), u64>, Vec<String>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let targets = targets(&copy.matrix);
    let (mut counts, mut passed) = (BTreeMap::new(), Vec::new());
    for _ in 0..changes {
        let (kind, files) = &targets[below(targets.len())];
        let (file, judge) = &files[below(files.len())];
        let path = copy.folder.path().join(file);
        let good = fs::read(&path).expect("the file");
        let mut bad = good.clone();
        let at = below(bad.len());
        bad[at] ^= 1 + below(255) as u8;
        fs::write(&path, &bad).expect("the change");
        let mut judges = vec![(kind.to_string(), judge.clone())];
        if below(100) == 0 {
            match judge {
                Judge::Case(_) => judges.extend(whole(kind)),
                Judge::Check => judges.push((format!("{kind}, verified"), Judge::Verify)),
                Judge::Verify => {}
            }
        }
        for (kind, judge) in judges {
            let code = copy.judge(&judge);
            *counts.entry((kind, code)).or_default() += 1;
            if code <= 0 || code == i32::from(Gate::Internal.number()) {
                passed.push(format!("{file}, byte {at}: {:#04x} to {:#04x} ends with {code}", good[at], bad[at]));
            }
        }
        fs::write(&path, good).expect("the file as it was");
    }
    (counts, passed)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (changes, seed) = (arguments.next().unwrap_or(1000), arguments.next().unwrap_or(1));
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let first = Copy::new(b"");
    fs::remove_file(first.folder.path().join(RECEIPT)).expect("no receipt yet");
    assert_eq!(first.run(&["check"]), 0, "what is whole passes");
    assert_eq!(first.run(&["verify", RECEIPT]), 0, "what is whole verifies");
    let receipt = fs::read(first.folder.path().join(RECEIPT)).expect("the receipt");
    let copies: Vec<Copy> = (0..workers).map(|_| Copy::new(&receipt)).collect();
    for case in &first.matrix.cases {
        assert_eq!(first.judge(&Judge::Case(case.name.value.clone())), 0, "{} is whole", *case.name);
    }
    let share = |worker: u64| changes / workers + u64::from(worker < changes % workers);
    let results: Vec<_> = std::thread::scope(|scope| {
        let start = |(copy, worker): (_, u64)| {
            scope.spawn(move || work(copy, share(worker), seed.wrapping_mul(1000).wrapping_add(worker)))
        };
        let workers: Vec<_> = copies.iter().zip(0..).map(start).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).collect()
    });
    let (mut counts, mut passed) = (BTreeMap::new(), Vec::new());
    for (share, bad) in results {
        share.into_iter().for_each(|(key, count)| *counts.entry(key).or_insert(0) += count);
        passed.extend(bad);
    }
    println!("{changes} changes, seed {seed}");
    for ((kind, code), count) in &counts {
        println!("{kind:<16} exit {code:>3}  {count:>8}");
    }
    passed.iter().for_each(|change| println!("NOT REFUSED  {change}"));
    if passed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
