//! CMDBF paper: Table 1 with its rates and its space, the same with other negatives, the worked
//! examples, and Fig. 9: distinct host pairs in each second, exact, by MDBF and by CMDBF.
//!
//! Table 1 has MDBF and CMDBF of 2 to 5 attributes with 4, 6 and 8 functions: n = 10 000 elements of
//! random 32-bit values in filters of m = 32 768 bits each, H3 functions with a random matrix for
//! each attribute and function, XOR of their addresses in the combined filter. Theory (3) is f^L,
//! (7) is f^(L+1), with f = (1 - e^(-kn/m))^k. With negatives whose values occur, both end.

use super::captures::{Busy, ExperimentCapture, Hosts, busy, count_capture};
use super::result::{ChartScale, Curve, CurveKind, Measured};
use super::runs::{Random, in_parallel};
use super::statistics::{ENOUGH_RUNS, deviation, fill_variance, mean_of};
use super::{Experiment, Found, Settings};
use crate::elements::ElementKind;
use crate::filters::sizing::{best_probes, bloom_fpr};
use crate::filters::{
    Cmdbf, CmdbfSpec, Combination, ElementDigests, FilterSpec, Mdbf, MdbfSpec, MembershipFilter,
};
use crate::hashing::Digest;
use crate::pipeline::SliceResult;

/// n, and m for each filter.
const ELEMENTS: u64 = 10_000;
const BITS_LOG2: u32 = 15;
const BITS: f64 = (1_u64 << BITS_LOG2) as f64;

/// L, k, and the printed theory, mean and standard deviation of an MDBF and of a CMDBF.
const PRINTED: [(usize, u32, [[f64; 3]; 2]); 12] = [
    (2, 4, [[0.061_01, 0.060_47, 0.002_06], [0.015_07, 0.015_045, 0.001_271]]),
    (2, 6, [[0.122_98, 0.123_696, 0.003_66], [0.043_127, 0.043_058, 0.002_285]]),
    (2, 8, [[0.232_938, 0.233_057, 0.005_379], [0.112_42, 0.112_99, 0.004_003]]),
    (3, 4, [[0.015_07, 0.014_877, 0.001_255], [0.003_722, 0.003_548, 0.000_612]]),
    (3, 6, [[0.043_127, 0.043_335, 0.001_952], [0.015_124, 0.015_288, 0.001_365]]),
    (3, 8, [[0.112_42, 0.111_411, 0.004_17], [0.054_26, 0.053_532, 0.002_625]]),
    (4, 4, [[0.003_722, 0.003_827, 0.000_333], [0.000_919, 0.000_949, 0.000_333]]),
    (4, 6, [[0.015_124, 0.015_294, 0.001_203], [0.005_304, 0.005_34, 0.000_805]]),
    (4, 8, [[0.054_26, 0.054_527, 0.002_906], [0.026_188, 0.026_166, 0.001_85]]),
    (5, 4, [[0.000_919, 0.000_923, 0.000_297], [0.000_227, 0.000_242, 0.000_169]]),
    (5, 6, [[0.005_304, 0.005_339, 0.000_746], [0.001_86, 0.001_851, 0.000_425]]),
    (5, 8, [[0.026_188, 0.026_221, 0.001_858], [0.012_639, 0.012_64, 0.001_256]]),
];

/// The filters of an element: an MDBF and a CMDBF.
const NAMES: [&str; 2] = ["MDBF", "CMDBF"];

/// Value of the last printed digit of theories.
const LAST_DIGIT: f64 = 1e-5;

/// Runs behind the printed means.
const PRINTED_RUNS: f64 = 100.0;

