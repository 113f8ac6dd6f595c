//! Parameters of a subset filter.

use super::SubsetFilter;
use crate::MembershipFilter;
use crate::allocation::{Demand, shared_probes, weighted_fpr};
use crate::bits::Lines;
use crate::line_rates::LinesOf;
use crate::lines::LineShape;
use crate::matrix_sizing::MAX_ATTRIBUTES;
use crate::saved::saved;
use crate::sizing::{
    DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES, blocked_count_variance, blocked_lines,
    halving_count_variance,
};
use crate::spec::{
    Descriptor, FilterKind, FilterSpec, MAX_BYTES, Parameters, Query, Reach, Search, Shape, Sizing,
    SpecError, Workload, check_bits, check_memory, check_probes, check_range,
};

/// Fewest lines of a halving filter, which allow three stages after the first.
const LEAST_HALVED_LINES: u64 = 8;

/// Parameters of a [`SubsetFilter`].
#[derive(Clone, Debug, PartialEq)]
pub struct SubsetSpec {
    /// Number of attributes; combinations can be planned for at most 16.
    pub attributes: usize,
    /// Number and length of the lines.
    pub shape: LineShape,
    /// Bits an element (k, 1 to 32), up to eight in each of its lines.
    pub probes: u32,
    /// Combinations stored in addition to the whole element.
    pub combinations: Vec<PlannedCombination>,
    /// Whether it halves its sample when it is crowded ([`SubsetFilter::halving`]): for counts of
    /// the whole element alone, with at most eight bits.
    pub halving: bool,
}

/// A combination of some attributes that a subset filter stores.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlannedCombination {
    /// The attributes, bit i for attribute i.
    pub mask: u32,
    /// Bits that each value sets (`k_S`, 1 to 32).
    pub probes: u32,
}

pub(crate) const SUBSET: Descriptor = Descriptor {
    name: "subset",
    summary: "Blocked Bloom filter with an unbiased count",
    reach: Reach::Planned,
    ignores_repeats: true,
    size: |attributes, sizing| {
        let best = |shape: LineShape, n: u64| LinesOf::from(shape).best_probes(n as f64);
        Ok(match sizing {
            // A caller who gives memory wants a count, and one who gives a rate wants membership.
            Sizing::Memory { bytes, expected } => {
                check_memory(FilterKind::Subset, bytes, Lines::LINE_BYTES)?;
                let shape = LineShape::halving(bytes);
                let probes = expected.map_or(DEFAULT_PROBES, |n| best(shape, n));
                SubsetSpec::counting(attributes, shape, probes)
            }
            Sizing::Rate { fpr, expected } => {
                let lines = blocked_lines(fpr, expected as f64);
                let lines = LineShape::from(lines.ok_or_else(|| out_of_reach(fpr, expected))?);
                SubsetSpec::knowing(attributes, lines, best(lines, expected))
            }
        }
        .into())
    },
    search: Some(Search {
        in_memory: |workload, bytes| {
            SubsetSpec::planned(workload, LineShape::in_bytes(bytes.max(Lines::LINE_BYTES))).into()
        },
        most: MAX_BYTES / Lines::LINE_BYTES,
        fit: |workload, lines| SubsetSpec::planned(workload, lines).into(),
        by_attribute_rate: None,
        out_of_reach: |lowest| {
            format!(
                "it reaches rates down to {lowest:.1e} in 1 TiB, with {MAX_PROBES} bits an element"
            )
        },
    }),
};

/// Returns the error for a rate that needs more lines than the largest filter has.
fn out_of_reach(fpr: f64, expected: u64) -> SpecError {
    let lines = LinesOf::from(LineShape::from(MAX_BYTES / Lines::LINE_BYTES));
    let elements = expected as f64;
    let least = lines.fpr(lines.best_probes(elements), elements);
    let remedy = if least < 0.001 { "0.001 works" } else { "ask for fewer elements" };
    SpecError::new(format!(
        "a filter in cache lines has at most {MAX_PROBES} bits an element and reaches rates down to {least:.1e} here, in 1 TiB, not {fpr:e}; {remedy}"
    ))
}

impl PlannedCombination {
    /// Checks the combinations of a filter for elements of `attributes` attributes.
    pub(crate) fn check_all(combinations: &[Self], attributes: usize) -> Result<(), SpecError> {
        if combinations.is_empty() {
            return Ok(());
        }
        if attributes > MAX_ATTRIBUTES {
            return Err(SpecError::new(format!(
                "combinations can be planned for at most {MAX_ATTRIBUTES} attributes, not {attributes}; plan none"
            )));
        }
        let full = (1_u32 << attributes) - 1;
        for (index, &Self { mask, probes }) in combinations.iter().enumerate() {
            if mask == 0 || mask >= full {
                return Err(SpecError::new(format!(
                    "a planned combination has some of the {attributes} attributes and not all, which are always stored, so {mask:#b} is none; plan a smaller one, or none"
                )));
            }
            if combinations[..index].iter().any(|other| other.mask == mask) {
                return Err(SpecError::new(format!(
                    "every combination is planned once, and {mask:#b} is there twice; leave one out"
                )));
            }
            check_range("a combination sets", 1..=MAX_PROBES as u64, "bits", probes.into(), 4)?;
        }
        Ok(())
    }
}

/// Returns the best bits of each kind of element for these demands, in as many lines as pay off.
fn best_shared_probes(demands: &[Demand], lines: LinesOf) -> Vec<u32> {
    if let [only] = demands {
        return vec![lines.best_probes(only.elements)];
    }
    let probes_within = |most: u32| shared_probes(demands, lines.bits(), most);
    let elements = demands.iter().map(|demand| demand.elements).sum();
    let most = lines.most_probes(elements, |most| {
        let probes = probes_within(most);
        let of_kinds = demands.iter().map(|demand| demand.elements);
        let written: Vec<(f64, u32)> = of_kinds.zip(probes.iter().copied()).collect();
        let rates = probes.iter();
        let rates = rates.map(|&probes| lines.shared_fpr(probes, &written));
        weighted_fpr(demands, rates)
    });
    probes_within(most)
}

