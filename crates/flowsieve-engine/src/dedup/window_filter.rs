//! The filter that follows the window: whose answer is taken first.
//!
//! Packets that leave the window are removed from filters with counters. The rotating one needs no removal:
//! three Bloom filters in lines take turns, each for half of a window, and the oldest is cleared
//! when nothing in it belongs to the window any more.

use super::plan::WindowFilterKind;
use crate::filters::{
    DigestColumns, ElementDigests, FilterKind, FilterSpec, MembershipFilter, Sighting, Sizing,
    SubsetFilter,
};
use crate::hashing::Digest;

/// Bytes of filter for each packet that the window may hold.
pub(super) const BYTES_A_PACKET: u64 = 4;

/// Bits that a packet sets in a line.
const PROBES: u32 = 5;

/// Bloom filters that take turns.
const TURNS: usize = 3;

/// A filter for a window of some packets.
pub(super) enum WindowFilter {
    Removable(Box<dyn MembershipFilter>),
    Rotating(Box<Rotating>),
}

fn element(digest: Digest) -> ElementDigests<'static> {
    ElementDigests { whole: digest, attributes: &[] }
}

impl WindowFilter {
    /// A filter for a window of this many packets at most.
    pub(super) fn new(kind: WindowFilterKind, packets: u64) -> Self {
        let kind = match kind {
            WindowFilterKind::Rotating => return Self::Rotating(Box::new(Rotating::new(packets))),
            WindowFilterKind::Dleft => FilterKind::Dleft,
            WindowFilterKind::SplitCounting => FilterKind::SplitCounting,
            WindowFilterKind::Counting => FilterKind::Counting,
        };
        let sizing = Sizing::Memory { bytes: packets * BYTES_A_PACKET, expected: Some(packets) };
        let spec = FilterSpec::new(kind, 0, sizing);
        Self::Removable(spec.expect("a window has thousands of packets").build())
    }

    /// Takes in a packet and says whether it was there before.
    #[inline]
    pub(super) fn insert(&mut self, digest: Digest) -> Sighting {
        match self {
            Self::Removable(filter) => filter.insert(element(digest)),
            Self::Rotating(rotating) => rotating.insert(digest),
        }
    }

    /// The next packets have positions from this one on, and everything before `front` has left the
    /// window: what is due for them is done.
    pub(super) fn turn(&mut self, position: u64, front: u64) {
        if let Self::Rotating(rotating) = self {
            rotating.turn(position, front);
        }
    }

    /// Takes in packets ahead of their turn in the window, if the filter is one that can; appends
    /// what it says of each. The first has this position.
    pub(super) fn insert_ahead(
        &mut self,
        digests: &[Digest],
        position: u64,
        sightings: &mut Vec<Sighting>,
    ) {
        if let Self::Rotating(rotating) = self {
            rotating.insert_all(digests, position, sightings);
        }
    }

    /// One sighting of the packet leaves the window.
    #[inline]
    pub(super) fn remove(&mut self, digest: Digest) {
        if let Self::Removable(filter) = self
            && let Some(filter) = filter.as_removable()
        {
            filter.remove(element(digest));
        }
    }
}

/// Three Bloom filters that take turns.
pub(super) struct Rotating {
    /// The one that is filled, then the others, from the youngest on.
    turns: [SubsetFilter; TURNS],
    /// Position behind the last packet in each; 0 if it is empty. It is empty to the window, too,
    /// if that is not behind the window's front.
    ends: [u64; TURNS],
    /// Position of the first packet in the one that is filled.
    began: u64,
    /// Packets after which the next one's turn comes.
    turn_packets: u64,
    /// Where the window began when this was asked last.
    front: u64,
    /// Answers of one filter.
    known: Vec<bool>,
}

impl Rotating {
    fn new(packets: u64) -> Self {
        let lines = (packets * BYTES_A_PACKET / 64 / TURNS as u64).max(1);
        Self {
            turns: std::array::from_fn(|_| SubsetFilter::without_count(lines, PROBES)),
            ends: [0; TURNS],
            began: 0,
            turn_packets: (packets / 2).max(1),
            front: 0,
            known: Vec::new(),
        }
    }

    fn insert(&mut self, digest: Digest) -> Sighting {
        let element = element(digest);
        let [now, before @ ..] = &mut self.turns;
        let known = before.iter().any(|filter| filter.contains(element));
        match now.insert(element) {
            Sighting::First if !known => Sighting::First,
            _ => Sighting::Repeat,
        }
    }

    fn turn(&mut self, position: u64, front: u64) {
        self.front = front;
        if position.saturating_sub(self.began) >= self.turn_packets && self.ends[TURNS - 1] <= front
        {
            self.next_turn(position);
        }
    }

    fn insert_all(&mut self, digests: &[Digest], position: u64, sightings: &mut Vec<Sighting>) {
        self.ends[0] = position + digests.len() as u64;
        let columns = DigestColumns { whole: digests, attributes: &[] };
        let start = sightings.len();
        let [now, before @ ..] = &mut self.turns;
        now.insert_batch(columns, sightings);
        for (filter, end) in before.iter().zip(&self.ends[1..]) {
            if *end <= self.front {
                continue;
            }
            self.known.clear();
            filter.contains_batch(columns, &mut self.known);
            for (sighting, &known) in sightings[start..].iter_mut().zip(&self.known) {
                if known {
                    *sighting = Sighting::Repeat;
                }
            }
        }
    }

    /// Reuses the last filter, which is no longer needed, as the first.
    #[inline(never)]
    fn next_turn(&mut self, position: u64) {
        self.began = position;
        self.turns.rotate_right(1);
        self.ends.rotate_right(1);
        if self.ends[0] != 0 {
            self.turns[0].clear();
        }
    }
}
