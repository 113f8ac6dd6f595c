//! The largest keys as a page: the answer in words, the keys over time, a table.
//!
//! A bounded number of slices is kept: in each part of the time the one with the most pairs.

use super::document::{Block, Document, TextColumns};
use super::figure::{Axis, Drawing, Figure, Scale, SeriesStyle};
use super::heading::Heading;
use super::number::{grouped, rounded};
use super::over_time::OverTime;
use super::run_view::{captures, inputs_table, problems};
use super::selection::zone_words;
use super::sparkline::Sparkline;
use super::svg::written;
use super::top_model::ranked_number;
use super::top_table::{closing, heading, key_view, subject, title, unheld};
use super::traffic_page::skipped;
use crate::pipeline::SliceSink;
use crate::top::{Certainty, RankBy, Spread, TopKey, TopPlan, TopSlice, TopSummary};
use std::collections::HashMap;
use std::io;

/// Number of slices that are kept, and of keys in each.
const MOST_SLICES: usize = 1_000;
const MOST_KEYS: usize = 200;

/// Number of keys that are drawn, and that the table lists.
const DRAWN: usize = 10;
const LISTED: usize = 50;

/// Number of keys of a single slice that are drawn.
const DRAWN_ONCE: usize = 20;

/// Gathers slices for a page.
#[derive(Debug, Default)]
pub struct TopPage {
    kept: Vec<Kept>,
    /// The first slice, until there are more.
    only: Option<TopSlice>,
    seen: u64,
    /// One slice in this many is kept.
    each: u64,
    /// Number of slices that the last kept one stands for so far.
    in_last: u64,
    /// The largest key of all slices.
    largest: Option<Largest>,
    without_exact: u64,
    /// Upper bound of packets or bytes of any key outside the table, in slices without an exact count.
    most_unheld: Option<u64>,
}

/// A slice that is kept.
#[derive(Clone, Debug)]
struct Kept {
    start_ns: i64,
    end_ns: i64,
    pairs: f64,
    keys: Vec<(String, f64)>,
    partial: bool,
}

#[derive(Clone, Debug)]
struct Largest {
    key: TopKey,
    start_ns: i64,
    /// Another key has the same number.
    tied: bool,
}

impl SliceSink<TopSlice> for TopPage {
    fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        self.seen += 1;
        self.only = (self.seen == 1).then(|| first_keys(slice));
        self.without_exact += u64::from(slice.exact.is_none());
        if slice.exact.is_none() {
            self.most_unheld = self.most_unheld.max(slice.most_unheld);
        }
        self.update_largest(slice);
        let keys = slice.keys.iter().take(MOST_KEYS);
        self.keep(Kept {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            pairs: slice.sum,
            keys: keys.map(|key| (key.key.clone(), key.number)).collect(),
            partial: slice.partial,
        });
        Ok(())
    }
}

impl TopPage {
    fn update_largest(&mut self, slice: &TopSlice) {
        let equals = |a: &TopKey, b: &TopKey| rounded(a.number) == rounded(b.number);
        if let Some(Largest { key, tied, .. }) = &mut self.largest {
            *tied |= slice.keys.iter().any(|other| other.key != key.key && equals(other, key));
        }
        let Some(first) = slice.keys.first() else { return };
        if self.largest.as_ref().is_none_or(|largest| first.number > largest.key.number) {
            self.largest = Some(Largest {
                key: first.clone(),
                start_ns: slice.start_ns,
                tied: slice.keys.get(1).is_some_and(|second| equals(first, second)),
            });
        }
    }

    fn keep(&mut self, slice: Kept) {
        self.each = self.each.max(1);
        match self.kept.last_mut() {
            Some(last) if self.in_last < self.each => {
                self.in_last += 1;
                if slice.pairs > last.pairs {
                    *last = slice;
                }
            }
            _ => {
                if self.kept.len() == 2 * MOST_SLICES {
                    self.halve();
                }
                self.kept.push(slice);
                self.in_last = 1;
            }
        }
    }

    /// Keeps of every two slices the one with more pairs.
    fn halve(&mut self) {
        let larger = |two: &[Kept]| match two {
            [one, other] if other.pairs > one.pairs => other.clone(),
            _ => two[0].clone(),
        };
        self.kept = self.kept.chunks(2).map(larger).collect();
        self.each *= 2;
    }

