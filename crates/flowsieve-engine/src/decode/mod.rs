//! From captured bytes to an IP packet: link layers, IP with all its extension headers, tunnels;
//! and from an IP packet to the DNS messages that it carries.
//!
//! [`Decoder::decode`] walks from layer to layer, one step a header, until it stands on an IP
//! header; with [`Tunnel::Inner`] it walks on as long as there is another one inside. The walk is
//! bounded, allocates nothing and never panics, for any bytes. What was captured counts:
//! packets cut short by the capture's snapshot length are the rule, not the exception, so an IP
//! header is enough, and ports are read where four bytes of them are there.
//!
//! | file | what it reads |
//! |---|---|
//! | `common` | the few frame shapes that are nearly all of the traffic, in one go |
//! | `layer`, `walk`, `link` | the layers; the walk from one to the next; its beginning for each link type |
//! | `ethernet`, `ieee80211`, `ppp`, `cooked`, `meta` | link layers by family |
//! | `ip` | IPv4 and IPv6 with extension headers |
//! | `tunnel`, `gre`, `udp_tunnel` | what may be inside an IP packet |
//! | `network` | where the network layer begins, and the headers before it |
//! | `places`, `hardware` | the places of addresses in a frame, for replacing them; those of link layers |
//! | `headers` | the end of the headers of a frame, for cutting packets off there |
//! | `whole` | an IP packet as bytes, and the VLANs before it |
//! | `dns`, `dns_name` | DNS messages, names |
//! | `skip` | the reasons why there is nothing to count |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod address_text;
mod bytes;
mod common;
mod cooked;
mod dns;
mod dns_name;
mod dns_numbers;
mod ethernet;
mod gre;
mod hardware;
mod headers;
mod ieee80211;
pub(crate) mod ip;
mod layer;
mod link;
mod logged;
mod meta;
mod network;
mod places;
mod ppp;
mod skip;
mod tunnel;
mod udp_tunnel;
mod walk;
mod whole;

#[cfg(test)]
mod ip_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod test_packets;
#[cfg(test)]
mod tunnel_tests;

pub use address_text::push_address;
pub(crate) use address_text::{Aligned, push_start};
pub(crate) use dns::is_among;
pub use dns::{DNS_PORT, DnsMessage, dns_message, dns_messages};
pub use dns_name::{NAME_MAX, dotted, labels_from_text, push_dotted};
#[doc(hidden)]
pub use dns_numbers::{rcode_name, rcode_number, type_name, type_number};
pub use hardware::Hardware;
pub use headers::headers_end;
pub use ip::{Elsewhere, Upper};
pub(crate) use logged::addresses_of;
#[doc(hidden)]
pub use logged::logged_addresses;
pub use network::{Network, NetworkKind, Shim, network, shims, upper};
pub use places::{Carried, Place, address_places};
pub use skip::Skip;
pub use whole::{IpBytes, vlan_ids};

use crate::trace::LinkType;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Source and destination address of an IP header, in network byte order.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source address.
        source: [u8; 4],
        /// Destination address.
        destination: [u8; 4],
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: [u8; 16],
        /// Destination address.
        destination: [u8; 16],
    },
}

impl Addresses {
    /// Returns source and destination.
    pub fn ends(self) -> (IpAddr, IpAddr) {
        match self {
            Self::V4 { source, destination } => (source.into(), destination.into()),
            Self::V6 { source, destination } => (source.into(), destination.into()),
        }
    }

    /// Returns the addresses with source and destination exchanged.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::V4 { source, destination } => {
                Self::V4 { source: destination, destination: source }
            }
            Self::V6 { source, destination } => {
                Self::V6 { source: destination, destination: source }
            }
        }
    }
}

/// An IP packet with a readable header, and what is readable behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpPacket<'a> {
    /// The addresses.
    pub addresses: Addresses,
    /// Upper-layer protocol number, behind all IPv6 extension headers and AH.
    pub protocol: u8,
    /// Whether this is a fragment other than the first: it has no transport header.
    pub later_fragment: bool,
    /// Captured bytes of the upper layer (never beyond the length that the IP header states).
    pub transport: &'a [u8],
    /// Bytes of the packet from its IP header on, as stated there. If none are stated (segmentation
    /// offload, jumbograms), the captured bytes.
    pub bytes: u32,
    /// Bytes that the IP header states and that were not captured. If none are stated, [`u32::MAX`]:
    /// any number may be missing.
    pub missing: u32,
    /// Identifier of the outermost VLAN tag before the IP header.
    pub vlan: Option<u16>,
}

