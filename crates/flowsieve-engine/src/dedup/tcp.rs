//! The state of TCP connections: how far each side has sent, and how far the other has
//! confirmed it.
//!
//! # Definitions
//!
//! For a segment with L bytes of data from sequence number S on, in one direction of a connection,
//! before the segment itself is taken into account:
//!
//! - *next*: the highest S + L (plus one for SYN and FIN) seen in this direction;
//! - *confirmed*: the highest acknowledgement seen in the other direction.
//!
//! A segment with L ≤ 1, S = next - 1 and none of SYN, FIN, RST is a *keep-alive*. Else, with L >
//! 0, it is *confirmed already* if S + L ≤ confirmed: sent again, it is a spurious retransmission.
//! Sequence numbers are compared modulo 2^32. A SYN begins a direction anew.

use super::results::DropKind;
use crate::decode::IpPacket;
use crate::decode::ip::TCP;
use ahash::RandomState;
use std::collections::HashMap;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Directions in one of the two generations; a direction takes about 40 bytes.
const MOST_DIRECTIONS: usize = 1 << 17;

/// A TCP segment, as far as it matters here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Segment {
    pub(super) ports: (u16, u16),
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    /// Bytes of data on the wire.
    pub(super) length: u32,
}

impl Segment {
    /// Reads a segment of which `missing` bytes were not captured; also returns the captured data.
    pub(super) fn read<'a>(ip: &IpPacket<'a>, missing: usize) -> Option<(Self, &'a [u8])> {
        let header: &[u8; 14] = ip.transport.first_chunk()?;
        if ip.protocol != TCP || ip.later_fragment {
            return None;
        }
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let data_offset = usize::from(header[12] >> 4) * 4;
        if data_offset < 20 {
            return None;
        }
        let length = (ip.transport.len() + missing).checked_sub(data_offset)?;
        let segment = Self {
            ports: ip.ports()?,
            sequence: word(4),
            acknowledgement: word(8),
            flags: header[13],
            length: u32::try_from(length).ok()?,
        };
        Some((segment, ip.transport.get(data_offset..).unwrap_or_default()))
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    next: Option<u32>,
    confirmed: Option<u32>,
}

/// The directions seen last. When there are too many, those that were not seen for the longest time
/// are forgotten: there are two generations, and the older one goes when the younger is full.
#[derive(Debug, Default)]
pub(super) struct TcpFlows {
    young: HashMap<u128, Direction, RandomState>,
    old: HashMap<u128, Direction, RandomState>,
}

impl TcpFlows {
    /// Returns the drop reason if the segment was seen before; `None` if it has no data and is no
    /// keep-alive. `there` and `back` name the two directions.
    pub(super) fn see(&mut self, there: u128, back: u128, segment: &Segment) -> Option<DropKind> {
        let direction = self.direction(there);
        if segment.flags & SYN != 0 {
            *direction = Direction::default();
        }
        let end = segment.sequence.wrapping_add(segment.length);
        let controls = segment.flags & (SYN | FIN | RST) != 0;
        let keep_alive = segment.length <= 1
            && !controls
            && direction.next == Some(segment.sequence.wrapping_add(1));
        let confirmed = direction.confirmed.is_some_and(|confirmed| !is_after(end, confirmed));
        let counted = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
        raise(&mut direction.next, end.wrapping_add(counted));
        if segment.flags & ACK != 0 {
            raise(&mut self.direction(back).confirmed, segment.acknowledgement);
        }
        match (keep_alive, segment.length > 0, confirmed) {
            (true, _, _) => Some(DropKind::KeepAlive),
            (false, false, _) => None,
            (false, true, true) => Some(DropKind::SpuriousRetransmission),
            (false, true, false) => Some(DropKind::Retransmission),
        }
    }

    fn direction(&mut self, name: u128) -> &mut Direction {
        if self.young.len() >= MOST_DIRECTIONS {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(name).or_insert_with(|| old.remove(&name).unwrap_or_default())
    }
}

/// Returns whether a sequence number comes after another one.
fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

fn raise(highest: &mut Option<u32>, number: u32) {
    if highest.is_none_or(|highest| is_after(number, highest)) {
        *highest = Some(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(
        flows: &mut TcpFlows,
        back: bool,
        sequence: u32,
        length: u32,
        ack: u32,
    ) -> Option<DropKind> {
        let segment = Segment { ports: (1, 2), sequence, acknowledgement: ack, flags: ACK, length };
        let (there, other) = if back { (2, 1) } else { (1, 2) };
        flows.see(there, other, &segment)
    }

    #[test]
    fn kinds_follow_from_what_was_sent_and_confirmed() {
        for start in [1000, u32::MAX - 50] {
            let mut flows = TcpFlows::default();
            let at = |offset: u32| start.wrapping_add(offset);
            let data = Some(DropKind::Retransmission);
            assert_eq!(see(&mut flows, false, at(0), 100, 7), data);
            // Again before it is confirmed, and a bare acknowledgement, and again after it.
            assert_eq!(see(&mut flows, false, at(0), 100, 7), data);
            assert_eq!(see(&mut flows, true, 7, 0, at(100)), None);
            let spurious = Some(DropKind::SpuriousRetransmission);
            assert_eq!(see(&mut flows, false, at(0), 100, 7), spurious);
            // New data, of which only a part is confirmed.
            assert_eq!(see(&mut flows, false, at(50), 60, 7), data);
            assert_eq!(see(&mut flows, false, at(109), 0, 7), Some(DropKind::KeepAlive));
            assert_eq!(see(&mut flows, false, at(109), 1, 7), Some(DropKind::KeepAlive));
            assert_eq!(see(&mut flows, false, at(110), 0, 7), None);
        }
    }

    #[test]
    fn the_flows_that_are_kept_are_bounded() {
        let mut flows = TcpFlows::default();
        for name in 0..5 * MOST_DIRECTIONS as u128 {
            flows.direction(name).next = Some(1);
            flows.direction(0).confirmed = Some(2);
        }
        assert!(flows.young.len() <= MOST_DIRECTIONS && flows.old.len() <= MOST_DIRECTIONS);
        let first = flows.direction(0);
        assert_eq!((first.next, first.confirmed), (Some(1), Some(2)), "one in use stays");
    }
}
