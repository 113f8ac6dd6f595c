//! Documents as HTML pages: one file that needs nothing else.
//!
//! The page is complete without its script, which adds values under the pointer, series that can be
//! hidden, sorting, and any part of the time at full width. A content security policy allows the
//! one style and the one script that are written here, by their digests, and nothing else: no
//! request can leave the page, and a name from a capture could do nothing even if it became markup.

#[cfg(test)]
mod tests;

use super::document::{Block, Document, Medium, TableView, as_sentence};
use super::figure::{Drawing, Figure};
use super::markup::{Attributes, Markup, json_in_script};
use super::number::grouped;
use super::terminal::bar;
use super::{chart_rows, svg};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("time.js"), include_str!("page.js"));

/// Number of rows up to which a table is shown as a whole.
const WHOLE: usize = 14;

/// Number of characters up to which the cells of a column stay in one line: any address does.
const SHORT: usize = 43;

/// Longest bar of a table, in characters.
const BAR: usize = 16;

/// The document as a page.
pub fn page(document: &Document) -> String {
    let style = format!("\n{STYLE}{}", svg::STYLE);
    let script = format!("\n{SCRIPT}");
    let sources = format!("style-src '{}'; script-src '{}'", digest(&style), digest(&script));
    let policy = format!("default-src 'none'; {sources}; base-uri 'none'; form-action 'none'");
    let mut html = Markup::default();
    html.own("<!DOCTYPE html>\n<html lang=\"en\"><head>\n<meta charset=\"utf-8\"/>");
    html.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
    html.own("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    let generator = concat!("flowsieve ", env!("CARGO_PKG_VERSION"));
    html.empty("meta", &[("name", &"generator"), ("content", &generator)]);
    html.line();
    html.leaf("title", &[], &document.title);
    html.own(&format!("<style>{style}</style></head>\n<body>\n"));
    let places = json!(body(&mut html, document)).to_string();
    html.open("script", &[("type", &"application/json"), ("id", &"places")]);
    html.own(&json_in_script(&places));
    html.close_line("script");
    html.own(&format!("<script>{script}</script></body></html>\n"));
    html.finish()
}

/// The digest by which a policy allows a style or a script.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Writes the content. Returns where the parts of each figure are.
fn body(html: &mut Markup, document: &Document) -> BTreeMap<String, svg::Geometry> {
    head(html, document);
    html.open("main", &[]);
    html.line();
    let mut places = BTreeMap::new();
    let mut is_open = false;
    for block in document.shown_on(Medium::Page) {
        match block {
            Block::Section(title) => {
                if is_open {
                    html.close_line("section");
                }
                is_open = true;
                html.open("section", &[]);
                html.leaf("h2", &[], title);
            }
            Block::Sentence(text) => html.leaf("p", &[], as_sentence(text)),
            Block::Command(words) => html.leaf("pre", &[], words.join(" ")),
            Block::Table(table) => data_table(html, table),
            Block::Figure(figure) => {
                let place = chart(html, figure, places.len());
                places.insert(format!("figure-{}", places.len()), place);
            }
            // Answers and warnings are in the head.
            Block::Answer(_) | Block::Warning(_) | Block::Gap => continue,
        }
        html.line();
    }
    if is_open {
        html.close_line("section");
    }
    html.close_line("main");
    let of = if document.zone.is_utc() { "" } else { "of " };
    let about = concat!(
        "Made by flowsieve ",
        env!("CARGO_PKG_VERSION"),
        ". This page is one file and asks nothing of the network. Times are"
    );
    html.leaf("footer", &[], format!("{about} {of}{}.", document.zone));
    html.line();
    places
}

/// Writes the title, the answers and the warnings.
fn head(html: &mut Markup, document: &Document) {
    html.open("header", &[]);
    html.leaf("h1", &[], &document.title);
    list(html, &[("class", &"summary")], document.answers());
    list(html, &[("class", &"warnings"), ("aria-label", &"Warnings")], document.warnings());
    for line in document.provenance() {
        html.leaf("p", &[("class", &"provenance")], line);
    }
    html.close_line("header");
}

fn list<'a>(
    html: &mut Markup,
    attributes: Attributes<'_>,
    sentences: impl Iterator<Item = &'a str>,
) {
    let mut sentences = sentences.peekable();
    if sentences.peek().is_none() {
        return;
    }
    html.open("ul", attributes);
    sentences.for_each(|sentence| html.leaf("li", &[], as_sentence(sentence)));
    html.close("ul");
}

