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
//! - contains: every attribute is contained. Attributes left open are not asked.
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
//! None: where all attributes occur a new element is called new with probability 0, and no weight
//! repairs that.
//!
//! Reference: Xie, Qin, Wen, Zhang, Xie, "Combine multi-dimension Bloom filter for membership
//! queries", Journal on Communications 29(1), 2008, 56-64, section 2.

use super::bloom::{BloomCore, Positions};
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use super::{
    ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter, Pattern,
    PatternAnswer, Sighting,
};
use crate::hashing::Digest;
use std::io;

/// One standard Bloom filter for each attribute, each with hash functions of its own.
#[derive(Clone, Debug)]
pub struct Mdbf {
    filters: Vec<BloomCore>,
}

impl Mdbf {
    /// `attributes` (L) filters of `bits` (m) each with `probes` (k) functions.
    pub fn new(attributes: usize, bits: u64, probes: u32) -> Self {
        Self {
            filters: (0..attributes)
                .map(|attribute| BloomCore::new(bits, probes, 1 + attribute as u64))
                .collect(),
        }
    }

    /// As in the paper: filters of 2^`bits_log2` bits whose functions are random H3 matrices, for
    /// elements whose digests carry the attributes' raw 32-bit values.
    pub fn with_h3(attributes: usize, bits_log2: u32, probes: u32, seed: u64) -> Self {
        Self {
            filters: (0..attributes)
                .map(|attribute| BloomCore::with_h3(bits_log2, probes, 1 + attribute as u64, seed))
                .collect(),
        }
    }

    /// The addresses of each attribute's value in its filter: what a CMDBF combines.
    pub(super) fn positions<'a>(
        &'a self,
        attributes: &'a [Digest],
    ) -> impl Iterator<Item = Positions<'a>> + 'a {
        self.filters
            .iter()
            .zip(attributes)
            .map(|(filter, &digest)| filter.positions(digest))
    }
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

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.filters
            .iter()
            .zip(element.attributes)
            .all(|(filter, &attribute)| filter.contains(attribute))
    }

    fn clear(&mut self) {
        self.filters.iter_mut().for_each(BloomCore::clear);
    }

    fn stats(&self) -> FilterStats {
        let ones: u64 = self.filters.iter().map(|f| f.bits.ones()).sum();
        let bits: u64 = self.filters.iter().map(|f| f.bits.len()).sum();
        FilterStats {
            memory_bytes: self.filters.iter().map(|f| f.bits.memory_bytes()).sum(),
            fill_ratio: ones as f64 / bits as f64,
            counters: None,
        }
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
        self.filters
            .iter()
            .try_for_each(|filter| state.bits(&filter.bits))
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.filters
            .iter_mut()
            .try_for_each(|filter| state.bits(&mut filter.bits))
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
        // One value, or none, is all that there is to ask; several may stand in different elements.
        if given < 2 {
            PatternAnswer::Present
        } else {
            PatternAnswer::PresentApart
        }
    }
}
