//! Course report: a dictionary in a Bloom filter with a rate of 1 %, and in a hash set (Table 1); the
//! same by the number of words; the best number of functions, and the rate 0.6185^(m/n) that it gives
//! (Fig. 2); time of asking by time of adding, and most by mean memory (Fig. 3).

use super::dictionary::{WordSet, set_bytes, times, words};
use super::ratios::HOW;
use super::result::{ChartScale, Curve, CurvePair, Measured};
use super::runs::{false_positives, in_parallel};
use super::statistics::{exact_bloom_fpr, rate_of};
use super::{Experiment, Found, Settings};
use crate::filters::sizing::{best_probes, bloom_bits, bloom_fpr, bloom_fpr_while_filling};
use crate::filters::{BloomFilter, ElementDigests, MembershipFilter, Sighting};
use crate::hashing::Digester;
use std::f64::consts::LN_2;

const RATE: f64 = 0.01;
const MEGABYTE: f64 = 1e6;

/// Elements up to which the rate while filling is summed up exactly.
const EXACT: usize = 10_000;

/// Words, the "error rate", and megabytes of the filter and of the set as printed.
const PRINTED: [(usize, f64, f64, f64); 7] = [
    (100, 0.0, 0.151_97, 0.012_128),
    (1_000, 0.002, 0.014_93, 0.042_849),
    (10_000, 0.001_6, 0.251_04, 0.657_25),
    (100_000, 0.001_7, 1.193_15, 6.293_347),
    (200_000, 0.001_8, 2.266_01, 12.731_52),
    (300_000, 0.001_6, 3.162_5, 12.584_8),
    (400_000, 0.001_8, 4.440_7, 25.314_43),
];

/// Measurements with the first n words.
struct Row {
    words: usize,
    bits: u64,
    probes: u32,
    /// False-positive rates by formula and as measured.
    while_filling: (f64, Measured),
    when_full: (f64, Measured),
    filter_bytes: u64,
    set_bytes: usize,
}

/// Strangers that a full filter is asked for, over all runs together.
const STRANGERS: u64 = 1_000_000;

/// Bits and functions of the filter for this many words.
fn design(words: usize) -> (u64, u32) {
    let bits = bloom_bits(RATE, words as f64).ceil() as u64;
    (bits, best_probes(bits as f64, words as f64, 32))
}

fn measure(settings: &Settings, words: &[Vec<u8>]) -> Row {
    let n = words.len();
    let (bits, probes) = design(n);
    // Enough runs to make the error small, and to see how they differ.
    let enough = settings.scale.pick(20_000, 4_000_000, 40_000_000) as usize;
    let runs = (enough / n).clamp(10, 2_000);
    let strangers = (settings.scale.pick(10_000, STRANGERS, STRANGERS) / runs as u64).max(10);
    let hits = in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        let element =
            |word: &[u8]| ElementDigests { whole: digester.digest(word), attributes: &[] };
        let mut filter = BloomFilter::new(bits, probes);
        let lost =
            words.iter().filter(|word| filter.insert(element(word)) == Sighting::Repeat).count();
        // No word holds a zero byte.
        let wrong = (0..strangers)
            .filter(|number| {
                let mut stranger = [0; 9];
                stranger[1..].copy_from_slice(&number.to_le_bytes());
                filter.contains(element(&stranger))
            })
            .count();
        (lost as u64, wrong as u64, filter.stats().memory_bytes)
    });
    let set: WordSet<'_> = words.iter().map(Vec::as_slice).collect();
    let text: usize = words.iter().map(Vec::len).sum();
    let while_filling = while_filling(bits, probes, n);
    let when_full = if n <= EXACT {
        exact_bloom_fpr(bits as f64, probes, f64::from(probes) * n as f64)
    } else {
        bloom_fpr(bits as f64, probes, n as f64)
    };
    let (lost, wrong) = (hits.iter().map(|hits| hits.0), hits.iter().map(|hits| hits.1));
    Row {
        words: n,
        bits,
        probes,
        while_filling: (while_filling, rate_of(lost, n as u64, Some(while_filling))),
        when_full: (when_full, rate_of(wrong, strangers, Some(when_full))),
        filter_bytes: hits[0].2,
        set_bytes: set.allocation_size() + text,
    }
}

/// Returns the mean rate at which the first, second, … n-th word is a false positive: for few words
/// the exact sum, since 1/n of the last rate is much of it and the fill varies; else the integral.
fn while_filling(bits: u64, probes: u32, n: usize) -> f64 {
    if n > EXACT {
        return bloom_fpr_while_filling(bits as f64, probes, n as f64);
    }
    let rates = (0..n)
        .map(|before| exact_bloom_fpr(bits as f64, probes, f64::from(probes) * before as f64));
    rates.sum::<f64>() / n as f64
}

