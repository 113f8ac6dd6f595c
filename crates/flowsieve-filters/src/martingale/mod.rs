//! Counting distinct elements with the filter that recognises repeats: the union martingale.
//!
//! A filter that calls a new element a repeat with probability p loses that element from its raw
//! count, and one that is full loses all of them. So each count has [`Registers`] beside the
//! filter. An element is *seen* if it changes the filter **or** a register. Both depend on
//! different bits of its digest, so a new element remains unseen with probability u = p q, where q
//! is the probability that no register rises; a repeat changes neither.
//!
//! The martingale ("historic inverse probability", HIP) estimator makes up for what was not seen:
//! when an element is seen, add `1 / (1 - u)`, with u taken from the state *before* it. Each new
//! element then adds 1 in expectation, for any state, so the sum is exactly unbiased for every
//! order and number of repeats. Its variance is the expectation of the sum of `u / (1 - u)²` over
//! the elements seen, which is kept beside it. A roomy filter makes u tiny; a full one makes it q,
//! and the count that of `HyperLogLog`'s own martingale: its standard error never exceeds √(ln 2 /
//! 512) = 3.7 % of a shard's elements, 1.3 % with 8 shards.
//!
//! What a filter of other elements adds all at once is no stream. The registers of a union are the
//! higher of both, and its count is that of the registers or of the fill, whichever has less
//! variance.
//!
//! Reference: Ting, "Streamed approximate counting of distinct elements", KDD 2014; Cohen,
//! "All-distances sketches, revisited", PODS 2014; the union of filter and registers is this
//! project's.

mod registers;

pub(crate) use self::registers::{REGISTERS, Registers, Rise};
use super::{Basis, Estimate, Seen, Sighting};
use crate::hashing::{Digest, ProbeBatch};

/// Share of the new elements that a filter without registers has to notice for its stream to be
/// counted: below this it may have missed any number.
const LEAST_SEEN: f64 = 0.01;

/// Running count of distinct elements beside a filter. It takes half a KiB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistinctCounter {
    registers: Registers,
    stream: Stream,
}

/// What is known of the insertions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stream {
    /// All of them were watched.
    Watched {
        /// Elements seen (X).
        seen: u64,
        /// Mean of what was missed beside them (μ).
        missed: f64,
        /// Its variance.
        variance: f64,
    },
    /// Others came in all at once.
    United,
}

impl Default for Stream {
    fn default() -> Self {
        Self::Watched { seen: 0, missed: 0.0, variance: 0.0 }
    }
}

/// Probabilities for a new element in the present state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chances {
    /// It is seen (1 - u), which is computed by itself since u may be next to 1.
    seen: f64,
    /// It is missed (u).
    missed: f64,
}

impl Chances {
    /// That a new element is seen.
    pub(crate) const fn seen(self) -> f64 {
        self.seen
    }

    /// Mean and variance of the number that is missed before the next one is recorded, one in
    /// `scale` of those that are seen.
    fn next(self, scale: f64) -> (f64, f64) {
        let mean = self.missed * scale / self.seen;
        if mean.is_finite() {
            (mean, mean * (1.0 + mean))
        } else {
            // Nothing can be seen any more.
            (0.0, 0.0)
        }
    }
}

impl DistinctCounter {
    /// A count that is not known any more, for any traffic.
    pub(crate) const LOST: Self = Self { registers: Registers::SILENT, stream: Stream::United };

    /// A count to go on from; `None` unless mean and variance of what was missed are numbers from 0
    /// on.
    pub(crate) fn of_parts(registers: Registers, stream: Stream) -> Option<Self> {
        let is_count = |number: f64| number.is_finite() && number >= 0.0;
        let can_be = match stream {
            Stream::Watched { missed, variance, .. } => is_count(missed) && is_count(variance),
            Stream::United => true,
        };
        can_be.then_some(Self { registers, stream })
    }

    /// An empty count of which only the elements of a rank above `floor` raise registers.
    pub(crate) fn above(floor: u8) -> Self {
        Self { registers: Registers::above(floor), stream: Stream::default() }
    }

    /// This count with such registers.
    pub(crate) fn lifted(self, floor: u8) -> Self {
        Self { registers: self.registers.lifted(floor), stream: self.stream }
    }

    /// The registers, and what is known of the stream.
    pub(crate) const fn parts(&self) -> (&Registers, Stream) {
        (&self.registers, self.stream)
    }

    /// Records an insertion, of what was new or not. `repeat_probability` is that with which a new
    /// element was called a repeat before the insertion; it is asked for only if the element is
    /// seen.
    #[inline]
    pub fn record(
        &mut self,
        digest: Digest,
        sighting: Sighting,
        repeat_probability: impl FnOnce() -> f64,
    ) {
        let rise = self.registers.rise(digest);
        if sighting == Sighting::Repeat && rise.is_none() {
            return;
        }
        if self.is_watched() {
            let repeat = repeat_probability();
            self.record_missed(self.chances(repeat, 1.0 - repeat), 1.0);
            self.record_seen(1);
        }
        if let Some(rise) = rise {
            self.raise(rise);
        }
    }

