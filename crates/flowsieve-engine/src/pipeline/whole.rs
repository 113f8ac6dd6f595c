//! The whole beside the slices: the distinct elements of all slices together, each with the
//! earliest slice that it is in.
//!
//! An element is *new* in its earliest slice. That depends on which elements a slice has and on
//! nothing else: neither on the order in which slices come or are counted again, nor on threads or
//! pieces. So what is known of an element is the least number of its slices.
//!
//! Only first sightings of slices come here. The exact set of a slice passes on what was new to it,
//! and a map of all of them gives the exact numbers. Without it a sample does: the elements whose
//! digests end in at least `level` zeros, where the level rises whenever they do not fit. So
//! everything is counted until the sample is full, and then each element stands for 2^level.
//!
//! A crowded filter takes new elements for repeats. So a sample of 1 in 2^[`COMPLETE`] gets all
//! elements, whatever the filter says, and is what counts if the filter of any slice missed more
//! than [`MOST_MISSED`] of its elements. That share only grows when a slice is counted again with
//! more packets, so its maximum does not depend on how often slices were counted, either.

use super::byte_map::{ByteMap, Put};
use super::results::WholeResult;
use crate::elements::ElementColumns;
use crate::filters::{Basis, Estimate, Seen, Sighting};
use crate::hashing::Digest;
use ahash::RandomState;
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Elements whose digests end in so many zeros are in the sample even if their filter calls them
/// repeats.
const COMPLETE: u32 = 6;

/// The bits that are zeros then.
const COMPLETE_BITS: u64 = low_bits(COMPLETE);

/// Elements that are looked at together.
const CHUNK: usize = 32;

/// Share of the elements of a slice, or more, that its filter may miss.
const MOST_MISSED: f64 = 0.001;

/// Bytes of a place in the table of the sample.
const PLACE_BYTES: u64 = 17;

/// Parameters of a shard's part of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeSpec {
    /// Bytes of the exact map; `None` without one.
    pub(crate) exact_limit_bytes: Option<u64>,
    /// Places of the table of the sample, a power of two; `None` without a counter.
    pub(crate) places: Option<usize>,
    /// The counter says which elements are new, and how many it missed, and is not so small that it
    /// misses many soon: others pass on all.
    pub(crate) firsts_only: bool,
}

impl WholeSpec {
    /// Bytes of the counters of a slice, over all shards, that are not small.
    pub(crate) const ROOMY_BYTES: u64 = 64 << 10;

    /// Returns the places for one of `shards`, whose counter of a slice has this memory: about as
    /// much again, so that both stay in the cache.
    pub(crate) fn places(counter_bytes: u64, shards: u64) -> usize {
        /// Fewest places, over all shards.
        const LEAST: u64 = 4096;
        let places = (counter_bytes / 16).max(LEAST / shards).clamp(16, 1 << 40);
        1 << places.ilog2()
    }

    /// Returns the bytes of the table of the sample.
    pub(crate) fn sample_bytes(places: usize) -> u64 {
        PLACE_BYTES * places as u64
    }
}

/// A shard's part of the whole.
#[derive(Debug)]
pub(crate) struct Whole {
    exact: Option<ByteMap<i64>>,
    sample: Option<Sample>,
    firsts_only: bool,
    /// Largest share of the elements of a slice that its counter missed.
    missed: f64,
    /// Elements that came for an earlier slice than the one they counted for.
    moved: BTreeMap<i64, u64>,
}

impl Whole {
    pub(crate) fn new(spec: WholeSpec) -> Self {
        Self {
            exact: spec.exact_limit_bytes.map(ByteMap::new),
            sample: spec.places.map(Sample::new),
            firsts_only: spec.firsts_only,
            missed: 0.0,
            moved: BTreeMap::new(),
        }
    }

