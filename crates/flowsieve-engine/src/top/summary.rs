//! The keys with the largest sums of weights, in bounded memory.
//!
//! A table of keys, exact until it is full. Then the quarter of the keys with the fewest first
//! sightings is evicted, but none of the newest eighth, which had no time to be seen twice. The
//! weights of evicted keys go to a row of cells, each key's to the cell that its digest chooses, so
//! that a key that comes back has an unbiased estimate of what it lost: of `n` cells with `L` in
//! all, a cell with `v` holds (v n - L) / (n - 1) of its own in expectation. A flood of keys that
//! are seen once therefore only replaces itself.
//!
//! The lower bound of a key that is held rests on its first sightings, which were all different;
//! the upper bound adds all of its cell to what its weights say. A key that is not held has at most
//! what is in its cell.
//!
//! If keys are ranked by packets or bytes, the summary keeps those with the most: each packet admits its
//! key. When the summary is full, it looks at the half of the keys with the smallest upper bounds and
//! evicts those with the smallest sums since they were admitted. It adds these sums to a second row of
//! cells. A key that comes back had at most what is in its cell, and at most the floor: the largest upper
//! bound of any evicted key. The floor is at most the sum over all packets divided by half of the
//! capacity (plus rounding), because each key of the other half received as much as the floor rises. So
//! every key with more than that is held, whatever the order of packets.
//!
//! Keys stay in the order in which they came. Nothing is drawn at random, and sums are whole
//! numbers.
//!
//! Related: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in
//! data streams", ICDT 2005 (Space-Saving), which keeps the total and so lets floods raise its
//! minimum; Homem, Carvalho, "Finding top-k elements in data streams", Information Sciences 180,
//! 2010, which adds cells to that; Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", ICALP 2002
//! (cells that several keys share).

use super::extract::Record;
use super::plan::{LEAST_SUMMARY_BYTES, RankBy};
use super::results::Spread;
use crate::elements::{ElementColumns, LONGEST_KEY};
use crate::filters::{Basis, Estimate, Seen, Weight};
use crate::hashing::{Digest, mix, reduce};
use crate::place_index::{Index, NOWHERE};
use ahash::RandomState;
use std::hint::black_box;

/// Stream of [`mix`] that chooses a key's cell.
const CELL: u64 = 0x746f_7063_656c_6c73;

/// Bits behind the point of a cell.
const CELL_POINT: u32 = 8;

/// A share of the keys that is evicted at a time, and one of new keys that is immune: one in this
/// many.
const EVICTED: usize = 4;
const IMMUNE: usize = 8;

/// Keys that are looked up together.
const TOGETHER: usize = 64;

/// Bytes for keys beyond the usual ones, which even the longest key fits into together with them.
/// When keys are evicted depends on it, so it is part of the answer.
const SPARE_KEY_BYTES: usize = 293;

/// Most keys.
const MOST_ENTRIES: usize = 1 << 23;

/// A key that is held.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry {
    digest: Digest,
    /// Sum of the weights of its first sightings (c), and of w (w - 1).
    weight: Weight,
    variance: Weight,
    packets: u64,
    bytes: u64,
    /// Its own share of its cell when it came (l), and the variance of that (s²).
    lost: f32,
    lost_variance: f32,
    /// All that was in its cell (v).
    cell: u32,
    /// Upper bound of its packets or bytes before it was admitted, if keys are kept by them.
    before: f32,
    key_at: u32,
    key_length: u16,
    /// It was here before anything was evicted.
    from_start: bool,
}

impl Entry {
    /// Returns its packets or bytes since it was admitted.
    fn since(&self, by: RankBy) -> u64 {
        by.of(0, self.packets, self.bytes)
    }

    /// Returns the upper bound of its packets or bytes.
    fn most(&self, by: RankBy) -> u64 {
        self.since(by).saturating_add(self.before as u64)
    }
}

/// The summary of one slice.
#[derive(Debug)]
pub(super) struct Summary {
    /// The number that keys are kept by.
    by: RankBy,
    entries: Vec<Entry>,
    /// First sightings of each (f): by themselves, since they decide who is evicted.
    firsts_of: Vec<u32>,
    /// The keys, in the order of the entries, with gaps where others were.
    keys: Vec<u8>,
    /// Where keys are among the entries. It is filled anew whenever keys are evicted.
    index: Index,
    /// Digests are multiplied with this random number, so that an attacker cannot choose keys that
    /// collide; nothing that is reported depends on it.
    factor: u64,
    most_entries: usize,
    most_key_bytes: usize,
    /// Where evicted weights went, in units of 2^-8.
    row: Vec<u32>,
    /// Cells with the packets or bytes of evicted keys, if keys are kept by them.
    sums: Vec<u32>,
    state: State,
    /// Scratch memory for finding the keys that leave.
    scratch: Vec<u32>,
}

