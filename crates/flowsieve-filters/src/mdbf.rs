//! MDBF: one Bloom filter an attribute.
//!
//! # Memory
//!
//! ```text
//!     (a₁, a₂, …, a_L)
//!       │   │       └──► k positions in filter L   (m bits)
//!       │   └──────────► k positions in filter 2   (m bits)
//!       └──────────────► k positions in filter 1   (m bits)
//! ```
//!
//! # Operations
//!
//! - insert: insert each attribute into its own filter; the element was new if any attribute was.
//! - contains: every attribute is contained. Attributes that are not given are not looked up.
//!
//! Cost O(L k).
//!
//! # Formulas
//!
//! With f = (1 - e^(-kn/m))^k, an element *none of whose attribute values occurs* is a false
//! positive with probability f^L (formula 3). This is the best case: an element whose values all
//! occur, but not together, is **always** a false positive (a combination error), so on traffic,
//! where hosts talk to many hosts, MDBF loses a fifth to a half of the pairs.
//!
//! # Distinct elements
//!
//! No count: if all of its attributes occur, a new element is called new with probability 0, and no
//! weight makes up for that.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, Mdbf, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let pair = |src: &str, dst: &str| [src, dst].map(|host| hasher.digest(host.as_bytes()));
//! let mut filter = Mdbf::new(2, 10_000, 4);
//! filter.insert(ElementDigests::of_attributes(&pair("a", "b")));
//! filter.insert(ElementDigests::of_attributes(&pair("c", "d")));
//! let [a, d] = pair("a", "d");
//! // One attribute is not given.
//! let pattern = Pattern { whole: None, attributes: &[Some(a), None] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::Present);
//! // Known hosts that never talked to each other look like a pair.
//! assert!(filter.contains(ElementDigests::of_attributes(&[a, d])));
//! ```
//!
//! Reference: Xie, Qin, Wen, Zhang, Xie, "Combine multi-dimension Bloom filter for membership
//! queries", Journal on Communications 29(1), 2008, 56-64, section 2.

use super::bloom::BloomCore;
use super::matrix_sizing::{MAX_ATTRIBUTES, all_of, known_or, members};
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same, saved};
use super::sizing::{MAX_PROBES, bloom_fpr, table_size};
use super::spec::{
    Descriptor, FilterKind, FilterSpec, LEAST_ARRAY_BITS, Parameters, Query, Reach, Search, Shape,
    Sizing, SpecError, Workload, array_bits, check_bits, check_probes, check_range, probes_for,
};
use super::{
    DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, PatternColumns, Sighting,
};
use crate::bits::BitArray;
use crate::hashing::{Digest, ProbeBatch};
use std::io;

/// Parameters of an [`Mdbf`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MdbfSpec {
    /// Number of attributes (L).
    pub attributes: usize,
    /// Bits of each of the L arrays (m).
    pub bits: u64,
    /// Hash functions (k).
    pub probes: u32,
}

pub(crate) const MDBF: Descriptor = Descriptor {
    name: "mdbf",
    summary: "One Bloom filter an attribute (Xie et al. 2008)",
    reach: Reach::Attributes,
    ignores_repeats: true,
    size: |attributes, sizing| {
        check_attributes(attributes)?;
        if let Sizing::Rate { fpr, .. } = sizing
            && attributes > 1
        {
            // The published rate of an MDBF, formula (3), is for values that do not occur at all.
            return Err(SpecError::new(format!(
                "an mdbf takes values that all occur, apart, for an element, so no size has a rate of {fpr}; choose cmdbf, or size it by its memory"
            )));
        }
        let (bits, expected) = array_bits(FilterKind::Mdbf, attributes as u64, sizing)?;
        Ok(MdbfSpec { attributes, bits, probes: probes_for(bits, expected, MAX_PROBES as u32) }
            .into())
    },
    search: Some(Search {
        in_memory: |workload, bytes| {
            fit(workload, (bytes * 8 / workload.attributes as u64).max(LEAST_ARRAY_BITS))
        },
        most: 1 << 48,
        fit,
        by_attribute_rate: Some(|workload, fpr| {
            let singles = (0..workload.attributes).map(|one| (workload.values)(1 << one));
            let (bits, probes) = table_size(fpr, singles.fold(0.0, f64::max));
            MdbfSpec { attributes: workload.attributes, bits, probes }.into()
        }),
        out_of_reach: no_size,
    }),
};