    /// Adds an element that is new to the exact set of a slice; returns whether it is in no other
    /// slice before it.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], slice: i64) -> bool {
        let Some(exact) = &mut self.exact else { return false };
        match exact.put_by(key, slice, i64::min) {
            Put::New => true,
            Put::Known(before) if slice < before => {
                *self.moved.entry(before).or_default() += 1;
                true
            }
            Put::Known(_) | Put::Refused => false,
        }
    }

    /// The exact set of a slice passed its limit.
    pub(crate) fn lose(&mut self) {
        self.exact.iter_mut().for_each(ByteMap::give_up);
    }

    /// Adds the elements of a slice, with what its counter said of each.
    pub(crate) fn add_sample(
        &mut self,
        elements: &ElementColumns,
        sightings: &[Sighting],
        slice: i64,
    ) {
        let Some(sample) = &mut self.sample else { return };
        if !self.firsts_only {
            for &digest in &elements.digests {
                sample.add(digest, slice);
            }
            return;
        }
        for (digests, sightings) in elements.digests.chunks(CHUNK).zip(sightings.chunks(CHUNK)) {
            // Found without a branch: whether an element is new is a coin's toss.
            let level = low_bits(sample.level);
            let (mut wanted, mut found) = ([0; CHUNK], 0);
            for (number, (&digest, &sighting)) in digests.iter().zip(sightings).enumerate() {
                let digest = digest.value();
                let counts = usize::from(sighting == Sighting::First)
                    | usize::from(digest & COMPLETE_BITS == 0);
                wanted[found % CHUNK] = number as u8;
                found += usize::from(digest & level == 0) & counts;
            }
            for &number in wanted.iter().take(found) {
                sample.add(digests[usize::from(number)], slice);
            }
        }
    }

    /// Adds the sample of a slice, with its level and the share that its counter missed.
    pub(crate) fn add_part(&mut self, slice: i64, missed: f64, level: u32, digests: &[u64]) {
        self.missed = self.missed.max(missed);
        if let Some(sample) = &mut self.sample {
            if level > sample.level {
                sample.level = level;
                sample.thin_out();
            }
            for &digest in digests {
                sample.add(Digest::from_value(digest), slice);
            }
        }
    }

    /// Returns its elements, in order.
    pub(crate) fn into_elements(self) -> WholeElements {
        let keys = self.exact.filter(|map| map.distinct().is_some()).map(|map| {
            let mut keys = Vec::new();
            map.for_each(|key, _| keys.push(key.into()));
            keys.sort_unstable();
            keys
        });
        let (level, slices) = self.sample.map(|it| (it.level, it.slices)).unwrap_or_default();
        let mut digests: Vec<u64> = slices.into_iter().map(|(digest, _)| digest).collect();
        digests.sort_unstable();
        WholeElements { missed: self.missed, level, digests, keys }
    }

    /// Notes that a slice has an estimate of its elements, `first` of which were seen as new.
    pub(crate) fn note_missed(&mut self, estimate: Option<Estimate>, first: u64) {
        if let Some(Estimate { distinct, .. }) = estimate.filter(|_| self.firsts_only)
            && distinct > first as f64
        {
            self.missed = self.missed.max(1.0 - first as f64 / distinct);
        }
    }

    /// Closes a slice that `new` elements came for first. Returns this number less those that it lost
    /// to earlier ones, if the exact map knows, and how many slices that are not open lost.
    pub(crate) fn close(
        &mut self,
        slice: i64,
        new: u64,
        is_open: impl Fn(i64) -> bool,
    ) -> (Option<i64>, Vec<(i64, u64)>) {
        let is_exact = self.exact.as_ref().is_some_and(|map| map.distinct().is_some());
        let lost = self.moved.remove(&slice).unwrap_or(0);
        let mut moved = Vec::new();
        self.moved.retain(|&other, &mut lost| {
            let stays = is_open(other);
            if !stays {
                moved.push((other, lost));
            }
            stays
        });
        (is_exact.then(|| new as i64 - lost as i64), moved)
    }

    /// Returns the new elements of all slices.
    pub(crate) fn tally(self) -> WholeTally {
        let exact = self.exact.filter(|map| map.distinct().is_some()).map(|map| {
            let mut slices = HashMap::<i64, u64, RandomState>::default();
            map.for_each(|_, slice| *slices.entry(slice).or_default() += 1);
            let mut slices = Vec::from_iter(slices);
            slices.sort_unstable();
            slices
        });
        WholeTally { exact, sample: self.sample.map(Sample::tally), missed: self.missed }
    }
}

