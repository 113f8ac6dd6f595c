//! Measures the time per element of the filters and of crates that do the same; see
//! `benches/README.md`.
//!
//! Every row counts its answers and compares the count with the expected one.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(
    clippy::inline_always,
    reason = "functions that are not inlined are compiled for the baseline target"
)]

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use flowsieve::bits::Lines;
use flowsieve::filters::{
    BloomSpec, CountingSpec, DigestColumns, DleftSpec, ElementDigests, FilterSpec, MatrixSpec,
    MembershipFilter, PlannedCombination, Sighting, SubsetFilter, SubsetSpec,
};
use flowsieve::hashing::{Digest, reduce};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Elements of one timed call; their digests take 64 KiB.
const CHUNK: usize = 8192;

/// Most elements a table is loaded with, so that the largest are ready in seconds. These touch 98 %
/// of the cache lines of 256 MiB.
const MOST_LOADED: u64 = 1 << 24;

const BITS_A_KEY: u64 = 10;

/// The best k of a filter in lines, and of a Bloom filter, with [`BITS_A_KEY`] bits an element.
const LINE_PROBES: u32 = 6;
const PROBES: u32 = 7;

/// Largest share of the new elements of a chunk that may be taken for repeats. Every false-positive
/// rate here is lower.
const MOST_FALSE: f64 = 0.06;

/// Returns key number `i`. This is a bijection, so no two keys are equal.
fn key(i: u64) -> Digest {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Digest::from_value(z ^ z >> 31)
}

/// Returns a pseudorandom number below `n`.
fn draw(i: u64, n: u64) -> u64 {
    reduce(key(i ^ 0x5555_0000_0000_0000).value(), n)
}

/// A structure under test: a filter, or a set of digests.
trait Table {
    /// True if no answer is ever wrong.
    const EXACT: bool = false;

    /// Prepares [`Table::insert`] of these digests; this is not part of the measured time.
    fn prepare(&mut self, digests: &[Digest]) {
        let _ = digests;
    }

    /// Inserts all of them and returns how many were new.
    fn insert(&mut self, digests: &[Digest]) -> usize;

    /// Returns how many of them the structure contains.
    fn count(&self, digests: &[Digest]) -> usize;

    fn clear(&mut self);

    fn remove(&mut self, digests: &[Digest]) {
        let _ = digests;
        unimplemented!("rows that remove are asked of structures that can");
    }
}

/// A filter of this crate, used through its batch methods.
struct Ours {
    filter: Box<dyn MembershipFilter>,
    sightings: Vec<Sighting>,
}

impl Ours {
    fn new(spec: &FilterSpec) -> Self {
        spec.check().expect("the benchmark asks for filters that can be");
        Self { filter: spec.build(), sightings: Vec::with_capacity(CHUNK) }
    }
}

fn whole(digest: Digest) -> ElementDigests<'static> {
    ElementDigests { whole: digest, attributes: &[] }
}

impl Ours {
    fn insert_columns(&mut self, columns: DigestColumns<'_>) -> usize {
        self.sightings.clear();
        self.filter.insert_batch(columns, &mut self.sightings);
        // Counted in bytes, which vectorize well: the counting should not dominate the time.
        let firsts_of = |some: &[Sighting]| -> u8 {
            some.iter().map(|&s| u8::from(s == Sighting::First)).sum()
        };
        let some = self.sightings.chunks(usize::from(u8::MAX));
        some.map(|some| usize::from(firsts_of(some))).sum()
    }
}

impl Table for Ours {
    fn insert(&mut self, digests: &[Digest]) -> usize {
        self.insert_columns(DigestColumns { whole: digests, attributes: &[] })
    }