impl SubsetSpec {
    /// Returns a filter that counts whole elements at any load, and stores a sample of them when it
    /// is crowded.
    pub fn counting(attributes: usize, shape: impl Into<LineShape>, probes: u32) -> Self {
        let probes = probes.min(MAX_LINE_PROBES);
        Self { halving: true, ..Self::knowing(attributes, shape, probes) }
    }

    /// Returns a filter that stores all whole elements; when it is full, its count has no upper
    /// bound.
    pub fn knowing(attributes: usize, shape: impl Into<LineShape>, probes: u32) -> Self {
        let shape = shape.into();
        Self { attributes, shape, probes, combinations: Vec::new(), halving: false }
    }

    /// Returns the best filter of these lines for these queries: it stores the whole element and
    /// the wanted combinations, each with its best number of bits.
    pub fn planned(workload: &Workload<'_>, shape: impl Into<LineShape>) -> Self {
        let shape = shape.into();
        let full = workload.full();
        let share = |mask: u32| {
            let wanted = workload.wanted.iter().find(|&&(wanted, _)| wanted == mask);
            wanted.map_or(0.0, |&(_, share)| share)
        };
        let parts = workload.wanted.iter().map(|&(mask, _)| mask);
        let parts: Vec<u32> = parts.filter(|&mask| mask != full).collect();
        let demands: Vec<Demand> = std::iter::once(full)
            .chain(parts.iter().copied())
            .map(|mask| Demand { elements: (workload.values)(mask), weight: share(mask) })
            .collect();
        let probes = best_shared_probes(&demands, shape.into());
        let combinations = parts.iter().zip(&probes[1..]);
        Self {
            attributes: workload.attributes,
            shape,
            probes: probes[0],
            combinations: combinations
                .map(|(&mask, &probes)| PlannedCombination { mask, probes })
                .collect(),
            halving: false,
        }
    }

    /// Returns the number of distinct elements of each kind that is written, and their bits.
    fn written(&self, elements: f64, values: &dyn Fn(u32) -> f64) -> Vec<(f64, u32)> {
        let parts = self.combinations.iter();
        let parts = parts.map(|part| (values(part.mask), part.probes));
        std::iter::once((elements, self.probes)).chain(parts).collect()
    }
}

saved!(SubsetSpec { attributes, shape, probes, combinations, halving });
saved!(LineShape { lines, word_bits });
saved!(PlannedCombination { mask, probes });

impl Parameters for SubsetSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        let LineShape { lines, word_bits } = self.shape;
        check_range("the words of a line have", 1..=64, "bits", word_bits.into(), 64)?;
        check_bits(u128::from(lines) * u128::from(self.shape.line_bits()))?;
        PlannedCombination::check_all(&self.combinations, self.attributes)?;
        if self.halving {
            if !self.combinations.is_empty() {
                return Err(SpecError::new(
                    "a filter that halves what it watches stores whole elements only; plan no combination, or let it know all elements",
                ));
            }
            check_probes(self.probes, MAX_LINE_PROBES)?;
            if lines < LEAST_HALVED_LINES {
                return Err(SpecError::new(format!(
                    "{lines} lines cannot be halved often enough; {LEAST_HALVED_LINES} shorter ones can"
                )));
            }
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        let mut spec = self.clone();
        spec.probes = probes;
        for combination in &mut spec.combinations {
            combination.probes = probes;
        }
        Some(spec.into())
    }

    fn attributes(&self) -> Option<usize> {
        (!self.combinations.is_empty()).then_some(self.attributes)
    }

    fn stored(&self) -> Vec<u32> {
        self.combinations.iter().map(|part| part.mask).collect()
    }

    fn probes_of(&self, mask: u32) -> Option<u32> {
        let stored = self.combinations.iter().find(|part| part.mask == mask)?;
        Some(stored.probes)
    }

    fn counts_distinct_of(&self, mask: u32) -> bool {
        self.probes_of(mask).is_some()
    }

    fn counts_first_of(&self, mask: u32) -> bool {
        self.probes_of(mask).is_some()
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        if self.halving {
            return Box::new(SubsetFilter::halving(self.shape, self.probes));
        }
        let filter = SubsetFilter::with_combinations(
            self.attributes,
            self.shape,
            self.probes,
            &self.combinations,
        );
        Box::new(filter.expect("the parameters were checked"))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        let probes =
            if query.mask == query.full { self.probes } else { self.probes_of(query.mask)? };
        let written = self.written(query.elements(), query.values);
        Some(LinesOf::from(self.shape).shared_fpr(probes, &written))
    }

    fn count_variance(&self, workload: &Workload<'_>) -> Option<f64> {
        let elements = workload.elements();
        if self.halving {
            return Some(halving_count_variance(self.shape, self.probes, elements));
        }
        let written = self.written(elements, workload.values);
        Some(blocked_count_variance(self.shape, self.probes, &written, elements))
    }

    fn shape(&self) -> Shape {
        let stored = self.combinations.iter();
        Shape {
            stored: stored.map(|part| (part.mask, part.probes)).collect(),
            ..Shape::new(self.probes, self.shape.lines, "lines")
        }
    }

    fn describe(&self) -> String {
        let LineShape { lines, .. } = self.shape;
        let s = if lines == 1 { "" } else { "s" };
        format!("{lines} line{s} of {} bits, k = {}", self.shape.line_bits(), self.probes)
    }
}
