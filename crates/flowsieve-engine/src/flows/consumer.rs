//! From the inputs to a consumer of flows' packets, and to the sink.

use super::batch::{Arrival, FlowBatch, FlowCursor, FlowPacket};
use super::batch_builder::FlowBatchBuilder;
use super::plan::FlowPlan;
use super::record::FlowRecord;
use super::results::{FlowSink, FlowTotals};
use super::shards::Shards;
use crate::inputs::{A_WHILE, Feed, InputResult, PacketClock, PacketConsumer, RunError, Watch};
use std::io;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Consumes the packets that belong to flows, in the order of the trace.
pub(super) trait FlowConsumer {
    /// Whether log records count as packets.
    const TAKES_LOGS: bool = false;

    /// Reads ahead the memory that the next packets need.
    fn prefetch(&mut self, _packets: &[FlowPacket]) {}

    /// Takes a packet.
    fn take(&mut self, arrival: Arrival<'_>, output: &mut Output<'_>) -> Result<(), RunError>;

    /// Returns an empty batch in exchange for one that is consumed as a whole; `None` if packets are
    /// consumed one by one.
    fn spare(&self) -> Option<FlowBatch> {
        None
    }

    /// Consumes all packets of a batch.
    fn push_batch(&mut self, _batch: FlowBatch, _output: &mut Output<'_>) -> Result<(), RunError> {
        Ok(())
    }

    /// Returns the shards among which the flows are divided.
    fn shards(&self) -> Option<Arc<Shards>> {
        None
    }

    /// Ends flows by the time of the capture. Returns the time at which to call it next.
    fn expire(&mut self, _now_ns: i64, _output: &mut Output<'_>) -> Result<i64, RunError> {
        Ok(i64::MAX)
    }
}

/// The totals of all packets, and the sink of flows.
pub(super) struct Output<'a> {
    pub(super) totals: FlowTotals,
    pub(super) sink: &'a mut dyn FlowSink,
}

/// Reads all inputs into the consumer.
pub(super) fn read<T: FlowConsumer>(
    plan: &FlowPlan,
    consumer: &mut T,
    sink: &mut dyn FlowSink,
    watch: &dyn Watch,
) -> Result<(Vec<InputResult>, FlowTotals), RunError> {
    let builder = FlowBatchBuilder::new(&plan.trace.headers, plan.bidirectional, T::TAKES_LOGS);
    let builder = Arc::new(builder.for_shards(consumer.shards()));
    let threads = plan.trace.threads.saturating_sub(1);
    let is_live = plan.trace.stream_delay_ns().is_some();
    let mut consuming = Consuming {
        output: Output { totals: FlowTotals::default(), sink },
        consumer,
        is_live,
        clock: PacketClock::new(),
        expires_ns: i64::MIN,
        flushed: Instant::now(),
    };
    let read: Result<_, RunError> = thread::scope(|scope| {
        let merge = plan.trace.feeds(scope, watch, &builder, threads, is_live);
        merge.drain_into(watch, &mut consuming)
    });
    let (inputs, interrupted) = read?;
    let mut totals = consuming.output.totals;
    totals.interrupted = interrupted;
    Ok((inputs, totals))
}

/// Consumes packets as they come.
struct Consuming<'a, 's, T> {
    output: Output<'s>,
    consumer: &'a mut T,
    /// Flows are shown as they end.
    is_live: bool,
    clock: PacketClock,
    /// Time of the capture at which flows may have ended.
    expires_ns: i64,
    /// Time of the last flush.
    flushed: Instant,
}

/// Packets whose memory is read ahead together.
const PREFETCHED: usize = 64;

/// Time for which the sink may keep what was written.
const FLUSH: Duration = Duration::from_millis(250);

impl<T: FlowConsumer> Consuming<'_, '_, T> {
    /// Takes packets up to number `end`. Flows end at the packet that moves the capture's time on,
    /// however many packets come at once.
    fn consume_live(
        &mut self,
        feed: &mut Feed<FlowBatchBuilder>,
        end: usize,
    ) -> Result<(), RunError> {
        while feed.cursor.packet < end {
            let (first, mut now_ns) = (feed.cursor.packet, i64::MIN);
            let mut times_ns = feed.batch.times_ns[first..end].iter();
            let last = times_ns.position(|&time_ns| {
                now_ns = self.clock.note(time_ns);
                now_ns >= self.expires_ns
            });
            let until = last.map_or(end, |last| first + last + 1);
            self.output.take(&feed.batch, &mut feed.cursor, until, self.consumer)?;
            if last.is_some() {
                self.expires_ns = self.consumer.expire(now_ns, &mut self.output)?;
            }
        }
        self.flush()
    }