    /// The page of all slices.
    pub fn finish(self, plan: &TopPlan, summary: &TopSummary) -> Document {
        let name = captures(&summary.inputs);
        let zone = plan.trace.selection.zone;
        let mut page = Document {
            title: format!("{name}: {}{}", subject(plan), zone_words(zone)),
            label: title(plan),
            zone,
            ..Document::default()
        };
        page.page(self.largest(plan).map(Block::Answer));
        if self.without_exact > 0 && summary.over_limit == 0 {
            let text = "errors were not measured: there is no exact count to compare with";
            page.page([Block::Answer(text.to_owned())]);
        }
        let most_unheld = self.most_unheld.filter(|_| plan.rank_by != RankBy::Distinct);
        let remarks = most_unheld.map(|most| unheld(plan, most)).into_iter().collect();
        page.page(closing(plan, summary, self.largest.is_some(), remarks));
        page.page(problems(&summary.inputs, summary.totals.interrupted));
        match &self.only {
            Some(slice) if slice.keys.is_empty() => {}
            Some(slice) => page.page(single(plan, slice)),
            None => {
                page.page(self.over_time(plan));
                page.page(self.table(plan));
            }
        }
        if !summary.totals.skipped.is_empty() {
            let figure = skipped("skipped", "a key", &summary.totals.skipped);
            page.section("Packets without a key", [Block::Figure(figure)]);
        }
        page.section("What was read", [inputs_table(&summary.inputs)]);
        page
    }

