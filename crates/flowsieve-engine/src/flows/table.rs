//! The flows that have not ended, in bounded memory.
//!
//! ```text
//!     hash ──► index: (part of the hash, place) ──► slot: key │ times │ packets, bytes, flags     one cache line
//!                                      columns: hash │ reverse │ far │ number │ name
//!                                         ▲
//!                                         hand ──► goes round when memory is short
//! ```
//!
//! - A packet finds its flow, or begins one. If it comes later than a timeout allows, the flow ends
//!   and another one begins in its place; so when a flow ends depends on its own packets only.
//! - What a packet of a flow that goes on reads and changes is in one cache line. Before the
//!   packets of a batch are added, [`FlowTable::prefetch`] reads the entries of the index and then
//!   the slots of all of them: these reads do not wait for each other.
//! - When memory is short, a hand goes round over the flows: a flow that has passed its idle
//!   timeout ends; one that had packets since the hand was there last, or since it began, is left
//!   for this time; any other ends early. That is the order of least recent use, to within one
//!   round, and needs no list that every packet would have to change (CLOCK, Corbató 1968).

use super::batch::FlowPacket;
use super::columns::{Flows, Moved, Parts, hash_of, reserve, set};
use super::expiry::Expiry;
use super::plan::FlowPlan;
use super::record::{Ended, FlowRecord};
use super::remaining::{RemainingFlows, Run};
use super::slots::{FlowSlot, LONGEST_PIECE, SlotFields as _};
use crate::memory::MEMORY_REFUSED;
use crate::place_index::{Index, NOWHERE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// Memory of a flow: its slot, its other columns, and its share of the index, which is at least
/// 3/8 full and is there twice while it grows. When flows end for want of memory depends on it, so
/// it is part of the answer, and lists are the same in all versions.
pub(super) const FLOW_BYTES: u64 = 160;

/// Size of a flow's columns outside its slot, if it has all of them.
const COLUMN_BYTES: usize = size_of::<u32>()
    + 2 * size_of::<[u64; 2]>()
    + 2 * size_of::<u64>()
    + size_of::<Option<Box<[u8]>>>();

/// Share of the index: entries of 32 bits, three eighths of which are taken, and half as many more
/// while it grows.
const INDEX_BYTES: usize = size_of::<u32>() * 4;

/// Share of the lists of a stream's flows.
const EXPIRY_BYTES: usize = size_of::<u32>();

const _: () = assert!(
    (size_of::<FlowSlot>() + COLUMN_BYTES + INDEX_BYTES + EXPIRY_BYTES) as u64 <= FLOW_BYTES
);

/// Overhead of the allocator for a name, in bytes.
const NAME_OVERHEAD: u64 = 16;

/// Upper bound of the extra memory while tables are joined: all columns but the slots exist twice.
pub(super) const fn bytes_to_join(used_bytes: u64, tables: u64) -> u64 {
    let flows = used_bytes / FLOW_BYTES;
    let piece = LONGEST_PIECE as u64 * tables;
    let slots = flows * size_of::<FlowSlot>() as u64;
    let most_slots = if piece < slots { piece } else { slots };
    flows * (COLUMN_BYTES + INDEX_BYTES) as u64 + most_slots
}

/// Most flows: places have 32 bits, and one value means no place.
pub(super) const MOST_FLOWS: usize = 1 << 31;

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
    /// Ends flows of a stream before their next packet comes.
    expiry: Option<Expiry>,
    late: u64,
    bidirectional: bool,
    begun: u64,
    /// The latest time of a packet.
    latest_ns: i64,
    /// Whether flows at later places started later: no packet was earlier than one before it, and
    /// no place had a flow before.
    is_in_order: bool,
    /// The system refused memory.
    is_short: bool,
    /// Where the flows of the next packets probably are, the next one last.
    guesses: Vec<u32>,
}

impl FlowTable {
    pub(super) fn new(plan: &FlowPlan) -> Self {
        Self {
            index: Index::new(),
            flows: Flows::default(),
            free: Vec::new(),
            hand: 0,
            names_bytes: 0,
            memory_bytes: plan.memory_bytes,
            idle_ns: plan.idle_ns.unwrap_or(i64::MAX),
            active_ns: plan.active_ns.unwrap_or(i64::MAX),
            expiry: None,
            late: 0,
            bidirectional: plan.bidirectional,
            begun: 0,
            latest_ns: i64::MIN,
            is_in_order: true,
            is_short: false,
            guesses: Vec::new(),
        }
    }

    /// Ends flows also when the capture's time has passed their idle timeout by `delay_ns`, at calls
    /// of [`Self::end_idle`].
    pub(super) fn expire_after(&mut self, delay_ns: i64) {
        let idle_ns = self.idle_ns;
        self.expiry = (idle_ns != i64::MAX).then(|| Expiry::new(idle_ns, delay_ns));
    }

