//! An export that is joined from pieces has the rows and totals of a single run.

use super::distributed::{Division, WHOLE, division, inputs, plan, read_in_pieces, shuffle};
use flowsieve::distributed::{
    PieceError, RowPlace, RowSums, RowTally, ShardRows, SlicePart, WireFormat as _, grid_of,
};
use flowsieve::elements::ElementKind;
use flowsieve::export::{
    ExportPlan, ExportRows, ExportSink, ExportSummary, ExportTotals, ExportWhat, export,
};
use flowsieve::pipeline::SliceGrid;
use flowsieve::plan::TracePlan;
use flowsieve::selection::Selection;
use proptest::prelude::*;
use std::io;
use std::ops::Range;
use tempfile::TempDir;

/// Returns the value in a row of a column, or `None` if the column is empty.
fn of<T: Copy>(column: &[T], row: usize) -> Option<T> {
    column.get(row).copied()
}

/// Rows as text, with their times.
#[derive(Default)]
struct Rows(Vec<(i64, String)>);

impl Rows {
    fn push(&mut self, rows: &ExportRows, row: usize) {
        let texts = [&rows.src, &rows.dst, &rows.domain, &rows.community_id];
        let texts = texts.map(|texts| (texts.ends().len() > row).then(|| texts.get(row)));
        let numbers = [
            of(&rows.src_port, row).map(u64::from),
            of(&rows.dst_port, row).map(u64::from),
            of(&rows.proto, row).map(u64::from),
            of(&rows.packets, row),
            of(&rows.bytes, row),
        ];
        let flags = (of(&rows.tcp_flags, row), of(&rows.vlan, row));
        let dns = (of(&rows.dns_type, row), of(&rows.dns_rcode, row));
        let left = of(&rows.left, row);
        let text = format!("{texts:?} {numbers:?} {flags:?} {dns:?} {left:?}");
        self.0.push((rows.start_ns[row], text));
    }
}

impl ExportSink for Rows {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        range.for_each(|row| self.push(rows, row));
        Ok(())
    }
}

fn of_summary(summary: &ExportSummary) -> (Vec<String>, ExportTotals) {
    let inputs = summary.inputs.iter().map(|input| {
        let error = input.error.as_ref().map(ToString::to_string);
        let (packets, left_out) = (input.packets, input.left_out);
        format!("{:?} {packets} {left_out} {error:?}", input.container)
    });
    (inputs.collect(), summary.totals.clone())
}

type Exported = (Vec<(i64, String)>, (Vec<String>, ExportTotals));

/// Returns the rows of a single run in the order of time. The run writes slices with late packets
/// after all others.
fn at_once(plan: &ExportPlan, grid: SliceGrid) -> Exported {
    let mut rows = Rows::default();
    let summary = export(plan, &mut rows, &()).unwrap();
    if let ExportWhat::Elements { .. } = plan.what {
        rows.0.sort_by_key(|(start_ns, _)| grid.index(*start_ns));
    }
    (rows.0, of_summary(&summary))
}

/// Returns the same rows in pieces.
fn in_pieces(plan: &ExportPlan, division: Division) -> Exported {
    let read = read_in_pieces(plan, division);
    let maker = ShardRows::new(plan, None).unwrap();
    let mut sums = RowSums::new(plan);
    let mut rows: Vec<(RowPlace, (i64, String))> = Vec::new();
    for (slice, shards) in read.parts {
        for (shard, parts) in shards {
            let take = |made: &mut ExportRows, places: &[RowPlace]| {
                let mut texts = Rows::default();
                texts.rows(made, 0..made.len())?;
                assert!(places.is_sorted());
                rows.extend(places.iter().copied().zip(texts.0));
                Ok(())
            };
            let tally = maker.rows(slice, shard, &parts, &read.table, take);
            let tally = RowTally::from_bytes(&tally.unwrap().to_bytes()).unwrap();
            sums.shard(&tally).unwrap();
            assert!(sums.shard(&tally).is_err(), "it came twice");
        }
    }
    shuffle(&mut rows, division.shuffle);
    rows.sort_by_key(|(place, _)| *place);
    let rows = rows.into_iter().map(|(_, row)| row);
    (rows.collect(), of_summary(&sums.finish(read.summary).unwrap()))
}

fn exports() -> impl Strategy<Value = ExportPlan> {
    let kinds = prop::sample::select(vec![
        ElementKind::FLOW,
        ElementKind::HOST_PAIR,
        ElementKind::DNS,
        ElementKind::SOURCE,
        ElementKind::DESTINATION,
    ]);
    let what = (prop::option::weighted(0.8, kinds), any::<bool>(), any::<bool>());
    (plan(), what).prop_map(|(plan, (kind, undirected, queries_only))| ExportPlan {
        trace: plan.trace,
        what: kind.map_or(ExportWhat::Packets, |kind| ExportWhat::Elements {
            kind,
            undirected: undirected
                && !matches!(kind, ElementKind::SOURCE | ElementKind::DESTINATION),
            queries_only: queries_only && kind == ElementKind::DNS,
            slicing: plan.slicing,
            memory_bytes: 1 << 30,
        }),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_the_rows_of_one_run(inputs in inputs(), plan in exports(), division in division()) {
        let folder = TempDir::new().unwrap();
        let inputs = inputs.write(&folder).into_iter().map(Into::into).collect();
        let plan = ExportPlan { trace: TracePlan { inputs, ..plan.trace }, ..plan };
        let grid = grid_of(&plan).unwrap();
        prop_assert_eq!(in_pieces(&plan, division), at_once(&plan, grid));
    }

    #[test]
    fn elements_of_packets_that_are_damaged_are_refused_or_exported(
        place in any::<usize>(),
        value in 1_u8..,
        plan in exports(),
    ) {
        let trace = TracePlan {
            inputs: vec!["traces/netns-dns.pcap".into()],
            selection: Selection::default(),
            ..plan.trace
        };
        let plan = ExportPlan { trace, ..plan };
        let read = read_in_pieces(&plan, WHOLE);
        let maker = ShardRows::new(&plan, None).unwrap();
        let shards = read.parts.iter().flat_map(|(slice, shards)| shards.iter().map(move |(shard, parts)| (*slice, *shard, &parts[0])));
        let shards: Vec<_> = shards.filter(|(_, _, part)| !part.firsts.is_empty()).collect();
        let (slice, shard, part) = shards[place % shards.len()];
        let nowhere = |_: &mut ExportRows, _: &[RowPlace]| Ok(());
        let mut damaged = part.clone();
        let at = place % damaged.firsts.len();
        damaged.firsts[at] ^= value;
        match maker.rows(slice, shard, &[damaged], &read.table, nowhere) {
            Ok(_) | Err(PieceError::Bytes { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let tally = maker.rows(slice, shard, std::slice::from_ref(part), &read.table, nowhere).unwrap();
        let mut bytes = tally.to_bytes();
        let at = place % bytes.len();
        bytes[at] ^= value;
        let _ = RowTally::from_bytes(&bytes);
        bytes.truncate(at);
        prop_assert!(RowTally::from_bytes(&bytes).is_err());
        // An element of another shard is refused.
        let other = shards[(place + 1) % shards.len()].2.clone();
        if other.shard != shard {
            let moved = SlicePart { slice, shard, ..other };
            prop_assert!(maker.rows(slice, shard, &[moved], &read.table, nowhere).is_err());
        }
    }
}
