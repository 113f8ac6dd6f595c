//! The tables of `docs/output.md`, written from the columns.

use super::manual::{FieldDoc, tables};

/// Formats a table as Markdown.
fn in_markdown(fields: &[FieldDoc]) -> String {
    let others = fields.iter().any(|field| field.aliases.is_some());
    let mut lines = if others {
        vec![
            "| field | Zeek | ECS | IPFIX | type | meaning |".to_owned(),
            "|---|---|---|---|---|---|".to_owned(),
        ]
    } else {
        vec!["| field | type | meaning |".to_owned(), "|---|---|---|".to_owned()]
    };
    for field in fields {
        let quoted = |name: &str| format!("`{name}`");
        let names: Vec<String> = field.names.iter().map(|name| quoted(name)).collect();
        let mut cells = vec![names.join(", ")];
        if others {
            let [zeek, ecs, ipfix] = field.aliases.unwrap_or(["", "", ""]);
            let or_dash = |name: &str, text: String| match name {
                "" => "–".to_owned(),
                _ => text,
            };
            cells.push(or_dash(zeek, quoted(zeek)));
            cells.push(or_dash(ecs, quoted(ecs)));
            cells.push(or_dash(ipfix, ipfix.to_owned()));
        }
        let unit = if field.unit.is_empty() { "" } else { ", " };
        let null = if field.nullable { " or null" } else { "" };
        cells.push(format!("{}{unit}{}{null}", field.kind, field.unit));
        let doc = if field.doc.is_empty() { "as above" } else { field.doc };
        cells.push(doc.to_owned());
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the manual with each table between its marks written anew.
fn written(manual: &str) -> String {
    const END: &str = "<!-- end -->\n";
    tables().into_iter().fold(manual.to_owned(), |manual, (name, fields)| {
        let table = in_markdown(&fields);
        let mark = format!("<!-- columns: {name} -->\n");
        let (before, rest) =
            manual.split_once(&mark).unwrap_or_else(|| panic!("the manual has no table {name}"));
        let (_, after) = rest.split_once(END).expect("a table has an end");
        format!("{before}{mark}{table}{END}{after}")
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
    assert_eq!(manual.matches("<!-- columns: ").count(), tables().len());
}
