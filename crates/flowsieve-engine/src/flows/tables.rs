//! Where the packets of a run go: into one table of live flows, or into one for each shard.
//!
//! Which flow ends for want of memory depends on all flows. So before memory gets short the tables
//! of shards are joined to one, which goes on as if it had taken all packets: the list is the same
//! however many there were. Only if the system refuses memory does it depend on how much the system
//! gives, and to which shard.

use super::batch::{Arrival, FlowBatch, FlowPacket};
use super::consumer::{FlowConsumer, Output, read};
use super::plan::FlowPlan;
use super::record::Ended;
use super::remaining::RemainingFlows;
use super::results::{FlowSink, FlowSummary};
use super::shards::{Shards, Wait};
use super::table::{FLOW_BYTES, FlowTable, MOST_FLOWS, bytes_to_join, name_cost};
use crate::guard::catch_panic;
use crate::inputs::{RunError, Watch, is_read_in_segments};
use crate::memory::can_allocate;
use std::mem;
use std::sync::Arc;
use std::thread;

/// Shards a thread, so that one that has work is free when a thread looks for it.
const SHARDS_A_THREAD: usize = 4;

/// Threads from which shards are worth their cost: with two, one has the table, and the other
/// nearly as much to do with decoding.
const LEAST_THREADS: usize = 3;

/// Most shards: with more, each has few packets of a batch.
const MOST_SHARDS: usize = 64;

/// Batches that shards have not taken yet when the next one waits.
const MOST_UNDER_WAY: usize = 4;

/// Packets that are collected where inputs take turns.
const COLLECTED: usize = 4096;

/// The tables of a run.
pub(super) enum Tables<'a> {
    Divided(Box<Divided<'a>>),
    One(Box<One>),
}

/// One table, from the beginning or after several.
pub(super) struct One {
    table: FlowTable,
    /// Number of the first flow that begins in it.
    first: u64,
}

pub(super) struct Divided<'a> {
    plan: &'a FlowPlan,
    shards: Arc<Shards>,
    /// Packets of batches that were not taken as a whole.
    collected: FlowBatch,
    /// Batches that were pushed, and batches whose ended flows were emitted.
    given: u64,
    emitted: u64,
    /// Packets that belong to flows in the batches given: flows have the numbers of theirs.
    packets: u64,
    /// Upper bound of the memory of flows that begin in the batches under way.
    under_way_bytes: u64,
    /// The system refuses memory, so each shard has what it has.
    is_limited: bool,
}

impl<'a> Tables<'a> {
    /// Several tables, if there are threads for them: those that read segments of a file. One
    /// where that is better, or where flows end when time has passed.
    pub(super) fn new(plan: &'a FlowPlan) -> Self {
        let format = plan.trace.input_format;
        if plan.trace.threads < LEAST_THREADS
            || plan.trace.is_stream()
            || !plan.trace.inputs.first().is_some_and(|first| is_read_in_segments(first, format))
        {
            return Self::one(plan);
        }
        let shards = (plan.trace.threads.min(MOST_SHARDS) * SHARDS_A_THREAD).next_power_of_two();
        let divided = Divided::new(plan, shards.min(MOST_SHARDS));
        Self::Divided(Box::new(divided))
    }

    fn one(plan: &FlowPlan) -> Self {
        let mut table = FlowTable::new(plan);
        if let Some(delay_ns) = plan.trace.stream_delay_ns() {
            table.expire_after(delay_ns);
        }
        Self::One(Box::new(One { table, first: 0 }))
    }

    /// Ends all flows.
    pub(super) fn finish(self, output: &mut Output<'_>) -> Result<RemainingFlows, RunError> {
        let finished = catch_panic(|| match self {
            Self::One(one) => {
                output.totals.late = one.table.late();
                Ok(one.table.finish())
            }
            Self::Divided(divided) => divided.finish(output),
        });
        finished.unwrap_or_else(|gone| Err(RunError::panicked(output.totals.packets, gone)))
    }
}