/// The numbers of a summary.
#[derive(Debug, Default)]
struct State {
    /// Bytes of the gaps between keys.
    left_key_bytes: usize,
    /// Sum of the row of evicted weights (L), and the sum of the squares of its cells.
    lost: u64,
    squares: u128,
    /// Losses of new keys, which follow from them.
    losses: Losses,
    evicted: u64,
    /// Upper bound of the packets or bytes of a key that is not held.
    floor: f32,
    /// All weights, and their variance.
    total: Weight,
    variance: Weight,
    firsts: u64,
}

impl Summary {
    /// An empty summary that takes at most this many bytes, for keys of about `key_bytes` each, and keeps
    /// those with the largest of these numbers.
    pub(super) fn new(bytes: u64, key_bytes: usize, by: RankBy) -> Self {
        let bytes = bytes.clamp(LEAST_SUMMARY_BYTES, 1 << 40) as usize;
        let cells = bytes / 8 / size_of::<u32>();
        let sums = if by == RankBy::Distinct { 0 } else { cells };
        let rest = bytes - (cells + sums) * size_of::<u32>();
        // Entry, first sightings, key, number in the scratch.
        let each = size_of::<Entry>() + key_bytes + 2 * size_of::<u32>();
        let index_of = |entries: usize| Index::entries(entries) * size_of::<u32>();
        let mut most_entries = rest / each;
        while most_entries > 8 && most_entries * each + index_of(most_entries) > rest {
            most_entries -= most_entries / 64 + 1;
        }
        let most_entries = most_entries.clamp(8, MOST_ENTRIES);
        Self {
            by,
            entries: Vec::with_capacity(most_entries),
            firsts_of: Vec::with_capacity(most_entries),
            keys: Vec::with_capacity(most_entries * key_bytes + SPARE_KEY_BYTES),
            index: Index::with_room(most_entries),
            factor: RandomState::new().hash_one(most_entries) | 1,
            most_entries,
            most_key_bytes: most_entries * key_bytes + SPARE_KEY_BYTES,
            row: vec![0; cells.max(2)],
            sums: vec![0; sums],
            state: State::default(),
            scratch: Vec::with_capacity(most_entries),
        }
    }

    /// Adds packets of keys, with the weights of their elements.
    ///
    /// Repeats only count for packets and bytes of keys that are held. So once keys are evicted,
    /// those of a batch come after its first sightings, which alone decide who is held: what is
    /// likely to be there is not asked together with what is not. If keys are kept by packets or
    /// bytes, all packets decide, in their order.
    pub(super) fn add_all(&mut self, elements: &ElementColumns, weights: &[Weight]) {
        for start in (0..elements.len()).step_by(TOGETHER) {
            let end = elements.len().min(start + TOGETHER);
            let (digests, weights) = (&elements.attributes[start..end], &weights[start..end]);
            let guesses = self.touch(digests);
            let mut order = [0; TOGETHER];
            let firsts = if self.state.evicted == 0 || self.by != RankBy::Distinct {
                order = std::array::from_fn(|at| at as u8);
                digests.len()
            } else {
                firsts_first(weights, &mut order)
            };
            for &at in &order[..firsts] {
                let at = usize::from(at);
                let record = elements.keys.get(start + at);
                self.add(guesses[at], digests[at], record, weights[at]);
            }
            for &at in &order[firsts..digests.len()] {
                let at = usize::from(at);
                let bytes = Record::bytes_of(elements.keys.get(start + at));
                self.add_repeat(digests[at], bytes);
            }
        }
    }

    /// Adds a packet of a key that is no first sighting. Nothing branches on whether the key is
    /// held, unless its place is an odd one.
    #[inline]
    fn add_repeat(&mut self, digest: Digest, bytes: u32) {
        let guess = self.index.guess(self.hash_of(digest));
        let mut number = if guess == NOWHERE { 0 } else { guess as usize };
        let Some(entry) = self.entries.get(number) else { return };
        let is_elsewhere = u8::from(guess != NOWHERE) & u8::from(entry.digest != digest);
        if is_elsewhere != 0 {
            number = self.find(digest).unwrap_or(0);
        }
        let entry = &mut self.entries[number];
        let is_there = u64::from(entry.digest == digest);
        entry.packets += is_there;
        entry.bytes += u64::from(bytes) * is_there;
    }

