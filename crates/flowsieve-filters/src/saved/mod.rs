//! Filters on disk: saved, loaded, asked and united.
//!
//! The format is described byte by byte in `docs/file-formats.md`. It has a mark, a version, the
//! parameters, a label of the caller's, the state of each shard and two checksums; everything is
//! little-endian, so a file is the same on every machine.
//!
//! ```text
//!     mark │ version │ shards │ length │ seed │ self-check │ label │ parameters │ checksum
//!     state of shard 0 │ state of shard 1 │ …                                   │ checksum
//! ```
//!
//! What is not known is refused, and what cannot be is called damaged. Memory is taken only after
//! the parameters have been compared with the length of the file.

mod error;
mod state;

pub use self::error::{LoadError, UnionError};
pub(crate) use self::state::{FilterState, MAX_LIST, Saved, StateReader, StateWriter, saved};
pub(super) use self::state::{same, unite_lines};

use super::{
    CombinationCount, CounterStats, DigestColumns, ElementDigests, Estimate, FilterSpec,
    FilterStats, MembershipFilter, Pattern, PatternAnswer, SpecError,
};
use crate::hashing::{Digest, Digester, shard_of};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// First bytes of a file. The first is no text, the last is changed by what changes line ends.
const MARK: [u8; 8] = *b"\x89FSIEVE\n";

/// Version of the format that is written.
const VERSION: u16 = 4;

/// Longest label, in bytes.
pub const MAX_LABEL: usize = 1024;

/// Most shards.
pub const MAX_SHARDS: usize = 1024;

/// Bytes of the head before the label.
const FIXED: u64 = 44;

/// Bytes read at a time.
const BUFFER: usize = 256 << 10;

/// A filter with everything that is needed to ask it: the filters of all shards, their parameters,
/// the seed of the digests, and a label that says what the elements are.
#[derive(Debug)]
pub struct SavedFilter {
    spec: FilterSpec,
    seed: u64,
    label: Vec<u8>,
    shards: Vec<Box<dyn MembershipFilter>>,
}

impl SavedFilter {
    /// An empty filter of this many shards, for elements that the label describes.
    ///
    /// # Errors
    ///
    /// The parameters cannot be, the label is longer than [`MAX_LABEL`], there is no shard, or more
    /// than [`MAX_SHARDS`].
    pub fn empty(
        spec: FilterSpec,
        seed: u64,
        label: Vec<u8>,
        shards: usize,
    ) -> Result<Self, SpecError> {
        spec.check()?;
        let filters = (0..shards.min(MAX_SHARDS + 1)).map(|_| spec.build()).collect();
        Self::of_shards(spec, seed, label, filters)
    }

    /// A filter of these shards, each [built](FilterSpec::build) with these parameters, into which
    /// elements were inserted [by their digest](shard_of).
    ///
    /// # Errors
    ///
    /// See [`SavedFilter::empty`].
    pub fn of_shards(
        spec: FilterSpec,
        seed: u64,
        label: Vec<u8>,
        shards: Vec<Box<dyn MembershipFilter>>,
    ) -> Result<Self, SpecError> {
        spec.check()?;
        spec.can_be_saved()?;
        if label.len() > MAX_LABEL {
            return Err(SpecError::new(long_label(label.len())));
        }
        if shards.is_empty() || shards.len() > MAX_SHARDS {
            return Err(SpecError::new(format!(
                "there are 1 to {MAX_SHARDS} shards, not {}; 8 works",
                shards.len()
            )));
        }
        Ok(Self { spec, seed, label, shards })
    }

    /// Parameters of the filter of each shard.
    pub const fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Seed of the digests.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Description of the elements, written by the maker of the filter.
    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Inserts an element into its shard. Attributes are needed as by [`SavedFilter::contains`].
    pub fn insert(&mut self, element: ElementDigests<'_>) {
        let shard = shard_of(element.whole, self.shards.len() as u64);
        self.shards[shard].insert(element);
    }