/// Writes a figure with its legend, its caption, and its values as a table.
fn chart(html: &mut Markup, figure: &Figure, number: usize) -> svg::Geometry {
    let drawn = svg::draw(figure, None);
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
    legend(html, &svg::keys(figure));
    // On paper, a figure that is higher than wide may take a page.
    let class = if drawn.geometry.is_tall() { "plot tall" } else { "plot" };
    let hint = format!("{}; arrow keys show its values", figure.title);
    html.open(
        "div",
        &[("class", &class), ("tabindex", &0), ("role", &"group"), ("aria-label", &hint)],
    );
    html.own(&drawn.svg);
    html.close_line("div");
    let (table, note) = chart_rows::table(figure);
    html.own("<details><summary>Values as a table</summary>");
    if let Some(note) = note {
        html.leaf("p", &[], note);
    }
    data_table(html, &table);
    html.own("</details></figure>");
    drawn.geometry
}

/// Writes a button for each series.
fn legend(html: &mut Markup, keys: &[svg::Key]) {
    if keys.is_empty() {
        return;
    }
    let about = "Series; press one to hide or show it";
    html.open("div", &[("class", &"legend"), ("role", &"group"), ("aria-label", &about)]);
    let icon: Attributes<'_> = &[
        ("class", &"fs"),
        ("viewBox", &"0 0 26 14"),
        ("width", &26),
        ("height", &14),
        ("aria-hidden", &"true"),
    ];
    for key in keys {
        html.open("button", &[("type", &"button"), ("aria-pressed", &"true")]);
        let class = format!("fs {}", key.class);
        html.open("svg", icon);
        html.open("g", &[("class", &class)]);
        svg::swatch(html, key.swatch, 0.0, 7.0);
        html.own("</g></svg>");
        html.leaf("span", &[], &key.name);
        html.close("button");
    }
    html.close("div");
}

/// Writes a table that can be sorted by its columns.
fn data_table(html: &mut Markup, table: &TableView) {
    let mut classes: Vec<&str> = (0..table.headings.len()).map(|i| class(table, i)).collect();
    let mut names: Vec<&str> = table.headings.iter().map(|heading| &*heading.text).collect();
    if !table.bars.is_empty() {
        classes.push("short blocks");
        names.push("");
    }
    let long = table.rows.len() > WHOLE;
    let box_class = if long { "scroll long" } else { "scroll" };
    html.open("div", &[("class", &box_class), ("tabindex", &0)]);
    html.own("<table>");
    if table.has_head() {
        html.own("<thead><tr>");
        for (class, name) in classes.iter().zip(names) {
            html.open("th", &[("class", class), ("scope", &"col")]);
            html.leaf("button", &[("type", &"button")], name);
            html.close("th");
        }
        html.own("</tr></thead>\n");
    }
    html.open("tbody", &[]);
    for (number, row) in table.rows.iter().enumerate() {
        let bar = table.bars.get(number).map(|share| bar(*share, BAR));
        html.open("tr", &[]);
        for (class, text) in classes.iter().zip(row.iter().chain(&bar)) {
            html.leaf("td", &[("class", class)], text);
        }
        html.close_line("tr");
    }
    html.own("</tbody></table></div>");
    if long {
        let words = format!("{} rows; scroll for more", grouped(table.rows.len() as u64));
        html.leaf("p", &[("class", &"rows")], words);
    }
}

/// The class of a column.
fn class(table: &TableView, column: usize) -> &'static str {
    let cells = || table.rows.iter().filter_map(|row| row.get(column));
    let is_block = |letter: char| ('\u{2581}'..='\u{2588}').contains(&letter);
    if !table.headings[column].is_left {
        "number"
    } else if cells().any(|cell| !cell.is_empty()) && cells().all(|cell| cell.chars().all(is_block))
    {
        "short blocks"
    } else if cells().all(|cell| cell.chars().count() <= SHORT) {
        "short"
    } else {
        "text"
    }
}
