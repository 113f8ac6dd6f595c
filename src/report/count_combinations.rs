//! Counts of combinations of attributes.

use super::batch::Value;
use super::column::{Columns, columns};
use super::heading::Heading;
use super::number::{grouped, joined, or_dash, rounded};
use crate::filters::FilterSpec;
use crate::pipeline::{CombinationResult, CountPlan};

/// The combinations that a filter was designed for, and its design.
#[derive(Clone, Debug, PartialEq)]
pub struct CountDesign {
    /// Combinations of attributes whose counts are reported, in the order of the request.
    pub combinations: Vec<Vec<&'static str>>,
    /// Combinations that a subset filter stores in addition to the whole element.
    pub stored: Vec<StoredCombination>,
    /// Sizes of a matrix's attributes (mᵢ).
    pub sizes: Vec<u64>,
    /// Cuts of a matrix.
    pub cuts: Vec<Vec<&'static str>>,
}

/// A combination of a subset filter.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCombination<S = &'static str> {
    /// Its attributes.
    pub attributes: Vec<S>,
    /// Bits that each of its values sets (`k_S`).
    pub probes: u32,
}

impl<S: Clone> StoredCombination<S> {
    /// The combination of this mask of the attributes, and its bits.
    pub(super) fn new(attributes: &[S], (mask, probes): (u32, u32)) -> Self {
        Self { attributes: names(attributes, mask), probes }
    }
}

/// The names of the attributes in `mask`.
pub(super) fn names<S: Clone>(attributes: &[S], mask: u32) -> Vec<S> {
    let attributes = attributes.iter().enumerate();
    attributes.filter(|(index, _)| mask >> index & 1 == 1).map(|(_, name)| name.clone()).collect()
}

/// Documentation of bounds.
pub(super) const LOWER_DOC: &str =
    "lower bound: `lower` and `upper` enclose the true number in at least 95 of 100 cases";
pub(super) const UPPER_DOC: &str = "upper bound";

/// A combination's name and counts.
pub(super) type NamedCount = (Vec<&'static str>, CombinationResult);

/// The counts of a combination, with its name.
pub(super) fn combination_columns() -> Columns<NamedCount> {
    columns! { field named: NamedCount;
        attributes = named.0.clone(), "names of the combination's attributes";
        ..part(None, &count_columns(), |(_, count)| Some(*count));
    }
}

/// The counts of a combination.
pub(super) fn count_columns() -> Columns<CombinationResult> {
    columns! { field count: CombinationResult;
        first = count.first, "values that the filter saw as new: never too many";
        estimate = count.estimate,
            "unbiased estimate, for `subset` and for single attributes in `bfm`, `cbfm` and `wcbfm`";
        std_error = count.std_error, "standard error of the estimate";
        lower = count.lower, LOWER_DOC;
        upper = count.upper, UPPER_DOC;
        exact = count.exact, "distinct values by the exact set";
    }
}

/// A combination that a subset filter stores.
pub(super) fn stored_columns<S: Value + Clone + 'static>() -> Columns<StoredCombination<S>> {
    columns! { field stored: StoredCombination<S>;
        attributes = stored.attributes.clone(), "names of the combination's attributes";
        probes = stored.probes, "bits that each of its values sets (k_S)";
    }
}

/// The columns of a design.
pub(super) fn design_columns() -> Columns<CountDesign> {
    columns! { field design: CountDesign;
        combinations = design.combinations.clone(),
            "wanted combinations of some of the attributes, each a list of names";
        ..objects("stored", stored_columns(), |design| design.stored.clone()),
            "combinations that `subset` stores besides the whole element: `attributes`, and `probes` (k_S)";
        sizes = design.sizes.clone(), "sizes of the attributes of a matrix";
        cuts = design.cuts.clone(), "cuts of a matrix, each a list of names";
    }
}

impl CountDesign {
    /// Returns the design of a plan; `None` if its filter was not designed.
    pub(super) fn new(plan: &CountPlan) -> Option<Self> {
        let counter = plan.counter.as_ref()?;
        let wanted = counter.combinations.as_ref()?;
        let attributes = plan.rule.kind.attributes();
        let all = |masks: &[u32]| masks.iter().map(|&mask| names(&attributes, mask)).collect();
        let shape = counter.shard.filter().map(FilterSpec::shape).unwrap_or_default();
        let stored = shape.stored.into_iter();
        Some(Self {
            combinations: all(wanted),
            stored: stored.map(|stored| StoredCombination::new(&attributes, stored)).collect(),
            sizes: shape.sizes,
            cuts: all(&shape.cuts),
        })
    }

    /// The counts with their names.
    pub(super) fn counts(&self, counts: &[CombinationResult]) -> Vec<NamedCount> {
        let names = self.combinations.iter().cloned();
        names.zip(counts.iter().copied()).collect()
    }

    /// The parameters other than k as text: `, src k = 7`.
    pub(super) fn words(&self) -> String {
        let stored = self.stored.iter();
        let stored = stored.map(|it| format!(", {} k = {}", it.attributes.join(","), it.probes));
        let sizes = joined(self.sizes.iter().map(|&size| grouped(size)), " ");
        let cuts = joined(self.cuts.iter().map(|cut| cut.join(",")), "; ");
        let sizes = sizes.map(|sizes| format!(", m = {sizes}"));
        stored.chain(sizes).chain(cuts.map(|cuts| format!(", cuts {cuts}"))).collect()
    }
}

/// Least width of a column: `1,234,567 ± 12.3`.
const MIN_WIDTH: usize = 16;

/// The heading of a combination in a table for people.
pub(super) fn heading(names: &[&'static str]) -> Heading {
    let name = names.join(",");
    Heading::right(u8::MAX, name.len().max(MIN_WIDTH), name).drop_priority(9)
}

/// Remarks on combinations that are not counted, or only from below.
pub(super) fn remarks(counts: &[CombinationResult]) -> impl Iterator<Item = String> {
    let without = counts.iter().filter(|count| count.estimate.is_none());
    let only_below = without.clone().any(|count| count.first.is_some());
    let full = "full: too few new values of such a combination are noticed for a count; give more --memory";
    let below = "≥: a lower bound, which is all that this structure counts of such a combination";
    let none = "–: this structure does not count such a combination";
    let remarks = [
        (counts.iter().any(is_full), full),
        (only_below, below),
        (without.count() > 0 && !only_below, none),
    ];
    remarks.into_iter().filter(|remark| remark.0).map(|remark| remark.1.to_owned())
}

/// Whether so few new values are noticed that the count has no upper bound.
fn is_full(count: &CombinationResult) -> bool {
    count.estimate.is_some() && count.upper.is_none()
}

/// The unbiased count with its error, or the lower bound.
pub(super) fn cell(count: &CombinationResult) -> String {
    match (count.estimate, count.std_error, count.first) {
        _ if is_full(count) => format!("≥ {} full", grouped(count.lower.unwrap_or(0))),
        (Some(estimate), Some(error), _) => format!("{} ± {error:.1}", rounded(estimate)),
        (_, _, first) => or_dash(first, |first| format!("≥ {}", grouped(first))),
    }
}
