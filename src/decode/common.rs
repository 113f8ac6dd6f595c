//! The frames that nearly all traffic consists of, decoded in one go.
//!
//! Ethernet II with up to two VLAN tags, IPv4 that is no later fragment or IPv6 without extension
//! headers, TCP, UDP or ICMP: a handful of loads and well-predicted branches. Everything else is
//! `None` and left to the general walk, whose answer is the same wherever this one has one.

use super::ip::{ICMP, ICMPV6, TCP, UDP, V4_HEADER, V6_HEADER};
use super::{Addresses, IpPacket};

const ETHERNET_HEADER: usize = 14;

/// Decodes a common frame.
#[inline]
pub(super) fn decode(frame: &[u8]) -> Option<IpPacket<'_>> {
    // One test admits all reads of an untagged IPv4 header.
    let head: &[u8; ETHERNET_HEADER + V4_HEADER] = frame.first_chunk()?;
    match (head[12], head[13]) {
        (0x08, 0x00) => v4(&frame[ETHERNET_HEADER..]),
        (0x86, 0xdd) => v6(&frame[ETHERNET_HEADER..]),
        (0x81, 0x00) | (0x88, 0xa8) => match (head[16], head[17]) {
            (0x08, 0x00) => v4(&frame[ETHERNET_HEADER + 4..]),
            (0x86, 0xdd) => v6(&frame[ETHERNET_HEADER + 4..]),
            (0x81, 0x00) => match (head[20], head[21]) {
                (0x08, 0x00) => v4(&frame[ETHERNET_HEADER + 8..]),
                (0x86, 0xdd) => v6(&frame[ETHERNET_HEADER + 8..]),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[inline]
fn v4(bytes: &[u8]) -> Option<IpPacket<'_>> {
    let head: &[u8; V4_HEADER] = bytes.first_chunk()?;
    let header = usize::from(head[0] & 15) * 4;
    let end = usize::from(u16::from_be_bytes([head[2], head[3]])).min(bytes.len());
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
    })
}

#[inline]
fn v6(bytes: &[u8]) -> Option<IpPacket<'_>> {
    let head: &[u8; V6_HEADER] = bytes.first_chunk()?;
    let payload = usize::from(u16::from_be_bytes([head[4], head[5]]));
    if head[0] >> 4 != 6 || payload == 0 || !matches!(head[6], TCP | UDP | ICMPV6) {
        return None;
    }
    let (source, rest) = head[8..].split_first_chunk()?;
    Some(IpPacket {
        addresses: Addresses::V6 {
            source: *source,
            destination: *rest.first_chunk()?,
        },
        protocol: head[6],
        later_fragment: false,
        transport: &bytes[V6_HEADER..(V6_HEADER + payload).min(bytes.len())],
    })
}