    fn count(&self, digests: &[Digest]) -> usize {
        let columns = DigestColumns { whole: digests, attributes: &[] };
        let mut answers = Vec::with_capacity(digests.len());
        self.filter.contains_batch(columns, &mut answers);
        let there_of = |some: &[bool]| -> u8 { some.iter().map(|&there| u8::from(there)).sum() };
        let some = answers.chunks(usize::from(u8::MAX));
        some.map(|some| usize::from(there_of(some))).sum()
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    fn remove(&mut self, digests: &[Digest]) {
        let filter = self.filter.as_removable().expect("it can");
        for &digest in digests {
            filter.remove(whole(digest));
        }
    }
}

/// The subset filter for elements of three attributes, with planned combinations.
struct Planned {
    ours: Ours,
    attributes: Vec<Digest>,
}

impl Planned {
    /// Number of values stored per element: the whole, and three combinations.
    const VALUES: u64 = 4;

    fn new(lines: u64) -> Self {
        let combination = |mask| PlannedCombination { mask, probes: LINE_PROBES };
        let spec = FilterSpec::Subset(SubsetSpec {
            halving: false,
            attributes: 3,
            shape: lines.into(),
            probes: LINE_PROBES,
            combinations: [0b001, 0b010, 0b011].map(combination).to_vec(),
        });
        Self { ours: Ours::new(&spec), attributes: Vec::new() }
    }
}

impl Table for Planned {
    fn prepare(&mut self, digests: &[Digest]) {
        // The attributes of an element follow from its digest, so each combination of a new element
        // is new, too.
        let attribute_of = |digest: &Digest, number| key(digest.value() ^ number);
        self.attributes.clear();
        let all = digests.iter();
        self.attributes
            .extend(all.flat_map(|digest| [1, 2, 3].map(|number| attribute_of(digest, number))));
    }

    fn insert(&mut self, digests: &[Digest]) -> usize {
        self.ours.insert_columns(DigestColumns { whole: digests, attributes: &self.attributes })
    }

    fn count(&self, digests: &[Digest]) -> usize {
        self.ours.count(digests)
    }

    fn clear(&mut self) {
        self.ours.clear();
    }
}

#[inline(always)]
fn line_of(digest: Digest, lines: usize) -> usize {
    reduce(digest.value(), lines as u64) as usize
}

/// The lower limit of a filter in lines: only reads the cache line of each digest, 32 at a time.
struct Fetch(Lines);

impl Fetch {
    fn new(lines: u64) -> Self {
        let mut lines = Lines::new(lines);
        // The system may map all memory that was never written to one page of zeros.
        for (number, line) in (0..).zip(lines.as_mut_slice()) {
            line[0] = number | 1;
        }
        Self(lines)
    }
}

impl Table for Fetch {
    fn insert(&mut self, digests: &[Digest]) -> usize {
        self.count(digests)
    }

    fn count(&self, digests: &[Digest]) -> usize {
        let lines = self.0.as_slice();
        let mut there = 0;
        for batch in digests.chunks(32) {
            let words = batch.iter().map(|&digest| lines[line_of(digest, lines.len())][0]);
            there += words.map(|word| usize::from(word != 0)).sum::<usize>();
        }
        there
    }

    fn clear(&mut self) {}
}

/// fastbloom, which takes digests as hashes or, if `HASHED`, applies its own hash function to them.
struct Fast<const HASHED: bool>(fastbloom::BloomFilter);

impl<const HASHED: bool> Fast<HASHED> {
    fn new(bits: u64, elements: u64) -> Self {
        let builder = fastbloom::BloomFilter::with_num_bits(bits as usize).seed(&1);
        Self(builder.expected_items(elements as usize))
    }
}

impl<const HASHED: bool> Table for Fast<HASHED> {
    fn insert(&mut self, digests: &[Digest]) -> usize {
        let mut there = 0;
        for digest in digests {
            there += usize::from(if HASHED {
                self.0.insert(&digest.value())
            } else {
                self.0.insert_hash(digest.value())
            });
        }
        digests.len() - there
    }

