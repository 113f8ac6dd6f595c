//! Memory, rates and times of filters that are made for a false-positive rate, for `docs/accuracy.md`.
//!
//! Arguments: elements, millions of queries, and structures. For each rate and structure a line: memory, its ratio to
//! that of `bloom`, the parameters, the predicted and the measured rate with its standard error, and nanoseconds for an
//! insertion, a query for what is not there, and one for what is: the median over batches, which other work that
//! interrupts some of them does not change.

use flowsieve_filters::hashing::Digest;
use flowsieve_filters::{DigestColumns, FilterKind, FilterSpec, Known, Query, Sizing};
use std::time::Instant;

/// As the pipeline hands elements over.
const BATCH: usize = 4096;

/// The digests from number `first` on: those of distinct elements, in batches.
fn batches(first: u64, count: u64) -> impl Iterator<Item = Vec<Digest>> {
    let digest = |number: u64| {
        let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Digest::from_value(mixed ^ mixed >> 31)
    };
    let starts = (first..first + count).step_by(BATCH);
    starts.map(move |start| {
        (start..(first + count).min(start + BATCH as u64))
            .map(digest)
            .collect()
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| {
        arguments
            .get(at)
            .and_then(|number| number.parse::<u64>().ok())
    };
    let (Some(elements), Some(millions)) = (number(0), number(1)) else {
        return eprintln!("usage: measure_rates ELEMENTS MILLIONS_OF_QUERIES STRUCTURE ...");
    };
    println!("rate structure MiB /bloom parameters predicted measured ± insert miss hit (ns)");
    for exponent in 2..=8 {
        let sizing = Sizing::Rate {
            fpr: 0.1_f64.powi(exponent),
            expected: elements,
        };
        let spec = |kind| FilterSpec::new(kind, 2, sizing);
        let bloom = spec(FilterKind::Bloom).map_or(f64::NAN, |spec| spec.memory_bytes() as f64);
        for name in &arguments[2..] {
            let kind = FilterKind::ALL.iter().find(|kind| kind.name() == name);
            match kind.map(|&kind| spec(kind)) {
                Some(Ok(spec)) => measure(&spec, elements, millions, exponent, bloom),
                other => println!("1e-{exponent} {name}: {other:?}"),
            }
        }
    }
}

fn columns(whole: &[Digest]) -> DigestColumns<'_> {
    DigestColumns {
        whole,
        attributes: &[],
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn measure(spec: &FilterSpec, elements: u64, millions: u64, exponent: i32, bloom: f64) {
    let predicted = spec.rate(&Query {
        mask: 0b11,
        full: 0b11,
        known: Known::default(),
        values: &|_| elements as f64,
    });
    let mut filter = spec.build();
    let (mut sightings, mut answers) = (Vec::new(), Vec::new());
    let mut inserting = Vec::new();
    for batch in batches(0, elements) {
        sightings.clear();
        let start = Instant::now();
        filter.insert_batch(columns(&batch), &mut sightings);
        inserting.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
    }
    let mut ask = |first: u64, count: u64| {
        let (mut asking, mut yes) = (Vec::new(), 0_u64);
        for batch in batches(first, count) {
            answers.clear();
            let start = Instant::now();
            filter.contains_batch(columns(&batch), &mut answers);
            asking.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
            yes += answers.iter().filter(|&&yes| yes).count() as u64;
        }
        (median(asking), yes)
    };
    let queries = millions * 1_000_000;
    let (miss, wrong) = ask(1 << 40, queries);
    let (hit, found) = ask(0, elements);
    assert_eq!(found, elements, "no element is missed");
    println!(
        "1e-{exponent} {} {:.3} {:.3} ({}) {:.3e} {:.3e} ± {:.1e} {:.1} {miss:.1} {hit:.1}",
        spec.name(),
        spec.memory_bytes() as f64 / f64::from(1 << 20),
        spec.memory_bytes() as f64 / bloom,
        spec.describe(),
        predicted.unwrap_or(f64::NAN),
        wrong as f64 / queries as f64,
        (wrong as f64).sqrt() / queries as f64,
        median(inserting),
    );
}
