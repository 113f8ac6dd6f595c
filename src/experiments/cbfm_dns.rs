//! CBFM paper, Fig. 8: false-positive rates on DNS traffic ({source, resolver, domain}) by memory,
//! for queries with all attributes and with {source, domain}.
//!
//! Negatives are drawn from the traffic: values that occur, each in another element, but not
//! together.

use super::captures::{ExperimentCapture, dns_traffic};
use super::result::{ChartScale, Curve, ExperimentError};
use super::runs::{Random, in_parallel};
use super::statistics::rate_of;
use super::uniform::{Digests, FULL, ONE_CUT, TWO_CUTS, hits, predicted};
use super::{Experiment, Found, Settings};
use crate::decode::Headers;
use crate::elements::{ElementBatch, ElementKind, ElementRule, Extractor};
use crate::filters::matrix_sizing::largest_size;
use crate::filters::sizing::{best_probes, shared_blocked_fpr};
use crate::filters::{
    ElementDigests, FilterKind, FilterSpec, MatrixSpec, PlannedCombination, Sizing, SubsetSpec,
};
use crate::hashing::{Digest, Digester};
use crate::trace::{Capture, InputFormat};
use std::collections::HashSet;

/// {source, domain}.
const SOURCE_DOMAIN: u32 = 0b101;

const QUERIES: [(u32, &str); 2] = [(FULL, "full"), (SOURCE_DOMAIN, "{source, domain}")];

/// Bits for each distinct element.
const MEMORY: [u64; 5] = [4, 8, 16, 32, 64];

/// Draws without a negative after which a capture has none.
const MOST_DRAWS: u64 = 50;

/// Distinct elements of a capture, and how many {source, domain} pairs they have.
struct Triples {
    elements: Vec<Digests>,
    pairs: u64,
    /// Negatives of each of the [`QUERIES`].
    negatives: [Vec<Digests>; 2],
}

pub(super) fn fig_8(settings: &Settings) -> Found {
    let (captures, mut found) = dns_traffic(settings)?;
    found.remarks.extend([
        "Negatives: values of different elements that do not occur together. MDBF reports all of them as contained, and so does the attribute stage of CMDBF. The formula for the matrices is (1), for evenly spread values; on traffic one resolver or one busy client owns rows of the matrix, and the rate is higher than the formula by a factor that no memory brings down. So it does not bind here. The subset filter is this program's own structure, one blocked array for the elements and their {source, domain} pairs.".into(),
        "The paper's trace is not public and its figure has no numbers. The CBFM here keeps {source, domain} and {resolver, domain}.".into(),
    ]);
    for capture in &captures {
        one_capture(settings, capture, &mut found)?;
    }
    Ok(found)
}

fn one_capture(
    settings: &Settings,
    capture: &ExperimentCapture,
    found: &mut Experiment,
) -> Result<(), ExperimentError> {
    let runs = settings.scale.pick(2, 10, 20) as usize;
    let negatives = settings.scale.pick(500, 20_000, 50_000);
    let triples = read(settings, capture, negatives)?;
    let n = triples.elements.len() as u64;
    let with_bits = |bits: u64| {
        let bytes = (bits * n / 8).max(64);
        structures(bytes, n, triples.pairs).map(|(name, spec)| (bits, bytes, name, spec))
    };
    let values = |mask| if mask == SOURCE_DOMAIN { triples.pairs } else { n } as f64;
    let structures: Vec<_> = MEMORY.into_iter().flat_map(with_bits).collect();
    let jobs = in_parallel(settings.threads, structures.len() * runs, |job| {
        let digester = Digester::new(settings.run_seed(job % runs));
        triples.false_positives(&structures[job / runs].3, digester)
    });
    let name = &capture.name;
    found.remarks.push(format!(
        "{name}: {n} distinct elements, {} distinct pairs of source and domain; {runs} filters of each kind and size, {} negatives of full queries and {} of {{source, domain}}.",
        triples.pairs,
        triples.negatives[0].len(),
        triples.negatives[1].len()
    ));
    for (number, (mask, query)) in QUERIES.into_iter().enumerate() {
        if triples.negatives[number].is_empty() {
            found.remarks.push(format!("{name}: there are no negatives for {query}."));
            continue;
        }
        let mut curves: Vec<Curve> = Vec::new();
        let trials = triples.negatives[number].len() as u64;
        for ((bits, bytes, structure, spec), runs) in structures.iter().zip(jobs.chunks(runs)) {
            let hits: Option<Vec<u64>> = runs.iter().map(|hits| hits[number]).collect();
            let Some(hits) = hits else { continue };
            let formula = predicted(spec, &values, 1.0, mask);
            // All filters meet the same negatives, so the formula gives the variance of their rates.
            let measured = rate_of(hits, trials, formula);
            let cell = found.cell(format!("{name}: {query}, {structure}, {bits} bits/element"));
            cell.measured(measured).formula = formula;
            if matches!(spec, FilterSpec::Matrix(_) | FilterSpec::Cartesian(_)) {
                cell.not_binding().because("formula (1) is for evenly spread values");
            }
            Curve::add_measured(&mut curves, structure, *bytes as f64, measured);
        }
        found.chart(
            format!("cbfm-fig-8-{}", found.charts.len() + 1),
            format!("False-positive rate on DNS traffic, query {query}: {name}"),
            "At equal memory, by 4 to 64 bits for each distinct element.",
            [("memory", ChartScale::Bytes), ("false-positive rate", ChartScale::Log)],
            curves,
        );
    }
    Ok(())
}

