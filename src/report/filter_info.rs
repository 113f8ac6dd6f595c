//! What saved filters are: a table for people, one JSON document for programs.

use super::model::{FILTER_INFO_SCHEMA, FilterRow};
use super::number::{grouped, percent, size};
use crate::elements::ElementLabel;
use crate::filters::saved::SavedFilter;
use serde_json::{json, to_writer};
use std::io::{self, Write};
use std::path::Path;

/// Saved filters and where they stand.
#[derive(Debug, Default)]
pub struct FilterInfo {
    rows: Vec<FilterRow>,
}

impl FilterInfo {
    /// Adds a filter.
    pub fn add(&mut self, path: &Path, filter: &SavedFilter) {
        let label = ElementLabel::parse(filter.label());
        self.rows.push(FilterRow::new(path, filter, label.as_ref()));
    }

    /// Writes them for programs.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        to_writer(
            &mut *out,
            &json!({ "schema": FILTER_INFO_SCHEMA, "filters": self.rows }),
        )?;
        writeln!(out)
    }

    /// Writes them for people.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            writeln!(out, "{}", row.path)?;
            for (name, value) in lines(row) {
                writeln!(out, "  {name:<11} {value}")?;
            }
            for stored in &row.combinations {
                let name = stored.attributes.join(",");
                writeln!(out, "  {name:<11} {}", stored.words())?;
            }
        }
        Ok(())
    }
}

fn lines(row: &FilterRow) -> Vec<(&'static str, String)> {
    let shards = if row.shards == 1 { "shard" } else { "shards" };
    let mut lines = vec![
        ("elements", row.elements.clone()),
        ("structure", row.filter.to_owned()),
        ("parameters", row.parameters.clone()),
        (
            "memory",
            format!("{} in {} {shards}", size(row.memory_bytes), row.shards),
        ),
        ("fill", percent(row.fill_ratio)),
        ("seed", row.seed.to_string()),
    ];
    lines.push((
        "distinct",
        match (row.estimate, row.std_error) {
            (Some(count), Some(error)) => {
                format!("{} ± {error:.1}", grouped(count.round() as u64))
            }
            _ => "this filter does not tell".to_owned(),
        },
    ));
    if let (Some(saturated), Some(overflows)) = (row.saturated, row.overflows) {
        lines.push((
            "counters",
            format!(
                "{} saturated, {} overflows",
                grouped(saturated),
                grouped(overflows)
            ),
        ));
    }
    if let (Some(stashed), Some(given_up)) = (row.stashed, row.given_up) {
        lines.push((
            "overflow",
            format!(
                "{} elements stashed, {} buckets given up",
                grouped(stashed),
                grouped(given_up)
            ),
        ));
    }
    lines
}