/// How many elements are missed at most, if this many are in the mean.
fn most_missed(mean: f64) -> u64 {
    /// Below this mean none is missed in 98 of 100 cases.
    const NONE: f64 = 0.02;
    if mean < NONE { 0 } else { 2.0f64.mul_add(mean.sqrt(), mean).ceil() as u64 }
}

/// Whether digests can end in so many zeros.
pub(crate) const fn is_level(level: u32) -> bool {
    level <= u64::BITS
}

/// The elements of a whole.
pub(crate) struct WholeElements {
    /// Largest share of the elements of a slice that its counter missed.
    pub(crate) missed: f64,
    /// Level of the sample, and its digests.
    pub(crate) level: u32,
    pub(crate) digests: Vec<u64>,
    /// All elements, if the exact map has them.
    pub(crate) keys: Option<Vec<Box<[u8]>>>,
}

/// Returns the mask of the lowest `level` bits of a digest.
const fn low_bits(level: u32) -> u64 {
    if level < u64::BITS { (1 << level) - 1 } else { u64::MAX }
}

/// The zeros in which a digest ends.
#[inline]
const fn ends_in(digest: Digest) -> u32 {
    digest.value().trailing_zeros()
}

/// A digest is a hash already; tables want its last bits to differ, which are zeros of the level.
#[inline]
const fn spread(digest: u64) -> u64 {
    digest.rotate_left(32)
}

/// Elements by digest, each with its earliest slice.
#[derive(Debug)]
struct Sample {
    slices: HashTable<(u64, i64)>,
    level: u32,
    most: usize,
}

impl Sample {
    fn new(places: usize) -> Self {
        // A table of so many places has room for this many.
        let most = places / 8 * 7;
        Self { slices: HashTable::new(), level: 0, most }
    }

    #[inline]
    fn add(&mut self, digest: Digest, slice: i64) {
        if ends_in(digest) < self.level {
            return;
        }
        let digest = digest.value();
        match self.slices.entry(spread(digest), |held| held.0 == digest, |held| spread(held.0)) {
            Entry::Occupied(mut held) => {
                let (_, earliest) = held.get_mut();
                *earliest = slice.min(*earliest);
            }
            Entry::Vacant(place) => {
                place.insert((digest, slice));
                if self.slices.len() >= self.most {
                    self.thin_out();
                }
            }
        }
    }

    /// Keeps only elements of the level, which rises until there is room.
    #[cold]
    fn thin_out(&mut self) {
        loop {
            let level = self.level;
            self.slices.retain(|held| held.0.trailing_zeros() >= level);
            if self.slices.len() < self.most {
                return;
            }
            self.level += 1;
        }
    }

    fn tally(self) -> SampleTally {
        let mut slices = BTreeMap::<i64, SampledSlice>::new();
        for (digest, slice) in self.slices {
            let sampled = slices.entry(slice).or_default();
            sampled.all += 1;
            sampled.complete += u64::from(digest.trailing_zeros() >= COMPLETE);
        }
        SampleTally { level: self.level, slices: slices.into_iter().collect() }
    }
}

/// A shard's part of the whole when all slices were counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct WholeTally {
    /// Slices with new elements, and how many; `None` without an exact map, or if it passed its
    /// limit.
    exact: Option<Vec<(i64, u64)>>,
    sample: Option<SampleTally>,
    pub(crate) missed: f64,
}

impl WholeTally {
    /// Returns what is known of a shard without elements.
    pub(crate) fn empty(spec: Option<WholeSpec>) -> Self {
        spec.map(|spec| Whole::new(spec).tally()).unwrap_or_default()
    }

