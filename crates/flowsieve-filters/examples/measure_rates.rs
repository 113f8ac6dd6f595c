//! Measures memory, rates and times of filters that are made for a false-positive rate, for
//! `docs/accuracy.md`.
//!
//! Arguments: elements, millions of queries, and structures. Prints for each rate and structure the
//! memory, its ratio to that of `bloom`, the parameters, the predicted and the measured rate with
//! its standard error, and the nanoseconds of an insertion, a miss and a hit. Times are medians
//! over batches, since other work may interrupt some of them. The insertion into a `quotient` is
//! the mean, since a few batches do the work of all; that into a `ribbon` or a `binary-fuse` (of
//! the crate xorf) is the time to build it. `quotient` and `ribbon` are queried in their saved
//! form, and their memory is the size of it.

use flowsieve_filters::hashing::Digest;
use flowsieve_filters::{
    DigestColumns, FilterKind, FilterSpec, Known, MembershipFilter, Query, QuotientFilter,
    QuotientInPlace, RibbonFilter, RibbonInPlace, Sighting, Sizing,
};
use std::time::Instant;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Filter};

/// Batch size of the pipeline.
const BATCH: usize = 4096;

/// Returns the digests of `count` distinct elements from number `first` on, in batches.
fn batches(first: u64, count: u64) -> impl Iterator<Item = Vec<Digest>> {
    let digest = |number: u64| {
        let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Digest::from_value(mixed ^ mixed >> 31)
    };
    let starts = (first..first + count).step_by(BATCH);
    starts
        .map(move |start| (start..(first + count).min(start + BATCH as u64)).map(digest).collect())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|number| number.parse::<u64>().ok());
    let (Some(elements), Some(millions)) = (number(0), number(1)) else {
        return eprintln!("usage: measure_rates ELEMENTS MILLIONS_OF_QUERIES STRUCTURE ...");
    };
    println!("rate structure MiB /bloom parameters predicted measured ± insert miss hit (ns)");
    for exponent in 2..=8 {
        let sizing = Sizing::Rate { fpr: 0.1_f64.powi(exponent), expected: elements };
        let spec = |kind| FilterSpec::new(kind, 2, sizing);
        let bloom = spec(FilterKind::Bloom).map_or(f64::NAN, |spec| spec.memory_bytes() as f64);
        for name in &arguments[2..] {
            let kind = FilterKind::all().find(|kind| kind.name() == name);
            let row = match kind.map(&spec) {
                Some(Ok(spec)) => of_spec(&spec, elements, millions),
                None if name == "quotient" => quotient(elements, millions, exponent),
                None if name == "ribbon" => ribbon(elements, millions, exponent),
                None if name == "binary-fuse" => fuse(elements, millions, exponent),
                other => {
                    println!("1e-{exponent} {name}: {other:?}");
                    continue;
                }
            };
            let queries = (millions * 1_000_000) as f64;
            println!(
                "1e-{exponent} {name} {:.3} {:.3} ({}) {:.3e} {:.3e} ± {:.1e} {:.1} {:.1} {:.1}",
                row.memory / f64::from(1 << 20),
                row.memory / bloom,
                row.parameters,
                row.predicted,
                row.wrong as f64 / queries,
                (row.wrong as f64).sqrt() / queries,
                row.insert,
                row.miss,
                row.hit,
            );
        }
    }
}

/// The measurements of a filter; times in nanoseconds per element.
struct Row {
    memory: f64,
    parameters: String,
    predicted: f64,
    wrong: u64,
    insert: f64,
    miss: f64,
    hit: f64,
}

fn columns(whole: &[Digest]) -> DigestColumns<'_> {
    DigestColumns { whole, attributes: &[] }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the nanoseconds per element that `work` takes for each batch.
fn times(first: u64, count: u64, mut work: impl FnMut(&[Digest])) -> Vec<f64> {
    let time = |batch: Vec<Digest>| {
        let start = Instant::now();
        work(&batch);
        start.elapsed().as_nanos() as f64 / batch.len() as f64
    };
    batches(first, count).map(time).collect()
}

/// Queries absent and present elements. `contains` returns how many of a batch it finds. Returns
/// the false positives, and the times of a miss and of a hit.
fn ask(
    elements: u64,
    millions: u64,
    mut contains: impl FnMut(&[Digest]) -> u64,
) -> (u64, f64, f64) {
    let mut of = |first, count| {
        let mut yes = 0;
        let times = times(first, count, |batch| yes += contains(batch));
        (yes, median(times))
    };
    let (wrong, miss) = of(1 << 40, millions * 1_000_000);
    let (found, hit) = of(0, elements);
    assert_eq!(found, elements, "no element is missed");
    (wrong, miss, hit)
}

