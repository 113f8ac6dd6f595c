//! Markup: the one place where names become part of a figure or a page.
//!
//! All text and all attributes are escaped here. Names from captures are hostile: they must not
//! become markup, nor change the direction of the surrounding text.

use std::fmt::{self, Display, Write as _};

/// Attributes of an element, with trusted names and untrusted values.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// Writes elements. The output is well-formed HTML and, except for raw text, well-formed XML.
#[derive(Debug, Default)]
pub(super) struct Markup {
    text: String,
}

impl Markup {
    /// Begins an element.
    pub(super) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.text.push('>');
    }

    /// Ends an element.
    pub(super) fn close(&mut self, tag: &'static str) {
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    /// Ends an element, and the line.
    pub(super) fn close_line(&mut self, tag: &'static str) {
        self.close(tag);
        self.line();
    }

    /// An element without contents.
    pub(super) fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.text.push_str("/>");
    }

    /// An element with text in it.
    pub(super) fn leaf(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        text: impl Display,
    ) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// Text, escaped.
    pub(super) fn text(&mut self, text: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(Escaping(&mut self.text), "{text}");
    }

    /// Appends trusted text (a style sheet, a script, other markup) without escaping.
    pub(super) fn own(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a line feed, which makes the text readable.
    pub(super) fn line(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn tag(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            let _ = write!(Escaping(&mut self.text), "{value}");
            self.text.push('"');
        }
    }
}

/// Escapes what goes through it.
struct Escaping<'a>(&'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c if is_unwelcome(c) => self.0.push(char::REPLACEMENT_CHARACTER),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Whether XML does not allow the character, or it changes the direction of text.
fn is_unwelcome(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{fffe}' | '\u{ffff}')
}

/// A JSON document as the contents of a script element, which it cannot end.
pub(super) fn json_in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// A length in a drawing, with the decimals that are visible.
pub(super) fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        let hostile = "</script><img src=x onerror=\"a('b')\">&\u{0}\u{202e}";
        let mut markup = Markup::default();
        markup.leaf("p", &[("title", &hostile)], hostile);
        let text = markup.finish();
        let document = roxmltree::Document::parse(&text).unwrap();
        let paragraph = document.root_element();
        let seen = "</script><img src=x onerror=\"a('b')\">&\u{fffd}\u{fffd}";
        assert_eq!(paragraph.text(), Some(seen));
        assert_eq!(paragraph.attribute("title"), Some(seen));
        assert_eq!(paragraph.children().count(), 1);
    }

    #[test]
    fn json_cannot_end_its_script() {
        let json = serde_json::to_string("</script><!--&\u{2028}").unwrap();
        let text = json_in_script(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        let back: String = serde_json::from_str(&text).unwrap();
        assert_eq!(back, "</script><!--&\u{2028}");
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(px(3.0), "3");
        assert_eq!(px(3.18), "3.2");
        assert_eq!(px(-0.01), "0");
    }
}
