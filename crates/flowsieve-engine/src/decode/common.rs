//! The frames that nearly all traffic consists of, decoded in one go.
//!
//! Ethernet II with up to two VLAN tags, IPv4 that is no later fragment or IPv6 without extension
//! headers, TCP, UDP or ICMP: a handful of loads and well-predicted branches. Everything else
//! returns `None` and goes to the general walk, which gives the same answer for all frames that
//! this path decodes.
//!
//! Measured on an EPYC at 96 bytes a packet, the packets in cache, addresses and ports read:
//!
//! | traffic | common path | general walk | etherparse's `LaxSlicedPacket` |
//! |---|---|---|---|
//! | IPv4, TCP | 4.0 ns | 11.6 ns | 30 ns |
//! | IPv4, a quarter of it UDP or ICMP | 4.0 ns | 11.8 ns | 34 ns |
//! | the same, a tenth of it IPv6, a tenth tagged | 6.4 ns | 13.5 ns | 36 ns |
//!
//! The cost in the last line is that of mispredicted branches between versions and tags.

#![expect(
    clippy::inline_always,
    reason = "a packet that is handed over through memory costs 5 ns more, measured"
)]

use super::ethernet::{ETHERNET_HEADER, IPV4, IPV6, TAG, VLAN_IDENTIFIER};
use super::ip::{ICMP, ICMPV6, TCP, UDP, V4_HEADER, V6_HEADER};
use super::{Addresses, IpPacket, udp_tunnel};

const ETHER_TYPE: usize = 12;

/// Decodes a common frame.
#[inline(always)]
pub(super) fn decode(frame: &[u8]) -> Option<IpPacket<'_>> {
    // One test admits all reads up to the IPv4 header behind two tags. Shorter frames are rare:
    // an Ethernet frame has 60 bytes, and UDP over IPv4 with no tags and no payload has 42.
    let head: &[u8; ETHERNET_HEADER + 2 * TAG + V4_HEADER] = frame.first_chunk()?;
    let ether_type = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let tag = |at: usize| usize::from(matches!(ether_type(at), 0x8100 | 0x88a8)) * TAG;
    let mut tags = 0;
    if !matches!(ether_type(ETHER_TYPE), IPV4 | IPV6) {
        // Computed instead of branched, so that the rest is compiled once and not three times.
        tags = tag(ETHER_TYPE);
        tags += tag(ETHER_TYPE + tags);
    }
    let packet = &frame[ETHERNET_HEADER + tags..];
    let vlan = (tags > 0).then(|| ether_type(ETHERNET_HEADER) & VLAN_IDENTIFIER);
    match ether_type(ETHER_TYPE + tags) {
        IPV4 => v4(packet, vlan),
        IPV6 => v6(packet, vlan),
        _ => None,
    }
}

/// Decodes a common frame, if it is no tunnel's.
#[inline(always)]
pub(super) fn decode_no_tunnel(frame: &[u8]) -> Option<IpPacket<'_>> {
    decode(frame).filter(|packet| !udp_tunnel::may_be_one(packet))
}

#[inline(always)]
fn v4(bytes: &[u8], vlan: Option<u16>) -> Option<IpPacket<'_>> {
    let head: &[u8; V4_HEADER] = bytes.first_chunk()?;
    let header = usize::from(head[0] & 15) * 4;
    let stated = u16::from_be_bytes([head[2], head[3]]);
    let end = usize::from(stated).min(bytes.len());
    let later_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x1fff != 0;
    if head[0] >> 4 != 4
        || header < V4_HEADER
        || later_fragment
        || !matches!(head[9], TCP | UDP | ICMP)
    {
        return None;
    }
    Some(IpPacket {
        addresses: Addresses::V4 {
            source: [head[12], head[13], head[14], head[15]],
            destination: [head[16], head[17], head[18], head[19]],
        },
        protocol: head[9],
        later_fragment: false,
        // None where the stated length is 0 or less than the header, or options were cut off.
        transport: bytes.get(header..end)?,
        bytes: u32::from(stated),
        missing: u32::from(stated).saturating_sub(bytes.len() as u32),
        vlan,
    })
}

#[inline(always)]
fn v6(bytes: &[u8], vlan: Option<u16>) -> Option<IpPacket<'_>> {
    let head: &[u8; V6_HEADER] = bytes.first_chunk()?;
    let payload = usize::from(u16::from_be_bytes([head[4], head[5]]));
    if head[0] >> 4 != 6 || payload == 0 || !matches!(head[6], TCP | UDP | ICMPV6) {
        return None;
    }
    let (source, rest) = head[8..].split_first_chunk()?;
    Some(IpPacket {
        addresses: Addresses::V6 { source: *source, destination: *rest.first_chunk()? },
        protocol: head[6],
        later_fragment: false,
        transport: &bytes[V6_HEADER..(V6_HEADER + payload).min(bytes.len())],
        bytes: (V6_HEADER + payload) as u32,
        missing: (V6_HEADER + payload).saturating_sub(bytes.len()) as u32,
        vlan,
    })
}
