//! The flows that have not ended, in bounded memory.
//!
//! ```text
//!     hash ──► index: (hash, place) ──► line: key │ times │ packets, bytes, flags     one cache line
//!                                       beside: name, number, VLAN │ reverse │ far
//!                                         ▲
//!                                         hand ──► goes round when memory is short
//! ```
//!
//! - A packet finds its flow, or begins one. If it comes later than a timeout allows, the flow ends
//!   and another one begins in its place; so when a flow ends depends on its own packets only.
//! - What a packet of a flow that goes on reads and changes is in one cache line. Before the packets of a batch are taken,
//!   [`FlowTable::approach`] reads the slots and then the lines of all of them: these reads do not wait for each other.
//! - When memory is short, a hand goes round over the flows: a flow that has passed its idle timeout
//!   ends; one that had packets since the hand was there last, or since it began, is left for this
//!   time; any other ends early. That is the order of least recent use, to within one round, and needs no list that every
//!   packet would have to change (CLOCK, Corbató 1968).

use super::batch::FlowPacket;
use super::index::Index;
use super::key::FlowKey;
use super::last::LastFlows;
use super::lines::{FlowLine as _, Line, Lines};
use super::plan::FlowPlan;
use super::record::{Direction, Ended, FlowRecord};
use crate::memory::{MEMORY_REFUSED, is_given};
use std::hint::black_box;

/// Memory of a flow: its line and what is beside it, and its share of the index, which is at least 3/8 full and is there
/// twice while it grows. When flows end for want of memory depends on it, so it is part of the answer.
const FLOW_BYTES: u64 =
    (size_of::<Line>() + size_of::<Beside>() + 2 * size_of::<[u64; 2]>()) as u64 + 32;

const _: () = assert!(FLOW_BYTES == 160, "lists are the same in all versions");

/// Least memory of a table: a thousand flows with the longest names.
pub(super) const LEAST_MEMORY: u64 = 1 << 19;

/// No place: there are fewer.
const NOWHERE: u32 = u32::MAX;

/// Bytes of the allocator beside a name.
const NAME_OVERHEAD: u64 = 16;

/// Most flows: places have 32 bits, and one stands for none.
const MOST_FLOWS: usize = 1 << 31;

/// What a flow has besides its line.
#[derive(Debug)]
struct Beside {
    domain: Option<Box<[u8]>>,
    number: u64,
    hash: u32,
    vlan: Option<u16>,
}

/// The table.
#[derive(Debug)]
pub(super) struct FlowTable {
    index: Index,
    flows: Flows,
    free: Vec<u32>,
    hand: usize,
    names_bytes: u64,
    memory_bytes: u64,
    idle_ns: i64,
    active_ns: i64,
    bidirectional: bool,
    begun: u64,
    /// Where the flows of the next packets probably are, the next one last.
    guesses: Vec<u32>,
}

/// Flows by their place.
#[derive(Debug)]
pub(super) struct Flows {
    lines: Lines,
    beside: Vec<Beside>,
    /// Packets and bytes in the other direction; empty if there is none.
    reverse: Vec<[u64; 2]>,
    /// The halves of keys that do not fit into lines, up to the last flow that has one.
    far: Vec<[u64; 2]>,
}

impl FlowTable {
    pub(super) fn new(plan: &FlowPlan) -> Self {
        Self {
            index: Index::new(),
            flows: Flows {
                lines: Lines::default(),
                beside: Vec::new(),
                reverse: Vec::new(),
                far: Vec::new(),
            },
            free: Vec::new(),
            hand: 0,
            names_bytes: 0,
            memory_bytes: plan.memory_bytes,
            idle_ns: plan.idle_ns.unwrap_or(i64::MAX),
            active_ns: plan.active_ns.unwrap_or(i64::MAX),
            bidirectional: plan.bidirectional,
            begun: 0,
            guesses: Vec::new(),
        }
    }

    /// Flows that have begun, which is the number of the next one.
    pub(super) const fn begun(&self) -> u64 {
        self.begun
    }

    /// Reads what the next packets need, so that it is near when one after the other is added.
    pub(super) fn approach(&mut self, packets: &[FlowPacket]) {
        self.guesses.clear();
        if !self.index.is_far() {
            return;
        }
        let slots = packets
            .iter()
            .map(|packet| self.index.first_slot(hash_of(packet)));
        black_box(slots.fold(0, |all, slot| all ^ slot));
        let places = packets.iter().rev().map(|packet| {
            let place = self.index.find(hash_of(packet), |_| true);
            place.unwrap_or(NOWHERE)
        });
        self.guesses.extend(places);
        let lines = self.guesses.iter().filter(|&&place| place != NOWHERE);
        let lines = lines.map(|&place| self.flows.lines.at(place).start_ns());
        black_box(lines.fold(0, |all, word| all ^ word));
    }

