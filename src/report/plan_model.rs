//! A plan: its parameters, and the columns of its parts.

use super::batch::Value as _;
use super::cell::{Cell, Joined, Whole};
use super::column::{Columns, columns};
use super::count_combinations::{StoredCombination, names, stored_columns};
use super::format::Tail;
use super::run_view::{ended, inputs_cell};
use super::selection::selection_columns;
use crate::filters::{FilterKind, Shape};
use crate::pipeline::SampleResult;
use crate::planner::{Goal, Plan, PlanRequest, PlanRow, Structure, Wanted};

/// A plan, what was asked, and what it was measured on.
#[derive(Debug)]
pub struct PlanReport<'a> {
    /// Element kind; `None` for abstract attributes.
    pub element: Option<String>,
    /// The request.
    pub request: &'a PlanRequest,
    /// The answer.
    pub plan: &'a Plan,
    /// The captures that the numbers come from, if any.
    pub sample: Option<&'a SampleResult>,
    /// The command that builds the recommended structure, in parts between which lines may end;
    /// `None` if nothing is recommended.
    pub command: Option<Vec<String>>,
}

/// The numbers that a goal states: memory, weighted rate, rate of single attributes.
type Fixed = (Option<u64>, Option<f64>, Option<f64>);

fn fixed(report: &PlanReport<'_>) -> Fixed {
    let most_in = report.request.most_elements_in;
    match report.request.goal {
        Goal::Memory { bytes } => (Some(bytes), None, None),
        Goal::Rate { fpr } => (most_in, Some(fpr), None),
        Goal::AttributeRate { fpr } => (most_in, None, Some(fpr)),
    }
}

/// The columns of the parameters.
pub(super) fn parameter_columns<'a>() -> Columns<PlanReport<'a>> {
    columns! { inlined report: PlanReport<'a>;
        element = report.element.clone(), "kind of element; null for abstract attributes";
        attributes = report.request.attributes.clone(), "their names, in order";
        memory_bytes = fixed(report).0, "memory asked for; null if it follows from a rate";
        fpr = fixed(report).1, "weighted rate asked for", unit("share");
        attribute_fpr = fixed(report).2, "rate asked for single attributes", unit("share");
        most_elements = report.is_most(), "asked is how many elements fit";
        known = report.request.known, "share of the single values of a negative that occur (α)",
            unit("share");
    }
}

/// A combination that is wanted, with its share of the queries.
#[derive(Clone, Debug)]
pub(super) struct WantedRow {
    attributes: Vec<String>,
    weight: f64,
    elements: Option<(u64, &'static str)>,
}

/// The columns of such a combination.
pub(super) fn wanted_columns() -> Columns<WantedRow> {
    columns! { field row: WantedRow;
        attributes = row.attributes.clone(), "names of the combination's attributes";
        weight = row.weight, "share of the queries; they sum to 1";
        elements = row.elements.map(|(elements, _)| elements),
            "distinct values; null if asked is how many fit";
        elements_from = row.elements.map(|(_, from)| from),
            "`given`, `measured` (on the sample), or `bound` (an upper bound from other combinations)";
    }
}

/// The columns of a sample.
pub(super) fn sample_columns<'a>() -> Columns<(&'a SampleResult, &'a PlanRequest)> {
    columns! { inlined row: (&'a SampleResult, &'a PlanRequest);
        packets = row.0.packets, "packets read";
        ..part(None, &selection_columns(), |row| Some(row.0.selection.clone()));
        elements = row.0.elements, "elements seen, repeats included";
        ..ending(|row| ended(&row.0.inputs, row.0.interrupted));
        skewed = row.1.skewed,
            "the skew of an attribute is above 4: formulas of matrices do not hold";
        ..objects("spread", spread_columns(), |(sample, request)| {
            let names = request.attributes.iter().cloned();
            let rows = sample.spread.iter().zip(names);
            rows.map(|(spread, name)| (name, spread.values, spread.most, spread.skew())).collect()
        }), "one per attribute";
    }
}

/// How the values of an attribute are spread.
pub(super) fn spread_columns() -> Columns<(String, u64, u64, f64)> {
    columns! { field row: (String, u64, u64, f64);
        attribute = row.0.clone(), "its name";
        values = row.1, "its distinct values";
        most = row.2, "distinct elements with the most frequent value";
        skew = row.3,
            "how many times more elements share a value than if values were drawn at random";
    }
}

