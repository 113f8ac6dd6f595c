//! Parameters of a CMDBF.

use super::{Cmdbf, Combination};
use crate::MembershipFilter;
use crate::mdbf::{check_attributes, no_size, rate_of_attributes, remarks_of_attributes};
use crate::saved::saved;
use crate::sizing::{MAX_PROBES, bloom_fpr, table_size};
use crate::spec::{
    Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Search, Shape, SpecError,
    Workload, array_bits, check_bits, check_probes, probes_for,
};

/// Parameters of a [`Cmdbf`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CmdbfSpec {
    /// Number of attributes (L).
    pub attributes: usize,
    /// Bits of each of the L + 1 arrays (m).
    pub bits: u64,
    /// Hash functions (k).
    pub probes: u32,
    /// How combined addresses are made.
    pub combination: Combination,
}

pub(crate) const CMDBF: Descriptor = Descriptor {
    name: "cmdbf",
    summary: "MDBF with a combined filter, hashed jointly (after Xie et al. 2008)",
    reach: Reach::Attributes,
    ignores_repeats: true,
    size: |attributes, sizing| {
        // All values of what is asked may have occurred, apart: then the arrays of the attributes
        // say yes, and only the last one tells.
        let (bits, expected) = array_bits(FilterKind::Cmdbf, attributes as u64 + 1, sizing)?;
        let probes = probes_for(bits, expected, MAX_PROBES as u32);
        Ok(with(attributes, bits, probes))
    },
    search: Some(Search {
        size_in: |attributes, bytes| bytes / (attributes as u64 + 1) / 8 * 64,
        least: 64,
        most: 1 << 48,
        fit: |workload, bits| {
            workload.best_probes(|probes| with(workload.attributes, bits, probes))
        },
        by_attribute_rate: Some(|workload, fpr| {
            let (bits, probes) = table_size(fpr, (workload.values)(workload.full()));
            with(workload.attributes, bits, probes)
        }),
        out_of_reach: no_size,
    }),
};

fn with(attributes: usize, bits: u64, probes: u32) -> FilterSpec {
    CmdbfSpec { attributes, bits, probes, combination: Combination::default() }.into()
}

saved!(CmdbfSpec { attributes, bits, probes, combination });
saved!(Combination {
    Joint = 0,
    XorIndependent = 1,
    XorSame = 2;
    else "a combination of addresses that is not known"
});

impl Parameters for CmdbfSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_attributes(self.attributes)?;
        check_bits(u128::from(self.bits) * (self.attributes as u128 + 1))?;
        if self.combination != Combination::Joint && !self.bits.is_power_of_two() {
            return Err(SpecError::new(format!(
                "XORed addresses need arrays of a power of two of bits, not {}; {} works",
                self.bits,
                self.bits.next_power_of_two()
            )));
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        (self.attributes as u64 + 1) * self.bits.div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn attributes(&self) -> Option<usize> {
        Some(self.attributes)
    }

    fn counts_distinct(&self) -> bool {
        self.combination != Combination::XorSame
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(Cmdbf::new(self.attributes, self.bits, self.probes, self.combination))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        let attributes = rate_of_attributes(self.bits, self.probes, query);
        let combined = query.of_whole(|n| bloom_fpr(self.bits as f64, self.probes, n));
        Some(attributes * combined.unwrap_or(1.0))
    }

    fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        remarks_of_attributes(workload)
    }

    fn shape(&self) -> Shape {
        Shape {
            arrays: Some(self.attributes as u32 + 1),
            ..Shape::new(self.probes, self.bits, "bits")
        }
    }

    fn describe(&self) -> String {
        let combined = match self.combination {
            Combination::Joint => "joint hash",
            Combination::XorIndependent => "XOR of different functions",
            Combination::XorSame => "XOR of the same functions",
        };
        format!(
            "{} arrays of m = {} bits, k = {}, {combined}",
            self.attributes + 1,
            self.bits,
            self.probes
        )
    }
}
