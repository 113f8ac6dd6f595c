//! The filter of a region over all combinations of attributes that questions ask for.
//!
//! Its memory is 12 bits for each distinct value of each combination, whatever the structure, so that
//! structures compare.

use super::elements::{Element, FULL, Family, REGION_MASKS, SEED};
use crate::filters::saved::{FilterInPlace, LoadError, SavedFilter};
use crate::filters::{
    DigestColumns, FilterKind, FilterSpec, Pattern, PatternAnswer, Reach, Sizing, SpecError,
    SubsetSpec, Workload,
};
use crate::hashing::Digest;
use std::collections::HashSet;

/// Bits for each value of each combination.
const BITS_A_VALUE: u64 = 12;

/// Bits of a cache line.
const LINE_BITS: u64 = 512;

/// Parameters of a filter of this structure for these elements.
fn spec(kind: FilterKind, elements: &HashSet<Element>) -> Result<FilterSpec, SpecError> {
    let masks = || std::iter::once(FULL).chain(REGION_MASKS);
    let values = masks().map(|mask| (mask, distinct(elements, mask)));
    let values: Vec<(u32, usize)> = values.collect();
    let all: usize = values.iter().map(|&(_, values)| values).sum();
    let lines = (all as u64 * BITS_A_VALUE).div_ceil(LINE_BITS).max(1);
    if kind.reach() != Reach::Planned {
        let sizing = Sizing::Memory {
            bytes: lines * LINE_BITS / 8,
            expected: Some(elements.len() as u64),
        };
        return FilterSpec::new(kind, 3, sizing);
    }
    // Every combination is asked for as often as the others.
    let wanted: Vec<(u32, f64)> = masks().map(|mask| (mask, 1.0)).collect();
    let number = |mask: u32| values.iter().find(|&&(of, _)| of == mask);
    let workload = Workload {
        attributes: 3,
        wanted: &wanted,
        known: 1.0,
        values: &|mask| number(mask).map_or(1.0, |&(_, values)| values as f64),
    };
    Ok(SubsetSpec::planned(&workload, lines).into())
}

/// A saved filter of these elements of a family; nothing if there are none.
pub(super) fn build(
    kind: FilterKind,
    family: Family,
    elements: &HashSet<Element>,
) -> Result<Vec<u8>, SpecError> {
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let label = match family {
        Family::Flow => b"index: src,dst,port".to_vec(),
        Family::Dns => b"index: src,dst,domain".to_vec(),
    };
    let mut filter = SavedFilter::empty(spec(kind, elements)?, SEED, label, 1)?;
    // In one order, so that the same records make the same file.
    let mut sorted: Vec<&Element> = elements.iter().collect();
    sorted.sort_unstable();
    let whole: Vec<Digest> = sorted.iter().map(|element| whole(element)).collect();
    let attributes: Vec<Digest> = sorted.into_iter().flatten().copied().collect();
    filter.insert_batch(DigestColumns {
        whole: &whole,
        attributes: &attributes,
    });
    let mut bytes = Vec::new();
    filter.save(&mut bytes).expect("a Vec takes everything");
    Ok(bytes)
}

fn whole(element: &Element) -> Digest {
    Digest::join(FULL, element.iter().copied())
}

fn distinct(elements: &HashSet<Element>, mask: u32) -> usize {
    let joined = elements.iter().map(|element| {
        let members = (0..3).filter(|attribute| mask >> attribute & 1 == 1);
        Digest::join(mask, members.map(|attribute| element[attribute]))
    });
    joined.collect::<HashSet<_>>().len()
}

/// Whether a filter may have an element with these values.
pub(super) fn may_have(
    attributes: &[Option<Digest>; 3],
    contains_where: impl Fn(Pattern<'_>) -> PatternAnswer,
) -> bool {
    if attributes.iter().all(Option::is_none) {
        return true;
    }
    let all: Option<Vec<Digest>> = attributes.iter().copied().collect();
    let pattern = Pattern {
        whole: all.map(|digests| Digest::join(FULL, digests)),
        attributes,
    };
    contains_where(pattern) != PatternAnswer::Absent
}

/// Reads a saved filter; none where nothing was saved.
pub(super) fn read(bytes: &[u8]) -> Result<Option<SavedFilter>, LoadError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let filter = SavedFilter::read(&mut &*bytes, bytes.len() as u64)?;
    let fits = filter.spec().attributes().is_none_or(|number| number == 3);
    if fits && filter.seed() == SEED {
        Ok(Some(filter))
    } else {
        Err(LoadError::Damaged {
            offset: 0,
            reason: "it is no filter of a region",
        })
    }
}

/// Whether a saved filter may have an element with some of these values; one that cannot be asked may.
pub(super) fn may_have_any<'q>(
    bytes: &[u8],
    mut questions: impl Iterator<Item = &'q [Option<Digest>; 3]>,
) -> bool {
    let mut any = |contains_where: &dyn Fn(Pattern<'_>) -> PatternAnswer| {
        questions.any(|attributes| may_have(attributes, contains_where))
    };
    match FilterInPlace::open(bytes) {
        Ok(Some(filter)) => any(&|pattern| filter.contains_where(pattern)),
        Ok(None) => match read(bytes) {
            Ok(Some(filter)) => any(&|pattern| filter.contains_where(pattern)),
            _ => true,
        },
        Err(_) => true,
    }
}