    /// Guesses where these keys are. All are read together, so that their cache misses overlap.
    #[inline]
    fn touch(&self, digests: &[Digest]) -> [u32; TOGETHER] {
        let mut numbers = [0; TOGETHER];
        let Some(last) = self.entries.len().checked_sub(1) else { return numbers };
        for (number, &digest) in numbers.iter_mut().zip(digests) {
            *number = self.index.guess(self.hash_of(digest)).min(last as u32);
        }
        let touched = numbers[..digests.len()]
            .iter()
            .fold(0, |touched, &number| touched ^ self.entries[number as usize].digest.value());
        black_box(touched);
        numbers
    }

    /// Adds a packet of a key, which is number `guess` or another one; `weight` is that of its
    /// element.
    #[inline]
    fn add(&mut self, guess: u32, digest: Digest, record: &[u8], weight: Weight) {
        let found = self.find_from(guess, digest);
        if weight.is_first() {
            self.state.total = self.state.total.plus(weight);
            self.state.variance = self.state.variance.plus(weight.variance());
            self.state.firsts += 1;
        }
        let record = Record::read(record);
        let number = match found {
            Some(number) => number,
            // Before anything is evicted all keys are held, whatever the filter says, so that their
            // packets are known.
            None if weight.is_first()
                || (self.state.evicted == 0 && self.has_room(record.key))
                || self.by != RankBy::Distinct =>
            {
                self.append(digest, record.key)
            }
            None => return,
        };
        let (entry, firsts) = (&mut self.entries[number], &mut self.firsts_of[number]);
        entry.packets += 1;
        entry.bytes += u64::from(record.bytes);
        // Nothing is added for a repeat.
        entry.weight = entry.weight.plus(weight);
        *firsts = firsts.saturating_add(u32::from(weight.is_first()));
        if weight > Weight::ONE {
            entry.variance = entry.variance.plus(weight.variance());
        }
    }

    /// Adds packets of a key that are no first sightings.
    pub(super) fn add_repeats(&mut self, digest: Digest, packets: u64, bytes: u64) {
        if let Some(number) = self.find(digest) {
            let entry = &mut self.entries[number];
            entry.packets = entry.packets.saturating_add(packets);
            entry.bytes = entry.bytes.saturating_add(bytes);
        }
    }

    #[inline]
    fn find_from(&self, guess: u32, digest: Digest) -> Option<usize> {
        let entry = self.entries.get(guess as usize);
        match entry {
            Some(entry) if entry.digest == digest => Some(guess as usize),
            _ => self.find(digest),
        }
    }

    #[inline]
    fn find(&self, digest: Digest) -> Option<usize> {
        let is = |number: u32| self.entries[number as usize].digest == digest;
        self.index.find(self.hash_of(digest), is).map(|number| number as usize)
    }

    #[inline]
    const fn hash_of(&self, digest: Digest) -> u32 {
        (digest.value().wrapping_mul(self.factor) >> u32::BITS) as u32
    }

    fn has_room(&self, key: &[u8]) -> bool {
        self.entries.len() < self.most_entries && self.keys.len() + key.len() <= self.most_key_bytes
    }

    /// Holds one key more, which begins with nothing.
    #[inline(never)]
    fn append(&mut self, digest: Digest, key: &[u8]) -> usize {
        let key = &key[..key.len().min(LONGEST_KEY)];
        while !self.has_room(key) {
            if self.entries.len() < self.most_entries && self.state.left_key_bytes > 0 {
                self.close_gaps();
            } else {
                self.evict();
            }
        }
        let cell = self.row[cell_of(digest, self.row.len())];
        // Without a branch, which would be unpredictable.
        let is_there = f64::from(u8::from(cell != 0));
        let lost = f64::from(cell) * self.state.losses.of_cell - self.state.losses.of_others;
        let number = self.entries.len();
        self.entries.push(Entry {
            digest,
            weight: Weight::NONE,
            variance: Weight::NONE,
            packets: 0,
            bytes: 0,
            lost: (lost * is_there) as f32,
            lost_variance: (self.state.losses.variance * is_there) as f32,
            cell,
            before: if self.by == RankBy::Distinct { 0.0 } else { self.most_before(digest) },
            key_at: self.keys.len() as u32,
            key_length: key.len() as u16,
            from_start: self.state.evicted == 0,
        });
        self.keys.extend_from_slice(key);
        self.firsts_of.push(0);
        self.index.insert(self.hash_of(digest), number as u32);
        number
    }

