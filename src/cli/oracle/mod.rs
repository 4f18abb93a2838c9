//! `nucleus-gate oracle`: the certified nucleus of any logits.

mod logits;
mod render;

use std::path::PathBuf;

use super::{Failure, screen};
use crate::fsio::read_bounded;
use crate::gate::ExitCode;
use crate::inputs::MAX_LOGITS;
use crate::oracle::{Certificate, Nucleus, OracleError, Workspace, certificate};
use crate::report::Screen;
use logits::Logits;

/// The certified nucleus of each row of a logits file; no policy needed
///
/// FILE is safetensors with `logits` ([batch, vocab] or [vocab]; f32, bf16 or f16, which widen exactly) and perhaps `p`
/// ([batch], f32), or npy with f32 ([batch, vocab] or [vocab]).
///
/// Exit codes: 0 every row has a certified nucleus; 2 wrong invocation; 3 the file is missing or unreadable, or a row
/// has no certified nucleus; 4 the file has no rows.
#[derive(Debug, clap::Args)]
pub(super) struct Oracle {
    /// The logits
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The top-p of every row, a decimal that means the nearest fp32; without it, the file's `p`
    #[arg(long, value_name = "P")]
    p: Option<f32>,
    /// This row alone
    #[arg(long, value_name = "R")]
    row: Option<usize>,
    /// What stdout shows
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Human,
    Json,
}

/// The most bytes of a file: the most logits there may be, p for each and a header.
const MAX_BYTES: u64 = 4 * (2 * MAX_LOGITS as u64) + (1 << 20);

/// The most rows of one call.
const MAX_ROWS: usize = 1 << 16;

/// Tokens that are shown on either side of the boundary.
const NEIGHBOURS: usize = 3;

/// What is said of one row.
struct Row {
    row: usize,
    vocab: usize,
    p: f32,
    result: Result<Certified, OracleError>,
}

struct Certified {
    nucleus: Nucleus,
    certificate: Certificate,
    neighbours: Vec<Neighbour>,
}

/// A token near the boundary.
struct Neighbour {
    /// From 1.
    rank: usize,
    token: u32,
    logit: f32,
    weight: f64,
    kept: bool,
}

impl Oracle {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        if let Some(p) = self.p.filter(|p| !(0.0 < *p && *p < 1.0)) {
            let error = OracleError::InvalidP { p };
            return Err(Failure::invocation(error.code(), format!("--p: {error}"), "give a p between 0 and 1"));
        }
        let bytes = read_bounded(&self.file, MAX_BYTES).map_err(|error| {
            Failure::stopped(error.code(), error.to_string(), "name a readable safetensors or npy file")
        })?;
        let logits = Logits::read(&bytes).map_err(|error| {
            let message = format!("{}: {error}", self.file.display());
            Failure::stopped(error.code(), message, "write float32 logits as safetensors (tensor `logits`) or npy")
        })?;
        drop(bytes);
        let rows = self.rows(&logits)?;
        let file = self.file.display().to_string();
        let all = match self.format {
            Format::Human => print_each(&file, rows)?,
            Format::Json => {
                let rows: Vec<Row> = rows.collect();
                let text = render::json(&file, &rows);
                screen::print(&text.map_err(|error| Failure::internal(format!("the report as JSON: {error}")))?)?;
                rows.iter().all(|row| row.result.is_ok())
            }
        };
        Ok(if all { ExitCode::Passed } else { ExitCode::Stopped })
    }

    /// The rows that are asked for, each certified when it is taken.
    fn rows(&self, logits: &Logits) -> Result<impl Iterator<Item = Row>, Failure> {
        let (batch, file) = (logits.batch(), self.file.display());
        if batch == 0 {
            return Err(Failure::Message {
                exit: ExitCode::NothingEvaluated,
                code: "oracle-no-rows".to_owned(),
                message: format!("{file} holds no rows"),
                help: "name a file with at least one row of logits".to_owned(),
            });
        }
        let chosen = match self.row {
            Some(row) if row >= batch => {
                let message = format!("there is no row {row}: {file} has {batch}");
                return Err(Failure::invocation("oracle-no-such-row", message, "rows count from 0"));
            }
            Some(row) => row..row + 1,
            None if batch > MAX_ROWS => {
                let message = format!("{file} has {batch} rows; {MAX_ROWS} are certified at most in one call");
                return Err(Failure::invocation("oracle-too-many-rows", message, "name one with --row R"));
            }
            None => 0..batch,
        };
        // A file has p for every row or for none.
        if self.p.is_none() && logits.p(chosen.start).is_none() {
            let message = format!("{file} has no tensor `p`");
            return Err(Failure::invocation("oracle-no-p", message, "give one: --p 0.95"));
        }
        let mut workspace = Workspace::new();
        let given = self.p;
        Ok(chosen.filter_map(move |row| {
            let (p, tokens) = (given.or_else(|| logits.p(row))?, logits.row(row));
            Some(Row { row, vocab: tokens.len(), p, result: certify(&mut workspace, tokens, p) })
        }))
    }
}

/// Prints each row as soon as it is certified, and says whether all were.
fn print_each(file: &str, rows: impl Iterator<Item = Row>) -> Result<bool, Failure> {
    let terminal = screen::stdout();
    screen::print(&render::title(file))?;
    let mut all = true;
    for row in rows {
        all &= row.result.is_ok();
        screen::print(&render::row(&row, &terminal))?;
    }
    Ok(all)
}

fn certify(workspace: &mut Workspace, logits: &[f32], p: f32) -> Result<Certified, OracleError> {
    let nucleus = workspace.nucleus(logits, p)?;
    let count = nucleus.count as usize;
    let first = count.saturating_sub(NEIGHBOURS);
    let order = workspace.order(logits, count + NEIGHBOURS)?;
    let near: Vec<_> = order.iter().enumerate().skip(first).map(|(rank, key)| (rank, key.token())).collect();
    let weights = workspace.weights(logits)?;
    let neighbours = near
        .into_iter()
        .filter_map(|(rank, token)| {
            let (logit, weight) = (*logits.get(token as usize)?, *weights.get(token as usize)?);
            Some(Neighbour { rank: rank + 1, token, logit, weight, kept: rank < count })
        })
        .collect();
    Ok(Certified { nucleus, certificate: certificate(logits, p, &nucleus), neighbours })
}
