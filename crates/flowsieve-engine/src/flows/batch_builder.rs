//! From what a reader yields to a batch of flow keys.

use super::batch::{FlowBatch, FlowPacket, FlowRows, Message};
use super::community_id::Upper;
use super::key::FlowKey;
use super::shards::{Shards, Wait};
use crate::decode::{Headers, Skip, logged_addresses};
use crate::elements::{PacketDecoder, with_name};
use crate::inputs::BatchBuilder;
use crate::trace::{LinkType, LogBatch, LogContent, LogEntry, TraceBatch, has_ports};
use std::sync::Arc;

/// Makes batches of flow keys.
pub(super) struct FlowBatchBuilder {
    decoder: PacketDecoder,
    bidirectional: bool,
    /// Log records count as packets, of which nothing but their flow is known.
    logs: bool,
    hasher: ahash::RandomState,
    /// Among which the flows are divided.
    shards: Option<Arc<Shards>>,
}

impl FlowBatchBuilder {
    pub(super) fn new(headers: &Headers, bidirectional: bool, logs: bool) -> Self {
        Self {
            decoder: PacketDecoder::new(headers),
            bidirectional,
            logs,
            hasher: ahash::RandomState::new(),
            shards: None,
        }
    }

    /// Makes batches whose flows are divided among these shards, and does their work while there is
    /// nothing to make.
    pub(super) fn for_shards(self, shards: Option<Arc<Shards>>) -> Self {
        Self { shards, ..self }
    }

    /// Creates a packet without bytes, flags and VLAN tag.
    #[inline]
    fn of_flow(&self, key: FlowKey, upper: Upper) -> FlowPacket {
        let (key, reversed) = if self.bidirectional { key.undirected() } else { (key, false) };
        let hash = key.hash_with(&self.hasher);
        FlowPacket { key, hash, bytes: 0, tcp_flags: 0, reversed, vlan: None, upper }
    }

    #[inline]
    fn packet(&self, link: LinkType, frame: &[u8], out: &mut FlowRows) -> Result<(), Skip> {
        let ip = self.decoder.decode(link, frame)?;
        let upper = Upper::of(&ip);
        let key = FlowKey::new(ip.addresses, ip.protocol, upper.ports());
        let number = out.flows.len() as u32;
        out.flows.push(FlowPacket {
            bytes: ip.bytes,
            tcp_flags: ip.tcp_flags().unwrap_or_default(),
            vlan: ip.vlan,
            ..self.of_flow(key, upper)
        });
        if self.decoder.may_have_messages(&ip) {
            // No message is no error: most packets are no DNS traffic.
            let _ = self.decoder.messages(link, frame, |message| {
                out.messages.push(Message { packet: number, is_response: message.is_response });
                out.names.push(message.name);
            });
        }
        Ok(())
    }

    /// The flow of a record, in the direction of who began it, also if packets went in both.
    fn log_entry(
        &self,
        log: &LogBatch<'_>,
        entry: &LogEntry,
        out: &mut FlowRows,
    ) -> Result<(), Skip> {
        if !self.logs {
            return Err(Skip::LogRecord);
        }
        if entry.content == LogContent::NotSelected {
            return Err(Skip::DnstapType);
        }
        let addresses = logged_addresses(entry)?;
        let (protocol, source, destination) = entry.transport.ok_or(Skip::NoTransportInLog)?;
        let is_answer =
            matches!(&entry.content, LogContent::Flow(flow) if flow.directions() == [false, true]);
        let key = FlowKey::new(addresses, protocol, (source, destination));
        let key = if is_answer { key.reversed() } else { key };
        let (from, to) = key.ports();
        let upper = if has_ports(protocol) { Upper::Ports(from, to) } else { Upper::Unknown };
        let number = out.flows.len() as u32;
        out.flows.push(self.of_flow(key, upper));
        let LogContent::Dns { question, is_response } = &entry.content else { return Ok(()) };
        // No question is no error: the flow is there.
        let _ = with_name(log, question, |name| {
            out.messages.push(Message { packet: number, is_response: *is_response });
            out.names.push(name);
        });
        Ok(())
    }
}

impl BatchBuilder for FlowBatchBuilder {
    type Batch = FlowBatch;

    fn assist(&self) -> bool {
        let shards = self.shards.as_ref();
        shards.is_some_and(|shards| shards.serve(Wait::Never))
    }

    fn append(&self, batch: TraceBatch<'_>, out: &mut FlowBatch) {
        let first = out.times_ns.len() as u32;
        let is_log = matches!(batch, TraceBatch::Log(_));
        out.read(
            batch,
            |_, packet, frame, out| self.packet(packet.link, frame, out),
            |log, entry, out| self.log_entry(log, entry, out),
        );
        if let (Some(shards), false) = (&self.shards, is_log) {
            out.divide(first, shards.len());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::Tunnel;
    use crate::trace::PacketRef;
    use etherparse::{IpNumber, PacketBuilder};

    /// A query for `a`.
    const QUERY: &[u8] = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";

    const ENDS: ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [192, 0, 2, 2]);

    fn query_to(port: u16) -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(40_000, port)
            .write(&mut packet, QUERY)
            .unwrap();
        packet
    }

    fn on_ethernet(packet: &[u8]) -> Vec<u8> {
        [&[2; 12], &[8, 0][..], packet].concat()
    }

    fn in_ip(packet: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(ENDS.0, ENDS.1, 64)
            .write(&mut frame, IpNumber::IPV4, packet)
            .unwrap();
        frame
    }

    fn in_vxlan(packet: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(ENDS.0, ENDS.1, 64)
            .udp(50_000, 4789)
            .write(&mut frame, &[&[8, 0, 0, 0, 0, 0, 1, 0], &on_ethernet(packet)[..]].concat())
            .unwrap();
        frame
    }

    /// Returns the names that are found, and the sender of the flow that they belong to.
    fn found(tunnel: Tunnel, frame: &[u8]) -> (Vec<Vec<u8>>, std::net::IpAddr) {
        let packet = PacketRef {
            time_ns: 0,
            start: 0,
            captured: frame.len() as u32,
            wire: frame.len() as u32,
            link: LinkType::ETHERNET,
        };
        let batch = TraceBatch::Packets { bytes: frame, packets: &[packet] };
        let mut out = FlowBatch::default();
        FlowBatchBuilder::new(&Headers { tunnel, dns_ports: vec![5353] }, false, false)
            .append(batch, &mut out);
        let out = out.rows;
        assert_eq!(out.messages.len(), out.names.iter().count());
        let names = out.names.iter().map(<[u8]>::to_vec).collect();
        (names, out.flows[0].key.addresses().ends().0)
    }

    #[test]
    fn names_are_found_on_dns_ports_and_inside_tunnels() {
        for tunnel in [Tunnel::Outer, Tunnel::Inner] {
            for (port, is_dns) in [(53, true), (5353, true), (5354, false)] {
                let query = query_to(port);
                for (frame, in_tunnel) in
                    [(on_ethernet(&query), false), (in_ip(&query), true), (in_vxlan(&query), true)]
                {
                    let (names, sender) = found(tunnel, &frame);
                    let expected = if is_dns { vec![b"\x01a".to_vec()] } else { Vec::new() };
                    assert_eq!(names, expected, "{tunnel:?} {port}");
                    let is_outer = in_tunnel && tunnel == Tunnel::Outer;
                    let ends = if is_outer { ENDS.0 } else { [10, 0, 0, 1] };
                    assert_eq!(sender, std::net::IpAddr::from(ends), "{tunnel:?} {port}");
                }
            }
        }
    }
}
