//! Slices that are closed, shown and opened again at any moment.

#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::edges::{Cut, Edges};
use super::results::{SliceResult, Totals};
use super::rows::Rows;
use super::sequencer::{Sequencer, StageError};
use super::shard_spec::ShardSpec;
use super::time_slice::{Align, SliceGrid};
use super::whole::{Whole, WholeSpec};
use super::workers::{Begun, Collector, CountStage};
use crate::decode::Skip;
use crate::elements::{Cursor, ElementBatch, ElementKind};
use crate::filters::{CounterSpec, FilterKind, FilterSpec, Sizing};
use crate::hashing::Digester;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::thread;

const WIDTH_NS: i64 = 100;

/// A packet's time, the host that it is from, and up to which time slices are final afterwards.
type Step = (i64, u8, Option<i64>);

fn filter(kind: FilterKind, bytes: u64) -> CounterSpec {
    let sizing = Sizing::Memory { bytes, expected: None };
    CounterSpec::Filter(FilterSpec::new(kind, 1, sizing).unwrap())
}

/// The rows in the order in which they come, and the totals.
fn rows(steps: &[Step], counter: Option<CounterSpec>, exact: bool) -> (Vec<SliceResult>, Totals) {
    let whole = WholeSpec {
        exact_limit_bytes: exact.then_some(1 << 20),
        places: counter.as_ref().map(|_| 16),
        firsts_only: counter.as_ref().is_some_and(CounterSpec::counts_distinct),
    };
    let spec = ShardSpec {
        counter,
        kind: ElementKind::SOURCE,
        combinations: Vec::new(),
        exact_limit_bytes: exact.then_some(1 << 20),
        panes: None,
        window_limit_bytes: None,
        open_slices: 2,
        at_once: false,
        keep: false,
        journal: true,
        whole: Some(whole),
    };
    let shards = 2;
    let grid = SliceGrid::new(Some(WIDTH_NS), Align::Epoch, 0);
    let digester = Digester::new(0);
    let mut sink = Vec::<SliceResult>::new();
    let totals = thread::scope(|scope| {
        let mut rows = Rows::new(&mut sink, spec.empty_tally(), grid, Edges::default(), None);
        rows.keep_recent(true);
        let stage = CountStage::start(
            scope,
            &spec,
            shards,
            0,
            Begun::default(),
            Collector::new(rows, shards),
        );
        let mut sequencer = Sequencer::new(grid, 2, 1, shards, true, stage);
        let run = || -> Result<_, StageError> {
            for &(time_ns, host, final_ns) in steps {
                let mut batch = ElementBatch::default();
                batch.times_ns.push(time_ns);
                batch.elements.digests.push(digester.digest(&[host]));
                if exact {
                    batch.elements.keys.push(&[host]);
                }
                sequencer.take(&mut batch, &mut Cursor::default(), 1)?;
                if let Some(final_ns) = final_ns {
                    sequencer.emit_final(final_ns, 50)?;
                }
            }
            let (counted, _, (rows, begun)) = sequencer.finish()?;
            let whole = begun.wholes.into_iter().map(Whole::tally).collect();
            let Totals { packets, uncounted, .. } = counted;
            let packets = Totals { packets, uncounted, ..Totals::default() };
            Ok(rows.finish(Cut::AtEnd, whole, packets)?)
        };
        run().unwrap_or_else(|_| panic!("nothing fails here"))
    });
    (sink, totals)
}

fn last_of_each(rows: Vec<SliceResult>) -> Vec<SliceResult> {
    let mut last: BTreeMap<i64, SliceResult> = BTreeMap::new();
    for row in rows {
        let start_ns = row.start_ns;
        let revised = row.revised;
        let before = last.insert(start_ns, SliceResult { revised: false, partial: false, ..row });
        assert!(revised || before.is_none(), "a row replaces another and does not say so");
    }
    last.into_values().filter(|row| row.packets > 0).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let emitted = prop::option::weighted(0.3, 0_i64..2_500);
    prop::collection::vec((0_i64..2_000, any::<u8>(), emitted), 1..300)
}

proptest! {
    #[test]
    fn whenever_rows_are_shown_the_last_ones_are_those_of_all_packets(mut steps in steps(), which in 0..4, exact in any::<bool>()) {
        // Times at which slices are final never go back.
        let mut latest = i64::MIN;
        for final_ns in steps.iter_mut().filter_map(|step| step.2.as_mut()) {
            latest = latest.max(*final_ns);
            *final_ns = latest;
        }
        let (counter, exact) = match which {
            // So small that it is full.
            0 => (Some(filter(FilterKind::Subset, 64)), exact),
            1 => (Some(filter(FilterKind::Bloom, 64)), exact),
            2 => (Some(CounterSpec::HyperLogLog { precision: 4 }), exact),
            _ => (None, true),
        };
        let (shown, totals) = rows(&steps, counter.clone(), exact);
        let mut at_once: Vec<Step> = steps.iter().map(|&(time, host, _)| (time, host, None)).collect();
        at_once.sort_by_key(|&(time, ..)| time.div_euclid(WIDTH_NS));
        let (expected, expected_totals) = rows(&at_once, counter, exact);
        prop_assert_eq!(last_of_each(shown), last_of_each(expected));
        prop_assert_eq!(totals, expected_totals);
    }
}

