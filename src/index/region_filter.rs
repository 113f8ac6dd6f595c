//! The filter of a region, over all combinations of attributes that a query may have.
//!
//! A region never changes, so its filter may be a [`RibbonFilter`] of all distinct values of each
//! combination, which is the default. Any structure for elements of several attributes can replace it,
//! with 12 bits for each of these values, so that structures can be compared.

use super::elements::{Element, FULL, Family, REGION_MASKS, SEED};
use crate::filters::saved::{LoadError, SavedFilter};
use crate::filters::{
    DigestColumns, FilterKind, FilterSpec, Pattern, PatternAnswer, Reach, RibbonFilter,
    RibbonInPlace, Sizing, SpecError, SubsetSpec, Workload,
};
use crate::hashing::Digest;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Bits for each value of each combination.
const BITS_A_VALUE: u64 = 12;

/// Bits of a fingerprint in a ribbon filter.
const FINGERPRINT_BITS: u32 = 10;

/// Structure of the filters of regions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum RegionFilter {
    /// A ribbon filter, built from all values of a region at once.
    #[default]
    Ribbon,
    /// A structure that inserts elements of several attributes one by one.
    Structure(FilterKind),
}

impl RegionFilter {
    /// Returns all structures.
    #[doc(hidden)]
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = FilterKind::all();
        let kinds = kinds.filter(|kind| !kind.is_of_whole());
        std::iter::once(Self::Ribbon).chain(kinds.map(Self::Structure))
    }

    /// Returns the structure of this name.
    #[doc(hidden)]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|filter| filter.name() == name)
    }

    /// Returns its name in options and in the catalogue.
    #[doc(hidden)]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ribbon => "ribbon",
            Self::Structure(kind) => kind.name(),
        }
    }

    /// Returns the short description.
    #[doc(hidden)]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Ribbon => {
                "Ribbon filter, made at once and never changed (Dillinger and Walzer 2021)"
            }
            Self::Structure(kind) => kind.summary(),
        }
    }
}

impl From<RegionFilter> for &'static str {
    fn from(filter: RegionFilter) -> Self {
        filter.name()
    }
}

impl TryFrom<String> for RegionFilter {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("no filter of a region is called {name:?}"))
    }
}

impl From<FilterKind> for RegionFilter {
    fn from(kind: FilterKind) -> Self {
        Self::Structure(kind)
    }
}

/// Bits of a cache line.
const LINE_BITS: u64 = 512;

/// Returns the parameters of a filter of this structure for these elements.
fn spec(kind: FilterKind, elements: &[Element]) -> Result<FilterSpec, SpecError> {
    let values = REGION_MASKS.map(|mask| (mask, distinct(elements, mask)));
    let all: usize = values.iter().map(|&(_, values)| values).sum();
    let lines = (all as u64 * BITS_A_VALUE).div_ceil(LINE_BITS).max(1);
    if kind.reach() != Reach::Planned {
        let sizing =
            Sizing::Memory { bytes: lines * LINE_BITS / 8, expected: Some(elements.len() as u64) };
        return FilterSpec::new(kind, 3, sizing);
    }
    // Every combination is asked for as often as the others.
    let wanted = REGION_MASKS.map(|mask| (mask, 1.0));
    let number = |mask: u32| values.iter().find(|&&(of, _)| of == mask);
    let workload = Workload {
        attributes: 3,
        wanted: &wanted,
        known: 1.0,
        values: &|mask| number(mask).map_or(1.0, |&(_, values)| values as f64),
    };
    Ok(SubsetSpec::planned(&workload, lines).into())
}

/// Builds a saved filter of these distinct elements of a family; empty if there are none.
pub(super) fn build(
    filter: RegionFilter,
    family: Family,
    elements: &[Element],
) -> Result<Vec<u8>, SpecError> {
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let RegionFilter::Structure(kind) = filter else {
        let masks = REGION_MASKS.into_iter();
        let keys = masks.flat_map(|mask| elements.iter().map(move |of| joined(of, mask)));
        return Ok(ribbon(&keys.collect::<Vec<Digest>>()));
    };
    let label = match family {
        Family::Flow => b"index: src,dst,port".to_vec(),
        Family::Dns => b"index: src,dst,domain".to_vec(),
    };
    let mut filter = SavedFilter::empty(spec(kind, elements)?, SEED, label, 1)?;
    // The saved bytes may depend on the order.
    let mut elements = elements.to_vec();
    elements.sort_unstable();
    let whole: Vec<Digest> = elements.iter().map(whole).collect();
    let attributes: Vec<Digest> = elements.iter().flatten().copied().collect();
    filter.insert_batch(DigestColumns { whole: &whole, attributes: &attributes });
    let mut bytes = Vec::new();
    filter.save(&mut bytes).expect("a Vec takes everything");
    Ok(bytes)
}

