//! d-left report: how long the operations take, against a Bloom filter and a counting one of the
//! same rate.

use super::ratios::{HOW, Times, time_each};
use super::{Findings, Found, Settings};
use crate::filters::sizing::{best_probes, bloom_bits, dleft_fpr};
use crate::filters::{
    BloomLayout, BloomSpec, CountingSpec, DleftSpec, ElementDigests, FilterSpec, MembershipFilter,
};
use crate::hashing::{Digest, Digester};
use std::cell::RefCell;
use std::hint::black_box;

const ELEMENTS: u64 = 500_000;
const BUCKET_BITS: u32 = 15;
const REMAINDER_BITS: u32 = 24;

/// The operations, in the order in which a round does them.
const OPERATIONS: [&str; 4] = ["insert", "contains, inserted", "contains, not inserted", "remove"];

/// The rate of the d-left filter, and the counters and functions of a filter with that rate.
fn alike() -> (f64, f64, u32) {
    let rate = dleft_fpr(BUCKET_BITS + REMAINDER_BITS, ELEMENTS as f64);
    let bits = bloom_bits(rate, ELEMENTS as f64).ceil();
    (rate, bits, best_probes(bits, ELEMENTS as f64, 32))
}

/// The structures by name.
fn structures(bits: f64, probes: u32) -> [(&'static str, FilterSpec); 3] {
    [
        (
            "Bloom",
            FilterSpec::from(BloomSpec {
                bits: bits as u64,
                probes,
                layout: BloomLayout::Anywhere,
            }),
        ),
        (
            "counting",
            FilterSpec::Counting(CountingSpec { counters: bits as u64, probes, counter_bits: 4 }),
        ),
        (
            "d-left",
            FilterSpec::Dleft(DleftSpec {
                buckets: 1 << BUCKET_BITS,
                remainder_bits: REMAINDER_BITS,
                counter_bits: 2,
            }),
        ),
    ]
}

pub(super) fn run(settings: &Settings) -> Found {
    let elements = settings.scale.pick(2_000, ELEMENTS, ELEMENTS);
    let rounds = settings.scale.pick(3, 15, 31) as usize;
    let digester = Digester::new(settings.seed);
    let digests: Vec<Digest> =
        (0..2 * elements).map(|number: u64| digester.digest(&number.to_le_bytes())).collect();
    let (inside, outside) = digests.split_at(elements as usize);
    let (rate, bits, probes) = alike();
    let filters: Vec<(&str, RefCell<Box<dyn MembershipFilter>>)> = structures(bits, probes)
        .into_iter()
        .map(|(name, spec)| (name, RefCell::new(spec.build())))
        .collect();
    let mut operations: Vec<Box<dyn FnMut() -> f64 + '_>> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for operation in OPERATIONS {
        for (name, filter) in &filters {
            if operation == "remove" && filter.borrow_mut().as_removable().is_none() {
                continue;
            }
            names.push((name, operation));
            operations.push(Box::new(move || {
                let mut filter = filter.borrow_mut();
                match operation {
                    "insert" => {
                        filter.clear();
                        time(inside, |element| {
                            black_box(filter.insert(element));
                        })
                    }
                    "remove" => remove_all(&mut **filter, inside),
                    "contains, inserted" => time(inside, |element| {
                        black_box(filter.contains(element));
                    }),
                    _ => time(outside, |element| {
                        black_box(filter.contains(element));
                    }),
                }
            }));
        }
    }
    let times = Times::of(rounds, &mut operations);
    drop(operations);
    let mut found = Findings::new([
        format!(
            "{elements} elements. d-left: 2^15 buckets a subtable, r = 24, 4 MiB. Bloom and counting filters are made for its rate at {ELEMENTS} elements, {rate:.1e}: k = {probes} and {:.1} and {:.1} MiB. One thread, one element at a time, {rounds} rounds; digests are computed before.",
            bits / 8.0 / 1_048_576.0,
            bits / 2.0 / 1_048_576.0
        ),
        HOW.into(),
        "The report prints 0.2 to 0.3 ms, 0.1 ms and 0.3 to 0.4 ms, of a program in Java on another machine: 1, 0.4 and 1.4 times the first. Here an operation takes tens of nanoseconds, so these times are not those of the filter itself.".into(),
    ]);
    for (place, (name, operation)) in names.iter().enumerate() {
        found.cell(format!("{name}: {operation}")).time(times.time(place));
    }
    let of = |name: &str, operation: &str| names.iter().position(|&at| at == (name, operation));
    for operation in OPERATIONS {
        for other in ["Bloom", "counting"] {
            if let (Some(own), Some(other_place)) = (of("d-left", operation), of(other, operation))
            {
                found
                    .cell(format!("d-left / {other}: {operation}"))
                    .ratio(times.ratio(own, other_place));
            }
        }
    }
    let insert = of("d-left", "insert");
    for operation in &OPERATIONS[1..] {
        if let (Some(own), Some(insert)) = (of("d-left", operation), insert) {
            found.cell(format!("d-left: {operation} / insert")).ratio(times.ratio(own, insert));
        }
    }
    Ok(found)
}

/// Nanoseconds an element.
fn time(digests: &[Digest], mut operation: impl FnMut(ElementDigests<'_>)) -> f64 {
    time_each(digests.len(), || {
        for &whole in digests {
            operation(ElementDigests { whole, attributes: &[] });
        }
    })
}

fn remove_all(filter: &mut dyn MembershipFilter, digests: &[Digest]) -> f64 {
    let removable = filter.as_removable().expect("a filter without removal is not asked for it");
    time(digests, |element| removable.remove(element))
}
