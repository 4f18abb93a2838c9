//! What the oracle says of rows, for people and for machines.

use serde::Serialize;

use super::{Certified, Row, Screen};
use crate::text::sanitize;

/// The schema of the JSON form. Binary64 and fp32 numbers are JSON numbers that read back to the same bits; bit
/// patterns stand beside them.
const SCHEMA: &str = "nucleus-gate/oracle/v1";

/// The first line for people.
pub(super) fn title(file: &str) -> String {
    format!("{}\n", sanitize(file))
}

/// A row for people.
pub(super) fn row(row: &Row, screen: &Screen) -> String {
    let p = format!("p = {:?} ({:#010x})", row.p, row.p.to_bits());
    let mut text = format!("\nrow {}: {} tokens, {p}\n", row.row, row.vocab);
    match &row.result {
        Ok(certified) => text += &nucleus(certified, row, screen),
        Err(error) => text += &format!("  no certified nucleus: error[{}]: {error}\n", error.code()),
    }
    text
}

fn nucleus(certified: &Certified, row: &Row, screen: &Screen) -> String {
    let nucleus = &certified.nucleus;
    let share = |mass: f64| mass / nucleus.normalizer;
    let kept = format!("{} of {} tokens; the first is {}", nucleus.count, row.vocab, nucleus.first);
    let facts = [
        ("nucleus", kept),
        ("mass", format!("{:?}, {:.3e} above p", share(nucleus.prefix), share(nucleus.prefix - nucleus.target))),
        (
            "without the last",
            format!(
                "{:?}, {:.3e} below p",
                share(nucleus.prefix_before),
                share(nucleus.target - nucleus.prefix_before)
            ),
        ),
        ("certificate", certified.certificate.to_string()),
    ];
    let mut text = String::new();
    for (name, fact) in facts {
        let options =
            textwrap::Options::new(screen.width).initial_indent("  ").subsequent_indent("                    ");
        text += &textwrap::fill(&format!("{name:<16}  {fact}"), options);
        text += "\n";
    }
    text += &format!("  {:>8} {:>8} {:>14} {:>10} {:>12}\n", "rank", "token", "logit", "fp32 bits", "weight");
    for near in &certified.neighbours {
        let kept = if near.kept { "" } else { "  dropped" };
        text += &format!(
            "  {:>8} {:>8} {:>14} {:#010x} {:>12.6e}{kept}\n",
            near.rank,
            near.token,
            format!("{:?}", near.logit),
            near.logit.to_bits(),
            near.weight,
        );
    }
    text
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    file: &'a str,
    rows: Vec<RowJson>,
}

#[derive(Serialize)]
struct RowJson {
    row: usize,
    vocab: usize,
    p: Option<f32>,
    p_bits: String,
    nucleus: Option<NucleusJson>,
    error: Option<ErrorJson>,
}

#[derive(Serialize)]
struct ErrorJson {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct NucleusJson {
    count: u32,
    first: u32,
    last_kept: u32,
    next_dropped: Option<u32>,
    max_logit: f32,
    normalizer: Sum,
    target: Sum,
    prefix: Sum,
    prefix_before: Sum,
    certificate: &'static str,
    certificate_bits: Option<u32>,
    boundary: Vec<NeighbourJson>,
}

#[derive(Serialize)]
struct Sum {
    value: f64,
    bits: String,
}

impl From<f64> for Sum {
    fn from(value: f64) -> Self {
        Self { value, bits: format!("{:#018x}", value.to_bits()) }
    }
}

#[derive(Serialize)]
struct NeighbourJson {
    rank: usize,
    token: u32,
    logit: f32,
    logit_bits: String,
    weight: Sum,
    kept: bool,
}

pub(super) fn json(file: &str, rows: &[Row]) -> Result<String, serde_json::Error> {
    let rows = rows
        .iter()
        .map(|row| RowJson {
            row: row.row,
            vocab: row.vocab,
            p: row.p.is_finite().then_some(row.p),
            p_bits: format!("{:#010x}", row.p.to_bits()),
            nucleus: row.result.as_ref().ok().map(nucleus_json),
            error: row.result.as_ref().err().map(|error| ErrorJson { code: error.code(), message: error.to_string() }),
        })
        .collect();
    serde_json::to_string_pretty(&Report { schema: SCHEMA, file, rows })
        .map(|text| crate::text::sanitize_json(&text) + "\n")
}

fn nucleus_json(certified: &Certified) -> NucleusJson {
    let nucleus = &certified.nucleus;
    let boundary = certified.neighbours.iter().map(|near| NeighbourJson {
        rank: near.rank,
        token: near.token,
        logit: near.logit,
        logit_bits: format!("{:#010x}", near.logit.to_bits()),
        weight: near.weight.into(),
        kept: near.kept,
    });
    NucleusJson {
        count: nucleus.count,
        first: nucleus.first,
        last_kept: nucleus.last_kept,
        next_dropped: nucleus.next_dropped,
        max_logit: nucleus.max_logit,
        normalizer: nucleus.normalizer.into(),
        target: nucleus.target.into(),
        prefix: nucleus.prefix.into(),
        prefix_before: nucleus.prefix_before.into(),
        certificate: certified.certificate.name(),
        certificate_bits: certified.certificate.bits(),
        boundary: boundary.collect(),
    }
}
