//! Structures state all of their memory: what they allocate is what they report, empty and
//! overfull.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

use flowsieve_filters::hashing::{Digest, Digester};
use flowsieve_filters::{
    Counter, CounterSpec, DigestColumns, FilterKind, FilterSpec, Sizing, Structure,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Memory of each structure: small enough that lines are on the heap. Arrays of bits and the cells
/// of `dleft` are pages of the system, which the allocator does not see: for them the test checks
/// that nothing else grows.
const BYTES: u64 = 48 << 10;

/// Memory that is not reported: the structure itself, and the lists of its arrays.
const FIXED: u64 = 2 << 10;

/// Number of elements, far more than there is room for.
const ELEMENTS: u64 = 300_000;

fn specs() -> Vec<CounterSpec> {
    let mut specs = Vec::new();
    for kind in FilterKind::all() {
        for expected in [None, Some(20_000)] {
            // So many buckets that their memory is more than the fixed memory.
            let bytes = if kind == FilterKind::Dleft { 8 * BYTES } else { BYTES };
            let sizing = Sizing::Memory { bytes, expected };
            let spec = FilterSpec::new(kind, 2, sizing).unwrap();
            specs.push(CounterSpec::Filter(spec.clone()));
            specs.push(CounterSpec::Filter(spec.knowing(None)));
        }
    }
    for structure in [Structure::Hll, Structure::Ell] {
        specs.push(CounterSpec::of_registers(structure, BYTES).0.unwrap());
    }
    specs
}

/// Inserts elements of two attributes, a batch at a time.
fn fill(counter: &mut Counter) {
    let digester = Digester::new(3);
    let mut sightings = Vec::new();
    for begin in (0..ELEMENTS).step_by(1000) {
        let numbers = (begin..begin + 1000).flat_map(|number| [number % 5_000, number]);
        let attributes: Vec<Digest> =
            numbers.map(|number| digester.digest(&number.to_le_bytes())).collect();
        let whole: Vec<Digest> =
            attributes.chunks(2).map(|both| Digest::join(0b11, both.iter().copied())).collect();
        counter
            .insert_batch(DigestColumns { whole: &whole, attributes: &attributes }, &mut sightings);
        sightings.clear();
    }
}

#[test]
fn structures_report_their_memory() {
    for spec in specs() {
        let before = ALLOCATOR.current_usage() as u64;
        let mut counter = spec.build();
        let held = |counter: &Counter| {
            let _ = counter;
            ALLOCATOR.current_usage() as u64 - before
        };
        let (empty, said_empty) = (held(&counter), counter.memory_bytes());
        assert!(said_empty <= spec.memory_bytes(), "{spec:?}: {said_empty}");
        assert!(empty <= said_empty + FIXED, "{spec:?}: {empty} held, {said_empty} said");
        fill(&mut counter);
        let (full, said_full) = (held(&counter), counter.memory_bytes());
        // Entries of a tree take up to twice the size of their contents.
        let stash = match &counter {
            Counter::Filter(filter) => filter.stats().counters.map_or(0, |it| 16 * it.stashed),
            _ => 0,
        };
        let (grown, said) = (full.saturating_sub(empty), said_full - said_empty + stash);
        assert!(grown <= said + FIXED, "{spec:?}: {grown} more held, {said} said");
        assert!(full <= said_full + stash + FIXED, "{spec:?}: {full} held, {said_full} said");
    }
}