    /// Inserts many elements in order, each into its shard: the same as [`SavedFilter::insert`] of
    /// one after the other, by the structure's fast path.
    pub fn insert_batch(&mut self, elements: DigestColumns<'_>) {
        let mut sightings = Vec::new();
        if let [shard] = &mut *self.shards {
            shard.insert_batch(elements, &mut sightings);
            return;
        }
        let shards = self.shards.len();
        let mut whole: Vec<Vec<Digest>> = vec![Vec::new(); shards];
        let mut attributes = whole.clone();
        for element in elements.iter() {
            let shard = shard_of(element.whole, shards as u64);
            whole[shard].push(element.whole);
            attributes[shard].extend(element.attributes);
        }
        for (shard, (whole, attributes)) in
            self.shards.iter_mut().zip(whole.iter().zip(&attributes))
        {
            shard.insert_batch(DigestColumns { whole, attributes }, &mut sightings);
            sightings.clear();
        }
    }

    /// Undoes one insertion of the element, as
    /// [`RemovableFilter::remove`](super::RemovableFilter::remove) does it; false, with nothing
    /// done, if the structure cannot.
    pub fn remove(&mut self, element: ElementDigests<'_>) -> bool {
        let shard = shard_of(element.whole, self.shards.len() as u64);
        let removable = self.shards[shard].as_removable();
        removable.map(|shard| shard.remove(element)).is_some()
    }

