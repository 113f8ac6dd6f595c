//! CMDBF paper, Table 1: MDBF and CMDBF of 2 to 5 attributes with 4, 6 and 8 functions.
//!
//! n = 10 000 elements of random 32-bit values in filters of m = 32 768 bits each, H3 functions
//! with a random matrix for each attribute and function, XOR of their addresses in the combined
//! filter. Theory (3) is f^L, (7) is f^(L+1), with f = (1 - e^(-kn/m))^k.

use super::parallel::in_parallel;
use super::random::Random;
use super::result::Measured;
use super::statistics::{deviation, fill_variance, mean_of};
use super::{Findings, Found, Settings};
use crate::filters::sizing::bloom_fpr;
use crate::filters::{Cmdbf, Combination, ElementDigests, Mdbf, MembershipFilter};
use crate::hashing::Digest;

const ELEMENTS: u64 = 10_000;
const BITS_LOG2: u32 = 15;
const BITS: f64 = (1_u64 << BITS_LOG2) as f64;

/// L, k, and the printed theory, mean and standard deviation: of an MDBF, then of the CMDBF like
/// it.
const PRINTED: [(usize, u32, [f64; 3]); 24] = [
    (2, 4, [0.061_01, 0.060_47, 0.002_06]),
    (2, 4, [0.015_07, 0.015_045, 0.001_271]),
    (2, 6, [0.122_98, 0.123_696, 0.003_66]),
    (2, 6, [0.043_127, 0.043_058, 0.002_285]),
    (2, 8, [0.232_938, 0.233_057, 0.005_379]),
    (2, 8, [0.112_42, 0.112_99, 0.004_003]),
    (3, 4, [0.015_07, 0.014_877, 0.001_255]),
    (3, 4, [0.003_722, 0.003_548, 0.000_612]),
    (3, 6, [0.043_127, 0.043_335, 0.001_952]),
    (3, 6, [0.015_124, 0.015_288, 0.001_365]),
    (3, 8, [0.112_42, 0.111_411, 0.004_17]),
    (3, 8, [0.054_26, 0.053_532, 0.002_625]),
    (4, 4, [0.003_722, 0.003_827, 0.000_333]),
    (4, 4, [0.000_919, 0.000_949, 0.000_333]),
    (4, 6, [0.015_124, 0.015_294, 0.001_203]),
    (4, 6, [0.005_304, 0.005_34, 0.000_805]),
    (4, 8, [0.054_26, 0.054_527, 0.002_906]),
    (4, 8, [0.026_188, 0.026_166, 0.001_85]),
    (5, 4, [0.000_919, 0.000_923, 0.000_297]),
    (5, 4, [0.000_227, 0.000_242, 0.000_169]),
    (5, 6, [0.005_304, 0.005_339, 0.000_746]),
    (5, 6, [0.001_86, 0.001_851, 0.000_425]),
    (5, 8, [0.026_188, 0.026_221, 0.001_858]),
    (5, 8, [0.012_639, 0.012_64, 0.001_256]),
];

/// The filters of an element: an MDBF and a CMDBF.
const NAMES: [&str; 2] = ["MDBF", "CMDBF"];

/// What the last digit that is printed of a theory value is worth.
const LAST_DIGIT: f64 = 1e-5;