impl FlowConsumer for Tables<'_> {
    fn shards(&self) -> Option<Arc<Shards>> {
        match self {
            Self::One(_) => None,
            Self::Divided(divided) => Some(Arc::clone(&divided.shards)),
        }
    }

    fn prefetch(&mut self, packets: &[FlowPacket]) {
        if let Self::One(one) = self {
            one.table.prefetch(packets.iter());
        }
    }

    fn take(&mut self, arrival: Arrival<'_>, output: &mut Output<'_>) -> Result<(), RunError> {
        match self {
            Self::One(one) => one.take(arrival, output),
            Self::Divided(divided) => {
                let shards = divided.shards.len();
                divided.collected.push(arrival, shards);
                if divided.collected.rows.flows.len() < COLLECTED {
                    return Ok(());
                }
                let collected = mem::replace(&mut divided.collected, divided.shards.spare());
                self.give(collected, output)
            }
        }
    }

    fn spare(&self) -> Option<FlowBatch> {
        match self {
            Self::One(_) => None,
            Self::Divided(divided) => Some(divided.shards.spare()),
        }
    }

    fn push_batch(&mut self, batch: FlowBatch, output: &mut Output<'_>) -> Result<(), RunError> {
        if let Self::Divided(divided) = self
            && !divided.collected.rows.flows.is_empty()
        {
            let collected = mem::replace(&mut divided.collected, divided.shards.spare());
            self.give(collected, output)?;
        }
        self.give(batch, output)
    }

    fn expire(&mut self, now_ns: i64, output: &mut Output<'_>) -> Result<i64, RunError> {
        match self {
            Self::One(one) => Ok(one.table.end_idle(now_ns, &mut |flow| output.end(flow))?),
            Self::Divided(_) => Ok(i64::MAX),
        }
    }
}

impl Tables<'_> {
    /// Takes the packets of a batch that belong to flows.
    fn give(&mut self, batch: FlowBatch, output: &mut Output<'_>) -> Result<(), RunError> {
        if let Self::Divided(divided) = self {
            if divided.has_room(&batch, output)? {
                return divided.give(batch, output);
            }
            *self = Self::One(Box::new(divided.join()));
        }
        let Self::One(one) = self else { return Ok(()) };
        let mut messages = (0..).zip(&batch.rows.messages).peekable();
        let mut places: Vec<_> = batch.rows.of_shards.iter().flatten().collect();
        places.sort_unstable_by_key(|place| place.flow);
        for place in places {
            let mut name = None;
            while let Some((number, _)) =
                messages.next_if(|(_, message)| message.packet == place.flow)
            {
                name = name.or(Some(batch.rows.names.get(number)));
            }
            let packet = &batch.rows.flows[place.flow as usize];
            let time_ns = batch.times_ns[place.packet as usize];
            one.take(Arrival { time_ns, packet, name }, output)?;
        }
        Ok(())
    }
}

impl One {
    #[inline]
    fn take(&mut self, arrival: Arrival<'_>, output: &mut Output<'_>) -> Result<(), RunError> {
        let Arrival { time_ns, packet, name } = arrival;
        let number = self.first + self.table.begun();
        let at = self.table.add(time_ns, packet, number, &mut |flow| output.end(flow))?;
        if let Some(name) = name {
            self.table.name(at, name);
        }
        Ok(())
    }
}

impl<'a> Divided<'a> {
    fn new(plan: &'a FlowPlan, shards: usize) -> Self {
        Self {
            plan,
            shards: Arc::new(Shards::new(plan, shards)),
            collected: FlowBatch::default(),
            given: 0,
            emitted: 0,
            packets: 0,
            under_way_bytes: 0,
            is_limited: false,
        }
    }

    /// Returns whether there is memory for all flows that a batch may begin. No batch may be under
    /// way if there is none.
    fn has_room(&mut self, batch: &FlowBatch, output: &mut Output<'_>) -> Result<bool, RunError> {
        while self.shards.under_way() >= MOST_UNDER_WAY {
            self.serve(output)?;
        }
        let most = self.plan.memory_bytes.min(MOST_FLOWS as u64 * FLOW_BYTES);
        let more = most_bytes(batch);
        let has_room = |used| used + more <= most && !self.shards.is_short();
        if self.is_limited || has_room(self.shards.used_bytes() + self.under_way_bytes) {
            return Ok(true);
        }
        self.drain(output)?;
        let used = self.shards.used_bytes();
        if used + more <= most && !self.shards.is_short() {
            return Ok(true);
        }
        let to_join = bytes_to_join(used, self.shards.len() as u64);
        if !self.shards.is_short() && can_allocate(to_join) {
            return Ok(false);
        }
        self.shards.limit();
        self.is_limited = true;
        Ok(true)
    }

    fn give(&mut self, batch: FlowBatch, output: &mut Output<'_>) -> Result<(), RunError> {
        let packets = batch.rows.flows.len() as u64;
        self.under_way_bytes += most_bytes(&batch);
        self.shards.give(batch, self.given, self.packets);
        self.given += 1;
        self.packets += packets;
        self.emit(output)
    }

    /// Processes queued batches of one shard.
    fn serve(&mut self, output: &mut Output<'_>) -> Result<(), RunError> {
        if !self.shards.serve(Wait::IfAllAreServed) {
            // Another thread is about to let go of the last ones.
            thread::yield_now();
        }
        self.emit(output)
    }