    /// Whether the element was inserted (true for all that were, and for false positives).
    ///
    /// # Panics
    ///
    /// May panic if the structure [looks at attributes](FilterSpec::attributes) and the element has
    /// another number of them.
    pub fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.shard(element).contains(element)
    }

    fn shard(&self, element: ElementDigests<'_>) -> &dyn MembershipFilter {
        &*self.shards[shard_of(element.whole, self.shards.len() as u64)]
    }

    /// Whether an element was inserted whose attributes are those of the pattern. Without a digest
    /// of the whole element all shards are asked, and the strongest answer holds.
    ///
    /// # Panics
    ///
    /// See [`SavedFilter::contains`].
    pub fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        if let Some(whole) = pattern.whole {
            let attributes: Vec<_> = pattern.attributes.iter().copied().flatten().collect();
            let element = ElementDigests { whole, attributes: &attributes };
            let shard = self.shard(element);
            return match shard.as_multi_attribute() {
                Some(shard) => shard.contains_where(pattern),
                None if shard.contains(element) => PatternAnswer::Present,
                None => PatternAnswer::Absent,
            };
        }
        self.shards
            .iter()
            .map(|shard| {
                shard
                    .as_multi_attribute()
                    .map_or(PatternAnswer::Unknown, |shard| shard.contains_where(pattern))
            })
            .fold(PatternAnswer::Absent, PatternAnswer::or)
    }

    /// Count of the distinct elements inserted, if the structure has one; after a union by its
    /// fill, or its bounds.
    pub fn distinct(&self) -> Option<Estimate> {
        self.shards
            .iter()
            .map(|shard| shard.distinct())
            .try_fold(Estimate::default(), |sum, shard| Some(sum.plus(shard?)))
    }

    /// Count of the distinct combinations of the attributes in `mask` (bit i for attribute i), if
    /// the structure keeps one and there is one shard only: a value may stand in several.
    pub fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        match &*self.shards {
            [shard] => shard.as_multi_attribute()?.distinct_of(mask),
            _ => None,
        }
    }

    /// The counts of the distinct combinations of the attributes in `mask`, as far as the structure
    /// has them and there is one shard only.
    pub fn combination(&self, mask: u32) -> CombinationCount {
        let shard = match &*self.shards {
            [shard] => shard.as_multi_attribute(),
            _ => None,
        };
        CombinationCount::of(shard, mask)
    }

    /// The stage that most of its elements were left out for: the highest of all shards
    /// ([`MembershipFilter::stage`]).
    pub fn stage(&self) -> u32 {
        self.shards.iter().map(|shard| shard.stage()).max().unwrap_or(0)
    }

    /// Memory and fill over all shards.
    pub fn stats(&self) -> FilterStats {
        let stats: Vec<FilterStats> = self.shards.iter().map(|shard| shard.stats()).collect();
        let counters = stats.iter().filter_map(|shard| shard.counters);
        FilterStats {
            memory_bytes: stats.iter().map(|shard| shard.memory_bytes).sum(),
            fill_ratio: stats.iter().map(|shard| shard.fill_ratio).sum::<f64>()
                / stats.len() as f64,
            counters: counters.reduce(CounterStats::plus),
        }
    }

    /// The filters of its shards.
    pub fn into_shards(self) -> Vec<Box<dyn MembershipFilter>> {
        self.shards
    }

    /// Gives it another label.
    pub fn set_label(&mut self, label: Vec<u8>) {
        self.label = label;
    }

    /// Makes this the filter of both inputs: what either contains is contained, and but for the
    /// structures that place elements by what came before, `scalable` and `dleft`, the answers are
    /// those of a filter into which all elements were inserted.
    ///
    /// # Errors
    ///
    /// They differ in structure, parameters, seed, label or shards, or chains have too many links
    /// together. This filter is then as it was.
    pub fn unite(&mut self, other: &Self) -> Result<(), UnionError> {
        if self.spec != other.spec {
            return Err(UnionError::Parameters);
        }
        if self.label != other.label {
            return Err(UnionError::Label);
        }
        if self.seed != other.seed {
            return Err(UnionError::Seed);
        }
        if self.shards.len() != other.shards.len() {
            return Err(UnionError::Shards);
        }
        // All or nothing: a shard that refuses must not come after others that are united.
        for (shard, more) in self.shards.iter().zip(&other.shards) {
            shard.check_union(&**more)?;
        }
        for (shard, more) in self.shards.iter_mut().zip(&other.shards) {
            shard.unite(&**more)?;
        }
        Ok(())
    }

    /// Writes the filter.
    ///
    /// # Errors
    ///
    /// Those of the writer; or the label is longer than [`MAX_LABEL`], and nothing is written.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.label.len() > MAX_LABEL {
            return Err(io::Error::other(long_label(self.label.len())));
        }
        let mut measured = StateWriter::counting();
        self.save_parts(&mut measured, 0)?;
        self.save_parts(&mut StateWriter::new(out), measured.written())
    }

    fn save_parts(&self, out: &mut StateWriter<'_>, length: u64) -> io::Result<()> {
        out.bytes(&MARK)?;
        out.bytes(&VERSION.to_le_bytes())?;
        out.bytes(&[0; 2])?;
        out.u32(self.shards.len() as u32)?;
        out.u64(length)?;
        out.u64(self.seed)?;
        out.u64(Digester::new(self.seed).self_check())?;
        out.u32(self.label.len() as u32)?;
        debug_assert_eq!(out.written(), FIXED);
        out.bytes(&self.label)?;
        self.spec.save(out)?;
        out.u64(out.checksum())?;
        for shard in &self.shards {
            shard.save_state(out)?;
        }
        out.u64(out.checksum())
    }

    /// Loads the filter in this file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no whole and undamaged filter of a known version.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LoadError::Missing,
            _ => error.into(),
        })?;
        let data = file.metadata()?;
        if data.is_dir() {
            return Err(LoadError::Directory);
        }
        let mut input = BufReader::with_capacity(BUFFER, file);
        if data.is_file() {
            return Self::read(&mut input, data.len());
        }
        // A pipe does not tell its length, so it is read as its head says, into arrays that are as
        // large as its parameters say; and it has to end there.
        let mut bytes = Vec::new();
        (&mut input).take(FIXED).read_to_end(&mut bytes)?;
        let claimed = check_start(&mut StateReader::new(&mut &*bytes, bytes.len() as u64))?.length;
        let most = claimed.saturating_add(1).saturating_sub(bytes.len() as u64);
        let mut rest = input.take(most);
        let read = Self::read(&mut (&*bytes).chain(&mut rest), claimed);
        let is_cut = matches!(read, Err(LoadError::CutShort { .. }));
        if is_cut || (read.is_ok() && rest.read(&mut [0])? > 0) {
            let length = claimed.saturating_add(1).saturating_sub(rest.limit());
            return Err(LoadError::Length { length, claimed });
        }
        read
    }

    /// Reads a filter from `input`, which has `length` bytes.
    ///
    /// # Errors
    ///
    /// See [`SavedFilter::load`].
    pub fn read(input: &mut dyn Read, length: u64) -> Result<Self, LoadError> {
        let mut input = StateReader::new(input, length);
        let head = read_head(&mut input, length)?;
        let spec = FilterSpec::load(&mut input)?;
        check_checksum(&mut input)?;
        if head.self_check != Digester::new(head.seed).self_check() {
            return Err(LoadError::OtherDigests);
        }
        spec.check()?;
        let shards = head.shards as usize;
        if shards == 0 || shards > MAX_SHARDS {
            return Err(input.damaged("it has no shards, or more than there can be"));
        }
        input.enter("the contents of its shards");
        check_room(&spec, shards, &input)?;
        let mut filters = Vec::with_capacity(shards);
        for _ in 0..shards {
            let mut filter = spec.build();
            filter.load_state(&mut input)?;
            filters.push(filter);
        }
        input.enter("its checksum");
        check_checksum(&mut input)?;
        if input.left() > 0 {
            return Err(input.damaged("there are bytes behind the end"));
        }
        Ok(Self::of_shards(spec, head.seed, head.label, filters)?)
    }
}