pub(super) fn table_1(settings: &Settings) -> Found {
    let runs = settings.scale.pick(4, 100, 100) as usize;
    let negatives = settings.scale.pick(500, 10_000, 10_000);
    let jobs = in_parallel(settings.threads, PRINTED.len() * runs, |job| {
        let (attributes, probes, _) = PRINTED[job / runs];
        let seed = settings.run_seed(job);
        false_positives(seed, attributes, probes, negatives, |random, _, _| random.next() as u32)
    });
    let mut found = Experiment::new([
        format!(
            "{ELEMENTS} elements, {BITS_LOG2} address bits (m = 32,768), {runs} runs of {negatives} negatives for each of the 12 rows. Negatives are fresh random values, none of which occurs in the set: only for such do formulas (3) and (7) hold (see cmdbf-negatives)."
        ),
        "The paper says 1,000 negatives a run; its standard deviations are those of 10,000, and its means have more digits than 100 x 1,000 trials can make.".into(),
        "The standard deviation by formula is that of a binomial of 10,000 and of the fill together.".into(),
    ]);
    let negatives = negatives as f64;
    for ((attributes, probes, printed), runs) in PRINTED.into_iter().zip(jobs.chunks(runs)) {
        for (which, printed) in printed.into_iter().enumerate() {
            let rates: Vec<f64> = runs.iter().map(|hits| hits[which] as f64 / negatives).collect();
            let row = (attributes, probes, printed);
            table_1_row(&mut found, which, row, &rates, negatives);
        }
    }
    Ok(found)
}

/// Adds the cells of an MDBF (0) or a CMDBF (1), from the false-positive rate of each run.
fn table_1_row(
    found: &mut Experiment,
    which: usize,
    (attributes, probes, [theory, mean, sd]): (usize, u32, [f64; 3]),
    rates: &[f64],
    negatives: f64,
) {
    let stages = (attributes + which) as i32;
    let rate = stage_rate(probes).powi(stages);
    let label = |what: &str| format!("L={attributes} k={probes} {} {what}", NAMES[which]);
    found.cell(label("theory")).printed(theory, LAST_DIGIT).formula(rate);
    let expected = expected_deviation(rate, stages, probes, negatives);
    let mut measured = mean_of(rates);
    // A few runs may be equal by chance.
    measured.std_error = measured.std_error.max(expected / (rates.len() as f64).sqrt());
    found
        .cell(label("mean"))
        .printed(mean, 0.0)
        .simulated(sd / PRINTED_RUNS.sqrt())
        .formula(rate)
        .measured(measured);
    let error = |runs, negatives| error_of_deviation(expected, rate, runs, negatives);
    let measured =
        Measured { mean: deviation(rates), std_error: error(rates.len() as f64, negatives) };
    let cell = found
        .cell(label("sd"))
        .printed(sd, 0.0)
        .simulated(error(PRINTED_RUNS, 1e4))
        .formula(expected)
        .measured(measured);
    if (attributes, probes, which) == (4, 4, 0) {
        cell.because("0.000333 is a copy of the CMDBF figure beside it");
    }
}

/// Returns the negatives that an MDBF and a CMDBF of the same elements take for positives.
///
/// `negative` gives the value of an attribute of a negative, from the random numbers, the number of
/// the attribute and the elements (their values, element after element).
fn false_positives(
    seed: u64,
    attributes: usize,
    probes: u32,
    negatives: u64,
    negative: impl Fn(&mut Random, usize, &[u32]) -> u32,
) -> [u64; 2] {
    let mut random = Random::new(seed, 1);
    let mut mdbf = Mdbf::with_h3(attributes, BITS_LOG2, probes, seed);
    let mut cmdbf =
        Cmdbf::with_h3(attributes, BITS_LOG2, probes, Combination::XorIndependent, seed);
    let values: Vec<u32> =
        (0..ELEMENTS * attributes as u64).map(|_| random.next() as u32).collect();
    let mut digests = vec![Digest::from_value(0); attributes];
    for element in values.chunks(attributes) {
        let element = raw(element.iter().copied(), &mut digests);
        mdbf.insert(element);
        cmdbf.insert(element);
    }
    let mut found = [0, 0];
    for _ in 0..negatives {
        let value = |attribute| negative(&mut random, attribute, &values);
        let element = raw((0..attributes).map(value), &mut digests);
        // A CMDBF asks its attribute filters first, which equal the MDBF's.
        if mdbf.contains(element) {
            found[0] += 1;
            if cmdbf.contains(element) {
                found[1] += 1;
            }
        }
    }
    found
}

