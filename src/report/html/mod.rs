//! Pages as HTML: one file that needs nothing besides itself.
//!
//! The page is complete without its script, which adds values under the pointer, series that can be
//! hidden, sorting, and any part of the time at full width. A content security policy allows the
//! one style and the one script that are written here, by their digests, and nothing else: no
//! request can leave the page, and a name out of a capture that became markup after all could still
//! do nothing.

#[cfg(test)]
mod tests;

use super::figure::{Block, DataTable, Drawing, Figure, Page};
use super::markup::{Markup, json_in_script};
use super::number::grouped;
use super::{chart_rows, svg};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("time.js"), include_str!("page.js"));

/// Rows up to which a table is seen as a whole.
const WHOLE: usize = 14;

/// Characters up to which the cells of a column stay in one line.
const SHORT: usize = 32;

/// The page as a file of its own.
pub fn page(page: &Page) -> String {
    let style = format!("\n{STYLE}{}", svg::STYLE);
    let script = format!("\n{SCRIPT}");
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        digest(&style),
        digest(&script)
    );
    let mut html = Markup::default();
    html.own("<!DOCTYPE html>\n");
    html.open("html", &[("lang", &"en")]);
    html.open("head", &[]);
    html.line();
    html.empty("meta", &[("charset", &"utf-8")]);
    html.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
    html.empty(
        "meta",
        &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")],
    );
    let generator = concat!("flowsieve ", env!("CARGO_PKG_VERSION"));
    html.empty("meta", &[("name", &"generator"), ("content", &generator)]);
    html.line();
    html.leaf("title", &[], &page.title);
    html.open("style", &[]);
    html.own(&style);
    html.close("style");
    html.close("head");
    html.line();
    html.open("body", &[]);
    html.line();
    let places = body(&mut html, page);
    let places = json!(places).to_string();
    html.open("script", &[("type", &"application/json"), ("id", &"places")]);
    html.own(&json_in_script(&places));
    html.close("script");
    html.line();
    html.open("script", &[]);
    html.own(&script);
    html.close("script");
    html.close("body");
    html.close("html");
    html.line();
    html.finish()
}

/// The digest by which a policy allows a style or a script.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Writes what is to be seen, and tells where the parts of each figure are.
fn body(html: &mut Markup, page: &Page) -> BTreeMap<String, svg::Geometry> {
    html.open("header", &[]);
    html.leaf("h1", &[], &page.title);
    if !page.summary.is_empty() {
        html.open("ul", &[("class", &"summary")]);
        for sentence in &page.summary {
            html.leaf("li", &[], sentence);
        }
        html.close("ul");
    }
    if !page.warnings.is_empty() {
        html.open("ul", &[("class", &"warnings"), ("aria-label", &"Warnings")]);
        for sentence in &page.warnings {
            html.leaf("li", &[], sentence);
        }
        html.close("ul");
    }
    html.close("header");
    html.line();
    html.open("main", &[]);
    html.line();
    let mut places = BTreeMap::new();
    for section in &page.sections {
        html.open("section", &[]);
        if !section.title.is_empty() {
            html.leaf("h2", &[], &section.title);
        }
        html.line();
        for block in &section.blocks {
            match block {
                Block::Text(text) => html.leaf("p", &[], text),
                Block::Table(table) => data_table(html, table),
                Block::Figure(figure) => {
                    let place = chart(html, figure, places.len());
                    places.insert(format!("figure-{}", places.len()), place);
                }
            }
            html.line();
        }
        html.close("section");
        html.line();
    }
    html.close("main");
    html.line();
    let about = concat!(
        "Made by flowsieve ",
        env!("CARGO_PKG_VERSION"),
        ". This page is one file and asks nothing of the network. Times are"
    );
    let of = if page.zone.is_utc() { "" } else { "of " };
    html.leaf("footer", &[], format!("{about} {of}{}.", page.zone));
    html.line();
    places
}