    /// Adds a packet to its flow and says where that is. `end` takes flows that end now.
    #[inline]
    pub(super) fn add<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        let (near, far) = packet.key.split();
        let is_right = |place: u32| {
            let is_near = self.flows.lines.at(place).is_of(near, packet.key.rest());
            is_near && far.is_none_or(|far| self.flows.far[place as usize] == far)
        };
        let guess = self.guesses.pop().filter(|&place| place != NOWHERE);
        // A flow that ended meanwhile may have left its line.
        let guess = guess.filter(|&place| self.flows.is_live(place) && is_right(place));
        let found = guess.or_else(|| self.index.find(hash_of(packet), is_right));
        let Some(at) = found else {
            return self.begin(time_ns, packet, end);
        };
        let line = self.flows.lines.at_mut(at);
        let ended = if time_ns.saturating_sub(line.end_ns()) > self.idle_ns {
            Ended::Idle
        } else if time_ns.saturating_sub(line.start_ns()) > self.active_ns {
            Ended::Active
        } else {
            if line.add(time_ns, packet) {
                let [packets, bytes] = &mut self.flows.reverse[at as usize];
                *packets += 1;
                *bytes += u64::from(packet.bytes);
            }
            return Ok(at);
        };
        let record = self.flows.take(at, ended);
        self.names_bytes -= name_cost(record.domain.as_deref());
        self.flows
            .put(at, time_ns, packet, self.begun, self.bidirectional);
        self.begun += 1;
        end(record)?;
        Ok(at)
    }

    /// Gives the flow at this place a name, unless it has one.
    pub(super) fn name(&mut self, at: u32, name: &[u8]) {
        let domain = &mut self.flows.beside[at as usize].domain;
        if domain.is_none() {
            *domain = Some(name.into());
            self.names_bytes += name_cost(domain.as_deref());
        }
    }

    /// Ends all flows.
    pub(super) fn finish(self) -> LastFlows {
        LastFlows::new(self.index, self.flows)
    }

    #[inline(never)]
    fn begin<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        let number = self.begun;
        self.begun += 1;
        while self.index.len() >= MOST_FLOWS
            || self.index.len() as u64 * FLOW_BYTES + FLOW_BYTES + self.names_bytes
                > self.memory_bytes
            || !self.has_room(packet)
        {
            self.evict(time_ns, end)?;
        }
        let at = self.free.pop().unwrap_or(self.flows.len() as u32);
        self.flows
            .put(at, time_ns, packet, number, self.bidirectional);
        self.index.insert(hash_of(packet), at);
        Ok(at)
    }

    /// Makes room for another flow, never for more than memory allows; false if the system does not give it, and flows have to
    /// end.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory of a single flow.
    fn has_room(&mut self, packet: &FlowPacket) -> bool {
        let most = usize::try_from(self.memory_bytes / FLOW_BYTES).unwrap_or(usize::MAX);
        let has_far = packet.key.split().1.is_some();
        let places = self.flows.len() + usize::from(self.free.is_empty());
        let can_grow = self
            .flows
            .make_room(places, most, self.bidirectional, has_far)
            && self.index.make_room();
        if !can_grow {
            assert!(!self.index.is_empty(), "{MEMORY_REFUSED}");
            // It is not asked again for every flow.
            self.memory_bytes = self.index.len() as u64 * FLOW_BYTES + self.names_bytes;
        }
        can_grow
    }

    /// Ends one flow, which leaves a free place.
    fn evict<E>(
        &mut self,
        now_ns: i64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.flows.len();
            let line = self.flows.lines.at_mut(at as u32);
            if !line.is_live() {
                continue;
            }
            let ended = if now_ns.saturating_sub(line.end_ns()) > self.idle_ns {
                Ended::Idle
            } else if line.take_used() {
                continue;
            } else {
                Ended::Memory
            };
            return end(self.take_out(at as u32, ended));
        }
    }

    /// Ends all flows that have had no packet for longer than the idle timeout, in the order of their places.
    pub(super) fn end_idle<E>(
        &mut self,
        now_ns: i64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        for at in 0..self.flows.len() as u32 {
            let line = self.flows.lines.at(at);
            if line.is_live() && now_ns.saturating_sub(line.end_ns()) > self.idle_ns {
                end(self.take_out(at, Ended::Idle))?;
            }
        }
        Ok(())
    }

    /// The flow at this place, which is free afterwards.
    fn take_out(&mut self, at: u32, ended: Ended) -> FlowRecord {
        let record = self.flows.take(at, ended);
        self.flows.lines.at_mut(at).die();
        self.names_bytes -= name_cost(record.domain.as_deref());
        self.index.remove(self.flows.beside[at as usize].hash, at);
        self.free.push(at);
        record
    }
}

/// The part of a packet's hash that the index keeps.
const fn hash_of(packet: &FlowPacket) -> u32 {
    (packet.hash >> 32) as u32
}