/// Returns the rate of one attribute filter.
fn stage_rate(probes: u32) -> f64 {
    bloom_fpr(BITS, probes, ELEMENTS as f64)
}

/// Returns an element whose digests carry raw values, as H3 takes them.
fn raw(values: impl Iterator<Item = u32>, digests: &mut [Digest]) -> ElementDigests<'_> {
    for (digest, value) in digests.iter_mut().zip(values) {
        *digest = Digest::from_value(value.into());
    }
    ElementDigests { whole: Digest::from_value(0), attributes: digests }
}

/// Returns the standard deviation of a run's share: that of a binomial, and that of the fill of
/// each stage, whose k-th power counts.
fn expected_deviation(rate: f64, stages: i32, probes: u32, negatives: f64) -> f64 {
    let k = f64::from(probes);
    let fill = fill_variance(BITS, k * ELEMENTS as f64 / BITS);
    (rate * (1.0 - rate) / negatives + rate * rate * f64::from(stages) * k * k * fill).sqrt()
}

/// Returns the standard error of a standard deviation over this many runs, with the kurtosis of
/// rare events.
fn error_of_deviation(sd: f64, rate: f64, runs: f64, negatives: f64) -> f64 {
    sd / 2.0 * (2.0 / (runs - 1.0) + 1.0 / (negatives * rate) / runs).sqrt()
}

/// k of `cmdbf-negatives` and of Fig. 9, and the numbers of attributes of the former.
const PROBES: u32 = 4;
const ATTRIBUTES: [usize; 4] = [2, 3, 4, 5];

pub(super) fn negatives(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 100) as usize;
    let negatives = settings.scale.pick(500, 10_000, 10_000);
    let jobs = in_parallel(settings.threads, 2 * ATTRIBUTES.len() * runs, |job| {
        let kind = job / runs;
        let attributes = ATTRIBUTES[kind / 2];
        // The first attribute only, or all of them, each from another element.
        let known = if kind.is_multiple_of(2) { 1 } else { attributes };
        let seed = settings.run_seed(1_000_000 + job);
        false_positives(seed, attributes, PROBES, negatives, |random, attribute, values| {
            if attribute < known {
                let element = random.below((values.len() / attributes) as u64) as usize;
                values[element * attributes + attribute]
            } else {
                random.next() as u32
            }
        })
    });
    let stage = stage_rate(PROBES);
    let mut found = Experiment::new([
        "Formulas (3) and (7) are the best case. If the values of a negative occur, each in another element, an MDBF says yes with certainty and a CMDBF with f, however many attributes there are. Drawn at random, one in 10,000 does occur together by chance; the measurement ignores that.".into(),
    ]);
    for (kind, runs) in jobs.chunks(runs).enumerate() {
        let attributes = ATTRIBUTES[kind / 2];
        let (known, what) = if kind.is_multiple_of(2) {
            (1, "one value occurs")
        } else {
            (attributes, "all values occur")
        };
        let attribute_stage = stage.powi((attributes - known) as i32);
        for (which, name, rate) in
            [(0, "MDBF", attribute_stage), (1, "CMDBF", attribute_stage * stage)]
        {
            let published = stage.powi((attributes + which) as i32);
            let label = format!("L={attributes} k={PROBES} {name}, {what}");
            let hits = runs.iter().map(|hits| hits[which]);
            found.rate(label, rate, hits, negatives).because(format!(
                "with fresh values it is {published:.6}, {:.0} times less",
                rate / published
            ));
        }
    }
    Ok(found)
}

/// The combinations: as published, with functions of their own, and without XOR.
const COMBINATIONS: [(&str, Combination); 3] = [
    ("XOR, same functions", Combination::XorSame),
    ("XOR, functions of their own", Combination::XorIndependent),
    ("joint digest", Combination::Joint),
];

