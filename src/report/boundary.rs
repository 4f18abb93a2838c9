//! The neighbourhood of a boundary, as a small table.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::Screen;
use crate::gate::Neighbourhood;
use crate::text::sanitize;

/// Below this width the logit's bits stand under the logit, and the share under the weight.
const WIDE: usize = 88;

/// Draws the table, two columns in.
pub(super) fn table(neighbourhood: &Neighbourhood, focus: Option<u32>, screen: &Screen) -> String {
    let wide = screen.width >= WIDE;
    let mut table = plain_table(screen.width.saturating_sub(2));
    let mut header: Vec<String> = match wide {
        true => ["", "rank", "token", "logit", "fp32 bits", "weight", "of target"].map(str::to_owned).to_vec(),
        false => ["", "rank", "token", "logit\nfp32 bits", "weight\nof target"].map(str::to_owned).to_vec(),
    };
    let numbers = header.len();
    header.extend(neighbourhood.keepers.iter().map(|keeper| sanitize(keeper).into_owned()));
    table.set_header(header);
    let mut previous = None;
    for line in &neighbourhood.lines {
        if previous.is_some_and(|rank| rank + 1 != line.rank) {
            table.add_row(["", "…"]);
        }
        previous = Some(line.rank);
        let mark = if focus == Some(line.token) { "▸" } else { "" };
        let (logit, bits) = (format!("{:?}", line.logit), format!("{:#010x}", line.logit.to_bits()));
        let (weight, share) = match wide {
            true => (format!("{:.6e}", line.weight), format!("{:.9}", line.share)),
            false => (format!("{:.2e}", line.weight), format!("{:.6}", line.share)),
        };
        let mut cells = vec![mark.to_owned(), line.rank.to_string(), line.token.to_string()];
        match wide {
            true => cells.extend([logit, bits, weight, share]),
            false => cells.extend([format!("{logit}\n{bits}"), format!("{weight}\n{share}")]),
        }
        cells.extend(line.kept.iter().map(|kept| if *kept { "keep" } else { "·" }.to_owned()));
        table.add_row(cells);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if wide { 2 } else { 1 }));
        if index < numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    indent(&table.to_string())
}

/// A table without lines that wraps its cells rather than pass the width.
pub(super) fn plain_table(width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table
}

/// Prose from outside, two columns in, wrapped to the screen under its first word.
pub(super) fn wrapped(lead: &str, text: &str, screen: &Screen) -> String {
    if text.is_empty() {
        return String::new();
    }
    let first = format!("  {lead}");
    let rest = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(screen.width).initial_indent(&first).subsequent_indent(&rest);
    textwrap::fill(&sanitize(text), options) + "\n"
}

/// Two columns in, no trailing spaces.
pub(super) fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}
