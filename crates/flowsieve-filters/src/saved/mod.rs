//! Saving, loading, querying and uniting filters on disk.
//!
//! The format is described byte by byte in `docs/file-formats.md`. It has a mark, a version, the
//! parameters, a label of the caller, the state of each shard and two checksums; everything is
//! little-endian, so a file is the same on every machine.
//!
//! ```text
//!     mark │ version │ shards │ length │ seed │ self-check │ label │ parameters │ checksum
//!     state of shard 0 │ state of shard 1 │ …                                   │ checksum
//! ```
//!
//! Unknown versions and structures are refused, and impossible values are reported as damage.
//! Memory is only allocated after the parameters have been compared with the length of the file.

mod error;
mod state;

pub use self::error::{LoadError, UnionError};
pub(crate) use self::state::{FilterState, MAX_LIST, Saved, StateReader, StateWriter, saved};
pub(super) use self::state::{same, unite_lines};

use super::{
    CombinationCount, DigestColumns, ElementDigests, Estimate, FilterSpec, FilterStats,
    MembershipFilter, Pattern, PatternAnswer, SpecError,
};
use crate::bits::can_allocate;
use crate::hashing::{Checksum, Digest, Digester, shard_of};
use crate::spec::check_range;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// First bytes of a file. The first byte is no text, and conversion of line ends changes the last
/// one.
const MARK: [u8; 8] = *b"\x89FSIEVE\n";

/// Version of the format.
const VERSION: u16 = 4;

/// Longest label, in bytes.
pub const MAX_LABEL: usize = 1024;

/// Most shards.
pub const MAX_SHARDS: usize = 1024;

/// Bytes of the head before the label.
const FIXED: u64 = 44;

/// Bytes read at a time.
const BUFFER: usize = 256 << 10;

/// A filter with everything that queries need: the filters of all shards, their parameters, the
/// seed of the digests, and a label that describes the elements.
#[derive(Debug)]
pub struct SavedFilter {
    spec: FilterSpec,
    seed: u64,
    label: Vec<u8>,
    shards: Vec<Box<dyn MembershipFilter>>,
}

impl SavedFilter {
    /// Creates an empty filter of this many shards, for elements that the label describes.
    ///
    /// # Errors
    ///
    /// The parameters are invalid, the label is longer than [`MAX_LABEL`], there is no shard, or
    /// more than [`MAX_SHARDS`]; the system refuses the memory.
    pub fn empty(
        spec: FilterSpec,
        seed: u64,
        label: Vec<u8>,
        shards: usize,
    ) -> Result<Self, SpecError> {
        spec.check()?;
        check_range("there are", 1..=MAX_SHARDS as u64, "shards", shards as u64, 8)?;
        let bytes = spec.built_bytes().saturating_mul(shards as u64);
        if !can_allocate(bytes) {
            return Err(SpecError::new(format!(
                "the system does not give the {bytes} bytes that this filter takes; ask for a smaller one"
            )));
        }
        let filters = (0..shards).map(|_| spec.build()).collect();
        Self::of_shards(spec, seed, label, filters)
    }