/// Memory of a name.
fn name_cost(name: Option<&[u8]>) -> u64 {
    name.map_or(0, |name| name.len() as u64 + NAME_OVERHEAD)
}

impl Flows {
    /// Number of places.
    pub(super) const fn len(&self) -> usize {
        self.beside.len()
    }

    /// What puts a flow in order.
    pub(super) fn order(&self, at: u32) -> (i64, u64) {
        let start_ns = self.lines.at(at).start_ns();
        (start_ns, self.beside[at as usize].number)
    }

    /// Reads flows ahead.
    pub(super) fn approach(&self, places: impl Iterator<Item = u32>) {
        let words = places.map(|at| {
            let (start_ns, number) = self.order(at);
            start_ns.cast_unsigned() ^ number
        });
        black_box(words.fold(0, |all, word| all ^ word));
    }

    pub(super) fn is_live(&self, at: u32) -> bool {
        self.lines.at(at).is_live()
    }

    /// Makes room for so many places, of `most` that there may be; false if the system does not give the memory.
    fn make_room(&mut self, places: usize, most: usize, has_reverse: bool, has_far: bool) -> bool {
        self.lines.make_room(places, most)
            && reserve(&mut self.beside, places, most)
            && (!has_reverse || reserve(&mut self.reverse, places, most))
            && (!has_far || reserve(&mut self.far, places, most))
    }

    /// Puts a flow that begins with this packet at a place, for which there is room.
    fn put(&mut self, at: u32, time_ns: i64, packet: &FlowPacket, number: u64, has_reverse: bool) {
        let (near, far) = packet.key.split();
        let mut line = Line::of_flow(near, packet, time_ns);
        line.add(time_ns, packet);
        // A first packet is no use: flows that never have another make room before all others.
        line.take_used();
        let beside = Beside {
            domain: None,
            number,
            hash: hash_of(packet),
            vlan: packet.vlan,
        };
        *self.lines.at_mut(at) = line;
        let at = at as usize;
        if at == self.beside.len() {
            self.beside.push(beside);
        } else {
            self.beside[at] = beside;
        }
        if has_reverse {
            set(&mut self.reverse, at, [0; 2]);
        }
        if let Some(far) = far {
            set(&mut self.far, at, far);
        }
    }

    /// The flow at this place, which keeps no name.
    pub(super) fn take(&mut self, at: u32, ended: Ended) -> FlowRecord {
        let domain = self.beside[at as usize].domain.take();
        FlowRecord {
            domain,
            ..self.nameless(at, ended)
        }
    }

    /// A copy of the flow at this place.
    pub(super) fn copy(&self, at: u32, ended: Ended) -> FlowRecord {
        let domain = self.beside[at as usize].domain.clone();
        FlowRecord {
            domain,
            ..self.nameless(at, ended)
        }
    }

    /// The flow at this place without its name.
    #[inline]
    fn nameless(&self, at: u32, ended: Ended) -> FlowRecord {
        let line = self.lines.at(at);
        let beside = &self.beside[at as usize];
        let (near, rest) = line.key();
        let far = self.far.get(at as usize).copied().unwrap_or_default();
        let key = FlowKey::joined(near, rest, far);
        let key = if line.is_reversed() {
            key.reversed()
        } else {
            key
        };
        let reverse = self.reverse.get(at as usize).copied().unwrap_or_default();
        let direction = |[packets, bytes]: [u64; 2], tcp_flags| Direction {
            packets,
            bytes,
            tcp_flags,
        };
        let (tcp_flags, ports) = (line.tcp_flags(), key.ports());
        FlowRecord {
            start_ns: line.start_ns(),
            end_ns: line.end_ns(),
            addresses: key.addresses(),
            protocol: key.protocol(),
            ports,
            forward: direction(line.traffic(), tcp_flags[0]),
            reverse: direction(reverse, tcp_flags[1]),
            vlan: beside.vlan,
            upper: line.upper().with(ports, line.icmp()),
            ended,
            number: beside.number,
            domain: None,
        }
    }
}

/// Sets an item; those before it that are missing are zero.
fn set(column: &mut Vec<[u64; 2]>, at: usize, value: [u64; 2]) {
    if column.len() <= at {
        column.resize(at + 1, [0; 2]);
    }
    column[at] = value;
}

/// Makes room for so many items, and for more as the column grows, but never for more than `most`; false if the system does not
/// give the memory.
fn reserve<T>(column: &mut Vec<T>, items: usize, most: usize) -> bool {
    if items <= column.capacity() {
        return true;
    }
    let capacity = items.max((2 * column.capacity()).max(1024).min(most));
    let more = capacity - column.len();
    is_given((capacity * size_of::<T>()) as u64) && column.try_reserve_exact(more).is_ok()
}
