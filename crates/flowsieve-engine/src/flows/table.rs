//! The flows that have not ended, in bounded memory.
//!
//! ```text
//!     hash ──► index: (hash, place) ──► entry: key │ times │ packets, bytes, flags │ name
//!                                         ▲
//!                                         hand ──► goes round when memory is short
//! ```
//!
//! - A packet finds its flow, or begins one. If it comes later than a timeout allows, the flow ends
//!   and another one begins in its place; so when a flow ends depends on its own packets only.
//! - When memory is short, a hand goes round over the entries: a flow that has passed its idle timeout
//!   ends; one that had packets since the hand was there last, or since it began, is left for this
//!   time; any other ends early. That is the order of least recent use, to within one round, and needs no list that every
//!   packet would have to update (CLOCK, Corbató 1968).

use super::batch::{FlowPacket, UpperKind};
use super::key::FlowKey;
use super::record::{Direction, Ended, FlowRecord};
use crate::memory::is_given;
use hashbrown::HashTable;

/// Memory of a flow: its entry, and its share of the index, which is up to 7/16 full and is there
/// twice while it grows.
const FLOW_BYTES: u64 = size_of::<Entry>() as u64 + 32;

/// Least memory of a table: a thousand flows with the longest names.
pub(super) const LEAST_MEMORY: u64 = 1 << 19;

/// Bytes of the allocator beside a name.
const NAME_OVERHEAD: u64 = 16;

/// Most flows: places have 32 bits.
const MOST_FLOWS: usize = u32::MAX as usize;

#[derive(Debug)]
struct Entry {
    key: FlowKey,
    start_ns: i64,
    end_ns: i64,
    number: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    domain: Option<Box<[u8]>>,
    hash: u32,
    tcp_flags: [u8; 2],
    vlan: Option<u16>,
    icmp: [u8; 2],
    upper: UpperKind,
    /// The first packet had the key's ends exchanged.
    reversed: bool,
    /// There was a packet, other than the first, since the hand was here.
    used: bool,
    /// A flow is here.
    live: bool,
}

/// Where an entry stands, with its hash, so that the index needs no look at entries to grow.
#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    entry: u32,
}

impl Place {
    /// The upper bits tell neighbours apart and the lower ones choose the bucket: both come from the
    /// 32 that are kept.
    const fn spread(hash: u32) -> u64 {
        (hash as u64) << 32 | hash as u64
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct FlowTable {
    index: HashTable<Place>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    hand: usize,
    names_bytes: u64,
    memory_bytes: u64,
    idle_ns: i64,
    active_ns: i64,
    begun: u64,
}

impl FlowTable {
    pub(super) fn new(memory_bytes: u64, idle_ns: Option<i64>, active_ns: Option<i64>) -> Self {
        Self {
            index: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            hand: 0,
            names_bytes: 0,
            memory_bytes,
            idle_ns: idle_ns.unwrap_or(i64::MAX),
            active_ns: active_ns.unwrap_or(i64::MAX),
            begun: 0,
        }
    }

    /// Flows that have begun, which is the number of the next one.
    pub(super) const fn begun(&self) -> u64 {
        self.begun
    }

    /// Adds a packet to its flow and says where that is. `end` takes flows that end now.
    #[inline]
    pub(super) fn add<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        let hash = (packet.hash >> 32) as u32;
        let found = self.index.find(Place::spread(hash), |place| {
            place.hash == hash && self.entries[place.entry as usize].key == packet.key
        });
        let Some(&Place { entry: at, .. }) = found else {
            return self.begin(time_ns, packet, end);
        };
        let entry = &mut self.entries[at as usize];
        let ended = if time_ns.saturating_sub(entry.end_ns) > self.idle_ns {
            Ended::Idle
        } else if time_ns.saturating_sub(entry.start_ns) > self.active_ns {
            Ended::Active
        } else {
            entry.add(time_ns, packet);
            return Ok(at);
        };
        let next = Entry::new(time_ns, packet, self.begun);
        self.begun += 1;
        let entry = std::mem::replace(entry, next);
        self.names_bytes -= name_cost(entry.domain.as_deref());
        end(entry.into_record(ended))?;
        Ok(at)
    }

    /// Gives the flow at this place a name, unless it has one.
    pub(super) fn name(&mut self, at: u32, name: &[u8]) {
        let entry = &mut self.entries[at as usize];
        if entry.domain.is_none() {
            entry.domain = Some(name.into());
            self.names_bytes += name_cost(entry.domain.as_deref());
        }
    }

    /// Ends all flows, in the order in which they began.
    pub(super) fn finish<E>(
        mut self,
        mut end: impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u64, E> {
        drop(self.index);
        self.entries.retain(|entry| entry.live);
        self.entries
            .sort_unstable_by_key(|entry| (entry.start_ns, entry.number));
        for entry in self.entries {
            end(entry.into_record(Ended::Input))?;
        }
        Ok(self.begun)
    }

    #[inline(never)]
    fn begin<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        let entry = Entry::new(time_ns, packet, self.begun);
        self.begun += 1;
        while self.index.len() >= MOST_FLOWS
            || self.index.len() as u64 * FLOW_BYTES + FLOW_BYTES + self.names_bytes
                > self.memory_bytes
            || !self.has_room()
        {
            self.evict(time_ns, end)?;
        }
        let place = Place {
            hash: entry.hash,
            entry: self.free.pop().unwrap_or(self.entries.len() as u32),
        };
        if place.entry as usize == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[place.entry as usize] = entry;
        }
        self.index
            .insert_unique(Place::spread(place.hash), place, |place| {
                Place::spread(place.hash)
            });
        Ok(place.entry)
    }

