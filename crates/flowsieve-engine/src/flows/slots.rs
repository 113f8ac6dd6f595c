//! A cache line per flow: the fields that every packet of it reads or changes.
//!
//! ```text
//!     near half of the key, 2 words │ rest of the key │ start │ end │ packets │ bytes │ flags of TCP, ICMP, state
//! ```
//!
//! Slots are in pieces, so none ever moves: each piece is as long as all before it, up to a limit.
//! A piece comes from the system in pages that take memory when they are first written, large pages
//! if it is large.

use super::batch::FlowPacket;
use super::community_id::Upper;
use crate::bits::Pages;
use crate::memory::can_allocate;
use std::hint::black_box;
use std::ops::IndexMut;

/// Slots of the first piece.
const FIRST: usize = 1024;

/// Slots of a long piece: 8 MiB.
const LONG: usize = 1 << 17;

/// Pieces before the first long one.
const SHORT_PIECES: usize = (LONG.ilog2() - FIRST.ilog2()) as usize;

/// Bytes of a long piece.
pub(super) const LONGEST_PIECE: usize = LONG * size_of::<FlowSlot>();

/// A flow's slot: words, so that it can lie in pages of the system.
pub(super) type FlowSlot = [u64; 8];

const NEAR: usize = 0;
const REST: usize = 2;
const START: usize = 3;
const END: usize = 4;
const PACKETS: usize = 5;
const BYTES: usize = 6;
/// From the lowest bits: flags of the first direction, of the other, type and code of ICMP, the
/// variant of [`Upper`], then these, and a VLAN tag.
const STATE: usize = 7;

const ICMP_SHIFT: u32 = 16;
const UPPER_SHIFT: u32 = 32;
/// The first packet had the key's ends exchanged.
const REVERSED: u64 = 1 << 34;
/// There was a packet, other than the first, since the hand was here.
const USED: u64 = 1 << 35;
/// A flow is here.
const LIVE: u64 = 1 << 36;
/// Its first packet had a VLAN tag.
const TAGGED: u64 = 1 << 37;
const VLAN_SHIFT: u32 = 48;

/// The fields in the words of a slot.
pub(super) trait SlotFields: IndexMut<usize, Output = u64> {
    /// Whether it is the slot of this key, as far as the key is in it.
    #[inline]
    fn is_of(&self, near: [u64; 2], rest: u64) -> bool {
        let [first, second] = near;
        (self[NEAR] ^ first) | (self[NEAR + 1] ^ second) | (self[REST] ^ rest) == 0
    }

    /// Near half and rest of the key.
    fn key(&self) -> ([u64; 2], u64) {
        ([self[NEAR], self[NEAR + 1]], self[REST])
    }

    #[inline]
    fn start_ns(&self) -> i64 {
        self[START].cast_signed()
    }

    #[inline]
    fn end_ns(&self) -> i64 {
        self[END].cast_signed()
    }

    /// Adds a packet; whether it has the other direction, in which packets and bytes are counted
    /// elsewhere.
    #[inline]
    fn add(&mut self, time_ns: i64, packet: &FlowPacket) -> bool {
        self[START] = self.start_ns().min(time_ns).cast_unsigned();
        self[END] = self.end_ns().max(time_ns).cast_unsigned();
        let is_other = packet.reversed != self.is_reversed();
        let counts = u64::from(!is_other);
        self[PACKETS] += counts;
        self[BYTES] += counts * u64::from(packet.bytes);
        self[STATE] |= u64::from(packet.tcp_flags) << (u32::from(is_other) * 8) | USED;
        is_other
    }

    /// Packets and bytes in the first direction.
    fn traffic(&self) -> [u64; 2] {
        [self[PACKETS], self[BYTES]]
    }

    /// Returns the flags of the first direction, and of the other.
    fn tcp_flags(&self) -> [u8; 2] {
        [self[STATE] as u8, (self[STATE] >> 8) as u8]
    }

    /// Returns the fields above IP of the first packet, which had these ports.
    fn upper(&self, ports: (u16, u16)) -> Upper {
        let icmp = (self[STATE] >> ICMP_SHIFT) as u16;
        match self[STATE] >> UPPER_SHIFT & 3 {
            0 => Upper::Ports(ports.0, ports.1),
            1 => Upper::Icmp(icmp as u8, (icmp >> 8) as u8),
            2 => Upper::Portless,
            _ => Upper::Unknown,
        }
    }

    /// The VLAN tag of the first packet.
    fn vlan(&self) -> Option<u16> {
        (self[STATE] & TAGGED != 0).then_some((self[STATE] >> VLAN_SHIFT) as u16)
    }

    #[inline]
    fn is_reversed(&self) -> bool {
        self[STATE] & REVERSED != 0
    }

    #[inline]
    fn is_live(&self) -> bool {
        self[STATE] & LIVE != 0
    }

    /// Marks the slot as free.
    fn die(&mut self) {
        self[STATE] &= !LIVE;
    }