    /// Returns an upper bound of the packets or bytes of a key that is not held.
    #[inline(never)]
    fn most_before(&self, digest: Digest) -> f32 {
        let cell = self.sums.get(cell_of(digest, self.sums.len()));
        // A cell that overflowed is no upper bound.
        let most = cell.filter(|&&cell| cell < u32::MAX).map(|&cell| rounded_up(cell.into()));
        most.map_or(self.state.floor, |most| most.min(self.state.floor))
    }

    /// Evicts a quarter of the keys.
    #[inline(never)]
    fn evict(&mut self) {
        let length = self.entries.len();
        let evicted = match self.by {
            RankBy::Distinct => self.fewest_firsts(),
            RankBy::Packets | RankBy::Bytes => self.least_sums(),
        };
        for &number in &evicted {
            let entry = self.entries[number as usize];
            self.state.left_key_bytes += usize::from(entry.key_length);
            self.lose(entry.digest, entry.weight);
        }
        let mut kept = evicted.first().map_or(length, |&number| number as usize);
        for (at, &number) in evicted.iter().enumerate() {
            let next = evicted.get(at + 1).map_or(length, |&next| next as usize);
            let staying = number as usize + 1..next;
            let count = staying.len();
            self.entries.copy_within(staying, kept);
            kept += count;
        }
        self.scratch = evicted;
        self.state.evicted += (length - kept) as u64;
        self.entries.truncate(kept);
        self.firsts_of.truncate(kept);
        self.index.clear();
        for number in 0..kept {
            let hash = self.hash_of(self.entries[number].digest);
            self.index.insert(hash, number as u32);
        }
        self.state.losses = Losses::of(self.row.len(), self.state.lost, self.state.squares);
    }

    /// Removes from `firsts_of` the quarter with the fewest first sightings, the oldest first, but none of
    /// the newest eighth, and returns their numbers.
    fn fewest_firsts(&mut self) -> Vec<u32> {
        let length = self.entries.len();
        let share = (length / EVICTED).max(1);
        let old = (length - length / IMMUNE).max(1).min(length);
        let (least, mut among) = self.evicted_below(old, share.min(old));
        let mut evicted = std::mem::take(&mut self.scratch);
        evicted.clear();
        evicted.resize(length, 0);
        // Who leaves is nearly chance, so nothing branches on it.
        let mut count = 0;
        for number in 0..length {
            let firsts = self.firsts_of[number];
            let is_old = usize::from(number < old);
            let is_among = is_old & usize::from(firsts == least) & usize::from(among > 0);
            among -= is_among;
            evicted[count] = number as u32;
            self.firsts_of[number - count] = firsts;
            count += is_old & usize::from(firsts < least) | is_among;
        }
        evicted.truncate(count);
        evicted
    }

    /// Removes a quarter of the keys from `firsts_of`, and returns their numbers: those with the smallest
    /// sums since they were admitted, among the half with the smallest upper bounds. Raises the floor to
    /// the largest upper bound of them.
    fn least_sums(&mut self) -> Vec<u32> {
        let length = self.entries.len();
        let entry = |number: u32| &self.entries[number as usize];
        let mut evicted = std::mem::take(&mut self.scratch);
        evicted.clear();
        evicted.extend(0..length as u32);
        let half = (length / 2).max(1);
        evicted.select_nth_unstable_by_key(half - 1, |&it| (entry(it).most(self.by), it));
        evicted.truncate(half);
        let share = (length / EVICTED).max(1);
        evicted.select_nth_unstable_by_key(share - 1, |&it| (entry(it).since(self.by), it));
        evicted.truncate(share);
        evicted.sort_unstable();
        for entry in evicted.iter().map(|&number| &self.entries[number as usize]) {
            let place = cell_of(entry.digest, self.sums.len());
            let sum = u32::try_from(entry.since(self.by)).unwrap_or(u32::MAX);
            self.sums[place] = self.sums[place].saturating_add(sum);
            self.state.floor = self.state.floor.max(rounded_up(entry.most(self.by)));
        }
        let (mut leaving, mut numbers) = (evicted.iter().peekable(), 0..);
        self.firsts_of
            .retain(|_| numbers.next().is_none_or(|it| leaving.next_if_eq(&&it).is_none()));
        evicted
    }

