//! DNS messages in UDP datagrams and TCP segments: direction and first question.
//!
//! Messages are taken as they stand in the packet at hand. A TCP segment yields every message that
//! begins in it behind a length at the right place; segments are not put together, so what goes on
//! from the segment before is read as if it began here, as any reader does that keeps no state.

use super::dns_name::{self, NAME_MAX};
use super::{IpPacket, Skip, ip};

/// The port of DNS.
pub const DNS_PORT: u16 = 53;

/// What is counted of a DNS message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DnsMessage<'a> {
    /// Whether the message answers (QR bit).
    pub is_response: bool,
    /// Name of the first question in wire form: length bytes and labels, lower-cased, without the
    /// final zero byte; empty for the root.
    pub name: &'a [u8],
}

/// Calls `found` for every DNS message in a packet from or to one of `ports`.
///
/// # Errors
///
/// The reason why there was none; of several messages, that of the last.
#[inline]
pub fn dns_messages(
    packet: &IpPacket<'_>,
    ports: &[u16],
    mut found: impl FnMut(DnsMessage<'_>),
) -> Result<(), Skip> {
    if !matches!(packet.protocol, ip::UDP | ip::TCP) {
        return Err(Skip::NotDns);
    }
    if packet.later_fragment {
        return Err(Skip::LaterFragment);
    }
    let (source, destination) = packet.ports().ok_or(Skip::NotDns)?;
    if !ports.contains(&source) && !ports.contains(&destination) {
        return Err(Skip::NotDns);
    }
    if packet.protocol == ip::UDP {
        in_datagram(packet.transport, &mut found)
    } else {
        in_segment(packet.transport, &mut found)
    }
}

/// The message of a UDP datagram.
fn in_datagram(datagram: &[u8], found: &mut impl FnMut(DnsMessage<'_>)) -> Result<(), Skip> {
    const HEADER: usize = 8;
    let head: &[u8; HEADER] = datagram.first_chunk().ok_or(Skip::DnsCutShort)?;
    let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
    if length < HEADER {
        return Err(Skip::DnsMalformed);
    }
    if length == HEADER {
        return Err(Skip::DnsNoPayload);
    }
    let whole = length <= datagram.len();
    message(&datagram[HEADER..length.min(datagram.len())], whole, found)
}

/// The messages that begin in a TCP segment.
fn in_segment(segment: &[u8], found: &mut impl FnMut(DnsMessage<'_>)) -> Result<(), Skip> {
    const HEADER: usize = 20;
    const RESET: u8 = 4;
    let head: &[u8; HEADER] = segment.first_chunk().ok_or(Skip::DnsCutShort)?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < HEADER {
        return Err(Skip::DnsMalformed);
    }
    // What a reset carries is a reason in words, if anything.
    let payload = match segment.get(header..) {
        Some(payload) if head[13] & RESET == 0 => payload,
        _ => return Err(Skip::DnsNoPayload),
    };
    let mut outcome = Err(Skip::DnsNoPayload);
    let mut rest = payload;
    while !rest.is_empty() {
        let Some((length, tail)) = rest.split_first_chunk() else {
            return outcome.or(Err(Skip::DnsCutShort));
        };
        let length = usize::from(u16::from_be_bytes(*length));
        let whole = length <= tail.len();
        let (bytes, behind) = tail.split_at(length.min(tail.len()));
        let this = message(bytes, whole, found);
        outcome = if outcome.is_ok() { outcome } else { this };
        rest = behind;
    }
    outcome
}

/// Reads the head and the first question of a message; `whole` says whether all of it is there.
fn message(bytes: &[u8], whole: bool, found: &mut impl FnMut(DnsMessage<'_>)) -> Result<(), Skip> {
    const HEADER: usize = 12;
    const TYPE_AND_CLASS: usize = 4;
    let beyond = if whole {
        Skip::DnsMalformed
    } else {
        Skip::DnsCutShort
    };
    let head: &[u8; HEADER] = bytes.first_chunk().ok_or(beyond)?;
    if head[4..6] == [0, 0] {
        return Err(Skip::DnsNoQuestion);
    }
    let mut buffer = [0; NAME_MAX];
    let (length, behind) = dns_name::read(bytes, HEADER, &mut buffer, beyond)?;
    if bytes.len() < behind + TYPE_AND_CLASS {
        return Err(beyond);
    }
    found(DnsMessage {
        is_response: head[2] & 0x80 != 0,
        name: &buffer[..length],
    });
    Ok(())
}