pub(super) fn combinations(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 100) as usize;
    let negatives = settings.scale.pick(500, 10_000, 10_000);
    let mut found = Experiment::new([
        "L = 2, k = 4. The paper combines addresses by XOR, and its examples have the same functions for both attributes. Then every (x, x) has address 0, and (a, b) and (b, a) are one element: the combined filter says yes with certainty, and the CMDBF is no better than the MDBF.".into(),
    ]);
    let stage = stage_rate(PROBES);
    for (kind, what) in
        ["equal values, one such pair inserted", "inserted pairs reversed"].into_iter().enumerate()
    {
        let jobs = in_parallel(settings.threads, runs, |run| {
            combined(settings.run_seed(2_000_000 + kind * 1_000 + run), kind == 0, negatives)
        });
        for (which, (name, combination)) in COMBINATIONS.into_iter().enumerate() {
            let is_blind = combination == Combination::XorSame;
            let rate = stage.powi(if is_blind { 2 } else { 3 });
            let hits = jobs.iter().map(|hits| hits[which]);
            found.rate(format!("{what}: {name}"), rate, hits, negatives).because(if is_blind {
                "as many as an MDBF"
            } else {
                "as formula (7) says"
            });
        }
    }
    Ok(found)
}

/// Returns the false positives of a CMDBF with each combination, of pairs of equal values or of
/// reversed ones.
fn combined(seed: u64, equal: bool, negatives: u64) -> [u64; COMBINATIONS.len()] {
    let mut random = Random::new(seed, 3);
    let mut filters = COMBINATIONS
        .map(|(_, combination)| Cmdbf::with_h3(2, BITS_LOG2, PROBES, combination, seed));
    let digests_of = |pair: [u32; 2]| pair.map(|value| Digest::from_value(value.into()));
    let whole_of = |digests: &[Digest; 2]| Digest::join(0b11, *digests);
    let pairs: Vec<[u32; 2]> =
        (0..ELEMENTS).map(|_| [random.next() as u32, random.next() as u32]).collect();
    for (number, &pair) in pairs.iter().enumerate() {
        let pair = if equal && number == 0 { [pair[0]; 2] } else { pair };
        let digests = digests_of(pair);
        for filter in &mut filters {
            filter.insert(ElementDigests { whole: whole_of(&digests), attributes: &digests });
        }
    }
    let mut hits = [0; COMBINATIONS.len()];
    for [a, b] in pairs.into_iter().cycle().take(negatives as usize) {
        let negative = if equal { [random.next() as u32; 2] } else { [b, a] };
        let digests = digests_of(negative);
        let negative = ElementDigests { whole: whole_of(&digests), attributes: &digests };
        for (hits, filter) in hits.iter_mut().zip(&filters) {
            *hits += u64::from(filter.contains(negative));
        }
    }
    hits
}

/// Bits of a value.
const VALUE: f64 = 32.0;

/// Attributes, and the bits of an MDBF and of a CMDBF as printed: m for each stage.
const PRINTED_BITS: [(usize, f64, f64); 4] = [
    (2, 65_536.0, 98_304.0),
    (3, 98_304.0, 131_072.0),
    (4, 131_072.0, 163_840.0),
    (5, 163_840.0, 196_608.0),
];

/// The saving of a CMDBF as printed.
const SAVING: f64 = 87.7;

