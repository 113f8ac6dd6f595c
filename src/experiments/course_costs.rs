//! Course report, Fig. 3: times of adding and of asking, and most and mean memory, of the Bloom
//! filter and the set, by the number of words.

use super::course::{MEGABYTE, design, tenths};
use super::dictionary::{WordTimes, set_bytes, times};
use super::ratios::HOW;
use super::result::{Chart, ChartAxis, ChartScale, Curve, CurveKind, Measured};
use super::words::words;
use super::{Findings, Found, Settings};
use crate::filters::{BloomFilter, MembershipFilter};

/// A number of words and their costs.
struct Row {
    words: usize,
    times: [WordTimes; 2],
    filter_bytes: f64,
    filter_formula: f64,
    most: f64,
    mean: f64,
}

pub(super) fn fig_3(settings: &Settings) -> Found {
    let (words, from) = words(settings)?;
    let rounds = settings.scale.pick(3, 11, 31) as usize;
    let mut found = Findings::new([
        from,
        format!(
            "Times of a word, its hash included; {rounds} rounds, one thread. The figure has no numbers; its times are those of Python with memory tracing, which costs more than filter and set, so only the order of the two can be compared."
        ),
        HOW.into(),
        "Memory while the words are added. The filter has all of its bits from the beginning. The set's table doubles when it is full, and for a moment the old and the new table exist together: that is its peak. It grows in steps, not exponentially. The text of the words counts for the set, which holds it.".into(),
    ]);
    let rows: Vec<Row> = tenths(&words).map(|words| Row::measure(words, rounds)).collect();
    for row in &rows {
        row.add_cells(&mut found);
    }
    found.charts = charts(&rows);
    Ok(found)
}

impl Row {
    fn measure(words: &[Vec<u8>], rounds: usize) -> Self {
        let (bits, probes) = design(words.len());
        let (most, mean) = set_bytes(words);
        Self {
            words: words.len(),
            times: times(words, bits, probes, rounds),
            filter_bytes: BloomFilter::new(bits, probes).stats().memory_bytes as f64,
            filter_formula: bits as f64 / 8.0,
            most: most as f64,
            mean,
        }
    }

    fn add_cells(&self, found: &mut Findings) {
        for (what, times) in ["add", "query"].into_iter().zip(&self.times) {
            let label = |who: &str| format!("{} words: {what}, {who}", self.words);
            found.cell(label("filter")).time(times.filter);
            found.cell(label("set")).time(times.set);
            found.cell(label("set / filter")).ratio(times.ratio);
        }
        found
            .cell(format!("{} words: peak and mean memory, filter", self.words))
            .unit("MB")
            .formula(self.filter_formula / MEGABYTE)
            .measured(Measured::exactly(self.filter_bytes / MEGABYTE))
            // Whole words of 64 bits.
            .rounded(8.0 / MEGABYTE);
        for (what, bytes) in [("peak", self.most), ("mean", self.mean)] {
            found
                .cell(format!("{} words: {what} memory, set", self.words))
                .unit("MB")
                .measured(Measured::exactly(bytes / MEGABYTE));
        }
    }
}

fn charts(rows: &[Row]) -> Vec<Chart> {
    let curve = |name: &str, of: &dyn Fn(&Row) -> Measured| {
        let points = rows.iter().map(|row| (row.words as f64, of(row)));
        Curve::over(name, CurveKind::Measured, points)
    };
    let time_chart = |place: usize, name: &str, title: &str| Chart {
        name: name.into(),
        title: title.into(),
        caption: "Its hash included; median of the rounds.".into(),
        x: ChartAxis::new("words", ChartScale::Linear),
        y: ChartAxis::new("ns a word", ChartScale::Linear),
        curves: vec![
            curve("Bloom filter", &|row| row.times[place].filter),
            curve("hash set", &|row| row.times[place].set),
        ],
    };
    vec![
        time_chart(0, "course-fig-3-add", "Time of adding a word"),
        time_chart(1, "course-fig-3-query", "Time of asking for a word"),
        Chart {
            name: "course-fig-3-memory".into(),
            title: "Peak and mean memory while words are added".into(),
            caption: "Bloom filter for 1 %, and hash set with the text of the words.".into(),
            x: ChartAxis::new("words", ChartScale::Linear),
            y: ChartAxis::new("memory", ChartScale::Bytes),
            curves: vec![
                curve("Bloom filter", &|row| Measured::exactly(row.filter_bytes)),
                curve("hash set, peak", &|row| Measured::exactly(row.most)),
                curve("hash set, mean", &|row| Measured::exactly(row.mean)),
            ],
        },
    ]
}