pub(super) fn table_1(settings: &Settings) -> Found {
    let (words, from) = words(settings)?;
    let mut found = Experiment::new([
        from,
        "A Bloom filter for 1 %: m = ceil(n lb(e) lb(100)), k = 7. The report's \"error rate\" asks for each word just before it is inserted, so it averages the rate over the fill from 0 to n: (1/U) ∫ (1 - e^-u)^7 du = 0.00166 up to U = kn/m, and not the 0.01 that the full filter has.".into(),
        format!("For up to {EXACT} words the formula is the exact sum over the n insertions, with the variance of the fill; beyond, the integral."),
        "Memory of the set: its table and the text of the words; of the filter: its bits.".into(),
        "Times of a word, its hash included, in the filter and in the set. The report's times are those of Python with memory tracing, so only their order can be compared. There the set is the faster one, because the filter is interpreted and the set is not.".into(),
        HOW.into(),
    ]);
    let rounds = settings.scale.pick(3, 11, 31) as usize;
    let sizes = PRINTED.iter().map(|row| (row.0, Some(row)));
    let whole = Some((words.len(), None)).filter(|(n, _)| PRINTED.iter().all(|row| row.0 != *n));
    for (n, printed) in sizes.chain(whole) {
        let Some(words) = words.get(..n).filter(|words| !words.is_empty()) else { continue };
        let row = measure(settings, words);
        push_row(&row, printed, &mut found);
        let times = times(words, row.bits, row.probes, rounds);
        for (what, ratio) in ["add", "query"].into_iter().zip(times.set_per_filter) {
            let cell = found.cell(format!("{n} words: {what}, set / filter")).ratio(ratio);
            if printed.is_some() {
                cell.claimed(1.0, 0.0, 1.0).because("the report's set takes less than its filter");
            }
        }
    }
    Ok(found)
}

fn push_row(row: &Row, printed: Option<&(usize, f64, f64, f64)>, found: &mut Experiment) {
    let n = row.words;
    let (formula, measured) = row.while_filling;
    let cell = found.cell(format!("{n} words: rate while filling"));
    cell.formula(formula).measured(measured);
    if let Some(&(_, rate, ..)) = printed {
        // One run over n words, printed with four decimals.
        cell.printed(rate, 1e-4).simulated((formula / n as f64).sqrt());
    }
    let (formula, measured) = row.when_full;
    found.cell(format!("{n} words: rate when full")).formula(formula).measured(measured);
    let cell = found
        .cell(format!("{n} words: filter"))
        .unit("MB")
        .formula(row.bits as f64 / 8.0 / MEGABYTE)
        .measured(Measured::exactly(row.filter_bytes as f64 / MEGABYTE))
        // Whole words of 64 bits.
        .rounded(8.0 / MEGABYTE);
    if let Some(&(.., megabytes, _)) = printed {
        cell.printed(megabytes, 1e-5).because(
            "a Python list takes 8 bytes for each byte of the filter; the peak holds more",
        );
    }
    let cell = found
        .cell(format!("{n} words: hash set"))
        .unit("MB")
        .measured(Measured::exactly(row.set_bytes as f64 / MEGABYTE));
    if let Some(&(.., megabytes)) = printed {
        cell.printed(megabytes, 1e-6)
            .because("Python's table without its strings, old and new together while it grows");
    }
    if printed.is_none() && n == super::dictionary::WORDS {
        found
            .cell(format!("{n} words: m"))
            .unit("bits")
            .printed(4_471_909.0, 0.0)
            .measured(Measured::exactly(row.bits as f64));
        found
            .cell(format!("{n} words: k"))
            .printed(7.0, 0.0)
            .measured(Measured::exactly(f64::from(row.probes)));
    }
}

/// Returns the first tenth of the words, the first two tenths, and so on.
fn tenths(words: &[Vec<u8>]) -> impl Iterator<Item = &[Vec<u8>]> {
    let parts = (1..=10).map(|tenth| &words[..words.len() * tenth / 10]);
    parts.filter(|words| !words.is_empty())
}

pub(super) fn by_words(settings: &Settings) -> Found {
    let (words, from) = words(settings)?;
    let mut found = Experiment::new([
        from,
        "No figure of the report: the quantities of Table 1 by the number of words, the rate while the filter is filled and when it is full, and the memory of filter and set. The set's table doubles when it is full, which makes steps and no exponential growth; the filter grows in proportion.".into(),
    ]);
    let rows: Vec<Row> = tenths(&words).map(|words| measure(settings, words)).collect();
    let mut pairs = ["while filling", "when full"].map(CurvePair::new);
    for row in &rows {
        for (pair, (what, (formula, measured))) in pairs
            .iter_mut()
            .zip([("while filling", row.while_filling), ("when full", row.when_full)])
        {
            let cell = found.cell(format!("{} words: rate {what}", row.words));
            pair.push_cell(row.words as f64, cell.formula(formula).measured(measured));
        }
    }
    found.chart(
        "course-rate-by-words",
        "Error rate of the dictionary",
        "While the words are inserted, as the report measures it, and when all are in.",
        [("words", ChartScale::Linear), ("false-positive rate", ChartScale::Log)],
        pairs.into_iter().flat_map(CurvePair::curves).collect::<Vec<_>>(),
    );
    let bytes = |name: &str, of: fn(&Row) -> f64| {
        let points = rows.iter().map(|row| (row.words as f64, Measured::exactly(of(row))));
        Curve::measured(name, points)
    };
    found.chart(
        "course-memory-by-words",
        "Memory of the dictionary",
        "Bloom filter for 1 %, and hash set with the text of the words.",
        [("words", ChartScale::Linear), ("memory", ChartScale::Bytes)],
        [
            bytes("Bloom filter", |row| row.filter_bytes as f64),
            bytes("hash set", |row| row.set_bytes as f64),
        ],
    );
    Ok(found)
}

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

