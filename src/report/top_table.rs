//! The largest keys for people: a block a slice, a bar a key, and what is known of the whole.

use super::INTERRUPTED;
use super::count_table::write_read;
use super::look::Look;
use super::number::{grouped, size, slices_of, time};
use super::table::{Heading, bold_text, fitted, head, layout, wrapped};
use super::table_rows::TableRows;
use super::top_model::TopParameters;
use crate::top::{Certainty, TopKey, TopSlice, TopSummary};
use std::io::{self, Write};

/// Columns of a line that does not go to a terminal.
const USUAL_WIDTH: usize = 120;

/// Columns of the longest and of the shortest bar.
const LONGEST_BAR: usize = 40;
const SHORTEST_BAR: usize = 8;

/// Letters of a key that have room in its column, at least.
const LEAST_KEY: usize = 16;

/// What stands for a value that is not there.
const NONE: &str = "–";

#[derive(Debug)]
pub(super) struct TopTable<W: Write> {
    out: W,
    parameters: TopParameters,
    look: Look,
    /// Columns of a line.
    width: usize,
    rows: TableRows,
    /// The sentence about columns that have no room.
    gone: Option<String>,
    any: bool,
    /// Keys of slices without an exact answer that are not certain.
    uncertain: u64,
    /// The most others of a key that is not held, over all slices.
    most_unheld: Option<u64>,
}

impl<W: Write> TopTable<W> {
    pub(super) fn begin(mut out: W, parameters: &TopParameters, look: Look) -> io::Result<Self> {
        let width = look.width.unwrap_or(USUAL_WIDTH);
        for line in wrapped(&title(parameters), width) {
            writeln!(out, "{line}")?;
        }
        Ok(Self {
            out,
            parameters: parameters.clone(),
            look,
            width,
            rows: TableRows::of(look),
            gone: None,
            any: false,
            uncertain: 0,
            most_unheld: None,
        })
    }

