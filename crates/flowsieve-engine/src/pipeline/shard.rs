//! One partition of the elements: a counter, an exact set and tallies for each open slice.

use super::byte_map::ExactSet;
use super::shard_spec::{CombinationTally, ShardSpec, ShardTally, SliceCounts};
use super::whole::Whole;
use super::window::ShardWindow;
use crate::elements::{ElementColumns, Keys};
use crate::filters::{Counter, CounterSpec, DigestColumns, MembershipFilter, Sighting};
use crate::hashing::Digest;
use std::ops::Range;

/// Bytes of keys that wait before they are inserted into the whole, and their largest share of the
/// exact set's limit.
const FIRSTS_BYTES: usize = 256 << 10;
const FIRSTS_SHARE: u64 = 64;

/// The state of a shard; it lives in one thread.
#[derive(Debug)]
pub(crate) struct Shard {
    spec: ShardSpec,
    slices: Vec<Option<OpenSlice>>,
    window: Option<ShardWindow>,
    whole: Option<Whole>,
    sightings: Vec<Sighting>,
    /// First sightings of slices that are not yet in the whole, and the slot of each run of them.
    /// Inserted together, they share the pages of the whole's large table.
    firsts: Keys,
    runs: Vec<(usize, Range<usize>)>,
    /// The values of a combination.
    key: Vec<u8>,
}

#[derive(Debug, Default)]
struct OpenSlice {
    counter: Option<Counter>,
    exact: Option<ExactSet>,
    /// The exact set of each combination that is wanted.
    combinations: Vec<ExactSet>,
    /// An element came since the last closing.
    used: bool,
    first: u64,
    false_repeats: u64,
    /// Number of the slice.
    index: i64,
    new: u64,
    journal: Option<Box<ShardJournal>>,
}

impl OpenSlice {
    fn new(spec: &ShardSpec) -> Self {
        Self {
            counter: spec.counter.as_ref().map(CounterSpec::build),
            exact: spec.exact_limit_bytes.map(ExactSet::new),
            combinations: (spec.combinations.iter())
                .filter_map(|_| spec.exact_limit_bytes.map(ExactSet::new))
                .collect(),
            journal: spec.journal.then(Box::default),
            ..Self::default()
        }
    }

    /// Adds the values of these combinations; `key` is their buffer.
    fn add_combinations(&mut self, spec: &ShardSpec, keys: &Keys, key: &mut Vec<u8>) {
        for (set, &mask) in self.combinations.iter_mut().zip(&spec.combinations) {
            for element in keys.iter() {
                key.clear();
                spec.kind.part(element, mask, key);
                set.insert(key);
            }
        }
    }

    /// Returns what was counted; `first` is what the counter called new, if it says so.
    fn counts(&self, spec: &ShardSpec, first: Option<u64>) -> SliceCounts {
        let counter = self.counter.as_ref();
        let exact = self.exact.as_ref().and_then(ExactSet::distinct);
        let combinations = counter.iter().flat_map(|counter| {
            let wanted = spec.combinations.iter().enumerate();
            wanted.map(|(index, &mask)| CombinationTally {
                count: counter.combination(mask),
                exact: self.combinations.get(index).and_then(ExactSet::distinct),
            })
        });
        let estimate = counter.and_then(Counter::distinct);
        SliceCounts {
            first,
            estimate,
            combinations: combinations.collect(),
            exact,
            exact_over_limit: self.exact.is_some() && exact.is_none(),
            false_repeats: self.false_repeats,
            saturated: (counter.zip(spec.counter.as_ref()))
                .is_some_and(|(counter, spec)| counter.is_saturated(spec, estimate, self.first)),
        }
    }

    /// Removes everything and keeps the memory.
    fn clear(&mut self) {
        self.counter.iter_mut().for_each(Counter::clear);
        self.exact.iter_mut().for_each(ExactSet::clear);
        self.combinations.iter_mut().for_each(ExactSet::clear);
        self.used = false;
        self.first = 0;
        self.false_repeats = 0;
        self.new = 0;
    }
}

