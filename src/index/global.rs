//! The global level: for each segment and node a filter that says whether any of its regions there
//! may have a value.
//!
//! Each region inserts each of its distinct values once, and removes it once when it is dropped. There
//! are two structures:
//!
//! - `quotient`, the default: a counting quotient filter of 36-bit fingerprints, which removes
//!   exactly, grows in place and is read in parts. With n values its false-positive rate is n / 2^36.
//! - `scalable`, as published: a chain of up to 8 split counting filters with 4-bit counters and P
//!   = 2^-10, so its false-positive rate is at most 0.8 %. A counter that saturated (a value of more
//!   than 14 regions) can no longer be counted down: a filter with such counters is rebuilt from the
//!   records when something is dropped. So is one whose chain is full, with links four times as
//!   large, and one of merged segments.

use super::GlobalFilter;
use super::IndexError;
use super::blocks::{self, Blocks};
use super::disk::{self, FileMark};
use super::elements::{Element, Family, SEED};
use super::journal::NewFiles;
use super::query::Route;
use crate::filters::saved::SavedFilter;
use crate::filters::{
    ElementDigests, FilterSpec, QuotientFilter, QuotientInPlace, Refill, ScalableSpec,
};
use crate::hashing::Digest;
use std::path::Path;

/// Bits of a fingerprint of a quotient filter.
const FINGERPRINT_BITS: u32 = 36;

/// Counters of a part of the smallest links.
const SMALLEST_PART: u64 = 1 << 10;

/// Hash functions, and parts of a link.
const PROBES: u32 = 10;

/// Bits of a counter.
const COUNTER_BITS: u32 = 4;

/// Links of a chain.
const MOST_LINKS: u32 = 8;

/// A filter of the global level.
#[derive(Debug)]
pub(super) enum Global {
    Quotient(QuotientFilter),
    Scalable(Box<SavedFilter>),
}

/// Returns the distinct values of a region as the global level stores them, in the order in which a
/// filter inserts them.
pub(super) fn keys_of(kind: GlobalFilter, elements: &[Vec<Element>; 2]) -> Vec<Digest> {
    let mut keys = Vec::new();
    for (family, elements) in Family::ALL.iter().zip(elements) {
        for element in elements {
            for &mask in family.node_masks() {
                keys.push(family.node_key(mask, |attribute| element[attribute]));
            }
        }
    }
    match kind {
        GlobalFilter::Quotient => QuotientFilter::in_order(&keys),
        GlobalFilter::Scalable => {
            keys.sort_unstable();
            keys.dedup();
            keys
        }
    }
}

fn element(key: &Digest) -> ElementDigests<'_> {
    ElementDigests { whole: *key, attributes: &[] }
}

/// How full a filter is.
pub(super) struct Fill {
    /// False-positive rate, if it is known without queries.
    pub(super) rate: Option<f64>,
    /// Share of the counters in use, saturated counters, and lost increments; `None` without counters.
    pub(super) counters: Option<(f64, u64, u64)>,
}

impl Global {
    /// Returns an empty filter; a chain gets links that are large enough for this many values.
    pub(super) fn new(kind: GlobalFilter, values: u64) -> Self {
        match kind {
            GlobalFilter::Quotient => {
                let filter = QuotientFilter::new(FINGERPRINT_BITS);
                Self::Quotient(filter.expect("there are such fingerprints"))
            }
            GlobalFilter::Scalable => {
                // A chain of d links of m is full with d m ln 2 values.
                let mut part = SMALLEST_PART;
                while (part * u64::from(MOST_LINKS)) as f64 * std::f64::consts::LN_2 < values as f64
                {
                    part *= 4;
                }
                let spec = FilterSpec::Scalable(ScalableSpec {
                    part,
                    probes: PROBES,
                    counter_bits: COUNTER_BITS,
                    most_links: MOST_LINKS,
                    refill: Refill::Newest,
                });
                let filter = SavedFilter::empty(spec, SEED, b"index: node".to_vec(), 1);
                Self::Scalable(Box::new(filter.expect("the parameters are within their bounds")))
            }
        }
    }

    pub(super) fn insert(&mut self, keys: &[Digest]) {
        match self {
            Self::Quotient(filter) => filter.insert_batch(keys),
            Self::Scalable(filter) => keys.iter().for_each(|key| filter.insert(element(key))),
        }
    }

