//! A page as Markdown, with its figures as images beside it.

use super::figure::{Block, DataTable, Page};
use std::io::{self, Write};

/// Writes the page. A figure is the image `<folder>/<name>.svg`.
pub(super) fn write(page: &Page, folder: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# {}", escaped(&page.title))?;
    writeln!(out)?;
    for sentence in &page.summary {
        writeln!(out, "- {}", escaped(sentence))?;
    }
    for section in &page.sections {
        writeln!(out, "\n## {}", escaped(&section.title))?;
        for block in &section.blocks {
            writeln!(out)?;
            match block {
                Block::Text(text) => writeln!(out, "{}", escaped(text))?,
                Block::Table(rows) => table(rows, out)?,
                Block::Figure(figure) => {
                    let title = escaped(&figure.title);
                    writeln!(out, "![{title}]({folder}/{}.svg)", figure.name)?;
                    writeln!(out, "\n*{title}.* {}", escaped(&figure.caption))?;
                }
            }
        }
    }
    Ok(())
}

fn table(table: &DataTable, out: &mut impl Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let texts = |cells: &[String]| cells.iter().map(|cell| escaped(cell)).collect();
    writeln!(out, "{}", line(texts(&table.columns)))?;
    let rules = table.numeric.iter();
    let rules = rules.map(|&numeric| if numeric { "--:" } else { "---" }.to_owned());
    writeln!(out, "{}", line(rules.collect()))?;
    for row in &table.rows {
        writeln!(out, "{}", line(texts(row)))?;
    }
    Ok(())
}

/// Text that stays text: what comes from a capture's name must not become markup. Code between
/// backquotes is our own and stays.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\n' | '\r' => safe.push(' '),
            '|' | '*' | '_' | '[' | ']' | '\\' | '^' | '~' | '$' => {
                safe.push('\\');
                safe.push(character);
            }
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::PageSection;

    #[test]
    fn text_stays_text() {
        let page = Page {
            zone: crate::zone::Zone::UTC,
            warnings: Vec::new(),
            title: "<b> & [x](y)".into(),
            summary: vec!["a|b".into()],
            sections: vec![PageSection {
                title: "s".into(),
                blocks: vec![Block::Table(DataTable {
                    columns: vec!["n\nm".into(), "*v*".into()],
                    numeric: vec![true, false],
                    rows: vec![vec!["1".into(), "a|b".into()]],
                })],
            }],
        };
        let mut text = Vec::new();
        write(&page, "figures", &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "# &lt;b> &amp; \\[x\\](y)\n\n- a\\|b\n\n## s\n\n| n m | \\*v\\* |\n| --: | --- |\n| 1 | a\\|b |\n"
        );
    }
}