    pub(super) fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        if slice.exact.is_none() {
            let uncertain = slice.keys.iter();
            let uncertain = uncertain.filter(|key| key.certainty != Certainty::Certain);
            self.uncertain += uncertain.count() as u64;
            self.most_unheld = self.most_unheld.max(slice.most_unheld);
        }
        if slice.keys.is_empty() {
            return Ok(());
        }
        self.any = true;
        let mut block = vec![String::new()];
        block.extend(wrapped(&self.about(slice), self.width));
        self.keys(slice, &mut block);
        self.rows.row(&mut self.out, None, block.join("\n"))
    }

    /// The slice in a sentence.
    fn about(&self, slice: &TopSlice) -> String {
        let pairs = match slice.exact {
            Some(exact) => grouped(exact),
            None => format!("about {}", grouped(slice.distinct.round() as u64)),
        };
        let zone = self.parameters.selected.zone;
        let when = match self.parameters.slice_ns {
            None => String::new(),
            Some(width) if width % 1_000_000_000 == 0 => {
                format!("{}: ", time(slice.start_ns, 0, zone))
            }
            Some(_) => format!("{}: ", time(slice.start_ns, 9, zone)),
        };
        let part = if slice.partial { " (slice covered in part)" } else { "" };
        let (listed, plural) = (grouped(slice.keys.len() as u64), &self.parameters.keys_plural);
        let all =
            slice.exact_keys.map_or_else(String::new, |keys| format!(" of {}", grouped(keys)));
        format!(
            "{when}{plural}: {listed}{all}; {pairs} distinct pairs in {} packets{part}",
            grouped(slice.packets)
        )
    }

    /// Appends the lines of its keys.
    fn keys(&mut self, slice: &TopSlice, lines: &mut Vec<String>) {
        let exact = slice.exact.is_some();
        let rows: Vec<Vec<String>> = slice.keys.iter().map(|key| self.cells(key, exact)).collect();
        // How soon a column goes where there is no room stands behind its name.
        let mut heads = vec![("", false, 0), (self.parameters.by.as_str(), true, 0)];
        if exact {
            heads.extend([("exact", false, 0), ("estimate", false, 3)]);
        } else {
            heads.extend([("estimate", false, 0), ("lower", false, 4), ("upper", false, 4)]);
        }
        heads.extend([("share", false, 5), ("packets", false, 2), ("bytes", false, 1)]);
        if self.shows_certainty(exact) {
            heads.push(("", true, 0));
        }
        let goes: Vec<u8> = heads.iter().map(|(.., goes)| *goes).collect();
        let heads = heads.into_iter();
        let heads: Vec<(String, bool)> =
            heads.map(|(text, left, _)| (text.to_owned(), left)).collect();
        let columns = fitted(&heads, &rows).into_iter().zip(goes);
        let mut columns: Vec<Heading> = columns.map(|(head, goes)| head.goes(goes)).collect();
        let room = |columns: &[Heading]| {
            let used: usize = columns.iter().map(|column| column.width + 1).sum();
            self.width.saturating_sub(used + 1)
        };
        // Long keys are written whole, and make their own lines longer rather than all.
        let missing = SHORTEST_BAR.saturating_sub(room(&columns));
        let key = columns[1].width;
        columns[1].width = key.saturating_sub(missing).max(LEAST_KEY.min(key));
        let layout = layout(&columns, self.look.width);
        self.gone = self.gone.take().or_else(|| layout.remark());
        let columns = &layout.headings;
        let bar = room(columns).min(LONGEST_BAR);
        lines.push(bold_text(self.look.bold, &head(columns)));
        let most = slice.keys.iter().map(TopKey::best).fold(0.0, f64::max);
        let bar_at = columns.iter().map(|column| column.width + 1).sum::<usize>();
        for (key, cells) in slice.keys.iter().zip(rows) {
            let mut text = layout.line(cells);
            let missing = bar_at.saturating_sub(text.chars().count());
            if bar >= SHORTEST_BAR && missing > 0 {
                text.extend(std::iter::repeat_n(' ', missing));
                text.push_str(&bar_of(key.best() / most, bar));
            }
            lines.push(text);
        }
    }

    fn shows_certainty(&self, exact: bool) -> bool {
        !exact && self.parameters.most.is_none()
    }

    fn cells(&self, key: &TopKey, exact: bool) -> Vec<String> {
        let spread = key.spread.as_ref();
        let number = |number: Option<f64>| {
            number.map_or_else(|| NONE.to_owned(), |number| grouped(number.round() as u64))
        };
        let mut cells = vec![grouped(key.rank), key.key.clone()];
        if exact {
            cells.push(number(key.exact.as_ref().map(|exact| exact.distinct as f64)));
        }
        cells.push(number(spread.map(|spread| spread.estimate)));
        if !exact {
            cells.push(number(spread.map(|spread| spread.lower as f64)));
            cells.push(number(spread.map(|spread| spread.upper as f64)));
        }
        cells.push(key.share.map_or_else(|| NONE.to_owned(), share));
        cells.push(grouped(key.packets()));
        cells.push(grouped(key.bytes()));
        if self.shows_certainty(exact) {
            cells.push(key.certainty.name().to_owned());
        }
        cells
    }

    pub(super) fn finish(mut self, summary: &TopSummary) -> io::Result<W> {
        self.rows.finish(&mut self.out)?;
        let mut said: Vec<String> = self.gone.take().into_iter().collect();
        if !self.any {
            said.push(nothing(&self.parameters));
        }
        if summary.totals.interrupted {
            said.push(INTERRUPTED.to_owned());
        }
        said.extend(remarks(&self.parameters, summary));
        if self.uncertain > 0 && self.parameters.most.is_none() {
            said.push(format!(
                "{} rows are not certain: likely ones have an estimate of {} or more, possible ones only an upper bound",
                grouped(self.uncertain),
                grouped(self.parameters.least)
            ));
        }
        if let Some(most) = self.most_unheld {
            said.push(format!(
                "keys that the summary does not hold have at most {} others that the filter noticed",
                grouped(most)
            ));
        }
        writeln!(self.out)?;
        for text in said {
            for line in wrapped(&text, self.width) {
                writeln!(self.out, "{line}")?;
            }
        }
        write_read(&mut self.out, &summary.totals, self.look)?;
        if let Some(words) = self.parameters.selected.words(&summary.inputs) {
            for line in wrapped(&words, self.width) {
                writeln!(self.out, "{line}")?;
            }
        }
        Ok(self.out)
    }
}

