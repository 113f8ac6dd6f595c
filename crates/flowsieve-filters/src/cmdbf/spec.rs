//! Parameters of a CMDBF.

use super::{Cmdbf, Combination};
use crate::MembershipFilter;
use crate::mdbf::{check_attributes, no_size, rate_of_attributes, remarks_of_attributes};
use crate::saved::saved;
use crate::sizing::{MAX_PROBES, bloom_fpr, table_size};
use crate::spec::{
    Descriptor, FilterKind, FilterSpec, LEAST_ARRAY_BITS, Parameters, Query, Reach, Search, Shape,
    SpecError, Workload, array_bits, check_bits, check_probes, probes_for,
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
    /// How the addresses in the combined filter are computed.
    pub combination: Combination,
}

pub(crate) const CMDBF: Descriptor =
    descriptor::<0>("cmdbf", "MDBF with a combined filter, hashed jointly (after Xie et al. 2008)");

pub(crate) const CMDBF_XOR: Descriptor = descriptor::<1>(
    "cmdbf-xor",
    "CMDBF as published: XOR of the attributes' addresses (Xie et al. 2008)",
);

pub(crate) const CMDBF_XOR_INDEPENDENT: Descriptor = descriptor::<2>(
    "cmdbf-xor-independent",
    "The same, with functions that differ between attributes",
);

/// The structures and their combinations, in the order of the registry.
const VARIETIES: [(FilterKind, Combination); 3] = [
    (FilterKind::Cmdbf, Combination::Joint),
    (FilterKind::CmdbfXor, Combination::XorSame),
    (FilterKind::CmdbfXorIndependent, Combination::XorIndependent),
];

const fn descriptor<const VARIETY: usize>(name: &'static str, summary: &'static str) -> Descriptor {
    Descriptor {
        name,
        summary,
        reach: Reach::Attributes,
        ignores_repeats: true,
        size: |attributes, sizing| {
            // The rate is for elements whose values all occur, though not together. The arrays of
            // the attributes say yes to these, so the combined array alone has to reach it.
            let kind = VARIETIES[VARIETY].0;
            let (bits, expected) = array_bits(kind, attributes as u64 + 1, sizing)?;
            let probes = probes_for(bits, expected, MAX_PROBES as u32);
            Ok(with::<VARIETY>(attributes, bits, probes))
        },
        search: Some(Search {
            in_memory: |workload, bytes| {
                let bits = bytes * 8 / (workload.attributes as u64 + 1);
                fit::<VARIETY>(workload, bits.max(LEAST_ARRAY_BITS))
            },
            most: 1 << 48,
            fit: fit::<VARIETY>,
            by_attribute_rate: Some(|workload, fpr| {
                let (bits, probes) = table_size(fpr, (workload.values)(workload.full()));
                with::<VARIETY>(workload.attributes, bits, probes)
            }),
            out_of_reach: no_size,
        }),
    }
}

fn fit<const VARIETY: usize>(workload: &Workload<'_>, bits: u64) -> FilterSpec {
    workload.best_probes(|probes| with::<VARIETY>(workload.attributes, bits, probes))
}

fn with<const VARIETY: usize>(attributes: usize, bits: u64, probes: u32) -> FilterSpec {
    CmdbfSpec { attributes, bits, probes, combination: VARIETIES[VARIETY].1 }.into()
}

saved!(CmdbfSpec { attributes, bits, probes, combination });
saved!(Combination {
    Joint = 0,
    XorIndependent = 1,
    XorSame = 2;
    else "a combination of addresses that is not known"
});

impl Parameters for CmdbfSpec {
    fn variety(&self) -> usize {
        let is_own = |&(_, combination): &(_, Combination)| combination == self.combination;
        VARIETIES.iter().position(is_own).expect("every combination is listed")
    }

    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_attributes(self.attributes)?;
        check_bits(u128::from(self.bits) * (self.attributes as u128 + 1))
    }

    fn memory_bytes(&self) -> u64 {
        ((self.attributes as u64 + 1) * self.bits).div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn attributes(&self) -> Option<usize> {
        Some(self.attributes)
    }

    fn counts_distinct(&self) -> bool {
        self.combination == Combination::Joint
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(Cmdbf::new(self.attributes, self.bits, self.probes, self.combination))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        let attributes = rate_of_attributes(self.bits, self.probes, query);
        // XOR of one attribute's addresses repeats its array, so the combined filter adds nothing.
        let is_apart = self.attributes > 1 || self.combination == Combination::Joint;
        let combined = query.of_whole(|n| bloom_fpr(self.bits as f64, self.probes, n));
        Some(attributes * combined.filter(|_| is_apart).unwrap_or(1.0))
    }

    fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        let mut remarks = remarks_of_attributes(workload);
        if self.combination != Combination::Joint && self.attributes > 1 {
            remarks.push(
                "values that many elements share raise the rate: XOR only shifts the other addresses"
                    .to_owned(),
            );
        }
        if self.combination == Combination::XorSame {
            remarks.push(
                "under the same functions (a, b) and (b, a) are one element, and so are all (a, a)"
                    .to_owned(),
            );
        }
        remarks
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