    /// Moves keys to where others were, which are evicted.
    fn close_gaps(&mut self) {
        let mut end = 0;
        // Keys that stay, one after the other, and have not been moved yet.
        let mut staying = 0..0;
        for entry in &mut self.entries {
            let start = entry.key_at as usize;
            if start != staying.end {
                let length = staying.len();
                self.keys.copy_within(staying, end);
                end += length;
                staying = start..start;
            }
            entry.key_at -= (staying.start - end) as u32;
            staying.end = start + usize::from(entry.key_length);
        }
        let length = staying.len();
        self.keys.copy_within(staying, end);
        self.keys.truncate(end + length);
        self.state.left_key_bytes = 0;
    }

    /// A number of first sightings, below which all of the first `old` entries are evicted, and how
    /// many of those with as many, so that they are `share` together.
    fn evicted_below(&mut self, old: usize, share: usize) -> (u32, usize) {
        let old = &self.firsts_of[..old];
        let mut below = 0;
        // Nearly always few first sightings decide.
        for firsts in 0..4 {
            let count: u32 = old.iter().map(|&other| u32::from(other == firsts)).sum();
            let count = count as usize;
            if below + count >= share {
                return (firsts, share - below);
            }
            below += count;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(old);
        let (fewer, &mut least, _) = self.scratch.select_nth_unstable(share - 1);
        let below = fewer.iter().filter(|&&firsts| firsts < least).count();
        (least, share - below)
    }

    #[inline]
    fn lose(&mut self, digest: Digest, weight: Weight) {
        let shift = Weight::ONE.units().trailing_zeros() - CELL_POINT;
        let units = weight.units().saturating_add(1 << (shift - 1)) >> shift;
        let place = cell_of(digest, self.row.len());
        let cell = &mut self.row[place];
        let before = u128::from(*cell);
        *cell = u32::try_from(u64::from(*cell).saturating_add(units)).unwrap_or(u32::MAX);
        let after = u128::from(*cell);
        self.state.lost = self.state.lost.saturating_add((after - before) as u64);
        self.state.squares += after * after - before * before;
    }

    /// Whether a key was evicted.
    pub(super) const fn has_evicted(&self) -> bool {
        self.state.evicted > 0
    }

    /// Keys that are held.
    pub(super) fn held(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns an upper bound for keys that are not held: of their packets or bytes, or of their distinct
    /// others that the filter noticed.
    pub(super) fn most_unheld(&self) -> u64 {
        if self.by != RankBy::Distinct {
            return self.state.floor as u64;
        }
        let most = self.row.iter().copied().max().unwrap_or(0);
        u64::from(most.div_ceil(1 << CELL_POINT))
    }

    /// Distinct elements of all keys, of which `seen_share` of the new ones is seen now.
    pub(super) fn total(&self, seen_share: f64) -> Estimate {
        estimate(self.state.total, self.state.variance, self.state.firsts, seen_share)
    }

    /// Returns the `most` largest of the held keys that `listed` accepts, ordered by this number, then
    /// by key.
    pub(super) fn largest(
        &mut self,
        (by, most): (RankBy, usize),
        seen_share: f64,
        listed: impl Fn(&Spread) -> bool,
    ) -> Vec<Spread> {
        let mut order = std::mem::take(&mut self.scratch);
        order.clear();
        order.extend(
            (0..self.entries.len() as u32)
                .filter(|&number| listed(&self.numbers(number as usize, seen_share))),
        );
        let ranked = |&number: &u32| {
            let entry = &self.entries[number as usize];
            (self.numbers(number as usize, seen_share).ranked(by), key_of(&self.keys, entry))
        };
        let compare = |one: &u32, other: &u32| {
            let (one, other) = (ranked(one), ranked(other));
            other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1))
        };
        if most > 0 && order.len() > most {
            order.select_nth_unstable_by(most - 1, compare);
        }
        order.truncate(most);
        order.sort_unstable_by(compare);
        let spreads = order.iter().map(|&number| self.spread(number as usize, seen_share));
        let spreads = spreads.collect();
        order.clear();
        self.scratch = order;
        spreads
    }

