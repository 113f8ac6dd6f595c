//! The digests of the packets seen last, and the filter that follows them.
//!
//! ```text
//!   heads   bucket of a digest ──► position of the last packet in it
//!   ring    position ──► digest, stamp, position of the packet before it in the bucket
//!           front (oldest) … next
//! ```
//!
//! A packet's stamp is its time, or its number where the window counts packets. Before a packet is
//! compared, the front is moved on over everything that is not within the window's width of it, so
//! a bucket's chain ends where it comes before the front: what leaves the window needs no clearing.
//! A packet that is seen again takes the place of its earlier sighting in the chain, so a chain has
//! each digest once.
//!
//! The filter is asked first, and a packet that it calls new needs no look at the chain. The window
//! starts small and doubles when it is full, until its memory is used up; then the oldest packets
//! leave early.

use super::plan::{WindowFilterKind, WindowWidth};
use super::results::WindowReport;
use super::window_filter::{BYTES_A_PACKET as FILTER_BYTES_A_PACKET, WindowFilter};
use crate::filters::Sighting;
use crate::hashing::Digest;
use crate::memory::can_allocate;
use std::hint::black_box;

/// Packets that the smallest window has room for.
const LEAST_ROOM: u64 = 1 << 12;

/// Most room: 32 bits distinguish the positions within it.
const MOST_ROOM: u64 = 1 << 31;

/// Bytes for each packet that there is room for: its entry, its bucket, its share of the filter.
const BYTES_A_PACKET: u64 = size_of::<Entry>() as u64 + 4 + FILTER_BYTES_A_PACKET;

/// Packets after which the window grows if it has to, and its filter may take its next turn.
const STRIDE: u64 = 256;

/// Room from which buckets are touched ahead: their table leaves the second-level cache.
const TOUCH_FROM_ROOM: u64 = 1 << 17;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    digest: u128,
    stamp: i64,
    /// Low bits of the position of the packet before it in its bucket.
    before: u32,
    /// It stands in its chain, and in the filter: there was no later sighting.
    is_last: bool,
}

/// The window.
pub(super) struct Window {
    ring: Vec<Entry>,
    heads: Vec<u32>,
    /// Positions are counted from 1, so that 0 is never in the window.
    front: u64,
    next: u64,
    width: u64,
    kind: WindowFilterKind,
    filter: WindowFilter,
    most_room: u64,
    report: WindowReport,
    /// Digests of the packets being taken in, as the filter takes them.
    digests: Vec<Digest>,
    /// Answers of the filter, if it was asked ahead.
    sightings: Vec<Sighting>,
}

impl Window {
    /// A window of this width in this much memory.
    pub(super) fn new(width: WindowWidth, kind: WindowFilterKind, memory_bytes: u64) -> Self {
        let fitting = (memory_bytes / BYTES_A_PACKET).max(LEAST_ROOM);
        let most_room = (1 << fitting.ilog2()).min(MOST_ROOM);
        let (width, room) = match width {
            WindowWidth::Time(width) => (width.cast_unsigned(), LEAST_ROOM),
            WindowWidth::Packets(count) => {
                let room = count.saturating_add(1).clamp(LEAST_ROOM, most_room);
                (count - 1, room.next_power_of_two().min(most_room))
            }
        };
        let mut window = Self {
            ring: Vec::new(),
            heads: Vec::new(),
            front: 1,
            next: 1,
            width,
            kind,
            filter: WindowFilter::new(kind, LEAST_ROOM),
            most_room,
            report: WindowReport::default(),
            digests: Vec::new(),
            sightings: Vec::new(),
        };
        window.make_room(LEAST_ROOM);
        window.grow(room);
        window
    }

    /// Takes in packets in order; says of each whether it was in the window.
    ///
    /// The window grows, and its filters take turns, only every [`STRIDE`] packets: so what it
    /// reports does not depend on how packets are divided among calls.
    pub(super) fn see_all(&mut self, digests: &[u128], stamps: &[i64], repeats: &mut Vec<bool>) {
        let mut at = 0;
        while at < digests.len() {
            let seen = self.next - 1;
            if seen.is_multiple_of(STRIDE) {
                self.prepare(stamps[at]);
            }
            let stride = (STRIDE - seen % STRIDE) as usize;
            let end = digests.len().min(at + stride);
            self.see_some(&digests[at..end], &stamps[at..end], repeats);
            at = end;
        }
    }

    /// Makes room for the packets of a stride, of which the first has this stamp.
    fn prepare(&mut self, stamp: i64) {
        self.expire(stamp);
        // Before the filter is asked: in a larger window it is another one.
        let wanted = self.next - self.front + STRIDE;
        let room = wanted.next_power_of_two().min(self.most_room);
        if room > self.ring.len() as u64 {
            self.grow(room);
        }
        self.filter.turn(self.next, self.front);
    }

    /// Takes in packets of one stride.
    fn see_some(&mut self, digests: &[u128], stamps: &[i64], repeats: &mut Vec<bool>) {
        self.digests.clear();
        self.digests.extend(digests.iter().copied().map(of_filter));
        if self.ring.len() as u64 >= TOUCH_FROM_ROOM {
            let heads = digests.iter().map(|&digest| self.heads[self.bucket(digest)]);
            black_box(heads.fold(0, |all, head| all ^ head));
        }
        self.sightings.clear();
        self.filter.insert_ahead(&self.digests, self.next, &mut self.sightings);
        for (index, (&digest, &stamp)) in digests.iter().zip(stamps).enumerate() {
            let sighting = self.sightings.get(index).copied();
            repeats.push(self.see(digest, stamp, sighting));
        }
    }