/// A structure, and in flat tables one of the combinations that are wanted.
pub(super) struct StructureRow<'a> {
    report: &'a PlanReport<'a>,
    row: &'a PlanRow,
    shape: Option<Shape>,
    wanted: Option<(usize, WantedRow)>,
}

impl StructureRow<'_> {
    fn design<T>(&self, value: impl Fn(&Shape) -> Option<T>) -> Option<T> {
        self.shape.as_ref().and_then(value)
    }

    fn stored(&self) -> Vec<StoredCombination<String>> {
        let attributes = &self.report.request.attributes;
        let stored = self.shape.iter().flat_map(|design| &design.stored);
        stored.map(|stored| StoredCombination::new(attributes, *stored)).collect()
    }
}

/// The columns of a structure.
pub(super) fn structure_columns<'a>() -> Columns<StructureRow<'a>> {
    columns! { inlined row: StructureRow<'a>;
        structure = row.row.structure.name(), "its name";
        recommended = row.report.plan.recommended == Some(row.row.structure),
            "it is the one to take";
        rests_on = row.report.rests_on(), RESTS_ON;
        fits = row.row.fits, "it can be built within the memory";
        memory_bytes = row.row.memory_bytes.map(Whole),
            "bytes of its arrays, also if it does not fit; null if no size suffices";
        same_rate_bytes = row.row.same_rate_bytes.map(Whole),
            "bytes for the weighted rate of the recommended structure; null if no size has it, or if you asked for a rate";
        fpr = row.row.rates.clone(),
            "predicted false-positive rate of each combination in `wanted`; null without an answer";
        weighted_fpr = row.row.weighted, "their weighted mean, with 1 where there is no answer",
            unit("share");
        measured_rates = row.row.measured.as_ref().map_or_else(Vec::new, |it| it.rates.clone()),
            "the rates of `fpr`, measured on a filter of the sample; empty if it was not measured";
        measured_weighted_fpr = row.row.measured.as_ref().map(|it| it.weighted),
            "their weighted mean", unit("share");
        count_std_error = row.row.count_std_error,
            "predicted standard error of the unbiased count of whole elements (`subset`, `bloom`, `hll`, `ell` and `exact`)",
            unit("share");
        probes = row.design(|design| design.probes),
            "hash functions (k); of `subset` the bits of a whole element";
        size = row.design(|design| design.size), "size (m) of each array, part or attribute";
        unit = row.design(|design| Some(design.unit)).filter(|unit| !unit.is_empty()),
            "what `size` counts (`values` for an attribute of a matrix)";
        arrays = row.design(|design| design.arrays),
            "arrays, parts, links or subtables of that size; null for one";
        sizes = Joined(row.shape.iter().flat_map(|design| design.sizes.clone()).collect(), " "),
            "sizes of the attributes of `wcbfm`; in flat tables with spaces between them";
        cells = row.design(|design| design.cells).map(Whole),
            "cells of a matrix (M), flag positions included";
        cuts = {
            let cuts = row.shape.iter().flat_map(|design| &design.cuts);
            Joined(cuts.map(|&cut| row.report.names(cut)).collect(), ";")
        }, "cuts of a matrix, each a list of names; in flat tables with semicolons between them";
        ..objects("stored", stored_columns(), StructureRow::stored),
            "combinations that `subset` stores besides the whole element: `attributes`, and `probes` (k_S)";
        remainder_bits = row.design(|design| design.remainder_bits), "bits of a remainder";
        counter_bits = row.design(|design| design.counter_bits), "bits of a counter";
        most_elements = row.row.elements, "the most elements that fit, if you asked";
        most_elements_unrounded = row.row.elements_unrounded, "the same for matrices, unrounded";
        notes = Joined(row.row.notes.clone(), "; "),
            "remarks, in sentences; in flat tables with semicolons between them";
    }
}

/// Columns of a flat table, in order.
const COLUMNS: &str = "structure recommended rests_on fits wanted weight elements fpr weighted_fpr measured_fpr measured_weighted_fpr memory_bytes \
    same_rate_bytes count_std_error probes size unit arrays sizes cells cuts stored_probes remainder_bits \
    counter_bits most_elements most_elements_unrounded notes";

