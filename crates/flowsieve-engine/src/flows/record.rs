//! Flows and DNS messages as plain data.

use super::community_id::{Upper, community_id, push_community_id};
use crate::decode::{Addresses, dotted};
use serde::{Deserialize, Serialize};

/// A flow that has ended.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct FlowRecord {
    /// Time of the earliest packet in nanoseconds since the epoch.
    pub start_ns: i64,
    /// Time of the latest packet.
    pub end_ns: i64,
    /// Addresses in the direction of the first packet.
    pub addresses: Addresses,
    /// Upper-layer protocol number.
    pub protocol: u8,
    /// Ports in the direction of the first packet; 0 where there are none.
    pub ports: (u16, u16),
    /// In the direction of the first packet.
    pub forward: Direction,
    /// In the other direction; empty for flows of one direction.
    pub reverse: Direction,
    /// Identifier of the first packet's outermost VLAN tag.
    pub vlan: Option<u16>,
    /// First query name in the flow's DNS messages, in wire form without the final zero byte.
    pub domain: Option<Box<[u8]>>,
    /// Fields of the first packet above IP, for the Community ID.
    pub upper: Upper,
    /// Why it ended.
    pub ended: Ended,
    /// Number of the flow in the order in which they began: distinguishes flows that began at the
    /// same time.
    pub number: u64,
}

impl FlowRecord {
    /// Packets in both directions.
    pub const fn packets(&self) -> u64 {
        self.forward.packets + self.reverse.packets
    }

    /// IP bytes in both directions.
    pub const fn bytes(&self) -> u64 {
        self.forward.bytes + self.reverse.bytes
    }

    /// Community ID version 1 with seed 0; `None` if the ports, or type and code of ICMP, were not
    /// captured.
    pub fn community_id(&self) -> Option<String> {
        community_id(self.addresses, self.protocol, self.upper)
    }

    /// Appends the [`community_id`](Self::community_id); false if there is none.
    #[doc(hidden)]
    pub fn push_community_id(&self, text: &mut String) -> bool {
        push_community_id(self.addresses, self.protocol, self.upper, text)
    }

    /// Returns the query name as text, without the final dot.
    #[doc(hidden)]
    pub fn domain_text(&self) -> Option<String> {
        self.domain.as_deref().map(dotted)
    }
}

/// The packets of a flow in one direction.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Direction {
    /// IP packets.
    pub packets: u64,
    /// Bytes from the IP header on, as that states.
    pub bytes: u64,
    /// Union of the TCP flags.
    pub tcp_flags: u8,
}

named_enum! {
    /// Why a flow ended.
    #[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
    pub enum Ended {
        /// There were no more packets.
        Input = "input",
        /// No packet came for longer than the idle timeout.
        Idle = "idle",
        /// It went on for longer than the active timeout.
        Active = "active",
        /// The memory was needed for other flows, and this one had had no packet for long.
        Memory = "memory",
    }
}

/// A DNS message: who asked whom for what, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DnsRecord<'a> {
    /// Time of the packet in nanoseconds since the epoch.
    pub time_ns: i64,
    /// Client as source and server as destination, also if the server sent the message.
    pub addresses: Addresses,
    /// Upper-layer protocol number.
    pub protocol: u8,
    /// Port of the server.
    pub server_port: u16,
    /// The server sent it.
    pub is_response: bool,
    /// Query name in wire form, lower-cased, without the final zero byte.
    pub name: &'a [u8],
}
