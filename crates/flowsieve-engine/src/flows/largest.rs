//! The largest flows, in bounded memory.

use super::record::FlowRecord;
use super::results::FlowSink;
use crate::memory::can_allocate;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

named_enum! {
    /// The order of a list of flows.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub enum FlowOrder {
        /// The earliest first.
        #[default]
        Start = "start",
        /// By bytes of both directions, the most first.
        Bytes = "bytes",
        /// By packets, the most first.
        Packets = "packets",
        /// The longest first.
        Duration = "duration",
    }
}

impl FlowOrder {
    /// Returns the number by which a flow is large.
    const fn number(self, flow: &FlowRecord) -> u64 {
        match self {
            Self::Start => 0,
            Self::Bytes => flow.bytes(),
            Self::Packets => flow.packets(),
            Self::Duration => flow.end_ns.abs_diff(flow.start_ns),
        }
    }
}

/// Keeps the flows that are first in an order; of equal ones those that began first.
#[derive(Debug)]
pub struct LargestFlows {
    order: FlowOrder,
    most: usize,
    /// The last in the order on top.
    kept: BinaryHeap<Ranked>,
}

/// A flow behind its place in the order; no two flows have the same number.
type Ranked = ((Reverse<u64>, i64, u64), FlowRecord);

impl LargestFlows {
    /// Flows that are kept at most.
    pub const MOST: usize = 1 << 20;

    /// Keeps up to `most` flows.
    pub fn new(order: FlowOrder, most: usize) -> Self {
        Self { order, most: most.min(Self::MOST), kept: BinaryHeap::new() }
    }

    /// Hands the flows on in their order.
    ///
    /// # Errors
    ///
    /// `sink` failed.
    pub fn emit(self, sink: &mut dyn FlowSink) -> io::Result<()> {
        let flows = self.kept.into_sorted_vec();
        flows.into_iter().try_for_each(|(_, flow)| sink.flow(flow))
    }

    /// Makes room for one more flow.
    fn reserve(&mut self) -> io::Result<()> {
        let bytes = 2 * self.kept.capacity() * size_of::<Ranked>();
        if self.kept.len() == self.kept.capacity()
            && !(can_allocate(bytes as u64) && self.kept.try_reserve(1).is_ok())
        {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "the system does not give the memory of the largest flows; ask for fewer with -n",
            ));
        }
        Ok(())
    }
}

impl FlowSink for LargestFlows {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        let place = (Reverse(self.order.number(&flow)), flow.start_ns, flow.number);
        if self.kept.len() < self.most {
            self.reserve()?;
            self.kept.push((place, flow));
        } else if let Some(mut last) = self.kept.peek_mut()
            && place < last.0
        {
            *last = (place, flow);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::Addresses;
    use crate::flows::{Direction, Ended, Upper};

    #[derive(Default)]
    struct Numbers(Vec<u64>);

    impl FlowSink for Numbers {
        fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
            self.0.push(flow.number);
            Ok(())
        }
    }

    fn flow(number: u64, start_ns: i64, end_ns: i64, packets: u64, bytes: u64) -> FlowRecord {
        FlowRecord {
            start_ns,
            end_ns,
            addresses: Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] },
            protocol: 17,
            ports: (1, 2),
            forward: Direction { packets, bytes, tcp_flags: 0 },
            reverse: Direction::default(),
            vlan: None,
            domain: None,
            upper: Upper::Ports(1, 2),
            ended: Ended::Input,
            number,
        }
    }

    #[test]
    fn the_first_in_each_order_are_kept() {
        for (order, expected) in [
            (FlowOrder::Start, [1, 0, 2]),
            (FlowOrder::Bytes, [3, 0, 2]),
            (FlowOrder::Packets, [2, 1, 0]),
            (FlowOrder::Duration, [4, 1, 0]),
        ] {
            let mut largest = LargestFlows::new(order, 3);
            for flow in [
                flow(0, 5, 9, 2, 100),
                flow(1, 4, 9, 2, 10),
                flow(2, 5, 8, 7, 100),
                flow(3, 6, 7, 1, 900),
                flow(4, 7, 99, 1, 1),
            ] {
                largest.flow(flow).unwrap();
            }
            let mut numbers = Numbers::default();
            largest.emit(&mut numbers).unwrap();
            assert_eq!(numbers.0, expected, "{}", order.name());
        }
    }
}
