//! Flows in the order of their start, in bounded memory.
//!
//! Flows come as they end. Those beyond the memory go to temporary files.

use super::record::FlowRecord;
use super::remaining::RemainingFlows;
use super::results::FlowSink;
use crate::sorted::{Item, Sorted};
use std::io;

/// Gathers flows and gives them back in the order of their start.
#[derive(Debug)]
pub struct SortedFlows {
    sorted: Sorted<FlowRecord>,
    last: Option<RemainingFlows>,
}

impl SortedFlows {
    /// Keeps this many bytes of flows in memory, and further ones in temporary files.
    pub const fn new(limit_bytes: u64) -> Self {
        Self { sorted: Sorted::new(limit_bytes), last: None }
    }

    /// Hands all flows on in order of start; of equal ones, in the order in which they began in the
    /// trace.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `sink` failed.
    pub fn emit(self, sink: &mut dyn FlowSink) -> io::Result<()> {
        match self.last {
            Some(last) if self.sorted.is_empty() => sink.last(last),
            last => self.sorted.drain_among(last, |flow| sink.flow(flow)),
        }
    }

    /// Gives all flows in order of start; of equal ones, in the order in which they began in the
    /// trace.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `take` failed.
    pub fn drain(self, take: impl FnMut(FlowRecord) -> io::Result<()>) -> io::Result<()> {
        self.sorted.drain_among(self.last, take)
    }
}

impl FlowSink for SortedFlows {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.sorted.push(flow)
    }

    fn last(&mut self, flows: RemainingFlows) -> io::Result<()> {
        // They are in order already, and where they are is memory of the table.
        match &mut self.last {
            None => self.last = Some(flows),
            Some(_) => flows.into_iter().try_for_each(|flow| self.sorted.push(flow))?,
        }
        Ok(())
    }
}

impl Item for FlowRecord {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.start_ns, self.number)
    }

    fn further_bytes(&self) -> usize {
        self.domain.as_ref().map_or(0, |name| name.len() + 16)
    }
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
            any::<([u8; 4], [u8; 4])>()
                .prop_map(|(source, destination)| Addresses::V4 { source, destination }),
            any::<([u8; 16], [u8; 16])>()
                .prop_map(|(source, destination)| Addresses::V6 { source, destination }),
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
