//! Course report, Fig. 3: time of asking by time of adding, and most by mean memory, of the Bloom
//! filter and the set, by the number of words.

use super::course::{design, tenths};
use super::dictionary::{set_bytes, times};
use super::ratios::HOW;
use super::result::{ChartScale, Curve, Measured};
use super::words::words;
use super::{Experiment, Found, Settings};

/// Largest factor between a ratio and 1 at which it is still "about 1".
const ABOUT: f64 = 1.25;

/// The structures: the claim is about the first one.
const NAMES: [&str; 2] = ["filter", "set"];

/// The two quantities of the figure: name of their chart, title, label of the axis.
const QUANTITIES: [[&str; 3]; 2] = [
    [
        "course-fig-3-time",
        "Time to ask for a word by time to add it",
        "ns of a query / ns of adding",
    ],
    ["course-fig-3-memory", "Peak by mean memory while words are added", "peak / mean"],
];

pub(super) fn fig_3(settings: &Settings) -> Found {
    let (words, from) = words(settings)?;
    let rounds = settings.scale.pick(3, 11, 31) as usize;
    let mut found = Experiment::new([
        from,
        format!(
            "Words that are contained, their hashes included; {rounds} rounds, one thread. The figure has no numbers. Its claim is that both ratios of the filter stay about 1, which we take as {:.2} to {ABOUT}.",
            1.0 / ABOUT
        ),
        HOW.into(),
        "Memory while the words are added. The filter has all of its bits from the beginning, so the ratio is 1 by design. The set's table doubles when it is full, and for a moment the old and the new table exist together: that is its peak. The text of the words counts for the set, which holds it.".into(),
    ]);
    let mut curves = [[(); 2]; 2].map(|of| of.map(|()| Vec::new()));
    for words in tenths(&words) {
        let (bits, probes) = design(words.len());
        let (most, mean) = set_bytes(words);
        let times = times(words, bits, probes, rounds).query_per_add;
        let memory = [1.0, most as f64 / mean].map(Measured::exactly);
        for (quantity, ratios) in [times, memory].into_iter().enumerate() {
            for (structure, ratio) in ratios.into_iter().enumerate() {
                let what = ["query / add time", "peak / mean memory"][quantity];
                let label = format!("{} words: {what}, {}", words.len(), NAMES[structure]);
                let cell = found.cell(label).ratio(ratio);
                cell.is_time = quantity == 0;
                if structure == 0 {
                    cell.claimed(1.0, 1.0 / ABOUT, ABOUT);
                }
                curves[quantity][structure].push((words.len() as f64, ratio));
            }
        }
    }
    for ([name, title, axis], of_both) in QUANTITIES.into_iter().zip(curves) {
        let curves = NAMES.into_iter().zip(of_both);
        found.chart(
            name,
            title,
            "Bloom filter for 1 %, and hash set with the text of the words.",
            [("words", ChartScale::Linear), (axis, ChartScale::Linear)],
            curves.map(|(name, points)| Curve::measured(name, points)).collect::<Vec<_>>(),
        );
    }
    Ok(found)
}
