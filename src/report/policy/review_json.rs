//! A review for machines.

use serde::Serialize;

use super::place;
use crate::digest::Sha256;
use crate::policy::Policy;
use crate::proof::Review;

/// The schema of the JSON form.
pub const REVIEW_SCHEMA: &str = "nucleus-gate/policy-review/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    old: Side<'a>,
    new: Side<'a>,
    summary: String,
    lets_more_through: bool,
    unacknowledged: Vec<&'a str>,
    decisions: Vec<Decision<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zoo: Option<Vec<Escape<'a>>>,
    recorded: Vec<Matrix<'a>>,
}

#[derive(Serialize)]
struct Side<'a> {
    file: &'a str,
    name: &'a str,
    sha256: Sha256,
    semantic_sha256: Sha256,
}

#[derive(Serialize)]
struct Decision<'a> {
    name: &'a str,
    change: &'static str,
    decides: bool,
    lets_more_through: bool,
    acknowledged: bool,
    differs: &'a [String],
    old: Option<&'a str>,
    new: Option<&'a str>,
}

#[derive(Serialize)]
struct Escape<'a> {
    model: &'a str,
    kind: &'static str,
    place: String,
    rows_before: usize,
    rows_still_caught: usize,
    example_case: &'a str,
    example_row: u32,
}

#[derive(Serialize)]
struct Matrix<'a> {
    matrix: &'a str,
    rows: usize,
    apart: Option<Gap<'a>>,
    stopped: Vec<Gap<'a>>,
    turned: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Gap<'a> {
    class: &'static str,
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    case: &'a str,
    row: u32,
    old: &'a [String],
    new: &'a [String],
}

/// The review as JSON.
///
/// # Errors
/// When it cannot be serialized.
pub fn review_json(review: &Review) -> Result<String, serde_json::Error> {
    let decisions = review.items.iter().map(|item| Decision {
        name: &item.name,
        change: item.change.name(),
        decides: item.decides,
        lets_more_through: item.lets_more_through(),
        acknowledged: review.is_acknowledged(item),
        differs: &item.parts,
        old: item.old.as_deref(),
        new: item.new.as_deref(),
    });
    let zoo = review.prices.as_ref().map(|prices| {
        let escape = |price| escape(review, price);
        prices.iter().map(escape).collect()
    });
    let document = Document {
        schema: REVIEW_SCHEMA,
        old: side(&review.old),
        new: side(&review.new),
        summary: review.summary(),
        lets_more_through: review.changed().any(crate::policy::Item::lets_more_through),
        unacknowledged: review.open().map(|item| item.name.as_str()).collect(),
        decisions: decisions.collect(),
        zoo,
        recorded: review.recorded.iter().map(matrix).collect(),
    };
    serde_json::to_string_pretty(&document).map(|text| crate::text::sanitize_json(&text) + "\n")
}

fn side(policy: &Policy) -> Side<'_> {
    Side {
        file: policy.source.name(),
        name: &policy.name.value,
        sha256: policy.source.sha256(),
        semantic_sha256: policy.semantic_sha256(),
    }
}

fn escape<'a>(review: &Review, price: &'a crate::proof::Price) -> Escape<'a> {
    Escape {
        model: price.model,
        kind: if price.fault { "fault" } else { "mutation" },
        place: place(review, price),
        rows_before: price.before,
        rows_still_caught: price.still,
        example_case: &price.example.0,
        example_row: price.example.1,
    }
}

fn matrix(recorded: &crate::proof::Recorded) -> Matrix<'_> {
    Matrix {
        matrix: &recorded.matrix,
        rows: recorded.rows,
        apart: recorded.apart.as_ref().map(gap),
        stopped: recorded.faults.iter().map(gap).collect(),
        turned: recorded
            .turned
            .iter()
            .map(|turned| Row { case: &turned.case, row: turned.row, old: &turned.old, new: &turned.new })
            .collect(),
    }
}

fn gap(fault: &crate::gate::Fault) -> Gap<'_> {
    Gap { class: fault.class.name(), code: &fault.code, message: &fault.message }
}