fn long_label(bytes: usize) -> String {
    format!("a label has at most {MAX_LABEL} bytes, not {bytes}; a shorter one works")
}

/// The head before the parameters.
struct Head {
    shards: u32,
    seed: u64,
    self_check: u64,
    label: Vec<u8>,
}

/// Reads the head of a filter that has `length` bytes.
fn read_head(input: &mut StateReader<'_>, length: u64) -> Result<Head, LoadError> {
    let start = check_start(input)?;
    if start.length != length {
        return Err(LoadError::Length { length, claimed: start.length });
    }
    let (seed, self_check) = (input.u64()?, input.u64()?);
    let label_bytes = input.u32()? as usize;
    if label_bytes > MAX_LABEL {
        return Err(input.damaged("its label is longer than any can be"));
    }
    let mut label = vec![0; label_bytes];
    input.bytes(&mut label)?;
    Ok(Head { shards: start.shards, seed, self_check, label })
}

/// The first bytes.
struct Start {
    shards: u32,
    length: u64,
}

fn check_start(input: &mut StateReader<'_>) -> Result<Start, LoadError> {
    let mut mark = [0; MARK.len()];
    let there = (input.left() as usize).min(MARK.len());
    input.bytes(&mut mark[..there])?;
    if mark[..there] != MARK[..there] {
        return Err(LoadError::Foreign);
    }
    input.bytes(&mut mark[there..])?;
    match input.u16()? {
        VERSION => {}
        version => return Err(LoadError::Version(version)),
    }
    if input.u16()? != 0 {
        return Err(input.damaged("two bytes of its head are not 0"));
    }
    Ok(Start { shards: input.u32()?, length: input.u64()? })
}

fn check_checksum(input: &mut StateReader<'_>) -> Result<(), LoadError> {
    let (offset, expected) = (input.offset(), input.checksum());
    if input.u64()? == expected { Ok(()) } else { Err(LoadError::Checksum { offset }) }
}

/// Whether the arrays of the filters, as they are built, are not larger than what is there to fill
/// them with, and the machine gives the memory.
fn check_room(spec: &FilterSpec, shards: usize, input: &StateReader<'_>) -> Result<(), LoadError> {
    let needed = u128::from(spec.built_bytes()) * shards as u128;
    let room = input.left().saturating_sub(8);
    if needed > u128::from(room) {
        return Err(LoadError::StateLength { needed, room });
    }
    let granted = usize::try_from(needed)
        .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if granted { Ok(()) } else { Err(LoadError::Memory(needed as u64)) }
}
