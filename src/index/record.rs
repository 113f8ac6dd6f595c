//! A record of a region: a flow, or the DNS messages about a name.

use crate::decode::Addresses;
use crate::flows::FlowRecord;
use std::net::IpAddr;

/// A flow of both directions, or the DNS messages about one name between a client and a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Time of the earliest packet in nanoseconds since the epoch.
    pub start_ns: i64,
    /// Time of the latest one.
    pub end_ns: i64,
    /// Sender of the flow's first packet; the DNS client.
    pub src: IpAddr,
    /// The other end; the DNS server.
    pub dst: IpAddr,
    /// Upper-layer protocol number.
    pub protocol: u8,
    /// Port of `src`; 0 if there is none, and in DNS records.
    pub src_port: u16,
    /// Port of `dst`.
    pub dst_port: u16,
    /// Packets from `src` and from `dst`; queries and responses.
    pub packets: [u64; 2],
    /// IP bytes from `src` and from `dst`; 0 in DNS records.
    pub bytes: [u64; 2],
    /// Name in wire form without the final zero byte, in DNS records only.
    pub domain: Option<Box<[u8]>>,
}

/// Sender and receiver of packets.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ends {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
}

impl Ends {
    /// Returns the reverse direction.
    pub(super) const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

impl Record {
    /// Returns the record of a flow.
    pub(super) fn of_flow(flow: &FlowRecord) -> Self {
        let (src, dst) = flow.addresses.ends();
        Self {
            start_ns: flow.start_ns,
            end_ns: flow.end_ns,
            src,
            dst,
            protocol: flow.protocol,
            src_port: flow.ports.0,
            dst_port: flow.ports.1,
            packets: [flow.forward.packets, flow.reverse.packets],
            bytes: [flow.forward.bytes, flow.reverse.bytes],
            domain: None,
        }
    }

    /// Returns whether both ends sent something.
    #[doc(hidden)]
    pub const fn is_two_way(&self) -> bool {
        self.packets[1] > 0
    }

    /// Returns the directions that have packets; for a DNS record, from client to server.
    #[doc(hidden)]
    pub fn directions(&self) -> impl Iterator<Item = Ends> {
        let there =
            Ends { src: self.src, dst: self.dst, src_port: self.src_port, dst_port: self.dst_port };
        let answered = self.is_two_way() && self.domain.is_none();
        std::iter::once(there).chain(answered.then_some(there.reversed()))
    }
}

/// Inverse of [`Addresses::ends`].
pub(super) fn addresses(src: IpAddr, dst: IpAddr) -> Addresses {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Addresses::V4 { source: src.octets(), destination: dst.octets() }
        }
        (src, dst) => {
            let octets = |address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            Addresses::V6 { source: octets(src), destination: octets(dst) }
        }
    }
}

/// Returns the name with its labels in reverse order, so that names of a domain share a prefix.
pub(super) fn reversed_labels(name: &[u8]) -> Vec<u8> {
    let labels: Vec<&[u8]> = labels(name).collect();
    labels.into_iter().rev().flatten().copied().collect()
}

/// Returns the labels of a name in wire form, each with its length byte.
pub(super) fn labels(mut name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let &length = name.first()?;
        let end = name.len().min(1 + usize::from(length));
        let (label, rest) = name.split_at(end);
        name = rest;
        Some(label)
    })
}