    /// Records insertions of up to [`ProbeBatch::MOST`] elements in order, of which those were new
    /// that changed bits in the filter, as `fresh` says; `repeat_probability` is asked for some of
    /// them by their number.
    #[inline]
    pub(crate) fn record_all(
        &mut self,
        digest: impl Fn(usize) -> Digest,
        fresh: &[u8],
        repeat_probability: impl Fn(usize) -> f64,
    ) {
        let clear = self.clear_bits();
        // Found without a branch: whether an element is new is a coin's toss.
        let mut seen = [0; ProbeBatch::MOST];
        let mut count = 0;
        for (number, &fresh) in fresh.iter().enumerate().take(ProbeBatch::MOST) {
            seen[count] = number as u8;
            let may_rise = digest(number).value() & clear == 0;
            count += usize::from(u8::from(fresh != 0) | u8::from(may_rise));
        }
        for number in seen[..count].iter().map(|&number| usize::from(number)) {
            let sighting = Sighting::of_fresh(fresh[number]);
            self.record(digest(number), sighting, || repeat_probability(number));
        }
    }

    /// Probabilities with which a new element is seen, where the filter calls it a repeat with
    /// probability `repeat`, and new with the other one.
    #[inline]
    pub(crate) fn chances(&self, repeat: f64, first: f64) -> Chances {
        let rises = self.registers.rise_probability();
        Chances { seen: first + repeat * rises, missed: repeat * (1.0 - rises) }
    }

    /// Records elements that were seen.
    #[inline]
    pub(crate) const fn record_seen(&mut self, elements: u64) {
        if let Stream::Watched { seen, .. } = &mut self.stream {
            *seen += elements;
        }
    }

    /// Records what was missed beside such elements, u / (1 - u) each, from one that stands for
    /// `scale` of them: one in `scale`, chosen at random. Returns what was recorded.
    #[inline]
    pub(crate) fn record_missed(&mut self, chances: Chances, scale: f64) -> f64 {
        let mean = chances.missed * scale / chances.seen;
        if let Stream::Watched { missed, variance, .. } = &mut self.stream {
            *missed += mean;
            *variance += mean * (1.0 + mean);
        }
        mean
    }

    /// What the element raises, if it raises a register.
    #[inline]
    pub(crate) fn rise(&self, digest: Digest) -> Option<Rise> {
        self.registers.rise(digest)
    }

    /// Raises a register.
    #[inline]
    pub(crate) fn raise(&mut self, rise: Rise) {
        self.registers.raise(rise);
    }

    /// [`Registers::clear_bits`].
    #[inline]
    pub(crate) const fn clear_bits(&self) -> u64 {
        self.registers.clear_bits()
    }

    /// Whether all insertions were watched.
    #[inline]
    pub const fn is_watched(&self) -> bool {
        matches!(self.stream, Stream::Watched { .. })
    }

    /// Whether nothing was ever counted.
    pub fn is_empty(&self) -> bool {
        self.stream == Stream::default()
    }

    /// What is known of the count when the elements of another filter come in all at once.
    pub fn unite(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
        } else if !other.is_empty() {
            self.unite_streams(other);
        }
    }

    /// The same, and the count is that of a union also if nothing was counted here or there.
    pub(crate) fn unite_streams(&mut self, other: &Self) {
        self.registers.unite(&other.registers);
        self.stream = Stream::United;
    }

    /// The same for filters that have no count once something was removed.
    pub(super) fn unite_where_known(counter: &mut Option<Self>, other: Option<&Self>) {
        match (counter.as_mut(), other) {
            (Some(counter), Some(other)) => counter.unite(other),
            _ => *counter = None,
        }
    }

    /// The count of a stream, where a new element is called a repeat with this probability now;
    /// that of a union by its registers or its fill, whichever is more exact.
    pub fn estimate(
        &self,
        repeat_probability: impl FnOnce() -> f64,
        fill: impl FnOnce() -> Option<Estimate>,
    ) -> Option<Estimate> {
        self.estimate_with(
            |counter| {
                let repeat = repeat_probability();
                counter.chances(repeat, 1.0 - repeat)
            },
            1.0,
            fill,
        )
    }

    /// The same by the probabilities of both, where what was missed is recorded beside one in
    /// `scale` of the elements that are seen.
    pub(crate) fn estimate_with(
        &self,
        chances: impl FnOnce(&Self) -> Chances,
        scale: f64,
        fill: impl FnOnce() -> Option<Estimate>,
    ) -> Option<Estimate> {
        match self.stream {
            Stream::Watched { seen, missed, variance } => {
                if self.is_empty() {
                    return Some(Estimate::default());
                }
                let chances = chances(self);
                if self.registers.is_silent() && chances.seen < LEAST_SEEN {
                    return fill();
                }
                let (next_mean, next_variance) = chances.next(scale);
                Some(Estimate {
                    distinct: seen as f64 + missed,
                    variance,
                    basis: Basis::Stream(Seen {
                        elements: seen,
                        next_mean,
                        next_variance,
                        streams: 1,
                    }),
                })
            }
            Stream::United => Estimate::better(self.registers.estimate(), fill()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_filter_without_registers_leaves_the_answer_to_its_fill() {
        let watched = Stream::Watched { seen: 10, missed: 2.0, variance: 2.5 };
        let fill = Estimate { distinct: 77.0, ..Estimate::default() };
        let estimate = |registers, repeat: f64, fill: Option<Estimate>| {
            let counter = DistinctCounter::of_parts(registers, watched);
            let estimate = counter.and_then(|counter| counter.estimate(|| repeat, || fill));
            estimate.map(|estimate| estimate.distinct)
        };
        assert_eq!(estimate(Registers::SILENT, 0.98, Some(fill)), Some(12.0));
        assert_eq!(estimate(Registers::SILENT, 0.995, Some(fill)), Some(77.0));
        assert_eq!(estimate(Registers::SILENT, 1.0, None), None);
        assert_eq!(estimate(Registers::above(0), 1.0, None), Some(12.0));
    }
}
