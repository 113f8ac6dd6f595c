//! Course report, Table 1: a dictionary in a Bloom filter with a rate of 1 %, and in a hash set;
//! and the same by the number of words.

use super::dictionary::{WordSet, times};
use super::parallel::in_parallel;
use super::ratios::HOW;
use super::result::{ChartScale, Curve, CurvePair, Measured};
use super::statistics::{exact_bloom_fpr, rate_of};
use super::words::words;
use super::{Experiment, Found, Settings};
use crate::filters::sizing::{best_probes, bloom_bits, bloom_fpr, bloom_fpr_while_filling};
use crate::filters::{BloomFilter, ElementDigests, MembershipFilter, Sighting};
use crate::hashing::Digester;

const RATE: f64 = 0.01;
pub(super) const MEGABYTE: f64 = 1e6;

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
pub(super) fn design(words: usize) -> (u64, u32) {
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
    if printed.is_none() && n == super::words::WORDS {
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
pub(super) fn tenths(words: &[Vec<u8>]) -> impl Iterator<Item = &[Vec<u8>]> {
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
