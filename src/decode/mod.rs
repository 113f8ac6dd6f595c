//! From captured bytes to an IP packet: link layers, IP with all its extension headers, tunnels.

use crate::trace::LinkType;

/// Source and destination address of an IP header, in network byte order.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
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
}

/// Which IP header of a packet counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Tunnel {
    /// The outermost.
    #[default]
    Outer,
    /// The innermost that can be reached.
    Inner,
}

/// Why a packet yields no IP packet, or an IP packet no element.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Skip {
    /// The link type is not one that is decoded.
    UnsupportedLink(LinkType),
}
