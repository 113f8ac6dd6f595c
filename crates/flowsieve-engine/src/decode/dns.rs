//! DNS messages in UDP datagrams and TCP segments: direction and first question.
//!
//! Messages are read from the packet at hand. A TCP segment yields every message that begins in it
//! behind a length at the right place. Segments are not reassembled, so the continuation of an
//! earlier segment is read as if a message began there: opcode, number of questions and class tell
//! messages from other bytes.

use super::dns_name::{self, NAME_MAX};
use super::{IpPacket, Skip, ip};

/// The port of DNS.
pub const DNS_PORT: u16 = 53;

/// Bytes of a message before its first question.
const MESSAGE_HEADER: usize = 12;

/// The counted fields of a DNS message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DnsMessage<'a> {
    /// Whether the message answers (QR bit).
    pub is_response: bool,
    /// Response code in the message's head (RCODE); 0 in a query.
    pub response_code: u8,
    /// Type of the first question (QTYPE).
    pub question_type: u16,
    /// Name of the first question in wire form: length bytes and labels, lower-cased, without the
    /// final zero byte; empty for the root.
    pub name: &'a [u8],
}

/// Whether one of two ports is in this list.
#[inline]
pub(crate) fn is_among(ports: &[u16], (source, destination): (u16, u16)) -> bool {
    let is_one = |&port: &u16| port == source || port == destination;
    ports.iter().any(is_one)
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
    if !is_among(ports, packet.ports().ok_or(Skip::NotDns)?) {
        return Err(Skip::NotDns);
    }
    match packet.protocol {
        ip::UDP => in_datagram(packet.transport, &mut found),
        _ => in_segment(packet.transport, packet.missing as usize, &mut found),
    }
}

