//! Documents as Markdown, with their figures as image files.

use super::document::{Block, Document, Medium, TableView, as_sentence};
use std::io::{self, Write};

/// Writes the document. A figure is the image `<folder>/<name>.svg`.
pub(super) fn write(document: &Document, folder: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# {}\n", escaped(&document.title))?;
    for block in document.shown_on(Medium::Page) {
        match block {
            Block::Section(title) => writeln!(out, "\n## {}", escaped(title))?,
            Block::Answer(text) | Block::Warning(text) => {
                writeln!(out, "- {}", escaped(&as_sentence(text)))?;
            }
            Block::Sentence(text) => writeln!(out, "\n{}", escaped(&as_sentence(text)))?,
            Block::Command(words) => writeln!(out, "\n    {}", words.join(" "))?,
            Block::Gap => {}
            Block::Table(view) => table(view, out)?,
            Block::Figure(figure) => {
                let title = escaped(&figure.title);
                writeln!(out, "\n![{title}]({folder}/{}.svg)", figure.name)?;
                writeln!(out, "\n*{title}.* {}", escaped(&figure.caption))?;
            }
        }
    }
    Ok(())
}

fn table(table: &TableView, out: &mut impl Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let names = table.headings.iter().map(|heading| escaped(&heading.text));
    let rules = table.headings.iter().map(|heading| if heading.is_left { "---" } else { "--:" });
    writeln!(out, "\n{}", line(names.collect()))?;
    writeln!(out, "{}", line(rules.map(str::to_owned).collect()))?;
    for row in &table.rows {
        writeln!(out, "{}", line(row.iter().map(|cell| escaped(cell)).collect()))?;
    }
    Ok(())
}

/// Escapes a text, so that the name of a capture cannot become markup. Code between backquotes is
/// our own and stays.
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
    use crate::report::heading::Heading;

    #[test]
    fn text_stays_text() {
        let headings = [Heading::number("n\nm"), Heading::text("*v*")];
        let table = TableView::new(headings, [vec!["1".into(), "a|b".into()]]);
        let blocks =
            [Block::Answer("a|b.".into()), Block::Section("s".into()), Block::Table(table)];
        let mut document = Document { title: "<b> & [x](y)".into(), ..Document::default() };
        document.both(blocks);
        let mut text = Vec::new();
        write(&document, "figures", &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "# &lt;b> &amp; \\[x\\](y)\n\n- a\\|b.\n\n## s\n\n| n m | \\*v\\* |\n| --: | --- |\n| 1 | a\\|b |\n"
        );
    }
}