    /// Makes room for another flow, never for more than memory allows; false if the system does not give it, while there are
    /// flows to be ended.
    fn has_room(&mut self) -> bool {
        let length = self.entries.len();
        let mut can_grow = true;
        if self.free.is_empty() && length == self.entries.capacity() {
            let most = usize::try_from(self.memory_bytes / FLOW_BYTES).unwrap_or(usize::MAX);
            let more = length.max(1024).min(most.saturating_sub(length)).max(1);
            // Entries may move, and then they are there twice for a while.
            let bytes = (length + more) * size_of::<Entry>();
            can_grow = is_given(bytes as u64) && self.entries.try_reserve_exact(more).is_ok();
        }
        if self.index.len() == self.index.capacity() {
            can_grow &= is_given(2 * self.index.allocation_size() as u64);
        }
        let hash = |place: &Place| Place::spread(place.hash);
        can_grow &= self.index.try_reserve(1, hash).is_ok();
        if !can_grow {
            // It is not asked again for every flow.
            self.memory_bytes = self.index.len() as u64 * FLOW_BYTES + self.names_bytes;
        }
        can_grow || self.index.is_empty()
    }

    /// Ends one flow, which leaves a free place.
    fn evict<E>(
        &mut self,
        now_ns: i64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.entries.len();
            let entry = &mut self.entries[at];
            if !entry.live {
                continue;
            }
            let ended = if now_ns.saturating_sub(entry.end_ns) > self.idle_ns {
                Ended::Idle
            } else if std::mem::take(&mut entry.used) {
                continue;
            } else {
                Ended::Memory
            };
            return end(self.take_out(at, ended));
        }
    }

    /// Ends all flows that have had no packet for longer than the idle timeout, in the order of their places.
    pub(super) fn end_idle<E>(
        &mut self,
        now_ns: i64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            if entry.live && now_ns.saturating_sub(entry.end_ns) > self.idle_ns {
                end(self.take_out(at, Ended::Idle))?;
            }
        }
        Ok(())
    }

    /// The flow at this place, which is free afterwards.
    fn take_out(&mut self, at: usize, ended: Ended) -> FlowRecord {
        let entry = &mut self.entries[at];
        let record = entry.take_record(ended);
        let hash = entry.hash;
        entry.live = false;
        self.names_bytes -= name_cost(record.domain.as_deref());
        let place = self
            .index
            .find_entry(Place::spread(hash), |place| place.entry as usize == at);
        place.expect("every live entry is in the index").remove();
        self.free.push(at as u32);
        record
    }
}

/// Memory of a name.
fn name_cost(name: Option<&[u8]>) -> u64 {
    name.map_or(0, |name| name.len() as u64 + NAME_OVERHEAD)
}

impl Entry {
    /// A flow that begins with this packet.
    fn new(time_ns: i64, packet: &FlowPacket, number: u64) -> Self {
        let mut entry = Self {
            key: packet.key,
            start_ns: time_ns,
            end_ns: time_ns,
            number,
            packets: [0; 2],
            bytes: [0; 2],
            domain: None,
            hash: (packet.hash >> 32) as u32,
            tcp_flags: [0; 2],
            vlan: packet.vlan,
            icmp: packet.icmp,
            upper: packet.upper,
            reversed: packet.reversed,
            used: false,
            live: true,
        };
        entry.add(time_ns, packet);
        // A first packet is no use: flows that never have another make room before all others.
        entry.used = false;
        entry
    }

    #[inline]
    fn add(&mut self, time_ns: i64, packet: &FlowPacket) {
        self.start_ns = self.start_ns.min(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
        let direction = usize::from(packet.reversed != self.reversed);
        self.packets[direction] += 1;
        self.bytes[direction] += u64::from(packet.bytes);
        self.tcp_flags[direction] |= packet.tcp_flags;
        self.used = true;
    }

    fn take_record(&mut self, ended: Ended) -> FlowRecord {
        let key = if self.reversed {
            self.key.reversed()
        } else {
            self.key
        };
        let direction = |i: usize| Direction {
            packets: self.packets[i],
            bytes: self.bytes[i],
            tcp_flags: self.tcp_flags[i],
        };
        let ports = key.ports();
        FlowRecord {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            addresses: key.addresses(),
            protocol: key.protocol(),
            ports,
            forward: direction(0),
            reverse: direction(1),
            vlan: self.vlan,
            upper: self.upper.with(ports, self.icmp),
            ended,
            number: self.number,
            domain: self.domain.take(),
        }
    }

    fn into_record(mut self, ended: Ended) -> FlowRecord {
        self.take_record(ended)
    }
}