fn fit(workload: &Workload<'_>, bits: u64) -> FilterSpec {
    let attributes = workload.attributes;
    workload.best_probes(|probes| MdbfSpec { attributes, bits, probes }.into())
}

pub(crate) fn no_size(_lowest: f64) -> String {
    "no size has this rate: values that all occur look like an element".to_owned()
}

/// Checks the number of attributes of a filter with an array for each.
pub(crate) fn check_attributes(attributes: usize) -> Result<(), SpecError> {
    let has = "a filter of this kind is for";
    check_range(has, 1..=MAX_ATTRIBUTES as u64, "attributes", attributes as u64, 3)
}

/// Returns the rate of a query to arrays of `bits`, one for each attribute; an array says yes to
/// each value that occurs.
pub(crate) fn rate_of_attributes(bits: u64, probes: u32, query: &Query<'_>) -> f64 {
    let rate = |attribute: usize| {
        let fpr = bloom_fpr(bits as f64, probes, (query.values)(1 << attribute));
        known_or(query.known.of(1 << attribute), fpr)
    };
    members(query.mask).map(rate).product()
}

/// Returns caveats about the rates of filters with an array for each attribute.
pub(crate) fn remarks_of_attributes(workload: &Workload<'_>) -> Vec<String> {
    let remark = "part of the attributes is answered by the attributes' own filters, which cannot tell values that occur apart";
    if workload.asks_for_known_parts() { vec![remark.to_owned()] } else { Vec::new() }
}

saved!(MdbfSpec { attributes, bits, probes });

impl Parameters for MdbfSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_attributes(self.attributes)?;
        check_bits(u128::from(self.bits) * self.attributes as u128)
    }

    fn memory_bytes(&self) -> u64 {
        (self.attributes as u64 * self.bits).div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn attributes(&self) -> Option<usize> {
        Some(self.attributes)
    }

    fn counts_distinct(&self) -> bool {
        false
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(Mdbf::new(self.attributes, self.bits, self.probes))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        Some(rate_of_attributes(self.bits, self.probes, query))
    }

    fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        remarks_of_attributes(workload)
    }

    fn shape(&self) -> Shape {
        Shape {
            arrays: (self.attributes > 1).then_some(self.attributes as u32),
            ..Shape::new(self.probes, self.bits, "bits")
        }
    }

    fn describe(&self) -> String {
        let (attributes, bits, k) = (self.attributes, self.bits, self.probes);
        format!("{attributes} arrays of m = {bits} bits, k = {k}")
    }
}

/// One standard Bloom filter for each attribute, with independent hash functions.
#[derive(Clone, Debug)]
pub struct Mdbf {
    filters: Vec<BloomCore>,
}

impl Mdbf {
    /// Creates `attributes` (L) filters of `bits` (m) each with `probes` (k) functions.
    pub fn new(attributes: usize, bits: u64, probes: u32) -> Self {
        Self::of(attributes, |attribute| BloomCore::new(bits, probes, 1 + attribute))
    }

    /// Creates filters as in the paper: of 2^`bits_log2` bits, with random H3 matrices as hash
    /// functions, for elements whose digests carry the attributes' raw 32-bit values.
    pub fn with_h3(attributes: usize, bits_log2: u32, probes: u32, seed: u64) -> Self {
        Self::of(attributes, |attribute| BloomCore::with_h3(bits_log2, probes, 1 + attribute, seed))
    }

    /// Creates the filter of each attribute by its number.
    pub(super) fn of(attributes: usize, filter: impl FnMut(u64) -> BloomCore) -> Self {
        Self { filters: (0..attributes as u64).map(filter).collect() }
    }