/// Bits an element.
const BITS: [u64; 4] = [4, 8, 12, 16];

/// The printed base, and the value of its last digit.
const BASE: (f64, f64) = (0.618_5, 1e-4);

pub(super) fn fig_2(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 20) as usize;
    let elements = settings.scale.pick(500, 50_000, 50_000);
    let queries = settings.scale.pick(1_000, 100_000, 1_000_000);
    let mut found = Experiment::new([
        format!(
            "n = {elements}, m/n = 4, 8, 12 and 16 bits; {runs} filters for each number of functions, {queries} absent elements each."
        ),
        "With k = (m/n) ln 2 half of the bits are set and the rate is 2^-k = 0.6185^(m/n). k is a whole number, so the rate of a filter is a little above that. The report's text has k in inverse proportion to m/n; it is in proportion.".into(),
    ]);
    let mut curves = Vec::new();
    let mut by_share = Vec::new();
    let mut best = CurvePair::new("the best k");
    for bits in BITS {
        let m = bits * elements;
        let pair = one_size(&mut found, bits, elements, &mut best, |probes| {
            let hits = false_positives(settings, (runs, elements, queries), || {
                Box::new(BloomFilter::new(m, probes))
            });
            let formula = bloom_fpr(m as f64, probes, elements as f64);
            (formula, rate_of(hits, queries, Some(formula)))
        });
        for curve in pair.curves() {
            // (1 - p)^k with k = -(m/n) ln p: the same formula by p.
            let by_p = |&(k, y, error): &(f64, f64, f64)| ((-k / bits as f64).exp(), y, error);
            let points = curve.points.iter().rev().map(by_p).collect();
            by_share.push(Curve::new(&*curve.name, curve.kind, points));
            curves.push(curve);
        }
    }
    for (name, title, caption, x, curves) in [
        (
            "course-fig-2-a",
            "Rate by the share p of clear bits",
            "Points measured, lines by formula, exp(-(m/n) ln p ln(1 - p)); the least of each curve is at p = 1/2.",
            "p: share of clear bits",
            by_share,
        ),
        (
            "course-fig-2",
            "Rate by the number of functions",
            "Points measured, lines by formula; the least of each curve is at (m/n) ln 2.",
            "functions (k)",
            curves,
        ),
        (
            "course-fig-2-c",
            "Least rate by the memory of an element",
            "Measured with the best whole k, compared with 0.6185^(m/n).",
            "bits an element (m/n)",
            best.curves().collect(),
        ),
    ] {
        let axes = [(x, ChartScale::Linear), ("false-positive rate", ChartScale::Log)];
        found.chart(name, title, caption, axes, curves);
    }
    Ok(found)
}

/// Adds the cells of filters with this many bits an element. `rate` returns the rate with a number
/// of functions, by formula and as measured.
fn one_size(
    found: &mut Experiment,
    bits: u64,
    elements: u64,
    best_rates: &mut CurvePair,
    mut rate: impl FnMut(u32) -> (f64, Measured),
) -> CurvePair {
    let per_element = bits as f64;
    let exact = per_element * LN_2;
    let bound = (-exact * LN_2).exp();
    let printed = BASE.0.powf(per_element);
    found
        .cell(format!("m/n = {bits}: 0.6185^(m/n)"))
        .printed(printed, printed * per_element * BASE.1 / BASE.0)
        .formula(bound);
    let best = whole(exact, (bits * elements) as f64, elements as f64);
    found
        .cell(format!("m/n = {bits}: best k"))
        .formula(exact)
        .measured(Measured::exactly(f64::from(best)))
        .rounded(1.0)
        .because("the whole k with the least rate by formula");
    let mut pair = CurvePair::new(format!("m/n = {bits}"));
    for probes in 1..=exact.ceil() as u32 + 4 {
        let (formula, measured) = rate(probes);
        pair.push(f64::from(probes), formula, measured);
        let label = format!("m/n = {bits}, k = {probes}: rate");
        let cell = found.cell(label).formula(formula).measured(measured);
        if probes == best {
            best_rates.push(per_element, bound, measured);
            cell.because(format!(
                "the best k; {:.1} % above 0.6185^(m/n)",
                100.0 * (formula / bound - 1.0)
            ));
        }
    }
    pair
}

/// Returns the better of the two whole numbers next to the best k.
fn whole(exact: f64, bits: f64, elements: f64) -> u32 {
    let below = (exact.floor() as u32).max(1);
    let [a, b] = [below, below + 1].map(|probes| bloom_fpr(bits, probes, elements));
    if a <= b { below } else { below + 1 }
}
