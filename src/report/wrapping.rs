//! Sentences in lines of limited width.

use flowsieve_engine::internal::Shown;
use std::borrow::Cow;

/// Spaces before a cell that is printed below its row.
pub(super) const BELOW: usize = 4;

/// Breaks a text at spaces into lines of at most `width` characters.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, width)
}

/// The same, with another width of the lines after the first.
pub(super) fn hanging(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = text.shown().to_string();
    let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        // A number stays beside its unit.
        let unit = words.next_if(|next| is_unit(next));
        let word = unit.map_or(Cow::Borrowed(word), |unit| format!("{word} {unit}").into());
        let width = if lines.len() > 1 { others } else { first };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

/// The lines of a text below a row.
pub(super) fn below(text: &str, width: usize) -> impl Iterator<Item = String> {
    let lines = wrapped(text, width.saturating_sub(BELOW)).into_iter();
    lines.map(|line| format!("{:BELOW$}{line}", ""))
}

/// Whether a word is a unit, perhaps followed by punctuation.
fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
    matches!(unit, "%" | "B" | "KiB" | "MiB" | "GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_beside_their_units() {
        let text = "a mean error of 15 %), at 512 B each (504 B).";
        assert_eq!(wrapped(text, 18), ["a mean error of", "15 %), at 512 B", "each (504 B)."]);
        assert_eq!(wrapped("% 1", 1), ["%", "1"]);
    }
}
