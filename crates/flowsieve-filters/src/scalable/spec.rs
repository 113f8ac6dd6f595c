//! Parameters of a chain of split counting filters.

use super::rate::chain_fpr;
use super::{Refill, ScalableFilter};
use crate::MembershipFilter;
use crate::saved::saved;
use crate::sizing::{MAX_PROBES, enlarged};
use crate::spec::{
    DEFAULT_COUNTER_BITS, Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape,
    Sizing, SpecError, check_counters, check_probes, check_range,
};
use crate::split_counting::{SplitCountingSpec, counter_sizes};
use std::f64::consts::LN_2;

/// Default of the most links that a chain may have.
const DEFAULT_LINKS: u32 = 8;

/// Highest number of links that a caller may allow.
const MAX_LINKS: u64 = 1024;

/// Parameters of a [`ScalableFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableSpec {
    /// Counters of a part of a link (m).
    pub part: u64,
    /// Hash functions and parts of a link (k).
    pub probes: u32,
    /// Bits of a counter.
    pub counter_bits: u32,
    /// Links that the chain may have.
    pub most_links: u32,
    /// Which link takes a new element.
    pub refill: Refill,
}

pub(crate) const SCALABLE: Descriptor = Descriptor {
    name: "scalable",
    summary: "Chain of split counting Bloom filters (Huang et al. 2015)",
    reach: Reach::Whole,
    ignores_repeats: false,
    size: |_, sizing| {
        let links = u64::from(DEFAULT_LINKS);
        let (part, probes) = match sizing {
            Sizing::Memory { .. } => {
                let (_, link) = counter_sizes(FilterKind::Scalable, links, sizing)?;
                (link.part, link.probes)
            }
            Sizing::Rate { fpr, expected } => {
                // Solves 1 - (1 - P)^d = fpr for P; a link that is half full has P = 2^-k.
                let link_fpr = -((-fpr).ln_1p() / links as f64).exp_m1();
                let probes = link_fpr.recip().log2().ceil().clamp(1.0, MAX_PROBES as f64) as u32;
                let part = (expected as f64 / links as f64 / LN_2).ceil() as u64;
                // Links of few counters, and of too few functions, miss the rate.
                let reaches = |part| chain_fpr(part, probes, DEFAULT_LINKS, expected as f64) <= fpr;
                (enlarged(part, reaches), probes)
            }
        };
        let spec = ScalableSpec {
            part,
            probes,
            counter_bits: DEFAULT_COUNTER_BITS,
            most_links: DEFAULT_LINKS,
            refill: Refill::default(),
        };
        Ok(spec.into())
    },
    search: None,
};

impl ScalableSpec {
    /// Returns the parameters of one link.
    pub(super) const fn link(&self) -> SplitCountingSpec {
        let Self { part, probes, counter_bits, .. } = *self;
        SplitCountingSpec { part, probes, counter_bits }
    }
}

saved!(ScalableSpec { part, probes, counter_bits, most_links, refill });
saved!(Refill { FirstNotFull = 0, Newest = 1; else "a chain of an unknown rule" });

impl Parameters for ScalableSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        let links = u64::from(self.most_links);
        check_range("a chain has", 1..=MAX_LINKS, "links", links, DEFAULT_LINKS.into())?;
        check_counters(self.part, u64::from(self.probes) * links, self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        u64::from(self.most_links) * self.built_bytes()
    }

    fn built_bytes(&self) -> u64 {
        self.link().memory_bytes()
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        let SplitCountingSpec { part, probes, .. } = self.link().divided_among(probes);
        Some(Self { part, probes, ..*self }.into())
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(ScalableFilter::with_spec(*self))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| chain_fpr(self.part, self.probes, self.most_links, n))
    }

    fn shape(&self) -> Shape {
        Shape { arrays: Some(self.most_links), ..self.link().shape() }
    }

    fn describe(&self) -> String {
        format!("up to {} links of {}", self.most_links, self.link().describe())
    }
}
