//! IPv4 and IPv6 headers, with extension headers, as far as they were captured.
//!
//! Written here rather than taken from etherparse 0.21, whose lax slices refuse an IPv4 header with
//! options that were cut off by the snapshot length (its addresses are readable and count), look
//! for extension headers in later fragments, which have none, and do not say what follows an
//! extension header that was cut off. The numbers are etherparse's, and the tests hold the two
//! against each other wherever both have an answer.

use super::bytes::{array, be16, byte};
use super::layer::{Layer, Step};
use super::{Addresses, IpPacket, Skip};
use etherparse::IpNumber;

/// Protocol numbers.
pub(crate) const ICMP: u8 = IpNumber::ICMP.0;
pub(crate) const IGMP: u8 = IpNumber::IGMP.0;
pub(crate) const TCP: u8 = IpNumber::TCP.0;
pub(crate) const IGRP: u8 = IpNumber::IGP.0;
pub(crate) const UDP: u8 = IpNumber::UDP.0;
pub(crate) const DCCP: u8 = IpNumber::DCCP.0;
pub(crate) const GRE: u8 = IpNumber::GRE.0;
pub(crate) const ENCAPSULATED: u8 = IpNumber::ENCAPSULATING_SECURITY_PAYLOAD.0;
pub(crate) const AUTHENTICATION: u8 = IpNumber::AUTHENTICATION_HEADER.0;
pub(crate) const ICMPV6: u8 = IpNumber::IPV6_ICMP.0;
pub(crate) const PIM: u8 = IpNumber::PIM.0;
pub(crate) const VRRP: u8 = IpNumber::VRRP.0;
pub(crate) const SCTP: u8 = IpNumber::SCTP.0;
pub(crate) const UDP_LITE: u8 = IpNumber::UDP_LITE.0;

/// Bytes of an IPv4 header without options.
pub(super) const V4_HEADER: usize = 20;
/// Bytes of an IPv6 header.
pub(super) const V6_HEADER: usize = 40;

/// IPv6 extension headers.
const HOP_BY_HOP: u8 = IpNumber::IPV6_HEADER_HOP_BY_HOP.0;
const ROUTING: u8 = IpNumber::IPV6_ROUTE_HEADER.0;
const FRAGMENT: u8 = IpNumber::IPV6_FRAGMENTATION_HEADER.0;
const DESTINATION_OPTIONS: u8 = IpNumber::IPV6_DESTINATION_OPTIONS.0;
const SHIM6: u8 = IpNumber::SHIM6.0;

/// Chooses the layer by the version in the first nibble of an IP header.
pub(super) fn by_version(bytes: &[u8]) -> Step<'_> {
    match byte(bytes, 0)? >> 4 {
        4 => Ok((Layer::Ipv4, bytes)),
        6 => Ok((Layer::Ipv6, bytes)),
        _ => Err(Skip::BadIpHeader),
    }
}

/// Reads an IPv4 header.
pub(super) fn v4(bytes: &[u8]) -> Result<IpPacket<'_>, Skip> {
    let first = byte(bytes, 0)?;
    let header = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header < V4_HEADER {
        return Err(Skip::BadIpHeader);
    }
    let addresses = Addresses::V4 { source: array(bytes, 12)?, destination: array(bytes, 16)? };
    let stated = usize::from(be16(bytes, 2)?);
    let end = match stated {
        // Segmentation offload leaves the length to the network card: all that was captured.
        0 => bytes.len(),
        _ if stated < header => return Err(Skip::BadIpHeader),
        _ => stated.min(bytes.len()),
    };
    let later_fragment = be16(bytes, 6)? & 0x1fff != 0;
    let upper = Upper::new(byte(bytes, 9)?, header, later_fragment);
    let upper = upper.behind_extensions(&bytes[..end], false, |_| {});
    Ok(upper.of(addresses, &bytes[..end], (stated > 0).then_some(stated), bytes.len()))
}

/// Reads an IPv6 header.
pub(super) fn v6(bytes: &[u8]) -> Result<IpPacket<'_>, Skip> {
    if byte(bytes, 0)? >> 4 != 6 {
        return Err(Skip::BadIpHeader);
    }
    let addresses = Addresses::V6 { source: array(bytes, 8)?, destination: array(bytes, 24)? };
    let stated = usize::from(be16(bytes, 4)?);
    let end = match stated {
        // A jumbogram, or segmentation offload.
        0 => bytes.len(),
        _ => (V6_HEADER + stated).min(bytes.len()),
    };
    let upper = Upper::new(byte(bytes, 6)?, V6_HEADER, false);
    let upper = upper.behind_extensions(&bytes[..end], true, |_| {});
    let length = (stated > 0).then_some(V6_HEADER + stated);
    Ok(upper.of(addresses, &bytes[..end], length, bytes.len()))
}

/// Addresses of an IPv6 packet's pseudo-header (RFC 8200, RFC 6275) that do not stand in the IPv6
/// header but in an extension header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Elsewhere {
    /// The source is the home address of a mobile node.
    pub source: bool,
    /// The destination is the last one of a routing header that has not been followed to its end.
    pub destination: bool,
}