/// Calls `found` for a DNS message that stands alone, as in a log.
///
/// # Errors
///
/// It has no question, or it is none.
pub fn dns_message(bytes: &[u8], mut found: impl FnMut(DnsMessage<'_>)) -> Result<(), Skip> {
    message(bytes, true, true, &mut found)
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
    let bytes = &datagram[HEADER..length.min(datagram.len())];
    message(bytes, whole, true, found)
}

/// Finds the messages that begin in a TCP segment; `missing` is the number of its bytes that were not
/// captured.
fn in_segment(
    segment: &[u8],
    missing: usize,
    found: &mut impl FnMut(DnsMessage<'_>),
) -> Result<(), Skip> {
    const HEADER: usize = 20;
    const RESET: u8 = 4;
    let head: &[u8; HEADER] = segment.first_chunk().ok_or(Skip::DnsCutShort)?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < HEADER {
        return Err(Skip::DnsMalformed);
    }
    // The payload of a reset, if any, is a reason in words.
    if head[13] & RESET != 0 || segment.len().saturating_add(missing) <= header {
        return Err(Skip::DnsNoPayload);
    }
    let mut outcome = Err(Skip::DnsCutShort);
    let mut rest = segment.get(header..).unwrap_or_default();
    while !rest.is_empty() {
        let Some((length, tail)) = rest.split_first_chunk() else {
            return outcome.or(Err(Skip::DnsCutShort));
        };
        let length = usize::from(u16::from_be_bytes(*length));
        let whole = length <= tail.len();
        let (bytes, behind) = tail.split_at(length.min(tail.len()));
        let this = message(bytes, whole, false, found);
        outcome = if outcome.is_ok() { outcome } else { this };
        rest = behind;
    }
    outcome
}

/// Reads the head and the first question of a message; `whole` says whether all of it is there,
/// `sure` whether it is known that a message begins here.
fn message(
    bytes: &[u8],
    whole: bool,
    sure: bool,
    found: &mut impl FnMut(DnsMessage<'_>),
) -> Result<(), Skip> {
    let beyond = if whole { Skip::DnsMalformed } else { Skip::DnsCutShort };
    let head: &[u8; MESSAGE_HEADER] = bytes.first_chunk().ok_or(beyond)?;
    if head[4..6] == [0, 0] {
        return Err(Skip::DnsNoQuestion);
    }
    let mut buffer = [0; NAME_MAX];
    let (length, behind) = dns_name::read(bytes, MESSAGE_HEADER, &mut buffer, beyond)?;
    let &[type_high, type_low, class_high, class_low] =
        bytes.get(behind..).and_then(<[u8]>::first_chunk).ok_or(beyond)?;
    let class = u16::from_be_bytes([class_high, class_low]);
    if !sure && !is_plausible(head, class) {
        return Err(Skip::DnsMalformed);
    }
    found(DnsMessage {
        is_response: head[2] & 0x80 != 0,
        response_code: head[3] & 15,
        question_type: u16::from_be_bytes([type_high, type_low]),
        name: &buffer[..length],
    });
    Ok(())
}

/// Whether these bytes can be the head of a message and the class of its only question.
fn is_plausible(head: &[u8; MESSAGE_HEADER], class: u16) -> bool {
    // Query, inverse query, status, notify, update.
    let opcode = matches!(head[2] >> 3 & 15, 0 | 1 | 2 | 4 | 5);
    // Internet, chaos, Hesiod, none, any.
    let class = matches!(class, 1 | 3 | 4 | 254 | 255);
    opcode && class && head[4..6] == [0, 1]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_packets::{join, tcp, udp, v4};
    use super::super::{Decoder, dotted};
    use super::*;
    use crate::trace::LinkType;

    /// Returns all messages of an IP packet as text, and the outcome.
    fn messages(packet: &[u8]) -> (Vec<String>, Result<(), Skip>) {
        let packet = Decoder::default().decode(LinkType(228), packet).unwrap();
        let mut found = Vec::new();
        let outcome = dns_messages(&packet, &[DNS_PORT, 5300], |message| {
            let sign = if message.is_response { '<' } else { '>' };
            found.push(format!("{sign}{}", dotted(message.name)));
        });
        (found, outcome)
    }

    #[track_caller]
    fn check(packet: &[u8], expected: &[&str], outcome: Result<(), Skip>) {
        let (found, actual) = messages(packet);
        assert_eq!(found, expected);
        assert_eq!(actual, outcome);
    }

    /// A message with one question of class internet.
    fn question(flags: u8, name: &[u8]) -> Vec<u8> {
        join(&[&[0, 7, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0], name, &[0, 0, 1, 0, 1]])
    }

    fn prefixed(message: &[u8]) -> Vec<u8> {
        join(&[&(message.len() as u16).to_be_bytes(), message])
    }

    #[test]
    fn datagrams() {
        let name = b"\x03WwW\x07example\x03com";
        let query = question(1, name);
        check(&v4(17, &udp(1000, 53, &query)), &[">www.example.com"], Ok(()));
        check(&v4(17, &udp(53, 1000, &question(0x81, name))), &["<www.example.com"], Ok(()));
        check(&v4(17, &udp(5300, 1000, &query)), &[">www.example.com"], Ok(()));
        check(&v4(17, &udp(1000, 53, &question(1, b""))), &[">."], Ok(()));
        check(&v4(17, &udp(1000, 5353, &query)), &[], Err(Skip::NotDns));
        check(&v4(132, &udp(1000, 53, &query)), &[], Err(Skip::NotDns));
        check(&v4(17, &udp(1000, 53, b"")), &[], Err(Skip::DnsNoPayload));
        check(&v4(17, &udp(1000, 53, b"junk")), &[], Err(Skip::DnsMalformed));
        check(&v4(17, &udp(1000, 53, &[0; 40])), &[], Err(Skip::DnsNoQuestion));
        check(&v4(17, &udp(1000, 53, &question(1, b"\x41a"))), &[], Err(Skip::DnsMalformed));
        let mut later = v4(17, &udp(1000, 53, &query));
        later[7] = 1;
        check(&later, &[], Err(Skip::LaterFragment));
        // The first piece of a fragmented datagram is read.
        later[6..8].copy_from_slice(&[0x20, 0]);
        check(&later, &[">www.example.com"], Ok(()));
    }

    #[test]
    fn datagrams_cut_short_anywhere() {
        let packet = v4(17, &udp(1000, 53, &question(1, b"\x07example\x03com")));
        for cut in 20..packet.len() {
            let expected = if cut < 24 { Skip::NotDns } else { Skip::DnsCutShort };
            check(&packet[..cut], &[], Err(expected));
        }
    }

    #[test]
    fn segments() {
        let one = prefixed(&question(1, b"\x03one"));
        let two = prefixed(&question(0x81, b"\x03two"));
        check(&v4(6, &tcp(1000, 53, &one)), &[">one"], Ok(()));
        check(&v4(6, &tcp(1000, 53, &join(&[&one, &two]))), &[">one", "<two"], Ok(()));
        // The second goes on in the next segment; only its length or half of that is here.
        for cut in 1..two.len() {
            let payload = join(&[&one, &two[..cut]]);
            check(&v4(6, &tcp(1000, 53, &payload)), &[">one"], Ok(()));
            check(&v4(6, &tcp(1000, 53, &two[..cut])), &[], Err(Skip::DnsCutShort));
        }
        // Other bytes in between are skipped.
        let payload = join(&[&prefixed(b"junk"), &[0, 0], &two]);
        check(&v4(6, &tcp(1000, 53, &payload)), &["<two"], Ok(()));
        // The continuation of a message is recognized by opcode, number of questions or class.
        for (at, byte) in [(4, 0x18), (6, 1), (7, 2), (21, 3), (22, 2)] {
            let mut other = one.clone();
            other[at] = byte;
            check(&v4(6, &tcp(1000, 53, &other)), &[], Err(Skip::DnsMalformed));
        }
        check(&v4(6, &tcp(1000, 53, b"")), &[], Err(Skip::DnsNoPayload));
        let mut reset = tcp(1000, 53, &one);
        reset[13] = 4;
        check(&v4(6, &reset), &[], Err(Skip::DnsNoPayload));
        // Only a part was captured.
        let whole = v4(6, &tcp(1000, 53, &one));
        for cut in 40..whole.len() {
            check(&whole[..cut], &[], Err(Skip::DnsCutShort));
        }
        // A header with options; one that is no header.
        let mut options = tcp(1000, 53, &join(&[&[1; 4], &one]));
        options[12] = 0x60;
        check(&v4(6, &options), &[">one"], Ok(()));
        let mut empty = tcp(1000, 53, &[1; 4]);
        empty[12] = 0x60;
        check(&v4(6, &empty)[..40], &[], Err(Skip::DnsNoPayload));
        options[12] = 0x40;
        check(&v4(6, &options), &[], Err(Skip::DnsMalformed));
    }

    proptest! {
        #[test]
        fn any_payload_is_survived(payload: Vec<u8>) {
            for packet in [v4(17, &udp(53, 53, &payload)), v4(6, &tcp(53, 53, &payload))] {
                for cut in [20, 28, 40, 50, packet.len()] {
                    let (found, outcome) = messages(&packet[..cut.min(packet.len())]);
                    prop_assert_eq!(found.is_empty(), outcome.is_err());
                }
            }
        }
    }
}