    /// Processes all queued batches.
    fn drain(&mut self, output: &mut Output<'_>) -> Result<(), RunError> {
        while self.shards.under_way() > 0 {
            self.serve(output)?;
        }
        self.emit(output)
    }

    /// Emits the flows that ended, in the order in which they did.
    fn emit(&mut self, output: &mut Output<'_>) -> Result<(), RunError> {
        while let Some(ended) = self.shards.ended(self.emitted) {
            self.emitted += 1;
            ended.into_iter().try_for_each(|(_, flow)| output.end(flow))?;
        }
        if self.emitted == self.given {
            self.under_way_bytes = 0;
        }
        let failure = self.shards.failure();
        failure.map_or(Ok(()), |gone| Err(RunError::panicked(output.totals.packets, gone)))
    }

    /// Joins the tables of all shards into the one that would have taken all packets.
    fn join(&mut self) -> One {
        let tables = self.shards.take_tables(self.plan);
        One { table: FlowTable::joined(self.plan, tables), first: self.packets }
    }

    fn finish(mut self, output: &mut Output<'_>) -> Result<RemainingFlows, RunError> {
        let collected = mem::take(&mut self.collected);
        if !self.has_room(&collected, output)? {
            let mut tables = Tables::One(Box::new(self.join()));
            tables.give(collected, output)?;
            return tables.finish(output);
        }
        self.give(collected, output)?;
        self.drain(output)?;
        let tables = self.shards.take_tables(self.plan).into_iter();
        Ok(RemainingFlows::of(tables.map(FlowTable::into_run).collect()))
    }
}

/// Returns the most memory that flows may take which begin in a batch.
fn most_bytes(batch: &FlowBatch) -> u64 {
    let names =
        (0..batch.rows.messages.len()).map(|name| name_cost(Some(batch.rows.names.get(name))));
    batch.rows.flows.len() as u64 * FLOW_BYTES + names.sum::<u64>()
}