/// Runs behind the printed means.
const PRINTED_RUNS: f64 = 100.0;

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(4, 100, 100) as usize;
    let negatives = settings.scale.pick(500, 10_000, 10_000);
    let jobs = in_parallel(settings.threads, PRINTED.len() / 2 * runs, |job| {
        let (attributes, probes, _) = PRINTED[job / runs * 2];
        let seed = settings.run_seed(job);
        false_positives(seed, attributes, probes, negatives, |random, _, _| random.next() as u32)
    });
    let mut found = Findings::new([
        format!(
            "{ELEMENTS} elements, {BITS_LOG2} address bits (m = 32,768), {runs} runs of {negatives} negatives for each of the 12 rows. Negatives are fresh random values, none of which occurs in the set: only for such do formulas (3) and (7) hold (see cmdbf-negatives)."
        ),
        "The paper says 1,000 negatives a run; its standard deviations are those of 10,000, and its means have more digits than 100 x 1,000 trials can make.".into(),
        "The standard deviation by formula is that of a binomial of 10,000 and of the fill together.".into(),
    ]);
    for (rows, runs) in PRINTED.chunks(2).zip(jobs.chunks(runs)) {
        for (which, &(attributes, probes, printed)) in rows.iter().enumerate() {
            let name = NAMES[which];
            let stages = attributes as i32 + which as i32;
            let theory = stage_rate(probes).powi(stages);
            let rates: Vec<f64> =
                runs.iter().map(|hits| hits[which] as f64 / negatives as f64).collect();
            let [printed_theory, printed_mean, printed_sd] = printed;
            let label = |what: &str| format!("L={attributes} k={probes} {name} {what}");
            found.cell(label("theory")).printed(printed_theory, LAST_DIGIT).formula(theory);
            let sd = expected_deviation(theory, stages, probes, negatives as f64);
            let mut measured = mean_of(&rates);
            // A few runs may be alike by chance.
            measured.std_error = measured.std_error.max(sd / (rates.len() as f64).sqrt());
            found
                .cell(label("mean"))
                .printed(printed_mean, 0.0)
                .simulated(printed_sd / PRINTED_RUNS.sqrt())
                .formula(theory)
                .measured(measured);
            let cell = found
                .cell(label("sd"))
                .printed(printed_sd, 0.0)
                .simulated(error_of_deviation(sd, theory, PRINTED_RUNS, 1e4))
                .formula(sd)
                .measured(Measured {
                    mean: deviation(&rates),
                    std_error: error_of_deviation(sd, theory, rates.len() as f64, negatives as f64),
                });
            if (attributes, probes, which) == (4, 4, 0) {
                cell.because("0.000333 is a copy of the CMDBF figure beside it");
            }
        }
    }
    Ok(found)
}

/// Negatives that an MDBF and a CMDBF of the same elements take for positives.
///
/// `negative` gives the value of an attribute of a negative, from the random numbers, the number of
/// the attribute and the elements (their values, element after element).
pub(super) fn false_positives(
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
        // A CMDBF asks its attribute filters first, which are the MDBF's.
        if mdbf.contains(element) {
            found[0] += 1;
            if cmdbf.contains(element) {
                found[1] += 1;
            }
        }
    }
    found
}

/// The rate of one attribute filter.
pub(super) fn stage_rate(probes: u32) -> f64 {
    bloom_fpr(BITS, probes, ELEMENTS as f64)
}

/// An element whose digests carry raw values, as H3 takes them.
fn raw(values: impl Iterator<Item = u32>, digests: &mut [Digest]) -> ElementDigests<'_> {
    for (digest, value) in digests.iter_mut().zip(values) {
        *digest = Digest::from_value(value.into());
    }
    ElementDigests { whole: Digest::from_value(0), attributes: digests }
}

/// Standard deviation of a run's share: that of a binomial, and that of the fill of each stage,
/// whose k-th power counts.
fn expected_deviation(rate: f64, stages: i32, probes: u32, negatives: f64) -> f64 {
    let k = f64::from(probes);
    let fill = fill_variance(BITS, k * ELEMENTS as f64 / BITS);
    (rate * (1.0 - rate) / negatives + rate * rate * f64::from(stages) * k * k * fill).sqrt()
}

/// Standard error of a standard deviation over this many runs, with the kurtosis of rare events.
fn error_of_deviation(sd: f64, rate: f64, runs: f64, negatives: f64) -> f64 {
    sd / 2.0 * (2.0 / (runs - 1.0) + 1.0 / (negatives * rate) / runs).sqrt()
}