pub(super) fn space(_: &Settings) -> Found {
    let mut found = Experiment::new([
        "Formula: L m and (L + 1) m bits, m = 32,768, for n = 10,000; the same for every k. Measured: the bits of the filters of this program.".into(),
        "The saving is against a list of the elements, L values of 32 bits each: 1 - (L + 1) m / (32 L n). It grows with L, and the printed 87.7 % is that of L = 5, the most attributes of the table; a list answers without false positives, which the CMDBF of L = 5 and k = 4 has at a rate of 0.00023.".into(),
    ]);
    for (attributes, mdbf_bits, cmdbf_bits) in PRINTED_BITS {
        let (bits, probes, combination) = (1 << BITS_LOG2, PROBES, Combination::XorIndependent);
        let mdbf = FilterSpec::Mdbf(MdbfSpec { attributes, bits, probes });
        let cmdbf = FilterSpec::Cmdbf(CmdbfSpec { attributes, bits, probes, combination });
        let mut used = [0.0; 2];
        for (place, (name, spec, printed)) in
            [("MDBF", mdbf, mdbf_bits), ("CMDBF", cmdbf, cmdbf_bits)].into_iter().enumerate()
        {
            let stages = (attributes + place) as f64;
            used[place] = spec.build().stats().memory_bytes as f64 * 8.0;
            found
                .cell(format!("L = {attributes}, {name}"))
                .unit("bits")
                .printed(printed, 0.0)
                .formula(stages * BITS)
                .measured(Measured::exactly(used[place]));
        }
        let list = attributes as f64 * VALUE * ELEMENTS as f64;
        let stages = attributes as f64 + 1.0;
        let cell = found
            .cell(format!("L = {attributes}, CMDBF saves"))
            .unit("%")
            .formula(100.0 * (1.0 - stages * BITS / list))
            .measured(Measured::exactly(100.0 * (1.0 - used[1] / list)));
        if attributes == 5 {
            cell.printed(SAVING, 0.1);
        }
        // All values new, which is the best case of MDBF and CMDBF.
        let total = stages * BITS;
        let best =
            |bits: f64| bloom_fpr(bits, best_probes(bits, ELEMENTS as f64, 32), ELEMENTS as f64);
        for (name, rate) in [
            ("CMDBF, k = 4", stage_rate(PROBES).powf(stages)),
            ("MDBF", best(total / attributes as f64).powi(attributes as i32)),
            ("one plain filter", best(total)),
        ] {
            found
                .cell(format!("L = {attributes}, rate at the memory of the CMDBF: {name}"))
                .formula(rate)
                .because("no value known; the best k where none is given");
        }
    }
    Ok(found)
}

/// h₁ = x mod m, h₂ = (2x + 3) mod m.
fn addresses(value: u64, size: u64) -> [u64; 2] {
    [value % size, (2 * value + 3) % size]
}