/// Returns whether an IPv4 header's options have a source route that has not been followed to its
/// end, so the last destination is not in the header itself.
pub(super) fn has_route_ahead(bytes: &[u8]) -> bool {
    let header = bytes.first().map_or(0, |first| usize::from(first & 15) * 4);
    let mut options = bytes.get(V4_HEADER..header).unwrap_or_default();
    while let &[kind, ref rest @ ..] = options {
        options = match (kind, rest) {
            // No operation.
            (1, _) => rest,
            // A loose or a strict source route, with the place of its next address.
            (131 | 137, [length, next, ..]) => return next < length,
            // The length includes kind and length.
            (2.., &[length, ..]) if length > 1 => options.get(length.into()..).unwrap_or_default(),
            _ => return false,
        };
    }
    false
}

/// Returns which addresses of an IPv6 packet's pseudo-header are in extension headers. Walks over
/// these a second time, so that callers who do not need it do not pay for it.
pub(super) fn pseudo_header(bytes: &[u8]) -> Elsewhere {
    let mut elsewhere = Elsewhere::default();
    let mut kind = bytes.get(6).copied().unwrap_or_default();
    let mut rest = bytes.get(V6_HEADER..).unwrap_or_default();
    while let (HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS, &[next, units, ..]) =
        (kind, rest)
    {
        let length = match kind {
            FRAGMENT => 8,
            _ => (usize::from(units) + 1) * 8,
        };
        let header = &rest[..length.min(rest.len())];
        match kind {
            ROUTING => elsewhere.destination |= is_under_way(header),
            DESTINATION_OPTIONS => elsewhere.source |= has_home_address(header),
            _ => {}
        }
        (kind, rest) = (next, &rest[header.len()..]);
    }
    elsewhere
}

/// Returns whether a routing header names a destination that is not yet in the IPv6 header.
fn is_under_way(header: &[u8]) -> bool {
    // Source route, home address of a mobile node, segment routing.
    matches!(header, [_, _, 0 | 2 | 4, left, ..] if *left > 0)
}

/// Returns whether there is a home address among destination options.
fn has_home_address(header: &[u8]) -> bool {
    const PAD_1: u8 = 0;
    const HOME_ADDRESS: u8 = 201;
    let mut options = header.get(2..).unwrap_or_default();
    while let &[kind, ref rest @ ..] = options {
        if kind == HOME_ADDRESS {
            return true;
        }
        options = match rest {
            _ if kind == PAD_1 => rest,
            [length, rest @ ..] => rest.get(usize::from(*length)..).unwrap_or_default(),
            [] => rest,
        };
    }
    false
}

/// Returns whether a protocol number is that of an extension header.
#[inline]
pub(super) fn is_extension(protocol: u8, v6: bool) -> bool {
    match protocol {
        AUTHENTICATION => true,
        HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS | SHIM6 => v6,
        _ => false,
    }
}

/// Returns the length of an extension header that begins with `head`, and whether a fragment other
/// than the first follows.
#[inline]
pub(super) fn extension(protocol: u8, head: [u8; 4]) -> (usize, bool) {
    let [_, units, high, low] = head;
    match protocol {
        AUTHENTICATION => ((usize::from(units) + 2) * 4, false),
        FRAGMENT => (8, u16::from_be_bytes([high, low]) & 0xfff8 != 0),
        _ => ((usize::from(units) + 1) * 8, false),
    }
}

/// The transport layer of an IP packet, behind its extension headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Upper {
    /// Its protocol number; that of an extension header if `cut_short`.
    pub protocol: u8,
    /// Its offset in the bytes that were walked over.
    pub at: usize,
    /// Whether this is a fragment other than the first, which has no transport header.
    pub later_fragment: bool,
    /// The captured bytes end before the header that this one announces.
    pub cut_short: bool,
}

impl Upper {
    /// Creates the header that an IP header announces at an offset.
    pub(super) fn new(protocol: u8, at: usize, later_fragment: bool) -> Self {
        Self { protocol, at, later_fragment, cut_short: false }
    }

    /// Walks over extension headers and shows the number of each. Each takes at least eight bytes,
    /// so the walk ends with the packet; one that was cut off still says what follows it, if its
    /// first bytes are there.
    pub(super) fn behind_extensions(
        mut self,
        bytes: &[u8],
        v6: bool,
        mut see: impl FnMut(u8),
    ) -> Self {
        while !self.later_fragment && is_extension(self.protocol, v6) {
            see(self.protocol);
            let head = bytes.get(self.at..).and_then(<[u8]>::first_chunk::<4>);
            let Some(head) = head else { return Self { cut_short: true, ..self } };
            let length;
            (length, self.later_fragment) = extension(self.protocol, *head);
            self.protocol = head[0];
            self.at += length;
        }
        self
    }

    /// Returns the packet of these addresses and bytes, with its stated length, of which this much
    /// was captured.
    fn of(
        self,
        addresses: Addresses,
        bytes: &[u8],
        stated: Option<usize>,
        captured: usize,
    ) -> IpPacket<'_> {
        IpPacket {
            addresses,
            protocol: self.protocol,
            later_fragment: self.later_fragment,
            // Options that were cut off leave nothing behind them.
            transport: bytes.get(self.at..).unwrap_or_default(),
            bytes: stated.unwrap_or(captured) as u32,
            missing: stated.map_or(u32::MAX, |length| length.saturating_sub(captured) as u32),
            vlan: None,
        }
    }
}