    /// Whether the numbers, which may come from another process, are possible: each slice comes
    /// once, in order.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut sample = self.sample.iter();
        (0.0..=1.0).contains(&self.missed)
            && self.exact.iter().all(|slices| slices.is_sorted_by(|a, b| a.0 < b.0))
            && sample.all(|it| is_level(it.level) && it.slices.is_sorted_by(|a, b| a.0 < b.0))
    }
}

/// A sample when all slices were counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SampleTally {
    level: u32,
    slices: Vec<(i64, SampledSlice)>,
}

/// New elements of a slice that are in the sample.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SampledSlice {
    all: u64,
    /// Those that no filter decided about.
    complete: u64,
}

/// Selects the entry of one slice, or all entries if `slice` is `None`. Entries are sorted by slice.
fn of_slice<T>(entries: &[(i64, T)], slice: Option<i64>) -> &[(i64, T)] {
    let Some(slice) = slice else { return entries };
    let place = entries.binary_search_by_key(&slice, |(index, _)| *index);
    place.map_or(&[], |place| &entries[place..=place])
}

/// The whole over all shards, slice by slice.
pub(crate) struct WholeSums {
    shards: Vec<WholeTally>,
    has_exact: bool,
    has_sample: bool,
    /// Largest share of the elements of a slice that a counter missed.
    missed: f64,
}

impl WholeSums {
    /// Joins the parts of all shards.
    pub(crate) fn new(shards: Vec<WholeTally>) -> Self {
        Self {
            has_exact: !shards.is_empty() && shards.iter().all(|shard| shard.exact.is_some()),
            has_sample: !shards.is_empty() && shards.iter().all(|shard| shard.sample.is_some()),
            missed: shards.iter().fold(0.0, |most, shard| shard.missed.max(most)),
            shards,
        }
    }

    /// Whether only those elements count that no filter decided about.
    fn is_complete(&self) -> bool {
        self.missed > MOST_MISSED
    }

    /// Returns the distinct elements of all slices; `None` if nobody counted them.
    pub(crate) fn result(&self) -> Option<WholeResult> {
        if self.shards.is_empty() {
            return None;
        }
        let (exact, estimate) = self.new_elements(None);
        // Those that filters missed in all of their slices are not in the sample.
        let missed = if self.is_complete() { 0.0 } else { self.missed };
        let missed = |estimate: Estimate| most_missed(missed * estimate.distinct);
        Some(WholeResult {
            exact,
            estimate: estimate.and_then(Estimate::point),
            std_error: estimate.and_then(Estimate::point_error),
            lower: estimate.map(Estimate::lower),
            upper: estimate
                .and_then(|estimate| Some(estimate.upper()?.saturating_add(missed(estimate)))),
        })
    }

    /// Returns the new elements of a slice: their exact number, else the estimate and its standard
    /// error.
    pub(crate) fn best(&self, slice: i64) -> (Option<u64>, Option<f64>) {
        let (exact, estimate) = self.new_elements(Some(slice));
        let estimate = estimate.filter(|_| exact.is_none());
        let rounded = estimate.map(|estimate| estimate.distinct.round() as u64);
        (exact.or(rounded), estimate.map(Estimate::std_error))
    }

    /// Returns the new elements of a slice, or of all of them: their exact number and an estimate.
    fn new_elements(&self, slice: Option<i64>) -> (Option<u64>, Option<Estimate>) {
        let mut found = (self.has_exact.then_some(0_u64), self.has_sample.then(Estimate::default));
        for shard in &self.shards {
            if let (Some(sum), Some(exact)) = (&mut found.0, &shard.exact) {
                let new = of_slice(exact, slice).iter();
                *sum = new.fold(*sum, |sum, (_, new)| sum.saturating_add(*new));
            }
            if let (Some(sum), Some(sample)) = (&mut found.1, &shard.sample) {
                let new = of_slice(&sample.slices, slice).iter();
                let sampled =
                    new.fold(0_u64, |sum, (_, new)| sum.saturating_add(self.counted(*new)));
                *sum = sum.plus(self.estimate(sample.level, sampled));
            }
        }
        found
    }

    fn counted(&self, sampled: SampledSlice) -> u64 {
        if self.is_complete() { sampled.complete } else { sampled.all }
    }