/// The protocols that begin with two ports. A table, since comparisons would become a branch
/// between TCP and UDP, which traffic mixes at random: mispredicting it costs as much as the
/// decoding.
static HAS_PORTS: [bool; 256] = {
    let mut table = [false; 256];
    table[ip::TCP as usize] = true;
    table[ip::UDP as usize] = true;
    table[ip::SCTP as usize] = true;
    table
};

impl IpPacket<'_> {
    /// Returns whether another IP header may be inside: `true` wherever [`Tunnel::Inner`] finds
    /// one.
    #[inline]
    pub fn may_be_tunnel(&self) -> bool {
        match self.protocol {
            ip::TCP | ip::ICMP | ip::ICMPV6 => false,
            ip::UDP => udp_tunnel::may_be_one(self),
            _ => true,
        }
    }

    /// Returns whether the captured bytes end before it is known what the packet has: ports, the
    /// layer behind extension headers, or another packet.
    pub(crate) fn is_cut_before_ports(&self) -> bool {
        let is_v6 = matches!(self.addresses, Addresses::V6 { .. });
        self.missing > 0
            && match self.protocol {
                ip::TCP | ip::UDP => self.ports().is_none() || self.may_be_tunnel(),
                protocol => ip::is_extension(protocol, is_v6) || tunnel::is_one(protocol),
            }
    }

    /// Returns whether the protocol has neither ports nor message types.
    #[inline]
    pub fn is_portless(&self) -> bool {
        !HAS_PORTS[usize::from(self.protocol)] && !matches!(self.protocol, ip::ICMP | ip::ICMPV6)
    }

    /// Returns the flags of a TCP segment, where they were captured.
    #[inline]
    pub fn tcp_flags(&self) -> Option<u8> {
        const FLAGS: usize = 13;
        if self.later_fragment || self.protocol != ip::TCP {
            return None;
        }
        self.transport.get(FLAGS).copied()
    }

    /// Type and code of an ICMP message of either version, where they were captured.
    #[inline]
    pub fn icmp_type_and_code(&self) -> Option<[u8; 2]> {
        if self.later_fragment || !matches!(self.protocol, ip::ICMP | ip::ICMPV6) {
            return None;
        }
        self.transport.first_chunk().copied()
    }

    /// Returns source and destination port of TCP, UDP and SCTP, if both were captured.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.later_fragment || !HAS_PORTS[usize::from(self.protocol)] {
            return None;
        }
        let &[a, b, c, d] = self.transport.first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

named_enum! {
    /// Which IP header of a packet counts.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub enum Tunnel {
        /// The outermost.
        #[default]
        Outer = "outer",
        /// The innermost that can be reached; a header quoted inside an ICMP error is none of them.
        Inner = "inner",
    }
}

/// Where in packets addresses and DNS messages are looked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Headers {
    /// Which IP header counts.
    pub tunnel: Tunnel,
    /// Ports of DNS messages besides 53.
    pub dns_ports: Vec<u16>,
}

impl Headers {
    /// Returns all ports of DNS messages.
    pub(crate) fn all_dns_ports(&self) -> Vec<u16> {
        [&[DNS_PORT], &self.dns_ports[..]].concat()
    }
}

/// Finds the IP header of a captured frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder {
    tunnel: Tunnel,
}

impl Decoder {
    /// Returns a decoder that looks for the outermost or the innermost IP header.
    pub fn new(tunnel: Tunnel) -> Self {
        Self { tunnel }
    }

    /// Returns the IP packet in a frame that begins as `link` says.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    #[expect(
        clippy::inline_always,
        reason = "in line, what the caller does not look at is never put together in memory"
    )]
    #[inline(always)]
    pub fn decode<'a>(&self, link: LinkType, frame: &'a [u8]) -> Result<IpPacket<'a>, Skip> {
        if link == LinkType::ETHERNET {
            // Apart, lest the compiler look at the protocol, which no branch predictor knows,
            // before the mode, which never changes.
            match self.tunnel {
                Tunnel::Outer => {
                    if let Some(packet) = common::decode(frame) {
                        return Ok(packet);
                    }
                }
                Tunnel::Inner => {
                    if let Some(packet) = common::decode_no_tunnel(frame) {
                        return Ok(packet);
                    }
                }
            }
        }
        walk::walk(link, frame, self.tunnel)
    }

    /// Returns the bytes of the IP packet that [`Self::decode`] finds.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    #[inline]
    pub fn ip_bytes<'a>(&self, link: LinkType, frame: &'a [u8]) -> Result<IpBytes<'a>, Skip> {
        whole::find(link, frame, self.tunnel)
    }
}
