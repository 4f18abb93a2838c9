//! A review on a screen.

use super::{place, rows};
use crate::policy::{Change, Item};
use crate::proof::{Price, Recorded, Review};
use crate::text::sanitize;

/// At most so many recorded rows are listed.
const MAX_ROWS: usize = 20;

/// The review as text.
#[must_use]
pub fn review_text(review: &Review) -> String {
    let mut out = String::new();
    for (which, policy) in [("old", &review.old), ("new", &review.new)] {
        out += &format!("{which}  {}\n", policy.source.name());
        out += &format!("     sha256   {}\n     semantic {}\n", policy.source.sha256(), policy.semantic_sha256());
    }
    out += &format!("\n{}\n", review.summary());
    for item in review.changed() {
        out += &format!("\n{}", item_text(review, item));
    }
    let unchanged = review.count(Change::Unchanged);
    if unchanged > 0 && review.changed().next().is_some() {
        out += &format!("\n  unchanged     {unchanged} other decisions\n");
    }
    if let Some(prices) = &review.prices {
        out += &zoo(review, prices);
    }
    review.recorded.iter().for_each(|recorded| out += &recorded_text(recorded));
    for name in review.idle_acknowledgements() {
        out += &format!("\nnote: --acknowledge {} names nothing that lets more through\n", sanitize(name));
    }
    if review.open().next().is_some() {
        let names: Vec<String> = review.open().map(|item| format!("--acknowledge {}", item.name)).collect();
        out += &format!("\nhelp: after review, acknowledge by name: {}\n", sanitize(&names.join(" ")));
    }
    out
}

fn item_text(review: &Review, item: &Item) -> String {
    let acknowledged = if review.is_acknowledged(item) { " (acknowledged)" } else { "" };
    let effect = match (item.decides, item.lets_more_through()) {
        (false, _) => "reported only: decides nothing",
        (true, true) => "lets more through",
        (true, false) => "lets no more through",
    };
    let mut out = format!("  {:<13} {}: {effect}{acknowledged}\n", item.change.name(), sanitize(&item.name));
    for part in &item.parts {
        out += &format!("                {}\n", sanitize(part));
    }
    let lines = [("was", &item.old, item.old_span, &review.old), ("is", &item.new, item.new_span, &review.new)];
    for (word, text, span, policy) in lines {
        if let Some(text) = text {
            let line = span.map_or(0, |span| policy.source.line(span.offset()));
            out += &format!("    {word:<4}{}:{line}: {}\n", policy.source.name(), sanitize(text));
        }
    }
    out
}

fn zoo(review: &Review, prices: &[Price]) -> String {
    let mut out = "\nFault zoo: what gets through now\n".to_owned();
    if prices.is_empty() {
        return out + "  nothing: every model is caught on every row on which it was\n";
    }
    for price in prices {
        let kind = if price.fault { "fault" } else { "mutation" };
        let (case, row) = &price.example;
        let how = if price.escapes() {
            format!("NO LONGER CAUGHT (was on {})", rows(price.before))
        } else {
            format!("gets through on {} of {}", price.before - price.still, rows(price.before))
        };
        let place = place(review, price);
        out += &format!("  {kind} {} {place}: {how}; for instance {} row {row}\n", price.model, sanitize(case));
    }
    out
}

fn recorded_text(recorded: &Recorded) -> String {
    let mut out = format!("\nRecorded rows of {}: {} compared\n", sanitize(&recorded.matrix), recorded.rows);
    for (kind, why) in recorded.gaps() {
        out += &format!("  {kind}: {}\n", sanitize(&why));
    }
    if recorded.turned.is_empty() {
        return if recorded.rows == 0 { out } else { out + "  no verdict changes\n" };
    }
    for turned in recorded.turned.iter().take(MAX_ROWS) {
        let list = |ids: &[String]| if ids.is_empty() { "passes".to_owned() } else { ids.join(", ") };
        let what = if turned.gets_through() { "gets through" } else { "changes" };
        out += &format!(
            "  {} row {} {what}: {} -> {}\n",
            sanitize(&turned.case),
            turned.row,
            sanitize(&list(&turned.old)),
            sanitize(&list(&turned.new))
        );
    }
    let rest = recorded.turned.len().saturating_sub(MAX_ROWS);
    if rest > 0 {
        out += &format!("  and {rest} more in the JSON form\n");
    }
    out
}