impl Triples {
    /// Returns how many negatives of each query a filter takes for elements; `None` if it does not
    /// answer the query. Every digester hashes the same elements anew.
    fn false_positives(&self, spec: &FilterSpec, digester: Digester) -> [Option<u64>; 2] {
        let again = |digests: &Digests| -> Digests {
            let attributes = digests.0.map(|digest| digester.digest(&digest.value().to_le_bytes()));
            (attributes, Digest::join(FULL, attributes))
        };
        let mut filter = spec.build();
        for element in &self.elements {
            let (attributes, whole) = again(element);
            filter.insert(ElementDigests { whole, attributes: &attributes });
        }
        std::array::from_fn(|number| {
            let [hits] =
                hits(&*filter, self.negatives[number].iter().map(again), [QUERIES[number].0]);
            hits
        })
    }
}

/// Reads the distinct elements of a capture, and draws negatives.
fn read(
    settings: &Settings,
    capture: &ExperimentCapture,
    wanted: u64,
) -> Result<Triples, ExperimentError> {
    let rule = ElementRule { kind: ElementKind::DNS, ..ElementRule::default() };
    let extractor = Extractor::new(rule, &Headers::default(), Digester::new(0), true, false);
    let unreadable = |error: crate::trace::TraceError| ExperimentError(error.to_string());
    let mut reader = Capture::open(&capture.path, InputFormat::Auto).map_err(unreadable)?;
    let mut batch = ElementBatch::default();
    let (mut seen, mut pairs) = (HashSet::new(), HashSet::new());
    let mut elements = Vec::new();
    // Packets before a damage count.
    while let Ok(Some(packets)) = reader.next_batch() {
        batch.clear();
        extractor.extract(packets, &mut batch);
        for attributes in batch.elements.attributes.chunks_exact(3) {
            let attributes = [attributes[0], attributes[1], attributes[2]];
            if seen.insert(attributes) {
                pairs.insert([attributes[0], attributes[2]]);
                elements.push((attributes, Digest::join(FULL, attributes)));
            }
        }
    }
    let mut random = Random::new(settings.seed, 8);
    let mut pick = |fits: &dyn Fn(&[Digest; 3]) -> bool| {
        let mut negatives = Vec::new();
        let mut draws = 0;
        while (negatives.len() as u64) < wanted && draws < MOST_DRAWS * wanted {
            draws += 1;
            let attributes: [Digest; 3] = std::array::from_fn(|attribute| {
                elements[random.below(elements.len() as u64) as usize].0[attribute]
            });
            if fits(&attributes) {
                negatives.push((attributes, Digest::join(FULL, attributes)));
            }
        }
        negatives
    };
    let negatives = [
        pick(&|attributes| !seen.contains(attributes)),
        pick(&|attributes| !pairs.contains(&[attributes[0], attributes[2]])),
    ];
    Ok(Triples { pairs: pairs.len() as u64, elements, negatives })
}

/// Returns the structures with at most `bytes`, for n elements with this many pairs.
fn structures(bytes: u64, elements: u64, pairs: u64) -> [(&'static str, FilterSpec); 7] {
    let sizing = Sizing::Memory { bytes, expected: Some(elements) };
    let matrix = |cuts: &[u32]| {
        let size = largest_size(3, cuts, u128::from(bytes) * 8).max(1);
        // The largest stored combinations decide the rate.
        let order = if cuts.is_empty() { 3 } else { 2 };
        let cells = (size as f64).powi(order);
        let probes = best_probes(cells, elements as f64, 16);
        FilterSpec::Matrix(MatrixSpec::cbfm(3, size, cuts, probes))
    };
    let published = |kind| FilterSpec::new(kind, 3, sizing).expect("there are 64 bytes or more");
    [
        ("SBF", published(FilterKind::Bloom)),
        ("MDBF", published(FilterKind::Mdbf)),
        ("CMDBF", published(FilterKind::Cmdbf)),
        ("BFM", matrix(&[])),
        ("CBFM, one cut", matrix(ONE_CUT)),
        ("CBFM, two cuts", matrix(TWO_CUTS_AT_DOMAIN)),
        ("subset", subset(bytes, elements, pairs)),
    ]
}

/// {source, resolver} and {resolver, domain} cut: {source, domain} stays, and the resolver alone.
const TWO_CUTS_AT_DOMAIN: &[u32] = &[TWO_CUTS[0], 0b110];

/// Returns the subset filter with the k and `k_S` that minimize the sum of both rates.
fn subset(bytes: u64, elements: u64, pairs: u64) -> FilterSpec {
    let lines = (bytes / 64).max(1);
    let sum = |&(whole, pair): &(u32, u32)| {
        let written = [(elements as f64, whole), (pairs as f64, pair)];
        shared_blocked_fpr(lines as f64, whole, &written)
            + shared_blocked_fpr(lines as f64, pair, &written)
    };
    let (probes, pair) = (1..=8)
        .flat_map(|whole| (1..=8).map(move |pair| (whole, pair)))
        .min_by(|a, b| sum(a).total_cmp(&sum(b)))
        .expect("there are 64 choices");
    FilterSpec::Subset(SubsetSpec {
        halving: false,
        attributes: 3,
        shape: lines.into(),
        probes,
        combinations: vec![PlannedCombination { mask: SOURCE_DOMAIN, probes: pair }],
    })
}