/// Where no key has as many others as are asked for.
pub(super) fn nothing(parameters: &TopParameters) -> String {
    format!(
        "none of the {} has {} or more distinct {}",
        parameters.keys_plural,
        grouped(parameters.least),
        parameters.others_plural
    )
}

/// What people should know of the whole.
pub(super) fn remarks(parameters: &TopParameters, summary: &TopSummary) -> Vec<String> {
    let recall = recall(parameters, summary).into_iter();
    recall.chain(limits(summary)).collect()
}

/// How many keys of the exact answer the summary finds.
pub(super) fn recall(parameters: &TopParameters, summary: &TopSummary) -> Option<String> {
    let memory = size(parameters.memory_bytes);
    let recall = summary.recall.as_ref().filter(|recall| recall.keys > 0);
    recall.map(|recall| {
        let [keys, found] = [recall.keys, recall.found].map(grouped);
        let mut text = if recall.keys == 1 && recall.found == 1 {
            format!("the summary alone ({memory}) finds the same key")
        } else if recall.keys == recall.found {
            let all = if recall.keys == 2 { "both".to_owned() } else { format!("all {keys}") };
            format!("the summary alone ({memory}) finds {all} keys of the exact answer")
        } else {
            let share = recall.found as f64 / recall.keys as f64;
            format!(
                "the summary alone ({memory}) finds {found} of the {keys} keys of the exact answer (recall {})",
                self::share(share)
            )
        };
        if !recall.missed.is_empty() {
            let named: Vec<&str> = recall.missed.iter().take(5).map(String::as_str).collect();
            let more = (recall.keys - recall.found) as usize > named.len();
            let others = if more { " and others" } else { "" };
            text = format!("{text}; it misses {}{others}", named.join(" "));
        }
        text
    })
}

/// Which bounds of memory the run met.
pub(super) fn limits(summary: &TopSummary) -> Vec<String> {
    let mut said = Vec::new();
    let all = grouped(summary.slices);
    if summary.crowded > 0 {
        said.push(format!(
            "the filter missed more than half of the new pairs at the end of {} of {all} slices: estimates are unbiased, but far less exact; give more --memory",
            grouped(summary.crowded)
        ));
    }
    if summary.over_limit > 0 {
        said.push(format!(
            "the exact set passed its limit in {} of {all} slices; raise it with --exact-limit, if this machine has the memory",
            grouped(summary.over_limit)
        ));
    }
    said
}

/// What is listed, in a line.
fn title(parameters: &TopParameters) -> String {
    let exact = match parameters.exact_limit_bytes {
        Some(_) => "exact count beside",
        None => "no exact count",
    };
    let seed = match parameters.seed {
        0 => String::new(),
        seed => format!(", seed {seed}"),
    };
    let each = parameters.slice_ns.map_or("", |_| " a slice");
    format!(
        "{}; filter and summary {}{each}, {exact}{seed}{}",
        subject(parameters),
        size(parameters.memory_bytes),
        parameters.selected.zone_words()
    )
}

/// What is listed.
pub(super) fn subject(parameters: &TopParameters) -> String {
    let number = match (parameters.most, parameters.least) {
        (Some(_), _) => "the most".to_owned(),
        (None, least) => format!("{} or more", grouped(least)),
    };
    format!(
        "{} with {number} distinct {} {}",
        parameters.keys_plural,
        parameters.others_plural,
        slices_of(parameters.slice_ns)
    )
}

/// A share with one digit behind the point.
pub(super) fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        return "<0.1 %".to_owned();
    }
    format!("{percent:.1} %")
}

/// A bar of at most this many columns.
fn bar_of(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = eighths.max(1);
    let mut bar = "█".repeat(eighths / 8);
    if let Some(rest) = (eighths % 8).checked_sub(1) {
        bar.push(EIGHTHS[rest]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar_of(1.0, 4), "████");
        assert_eq!(bar_of(0.5, 4), "██");
        assert_eq!(bar_of(0.53, 4), "██▏");
        assert_eq!(bar_of(0.0, 4), "▏");
        assert_eq!(bar_of(f64::NAN, 4), "▏");
    }
}