    /// One of several tables that divide the flows among them, and may be [joined](Self::joined)
    /// later.
    pub(super) fn one_of_many(plan: &FlowPlan) -> Self {
        let mut table = Self::new(plan);
        // Only with timeouts do places tell nothing of the order in which they were first taken.
        table.flows.first_numbers = table.has_timeouts().then(Vec::new);
        // So that no table is short of memory while it is empty; if refused, it is tried again later.
        let most = table.most();
        table.flows.slots.make_room(1, most);
        table
    }

    /// Joins tables that were never short of memory into the one that would have taken all their
    /// packets, except that numbers of flows differ, in the same order. The tables release their
    /// memory piece by piece.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub(super) fn joined(plan: &FlowPlan, tables: Vec<Self>) -> Self {
        let mut joined = Self::new(plan);
        // Whether all were in order says nothing of all together.
        joined.is_in_order = false;
        let mut sources = Vec::new();
        let mut heap = BinaryHeap::new();
        for table in tables {
            joined.names_bytes += table.names_bytes;
            joined.latest_ns = joined.latest_ns.max(table.latest_ns);
            drop(table.index);
            let mut flows = table.flows.drain().peekable();
            heap.extend(flows.peek().map(|next| Reverse((next.0, sources.len()))));
            sources.push(flows);
        }
        while let Some(Reverse((_, source))) = heap.pop() {
            let flows = &mut sources[source];
            if let Some((_, moved)) = flows.next() {
                joined.adopt(moved);
            }
            heap.extend(flows.peek().map(|next| Reverse((next.0, source))));
        }
        joined
    }

    /// Puts a flow of another table behind all others.
    fn adopt(&mut self, moved: Moved) {
        let parts =
            Parts { reverse: moved.reverse.is_some(), far: moved.far.is_some(), number: true };
        let (at, most) = (self.flows.len(), self.most());
        let has_room =
            self.flows.make_room(at + 1, most, parts) && self.index.make_room(&self.flows.hashes);
        assert!(has_room, "{MEMORY_REFUSED}");
        self.index.insert(moved.hash, at as u32);
        self.flows.adopt(moved);
    }

    /// Whether the system refused memory.
    pub(super) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Memory of the flows, as it is reckoned.
    pub(super) fn used_bytes(&self) -> u64 {
        self.index.len() as u64 * FLOW_BYTES + self.names_bytes
    }

    /// Lets the flows have no more memory than this.
    pub(super) fn limit(&mut self, memory_bytes: u64) {
        self.memory_bytes = self.memory_bytes.min(memory_bytes);
    }

    /// Most places.
    fn most(&self) -> usize {
        usize::try_from(self.memory_bytes / FLOW_BYTES).unwrap_or(usize::MAX)
    }

    /// Flows that have begun.
    pub(super) const fn begun(&self) -> u64 {
        self.begun
    }

    /// Reads ahead the memory that the next packets need.
    pub(super) fn prefetch<'a>(
        &mut self,
        packets: impl DoubleEndedIterator<Item = &'a FlowPacket> + Clone,
    ) {
        self.guesses.clear();
        if !self.index.is_far() {
            return;
        }
        let entries = packets.clone();
        let entries = entries.map(|packet| self.index.first_entry(hash_of(packet)));
        black_box(entries.fold(0, |all, entry| all ^ entry));
        let places = packets.rev().map(|packet| {
            let place = self.index.find(hash_of(packet), |_| true);
            place.unwrap_or(NOWHERE)
        });
        self.guesses.extend(places);
        self.flows.slots.prefetch(&self.guesses);
    }

    /// Adds a packet to its flow and says where that is. A flow that begins gets this number, which
    /// is larger than those before. `end` takes flows that end now.
    #[inline]
    pub(super) fn add<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        number: u64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        self.is_in_order &= time_ns >= self.latest_ns;
        self.latest_ns = self.latest_ns.max(time_ns);
        let (near, far) = packet.key.split();
        let is_right = |place: u32| {
            let is_near = self.flows.slots.at(place).is_of(near, packet.key.rest());
            is_near && far.is_none_or(|far| self.flows.far[place as usize] == far)
        };
        let guess = self.guesses.pop().filter(|&place| place != NOWHERE);
        // A flow that ended meanwhile may have left its slot.
        let guess = guess.filter(|&place| self.flows.is_live(place) && is_right(place));
        let found = guess.or_else(|| self.index.find(hash_of(packet), is_right));
        let Some(at) = found else { return self.begin(time_ns, packet, number, end) };
        let slot = self.flows.slots.at_mut(at);
        let ended = if time_ns.saturating_sub(slot.end_ns()) > self.idle_ns {
            Ended::Idle
        } else if time_ns.saturating_sub(slot.start_ns()) > self.active_ns {
            Ended::Active
        } else {
            if slot.add(time_ns, packet) {
                let [packets, bytes] = &mut self.flows.reverse[at as usize];
                *packets += 1;
                *bytes += u64::from(packet.bytes);
            }
            return Ok(at);
        };
        let record = self.flows.take(at, ended);
        self.names_bytes -= name_cost(record.domain.as_deref());
        self.flows.put(at, time_ns, packet, number, self.bidirectional);
        self.begun += 1;
        self.is_in_order = false;
        end(record)?;
        Ok(at)
    }

    /// Flows of a stream that began with a packet which came too late for a flow that has ended.
    pub(super) const fn late(&self) -> u64 {
        self.late
    }

    /// Gives the flow at this place a name, unless it has one.
    pub(super) fn name(&mut self, at: u32, name: &[u8]) {
        if self.flows.name(at, name) {
            self.names_bytes += name_cost(Some(name));
        }
    }

    /// Ends all flows.
    pub(super) fn finish(self) -> RemainingFlows {
        RemainingFlows::of(vec![self.into_run()])
    }

    /// The flows of one of several tables that divide them.
    pub(super) fn into_run(self) -> Run {
        Run::new(self.index, self.flows, self.is_in_order)
    }

    #[inline(never)]
    fn begin<E>(
        &mut self,
        time_ns: i64,
        packet: &FlowPacket,
        number: u64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<u32, E> {
        self.begun += 1;
        while self.index.len() >= MOST_FLOWS
            || self.used_bytes() + FLOW_BYTES > self.memory_bytes
            || !self.has_room(packet, number)
        {
            self.evict(time_ns, end)?;
        }
        let at = self.next_place();
        self.is_in_order &= self.free.pop().is_none();
        self.flows.put(at, time_ns, packet, number, self.bidirectional);
        if let Some(numbers) = &mut self.flows.first_numbers {
            set(numbers, at as usize, number, |_| 0);
        }
        if let Some(expiry) = &mut self.expiry {
            self.late += u64::from(expiry.is_late(time_ns));
            expiry.file(at, time_ns);
        }
        self.index.insert(hash_of(packet), at);
        Ok(at)
    }

    /// Where the next flow goes.
    fn next_place(&self) -> u32 {
        let free = self.free.last().copied();
        free.unwrap_or(self.flows.len() as u32)
    }

    const fn has_timeouts(&self) -> bool {
        self.idle_ns != i64::MAX || self.active_ns != i64::MAX
    }

    /// Makes room for another flow, never for more than memory allows; false if the system does not
    /// give it, and flows have to end.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory of a single flow.
    fn has_room(&mut self, packet: &FlowPacket, number: u64) -> bool {
        let most = self.most();
        let parts = Parts {
            reverse: self.bidirectional,
            far: packet.key.split().1.is_some(),
            // Flows that end by a timeout leave their places to others without asking for room.
            number: self.has_timeouts() || u64::from(self.next_place()) != number,
        };
        let places = self.flows.len() + usize::from(self.free.is_empty());
        let first_numbers = self.flows.first_numbers.as_mut();
        let has_first_number = first_numbers.is_none_or(|numbers| reserve(numbers, places, most));
        let expiry = self.expiry.as_mut();
        let can_grow = self.flows.make_room(places, most, parts)
            && has_first_number
            && expiry.is_none_or(|expiry| expiry.make_room(places, most))
            && self.index.make_room(&self.flows.hashes);
        if !can_grow {
            assert!(!self.index.is_empty(), "{MEMORY_REFUSED}");
            // It is not asked again for every flow.
            self.memory_bytes = self.used_bytes();
            self.is_short = true;
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
            let slot = self.flows.slots.at_mut(at as u32);
            if !slot.is_live() {
                continue;
            }
            let ended = if now_ns.saturating_sub(slot.end_ns()) > self.idle_ns {
                Ended::Idle
            } else if slot.take_used() {
                continue;
            } else {
                Ended::Memory
            };
            return end(self.take_out(at as u32, ended));
        }
    }

    /// Ends the flows whose idle timeout the capture's time has passed by the delay, and returns the
    /// time at which others may have ended.
    pub(super) fn end_idle<E>(
        &mut self,
        now_ns: i64,
        end: &mut impl FnMut(FlowRecord) -> Result<(), E>,
    ) -> Result<i64, E> {
        let Some(mut expiry) = self.expiry.take() else { return Ok(i64::MAX) };
        let next_ns = expiry.set_now(now_ns);
        while let Some(at) = expiry.take_passed() {
            let slot = self.flows.slots.at(at);
            if slot.is_live() {
                let end_ns = slot.end_ns();
                if expiry.is_over(end_ns, now_ns) {
                    end(self.take_out(at, Ended::Idle))?;
                } else {
                    expiry.file(at, end_ns);
                }
            }
        }
        self.expiry = Some(expiry);
        Ok(next_ns)
    }

    /// The flow at this place, which is free afterwards.
    fn take_out(&mut self, at: u32, ended: Ended) -> FlowRecord {
        let record = self.flows.take(at, ended);
        self.flows.slots.at_mut(at).die();
        self.names_bytes -= name_cost(record.domain.as_deref());
        self.index.remove(at, &self.flows.hashes);
        self.free.push(at);
        record
    }
}

/// Memory of a name.
pub(super) fn name_cost(name: Option<&[u8]>) -> u64 {
    name.map_or(0, |name| name.len() as u64 + NAME_OVERHEAD)
}
