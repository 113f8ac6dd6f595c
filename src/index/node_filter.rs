//! The global level: a scalable split counting filter a node, which says whether any of its regions may
//! have a value.
//!
//! - Each region inserts each of its distinct values once, and takes each back once when it is dropped.
//! - Counters have 4 bits. One that saturated (a value of more than 14 regions) can no longer be counted
//!   down; a filter with such counters is made anew from the records when something is dropped. With 8 bits
//!   the filter is twice as large, and an archive of a few hundred regions has values that saturate those too.
//! - The chain has up to 8 links with P = 2^-10, so at most 0.8 % of what is absent gets through. A
//!   ninth link would be due when the newest is full: then the filter is made anew with links four times
//!   as large, and values move at most once for every three that came since.

use super::IndexError;
use super::elements::{Element, Family, SEED};
use super::query::Route;
use crate::filters::saved::{FilterInPlace, SavedFilter};
use crate::filters::{ElementDigests, FilterSpec, Refill, ScalableSpec};
use crate::hashing::Digest;
use std::collections::HashSet;
use std::path::Path;

/// Counters of a part of the smallest links.
const SMALLEST_PART: u64 = 1 << 10;

/// Hash functions, and parts of a link.
const PROBES: u32 = 10;

/// Bits of a counter.
const COUNTER_BITS: u32 = 4;

/// Links of a chain.
const MOST_LINKS: u32 = 8;

/// The filter of a node.
#[derive(Debug)]
pub(super) struct NodeFilter(SavedFilter);

/// Distinct values of a region, as a node's filter stores them, in ascending order.
pub(super) fn keys_of(elements: &[HashSet<Element>; 2]) -> Vec<Digest> {
    let mut keys = Vec::new();
    for (family, elements) in Family::ALL.iter().zip(elements) {
        for element in elements {
            for &mask in family.node_masks() {
                keys.push(family.node_key(mask, |attribute| element[attribute]));
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn element(key: &Digest) -> ElementDigests<'_> {
    ElementDigests {
        whole: *key,
        attributes: &[],
    }
}

impl NodeFilter {
    /// An empty one, with links large enough for this many values.
    pub(super) fn new(values: u64) -> Self {
        // A chain of d links of m is full with d m ln 2 values.
        let mut part = SMALLEST_PART;
        while (part * u64::from(MOST_LINKS)) as f64 * std::f64::consts::LN_2 < values as f64 {
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
        Self(filter.expect("the parameters are within their bounds"))
    }

    pub(super) fn insert(&mut self, keys: &[Digest]) {
        for key in keys {
            self.0.insert(element(key));
        }
    }

    pub(super) fn remove(&mut self, keys: &[Digest]) {
        for key in keys {
            self.0.remove(element(key));
        }
    }

    pub(super) fn contains(&self, key: Digest) -> bool {
        self.0.contains(element(&key))
    }

    /// Whether some of its counters can no longer be counted down.
    pub(super) fn is_saturated(&self) -> bool {
        let counters = self.0.stats().counters;
        counters.is_some_and(|counters| counters.saturated > 0)
    }

    /// Whether there is no room for another link, and half of what there is is used.
    pub(super) fn is_full(&self) -> bool {
        let stats = self.0.stats();
        stats.memory_bytes >= self.0.spec().memory_bytes() && stats.fill_ratio >= 0.49
    }

    /// Share of counters in use, counters that saturated, increments that were lost.
    pub(super) fn fill(&self) -> (f64, u64, u64) {
        let stats = self.0.stats();
        let counters = stats.counters.unwrap_or_default();
        (stats.fill_ratio, counters.saturated, counters.overflows)
    }

    pub(super) fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.save(&mut bytes).expect("a Vec takes everything");
        bytes
    }

    pub(super) fn load(path: &Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let filter = SavedFilter::read(&mut &*bytes, bytes.len() as u64)
            .map_err(|error| IndexError::damaged(path, error))?;
        let is_chain = matches!(filter.spec(), FilterSpec::Scalable(_));
        if is_chain && filter.seed() == SEED {
            Ok(Self(filter))
        } else {
            Err(IndexError::damaged(path, "it is no filter of a node"))
        }
    }
}

/// Whether a node whose global filter was saved as `bytes` may have an element with the values of one of
/// these routes; one that cannot be asked may.
pub(super) fn node_may_have(bytes: &[u8], routes: &[Route]) -> bool {
    let Ok(Some(filter)) = FilterInPlace::open(bytes) else {
        return true;
    };
    routes.iter().any(|route| {
        let given = |attribute: usize| route.attributes[attribute];
        let is_given = |mask: u32| (0..3).all(|at| mask >> at & 1 == 0 || given(at).is_some());
        let mut parts = route.family.node_masks().iter();
        parts.all(|&mask| {
            let digest = |attribute| given(attribute).expect("the part has these attributes only");
            !is_given(mask) || filter.contains(route.family.node_key(mask, digest))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn keys(range: std::ops::Range<u32>) -> Vec<Digest> {
        range
            .map(|number| Digester::new(9).digest(&number.to_le_bytes()))
            .collect()
    }

    #[test]
    fn a_removal_restores_every_counter() {
        let mut plain = NodeFilter::new(0);
        plain.insert(&keys(0..500));
        // After a removal a filter no longer counts, which its file says.
        plain.insert(&keys(9000..9001));
        plain.remove(&keys(9000..9001));
        let mut changed = NodeFilter::new(0);
        changed.insert(&keys(0..500));
        changed.insert(&keys(300..900));
        assert_ne!(changed.save(), plain.save());
        changed.remove(&keys(300..900));
        assert_eq!(changed.save(), plain.save());
    }

    #[test]
    fn a_filter_says_when_it_is_full_and_when_counters_saturate() {
        let mut filter = NodeFilter::new(0);
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
        assert!(!filter.is_saturated());
        for _ in 0..15 {
            filter.insert(&keys(0..1));
        }
        assert!(filter.is_saturated());
        // As it is made anew: with room for as many again.
        let larger = NodeFilter::new(2 * u64::from(values));
        let bytes = |filter: &NodeFilter| filter.0.spec().memory_bytes();
        assert_eq!(bytes(&larger), 4 * bytes(&filter));
    }
}