    /// Creates a filter of these shards, each [built](FilterSpec::build) with these parameters,
    /// into which elements were inserted [by their digest](shard_of).
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
        check_range("there are", 1..=MAX_SHARDS as u64, "shards", shards.len() as u64, 8)?;
        Ok(Self { spec, seed, label, shards })
    }

    /// Returns the parameters of the filter of each shard.
    pub const fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Returns the seed of the digests.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the description of the elements, which the creator of the filter wrote.
    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Inserts an element into its shard. Its digests are those of the filter's [seed](Self::seed),
    /// and it needs one for each of the [attributes](FilterSpec::attributes) that the structure
    /// looks at. Neither is checked: others give wrong answers, or panic.
    pub fn insert(&mut self, element: ElementDigests<'_>) {
        let shard = shard_of(element.whole, self.shards.len() as u64);
        self.shards[shard].insert(element);
    }

    /// Inserts many elements in order, each into its shard, by the structure's fast path. The
    /// result is that of [`SavedFilter::insert`] for one after the other.
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

    /// Undoes one insertion of the element by
    /// [`RemovableFilter::remove`](super::RemovableFilter::remove). Returns false, and does
    /// nothing, if the structure does not support it.
    pub fn remove(&mut self, element: ElementDigests<'_>) -> bool {
        let shard = shard_of(element.whole, self.shards.len() as u64);
        let removable = self.shards[shard].as_removable();
        removable.map(|shard| shard.remove(element)).is_some()
    }

    /// Returns whether the element was inserted: true for all that were, and for false positives.
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

    /// Returns whether an element with the attributes of the pattern was inserted. Without a digest
    /// of the whole element all shards are queried, and the strongest answer is returned.
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
                None => PatternAnswer::from(shard.contains(element)),
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

    /// Returns a count of the distinct elements inserted, or `None` if the structure has none.
    /// After a union it comes from the fill, or only has bounds.
    pub fn distinct(&self) -> Option<Estimate> {
        self.shards
            .iter()
            .map(|shard| shard.distinct())
            .try_fold(Estimate::default(), |sum, shard| Some(sum.plus(shard?)))
    }

    /// Returns a count of the distinct combinations of the attributes in `mask` (bit i for
    /// attribute i), or `None` if the structure keeps none or there are several shards: a value may
    /// occur in several.
    pub fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        self.combination(mask).distinct
    }

    /// Returns the counts of the distinct combinations of the attributes in `mask`, as far as the
    /// structure has them and there is only one shard.
    pub fn combination(&self, mask: u32) -> CombinationCount {
        let shard = match &*self.shards {
            [shard] => shard.as_multi_attribute(),
            _ => None,
        };
        CombinationCount::of(shard, mask)
    }

    /// Returns the highest [stage](MembershipFilter::stage) of all shards.
    pub fn stage(&self) -> u32 {
        self.shards.iter().map(|shard| shard.stage()).max().unwrap_or(0)
    }

    /// Returns memory and fill over all shards.
    pub fn stats(&self) -> FilterStats {
        FilterStats::of_all(self.shards.iter().map(|shard| shard.stats()))
    }

    /// Returns the filters of the shards.
    pub fn into_shards(self) -> Vec<Box<dyn MembershipFilter>> {
        self.shards
    }

    /// Replaces the label.
    pub fn set_label(&mut self, label: Vec<u8>) {
        self.label = label;
    }

    /// Makes this the union of both filters: it contains what either contains. Its answers are
    /// those of a filter into which all elements were inserted, except for `scalable` and `dleft`,
    /// which place elements by what came before.
    ///
    /// # Errors
    ///
    /// They differ in structure, parameters, seed, label or shards, or chains have too many links
    /// together. This filter is then unchanged.
    pub fn unite(&mut self, other: &Self) -> Result<(), UnionError> {
        // Elements of another kind may lead to other parameters.
        if self.label != other.label {
            return Err(UnionError::Label);
        }
        if self.spec != other.spec {
            return Err(UnionError::Parameters);
        }
        if self.seed != other.seed {
            return Err(UnionError::Seed);
        }
        if self.shards.len() != other.shards.len() {
            return Err(UnionError::Shards);
        }
        // All or nothing: check all shards before the first is changed.
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
    /// Those of the writer. If the label is longer than [`MAX_LABEL`], nothing is written.
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
    /// The file cannot be read, or is no complete and undamaged filter of a known version.
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
        // The length of a pipe is unknown: trust the length in its head, and check that the pipe
        // ends there.
        let mut bytes = Vec::new();
        (&mut input).take(FIXED).read_to_end(&mut bytes)?;
        let (_, claimed) = read_start(&mut StateReader::new(&mut &*bytes, bytes.len() as u64))?;
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
        let (shards, claimed) = read_start(&mut input)?;
        if claimed != length {
            return Err(LoadError::Length { length, claimed });
        }
        let (seed, self_check) = (input.u64()?, input.u64()?);
        let label_bytes = input.u32()? as usize;
        if label_bytes > MAX_LABEL {
            return Err(input.damaged("its label is longer than any can be"));
        }
        let mut label = vec![0; label_bytes];
        input.bytes(&mut label)?;
        let spec = FilterSpec::load(&mut input)?;
        check_checksum(&mut input)?;
        if self_check != Digester::new(seed).self_check() {
            return Err(LoadError::OtherDigests);
        }
        spec.check()?;
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
        Ok(Self::of_shards(spec, seed, label, filters)?)
    }
}

/// Compares the last eight bytes of a saved filter with the checksum of those before.
pub(crate) fn check_tail(bytes: &[u8]) -> Result<(), LoadError> {
    let (before, stored) = bytes.split_at(bytes.len() - size_of::<u64>());
    if Checksum::of(before).to_le_bytes() == stored {
        return Ok(());
    }
    let (offset, reason) = (before.len() as u64, "its checksum is another one");
    Err(LoadError::Damaged { offset, reason })
}

fn long_label(bytes: usize) -> String {
    format!("a label has at most {MAX_LABEL} bytes, not {bytes}; a shorter one works")
}

/// Reads the beginning of the head: the number of shards, and the length of the file.
fn read_start(input: &mut StateReader<'_>) -> Result<(usize, u64), LoadError> {
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
    Ok((input.u32()? as usize, input.u64()?))
}

fn check_checksum(input: &mut StateReader<'_>) -> Result<(), LoadError> {
    let (offset, expected) = (input.offset(), input.checksum());
    if input.u64()? == expected { Ok(()) } else { Err(LoadError::Checksum { offset }) }
}

/// Checks that the arrays of the empty filters are not larger than the rest of the file, and that
/// the system gives the memory.
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
