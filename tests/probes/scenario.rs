//! A scenario folder: `scenario.kdl` says what is broken and what is run, `screen.snap` holds what is shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use kdl::{KdlDocument, KdlNode};
use nucleus_gate::digest::Sha256;
use nucleus_gate::dsse::PublicKey;

use crate::project::Project;
use crate::steps;

/// What lies in `tests/scenarios/THEME/NAME/`.
pub struct Scenario {
    /// `THEME/NAME`.
    pub name: String,
    pub title: String,
    /// What the last command's report, error or verification must say.
    pub code: String,
    /// The exit code of the last command.
    pub exit: i32,
    /// Where what is shown is the same in every run, it is held to `screen.snap`.
    pub steady: bool,
    steps: Vec<KdlNode>,
}

/// A command of a scenario, and how it ended.
pub struct Ran {
    pub line: String,
    pub said: String,
    /// Nothing where a signal ended it.
    pub exit: Option<i32>,
    pub expected: i32,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Every scenario, by theme and name.
pub fn all() -> Vec<Scenario> {
    let entries = |folder: &Path| {
        let mut names: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| path.is_dir());
        names.sort();
        names
    };
    let folders = entries(&folder()).into_iter().flat_map(|theme| entries(&theme));
    folders.map(|scenario| Scenario::read(&scenario)).collect()
}

impl Scenario {
    fn read(path: &Path) -> Self {
        let name = path.strip_prefix(folder()).unwrap().display().to_string();
        let text = fs::read_to_string(path.join("scenario.kdl")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let document: KdlDocument = text.parse().unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let [node] = document.nodes() else { panic!("{name}: one scenario a file") };
        let steps = steps::children(node).to_vec();
        let last = steps.last().expect("a scenario has steps");
        assert!(steps::is_command(last), "{name}: the last step runs something");
        Self {
            title: steps::text(node, 0),
            code: node.get("code").and_then(|code| code.as_string()).expect("a code").to_owned(),
            exit: steps::exit(last),
            steady: node.get("steady").and_then(|steady| steady.as_bool()).unwrap_or(true),
            steps,
            name,
        }
    }

    /// Breaks `project` and runs the commands.
    pub fn play(&self, project: &mut Project) -> Vec<Ran> {
        let mut known = Known::default();
        known.look(project);
        let mut ran = Vec::new();
        for step in &self.steps {
            if steps::is_command(step) {
                known.look(project);
                let mut command = steps::command(project, step);
                known.look(project);
                command.said = known.name(&command.said);
                ran.push(command);
            } else {
                steps::apply(project, step);
            }
        }
        ran
    }
}

/// The digests of the project's files, which are shown by the file's name: a snapshot is about what is said of a digest.
#[derive(Default)]
struct Known(BTreeMap<String, String>);

impl Known {
    fn look(&mut self, project: &Project) {
        static PROGRAM: LazyLock<Sha256> =
            LazyLock::new(|| Sha256::of(&fs::read(env!("CARGO_BIN_EXE_nucleus-gate")).unwrap()));
        self.0.entry(PROGRAM.to_string()).or_insert_with(|| "{nucleus-gate}".to_owned());
        for (name, bytes) in project.files() {
            if let Ok(key) = PublicKey::read(&project.path(&name)) {
                self.0.entry(key.id().to_string()).or_insert_with(|| format!("{{key {name}}}"));
            }
            let mut label = format!("{{{name}}}");
            while self.0.values().any(|other| *other == label) && !self.0.contains_key(&Sha256::of(&bytes).to_string())
            {
                label = label.replace('}', ", changed}");
            }
            self.0.entry(Sha256::of(&bytes).to_string()).or_insert(label);
        }
    }

    fn name(&self, said: &str) -> String {
        self.0.iter().fold(said.to_owned(), |said, (digest, label)| said.replace(digest, label))
    }
}