    /// Removes values. Returns false if that is impossible and the filter has to be rebuilt.
    pub(super) fn remove(&mut self, keys: &[Digest]) -> bool {
        match self {
            Self::Quotient(filter) => filter.remove_batch(keys),
            Self::Scalable(filter) => {
                let counters = filter.stats().counters;
                if counters.is_some_and(|counters| counters.saturated > 0) {
                    return false;
                }
                for key in keys {
                    filter.remove(element(key));
                }
            }
        }
        true
    }

    /// Adds the values of another filter. Returns false if that is impossible and the filter has to be
    /// rebuilt.
    pub(super) fn unite(&mut self, other: &Self) -> bool {
        match (self, other) {
            (Self::Quotient(filter), Self::Quotient(other)) => filter.unite(other).is_ok(),
            _ => false,
        }
    }

    pub(super) fn contains(&self, key: Digest) -> bool {
        match self {
            Self::Quotient(filter) => filter.contains(key),
            Self::Scalable(filter) => filter.contains(element(&key)),
        }
    }

    /// Returns whether there is no room for another link, and half of the counters are used.
    pub(super) fn is_full(&self) -> bool {
        let Self::Scalable(filter) = self else { return false };
        let stats = filter.stats();
        stats.memory_bytes >= filter.spec().memory_bytes() && stats.fill_ratio >= 0.49
    }

    pub(super) fn fill(&self) -> Fill {
        match self {
            Self::Quotient(filter) => Fill { rate: Some(filter.rate()), counters: None },
            Self::Scalable(filter) => {
                let stats = filter.stats();
                let counters = stats.counters.unwrap_or_default();
                Fill {
                    rate: None,
                    counters: Some((stats.fill_ratio, counters.saturated, counters.overflows)),
                }
            }
        }
    }

    pub(super) fn write(
        &mut self,
        files: &mut NewFiles,
        path: &Path,
    ) -> Result<FileMark, IndexError> {
        match self {
            Self::Quotient(filter) => {
                let mut bytes = filter.save();
                let mark = blocks::seal(&mut bytes);
                files.write(path, &bytes)?;
                Ok(mark)
            }
            Self::Scalable(filter) => {
                let mut bytes = Vec::new();
                filter.save(&mut bytes).expect("a Vec takes everything");
                files.write(path, &bytes)
            }
        }
    }

    pub(super) fn read(
        kind: GlobalFilter,
        path: &Path,
        mark: FileMark,
    ) -> Result<Self, IndexError> {
        match kind {
            GlobalFilter::Quotient => {
                let filter = QuotientFilter::load(&Blocks::open(path, mark)?.content()?);
                let filter = filter.map_err(|error| IndexError::damaged(path, error))?;
                Ok(Self::Quotient(filter))
            }
            GlobalFilter::Scalable => {
                let bytes = disk::read_checked(path, mark)?;
                let filter = SavedFilter::read(&mut &*bytes, bytes.len() as u64)
                    .map_err(|error| IndexError::damaged(path, error))?;
                let is_chain = matches!(filter.spec(), FilterSpec::Scalable(_));
                if is_chain && filter.seed() == SEED {
                    Ok(Self::Scalable(Box::new(filter)))
                } else {
                    Err(IndexError::damaged(path, "it is no global filter"))
                }
            }
        }
    }
}

/// Returns whether the filter in a file may have an element with the values of one of these routes.
/// Reads only a few blocks of a quotient filter.
pub(super) fn may_have(
    kind: GlobalFilter,
    path: &Path,
    mark: FileMark,
    routes: &[Route],
) -> Result<bool, IndexError> {
    match kind {
        GlobalFilter::Quotient => {
            let blocks = Blocks::open(path, mark)?;
            let filter = QuotientInPlace::open(&blocks, blocks.length)?;
            let filter = filter.map_err(|error| IndexError::damaged(path, error))?;
            any_route(routes, |key| filter.contains(key))
        }
        GlobalFilter::Scalable => {
            let bytes = disk::read_checked(path, mark)?;
            match SavedFilter::read(&mut &*bytes, bytes.len() as u64) {
                Ok(filter) => any_route(routes, |key| Ok(filter.contains(element(&key)))),
                // A filter that cannot be asked may have it.
                Err(_) => Ok(true),
            }
        }
    }
}