impl Shard {
    pub(crate) fn new(spec: ShardSpec) -> Self {
        Self {
            slices: Vec::new(),
            window: ShardWindow::new(&spec),
            whole: spec.whole.map(Whole::new),
            spec,
            sightings: Vec::new(),
            firsts: Keys::default(),
            runs: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Begins the only slice with a filter of an earlier count.
    pub(crate) fn begin_with(&mut self, filter: Box<dyn MembershipFilter>) {
        let mut slice = OpenSlice::new(&self.spec);
        slice.counter = Some(Counter::Filter(filter));
        slice.used = true;
        self.slices = vec![Some(slice)];
    }

    /// Continues with a whole that was counted before.
    pub(crate) fn go_on_with(&mut self, whole: Option<Whole>) {
        self.whole = whole;
    }

    /// Returns the whole that was counted.
    pub(crate) fn take_whole(&mut self) -> Option<Whole> {
        self.pass_on();
        self.whole.take()
    }

    /// Adds elements of the slice with this number, in this slot of the table of open slices.
    pub(crate) fn add(&mut self, slot: usize, index: i64, elements: &ElementColumns) {
        let spec = &self.spec;
        if self.slices.is_empty() {
            // If they are large, all at once, while it is known that the system gives their memory.
            // Small ones are made when they are needed: a short capture has few slices, and to fill
            // memory for the others takes longer than its count.
            let slices = (0..spec.open_slices).map(|_| spec.at_once.then(|| OpenSlice::new(spec)));
            self.slices = slices.collect();
        }
        let slice = self.slices[slot].get_or_insert_with(|| OpenSlice::new(spec));
        slice.used = true;
        slice.index = index;
        self.sightings.clear();
        if let Some(counter) = &mut slice.counter {
            let columns =
                DigestColumns { whole: &elements.digests, attributes: &elements.attributes };
            counter.insert_batch(columns, &mut self.sightings);
            slice.first +=
                self.sightings.iter().filter(|&&sighting| sighting == Sighting::First).count()
                    as u64;
            if let Some(whole) = &mut self.whole {
                whole.add_sample(elements, &self.sightings, index);
            }
        }
        let mut journal = slice.journal.as_mut();
        if let Some(exact) = &mut slice.exact {
            let mut sightings = self.sightings.iter();
            let before = self.firsts.len();
            for (number, key) in elements.keys.iter().enumerate() {
                let new = exact.insert(key);
                if new && self.whole.is_some() {
                    self.firsts.push_from(&elements.keys, number);
                }
                if new && let Some(journal) = &mut journal {
                    journal.note(elements, number, spec.kind.arity());
                }
                if let Some(&sighting) = sightings.next() {
                    slice.false_repeats += u64::from(new && sighting == Sighting::Repeat);
                }
            }
            if self.firsts.len() > before {
                self.runs.push((slot, before..self.firsts.len()));
            }
            if let Some(whole) = self.whole.as_mut().filter(|_| exact.distinct().is_none()) {
                whole.lose();
            }
        }
        // Until the exact set is full, its first sightings are enough.
        let is_told = slice.exact.as_ref().is_some_and(|exact| exact.distinct().is_some());
        if let Some(journal) = journal.filter(|_| !is_told) {
            journal.add(elements, &self.sightings, spec.kind.arity());
        }
        slice.add_combinations(spec, &elements.keys, &mut self.key);
        let room = self.spec.exact_limit_bytes.map_or(0, |limit| limit / FIRSTS_SHARE);
        if self.firsts.bytes() >= FIRSTS_BYTES.min(room as usize) {
            self.pass_on();
        }
    }

    /// Inserts the waiting first sightings of slices into the whole.
    fn pass_on(&mut self) {
        for (slot, run) in self.runs.drain(..) {
            if let (Some(whole), Some(slice)) = (&mut self.whole, &mut self.slices[slot]) {
                let new = run.filter(|&first| whole.add(self.firsts.get(first), slice.index));
                slice.new += new.count() as u64;
            }
        }
        self.firsts.clear();
    }

    /// Returns the answer for the slice in this slot, which has this number, or for the window that
    /// ends with it. The slot is empty afterwards and keeps its memory.
    pub(crate) fn close(&mut self, slot: usize, index: i64) -> ShardTally {
        self.pass_on();
        if let Some(window) = &mut self.window {
            let slice = self.slices.get_mut(slot).and_then(Option::as_mut);
            let Some(slice) = slice.filter(|slice| slice.used) else { return window.pass(index) };
            let tally = window.take(index, slice.exact.as_ref(), slice.counter.as_mut());
            slice.clear();
            return tally;
        }
        // Where no element came nothing has to be cleared: short slices would cost more than their
        // packets otherwise.
        let empty = self.spec.empty_tally();
        let slice = self.slices.get_mut(slot).and_then(Option::as_mut);
        let Some(slice) = slice.filter(|slice| slice.used) else {
            let kept = self.spec.counter.as_ref().filter(|_| self.spec.keep);
            return ShardTally {
                filter: kept.and_then(|spec| spec.build().into_filter()),
                journal: self.spec.journal.then(ElementColumns::default),
                ..empty
            };
        };
        slice.used = false;
        let (new, slices) = (slice.new, &self.slices);
        let is_open = |index| slices.iter().flatten().any(|it| it.used && it.index == index);
        let whole = self.whole.as_mut();
        let (new, moved) = whole.map(|whole| whole.close(index, new, is_open)).unwrap_or_default();
        let slice = self.slices[slot].as_mut().expect("it is there");
        let counts = slice.counts(&self.spec, empty.counts.first.map(|_| slice.first));
        let journal = slice.journal.as_mut().and_then(|journal| journal.take());
        if let Some(whole) = &mut self.whole {
            whole.note_missed(counts.estimate, slice.first);
        }
        let mut tally = ShardTally { counts, new, moved, journal, filter: None };
        if self.spec.keep {
            tally.filter = slice.counter.take().and_then(Counter::into_filter);
            self.slices[slot] = None;
            return tally;
        }
        slice.clear();
        tally
    }

    /// Discards the elements of the slice in this slot.
    pub(super) fn discard(&mut self, slot: usize) {
        self.pass_on();
        if let Some(slice) = self.slices.get_mut(slot).and_then(Option::as_mut) {
            slice.clear();
        }
    }
}

/// The elements that count a slice again with the same result: its first sightings while the exact
/// set knows them, otherwise all elements without most repeats.
#[derive(Debug)]
struct ShardJournal {
    /// `None` beyond `MOST_BYTES`.
    elements: Option<ElementColumns>,
    /// Recent elements, by some bits of their digests; used without an exact set. Other elements are
    /// noted even if the filter calls them repeats, because they may be new.
    lately: Vec<Digest>,
}

/// Bytes of elements that a shard notes of one slice.
const MOST_BYTES: usize = 16 << 20;

/// Binary logarithm of the elements that are remembered.
const LATELY_BITS: u32 = 12;

impl Default for ShardJournal {
    fn default() -> Self {
        Self { elements: Some(ElementColumns::default()), lately: Vec::new() }
    }
}

impl ShardJournal {
    /// Notes elements; `sightings` is what a filter said of each, if there is one.
    fn add(&mut self, elements: &ElementColumns, sightings: &[Sighting], arity: usize) {
        self.lately.resize(1 << LATELY_BITS, Digest::from_value(0));
        for (number, &digest) in elements.digests.iter().enumerate() {
            let place = digest.value() & ((1 << LATELY_BITS) - 1);
            let before = std::mem::replace(&mut self.lately[place as usize], digest);
            if before != digest || sightings.get(number) == Some(&Sighting::First) {
                self.note(elements, number, arity);
            }
        }
    }

    fn note(&mut self, elements: &ElementColumns, number: usize, arity: usize) {
        if let Some(noted) = &mut self.elements {
            noted.push_from(elements, number, arity);
        }
        self.elements.take_if(|noted| noted.bytes() > MOST_BYTES);
    }

    fn take(&mut self) -> Option<ElementColumns> {
        self.lately.clear();
        self.elements.replace(ElementColumns::default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::whole::WholeSpec;
    use super::*;
    use crate::elements::ElementKind;
    use crate::hashing::Digester;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap, HashSet};

    const SLOTS: usize = 3;

    /// The same with sets of the standard library, where the whole gets each element at once.
    #[derive(Default)]
    struct Twin {
        open: [Option<(i64, HashSet<u32>, i64)>; SLOTS],
        earliest: HashMap<u32, i64>,
        moved: BTreeMap<i64, u64>,
    }

    impl Twin {
        fn add(&mut self, slot: usize, index: i64, elements: &[u32]) {
            let (_, set, new) = self.open[slot].get_or_insert_with(|| (index, HashSet::new(), 0));
            for &element in elements {
                let before = self.earliest.get(&element).copied();
                if set.insert(element) && before.is_none_or(|before| index < before) {
                    self.earliest.insert(element, index);
                    *new += 1;
                    if let Some(before) = before {
                        *self.moved.entry(before).or_default() += 1;
                    }
                }
            }
        }

        fn close(&mut self, slot: usize) -> (u64, i64, Vec<(i64, u64)>) {
            let (index, set, new) = self.open[slot].take().unwrap();
            let new = new - self.moved.remove(&index).unwrap_or(0) as i64;
            let is_open = |index| self.open.iter().flatten().any(|it| it.0 == index);
            let moved = std::mem::take(&mut self.moved).into_iter();
            let (kept, closed) = moved.partition(|(index, _)| is_open(*index));
            self.moved = kept;
            (set.len() as u64, new, Vec::from_iter::<BTreeMap<_, _>>(closed))
        }
    }

    proptest! {
        /// Slices that are filled in turn, closed in any order and opened again, while the whole is
        /// given elements by batches or only at a closing.
        #[test]
        fn what_is_new_in_a_slice_does_not_depend_on_when_the_whole_is_given_it(
            steps in prop::collection::vec(
                (0..SLOTS, 0_i64..12, prop::collection::vec(0_u32..60, 0..40), prop::bool::weighted(0.2)),
                1..60,
            ),
            limit in prop_oneof![Just(1_u64 << 14), Just(1 << 30)],
        ) {
            let whole = WholeSpec { exact_limit_bytes: Some(1 << 30), places: None, firsts_only: false };
            let mut shard = Shard::new(ShardSpec {
                counter: None,
                kind: ElementKind::HOST_PAIR,
                combinations: Vec::new(),
                exact_limit_bytes: Some(limit),
                panes: None,
                window_limit_bytes: None,
                open_slices: SLOTS,
                at_once: false,
                keep: false,
                journal: false,
                whole: Some(whole),
            });
            let (mut twin, digester) = (Twin::default(), Digester::new(0));
            for (slot, index, elements, closes) in steps {
                // A slice is open in one slot at most.
                let taken = |it: &&Option<(i64, _, _)>| it.as_ref().is_some_and(|it| it.0 == index);
                let index = match &twin.open[slot] {
                    Some(open) => open.0,
                    None if twin.open.iter().any(|it| taken(&it)) => continue,
                    None => index,
                };
                let mut columns = ElementColumns::default();
                for element in &elements {
                    columns.digests.push(digester.digest(&element.to_le_bytes()));
                    columns.keys.push(&element.to_le_bytes());
                }
                shard.add(slot, index, &columns);
                twin.add(slot, index, &elements);
                if closes {
                    let tally = shard.close(slot, index);
                    let (exact, new, moved) = twin.close(slot);
                    prop_assert_eq!((tally.counts.exact, tally.new, tally.moved), (Some(exact), Some(new), moved));
                }
            }
            let whole = shard.take_whole().unwrap().into_elements().keys.unwrap();
            let mut all: Vec<_> = twin.earliest.keys().map(|key| key.to_le_bytes().into()).collect();
            all.sort_unstable();
            prop_assert_eq!(whole, all);
        }
    }

    /// Returns the elements that a shard notes of a slice in which this many pairs come this often.
    fn noted(exact_limit_bytes: Option<u64>, pairs: u32, times: u32) -> Option<usize> {
        let mut shard = Shard::new(ShardSpec {
            counter: None,
            kind: ElementKind::HOST_PAIR,
            combinations: Vec::new(),
            exact_limit_bytes,
            panes: None,
            window_limit_bytes: None,
            open_slices: 1,
            at_once: false,
            keep: false,
            journal: true,
            whole: None,
        });
        let digester = Digester::new(0);
        let mut elements = ElementColumns::default();
        for pair in 0..pairs {
            elements.digests.push(digester.digest(&pair.to_le_bytes()));
            elements.keys.push(&pair.to_le_bytes());
        }
        (0..times).for_each(|_| shard.add(0, 0, &elements));
        shard.close(0, 0).journal.map(|journal| journal.keys.len())
    }

    #[test]
    fn what_counts_a_slice_again_takes_bounded_memory() {
        assert_eq!(noted(Some(1 << 30), 20_000, 100), Some(20_000), "no repeat is noted");
        assert!(noted(None, 20_000, 10).is_some_and(|noted| (20_000..=200_000).contains(&noted)));
        assert_eq!(noted(None, 20_000, 100), None);
        assert_eq!(noted(Some(1 << 30), 2_000_000, 1), None);
        // With a full exact set, repeats are noted.
        assert!(noted(Some(1 << 16), 20_000, 10).is_some_and(|noted| noted >= 20_000));
    }
}