/// The columns of a structure and a combination that is wanted.
pub(super) fn line_columns<'a>() -> Columns<StructureRow<'a>> {
    let columns = columns! { inlined row in structure_columns().without("fpr");
        wanted = row.wanted.as_ref().map_or_else(Vec::new, |(_, wanted)| wanted.attributes.clone()),
            "the combination";
        weight = row.wanted.as_ref().map_or(0.0, |(_, wanted)| wanted.weight),
            "its share of the queries";
        elements = Some(row.wanted.as_ref()?.1.elements?.0), "its distinct values";
        fpr = row.row.rates[row.wanted.as_ref()?.0],
            "its predicted false-positive rate; null without an answer", unit("share");
        measured_fpr = row.row.measured.as_ref()?.rates[row.wanted.as_ref()?.0],
            "its measured rate", unit("share");
        stored_probes = {
            let wanted = &row.wanted.as_ref()?.1;
            let mut stored = row.stored().into_iter();
            Some(stored.find(|stored| stored.attributes == wanted.attributes)?.probes)
        }, "bits of this combination (k_S) in `subset`, if it is stored besides the whole element";
    };
    columns.select(COLUMNS)
}

/// Documentation of `rests_on`.
const RESTS_ON: &str = "`sample`, or `even_values`: computed for evenly spread values; skewed traffic can ruin the rates of matrices";

impl PlanReport<'_> {
    /// Returns whether the plan rests on a sample.
    fn rests_on(&self) -> &'static str {
        if self.sample.is_some() { "sample" } else { "even_values" }
    }

    /// Why a structure is recommended, and what that rests on.
    pub(super) fn reason(&self) -> String {
        let reason = &self.plan.reason;
        let is_measured = self.plan.rows.iter().any(|row| row.measured.is_some());
        let structure = self.plan.recommended.filter(|_| !is_measured);
        let Some(structure) = structure.filter(|_| self.sample.is_none()) else {
            let computed = if structure.is_some() { "; computed, not measured" } else { "" };
            return format!("{reason}{computed}");
        };
        let is_matrix = structure.filter().is_some_and(FilterKind::is_matrix);
        let assumed = if is_matrix {
            "this is computed, since no sample was measured, and skewed traffic ruins this rate"
        } else {
            "this is computed for evenly spread values, since no sample was measured"
        };
        // Only kinds of elements can be sampled.
        let remedy = self.element.as_ref().map(|_| ": measure your traffic with --sample CAPTURE");
        format!("{reason}; {assumed}{}", remedy.unwrap_or_default())
    }

    /// Whether the plan was asked for the most elements that fit.
    pub(super) fn is_most(&self) -> bool {
        self.request.most_elements_in.is_some()
    }

    fn names(&self, mask: u32) -> Vec<String> {
        names(&self.request.attributes, mask)
    }

    fn wanted(&self) -> Vec<WantedRow> {
        let request = self.request;
        let wanted = request.wanted.iter().zip(request.shares());
        let row = |(wanted, weight): (&Wanted, f64)| WantedRow {
            attributes: self.names(wanted.mask),
            weight,
            elements: (!self.is_most()).then(|| {
                let elements = &request.elements;
                (elements.of(wanted.mask) as u64, elements.origin(wanted.mask).name())
            }),
        };
        wanted.map(row).collect()
    }

    /// A row for each structure and wanted combination.
    pub(super) fn lines(&self) -> Vec<StructureRow<'_>> {
        let wanted = self.wanted();
        let rows = self.plan.rows.iter().flat_map(|row| {
            let lines = wanted.iter().cloned().enumerate();
            lines.map(move |wanted| StructureRow {
                report: self,
                row,
                shape: row.shape(),
                wanted: Some(wanted),
            })
        });
        rows.collect()
    }

    pub(super) fn sections(&self) -> Tail {
        let structures: Vec<StructureRow<'_>> = self
            .plan
            .rows
            .iter()
            .map(|row| StructureRow { report: self, row, shape: row.shape(), wanted: None })
            .collect();
        let sample = |sample| sample_columns().object_of(&(sample, self.request));
        let recommended = self.plan.recommended.map(Structure::name);
        vec![
            ("parameters", parameter_columns().object_of(self)),
            ("wanted", wanted_columns().list_of(&self.wanted())),
            ("sample", self.sample.map_or(Cell::Null, sample)),
            ("inputs", inputs_cell(self.sample.map_or(&[], |sample| &sample.inputs))),
            ("structures", structure_columns().list_of(&structures)),
            ("recommended", recommended.cell()),
            ("rests_on", Cell::Text(self.rests_on().into())),
            ("reason", Cell::Text(self.reason().into())),
        ]
    }
}
