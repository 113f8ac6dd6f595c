//! d-left report: how long the operations take.

use super::statistics::mean_of;
use super::{Findings, Found, Settings};
use crate::filters::{DleftSpec, ElementDigests, FilterSpec, MembershipFilter};
use crate::hashing::{Digest, Digester};
use std::hint::black_box;
use std::time::Instant;

const ELEMENTS: u64 = 500_000;

pub(super) fn run(settings: &Settings) -> Found {
    let elements = settings.scale.pick(2_000, ELEMENTS, ELEMENTS);
    let rounds = settings.scale.pick(2, 5, 20) as usize;
    let digester = Digester::new(settings.seed);
    let digests: Vec<Digest> = (0..2 * elements)
        .map(|number: u64| digester.digest(&number.to_le_bytes()))
        .collect();
    let (inside, outside) = digests.split_at(elements as usize);
    let spec = FilterSpec::Dleft(DleftSpec {
        bucket_bits: 15,
        remainder_bits: 24,
        counter_bits: 2,
    });
    let mut filter = spec.build();
    let mut times: [Vec<f64>; 4] = Default::default();
    // One round more, which brings the filter into the cache.
    for round in 0..=rounds {
        filter.clear();
        let taken = [
            time(inside, |element| {
                black_box(filter.insert(element));
            }),
            time(inside, |element| {
                black_box(filter.contains(element));
            }),
            time(outside, |element| {
                black_box(filter.contains(element));
            }),
            remove_all(&mut *filter, inside),
        ];
        if round > 0 {
            for (times, taken) in times.iter_mut().zip(taken) {
                times.push(taken);
            }
        }
    }
    let names = [
        "insert",
        "contains, inserted",
        "contains, not inserted",
        "remove",
    ];
    let mut found = Findings::new([format!(
        "{elements} elements, 2^15 buckets a subtable, r = 24: 4 MiB. One thread, one element at a time, {rounds} rounds; digests are computed before. The report's own times are those of a program in Java on another machine."
    )]);
    for (name, times) in names.into_iter().zip(&times) {
        found.cell(name).time(mean_of(times));
    }
    Ok(found)
}

/// Nanoseconds an element.
fn time(digests: &[Digest], mut operation: impl FnMut(ElementDigests<'_>)) -> f64 {
    let started = Instant::now();
    for &whole in digests {
        operation(ElementDigests {
            whole,
            attributes: &[],
        });
    }
    started.elapsed().as_nanos() as f64 / digests.len() as f64
}

fn remove_all(filter: &mut dyn MembershipFilter, digests: &[Digest]) -> f64 {
    let removable = filter
        .as_removable()
        .expect("a d-left filter can remove elements");
    time(digests, |element| removable.remove(element))
}
