//! Flows in the order of their start, in bounded memory.
//!
//! Flows come as they end. They are kept in memory up to a limit; then they are sorted and written to
//! a temporary file, a run. In the end all runs are merged. When there are many runs they are merged
//! to one before, so that the number of open files and of read buffers is bounded, too.

use super::record::FlowRecord;
use super::results::FlowSink;
use super::spool::{Run, RunReader, RunWriter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::vec;

/// Runs of one size that are merged to one.
const RUNS_MERGED: usize = 64;

/// Gathers flows and gives them back in the order of their start.
#[derive(Debug)]
pub struct SortedFlows {
    flows: Vec<FlowRecord>,
    bytes: u64,
    limit_bytes: u64,
    /// Runs by how often their flows were written.
    levels: Vec<Vec<Run>>,
}

impl SortedFlows {
    /// Keeps so many bytes of flows in memory, and further ones in temporary files.
    pub const fn new(limit_bytes: u64) -> Self {
        Self {
            flows: Vec::new(),
            bytes: 0,
            limit_bytes,
            levels: Vec::new(),
        }
    }

    /// Gives all flows in order of start; of equal ones, in the order in which they began in the trace.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `take` failed.
    pub fn drain(mut self, mut take: impl FnMut(FlowRecord) -> io::Result<()>) -> io::Result<()> {
        self.flows.sort_unstable_by_key(order);
        let mut sources = vec![Source::Memory(self.flows.into_iter())];
        for run in self.levels.into_iter().flatten() {
            sources.push(Source::Run(run.read()?));
        }
        merge(sources, &mut take)
    }

    fn spill(&mut self) -> io::Result<()> {
        self.flows.sort_unstable_by_key(order);
        let mut writer = RunWriter::new()?;
        for flow in self.flows.drain(..) {
            writer.write(&flow)?;
        }
        self.bytes = 0;
        let mut run = writer.finish()?;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(run);
            if self.levels[level].len() < RUNS_MERGED {
                break;
            }
            let mut writer = RunWriter::new()?;
            let sources = self.levels[level].drain(..);
            let sources: io::Result<Vec<Source>> =
                sources.map(|run| run.read().map(Source::Run)).collect();
            merge(sources?, &mut |flow| writer.write(&flow))?;
            run = writer.finish()?;
        }
        Ok(())
    }
}

impl FlowSink for SortedFlows {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        let cost = size_of::<FlowRecord>() + flow.domain.as_ref().map_or(0, |name| name.len() + 16);
        if self.bytes + cost as u64 > self.limit_bytes && !self.flows.is_empty() {
            self.spill()?;
        }
        if self.flows.len() == self.flows.capacity() {
            // Never for more than the limit allows.
            let most = self.limit_bytes / size_of::<FlowRecord>() as u64;
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let length = self.flows.len();
            let more = length.max(1024).min(most.saturating_sub(length)).max(1);
            self.flows.reserve_exact(more);
        }
        self.bytes += cost as u64;
        self.flows.push(flow);
        Ok(())
    }
}

const fn order(flow: &FlowRecord) -> (i64, u64) {
    (flow.start_ns, flow.number)
}

enum Source {
    Memory(vec::IntoIter<FlowRecord>),
    Run(RunReader),
}

impl Source {
    fn next(&mut self) -> io::Result<Option<FlowRecord>> {
        match self {
            Self::Memory(flows) => Ok(flows.next()),
            Self::Run(run) => run.read(),
        }
    }
}

/// Takes sorted sources in order.
fn merge(
    mut sources: Vec<Source>,
    take: &mut impl FnMut(FlowRecord) -> io::Result<()>,
) -> io::Result<()> {
    if let [source] = &mut sources[..] {
        while let Some(flow) = source.next()? {
            take(flow)?;
        }
        return Ok(());
    }
    let mut heads = Vec::with_capacity(sources.len());
    let mut heap = BinaryHeap::with_capacity(sources.len());
    for (number, source) in sources.iter_mut().enumerate() {
        let head = source.next()?;
        heap.extend(head.as_ref().map(|flow| Reverse((order(flow), number))));
        heads.push(head);
    }
    while let Some(Reverse((_, number))) = heap.pop() {
        let next = sources[number].next()?;
        heap.extend(next.as_ref().map(|flow| Reverse((order(flow), number))));
        let flow = std::mem::replace(&mut heads[number], next);
        take(flow.expect("a source on the heap has a head"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::Addresses;
    use crate::flows::{Direction, Ended, Upper};
    use proptest::prelude::*;

    fn flows() -> impl Strategy<Value = Vec<FlowRecord>> {
        let addresses = prop_oneof![
            any::<([u8; 4], [u8; 4])>().prop_map(|(source, destination)| Addresses::V4 {
                source,
                destination,
            }),
            any::<([u8; 16], [u8; 16])>().prop_map(|(source, destination)| Addresses::V6 {
                source,
                destination,
            }),
        ];
        let direction = any::<(u64, u64, u8)>().prop_map(|(packets, bytes, tcp_flags)| Direction {
            packets,
            bytes,
            tcp_flags,
        });
        let upper = prop_oneof![
            any::<(u16, u16)>().prop_map(|(a, b)| Upper::Ports(a, b)),
            any::<(u8, u8)>().prop_map(|(a, b)| Upper::Icmp(a, b)),
            Just(Upper::Portless),
            Just(Upper::Unknown),
        ];
        let ended = prop::sample::select(Ended::ALL.to_vec());
        let name = prop::option::of(prop::collection::vec(any::<u8>(), 0..255));
        let rest = (
            (-5_i64..5, any::<i64>(), any::<u8>(), any::<(u16, u16)>()),
            (direction.clone(), direction, upper, ended, name),
            prop::option::of(0_u16..4096),
        );
        let flow = (addresses, rest).prop_map(|(addresses, (times, parts, vlan))| FlowRecord {
            start_ns: times.0,
            end_ns: times.1,
            addresses,
            protocol: times.2,
            ports: times.3,
            forward: parts.0,
            reverse: parts.1,
            vlan,
            domain: parts.4.map(Into::into),
            upper: parts.2,
            ended: parts.3,
            number: 0,
        });
        prop::collection::vec(flow, 0..400)
    }

    proptest! {
        #[test]
        fn flows_come_back_whole_and_in_order_whatever_the_memory(
            mut flows in flows(),
            limit in 0_u64..100_000,
        ) {
            for (number, flow) in flows.iter_mut().enumerate() {
                flow.number = number as u64;
            }
            let mut sorted = SortedFlows::new(limit);
            for flow in &flows {
                sorted.flow(flow.clone()).unwrap();
            }
            let mut back = Vec::new();
            sorted.drain(|flow| {
                back.push(flow);
                Ok(())
            }).unwrap();
            flows.sort_by_key(|flow| flow.start_ns);
            prop_assert_eq!(back, flows);
        }
    }
}