    /// Keys with their largest number in one of these slices, and the number of them that list it;
    /// the largest first, and of equal ones the one that a slice lists first.
    fn ranked<'a>(slices: impl Iterator<Item = &'a Kept>) -> Vec<(String, f64, u64)> {
        let mut keys: HashMap<&str, (f64, usize, u64)> = HashMap::new();
        for (place, (key, number)) in slices.flat_map(|slice| &slice.keys).enumerate() {
            let entry = keys.entry(key).or_insert((f64::NEG_INFINITY, 0, 0));
            if *number > entry.0 {
                (entry.0, entry.1) = (*number, place);
            }
            entry.2 += 1;
        }
        let mut ranked: Vec<_> = keys.into_iter().collect();
        ranked.sort_unstable_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let numbers = |(key, (number, _, slices)): (&str, _)| (key.to_owned(), number, slices);
        ranked.into_iter().map(numbers).collect()
    }

    /// The numbers of a key in the kept slices; not a number where the key is not listed.
    fn series(&self, key: &str) -> Vec<f64> {
        let number = |slice: &Kept| {
            let found = slice.keys.iter().find(|(name, _)| name == key);
            found.map_or(f64::NAN, |(_, number)| *number)
        };
        self.kept.iter().map(number).collect()
    }

    fn over_time(&self, plan: &TopPlan) -> Vec<Block> {
        let x = Axis::time("beginning of the slice", plan.trace.selection.zone);
        let places = self.kept.iter().map(|it| (it.start_ns, it.end_ns, it.partial));
        let mut time = OverTime::new(x, places, self.each);
        time.strips = true;
        let mut drawn =
            Self::ranked(self.kept.iter().filter(|it| !(time.leaves_out && it.partial)));
        drawn.truncate(DRAWN);
        let numbers: Vec<Vec<f64>> = drawn.iter().map(|(key, ..)| self.series(key)).collect();
        let rest = self.kept.iter().enumerate().map(|(at, slice)| {
            let drawn = numbers.iter().map(|numbers| numbers[at]);
            let drawn: f64 = drawn.filter(|number| number.is_finite()).sum();
            (slice.pairs - drawn).max(0.0)
        });
        let rest: Vec<f64> = rest.collect();
        let curve = |name: &str, numbers: &[f64]| {
            time.curve(name, SeriesStyle::Line, numbers.iter().map(|n| (Some(*n), [0.0; 2])))
        };
        let mut blocks = vec![Block::Section("Over time".into())];
        if self.each > 1 {
            blocks.push(Block::Sentence(format!(
                "The figures show one of every {} slices, the one with the most distinct pairs. All of them are in the results for programs (--format).",
                grouped(self.each)
            )));
        }
        if !drawn.is_empty() {
            let curves = drawn.iter().zip(&numbers).map(|((key, ..), of_key)| curve(key, of_key));
            blocks.push(Block::Figure(time.figure(
                "keys-over-time",
                format!("The {} largest keys over time", drawn.len()),
                "By their largest numbers in slices that are drawn; one scale for all. A curve has a gap where its key is not among those listed.",
                Axis::new(format!("{} of the key", ranked_number(plan)), Scale::Count),
                curves.collect(),
            )));
        }
        let (text, label) = match plan.rank_by {
            RankBy::Distinct => (
                "Distinct pairs of a key and another value, but for those of the curves above.",
                "distinct pairs".to_owned(),
            ),
            RankBy::Packets | RankBy::Bytes => {
                ("All but those of the curves above.", ranked_number(plan))
            }
        };
        blocks.push(Block::Figure(time.figure(
            "others-over-time",
            "All other keys together",
            text,
            Axis::new(label, Scale::Count),
            vec![curve("all other keys", &rest)],
        )));
        blocks
    }

    fn table(&self, plan: &TopPlan) -> Vec<Block> {
        let ranked = Self::ranked(self.kept.iter());
        if ranked.is_empty() {
            return Vec::new();
        }
        let number = Heading::number(format!("most {} in a slice", ranked_number(plan)));
        let mut columns = TextColumns::<(String, f64, u64)>::default();
        columns.push(Heading::text(plan.question.by_names()), |(key, ..)| key.clone());
        columns.push(number, |(_, number, _)| rounded(*number));
        columns.push(Heading::number("slices listed"), |(.., slices)| grouped(*slices));
        columns.push(Heading::text("over time"), |(key, ..)| {
            let mut line = Sparkline::default();
            let numbers = self.series(key).into_iter();
            numbers.for_each(|number| line.push(if number.is_finite() { number } else { 0.0 }));
            line.draw(None)
        });
        let table = columns.table(&ranked[..ranked.len().min(LISTED)]);
        vec![Block::Section("Keys".into()), Block::Table(table)]
    }

    /// The largest key in words.
    fn largest(&self, plan: &TopPlan) -> Option<String> {
        let largest = self.largest.as_ref().filter(|largest| largest.key.number > 0.0)?;
        let TopKey { key, spread, exact, .. } = &largest.key;
        let number = rounded(largest.key.number);
        // The largest estimate need not be that of the largest key.
        let (who, number) = match spread.as_ref().filter(|_| exact.is_none()) {
            None => (key.clone(), number),
            Some(Spread { at_most: Some(at_most), .. }) => {
                let number = format!("{number} since it was held (at most {})", grouped(*at_most));
                (format!("Of the keys in the table {key}"), number)
            }
            Some(spread) => {
                let [lower, upper] = [spread.lower, spread.upper].map(grouped);
                let number = format!("{number} (bounds {lower} and {upper})");
                (format!("By the estimate {key}"), number)
            }
        };
        let slice = match plan.slicing.width_ns {
            Some(_) if self.seen > 1 => {
                let zone = plan.trace.selection.zone;
                let start = written(Scale::Time(zone), largest.start_ns as f64 / 1e9);
                format!(" in the slice that begins at {start} {zone}")
            }
            _ => String::new(),
        };
        let tied = if largest.tied { "; other keys have as many" } else { "" };
        let what = ranked_number(plan);
        Some(format!("{who} has the most {what}: {number}{slice}{tied}."))
    }
}

/// The slice with the keys that a table lists.
fn first_keys(slice: &TopSlice) -> TopSlice {
    let mut slice = slice.clone();
    slice.keys.truncate(MOST_KEYS);
    slice
}

/// The keys of a single slice.
fn single(plan: &TopPlan, slice: &TopSlice) -> Vec<Block> {
    let is_exact = slice.exact.is_some();
    let caption = if is_exact { "" } else { "Not exact: the table below has bounds." };
    let name = |key: &TopKey| match key.certainty {
        Certainty::Possible if !is_exact && plan.most.is_none() => format!("possible: {}", key.key),
        _ => key.key.clone(),
    };
    let keys = slice.keys.iter().take(DRAWN_ONCE);
    let (categories, numbers) = keys.map(|key| (name(key), Some(key.number.round()))).unzip();
    let drawing = Drawing::counts(&ranked_number(plan), categories, numbers);
    vec![
        Block::Section("The largest keys".into()),
        Block::Figure(Figure::new("keys", "The largest keys", caption, drawing)),
        Block::Sentence(heading(plan, slice)),
        Block::Table(key_view(plan, slice)),
    ]
}