/// Lists the flows of the inputs, which are one trace in time order.
///
/// A flow goes to `sink` when it has ended: in no order, but always the same.
/// [`super::SortedFlows`] puts them in the order of start. Damaged inputs are no error: their
/// packets up to the damage count, and the summary says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn list(
    plan: &FlowPlan,
    sink: &mut dyn FlowSink,
    watch: &dyn Watch,
) -> Result<FlowSummary, RunError> {
    plan.check()?;
    let mut tables = Tables::new(plan);
    let (inputs, totals) = read(plan, &mut tables, sink, watch)?;
    let mut output = Output { totals, sink };
    let last = tables.finish(&mut output)?;
    let Output { mut totals, sink } = output;
    totals.end_many(Ended::Input, last.len() as u64);
    sink.last(last)?;
    Ok(FlowSummary { inputs, totals, uniqueness: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::batch::FlowRows;
    use super::super::community_id::Upper;
    use super::super::key::FlowKey;
    use super::super::plan::LEAST_MEMORY;
    use super::super::record::{DnsRecord, FlowRecord};
    use super::super::results::FlowTotals;
    use super::*;
    use crate::decode::Addresses;
    use crate::inputs::Watch;
    use crate::plan::TracePlan;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;
    use std::io::{self, Write as _};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Flows in the order in which they ended, and behind them those that were there at the end;
    /// times and names of DNS messages.
    #[derive(Debug, Default, PartialEq)]
    struct Listed(Vec<FlowRecord>, Vec<(i64, Vec<u8>)>);

    impl FlowSink for Listed {
        fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
            // Numbers have to put flows in order, no more.
            self.0.push(FlowRecord { number: 0, ..flow });
            Ok(())
        }

        fn dns(&mut self, message: &DnsRecord<'_>) -> io::Result<()> {
            self.1.push((message.time_ns, message.name.to_vec()));
            Ok(())
        }
    }

    /// Also if a test fails.
    struct SetAtEnd<'a>(&'a AtomicBool);

    impl Drop for SetAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    type Taken = (i64, FlowPacket, Option<Vec<u8>>);

    fn packets() -> impl Strategy<Value = Vec<Taken>> {
        let packet = (0_u16..300, any::<bool>(), 0_u32..1500, -20_i64..100, 0_u8..20);
        prop::collection::vec(packet, 0..1500).prop_map(|packets| {
            let hasher = ahash::RandomState::new();
            let mut time_ns = 0;
            let packet_of = |(flow, reversed, bytes, step, name): (u16, bool, u32, i64, u8)| {
                time_ns += step;
                let addresses = if flow % 7 == 0 {
                    Addresses::V6 { source: [flow as u8; 16], destination: [3; 16] }
                } else {
                    Addresses::V4 { source: [10, 0, 0, flow as u8], destination: [10, 0, 0, 1] }
                };
                let key = FlowKey::new(addresses, 17, (flow, 53));
                let packet = FlowPacket {
                    key,
                    hash: key.hash_with(&hasher),
                    bytes,
                    tcp_flags: name,
                    reversed,
                    vlan: None,
                    upper: Upper::Ports(flow, 53),
                };
                (time_ns, packet, (name == 0).then(|| vec![bytes as u8; 9]))
            };
            packets.into_iter().map(packet_of).collect()
        })
    }

    fn plan() -> impl Strategy<Value = FlowPlan> {
        let memory = prop_oneof![3_u64..60, Just(1 << 20)];
        let timeout = || prop::option::of(1_i64..3000);
        (memory, timeout(), timeout(), any::<bool>()).prop_map(
            |(flows, idle_ns, active_ns, bidirectional)| FlowPlan {
                memory_bytes: flows * FLOW_BYTES,
                idle_ns,
                active_ns,
                bidirectional,
                ..FlowPlan::default()
            },
        )
    }

    fn arrival((time_ns, packet, name): &Taken) -> Arrival<'_> {
        Arrival { time_ns: *time_ns, packet, name: name.as_deref() }
    }

    /// Pushes packets one by one, or in batches of these sizes.
    fn take(
        tables: &mut impl FlowConsumer,
        packets: &[Taken],
        at_once: &[usize],
        output: &mut Output<'_>,
    ) {
        let mut left = packets;
        for &at_once in at_once.iter().cycle() {
            let (now, further) = left.split_at(left.len().min(at_once));
            left = further;
            match tables.spare() {
                Some(mut batch) if at_once > 2 => {
                    assert!(
                        batch.rows.flows.is_empty()
                            && batch.rows.of_shards.iter().all(Vec::is_empty)
                    );
                    let shards = tables.shards().unwrap().len();
                    for taken in now {
                        batch.push(arrival(taken), shards);
                    }
                    tables.push_batch(batch, output).unwrap();
                }
                _ => {
                    for taken in now {
                        tables.take(arrival(taken), output).unwrap();
                    }
                }
            }
            if left.is_empty() {
                return;
            }
        }
    }

    fn list(mut tables: Tables<'_>, packets: &[Taken], at_once: &[usize]) -> (Listed, FlowTotals) {
        let mut sink = Listed::default();
        let mut output = Output { totals: FlowTotals::default(), sink: &mut sink };
        let is_over = AtomicBool::new(false);
        let last = thread::scope(|scope| {
            let _over = SetAtEnd(&is_over);
            if let Some(shards) = tables.shards() {
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if !shards.serve(Wait::Never) {
                            thread::yield_now();
                        }
                    }
                });
            }
            take(&mut tables, packets, at_once, &mut output);
            tables.finish(&mut output).unwrap()
        });
        // The last ones in parts are the last ones.
        let (mut parts, mut before) = (Vec::new(), None);
        for &count in at_once.iter().cycle() {
            let part = last.part_behind(before.as_ref(), count);
            if part.len() == 0 {
                break;
            }
            assert!(part.len() <= count);
            last.copies(&part, &mut |flows| parts.extend_from_slice(flows));
            before = Some(part);
        }
        let all: Vec<_> = last.collect();
        assert_eq!(parts, all);
        let totals = output.totals;
        for flow in all {
            sink.flow(flow).unwrap();
        }
        (sink, totals)
    }

    proptest! {
        #[test]
        fn the_list_is_the_same_however_many_shards_there_are(
            plan in plan(),
            mut packets in packets(),
            shards in prop::sample::select(vec![1_usize, 2, 8, 64]),
            at_once in prop::collection::vec(1_usize..200, 1..5),
        ) {
            for (_, packet, _) in &mut packets {
                packet.reversed &= plan.bidirectional;
            }
            let (expected, expected_totals) = list(Tables::one(&plan), &packets, &at_once);
            let divided = Tables::Divided(Box::new(Divided::new(&plan, shards)));
            let (listed, totals) = list(divided, &packets, &at_once);
            prop_assert_eq!(listed.0, expected.0);
            prop_assert_eq!(totals, expected_totals);
        }
    }

    /// Returns a capture that threads read in segments: DNS messages, other packets of UDP, and
    /// frames without IP.
    fn capture() -> tempfile::NamedTempFile {
        let query = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        let mut file = vec![
            0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
        ];
        for number in 0_u32..40_000 {
            let mut frame = Vec::new();
            if number % 97 == 0 {
                // An ARP frame.
                frame.extend([2; 12]);
                frame.extend([8, 6]);
                frame.resize(60, 0);
            } else {
                let source = (number * 7 % 5003).to_be_bytes();
                PacketBuilder::ethernet2([2; 6], [4; 6])
                    .ipv4([10, 0, source[2], source[3]], [10, 9, 0, 1], 64)
                    .udp(40_000, if number % 5 == 0 { 53 } else { 54 })
                    .write(&mut frame, query)
                    .unwrap();
            }
            for field in [number / 100, number % 100, frame.len() as u32, frame.len() as u32] {
                file.extend(field.to_le_bytes());
            }
            file.extend(frame);
        }
        let mut capture = tempfile::NamedTempFile::new().unwrap();
        capture.write_all(&file).unwrap();
        capture
    }

    struct Nobody;

    impl Watch for Nobody {
        fn progress(&self, _: u64, _: u64) {}
    }

    #[test]
    fn a_capture_in_segments_has_the_same_flows_names_and_totals_with_shards() {
        let capture = capture();
        let plan = |threads, memory_bytes| FlowPlan {
            memory_bytes,
            trace: TracePlan::new([capture.path()]).with_threads(threads),
            ..FlowPlan::default()
        };
        assert!(matches!(Tables::new(&plan(2, 1 << 30)), Tables::One(_)));
        assert!(matches!(Tables::new(&plan(3, 1 << 30)), Tables::Divided(_)));
        for memory_bytes in [1 << 30, LEAST_MEMORY] {
            let mut expected = Listed::default();
            let one = super::list(&plan(1, memory_bytes), &mut expected, &Nobody).unwrap();
            assert!(one.totals.dns_messages > 7_000 && one.totals.skipped.len() == 1);
            assert_eq!(one.totals.dns_messages, expected.1.len() as u64);
            let ended = one.totals.ended.of(Ended::Memory);
            assert_eq!(ended > 0, memory_bytes == LEAST_MEMORY);
            for threads in [3, 8] {
                let mut listed = Listed::default();
                let many = super::list(&plan(threads, memory_bytes), &mut listed, &Nobody).unwrap();
                assert_eq!(many.totals, one.totals);
                assert_eq!(listed, expected);
            }
        }
    }

    /// Where tables cannot be joined, each shard ends its own flows: other ones, but no packet is
    /// lost.
    #[test]
    fn shards_that_are_limited_keep_all_packets() {
        let plan = FlowPlan::default();
        let hasher = ahash::RandomState::new();
        let packets: Vec<Taken> = (0_u32..20_000)
            .map(|number| {
                let addresses = Addresses::V4 { source: [10, 0, 0, 2], destination: [10, 0, 0, 1] };
                let ports = ((number * 7 % 9001) as u16, 53);
                let key = FlowKey::new(addresses, 17, ports);
                let packet = FlowPacket {
                    key,
                    hash: key.hash_with(&hasher),
                    bytes: 1,
                    tcp_flags: 0,
                    reversed: false,
                    vlan: None,
                    upper: Upper::Ports(ports.0, ports.1),
                };
                (i64::from(number), packet, None)
            })
            .collect();
        let divided = Divided::new(&plan, 8);
        divided.shards.limit();
        let divided = Tables::Divided(Box::new(Divided { is_limited: true, ..divided }));
        let (listed, totals) = list(divided, &packets, &[700, 1]);
        let packets: u64 = listed.0.iter().map(|flow| flow.forward.packets).sum();
        assert_eq!(packets, 20_000);
        // Each shard keeps one flow; all others end.
        assert_eq!(totals.flows, listed.0.len() as u64 - 8);
        assert_eq!(totals.ended.of(Ended::Memory), totals.flows);
    }

    #[test]
    fn a_shard_that_panics_is_an_error_and_no_hang() {
        let plan = FlowPlan::default();
        let mut divided = Divided::new(&plan, 2);
        let mut sink = Listed::default();
        let mut output = Output { totals: FlowTotals::default(), sink: &mut sink };
        // Places of packets that are not there.
        let place = super::super::batch::FlowPlace { flow: 7, packet: 7 };
        let batch = FlowBatch {
            rows: FlowRows { of_shards: vec![vec![place], Vec::new()], ..FlowRows::default() },
            ..FlowBatch::default()
        };
        let error =
            divided.give(batch, &mut output).and_then(|()| divided.drain(&mut output)).unwrap_err();
        assert!(matches!(error, RunError::Worker { .. }), "{error}");
        assert_eq!(divided.shards.under_way(), 0);
    }
}
