//! A receipt against a second evaluation of what it binds.

use serde_json::Value;

use super::statement::Statement;

/// One fact that a second evaluation finds otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: the case and row first, where it is a row's.
    pub place: String,
    /// In the receipt, as JSON; `absent` where there is none.
    pub receipt: String,
    /// In the replay, likewise.
    pub replay: String,
}

/// Every fact of `receipt` that `replay` finds otherwise, in the receipt's order. Not compared: what is no fact of the
/// evaluation (the evaluator's own bytes, where the policy and matrix lay, the receipt's digest, what it replaced).
///
/// # Errors
/// Where a statement cannot be written as JSON, which none is.
pub fn differences(receipt: &Statement, replay: &Statement) -> Result<Vec<Difference>, serde_json::Error> {
    let mut found = Vec::new();
    compare("", &facts(receipt)?, &facts(replay)?, &mut found);
    Ok(found)
}

fn facts(statement: &Statement) -> Result<Value, serde_json::Error> {
    let mut statement = statement.clone();
    let predicate = &mut statement.predicate;
    predicate.receipt_sha256 = None;
    predicate.replaces = None;
    predicate.bindings.policy.file.clear();
    predicate.bindings.case_matrix.file.clear();
    predicate.bindings.evaluator.version.clear();
    predicate.bindings.evaluator.digest = predicate.bindings.policy.digest.clone();
    serde_json::to_value(&statement)
}

fn compare(place: &str, receipt: &Value, replay: &Value, found: &mut Vec<Difference>) {
    let absent = Value::String("absent".to_owned());
    match (receipt, replay) {
        (Value::Object(then), Value::Object(now)) => {
            let keys = then.keys().chain(now.keys().filter(|key| !then.contains_key(*key)));
            for key in keys {
                let (then, now) = (then.get(key).unwrap_or(&absent), now.get(key).unwrap_or(&absent));
                compare(&step(place, key), then, now, found);
            }
        }
        (Value::Array(then), Value::Array(now)) => {
            for index in 0..then.len().max(now.len()) {
                let (then, now) = (then.get(index).unwrap_or(&absent), now.get(index).unwrap_or(&absent));
                compare(&step(place, &label(index, then, now)), then, now, found);
            }
        }
        (then, now) if then == now => {}
        (then, now) => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            found.push(Difference { place: place.to_owned(), receipt: shown(then), replay: shown(now) });
        }
    }
}

fn step(place: &str, next: &str) -> String {
    // The outermost steps are the same for every fact.
    match (place, next) {
        ("", "predicate") => String::new(),
        ("", _) => next.to_owned(),
        _ => format!("{place} {next}"),
    }
}

/// An element's own name, where it has one; else its number.
fn label(index: usize, then: &Value, now: &Value) -> String {
    let named = |key: &str| then.get(key).or_else(|| now.get(key)).and_then(Value::as_str);
    let name = named("name").or_else(|| named("row")).or_else(|| named("id"));
    name.map_or_else(|| index.to_string(), str::to_owned)
}