    /// Returns whether a packet came since the last call, or since the first packet.
    fn take_used(&mut self) -> bool {
        let was_used = self[STATE] & USED != 0;
        self[STATE] &= !USED;
        was_used
    }
}

impl SlotFields for FlowSlot {}

/// A flow without packets, of the key and in the direction of this one.
pub(super) fn slot_of([near, further]: [u64; 2], packet: &FlowPacket, time_ns: i64) -> FlowSlot {
    let (variant, [kind, code]) = match packet.upper {
        Upper::Ports(..) => (0, [0; 2]),
        Upper::Icmp(kind, code) => (1, [kind, code].map(u64::from)),
        Upper::Portless => (2, [0; 2]),
        Upper::Unknown => (3, [0; 2]),
    };
    let icmp = kind << ICMP_SHIFT | code << (ICMP_SHIFT + 8);
    let state = icmp | variant << UPPER_SHIFT | LIVE;
    let state = if packet.reversed { state | REVERSED } else { state };
    let state = match packet.vlan {
        Some(vlan) => state | TAGGED | u64::from(vlan) << VLAN_SHIFT,
        None => state,
    };
    let time = time_ns.cast_unsigned();
    [near, further, packet.key.rest(), time, time, 0, 0, state]
}

/// Slots of flows by their place.
#[derive(Debug, Default)]
pub(super) struct FlowSlots {
    pieces: Vec<Pages<FlowSlot>>,
    capacity: usize,
}

/// The piece that a slot is in, and where.
#[inline]
const fn piece_of(at: u32) -> (usize, usize) {
    let at = at as usize + FIRST;
    if at >= LONG {
        return (SHORT_PIECES - 1 + at / LONG, at % LONG);
    }
    let piece = at.ilog2();
    ((piece - FIRST.ilog2()) as usize, at - (1 << piece))
}

impl FlowSlots {
    #[inline]
    pub(super) fn at(&self, at: u32) -> &FlowSlot {
        let (piece, at) = piece_of(at);
        &self.pieces[piece].as_slice()[at]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, at: u32) -> &mut FlowSlot {
        let (piece, at) = piece_of(at);
        &mut self.pieces[piece].as_mut_slice()[at]
    }

    /// Reads the slots at these places; a place without a slot is passed over. All slots are found
    /// before the first is read, so that the reads follow each other closely and the processor has
    /// many under way at once.
    pub(super) fn prefetch(&self, places: &[u32]) {
        const AT_ONCE: usize = 64;
        const NO_SLOT: &FlowSlot = &[0; 8];
        for places in places.chunks(AT_ONCE) {
            let mut slots = [NO_SLOT; AT_ONCE];
            for (slot, &place) in slots.iter_mut().zip(places) {
                let (piece, at) = piece_of(place);
                let piece = self.pieces.get(piece).map(Pages::as_slice);
                *slot = piece.and_then(|piece| piece.get(at)).unwrap_or(NO_SLOT);
            }
            black_box(slots.iter().fold(0, |all, slot| all ^ slot[START]));
        }
    }

    /// All slots, those without a flow as well. Pieces go as soon as they were read.
    pub(super) fn drain(self) -> impl Iterator<Item = FlowSlot> {
        let pieces = self.pieces.into_iter();
        pieces.flat_map(|piece| (0..piece.len()).map(move |at| piece.as_slice()[at]))
    }

    /// Makes room for this many slots, of `most` that there may be; false if the system does not give
    /// the memory.
    pub(super) fn make_room(&mut self, slots: usize, most: usize) -> bool {
        while self.capacity < slots {
            let whole = FIRST << self.pieces.len().min(SHORT_PIECES);
            let piece = whole.min(most.saturating_sub(self.capacity)).max(1);
            if !can_allocate((piece * size_of::<FlowSlot>()) as u64) {
                return false;
            }
            // Other tables ask at the same time.
            let Some(slots) = Pages::try_new(piece) else { return false };
            self.capacity += piece;
            self.pieces.push(slots);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other() {
        let mut expected = (0, 0);
        for at in 0..1_000_000 {
            assert_eq!(piece_of(at), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0.min(SHORT_PIECES) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn there_is_no_more_room_than_there_may_be() {
        let mut slots = FlowSlots::default();
        assert!(slots.make_room(1, 5000) && slots.make_room(5000, 5000));
        assert_eq!(slots.capacity, 5000);
        slots.at_mut(4999)[NEAR] = 7;
        assert_eq!(slots.at(4999)[NEAR], 7);
    }

    #[test]
    fn lines_stay_what_they_are_while_others_are_added() {
        let mut slots = FlowSlots::default();
        let most = 3 * LONG as u32 + 5;
        for at in 0..most {
            assert!(slots.make_room(at as usize + 1, most as usize));
            assert_eq!(slots.at(at), &[0; 8]);
            slots.at_mut(at)[NEAR] = u64::from(at);
        }
        assert_eq!(slots.capacity, most as usize);
        assert!((0..most).all(|at| slots.at(at)[NEAR] == u64::from(at)));
        slots.prefetch(&[0, most, u32::MAX]);
    }
}
