//! Flows by their place: a slot for each, and columns for what only some of them have.

use super::batch::FlowPacket;
use super::key::FlowKey;
use super::record::{Direction, Ended, FlowRecord};
use super::slots::{FlowSlot, FlowSlots, SlotFields as _, slot_of};
use crate::memory::can_allocate;
use std::hint::black_box;

/// Places whose names are together.
const TOGETHER: usize = 1024;

/// Flows by their place. What only some of them have takes memory up to the last one that has it.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) slots: FlowSlots,
    /// Hashes, as the index has them.
    pub(super) hashes: Vec<u32>,
    /// Packets and bytes in the other direction; empty if there is none.
    pub(super) reverse: Vec<[u64; 2]>,
    /// The halves of keys that do not fit into slots.
    pub(super) far: Vec<[u64; 2]>,
    /// The numbers of flows, where they are not those of their places.
    pub(super) numbers: Vec<u64>,
    /// The numbers of the first flows at their places, where others may have followed and tables
    /// are joined.
    pub(super) first_numbers: Option<Vec<u64>>,
    /// The names: consecutive places are together, and have no memory if none of them is named.
    pub(super) names: Vec<Vec<Option<Box<[u8]>>>>,
}

/// Optional columns of a flow.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) reverse: bool,
    pub(super) far: bool,
    pub(super) number: bool,
}

/// A flow on its way from one table to another.
pub(super) struct Moved {
    pub(super) slot: FlowSlot,
    pub(super) hash: u32,
    pub(super) number: u64,
    pub(super) reverse: Option<[u64; 2]>,
    pub(super) name: Option<Box<[u8]>>,
    pub(super) far: Option<[u64; 2]>,
}

/// The part of a packet's hash that the index keeps.
pub(super) const fn hash_of(packet: &FlowPacket) -> u32 {
    (packet.hash >> 32) as u32
}

impl Flows {
    /// Number of places.
    pub(super) const fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the sort key of a flow.
    pub(super) fn order(&self, at: u32) -> (i64, u64) {
        (self.slots.at(at).start_ns(), self.number(at))
    }

    /// The number of the flow in the order in which they began.
    fn number(&self, at: u32) -> u64 {
        let number = self.numbers.get(at as usize);
        number.copied().unwrap_or(u64::from(at))
    }

    /// Reads flows ahead.
    pub(super) fn prefetch(&self, places: impl Iterator<Item = u32>) {
        let words = places.map(|at| {
            let (start_ns, number) = self.order(at);
            start_ns.cast_unsigned() ^ number
        });
        black_box(words.fold(0, |all, word| all ^ word));
    }

    #[inline]
    pub(super) fn is_live(&self, at: u32) -> bool {
        self.slots.at(at).is_live()
    }

    /// Makes room for this many places, of `most` that there may be; false if the system does not
    /// give the memory.
    pub(super) fn make_room(&mut self, places: usize, most: usize, parts: Parts) -> bool {
        self.slots.make_room(places, most)
            && reserve(&mut self.hashes, places, most)
            && (!parts.reverse || reserve(&mut self.reverse, places, most))
            && (!parts.far || reserve(&mut self.far, places, most))
            && (!parts.number || reserve(&mut self.numbers, places, most))
    }

    /// Puts a flow that begins with this packet at a place, for which there is room.
    pub(super) fn put(
        &mut self,
        at: u32,
        time_ns: i64,
        packet: &FlowPacket,
        number: u64,
        has_reverse: bool,
    ) {
        let (near, far) = packet.key.split();
        let mut slot = slot_of(near, packet, time_ns);
        slot.add(time_ns, packet);
        // A first packet is no use: flows that never have another make room before all others.
        slot.take_used();
        *self.slots.at_mut(at) = slot;
        let place = u64::from(at);
        let at = at as usize;
        set(&mut self.hashes, at, hash_of(packet), |_| 0);
        if has_reverse {
            set(&mut self.reverse, at, [0; 2], |_| [0; 2]);
        }
        if let Some(far) = far {
            set(&mut self.far, at, far, |_| [0; 2]);
        }
        if number != place || at < self.numbers.len() {
            set(&mut self.numbers, at, number, |place| place as u64);
        }
    }

    /// Puts a flow behind all others, for which there is room.
    pub(super) fn adopt(&mut self, moved: Moved) {
        let at = self.len();
        *self.slots.at_mut(at as u32) = moved.slot;
        self.hashes.push(moved.hash);
        set(&mut self.numbers, at, moved.number, |place| place as u64);
        if let Some(reverse) = moved.reverse {
            set(&mut self.reverse, at, reverse, |_| [0; 2]);
        }
        if let Some(far) = moved.far {
            set(&mut self.far, at, far, |_| [0; 2]);
        }
        if let Some(name) = moved.name {
            self.keep_name(at as u32, name);
        }
    }

