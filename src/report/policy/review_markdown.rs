//! A review as a comment on a pull request.

use super::{place, rows};
use crate::proof::Review;
use crate::text::sanitize;

/// The review in Markdown.
#[must_use]
pub fn review_markdown(review: &Review) -> String {
    let mark = if review.open().next().is_some() { "❌" } else { "✅" };
    let mut out = format!("### {mark} Policy `{}`: {}\n", cell(&review.new.name.value), cell(&review.summary()));
    if review.changed().next().is_some() {
        out += "\n| decision | change | what differs | lets more through |\n| --- | --- | --- | --- |\n";
    }
    for item in review.changed() {
        let differs = match (&item.old, &item.new) {
            (Some(old), None) => format!("was `{}`", cell(old)),
            (None, Some(new)) => format!("is `{}`", cell(new)),
            (Some(_), Some(_)) | (None, None) => {
                let parts: Vec<String> = item.parts.iter().map(|part| format!("`{}`", cell(part))).collect();
                parts.join(", ")
            }
        };
        let through = match (item.lets_more_through(), review.is_acknowledged(item)) {
            (true, true) => "yes, acknowledged",
            (true, false) => "**yes**",
            (false, _) if !item.decides => "reported only",
            (false, _) => "no",
        };
        out += &format!("| `{}` | {} | {differs} | {through} |\n", cell(&item.name), item.change.name());
    }
    if let Some(prices) = &review.prices {
        let escaped = prices.iter().filter(|price| price.escapes()).count();
        out += &format!("\n<details{}>", if escaped > 0 { " open" } else { "" });
        out += &format!("<summary>Fault zoo: {escaped} no longer caught, {} on fewer rows", prices.len() - escaped);
        out += "</summary>\n\n";
        for price in prices {
            let kind = if price.fault { "fault" } else { "mutation" };
            let (case, row) = &price.example;
            let place = place(review, price);
            let (still, before) = (price.still, rows(price.before));
            out += &format!("- {kind} `{}` {place}: caught on {still} of {before}", price.model);
            out += &format!(", for instance not on `{}` row {row}\n", cell(case));
        }
        out += "\n</details>\n";
    }
    for recorded in &review.recorded {
        let (matrix, turned) = (cell(&recorded.matrix), recorded.turned.len());
        out += &format!(
            "\n<details><summary>Recorded rows of <code>{matrix}</code>: {turned} of {} change verdict",
            recorded.rows
        );
        out += "</summary>\n\n";
        for (kind, why) in recorded.gaps() {
            out += &format!("- {kind}: {}\n", cell(&why));
        }
        for turned in &recorded.turned {
            let list = |ids: &[String]| if ids.is_empty() { "passes".to_owned() } else { cell(&ids.join(", ")) };
            out += &format!(
                "- `{}` row {}: {} → {}\n",
                cell(&turned.case),
                turned.row,
                list(&turned.old),
                list(&turned.new)
            );
        }
        out += "\n</details>\n";
    }
    let (old, new) = (review.old.source.sha256(), review.new.source.sha256());
    out += &format!("\n<sub>sha256 `{old}` → `{new}`, semantic `{}` → ", review.old.semantic_sha256());
    out + &format!("`{}`</sub>\n", review.new.semantic_sha256())
}

/// Text that cannot end a table cell, a code span or a tag.
fn cell(text: &str) -> String {
    let text = sanitize(text).replace(['\n', '\r'], " ").replace('`', "'");
    text.replace('|', "\\|").replace('<', "&lt;").replace("->", "→")
}