    /// Inserts the attributes of up to [`ProbeBatch::MOST`] elements in order. Makes `fresh`
    /// nonzero for elements with a new attribute.
    pub(super) fn insert_all(&mut self, attributes: &[Digest], fresh: &mut [u8]) {
        let arity = self.filters.len();
        for (attribute, filter) in self.filters.iter_mut().enumerate() {
            let of_one = &mut [0; ProbeBatch::MOST][..fresh.len()];
            let digests = attributes.iter().skip(attribute).step_by(arity);
            filter.insert_all(digests.copied(), of_one);
            for (fresh, &of_one) in fresh.iter_mut().zip(&*of_one) {
                *fresh |= of_one;
            }
        }
    }

    /// Clears `there` for each of up to [`ProbeBatch::MOST`] elements that has an attribute in
    /// `mask` that is not contained. `attributes` holds these attributes, one element after the
    /// other.
    pub(super) fn keep_contained(&self, mask: u32, attributes: &[Digest], there: &mut [u8]) {
        let given = mask.count_ones() as usize;
        for (place, member) in members(mask).enumerate() {
            let digests = attributes.iter().skip(place).step_by(given);
            self.filters[member].keep_contained(digests.copied(), there);
        }
    }

    /// Iterates over the arrays of the attributes.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &BitArray> {
        self.filters.iter().map(|filter| &filter.bits)
    }

    /// XORs the addresses of each attribute's value under the functions of its filter into
    /// `addresses`.
    pub(super) fn xor_addresses(&self, attributes: &[Digest], addresses: &mut [u64; MAX_PROBES]) {
        for (filter, &digest) in self.filters.iter().zip(attributes) {
            filter.xor_addresses(digest, addresses);
        }
    }
}

/// Returns the answer if all `given` attributes occur: several may occur in different elements.
const fn present(given: usize) -> PatternAnswer {
    if given < 2 { PatternAnswer::Present } else { PatternAnswer::PresentApart }
}

impl MembershipFilter for Mdbf {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let mut sighting = Sighting::Repeat;
        for (filter, &attribute) in self.filters.iter_mut().zip(element.attributes) {
            if filter.insert(attribute) == Sighting::First {
                sighting = Sighting::First;
            }
        }
        sighting
    }

    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        let arity = elements.arity().max(1);
        for attributes in elements.attributes.chunks(ProbeBatch::MOST * arity) {
            let fresh = &mut [0; ProbeBatch::MOST][..attributes.len() / arity];
            self.insert_all(attributes, fresh);
            sightings.extend(Sighting::of_all_fresh(fresh));
        }
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.filters
            .iter()
            .zip(element.attributes)
            .all(|(filter, &attribute)| filter.contains(attribute))
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        let arity = elements.arity().max(1);
        for attributes in elements.attributes.chunks(ProbeBatch::MOST * arity) {
            let there = &mut [1; ProbeBatch::MOST][..attributes.len() / arity];
            self.keep_contained(all_of(arity), attributes, there);
            answers.extend(there.iter().map(|&there| there != 0));
        }
    }

    fn clear(&mut self) {
        self.filters.iter_mut().for_each(BloomCore::clear);
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_bits(self.arrays())
    }

    fn distinct(&self) -> Option<Estimate> {
        None
    }

    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        Some(self)
    }
}

impl FilterState for Mdbf {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        self.filters.iter().try_for_each(|filter| state.bits(&filter.bits))
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.filters.iter_mut().try_for_each(|filter| state.bits(&mut filter.bits))
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        for (filter, more) in self.filters.iter_mut().zip(&other.filters) {
            filter.bits.unite(&more.bits);
        }
        Ok(())
    }
}

impl MultiAttributeFilter for Mdbf {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let mut given = 0;
        for (filter, attribute) in self.filters.iter().zip(pattern.attributes) {
            if let Some(digest) = *attribute {
                given += 1;
                if !filter.contains(digest) {
                    return PatternAnswer::Absent;
                }
            }
        }
        present(given)
    }

    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        let given = patterns.given();
        for attributes in patterns.attributes.chunks(ProbeBatch::MOST * given) {
            let there = &mut [1; ProbeBatch::MOST][..attributes.len() / given];
            self.keep_contained(patterns.mask, attributes, there);
            answers.extend(there.iter().map(|&there| match there {
                0 => PatternAnswer::Absent,
                _ => present(given),
            }));
        }
    }
}