    /// Adds a packet, whose answer of the filter may be known already; returns whether it was in
    /// the window.
    #[inline]
    fn see(&mut self, digest: u128, stamp: i64, sighting: Option<Sighting>) -> bool {
        self.expire(stamp);
        if self.next - self.front == self.ring.len() as u64 {
            self.leave_early(stamp);
        }
        let mut repeat = false;
        match sighting.unwrap_or_else(|| self.filter.insert(of_filter(digest))) {
            Sighting::First => self.report.first += 1,
            Sighting::Repeat | Sighting::Unknown => {
                self.report.looked_up += 1;
                if let Some(seen) = self.take_out(digest) {
                    // It is in the filter once.
                    self.filter.remove(of_filter(digest));
                    repeat = seen.abs_diff(stamp) <= self.width;
                }
            }
        }
        self.put_in(digest, stamp);
        repeat
    }

    /// Moves the front over what is out of the window of a packet with this stamp.
    #[inline]
    fn expire(&mut self, stamp: i64) {
        while self.front < self.next {
            let entry = &self.ring[self.slot(self.front)];
            if entry.stamp.abs_diff(stamp) <= self.width {
                return;
            }
            self.leave();
        }
    }

    /// Moves the front over one packet.
    #[inline]
    fn leave(&mut self) {
        let entry = &self.ring[self.slot(self.front)];
        if entry.is_last {
            self.filter.remove(of_filter(entry.digest));
        }
        self.front += 1;
    }

    /// There is no more memory: lets the oldest packet leave early.
    #[inline(never)]
    fn leave_early(&mut self, stamp: i64) {
        let reach = self.ring[self.slot(self.front)].stamp.abs_diff(stamp);
        self.report.left_early += 1;
        let least = self.report.least_reach.get_or_insert(reach);
        *least = reach.min(*least);
        self.leave();
    }

    /// Makes this much room, halved as often as the system refuses the memory; then
    /// packets leave early, as they do when the memory that was asked for is full.
    fn grow(&mut self, room: u64) {
        let mut given = room;
        // The digests of moved packets exist in addition for a while.
        while given > self.ring.len() as u64 && !can_allocate(given * (BYTES_A_PACKET + 8)) {
            given /= 2;
        }
        if given < room {
            self.most_room = given.max(self.ring.len() as u64);
        }
        if given > self.ring.len() as u64 {
            self.make_room(given);
        }
    }

    fn make_room(&mut self, room: u64) {
        let old = std::mem::replace(&mut self.ring, vec![Entry::default(); room as usize]);
        self.heads = vec![0; room as usize];
        self.filter = WindowFilter::new(self.kind, room);
        self.report.memory_bytes = room * BYTES_A_PACKET;
        let (front, next) = (self.front, std::mem::replace(&mut self.next, self.front));
        let live = (front..next).map(|position| old[position as usize & (old.len() - 1)]);
        let digests: Vec<Digest> = live.clone().map(|entry| of_filter(entry.digest)).collect();
        let mut sightings = Vec::new();
        self.filter.insert_ahead(&digests, front, &mut sightings);
        for entry in live {
            let slot = self.slot(self.next);
            self.put_in(entry.digest, entry.stamp);
            if !entry.is_last {
                // It stays out of its chain.
                let bucket = self.bucket(entry.digest);
                self.heads[bucket] = self.ring[slot].before;
                self.ring[slot].is_last = false;
            } else if sightings.is_empty() {
                self.filter.insert(of_filter(entry.digest));
            }
        }
    }

    #[inline]
    fn put_in(&mut self, digest: u128, stamp: i64) {
        let (slot, bucket) = (self.slot(self.next), self.bucket(digest));
        self.ring[slot] = Entry { digest, stamp, before: self.heads[bucket], is_last: true };
        self.heads[bucket] = self.next as u32;
        self.next += 1;
    }

    /// Takes the packet's sighting out of its chain; returns its stamp.
    #[inline]
    fn take_out(&mut self, digest: u128) -> Option<i64> {
        let bucket = self.bucket(digest);
        let mut later = None;
        let mut low = self.heads[bucket];
        loop {
            let back = u64::from((self.next as u32).wrapping_sub(low));
            if back == 0 || back > self.next - self.front {
                return None;
            }
            let slot = self.slot(self.next - back);
            let entry = &mut self.ring[slot];
            if entry.digest == digest {
                entry.is_last = false;
                let (before, stamp) = (entry.before, entry.stamp);
                match later {
                    None => self.heads[bucket] = before,
                    Some(later) => {
                        let later: &mut Entry = &mut self.ring[later];
                        later.before = before;
                    }
                }
                return Some(stamp);
            }
            later = Some(slot);
            low = entry.before;
        }
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & (self.ring.len() - 1)
    }

    /// The filter takes the low bits of a digest, buckets the high ones.
    #[inline]
    fn bucket(&self, digest: u128) -> usize {
        (digest >> 64) as usize & (self.heads.len() - 1)
    }

    pub(super) fn report(&self) -> WindowReport {
        self.report
    }
}

fn of_filter(digest: u128) -> Digest {
    Digest::from_value(digest as u64)
}