/// A figure with its legend, its caption, and the table behind it.
fn chart(html: &mut Markup, figure: &Figure, number: usize) -> svg::Geometry {
    let drawn = svg::draw(figure, false);
    let unit = match &figure.drawing {
        Drawing::HeatMap { shade, .. } => shade.label.as_str(),
        _ => "",
    };
    let id = format!("figure-{number}");
    html.open("figure", &[("id", &id), ("data-unit", &unit)]);
    html.leaf("h3", &[("id", &figure.name)], &figure.title);
    let (caption, how) = svg::caption(figure);
    html.open("figcaption", &[]);
    html.text(caption);
    if let Some(how) = how {
        html.text(" ");
        html.leaf("span", &[("class", &"dense")], how);
    }
    html.close("figcaption");
    let keys = svg::keys(figure);
    if !keys.is_empty() {
        let about = "Series; press one to hide or show it";
        html.open("div", &[("class", &"legend"), ("role", &"group"), ("aria-label", &about)]);
        for key in &keys {
            html.open("button", &[("type", &"button"), ("aria-pressed", &"true")]);
            let class = format!("fs {}", key.class);
            html.open(
                "svg",
                &[
                    ("class", &"fs"),
                    ("viewBox", &"0 0 26 14"),
                    ("width", &26),
                    ("height", &14),
                    ("aria-hidden", &"true"),
                ],
            );
            html.open("g", &[("class", &class)]);
            svg::swatch(html, key.swatch, 0.0, 7.0);
            html.close("g");
            html.close("svg");
            html.leaf("span", &[], &key.name);
            html.close("button");
        }
        html.close("div");
    }
    // On paper, what is higher than wide may take a page.
    let class = if drawn.geometry.is_tall() { "plot tall" } else { "plot" };
    let hint = format!("{}; arrow keys show its values", figure.title);
    html.open(
        "div",
        &[("class", &class), ("tabindex", &0), ("role", &"group"), ("aria-label", &hint)],
    );
    html.own(&drawn.svg);
    html.close("div");
    html.line();
    let (table, note) = chart_rows::table(figure);
    html.open("details", &[]);
    html.leaf("summary", &[], "Values as a table");
    if let Some(note) = note {
        html.leaf("p", &[], note);
    }
    data_table(html, &table);
    html.close("details");
    html.close("figure");
    drawn.geometry
}

/// A table that can be sorted by its columns.
fn data_table(html: &mut Markup, table: &DataTable) {
    let classes: Vec<&str> = (0..table.columns.len())
        .map(|column| {
            let cells = || table.rows.iter().filter_map(|row| row.get(column));
            match table.numeric.get(column) {
                Some(true) => "number",
                _ if cells().all(|cell| cell.chars().count() <= SHORT) => "short",
                // A line of blocks is a picture.
                _ if cells().all(|cell| cell.chars().all(is_block)) => "short blocks",
                _ => "text",
            }
        })
        .collect();
    let class = |column: usize| classes[column];
    let long = table.rows.len() > WHOLE;
    let box_class = if long { "scroll long" } else { "scroll" };
    html.open("div", &[("class", &box_class), ("tabindex", &0)]);
    html.open("table", &[]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for (column, name) in table.columns.iter().enumerate() {
        html.open("th", &[("class", &class(column)), ("scope", &"col")]);
        html.leaf("button", &[("type", &"button")], name);
        html.close("th");
    }
    html.close("tr");
    html.close("thead");
    html.line();
    html.open("tbody", &[]);
    for row in &table.rows {
        html.open("tr", &[]);
        for column in 0..table.columns.len() {
            let text = row.get(column).map_or("", String::as_str);
            html.leaf("td", &[("class", &class(column))], text);
        }
        html.close("tr");
        html.line();
    }
    html.close("tbody");
    html.close("table");
    html.close("div");
    if long {
        let words = format!("{} rows; scroll for more", grouped(table.rows.len() as u64));
        html.leaf("p", &[("class", &"rows")], words);
    }
}

/// Whether it is one of the blocks that a sparkline is made of.
fn is_block(letter: char) -> bool {
    ('\u{2581}'..='\u{2588}').contains(&letter)
}