/// Joins all attributes of an element.
pub(super) fn whole(element: &Element) -> Digest {
    joined(element, FULL)
}

/// Joins the values of a combination.
fn joined(element: &Element, mask: u32) -> Digest {
    let members = (0..3).filter(|attribute| mask >> attribute & 1 == 1);
    Digest::join(mask, members.map(|attribute| element[attribute]))
}

fn distinct(elements: &[Element], mask: u32) -> usize {
    let joined = elements.iter().map(|element| joined(element, mask));
    joined.collect::<HashSet<_>>().len()
}

/// A saved filter that can be asked.
enum Loaded<'a> {
    Ribbon(RibbonInPlace<'a>),
    Structure(Box<SavedFilter>),
}

impl<'a> Loaded<'a> {
    /// Reads a saved filter; a ribbon filter by `open`, which may check its checksum.
    fn read(
        bytes: &'a [u8],
        open: fn(&'a [u8]) -> Result<RibbonInPlace<'a>, LoadError>,
    ) -> Result<Self, LoadError> {
        if RibbonInPlace::is_one(bytes) {
            return open(bytes).map(Self::Ribbon);
        }
        let filter = SavedFilter::read(&mut &*bytes, bytes.len() as u64)?;
        let fits = filter.spec().attributes().is_none_or(|number| number == 3);
        if fits && filter.seed() == SEED {
            Ok(Self::Structure(Box::new(filter)))
        } else {
            Err(LoadError::Damaged { offset: 0, reason: "it is no filter of a region" })
        }
    }

    /// Returns whether it may have an element with these values.
    fn may_have(&self, attributes: &[Option<Digest>; 3]) -> bool {
        let given = attributes.iter().zip(0..).filter(|(value, _)| value.is_some());
        let mask = given.fold(0_u32, |mask, (_, attribute)| mask | 1 << attribute);
        if mask == 0 {
            return true;
        }
        let joined = Digest::join(mask, attributes.iter().copied().flatten());
        match self {
            Self::Ribbon(filter) => filter.contains(joined),
            Self::Structure(filter) => {
                let pattern = Pattern { whole: (mask == FULL).then_some(joined), attributes };
                filter.contains_where(pattern) != PatternAnswer::Absent
            }
        }
    }
}

/// Returns the saved ribbon filter of these keys. It is empty, and excludes nothing, if no hash
/// function holds them: somebody may have chosen them so.
fn ribbon(keys: &[Digest]) -> Vec<u8> {
    let filter = RibbonFilter::build(keys, FINGERPRINT_BITS);
    filter.map_or_else(|_| Vec::new(), |filter| filter.save())
}

/// Returns whether a saved filter has all of these elements; an empty filter has every element.
/// Compares its checksums.
pub(super) fn has_all(bytes: &[u8], elements: &[Element]) -> Result<bool, LoadError> {
    if bytes.is_empty() {
        return Ok(true);
    }
    let filter = Loaded::read(bytes, RibbonInPlace::check)?;
    Ok(elements.iter().all(|element| filter.may_have(&element.map(Some))))
}

/// Returns whether a saved filter may have an element with the values of one of these queries. A filter
/// that cannot be read may.
pub(super) fn may_have_any<'q>(
    bytes: &[u8],
    mut questions: impl Iterator<Item = &'q [Option<Digest>; 3]>,
) -> bool {
    Loaded::read(bytes, RibbonInPlace::open)
        .map_or(true, |filter| questions.any(|attributes| filter.may_have(attributes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_could_not_be_built_excludes_nothing() {
        // Keys that all four hash functions put at the beginning, too many of them for each.
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let streams = (0..4)
            .map(|function| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(0x2000_0001 + 4 * function));
        let keys = streams.flat_map(|stream| {
            let starts =
                move |&key: &u64| fold(key ^ stream, 0xbf58_476d_1ce4_e5b9) < u64::MAX / 7000;
            (0..).filter(starts).take(140)
        });
        let keys: Vec<Digest> = keys.map(Digest::from_value).collect();
        assert!(ribbon(&keys).is_empty());
        assert!(!ribbon(&keys[..50]).is_empty());
        let element = [1, 2, 3].map(Digest::from_value);
        assert!(matches!(has_all(&[], &[element]), Ok(true)));
        assert!(may_have_any(&[], std::iter::once(&element.map(Some))));
    }
}