/// Packets that come one after the other: the slice that they lie in, and how many elements each
/// has in turn.
type Stretch = (i64, Vec<u8>);

/// Counts packets in batches of this many, whose elements are divided among shards or not.
fn rows_of_batches(
    stretches: &[Stretch],
    at_once: usize,
    (divided, is_stream, one_slice): (bool, bool, bool),
) -> (Vec<SliceResult>, Totals, Vec<u64>) {
    let shards = 3;
    let spec = ShardSpec {
        counter: Some(filter(FilterKind::Subset, 4096)),
        kind: ElementKind::SOURCE,
        combinations: Vec::new(),
        exact_limit_bytes: Some(1 << 20),
        panes: None,
        window_limit_bytes: None,
        open_slices: 2,
        at_once: false,
        keep: false,
        journal: is_stream,
        whole: Some(WholeSpec {
            exact_limit_bytes: Some(1 << 20),
            places: Some(64),
            firsts_only: true,
        }),
    };
    let grid = SliceGrid::new((!one_slice).then_some(WIDTH_NS), Align::Epoch, 0);
    let digester = Digester::new(0);
    let mut sink = Vec::<SliceResult>::new();
    let mut batch = ElementBatch::default();
    let (totals, uncounted) = thread::scope(|scope| {
        let mut rows = Rows::new(&mut sink, spec.empty_tally(), grid, Edges::default(), None);
        if is_stream {
            rows.keep_recent(false);
        }
        let collector = Collector::new(rows, shards);
        let stage = CountStage::start(scope, &spec, shards, 2, Begun::default(), collector);
        let mut sequencer = Sequencer::new(grid, 2, 1, shards, is_stream, stage);
        let packets: Vec<(i64, u8)> = stretches
            .iter()
            .flat_map(|(slice, packets)| {
                let times = (0..).map(move |number: i64| slice * WIDTH_NS + number % WIDTH_NS);
                times.zip(packets.iter().copied())
            })
            .collect();
        let mut number = 0_u64;
        let run = || -> Result<_, StageError> {
            for some in packets.chunks(at_once) {
                batch.clear();
                // A batch is made in two steps, as of two buffers of a reader.
                for part in some.chunks(some.len().div_ceil(2)) {
                    let before = batch.filled();
                    for &(time_ns, elements) in part {
                        let place = batch.times_ns.len() as u32;
                        batch.times_ns.push(time_ns);
                        if elements == 0 {
                            batch.skipped.push((place, Skip::NotIp));
                        }
                        batch.further.extend((1..elements).map(|_| place));
                        for _ in 0..elements {
                            number += 1;
                            let key = (number * number % 4001).to_le_bytes();
                            batch.elements.digests.push(digester.digest(&key));
                            batch.elements.keys.push(&key);
                        }
                    }
                    if divided {
                        batch.divide(shards as u32, 1, before);
                    }
                }
                let mut cursor = Cursor::default();
                let end = batch.times_ns.len();
                sequencer.take(&mut batch, &mut cursor, end / 3)?;
                sequencer.take(&mut batch, &mut cursor, end)?;
            }
            let (counted, listed, (rows, begun)) = sequencer.finish()?;
            let whole = begun.wholes.into_iter().map(Whole::tally).collect();
            let _ = rows.finish(Cut::AtEnd, whole, Totals::default())?;
            let listed = (0..10).filter(|&index| listed.contains(index));
            Ok((counted, listed.map(|index| index as u64).collect()))
        };
        run().unwrap_or_else(|_| panic!("nothing fails here"))
    });
    (sink, totals, uncounted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn elements_that_were_divided_before_give_the_same_answers(
        stretches in prop::collection::vec(
            (0_i64..6, prop_oneof![
                prop::collection::vec(0_u8..4, 1..20),
                prop::collection::vec(1_u8..2, 900..3000),
            ]),
            1..8,
        ),
        at_once in prop_oneof![1_usize..40, 1000_usize..4000],
        is_stream in any::<bool>(),
        one_slice in any::<bool>(),
    ) {
        let of = |divided| rows_of_batches(&stretches, at_once, (divided, is_stream, one_slice));
        prop_assert_eq!(of(true), of(false));
    }
}