fn of_spec(spec: &FilterSpec, elements: u64, millions: u64) -> Row {
    let predicted = spec.rate(&Query {
        mask: 0b11,
        full: 0b11,
        known: Known::default(),
        values: &|_| elements as f64,
    });
    let mut filter: Box<dyn MembershipFilter> = spec.build();
    let mut sightings: Vec<Sighting> = Vec::new();
    let inserting = times(0, elements, |batch| {
        sightings.clear();
        filter.insert_batch(columns(batch), &mut sightings);
    });
    let mut answers = Vec::new();
    let (wrong, miss, hit) = ask(elements, millions, |batch| {
        answers.clear();
        filter.contains_batch(columns(batch), &mut answers);
        answers.iter().filter(|&&yes| yes).count() as u64
    });
    Row {
        memory: spec.memory_bytes() as f64,
        parameters: spec.describe(),
        predicted: predicted.unwrap_or(f64::NAN),
        wrong,
        insert: median(inserting),
        miss,
        hit,
    }
}

/// Measures a quotient filter with the shortest fingerprints that reach the rate, queried in its
/// saved form.
fn quotient(elements: u64, millions: u64, exponent: i32) -> Row {
    let bits = (elements as f64 * 10_f64.powi(exponent)).log2().ceil() as u32;
    let mut filter = QuotientFilter::new(bits).expect("there are such fingerprints");
    let inserting = times(0, elements, |batch| {
        for &element in batch {
            filter.insert(element);
        }
    });
    let saved = filter.save();
    let Ok(in_place) = QuotientInPlace::open(&saved[..], saved.len() as u64);
    let in_place = in_place.expect("it was saved");
    let (wrong, miss, hit) = ask(elements, millions, |batch| {
        let found = batch.iter().filter(|&&element| {
            let Ok(is_there) = in_place.contains(element);
            is_there
        });
        found.count() as u64
    });
    Row {
        memory: saved.len() as f64,
        parameters: format!("p {bits}"),
        predicted: filter.rate(),
        wrong,
        insert: inserting.iter().sum::<f64>() / inserting.len() as f64,
        miss,
        hit,
    }
}

/// Measures a ribbon filter with the shortest fingerprints that reach the rate, queried in its
/// saved form.
fn ribbon(elements: u64, millions: u64, exponent: i32) -> Row {
    let bits = 10_f64.powi(exponent).log2().ceil() as u32;
    let all: Vec<Digest> = batches(0, elements).flatten().collect();
    let start = Instant::now();
    let filter = RibbonFilter::build(&all, bits).expect("there is such a filter");
    let insert = start.elapsed().as_nanos() as f64 / all.len() as f64;
    let saved = filter.save();
    let in_place = RibbonInPlace::open(&saved).expect("it was saved");
    let (wrong, miss, hit) = ask(elements, millions, |batch| {
        let found = batch.iter().filter(|&&element| in_place.contains(element));
        found.count() as u64
    });
    Row {
        memory: saved.len() as f64,
        parameters: format!("r {bits}"),
        predicted: filter.rate(),
        wrong,
        insert,
        miss,
        hit,
    }
}

/// Measures a binary fuse filter with the shortest fingerprints that reach the rate.
fn fuse(elements: u64, millions: u64, exponent: i32) -> Row {
    let all: Vec<u64> = batches(0, elements).flatten().map(Digest::value).collect();
    let made = |filter: Result<Box<dyn Filter<u64>>, &'static str>, start: Instant, bits: u32| {
        let insert = start.elapsed().as_nanos() as f64 / all.len() as f64;
        let filter = filter.expect("there is such a filter");
        let (wrong, miss, hit) = ask(elements, millions, |batch| {
            let found = batch.iter().filter(|element| filter.contains(&element.value()));
            found.count() as u64
        });
        Row {
            memory: filter.len() as f64 * f64::from(bits / 8),
            parameters: format!("r {bits}"),
            predicted: f64::from(bits).exp2().recip(),
            wrong,
            insert,
            miss,
            hit,
        }
    };
    let start = Instant::now();
    match 10_f64.powi(exponent).log2().ceil() as u32 {
        0..=8 => made(BinaryFuse8::try_from(&all).map(|it| Box::new(it) as _), start, 8),
        9..=16 => made(BinaryFuse16::try_from(&all).map(|it| Box::new(it) as _), start, 16),
        _ => made(BinaryFuse32::try_from(&all).map(|it| Box::new(it) as _), start, 32),
    }
}