    /// Returns the numbers of a key, if it is held.
    pub(super) fn of_key(&self, digest: Digest, seen_share: f64) -> Option<Spread> {
        let number = self.find(digest)?;
        Some(self.spread(number, seen_share))
    }

    fn spread(&self, number: usize, seen_share: f64) -> Spread {
        let key = key_of(&self.keys, &self.entries[number]).to_vec();
        Spread { key, ..self.numbers(number, seen_share) }
    }

    /// Returns the numbers of a key, without the key.
    fn numbers(&self, number: usize, seen_share: f64) -> Spread {
        let (entry, firsts) = (&self.entries[number], self.firsts_of[number]);
        let watched = estimate(entry.weight, entry.variance, firsts.into(), seen_share);
        let cell = entry.cell.div_ceil(1 << CELL_POINT);
        let kept_by = (self.by != RankBy::Distinct).then_some(self.by);
        // The packet that admitted it has one distinct other at least, which the filter may know.
        let firsts = if kept_by.is_some() { firsts.max(1) } else { firsts };
        let lower = watched.lower().max(firsts.into());
        let upper = watched.upper().unwrap_or(u64::MAX).saturating_add(cell.into());
        Spread {
            key: Vec::new(),
            // The loss is an estimate: it makes the count no lower than the first sightings.
            estimate: (watched.distinct + f64::from(entry.lost)).max(firsts.into()),
            std_error: (watched.variance + f64::from(entry.lost_variance)).sqrt(),
            weight: watched.distinct,
            firsts: firsts.into(),
            lower,
            upper: upper.max(lower),
            packets: entry.packets,
            bytes: entry.bytes,
            at_most: kept_by.map(|by| entry.most(by)),
            held_since_start: entry.from_start,
        }
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.firsts_of.clear();
        self.keys.clear();
        self.index.clear();
        if self.state.evicted > 0 {
            self.row.fill(0);
            self.sums.fill(0);
        }
        self.state = State::default();
    }

    /// Bytes that its parts take.
    #[cfg(test)]
    fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.firsts_of.capacity() * size_of::<u32>()
            + self.keys.capacity()
            + Index::entries(self.most_entries) * size_of::<u32>()
            + (self.row.capacity() + self.sums.capacity()) * size_of::<u32>()
            + self.scratch.capacity() * size_of::<u32>()
    }
}

/// The places of first sightings, and then those of the others; how many first sightings there are.
fn firsts_first(weights: &[Weight], order: &mut [u8; TOGETHER]) -> usize {
    let mut repeats = [0; TOGETHER];
    let (mut firsts, mut others) = (0, 0);
    for (at, weight) in (0..).zip(weights) {
        order[firsts % TOGETHER] = at;
        repeats[others % TOGETHER] = at;
        firsts += usize::from(weight.is_first());
        others += usize::from(!weight.is_first());
    }
    order[firsts..firsts + others].copy_from_slice(&repeats[..others]);
    firsts
}

/// The loss of any key that comes, from the cells: it has `v · of_cell - of_others` of a cell
/// with v.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    of_cell: f64,
    of_others: f64,
    variance: f64,
}

impl Losses {
    /// Computes the losses of this many cells from their sum and that of their squares.
    fn of(cells: usize, lost: u64, squares: u128) -> Self {
        let (n, unit) = (cells as f64, f64::from(1 << CELL_POINT));
        let lost = lost as f64 / unit;
        Self {
            of_cell: n / (n - 1.0) / unit,
            of_others: lost / (n - 1.0),
            variance: ((squares as f64 / (unit * unit) - lost * lost / n) / (n - 1.0)).max(0.0),
        }
    }
}

/// Rounds up to the next `f32`.
fn rounded_up(number: u64) -> f32 {
    let near = number as f32;
    if (near as u64) < number { near.next_up() } else { near }
}

#[inline]
fn cell_of(digest: Digest, cells: usize) -> usize {
    reduce(mix(digest, CELL), cells as u64) as usize
}

fn key_of<'a>(keys: &'a [u8], entry: &Entry) -> &'a [u8] {
    &keys[entry.key_at as usize..][..usize::from(entry.key_length)]
}