    /// Each element that was sampled stands for 2^level: the others are geometric numbers.
    fn estimate(&self, level: u32, sampled: u64) -> Estimate {
        let level = if self.is_complete() { level.max(COMPLETE) } else { level };
        let (seen, weight) = (sampled as f64, f64::from(level).exp2());
        Estimate {
            distinct: seen * weight,
            variance: seen * ((weight - 1.0) * weight),
            basis: Basis::Stream(Seen::of_stream(sampled, weight - 1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::hashing::Digester;
    use proptest::prelude::*;

    fn columns(elements: impl IntoIterator<Item = u32>) -> ElementColumns {
        let digester = Digester::new(0);
        let mut columns = ElementColumns::default();
        for element in elements {
            let key = element.to_le_bytes();
            columns.digests.push(digester.digest(&key));
            columns.keys.push(&key);
        }
        columns
    }

    fn whole(places: usize) -> Whole {
        Whole::new(WholeSpec {
            exact_limit_bytes: Some(1 << 30),
            places: Some(places),
            firsts_only: false,
        })
    }

    fn add(whole: &mut Whole, slice: i64, elements: impl IntoIterator<Item = u32>) {
        let columns = columns(elements);
        whole.add_sample(&columns, &[], slice);
        columns.keys.iter().for_each(|key| {
            whole.add(key, slice);
        });
    }

    proptest! {
        /// Slices in any order, again, and joined from parts.
        #[test]
        fn an_element_is_new_in_its_earliest_slice(
            slices in prop::collection::vec((0_i64..20, prop::collection::vec(0_u32..300, 0..60)), 0..40),
            places in prop_oneof![Just(16_usize), Just(64), Just(1024)],
        ) {
            let mut earliest = BTreeMap::<u32, i64>::new();
            let (mut at_once, mut backwards) = (whole(places), whole(places));
            for (slice, elements) in &slices {
                add(&mut at_once, *slice, elements.iter().copied());
                for &element in elements {
                    let earliest = earliest.entry(element).or_insert(*slice);
                    *earliest = (*slice).min(*earliest);
                }
            }
            for (slice, elements) in slices.iter().chain(&slices).rev() {
                let mut part = whole(places);
                add(&mut part, *slice, elements.iter().copied());
                let WholeElements { missed, level, digests, keys } = part.into_elements();
                backwards.add_part(*slice, missed, level, &digests);
                keys.unwrap().iter().for_each(|key| { backwards.add(key, *slice); });
            }
            let tally = at_once.tally();
            prop_assert_eq!(&tally, &backwards.tally());
            let sums = WholeSums::new(vec![tally]);
            let result = sums.result().unwrap();
            prop_assert_eq!(result.exact, Some(earliest.len() as u64));
            let mut estimates = 0;
            for slice in 0..20 {
                let new = earliest.values().filter(|&&first| first == slice).count() as u64;
                let found = sums.new_elements(Some(slice));
                prop_assert_eq!(found.0, Some(new));
                estimates += found.1.unwrap().distinct as u64;
                if places == 1024 {
                    prop_assert_eq!(found.1.unwrap().distinct as u64, new);
                }
            }
            prop_assert_eq!(Some(estimates as f64), result.estimate);
        }
    }

    #[test]
    fn a_sample_that_is_full_counts_without_bias_and_its_bounds_hold() {
        const ELEMENTS: u32 = 20_000;
        let (mut held, mut errors) = (0, 0.0);
        for run in 0..200 {
            let mut one = whole(1024);
            let elements = run * ELEMENTS..(run + 1) * ELEMENTS;
            one.add_sample(&columns(elements), &[], 0);
            let result = WholeSums::new(vec![one.tally()]).result().unwrap();
            held += u32::from((result.lower..=result.upper).contains(&Some(ELEMENTS.into())));
            errors += result.estimate.unwrap() / f64::from(ELEMENTS) - 1.0;
        }
        assert!((188..=200).contains(&held), "{held} of 200");
        assert!((errors / 200.0).abs() < 0.01, "{errors}");
    }
}