fn xor(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

/// Returns the bits at these addresses as a number: bit i for place i.
fn bits([a, b]: [u64; 2]) -> u64 {
    1 << a | 1 << b
}

fn contains(filter: u64, addresses: [u64; 2]) -> bool {
    bits(addresses) & !filter == 0
}

pub(super) fn examples(_: &Settings) -> Found {
    let mut found = Experiment::new([
        "h1 = x mod m and h2 = (2x + 3) mod m, the same for both attributes. Sets of bits are written as numbers, bit i for place i; answers as 1 (yes) and 0 (no). With the same functions for both attributes, (x, x) has address 0 and (a, b) and (b, a) are one element; the filters here use functions of their own for each attribute.".into(),
    ]);
    let mut push = |label: &str, printed: f64, ours: f64, reason: &str| {
        found.cell(label).printed(printed, 0.0).measured(Measured::exactly(ours)).because(reason);
    };
    let single = bits(addresses(9, 5)) | bits(addresses(11, 5));
    push("m=5, {9, 11}: set bits", 19.0, single as f64, "bits 0, 1 and 4");
    let answer = |value| f64::from(contains(single, addresses(value, 5)));
    push("m=5: 15 is contained", 0.0, answer(15), "bits 0 and 3");
    push("m=5: 16 is contained", 1.0, answer(16), "bits 1 and 0: a false positive");
    let [mut first, mut second, mut combined] = [0; 3];
    for (a, b) in [(9, 7), (11, 9)] {
        let (a, b) = (addresses(a, 8), addresses(b, 8));
        first |= bits(a);
        second |= bits(b);
        combined |= bits(xor(a, b));
    }
    push("m=8, (9,7), (11,9): set bits of BF1", 42.0, first as f64, "bits 1, 3 and 5");
    push("m=8, (9,7), (11,9): set bits of BF2", 162.0, second as f64, "bits 1, 5 and 7");
    push("m=8, (9,7), (11,9): set bits of CBF", 84.0, combined as f64, "bits 2, 4 and 6");
    let (a, b) = (addresses(11, 8), addresses(15, 8));
    let apart = contains(first, a) && contains(second, b);
    push(
        "m=8: MDBF contains (11,15)",
        1.0,
        f64::from(apart),
        "bits 3 and 1, and 7 and 1: a false positive of the MDBF",
    );
    push(
        "m=8: CMDBF contains (11,15)",
        0.0,
        f64::from(apart && contains(combined, xor(a, b))),
        "bit 4 is set, bit 0 is not: the CMDBF rejects it",
    );
    Ok(found)
}

const SECOND: i64 = 1_000_000_000;

/// Points by which the paper reports CMDBF nearer to the exact count than MDBF: "about" 10.
const PAPER_POINTS: f64 = 10.0;
const ABOUT: (f64, f64) = (8.0, 12.0);

/// Captures that are drawn.
const DRAWN: usize = 3;

/// Most functions of a filter.
const MOST_PROBES: u32 = 32;

pub(super) fn fig_9(settings: &Settings) -> Found {
    let (captures, mut found) = busy(settings)?;
    found.remarks.extend([
        format!("MDBF 8 KiB, CMDBF 12 KiB (L = 2, k = {PROBES}, m = 32,768). The error of a second is (raw count - exact) / exact; shown is its mean over the seconds, and the standard error from their spread. There is no formula for it: MDBF misses every new pair of two hosts that were seen before, so the error is the traffic's."),
        format!("The paper's k is {PROBES}; the best k is (m/n) ln 2 for the n pairs of the fullest second, at most {MOST_PROBES}. With it both make fewer errors by false positives, but MDBF still loses new pairs of known hosts."),
        "The paper's own trace is not public; its figure shows CMDBF about 10 points more exact than MDBF, where formulas (3) and (7), for values that were never seen, would give 4.".into(),
    ]);
    let mut points = Vec::new();
    for busy in &captures {
        if let Some(difference) = one_capture(busy, &mut found)
            && busy.hosts == Hosts::Many
        {
            points.push(difference);
        }
    }
    if points.len() > 1 {
        let captures = points.len();
        found
            .cell("mean over the captures of many hosts: CMDBF nearer by")
            .unit("points")
            .measured(mean_of(&points))
            .because(format!(
                "{captures} captures, k = {PROBES}; ± is from their spread; the paper's figure is of one trace"
            ));
    }
    Ok(found)
}

/// The structures that are compared; the combined filters differ in their hash functions.
const COMPARED: [(&str, Option<Combination>); 3] = [
    ("MDBF", None),
    ("CMDBF, the same functions for both hosts", Some(Combination::XorSame)),
    ("CMDBF, functions of their own", Some(Combination::XorIndependent)),
];

/// Returns structures with this k, and their slices.
fn runs(
    capture: &ExperimentCapture,
    probes: u32,
    names: &[(&'static str, Option<Combination>)],
) -> Vec<(&'static str, Vec<SliceResult>)> {
    let slices = |&(name, combination): &(&'static str, Option<Combination>)| {
        let spec: FilterSpec = match combination {
            None => MdbfSpec { attributes: 2, bits: 1 << BITS_LOG2, probes }.into(),
            Some(combination) => {
                CmdbfSpec { attributes: 2, bits: 1 << BITS_LOG2, probes, combination }.into()
            }
        };
        let (path, pairs) = (&capture.path, ElementKind::HOST_PAIR);
        (name, count_capture(path, pairs, Some(SECOND), Some(spec), Vec::new()).1)
    };
    names.iter().map(slices).collect()
}

/// Returns the errors of the raw counts, in per cent, second by second.
fn errors(slices: &[SliceResult]) -> Vec<f64> {
    let errors = slices.iter().filter_map(|slice| match (slice.first, slice.exact) {
        (Some(first), Some(exact)) if exact > 0 => {
            Some(100.0 * (first as f64 / exact as f64 - 1.0))
        }
        _ => None,
    });
    errors.collect()
}

/// Cells and figure of a capture; by how many points CMDBF is nearer with the paper's k.
fn one_capture(busy: &Busy, found: &mut Experiment) -> Option<f64> {
    let Busy { capture, most, .. } = busy;
    let published = runs(capture, PROBES, &COMPARED);
    let nearer = add_errors(found, busy, PROBES, &published);
    let best_k = best_probes(BITS, *most as f64, MOST_PROBES);
    if best_k != PROBES {
        let [mdbf, _, cmdbf] = COMPARED;
        add_errors(found, busy, best_k, &runs(capture, best_k, &[mdbf, cmdbf]));
    }
    add_chart(found, &capture.name, &published);
    nearer
}

/// Adds the errors of the structures with this k; returns by how many points CMDBF is nearer.
fn add_errors(
    found: &mut Experiment,
    busy: &Busy,
    probes: u32,
    runs: &[(&'static str, Vec<SliceResult>)],
) -> Option<f64> {
    let (name, kind) = (&busy.capture.name, busy.hosts.words());
    let mut all = Vec::new();
    for (structure, slices) in runs {
        let errors = errors(slices);
        found
            .cell(format!("{name}: {structure}, k = {probes}"))
            .unit("%")
            .measured(mean_of(&errors))
            .because(format!("{kind}; seconds: {}", errors.len()));
        all.push(errors);
    }
    let (mdbf, cmdbf) = (all.first()?, all.last()?);
    // Second by second, so that the traffic's own spread is no error of the difference.
    let points = cmdbf.iter().zip(mdbf).map(|(c, m)| m.abs() - c.abs());
    let points = mean_of(&points.collect::<Vec<f64>>());
    let cell = found
        .cell(format!("{name}: CMDBF nearer by, k = {probes}"))
        .unit("points")
        .measured(points);
    // A few seconds say little of their spread, and one says nothing.
    if probes == PROBES && mdbf.len() >= ENOUGH_RUNS {
        cell.claimed(PAPER_POINTS, ABOUT.0, ABOUT.1).because(
            "another trace; what MDBF loses depends on how often hosts talk to several others",
        );
    }
    Some(points.mean)
}

/// Adds the chart of a capture if it has several seconds, and few are drawn yet.
fn add_chart(found: &mut Experiment, name: &str, runs: &[(&'static str, Vec<SliceResult>)]) {
    let drawn = found.charts.len();
    if drawn >= DRAWN || runs[0].1.len() < 2 {
        return;
    }
    let mut curves = vec![curve("exact", CurveKind::Exact, &runs[0].1, |slice| slice.exact)];
    for (structure, slices) in runs {
        curves.push(curve(structure, CurveKind::Measured, slices, |slice| slice.first));
    }
    found.chart(
        format!("cmdbf-fig-9-{}", drawn + 1),
        format!("Host pairs a second: {name}"),
        format!("Exact, and raw counts of MDBF (8 KiB) and CMDBF (12 KiB), k = {PROBES}."),
        [("second", ChartScale::Linear), ("distinct host pairs", ChartScale::Linear)],
        curves,
    );
}

fn curve(
    name: &str,
    kind: CurveKind,
    slices: &[SliceResult],
    value: impl Fn(&SliceResult) -> Option<u64>,
) -> Curve {
    let first = slices.first().map_or(0, |slice| slice.start_ns);
    let points = slices.iter().filter_map(|slice| {
        let second = (slice.start_ns.saturating_sub(first)) as f64 / SECOND as f64;
        Some((second, value(slice)? as f64, 0.0))
    });
    Curve::new(name, kind, points.collect())
}