    /// Flushes the sink now and then. This is all that the machine's clock decides.
    fn flush(&mut self) -> Result<(), RunError> {
        if self.flushed.elapsed() >= FLUSH {
            self.output.sink.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }
}

impl<T: FlowConsumer> PacketConsumer<Feed<FlowBatchBuilder>, RunError> for Consuming<'_, '_, T> {
    fn take(
        &mut self,
        _number: usize,
        feed: &mut Feed<FlowBatchBuilder>,
        packets: usize,
    ) -> Result<(), RunError> {
        let (first, end) = (feed.cursor.packet, feed.cursor.packet + packets);
        if first == 0
            && end == feed.batch.times_ns.len()
            && let Some(spare) = self.consumer.spare()
        {
            let batch = mem::replace(&mut feed.batch, spare);
            // The spare batch is empty: nothing is at hand until the next one.
            feed.cursor = FlowCursor::default();
            self.output.note(&batch)?;
            return self.consumer.push_batch(batch, &mut self.output);
        }
        if self.is_live {
            return self.consume_live(feed, end);
        }
        self.output.take(&feed.batch, &mut feed.cursor, end, self.consumer)
    }

    fn patience(&self) -> Option<Duration> {
        self.is_live.then_some(A_WHILE)
    }

    fn idle(&mut self) -> Result<(), RunError> {
        self.flush()
    }
}

impl Output<'_> {
    /// Counts a flow that has ended, and emits it.
    pub(super) fn end(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.totals.end_many(flow.ended, 1);
        self.sink.flow(flow)
    }

    /// Counts a batch that is consumed as a whole, and emits its DNS messages.
    fn note(&mut self, batch: &FlowBatch) -> io::Result<()> {
        self.totals.packets += batch.times_ns.len() as u64;
        self.totals.ip_packets += batch.rows.flows.len() as u64;
        self.totals.bytes += batch.rows.bytes;
        for &(_, reason) in &batch.skipped {
            *self.totals.skipped.entry(reason).or_default() += 1;
        }
        let mut skipped = batch.skipped.iter().peekable();
        let mut before = 0;
        for (number, message) in batch.rows.messages.iter().enumerate() {
            while skipped.next_if(|(skipped, _)| *skipped <= message.packet + before).is_some() {
                before += 1;
            }
            let time_ns = batch.times_ns[(message.packet + before) as usize];
            let packet = &batch.rows.flows[message.packet as usize];
            let name = batch.rows.names.get(number);
            self.sink.dns(&message.record(time_ns, packet, name))?;
            self.totals.dns_messages += 1;
        }
        Ok(())
    }

    /// Consumes the packets of a batch from the cursor up to number `end`.
    fn take(
        &mut self,
        batch: &FlowBatch,
        cursor: &mut FlowCursor,
        end: usize,
        consumer: &mut impl FlowConsumer,
    ) -> Result<(), RunError> {
        let (first, first_skipped) = (cursor.packet, cursor.skipped);
        let mut bytes = 0;
        let mut prefetched = cursor.rows.flow;
        while cursor.packet < end {
            let (number, time_ns) = (cursor.packet, batch.times_ns[cursor.packet]);
            cursor.packet += 1;
            if let Some(&(skipped, reason)) = batch.skipped.get(cursor.skipped)
                && skipped as usize == number
            {
                *self.totals.skipped.entry(reason).or_default() += 1;
                cursor.skipped += 1;
                continue;
            }
            let packet = &batch.rows.flows[cursor.rows.flow];
            if cursor.rows.flow == prefetched {
                prefetched =
                    batch.rows.flows.len().min(cursor.rows.flow + (end - number).min(PREFETCHED));
                consumer.prefetch(&batch.rows.flows[cursor.rows.flow..prefetched]);
            }
            bytes += u64::from(packet.bytes);
            let message_here = |cursor: &FlowCursor| {
                let message = batch.rows.messages.get(cursor.rows.message).copied();
                message.filter(|message| message.packet as usize == cursor.rows.flow)
            };
            let name = message_here(cursor).map(|_| batch.rows.names.get(cursor.rows.message));
            consumer.take(Arrival { time_ns, packet, name }, self)?;
            while let Some(message) = message_here(cursor) {
                let name = batch.rows.names.get(cursor.rows.message);
                self.sink.dns(&message.record(time_ns, packet, name))?;
                self.totals.dns_messages += 1;
                cursor.rows.message += 1;
            }
            cursor.rows.flow += 1;
        }
        let packets = end - first;
        let skipped = cursor.skipped - first_skipped;
        self.totals.packets += packets as u64;
        self.totals.ip_packets += (packets - skipped) as u64;
        self.totals.bytes += bytes;
        Ok(())
    }
}
