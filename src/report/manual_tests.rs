//! The tables of `docs/output.md`, written from the columns.

use super::manual::{FieldDoc, tables};
use std::collections::{BTreeMap, BTreeSet};

/// Formats fields in Markdown: as a list, or as a table if other tools have names for them.
fn in_markdown(fields: &[&FieldDoc]) -> String {
    let mut lines = Vec::new();
    if fields.iter().any(|field| field.aliases.is_some()) {
        lines.push("| field | Zeek | ECS | IPFIX | type | meaning |".to_owned());
        lines.push("|---|---|---|---|---|---|".to_owned());
        for field in fields {
            let names = field.aliases.unwrap_or([""; 3]);
            let [zeek, ecs, ipfix] = names.map(|name| if name.is_empty() { "–" } else { name });
            let (own, kind, doc) = (quoted(field), kind(field), field.doc);
            lines.push(format!("| {own} | {zeek} | {ecs} | {ipfix} | {kind} | {doc} |"));
        }
    } else {
        lines.extend(fields.iter().map(|field| {
            let (own, kind, doc) = (quoted(field), kind(field), field.doc);
            format!("- {own} ({kind}): {doc}")
        }));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the type of a field, with a question mark if it may be missing.
fn kind(field: &FieldDoc) -> String {
    // All shares are numbers; the names of fields say other units.
    let kind = if field.unit == "share" { field.unit } else { field.kind };
    format!("{kind}{}", if field.nullable { "?" } else { "" })
}

/// Returns the names of a field as code.
fn quoted(field: &FieldDoc) -> String {
    let names: Vec<String> = field.names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Commands whose tables must agree about a field for it to be explained once for all of them.
const COMMON: usize = 3;

/// Returns whether a field refers to that of `count` with the same name.
fn is_as_for_count(field: &FieldDoc) -> bool {
    matches!(field.doc, "" | "as above" | "as for `count`")
}

/// Returns the text of each table: parameters and totals that several commands have stand in the table `common` alone, and fields
/// that an earlier table has stand there. Fields of rows stay in the order of the columns.
fn texts() -> Vec<(&'static str, String)> {
    let tables = tables();
    let command = |name: &'static str| name.split('.').next().expect("a name has a first part");
    let is_shared = |name: &str| name.ends_with("parameters") || name.ends_with("totals");
    let commands_with = |field: &FieldDoc| {
        let having =
            tables.iter().filter(|(name, fields)| is_shared(name) && fields.contains(field));
        having.map(|(name, _)| command(name)).collect::<BTreeSet<_>>().len()
    };
    // The command that explains a field: the field's own one if it can.
    let explained_by = |number: usize, field: &FieldDoc| {
        let before = || tables[..number].iter().filter(|(_, fields)| fields.contains(field));
        let own = command(tables[number].0);
        let first = before().map(|(name, _)| command(name)).next();
        if before().any(|(name, _)| command(name) == own) { Some(own) } else { first }
    };
    let mut common: Vec<&FieldDoc> = Vec::new();
    let mut texts = Vec::new();
    for (number, (name, fields)) in tables.iter().enumerate() {
        let mut own = Vec::new();
        let mut elsewhere: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for field in fields {
            let start = if commands_with(field) >= COMMON {
                if is_shared(name) && !common.contains(&field) {
                    common.push(field);
                }
                "[As everywhere](#common-fields)".to_owned()
            } else if is_as_for_count(field) {
                "As for `flowsieve count`".to_owned()
            } else if let Some(other) = explained_by(number, field) {
                if other == command(name) {
                    "As above".to_owned()
                } else {
                    let group = match other {
                        "search" | "stats" | "verify" => "index ",
                        _ => "",
                    };
                    format!("As for `flowsieve {group}{other}`")
                }
            } else {
                own.push(field);
                continue;
            };
            elsewhere.entry(start).or_default().push(quoted(field));
        }
        let mut text = if own.is_empty() { String::new() } else { in_markdown(&own) };
        for (start, names) in elsewhere {
            text = format!("{text}\n{start}: {}\n", names.join(", "));
        }
        texts.push((*name, text));
    }
    texts.push(("common", in_markdown(&common)));
    texts
}

/// Returns the manual with each table between its marks written anew.
fn written(manual: &str) -> String {
    const END: &str = "<!--end-->\n";
    texts().into_iter().fold(manual.to_owned(), |manual, (name, text)| {
        let mark = format!("<!--columns:{name}-->\n");
        let (before, rest) =
            manual.split_once(&mark).unwrap_or_else(|| panic!("the manual has no table {name}"));
        let (_, after) = rest.split_once(END).expect("a table has an end");
        format!("{before}{mark}{text}{END}{after}")
    })
}

#[test]
fn the_manual_has_the_columns_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/output.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let written = written(&manual);
    if std::env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
        std::fs::write(path, &written).unwrap();
        return;
    }
    assert!(
        manual == written,
        "docs/output.md is out of date: FLOWSIEVE_WRITE_DOCS=1 cargo test --lib report::manual writes it"
    );
    assert_eq!(manual.matches("<!--columns:").count(), texts().len());
}
