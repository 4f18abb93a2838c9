//! A small project that passes, to be broken in one place at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nucleus_gate::digest::Sha256;
use nucleus_gate::evidence::{Bundle, Dispatch, Recording, Subject, encode_case};
use nucleus_gate::inputs::{self, Distribution, Force, Inputs, Recipe, Rounding};
use nucleus_gate::oracle;
use nucleus_gate::policy::LOCK_PATH;

pub const MATRIX: &str = "matrices/m.kdl";
pub const POLICY: &str = "policies/split-top-p.kdl";
const DISPATCH: &str = r#"{"path":"cuda-split","kernels":["stats","mask"],"grid":[4],"splits":2}"#;

/// A case of the project: its lines in the matrix and what both kernels did with it.
pub struct Case {
    pub name: String,
    /// `ordinary`, `forced` or `probe`.
    kind: String,
    /// The lines between `case` and `input`.
    lines: String,
    /// The lines after it.
    expect: String,
    pub inputs: Inputs,
    /// The outputs of stock and patch.
    pub outputs: [Vec<f32>; 2],
}

/// The project on disk.
pub struct Project {
    folder: tempfile::TempDir,
    cases: Vec<Case>,
}

/// What the oracle keeps, and nothing else.
fn perfect(inputs: &Inputs) -> Vec<f32> {
    let rows = (0..inputs.batch()).flat_map(|row| {
        let (logits, p) = (inputs.row(row).unwrap(), inputs.p()[row]);
        let nucleus = oracle::nucleus(logits, p);
        let kept = move |token: usize, logit: f32| {
            nucleus.is_ok_and(|nucleus| oracle::RankKey::new(logit, token as u32) <= nucleus.boundary)
        };
        let mask = move |(token, &logit): (usize, &f32)| if kept(token, logit) { logit } else { f32::NEG_INFINITY };
        logits.iter().enumerate().map(mask)
    });
    rows.collect()
}

/// A generated case on which both kernels are perfect.
fn generated(name: &str, seed: u64, p: &[f32]) -> Case {
    let recipe = Recipe { distribution: Distribution::Normal, seed, vocab: 64, sigma: 1.0, round: Rounding::None };
    let inputs = inputs::generate(&recipe, p, &[]).unwrap();
    let p: Vec<String> = p.iter().map(f32::to_string).collect();
    let lines = format!("generated \"normal\" seed={seed} vocab=64 sigma=1.0\n        p {}", p.join(" "));
    let outputs = [perfect(&inputs), perfect(&inputs)];
    Case { name: name.to_owned(), kind: "ordinary".to_owned(), lines, expect: String::new(), inputs, outputs }
}

