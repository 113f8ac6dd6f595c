//! A bitmap: one bit an element, for the recipe that adds a structure.

use super::bits::BitArray;
use super::hashing::{Digest, reduce};
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same, saved};
use super::sizing::bloom_fpr;
use super::spec::{
    Descriptor, FilterKind, Parameters, Query, Reach, Shape, SpecError, array_bits, check_bits,
};
use super::{DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter, Sighting};
use std::io;

/// Parameters of a [`BitmapFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitmapSpec {
    /// Bits (m).
    pub bits: u64,
}

pub(crate) const BITMAP: Descriptor = Descriptor {
    name: "bitmap",
    summary: "One bit an element (Whang et al. 1990)",
    reach: Reach::Whole,
    ignores_repeats: true,
    size: |_, sizing| {
        let (bits, _) = array_bits(FilterKind::Bitmap, 1, sizing)?;
        Ok(BitmapSpec { bits }.into())
    },
    search: None,
};

saved!(BitmapSpec { bits });

impl Parameters for BitmapSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_bits(self.bits.into())
    }

    fn memory_bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(BitmapFilter {
            bits: BitArray::new(self.bits),
            counter: DistinctCounter::default(),
        })
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| bloom_fpr(self.bits as f64, 1, n))
    }

    fn shape(&self) -> Shape {
        Shape::new(1, self.bits, "bits")
    }

    fn describe(&self) -> String {
        format!("m = {} bits", self.bits)
    }
}

/// One bit an element.
#[derive(Clone, Debug)]
pub(crate) struct BitmapFilter {
    bits: BitArray,
    counter: DistinctCounter,
}

impl BitmapFilter {
    fn place(&self, digest: Digest) -> u64 {
        reduce(digest.value(), self.bits.len())
    }
}

impl MembershipFilter for BitmapFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let repeat_probability = self.bits.fill_ratio();
        let sighting = if self.bits.set(self.place(element.whole)) {
            Sighting::First
        } else {
            Sighting::Repeat
        };
        self.counter.record(sighting, || repeat_probability);
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.bits.get(self.place(element.whole))
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.counter = DistinctCounter::default();
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_bits([&self.bits])
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter.estimate(|| self.bits.fill_ratio()))
    }
}

impl FilterState for BitmapFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(Some(&self.counter))?;
        state.bits(&self.bits)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.lasting_distinct()?;
        state.bits(&mut self.bits)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.bits.unite(&other.bits);
        self.counter.unite(&other.counter, of_both, None);
        Ok(())
    }
}
