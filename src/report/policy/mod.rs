//! Policies, their reviews and their proofs, as people and machines read them.

mod proof;
mod review_json;
mod review_markdown;
mod review_text;
mod show;

pub use proof::proof;
pub use review_json::{REVIEW_SCHEMA, review_json};
pub use review_markdown::review_markdown;
pub use review_text::review_text;
pub use show::show;

use crate::proof::{Company, Price, Review};
use crate::text::amount;

fn rows(count: usize) -> String {
    amount(count as u64, "row")
}

/// What a model ran as: "patch", "patch and all other subjects".
fn place(review: &Review, price: &Price) -> String {
    let name = review.old.evidence.subjects.get(price.subject).map_or("?", |subject| subject.value.as_str());
    match price.company {
        Company::Exact => format!("as {name}"),
        Company::Same => "as every subject".to_owned(),
    }
}
