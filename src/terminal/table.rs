//! Tables that fit the width of the terminal, or `COLUMNS`.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ContentArrangement, Table};

/// A table with a header; cells are wrapped if space is narrow.
pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    if let Some(width) = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()) {
        table.set_width(width);
    }
    table
}
