//! What the parameters tell of the combinations of attributes that a filter stores.

use super::FilterSpec;
use crate::matrix_sizing::{is_legal, legal_combinations};

impl FilterSpec {
    /// The combinations that the filter stores each by itself, without that of all attributes and the
    /// empty one; bit i for attribute i.
    pub fn stored(&self) -> Vec<u32> {
        match self {
            Self::Subset { combinations, .. } => combinations.iter().map(|c| c.mask).collect(),
            Self::Matrix(matrix) => {
                let full = ((1_u64 << matrix.sizes.len()) - 1) as u32;
                let mut stored = legal_combinations(matrix.sizes.len(), &matrix.cuts);
                stored.retain(|&mask| mask != 0 && mask != full);
                stored
            }
            _ => Vec::new(),
        }
    }

    /// Bits that each value of a combination sets, where it has bits of its own: in a subset filter
    /// (`k_S`).
    pub fn probes_of(&self, mask: u32) -> Option<u32> {
        let Self::Subset { combinations, .. } = self else {
            return None;
        };
        let stored = combinations.iter().find(|stored| stored.mask == mask)?;
        Some(stored.probes)
    }

    /// Whether the structure has an unbiased count of the distinct values of a combination of some of
    /// the attributes ([`MultiAttributeFilter::distinct_of`](super::super::MultiAttributeFilter::distinct_of)).
    pub fn counts_distinct_of(&self, mask: u32) -> bool {
        match self {
            Self::Subset { .. } => self.probes_of(mask).is_some(),
            Self::Matrix(matrix) => {
                mask.is_power_of_two() && (mask.trailing_zeros() as usize) < matrix.sizes.len()
            }
            _ => false,
        }
    }

    /// Whether the structure has a raw count of a combination of some of the attributes
    /// ([`MultiAttributeFilter::first_of`](super::super::MultiAttributeFilter::first_of)).
    pub fn counts_first_of(&self, mask: u32) -> bool {
        match self {
            Self::Subset { .. } => self.probes_of(mask).is_some(),
            Self::Matrix(matrix) => {
                u64::from(mask) >> matrix.sizes.len() == 0 && is_legal(mask, &matrix.cuts)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FilterKind, MatrixSpec, PlannedCombination, Sizing};

    /// The parameters know what the filter does.
    #[test]
    fn parameters_tell_what_filters_store_and_count() {
        let sizing = Sizing::Memory {
            bytes: 4096,
            expected: Some(100),
        };
        let mut specs: Vec<FilterSpec> = [
            FilterKind::Bloom,
            FilterKind::Mdbf,
            FilterKind::Cmdbf,
            FilterKind::Subset,
            FilterKind::Counting,
            FilterKind::Dleft,
            FilterKind::Cartesian,
            FilterKind::Bfm,
        ]
        .into_iter()
        .map(|kind| FilterSpec::new(kind, 3, sizing).unwrap())
        .collect();
        specs.push(FilterSpec::Matrix(MatrixSpec::cbfm(3, 9, &[0b011], 2)));
        let planned = [(0b001, 3), (0b110, 2)];
        specs.push(FilterSpec::Subset {
            attributes: 3,
            lines: 8,
            probes: 4,
            combinations: planned
                .map(|(mask, probes)| PlannedCombination { mask, probes })
                .into(),
        });
        for spec in &specs {
            let filter = spec.build();
            let filter = filter.as_multi_attribute();
            for mask in 1..0b111 {
                let distinct = filter.is_some_and(|filter| filter.distinct_of(mask).is_some());
                assert_eq!(spec.counts_distinct_of(mask), distinct, "{spec:?} {mask:b}");
                let first = filter.is_some_and(|filter| filter.first_of(mask).is_some());
                assert_eq!(spec.counts_first_of(mask), first, "{spec:?} {mask:b}");
                assert_eq!(spec.stored().contains(&mask), first, "{spec:?} {mask:b}");
            }
        }
        assert_eq!(specs[8].stored(), [0b001, 0b010, 0b100, 0b101, 0b110]);
        assert_eq!(specs[9].probes_of(0b110), Some(2));
        assert_eq!(specs[9].probes_of(0b010), None);
    }
}