    fn count(&self, digests: &[Digest]) -> usize {
        let there = |digest: &&Digest| {
            if HASHED {
                self.0.contains(&digest.value())
            } else {
                self.0.contains_hash(digest.value())
            }
        };
        digests.iter().filter(there).count()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

struct Sbbf(sbbf_rs_safe::Filter);

impl Table for Sbbf {
    fn insert(&mut self, digests: &[Digest]) -> usize {
        let mut there = 0;
        for digest in digests {
            there += usize::from(self.0.insert_hash(digest.value()));
        }
        digests.len() - there
    }

    fn count(&self, digests: &[Digest]) -> usize {
        digests.iter().filter(|digest| self.0.contains_hash(digest.value())).count()
    }

    fn clear(&mut self) {
        self.0.reset();
    }
}

struct Exact(hashbrown::HashSet<u64, ahash::RandomState>);

impl Table for Exact {
    const EXACT: bool = true;

    fn insert(&mut self, digests: &[Digest]) -> usize {
        let mut firsts = 0;
        for digest in digests {
            firsts += usize::from(self.0.insert(digest.value()));
        }
        firsts
    }

    fn count(&self, digests: &[Digest]) -> usize {
        digests.iter().filter(|digest| self.0.contains(&digest.value())).count()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The operation that a row measures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operation {
    /// Query for elements that were inserted.
    Hit,
    /// Query for elements that were not inserted.
    Miss,
    /// Insertion of new elements.
    New,
    /// Insertion of elements every other of which is new.
    HalfNew,
    /// Insertion of elements every tenth of which is new.
    MostlyRepeats,
    /// Removal of elements that were inserted.
    Remove,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::New => "insert",
            Self::HalfNew => "insert, half new",
            Self::MostlyRepeats => "insert, 1 in 10 new",
            Self::Remove => "remove",
        }
    }

    /// Returns `n` if every `n`-th element is new, or `None` if the operation inserts nothing.
    const fn one_new_in(self) -> Option<u64> {
        match self {
            Self::New => Some(1),
            Self::HalfNew => Some(2),
            Self::MostlyRepeats => Some(10),
            Self::Hit | Self::Miss | Self::Remove => None,
        }
    }
}

/// A table that starts with `loaded` elements and is reloaded before it has more than `most`.
struct Bench<T> {
    table: T,
    loaded: u64,
    most: u64,
    /// Number of the next new element.
    next: u64,
    /// Number of elements drawn so far, so that no two chunks are equal.
    drawn: u64,
}

impl<T: Table> Bench<T> {
    fn new(table: T, loaded: u64, most: u64) -> Self {
        let mut this = Self { table, loaded, most, next: most, drawn: 0 };
        this.reload();
        this
    }

    fn reload(&mut self) {
        self.table.clear();
        let mut chunk = Vec::with_capacity(CHUNK);
        for from in (0..self.loaded).step_by(CHUNK) {
            chunk.clear();
            chunk.extend((from..self.loaded.min(from + CHUNK as u64)).map(key));
            self.table.prepare(&chunk);
            self.table.insert(&chunk);
        }
        self.next = self.loaded;
    }

    /// Returns the time of `chunks` chunks, without their preparation.
    fn time(&mut self, operation: Operation, chunks: u64) -> Duration {
        let mut time = Duration::ZERO;
        let mut chunk = vec![key(0); CHUNK];
        for _ in 0..chunks {
            if self.next + CHUNK as u64 > self.most {
                self.reload();
            }
            let mut new = 0;
            for (place, digest) in chunk.iter_mut().enumerate() {
                self.drawn += 1;
                *digest = match operation.one_new_in() {
                    Some(every) if (place as u64).is_multiple_of(every) => {
                        new += 1;
                        self.next += 1;
                        key(self.next - 1)
                    }
                    _ if operation == Operation::Miss => key((1 << 40) + self.drawn),
                    _ if operation == Operation::Remove => key((1 << 41) + self.drawn),
                    _ => key(draw(self.drawn, self.loaded)),
                };
            }
            if operation == Operation::Remove {
                self.table.insert(&chunk);
            }
            self.table.prepare(&chunk);
            let begin = Instant::now();
            let counted = match operation {
                Operation::Hit | Operation::Miss => self.table.count(black_box(&chunk)),
                Operation::Remove => {
                    self.table.remove(black_box(&chunk));
                    0
                }
                _ => self.table.insert(black_box(&chunk)),
            };
            time += begin.elapsed();
            self.check(operation, &chunk, counted, new);
        }
        time
    }

    fn check(&self, operation: Operation, chunk: &[Digest], counted: usize, new: usize) {
        let most_false = if T::EXACT { 0.0 } else { MOST_FALSE };
        let (least, most) = match operation {
            Operation::Hit => (CHUNK, CHUNK),
            Operation::Miss => (0, (CHUNK as f64 * most_false) as usize),
            Operation::Remove => {
                let left = self.table.count(chunk);
                assert!(left as f64 <= CHUNK as f64 * most_false, "{left} are left");
                return;
            }
            _ => ((new as f64 * (1.0 - most_false)).ceil() as usize, new),
        };
        assert!(
            (least..=most).contains(&counted),
            "{operation:?}: {counted}, and not {least} to {most}"
        );
    }
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Adds the rows of one structure, which is built when the first of them runs.
fn rows<T: Table>(
    group: &mut Group<'_>,
    name: &str,
    (loaded, most): (u64, u64),
    operations: &[Operation],
    make: impl Fn() -> T,
) {
    let mut table = None;
    group.throughput(Throughput::Elements(CHUNK as u64));
    for &operation in operations {
        group.bench_function(format!("{name}/{}", operation.name()), |bencher| {
            bencher.iter_custom(|chunks| {
                table
                    .get_or_insert_with(|| Bench::new(make(), loaded, most))
                    .time(operation, chunks)
            });
        });
    }
}

/// Names of the sizes, and bytes.
const SIZES: [(&str, u64); 4] =
    [("64 KiB", 1 << 16), ("1 MiB", 1 << 20), ("16 MiB", 1 << 24), ("256 MiB", 1 << 28)];

fn filters(criterion: &mut Criterion) {
    use Operation::{HalfNew, Hit, Miss, MostlyRepeats, New};
    let all = [Hit, Miss, HalfNew, New];
    for (size, bytes) in SIZES {
        let mut group = criterion.benchmark_group(size);
        let bits = bytes * 8;
        let elements = bits / BITS_A_KEY;
        let load = ((elements / 2).min(MOST_LOADED), elements);
        let lines = bytes / 64;
        let subset = || {
            FilterSpec::Subset(SubsetSpec {
                halving: false,
                attributes: 0,
                shape: lines.into(),
                probes: LINE_PROBES,
                combinations: Vec::new(),
            })
        };
        let bloom = FilterSpec::Bloom(BloomSpec { bits, probes: PROBES });
        {
            // Built by hand, without a load: every word is nonzero, so every query is a hit.
            let mut fetch = None;
            group.throughput(Throughput::Elements(CHUNK as u64));
            group.bench_function("line fetch/hit", |bencher| {
                bencher.iter_custom(|chunks| {
                    fetch
                        .get_or_insert_with(|| Bench {
                            table: Fetch::new(lines),
                            loaded: elements,
                            most: u64::MAX,
                            next: 0,
                            drawn: 0,
                        })
                        .time(Hit, chunks)
                });
            });
        }
        let with_repeats = [Hit, Miss, HalfNew, New, MostlyRepeats];
        rows(&mut group, "subset", load, &with_repeats, || Ours::new(&subset()));
        let inserts = [HalfNew, MostlyRepeats];
        rows(&mut group, "in lines uncounted", load, &inserts, || Ours {
            filter: Box::new(SubsetFilter::without_count(lines, LINE_PROBES)),
            sightings: Vec::with_capacity(CHUNK),
        });
        let fewer = (load.0 / Planned::VALUES, load.1 / Planned::VALUES);
        let inserts = [HalfNew, New, MostlyRepeats];
        rows(&mut group, "subset, 3 combinations", fewer, &inserts, || Planned::new(lines));
        rows(&mut group, "bloom", load, &all, || Ours::new(&bloom));
        rows(&mut group, "fastbloom", load, &all, || Fast::<false>::new(bits, elements));
        rows(&mut group, "fastbloom hashing", load, &all, || Fast::<true>::new(bits, elements));
        rows(&mut group, "sbbf-rs-safe", load, &all, || {
            Sbbf(sbbf_rs_safe::Filter::new(BITS_A_KEY as usize, elements as usize))
        });
        rows(&mut group, "hashbrown", load, &all, || {
            Exact(hashbrown::HashSet::with_capacity_and_hasher(
                elements as usize,
                ahash::RandomState::with_seeds(1, 2, 3, 4),
            ))
        });
        group.finish();
    }
}

/// Compares d-left filters that are at most three quarters full with counting filters of equal
/// rate and of equal memory.
fn counters(criterion: &mut Criterion) {
    use Operation::{HalfNew, Hit, Miss, New, Remove};
    let all = [Hit, Miss, HalfNew, New, Remove];
    for (size, bytes) in &SIZES[1..] {
        let mut group = criterion.benchmark_group(format!("counters {size}"));
        let bucket_bits = (bytes / 64).ilog2();
        let elements = 24 << bucket_bits;
        let load = ((elements / 2).min(MOST_LOADED), elements);
        let dleft = FilterSpec::Dleft(DleftSpec {
            buckets: 1 << bucket_bits,
            remainder_bits: 14,
            counter_bits: 2,
        });
        let fpr = flowsieve::filters::sizing::dleft_fpr(bucket_bits + 14, elements as f64);
        let equal_rate = FilterSpec::new(
            flowsieve::filters::FilterKind::Counting,
            0,
            flowsieve::filters::Sizing::Rate { fpr, expected: elements },
        )
        .expect("a rate that can be");
        let times = equal_rate.memory_bytes() as f64 / dleft.memory_bytes() as f64;
        assert!(times >= 2.0, "d-left takes 1/{times} of the memory");
        let equal_memory =
            FilterSpec::Counting(CountingSpec { counters: bytes * 2, probes: 4, counter_bits: 4 });
        rows(&mut group, "dleft", load, &all, || Ours::new(&dleft));
        rows(&mut group, "counting of equal rate", load, &all, || Ours::new(&equal_rate));
        // A query of a nearly empty filter ends at the first cell; the time of a miss at the design
        // load is longer.
        let half = (elements / 2, elements);
        if load != half {
            rows(&mut group, "dleft, half full", half, &[Miss], || Ours::new(&dleft));
            let name = "counting of equal rate, half full";
            rows(&mut group, name, half, &[Miss], || Ours::new(&equal_rate));
        }
        // At this memory the same elements would have a far higher rate, so it gets a quarter of
        // them.
        let fewer = (load.0 / 4, load.1 / 4);
        rows(&mut group, "counting of equal memory", fewer, &all, || Ours::new(&equal_memory));
        group.finish();
    }
}

/// Returns `arity` attributes for each of these elements. They follow from the element's number.
fn attributes(arity: u64, numbers: impl Iterator<Item = u64>) -> Vec<Digest> {
    numbers
        .flat_map(|number| (0..arity).map(move |attribute| key(number * 16 + attribute)))
        .collect()
}

/// A matrix filter whose queries are measured.
struct Matrix {
    name: String,
    arity: usize,
    cuts: Vec<u32>,
    probes: u32,
    /// Upper limit of the number of cells.
    cells: u128,
    /// Number of elements inserted.
    elements: u64,
}

impl Matrix {
    /// Returns a BFM and a CBFM of equal memory with three attributes and k = 6, and the CBFM with
    /// k = 3. The CBFM has two maximal combinations with half of the cells each, so that k = 3
    /// gives it the fill and the number of cells per query of the BFM, and thus an equal rate.
    fn of_equal_memory(cells: u128, elements: u64) -> [Self; 3] {
        let matrix = |name: &str, cuts: &[u32], probes| Self {
            name: format!("{name} n={elements}"),
            arity: 3,
            cuts: cuts.to_vec(),
            probes,
            cells,
            elements,
        };
        [
            matrix("bfm d=3", &[], 6),
            matrix("cbfm d=3", &[0b011], 6),
            matrix("cbfm d=3 k=3", &[0b011], 3),
        ]
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        let size =
            flowsieve::filters::matrix_sizing::largest_size(self.arity, &self.cuts, self.cells);
        let spec = MatrixSpec {
            sizes: vec![size; self.arity],
            cuts: self.cuts.clone(),
            probes: self.probes,
            index_map: flowsieve::filters::IndexMap::default(),
        };
        let mut filter = FilterSpec::Matrix(spec).build();
        for number in 0..self.elements {
            filter.insert(ElementDigests {
                whole: key(number),
                attributes: &attributes(self.arity as u64, std::iter::once(number)),
            });
        }
        filter
    }

    /// Adds rows for full queries: hits, and misses whose attributes all occur, but each in
    /// another element.
    fn rows(&self, group: &mut Group<'_>) {
        let Self { arity, elements, .. } = *self;
        let mut filter = None;
        for hit in [true, false] {
            let operation = if hit { "hit" } else { "miss" };
            group.bench_function(format!("{}/{operation}", self.name), |bencher| {
                let filter = filter.get_or_insert_with(|| self.build());
                let whole: Vec<Digest> = (0..CHUNK as u64).map(key).collect();
                let mut drawn = 0;
                bencher.iter_custom(|chunks| {
                    let mut time = Duration::ZERO;
                    for _ in 0..chunks {
                        let numbers = (0..CHUNK as u64).map(|i| draw(drawn + i, elements));
                        let mut columns = attributes(arity as u64, numbers);
                        drawn += CHUNK as u64;
                        if !hit {
                            // Takes each attribute from another element: all are known, but not
                            // together.
                            let last = columns.clone();
                            for (i, digest) in columns.iter_mut().enumerate() {
                                let other = (i + arity * (i % arity)) % last.len();
                                *digest = last[other];
                            }
                        }
                        let elements = DigestColumns { whole: &whole, attributes: &columns };
                        let mut answers = Vec::with_capacity(CHUNK);
                        let begin = Instant::now();
                        filter.contains_batch(black_box(elements), &mut answers);
                        time += begin.elapsed();
                        let there = answers.into_iter().filter(|&there| there).count();
                        // Misses are not checked: crowded matrices of many attributes answer yes to
                        // everything.
                        assert!(!hit || there == CHUNK, "{there} of {CHUNK} are there");
                    }
                    time
                });
            });
        }
    }
}

/// Measures matrices of 16 MiB, by number of elements and of attributes, and matrices that fit the
/// second-level cache, up to a fill of 44 %.
fn matrices(criterion: &mut Criterion) {
    // The disjoint cuts of the paper: {1,2}, {3,4}, …
    let pairs = |arity: usize| -> Vec<u32> { (0..arity / 2).map(|i| 0b11 << (2 * i)).collect() };
    let cells = 1 << 27;
    let many = [20_000, 200_000, 2_000_000].map(|n| Matrix::of_equal_memory(cells, n));
    let mut large: Vec<Matrix> = many.into_iter().flatten().collect();
    for arity in 2..=8 {
        for (name, cuts) in [("bfm", vec![]), ("cbfm", pairs(arity))] {
            large.push(Matrix {
                name: format!("{name} d={arity}"),
                arity,
                cuts,
                probes: 6,
                cells,
                elements: 1000,
            });
        }
    }
    let small = [1_000, 10_000, 100_000].map(|n| Matrix::of_equal_memory(1 << 21, n));
    for (name, all) in
        [("matrix", large), ("matrix 256 KiB", small.into_iter().flatten().collect())]
    {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(CHUNK as u64));
        for matrix in all {
            matrix.rows(&mut group);
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    filters(&mut criterion);
    counters(&mut criterion);
    matrices(&mut criterion);
    criterion.final_summary();
}