    /// All flows in the order in which their places were first taken, with a number that has this
    /// order. Memory is given back piece by piece.
    pub(super) fn drain(self) -> impl Iterator<Item = (u64, Moved)> {
        let Self { slots, hashes, reverse, far, numbers, first_numbers, mut names } = self;
        let slots = (0_u32..).zip(slots.drain().take(hashes.len()));
        let slots = slots.filter(|(_, slot)| slot.is_live());
        slots.map(move |(place, slot)| {
            let at = place as usize;
            let number = numbers.get(at).copied().unwrap_or(u64::from(place));
            let ([near, further], rest) = slot.key();
            let far = far.get(at).copied().unwrap_or_default();
            let (together, name) = Self::name_place(place);
            let moved = Moved {
                slot,
                hash: hashes[at],
                number,
                reverse: reverse.get(at).copied(),
                name: names.get_mut(together).and_then(|names| names.get_mut(name)?.take()),
                far: FlowKey::joined([near, further], rest, far).split().1,
            };
            let first = first_numbers.as_ref().and_then(|numbers| numbers.get(at));
            (first.copied().unwrap_or(number), moved)
        })
    }

    /// Names the flow at this place unless it has a name; returns whether it had none.
    pub(super) fn name(&mut self, at: u32, name: &[u8]) -> bool {
        let is_new = self.name_of(at).is_none();
        if is_new {
            self.keep_name(at, name.into());
        }
        is_new
    }

    fn keep_name(&mut self, at: u32, name: Box<[u8]>) {
        let (together, at) = Self::name_place(at);
        if self.names.len() <= together {
            self.names.resize(together + 1, Vec::new());
        }
        let names = &mut self.names[together];
        names.resize(TOGETHER, None);
        names[at] = Some(name);
    }

    fn name_of(&self, at: u32) -> Option<&[u8]> {
        let (together, place) = Self::name_place(at);
        self.names.get(together)?.get(place)?.as_deref()
    }

    /// Where the name of a flow is that has one.
    fn name_place(at: u32) -> (usize, usize) {
        (at as usize / TOGETHER, at as usize % TOGETHER)
    }

    /// The flow at this place, which keeps no name.
    pub(super) fn take(&mut self, at: u32, ended: Ended) -> FlowRecord {
        let (together, place) = Self::name_place(at);
        let names = self.names.get_mut(together);
        let domain = names.and_then(|names| names.get_mut(place)?.take());
        FlowRecord { domain, ..self.nameless(at, ended) }
    }

    /// A copy of the flow at this place.
    pub(super) fn copy(&self, at: u32, ended: Ended) -> FlowRecord {
        let domain = self.name_of(at).map(Into::into);
        FlowRecord { domain, ..self.nameless(at, ended) }
    }

    /// The flow at this place without its name.
    #[inline]
    fn nameless(&self, at: u32, ended: Ended) -> FlowRecord {
        let slot = self.slots.at(at);
        let (near, rest) = slot.key();
        let far = self.far.get(at as usize).copied().unwrap_or_default();
        let key = FlowKey::joined(near, rest, far);
        let key = if slot.is_reversed() { key.reversed() } else { key };
        let reverse = self.reverse.get(at as usize).copied().unwrap_or_default();
        let direction =
            |[packets, bytes]: [u64; 2], tcp_flags| Direction { packets, bytes, tcp_flags };
        let (tcp_flags, ports) = (slot.tcp_flags(), key.ports());
        FlowRecord {
            start_ns: slot.start_ns(),
            end_ns: slot.end_ns(),
            addresses: key.addresses(),
            protocol: key.protocol(),
            ports,
            forward: direction(slot.traffic(), tcp_flags[0]),
            reverse: direction(reverse, tcp_flags[1]),
            vlan: slot.vlan(),
            upper: slot.upper(ports),
            ended,
            number: self.number(at),
            domain: None,
        }
    }
}

/// Sets an item; those before it that are missing are what `missing` says of their place.
pub(super) fn set<T>(column: &mut Vec<T>, at: usize, value: T, missing: impl Fn(usize) -> T) {
    if column.len() <= at {
        column.extend((column.len()..at).map(missing));
        column.push(value);
    } else {
        column[at] = value;
    }
}

/// Makes room for this many items, and for more as the column grows, but never for more than `most`;
/// false if the system does not give the memory.
pub(super) fn reserve<T>(column: &mut Vec<T>, items: usize, most: usize) -> bool {
    if items <= column.capacity() {
        return true;
    }
    let capacity = items.max((2 * column.capacity()).max(1024).min(most));
    let more = capacity - column.len();
    can_allocate((capacity * size_of::<T>()) as u64) && column.try_reserve_exact(more).is_ok()
}
