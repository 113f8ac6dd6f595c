//! From a row of a plan to the parameters of the filter that it describes.

use super::{Design, PlanRow, Structure};
use crate::filters::{
    BloomLayout, Combination, FilterKind, FilterSpec, IndexMap, MatrixSpec, PlannedCombination,
    Refill,
};

impl PlanRow {
    /// The filter of this row, for elements of `attributes` attributes: with the row's own parameters and
    /// bytes. `None` if the structure is no filter, or none that can be built.
    pub fn spec(&self, attributes: usize) -> Option<FilterSpec> {
        let spec = self.described(attributes).filter(|_| self.fits)?;
        spec.check().is_ok().then_some(spec)
    }

    /// A filter that is too large, or has too many combinations, does not fit, and the row says why.
    pub(super) fn refuse_what_cannot_be_built(&mut self, attributes: usize) {
        if let (true, Some(spec)) = (self.fits, self.described(attributes))
            && let Err(error) = spec.check()
        {
            self.fits = false;
            self.notes.push(error.to_string());
        }
    }

    /// The filter, whether it can be built or not.
    fn described(&self, attributes: usize) -> Option<FilterSpec> {
        let Structure::Filter(kind) = self.structure else {
            return None;
        };
        self.design.as_ref()?.spec(kind, attributes)
    }
}

impl Design {
    fn spec(&self, kind: FilterKind, attributes: usize) -> Option<FilterSpec> {
        Some(match kind {
            FilterKind::Bloom => FilterSpec::Bloom {
                bits: self.size?,
                probes: self.probes?,
                layout: BloomLayout::Anywhere,
            },
            FilterKind::Mdbf => FilterSpec::Mdbf {
                attributes,
                bits: self.size?,
                probes: self.probes?,
            },
            FilterKind::Cmdbf => FilterSpec::Cmdbf {
                attributes,
                bits: self.size?,
                probes: self.probes?,
                combination: Combination::default(),
            },
            FilterKind::Subset => FilterSpec::Subset {
                attributes,
                lines: self.size?,
                probes: self.probes?,
                combinations: self
                    .stored
                    .iter()
                    .map(|&(mask, probes)| PlannedCombination { mask, probes })
                    .collect(),
            },
            FilterKind::Counting => FilterSpec::Counting {
                counters: self.size?,
                probes: self.probes?,
                counter_bits: self.counter_bits?,
            },
            FilterKind::SplitCounting => FilterSpec::SplitCounting {
                part: self.size?,
                probes: self.probes?,
                counter_bits: self.counter_bits?,
            },
            FilterKind::Scalable => FilterSpec::Scalable {
                part: self.size?,
                probes: self.probes?,
                counter_bits: self.counter_bits?,
                most_links: self.arrays?,
                refill: Refill::default(),
            },
            FilterKind::Dleft => FilterSpec::Dleft {
                // A power of two of buckets.
                bucket_bits: self.size?.checked_ilog2()?,
                remainder_bits: self.remainder_bits?,
                counter_bits: self.counter_bits?,
            },
            FilterKind::Cartesian => FilterSpec::Cartesian {
                attributes,
                size: self.size?,
                probes: self.probes?,
            },
            FilterKind::Bfm | FilterKind::Cbfm | FilterKind::Wcbfm => {
                FilterSpec::Matrix(MatrixSpec {
                    sizes: match self.size {
                        Some(size) => vec![size; attributes],
                        None => self.sizes.clone(),
                    },
                    cuts: self.cuts.clone(),
                    probes: self.probes?,
                    index_map: IndexMap::default(),
                })
            }
        })
    }
}