/// Returns whether a route exists with all its parts. The largest parts are asked first: they are
/// the rarest.
fn any_route(
    routes: &[Route],
    contains: impl Fn(Digest) -> Result<bool, IndexError>,
) -> Result<bool, IndexError> {
    'routes: for route in routes {
        let given = |attribute: usize| route.attributes[attribute];
        let is_given = |mask: u32| (0..3).all(|at| mask >> at & 1 == 0 || given(at).is_some());
        for &mask in route.family.node_masks().iter().rev() {
            let digest = |attribute| given(attribute).expect("the part has these attributes only");
            if is_given(mask) && !contains(route.family.node_key(mask, digest))? {
                continue 'routes;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn keys(range: std::ops::Range<u32>) -> Vec<Digest> {
        range.map(|number| Digester::new(9).digest(&number.to_le_bytes())).collect()
    }

    fn bytes(filter: &mut Global) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        filter.write(&mut NewFiles::default(), &path).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_removal_undoes_an_insertion_to_the_bit() {
        for kind in GlobalFilter::ALL {
            let mut plain = Global::new(kind, 0);
            plain.insert(&keys(0..500));
            // After a removal a chain no longer counts, which its file says.
            plain.insert(&keys(9000..9001));
            assert!(plain.remove(&keys(9000..9001)));
            let mut changed = Global::new(kind, 0);
            changed.insert(&keys(0..500));
            changed.insert(&keys(300..900));
            assert_ne!(bytes(&mut changed), bytes(&mut plain));
            assert!(changed.remove(&keys(300..900)));
            assert_eq!(bytes(&mut changed), bytes(&mut plain));
        }
    }

    #[test]
    fn what_was_written_is_asked_in_part_and_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let route = |of: u32| {
            let digest = |part: u32| Some(keys(3 * of + part..3 * of + part + 1)[0]);
            Route { family: Family::Flow, attributes: [digest(0), digest(1), digest(2)] }
        };
        let keys_of_route = |route: &Route| {
            let attribute = |at: usize| route.attributes[at].unwrap();
            let masks = route.family.node_masks().iter();
            masks.map(|&mask| route.family.node_key(mask, attribute)).collect::<Vec<_>>()
        };
        for kind in GlobalFilter::ALL {
            let path = folder.path().join(kind.name());
            let mut filter = Global::new(kind, 20_000);
            for of in 0..2000 {
                filter.insert(&keys_of_route(&route(of)));
            }
            let mark = filter.write(&mut NewFiles::default(), &path).unwrap();
            let read = Global::read(kind, &path, mark).unwrap();
            let asks = |of: u32| may_have(kind, &path, mark, &[route(of)]).unwrap();
            for of in (0..2000).step_by(50) {
                assert!(asks(of));
                assert!(keys_of_route(&route(of)).iter().all(|&key| read.contains(key)));
            }
            let wrong = (1_000_000..1_000_500).filter(|&of| asks(of)).count();
            assert!(wrong < 3, "{wrong}");
        }
    }

    #[test]
    fn a_union_has_both_or_is_made_anew() {
        let [mut some, mut others, mut both] =
            std::array::from_fn(|_| Global::new(GlobalFilter::Quotient, 0));
        some.insert(&keys(0..700));
        others.insert(&keys(600..2000));
        both.insert(&keys(0..700));
        both.insert(&keys(600..2000));
        assert!(some.unite(&others));
        assert_eq!(bytes(&mut some), bytes(&mut both));
        let mut chain = Global::new(GlobalFilter::Scalable, 0);
        assert!(!chain.unite(&Global::new(GlobalFilter::Scalable, 0)));
    }

    #[test]
    fn a_chain_says_when_it_is_full_and_when_counters_saturate() {
        let mut filter = Global::new(GlobalFilter::Scalable, 0);
        let mut values = 0;
        while !filter.is_full() {
            filter.insert(&keys(values..values + 100));
            values += 100;
        }
        // 8 links of 2^10 ln 2 each.
        assert!((5000..6500).contains(&values), "{values}");
        let absent = keys(1_000_000..1_020_000);
        let wrong = absent.iter().filter(|key| filter.contains(**key)).count();
        assert!(wrong < 320, "{wrong} of 20 000, about 160 are expected");
        assert!(filter.remove(&[]));
        for _ in 0..15 {
            filter.insert(&keys(0..1));
        }
        assert!(!filter.remove(&keys(0..1)));
        // As it is made anew: with room for as many again.
        let memory = |filter: &Global| match filter {
            Global::Scalable(filter) => filter.spec().memory_bytes(),
            Global::Quotient(_) => 0,
        };
        let larger = Global::new(GlobalFilter::Scalable, 2 * u64::from(values));
        assert_eq!(memory(&larger), 4 * memory(&filter));
    }
}