/// The count of elements with these weights.
fn estimate(weight: Weight, variance: Weight, firsts: u64, seen_share: f64) -> Estimate {
    let missed = (1.0 - seen_share).max(0.0);
    // The expected number that is missed before the next one is seen.
    let next = if seen_share > 0.0 { missed / seen_share } else { 0.0 };
    Estimate {
        distinct: weight.number(),
        variance: variance.number(),
        basis: Basis::Stream(Seen::of_stream(firsts, next)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn digest(key: &[u8]) -> Digest {
        Digester::new(7).digest(key)
    }

    /// A first sighting of a key, in a packet of this many bytes.
    fn one(summary: &mut Summary, digest: Digest, key: &[u8], bytes: u32) {
        packet(summary, digest, key, bytes, Weight::ONE);
    }

    fn packet(summary: &mut Summary, digest: Digest, key: &[u8], bytes: u32, weight: Weight) {
        let length = (key.len() as u16).to_le_bytes();
        let mut elements = ElementColumns::default();
        elements.digests.push(digest);
        elements.attributes.push(digest);
        elements.keys.push(&[&bytes.to_le_bytes(), &length[..], key].concat());
        summary.add_all(&elements, &[weight]);
    }

    fn add(summary: &mut Summary, key: u32, times: u32) {
        let key = key.to_be_bytes();
        for _ in 0..times {
            one(summary, digest(&key), &key, 10);
        }
    }

    fn all(summary: &mut Summary) -> BTreeMap<u32, Spread> {
        let spreads = summary.largest((RankBy::Distinct, usize::MAX), 1.0, |_| true).into_iter();
        let numbered = spreads.map(|spread| {
            let key: [u8; 4] = spread.key.as_slice().try_into().unwrap_or_default();
            (u32::from_be_bytes(key), spread)
        });
        numbered.collect()
    }

    proptest! {
        /// While there is room everything is exact; afterwards bounds hold, and nothing but
        /// rounding is lost in sum.
        #[test]
        fn bounds_hold_and_nothing_is_lost(
            stream in prop::collection::vec((0_u32..200, 1_u32..5), 1..600),
            bytes in 4096_u64..20_000,
        ) {
            let mut summary = Summary::new(bytes, 4, RankBy::Distinct);
            let mut truth: BTreeMap<u32, u64> = BTreeMap::new();
            for &(key, times) in &stream {
                add(&mut summary, key, times);
                *truth.entry(key).or_default() += u64::from(times);
            }
            let sum: u64 = truth.values().sum();
            prop_assert!((summary.total(1.0).distinct - sum as f64).abs() < 1e-6);
            let evicted = summary.has_evicted();
            let most = summary.most_unheld();
            let spreads = all(&mut summary);
            prop_assert_eq!(spreads.len() as u64, summary.held());
            for (key, &count) in &truth {
                match spreads.get(key) {
                    Some(spread) => {
                        prop_assert!(spread.lower <= count && count <= spread.upper, "{:?} {}", spread, count);
                        if spread.held_since_start {
                            prop_assert_eq!((spread.lower, spread.upper), (count, count));
                            prop_assert_eq!((spread.packets, spread.bytes), (count, 10 * count));
                        }
                    }
                    None => prop_assert!(evicted && count <= most),
                }
            }
            let held: u64 = spreads.values().map(|spread| spread.lower).sum();
            prop_assert_eq!(held + (summary.state.lost >> CELL_POINT), sum);
        }

        /// Kept by packets or bytes, each key that is held has at least what came since, and at most what
        /// stands there; none has more that is not held, and those above a share of all are held.
        #[test]
        fn packets_and_bytes_of_all_keys_are_bounded(
            stream in prop::collection::vec((0_u8..4, 1_u32..30_000, 0_u8..9, any::<u8>()), 1..3000),
            memory in 4096_u64..12_000,
            by in prop::sample::select(vec![RankBy::Packets, RankBy::Bytes]),
        ) {
            let mut summary = Summary::new(memory, 4, by);
            let mut truth: BTreeMap<u32, (BTreeSet<u8>, u64, u64)> = BTreeMap::new();
            for (number, (kind, rank, other, size)) in (0..).zip(stream) {
                // A flood of new keys, and some of which few have most of the traffic.
                let key = if kind == 0 { 1 << 31 | number } else { 30_000 / rank };
                // Two of the largest overflow a cell.
                let bytes = if size == 255 { 3 << 30 } else { 40 + u32::from(size).pow(2) / 40 };
                let of = truth.entry(key).or_default();
                let weight = if of.0.insert(other) { Weight::ONE } else { Weight::NONE };
                (of.1, of.2) = (of.1 + 1, of.2 + u64::from(bytes));
                let key = key.to_be_bytes();
                packet(&mut summary, digest(&key), &key, bytes, weight);
            }
            let sum: u64 = truth.values().map(|of| by.of(0, of.1, of.2)).sum();
            let stay = (summary.most_entries - summary.most_entries / 2) as u64;
            let most = summary.most_unheld();
            // Without what rounding adds whenever it grows.
            let unrounded = most - most / 1_000;
            prop_assert!(unrounded * stay <= sum, "{most} {stay} {sum}");
            let spreads = all(&mut summary);
            for (key, (others, packets, bytes)) in &truth {
                let (distinct, number) = (others.len() as u64, by.of(0, *packets, *bytes));
                match spreads.get(key) {
                    Some(it) => {
                        let since = by.of(0, it.packets, it.bytes);
                        let at_most = it.at_most.unwrap_or_default();
                        prop_assert!(since <= number && number <= at_most, "{:?} {}", it, number);
                        prop_assert!(at_most - since <= most);
                        prop_assert!(it.lower <= distinct && distinct <= it.upper, "{:?}", it);
                        if it.held_since_start {
                            prop_assert_eq!((it.packets, it.bytes), (*packets, *bytes));
                            prop_assert_eq!((it.lower, it.upper, at_most), (distinct, distinct, number));
                        }
                    }
                    None => prop_assert!(number <= most),
                }
            }
        }

        /// Also with keys of any length.
        #[test]
        fn memory_stays_within_its_bound(
            keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..300),
            bytes in 4096_u64..30_000,
            by in prop::sample::select(RankBy::ALL.to_vec()),
        ) {
            let mut summary = Summary::new(bytes, 24, by);
            let before = summary.memory_bytes();
            prop_assert!(before as u64 <= bytes + 1024, "{before} {bytes}");
            for key in &keys {
                one(&mut summary, digest(key), key, 1);
                prop_assert_eq!(summary.memory_bytes(), before);
            }
            summary.clear();
            prop_assert_eq!(summary.held(), 0);
            prop_assert_eq!(summary.most_unheld(), 0);
        }
    }

    /// Keys that are seen once replace each other, and none with more.
    #[test]
    fn a_flood_pushes_nobody_out() {
        let mut summary = Summary::new(32 << 10, 4, RankBy::Distinct);
        for round in 0..100_000_u32 {
            add(&mut summary, 1_000_000 + round, 1);
            if round % 100 == 0 {
                (0..20).for_each(|key| add(&mut summary, key, 1));
            }
        }
        let largest = summary.largest((RankBy::Distinct, 20), 1.0, |_| true);
        let keys: Vec<u32> = largest
            .iter()
            .map(|spread| {
                let key: [u8; 4] = spread.key.as_slice().try_into().unwrap_or_default();
                u32::from_be_bytes(key)
            })
            .collect();
        assert!((0..20).all(|key| keys.contains(&key)), "{keys:?}");
        for spread in &largest {
            assert!((spread.lower..=spread.upper).contains(&1000), "{spread:?}");
            assert!((spread.estimate - 1000.0).abs() < 4.0 * spread.std_error + 1.0);
        }
    }

    /// The loss of a key that comes back is estimated without bias, over many choices of cells.
    #[test]
    fn losses_are_unbiased() {
        let (mut sum, runs) = (0.0, 400);
        for seed in 0..runs {
            let digester = Digester::new(seed);
            let mut summary = Summary::new(8 << 10, 4, RankBy::Distinct);
            let mut one = |key: u32| {
                let key = key.to_be_bytes();
                one(&mut summary, digester.digest(&key), &key, 0);
            };
            one(1);
            (1000..3000).for_each(&mut one);
            (0..30).for_each(|_| one(1));
            let key = 1_u32.to_be_bytes();
            let spread = summary.of_key(digester.digest(&key), 1.0);
            let number = summary.find(digester.digest(&key));
            let lost = number.map_or(0.0, |number| f64::from(summary.entries[number].lost));
            assert!(spread.is_some_and(|spread| spread.lower == 30 && spread.upper >= 31));
            sum += lost;
        }
        let mean = sum / runs as f64;
        assert!((mean - 1.0).abs() < 0.6, "{mean}");
    }
}
