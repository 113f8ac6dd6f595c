//! The filter that follows the window: whose answer is taken first.
//!
//! Filters with counters are told what leaves the window. The rotating one needs not be: three Bloom
//! filters in lines take turns, each for half of a window, and the oldest is cleared when nothing in it
//! belongs to the window any more.

use super::plan::SieveKind;
use crate::filters::{
    BloomLineFilter, ElementDigests, FilterKind, FilterSpec, MembershipFilter, Sighting, Sizing,
};
use crate::hashing::Digest;

/// Bytes of filter for each packet that the window may hold.
pub(super) const BYTES_A_PACKET: u64 = 4;

/// Bits that a packet sets in a line.
const PROBES: u32 = 5;

/// Bloom filters that take turns.
const TURNS: usize = 3;

/// A filter for a window of some packets.
#[derive(Debug)]
pub(super) enum Sieve {
    Removable(Box<dyn MembershipFilter>),
    Rotating(Rotating),
}

fn element(digest: u64) -> ElementDigests<'static> {
    ElementDigests {
        whole: Digest::from_value(digest),
        attributes: &[],
    }
}

impl Sieve {
    /// A filter for a window of so many packets at most.
    pub(super) fn new(kind: SieveKind, packets: u64) -> Self {
        let kind = match kind {
            SieveKind::Rotating => return Self::Rotating(Rotating::new(packets)),
            SieveKind::Dleft => FilterKind::Dleft,
            SieveKind::SplitCounting => FilterKind::SplitCounting,
            SieveKind::Counting => FilterKind::Counting,
        };
        let sizing = Sizing::Memory {
            bytes: packets * BYTES_A_PACKET,
            expected: Some(packets),
        };
        let spec = FilterSpec::new(kind, 0, sizing);
        Self::Removable(spec.expect("a window has thousands of packets").build())
    }

    /// Takes in the packet at `position` and says whether it was there before; everything before
    /// `front` has left the window.
    #[inline]
    pub(super) fn insert(&mut self, digest: u64, position: u64, front: u64) -> Sighting {
        match self {
            Self::Removable(filter) => filter.insert(element(digest)),
            Self::Rotating(rotating) => rotating.insert(digest, position, front),
        }
    }

    /// One sighting of the packet leaves the window.
    #[inline]
    pub(super) fn remove(&mut self, digest: u64) {
        if let Self::Removable(filter) = self
            && let Some(filter) = filter.as_removable()
        {
            filter.remove(element(digest));
        }
    }
}

/// Three Bloom filters that take turns.
#[derive(Debug)]
pub(super) struct Rotating {
    /// The one that is filled, then the others, from the youngest on.
    turns: [BloomLineFilter; TURNS],
    /// Position behind the last packet in each; 0 if it is empty.
    ends: [u64; TURNS],
    /// Position of the first packet in the one that is filled.
    began: u64,
    /// Packets after which the next one's turn comes.
    turn: u64,
}

impl Rotating {
    fn new(packets: u64) -> Self {
        let lines = (packets * BYTES_A_PACKET / 64 / TURNS as u64).max(1);
        Self {
            turns: std::array::from_fn(|_| BloomLineFilter::new(lines, PROBES)),
            ends: [0; TURNS],
            began: 0,
            turn: (packets / 2).max(1),
        }
    }

    #[inline]
    fn insert(&mut self, digest: u64, position: u64, front: u64) -> Sighting {
        if position - self.began >= self.turn && self.ends[TURNS - 1] <= front {
            self.next_turn(position);
        }
        self.ends[0] = position + 1;
        let element = element(digest);
        let [now, younger, older] = &mut self.turns;
        let before = (self.ends[1] != 0 && younger.contains(element))
            || (self.ends[2] != 0 && older.contains(element));
        match now.insert(element) {
            Sighting::First if !before => Sighting::First,
            _ => Sighting::Repeat,
        }
    }

    /// The last, of which nothing is needed any more, comes first.
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