/// Forced rows, of which stock masks the first one whole.
fn forced() -> Case {
    let recipe = Recipe { distribution: Distribution::Normal, seed: 5, vocab: 64, sigma: 1.0, round: Rounding::None };
    let forces = [(0, 1e9), (1, 1e3)].map(|(row, logit)| Force { row, token: 7 + row, logit });
    let inputs = inputs::generate(&recipe, &[0.9, 0.9], &forces).unwrap();
    let lines = "generated \"normal\" seed=5 vocab=64 sigma=1.0
        p 0.9 times=2
        force row=0 token=7 logit=1e9
        force row=1 token=8 logit=1e3";
    let patch = perfect(&inputs);
    let mut stock = patch.clone();
    stock[..64].fill(f32::NEG_INFINITY);
    let (name, kind, lines) = ("forced".to_owned(), "forced".to_owned(), lines.to_owned());
    Case { name, kind, lines, expect: String::new(), inputs, outputs: [stock, patch] }
}

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut project = Self { folder, cases: vec![generated("plain", 1, &[0.5, 0.9]), forced()] };
        for part in ["policies", "matrices", "inputs", "stock", "patch"] {
            fs::create_dir_all(project.path(part)).unwrap();
        }
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(POLICY), project.path(POLICY)).unwrap();
        project.add_file("filed", "ordinary", "", generated("filed", 2, &[0.7, 0.95]).inputs);
        project.record();
        project
    }

    /// Adds a case with an input file, on which both kernels are perfect.
    pub fn add_file(&mut self, name: &str, kind: &str, expect: &str, inputs: Inputs) {
        let file = format!("inputs/{name}.safetensors");
        fs::write(self.path(&file), inputs::write(&inputs, name)).unwrap();
        let outputs = [perfect(&inputs), perfect(&inputs)];
        let lines = format!("file \"{file}\" sha256=\"FILE\"");
        let (name, kind, expect) = (name.to_owned(), kind.to_owned(), expect.to_owned());
        self.cases.push(Case { name, kind, lines, expect, inputs, outputs });
    }

    /// A path inside the project; `../` leads to a folder that is this test's as well.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join("project").join(file)
    }

    pub fn case(&mut self, name: &str) -> &mut Case {
        self.cases.iter_mut().find(|case| case.name == name).unwrap()
    }

    /// Keeps these cases alone, in this order.
    pub fn retain(&mut self, names: &[String]) {
        let place = |case: &Case| names.iter().position(|name| *name == case.name);
        self.cases.retain(|case| place(case).is_some());
        self.cases.sort_by_key(place);
    }

    /// Adds 32 rows of the largest vocabulary, every token of which both kernels mask.
    pub fn add_slow_case(&mut self, name: String) {
        let recipe =
            Recipe { distribution: Distribution::Normal, seed: 3, vocab: 262_144, sigma: 1.0, round: Rounding::None };
        let inputs = inputs::generate(&recipe, &[0.5; 32], &[]).unwrap();
        let masked = vec![f32::NEG_INFINITY; inputs.logits().len()];
        let lines = "generated \"normal\" seed=3 vocab=262144 sigma=1.0\n        p 0.5 times=32".to_owned();
        let outputs = [masked.clone(), masked];
        self.cases.push(Case { name, kind: "ordinary".to_owned(), lines, expect: String::new(), inputs, outputs });
    }

    /// Records the evidence of every case, and pins everything as it is.
    pub fn record(&self) {
        for (index, name) in ["stock", "patch"].into_iter().enumerate() {
            for case in &self.cases {
                let dispatch = Dispatch::read(DISPATCH).unwrap();
                let (inputs, output) = (&case.inputs, case.outputs[index].as_slice());
                let bytes = encode_case(&Recording {
                    case: &case.name,
                    inputs,
                    output,
                    dispatch: &dispatch,
                    repeat_differs: None,
                });
                fs::write(self.evidence(name, &case.name), bytes.unwrap()).unwrap();
            }
            fs::write(self.path(name).join("subject.json"), self.subject(name)).unwrap();
        }
        self.pin();
    }

    fn subject(&self, name: &str) -> Vec<u8> {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/recorded/vllm-h200");
        let text = fs::read(recorded.join(name).join("subject.json")).unwrap();
        let mut subject = Subject::read(&text).unwrap();
        subject.cases = self.cases.iter().map(|case| case.name.clone()).collect();
        serde_json::to_vec_pretty(&subject).unwrap()
    }

    /// Writes the matrix with the digests of what lies in the folder now.
    pub fn pin(&self) {
        let bundles = ["stock", "patch"].map(|name| {
            // What cannot be opened has no digest: the scenario is about that.
            Bundle::open(&self.path(name), 1 << 30).map_or(Sha256::of(b""), |bundle| bundle.sha256())
        });
        let [stock, patch] = bundles;
        let source = "vllm/v1/sample/ops/topk_topp_triton.py";
        let mut text = format!(
            "matrix \"m\" schema=1 {{
    subject \"stock\" bundle=\"stock\" bundle-sha256=\"{stock}\" {{
        source \"{source}\" sha256=\"d39388245d5d5f54dfdd11ef9285d45b5029054167cfddb6b86961d07d562712\"
    }}
    subject \"patch\" bundle=\"patch\" bundle-sha256=\"{patch}\" \\
        patch-sha256=\"7748c8900eac4f2b340bb491c8da905a62d7b4d11f6aa5eca0d3b63880474160\" {{
        source \"{source}\" sha256=\"f6dd4d80e2012d150a82965711062099704f0a8e1906f50a129f9a280ff6207d\"
    }}
"
        );
        for case in &self.cases {
            let file = fs::read(self.path(&format!("inputs/{}.safetensors", case.name))).unwrap_or_default();
            let lines = case.lines.replace("FILE", &Sha256::of(&file).to_string());
            let (logits, p) = (case.inputs.logits_sha256(), case.inputs.p_sha256());
            text += &format!(
                "    case \"{}\" kind=\"{}\" {{
        {lines}
        input logits-sha256=\"{logits}\" p-sha256=\"{p}\"
        {}
    }}\n",
                case.name, case.kind, case.expect
            );
        }
        fs::write(self.path(MATRIX), text + "}\n").unwrap();
    }

    pub fn evidence(&self, subject: &str, case: &str) -> PathBuf {
        self.path(subject).join(format!("{case}.safetensors"))
    }

    /// Replaces text in a file; it must be there.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        fs::write(self.path(file), text.replacen(from, to, 1)).unwrap();
    }

    /// Every regular file of the project: its path and bytes.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.path("")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => {
                        let name = entry.path().strip_prefix(self.path("")).unwrap().display().to_string();
                        files.push((name, fs::read(entry.path()).unwrap()));
                    }
                    _ => {}
                }
            }
        }
        files.sort();
        files
    }

    /// The program, to be run in the project.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nucleus-gate"));
        command.current_dir(self.path("")).env_remove("COLUMNS");
        command
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.program().args(arguments).output().unwrap()
    }

    /// Runs the program on a project that may have no lock: what a scenario breaks must be found by what it breaks, so a
    /// project without one is judged and verified all the same.
    pub fn run_as_it_is(&self, arguments: &[&str]) -> Output {
        let more = match arguments.first() {
            _ if self.path(LOCK_PATH).exists() => None,
            Some(&"check") => Some("--unfrozen"),
            Some(&"verify") => Some("--allow-unfrozen"),
            _ => None,
        };
        self.program().args(arguments).args(more).output().unwrap()
    }

    pub fn check(&self) -> Output {
        self.run_as_it_is(&["check", "--matrix", MATRIX])
    }

    /// Checks, and demands a pass: what follows verifies that receipt.
    pub fn receipt(&self) {
        assert_eq!(self.check().status.code(), Some(0));
    }

    pub fn verify(&self) -> Output {
        self.run_as_it_is(&["verify", "nucleus-gate-receipt.json"])
    }
}
