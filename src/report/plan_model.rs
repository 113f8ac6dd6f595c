//! A plan: its parameters, and the columns of its parts.

use super::batch::Value as _;
use super::cell::{Cell, Joined, Whole, object};
use super::column::Columns;
use super::inputs::inputs_cell;
use super::rows::Frame;
use super::selection::selection_columns;
use crate::filters::{FilterKind, Shape};
use crate::pipeline::{InputResult, SampleResult};
use crate::planner::{Goal, Plan, PlanRequest, PlanRow, Structure, Wanted};

/// Name and version of the document.
pub(super) const SCHEMA: &str = "flowsieve.plan/1";

/// A plan, what was asked, and what it was measured on.
#[derive(Debug)]
pub struct PlanReport<'a> {
    /// Kind of element; none for abstract attributes.
    pub element: Option<String>,
    /// What was asked.
    pub request: &'a PlanRequest,
    /// The answer.
    pub plan: &'a Plan,
    /// The captures that the numbers come from, if any.
    pub sample: Option<&'a SampleResult>,
    /// The command that builds the recommended structure, in parts between which lines may end;
    /// none if there is none.
    pub command: Option<Vec<String>>,
}

/// What a goal fixes: memory, weighted rate, rate of single attributes.
type Fixed = (Option<u64>, Option<f64>, Option<f64>);

fn fixed(report: &PlanReport<'_>) -> Fixed {
    let most_in = report.request.most_elements_in;
    match report.request.goal {
        Goal::Memory { bytes } => (Some(bytes), None, None),
        Goal::Rate { fpr } => (most_in, Some(fpr), None),
        Goal::AttributeRate { fpr } => (most_in, None, Some(fpr)),
    }
}

/// What was asked.
pub(super) fn parameter_columns<'a>() -> Columns<PlanReport<'a>> {
    Columns::default()
        .inlined("element", |report: &PlanReport<'a>| report.element.clone())
        .doc("kind of element; null for abstract attributes")
        .inlined("attributes", |report| report.request.attributes.clone())
        .doc("their names, in order")
        .inlined("memory_bytes", |report| fixed(report).0)
        .doc("memory asked for; null if it follows from a rate")
        .inlined("fpr", |report| fixed(report).1)
        .doc("weighted rate asked for")
        .unit("share")
        .inlined("attribute_fpr", |report| fixed(report).2)
        .doc("rate asked for single attributes")
        .unit("share")
        .inlined("most_elements", PlanReport::is_most)
        .doc("asked is how many elements fit")
        .inlined("known", |report| report.request.known)
        .doc("share of the single values of a negative that occur (α)")
        .unit("share")
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
    Columns::default()
        .field("attributes", |row: &WantedRow| row.attributes.clone())
        .doc("names of the combination's attributes")
        .field("weight", |row| row.weight)
        .doc("share of the queries; they sum to 1")
        .field("elements", |row| row.elements.map(|(elements, _)| elements))
        .doc("distinct values; null if asked is how many fit")
        .field("elements_from", |row| row.elements.map(|(_, from)| from))
        .doc("`given`, `measured` (on the sample), or `bound` (an upper bound from other combinations)")
}

/// What was measured on a sample.
pub(super) fn sample_columns<'a>() -> Columns<(&'a SampleResult, &'a PlanRequest)> {
    Columns::default()
        .inlined("packets", |row: &(&'a SampleResult, &'a PlanRequest)| row.0.packets)
        .doc("packets read")
        .part(None, &selection_columns(), |row| Some(row.0.selection.clone()))
        .inlined("elements", |row| row.0.elements)
        .doc("elements seen, repeats included")
        .ending(
            |row| row.0.interrupted,
            |row| InputResult::all_read(&row.0.inputs, row.0.interrupted),
        )
        .inlined("skewed", |row| row.1.skewed)
        .doc("the skew of an attribute is above 4: formulas of matrices do not hold")
        .objects("spread", spread_columns(), |(sample, request)| {
            let names = request.attributes.iter().cloned();
            let rows = sample.spread.iter().zip(names);
            rows.map(|(spread, name)| (name, spread.values, spread.most, spread.skew())).collect()
        })
        .doc("one per attribute")
}

/// How the values of an attribute are spread.
pub(super) fn spread_columns() -> Columns<(String, u64, u64, f64)> {
    Columns::default()
        .field("attribute", |row: &(String, u64, u64, f64)| row.0.clone())
        .doc("its name")
        .field("values", |row| row.1)
        .doc("its distinct values")
        .field("most", |row| row.2)
        .doc("distinct elements with the most frequent value")
        .field("skew", |row| row.3)
        .doc("how many times more elements share a value than if values were evenly spread")
}

/// A structure, and in flat tables one of the combinations that are wanted.
pub(super) struct StructureRow<'a> {
    report: &'a PlanReport<'a>,
    row: &'a PlanRow,
    shape: Option<Shape>,
    wanted: Option<(usize, WantedRow)>,
}

impl StructureRow<'_> {
    fn names(&self, mask: u32) -> Vec<String> {
        self.report.names(mask)
    }

    fn design<T>(&self, value: impl Fn(&Shape) -> Option<T>) -> Option<T> {
        self.shape.as_ref().and_then(value)
    }

    fn stored(&self) -> Vec<(Vec<String>, u32)> {
        let stored = self.shape.iter().flat_map(|design| &design.stored);
        stored.map(|&(mask, probes)| (self.names(mask), probes)).collect()
    }
}

/// The columns of a structure.
pub(super) fn structure_columns<'a>() -> Columns<StructureRow<'a>> {
    Columns::default()
        .inlined("structure", |row: &StructureRow<'a>| row.row.structure.name())
        .doc("its name")
        .inlined("recommended", |row| row.report.plan.recommended == Some(row.row.structure))
        .doc("it is the one to take")
        .inlined("rests_on", |row| row.report.rests_on())
        .doc(RESTS_ON)
        .inlined("fits", |row| row.row.fits)
        .doc("it can be built within the memory")
        .inlined("memory_bytes", |row| row.row.memory_bytes.map(Whole))
        .doc("bytes of its arrays, also if it does not fit; null if no size suffices")
        .inlined("same_rate_bytes", |row| row.row.same_rate_bytes.map(Whole))
        .doc("bytes for the weighted rate of the recommended structure; null if no size has it, or if you asked for a rate")
        .inlined("fpr", |row| row.row.rates.clone())
        .doc("predicted false-positive rate of each combination in `wanted`; null without an answer")
        .inlined("weighted_fpr", |row| row.row.weighted)
        .doc("their weighted mean, with 1 where there is no answer")
        .unit("share")
        .inlined("measured_rates", |row| {
            row.row.measured.as_ref().map(|measured| measured.rates.clone()).unwrap_or_default()
        })
        .doc("the rates of `fpr`, measured on a filter of the sample; empty if it was not measured")
        .inlined("measured_weighted_fpr", |row| row.row.measured.as_ref().map(|it| it.weighted))
        .doc("their weighted mean")
        .unit("share")
        .inlined("count_std_error", |row| row.row.count_std_error)
        .doc("predicted standard error of the unbiased count of whole elements (`subset`, `bloom`, `hll`, `ell` and `exact`)")
        .unit("share")
        .inlined("probes", |row| row.design(|design| design.probes))
        .doc("hash functions (k); of `subset` the bits of a whole element")
        .inlined("size", |row| row.design(|design| design.size))
        .doc("size (m) of each array, part or attribute")
        .inlined("unit", |row| row.design(|design| Some(design.unit)).filter(|unit| !unit.is_empty()))
        .doc("what `size` counts (`values` for an attribute of a matrix)")
        .inlined("arrays", |row| row.design(|design| design.arrays))
        .doc("arrays, parts, links or subtables of that size; null for one")
        .inlined("sizes", |row| {
            let sizes = row.shape.as_ref().map(|design| design.sizes.clone());
            Joined(sizes.unwrap_or_default(), " ")
        })
        .doc("sizes of the attributes of `wcbfm`; in flat tables with spaces between them")
        .inlined("cells", |row| row.design(|design| design.cells).map(Whole))
        .doc("cells of a matrix (M), flag positions included")
        .inlined("cuts", |row| {
            let cuts = row.shape.iter().flat_map(|design| &design.cuts);
            Joined(cuts.map(|&cut| row.names(cut)).collect(), ";")
        })
        .doc("cuts of a matrix, each a list of names; in flat tables with semicolons between them")
        .objects("stored", stored_columns(), StructureRow::stored)
        .doc("combinations that `subset` stores besides the whole element: `attributes`, and `probes` (k_S)")
        .inlined("remainder_bits", |row| row.design(|design| design.remainder_bits))
        .doc("bits of a remainder")
        .inlined("counter_bits", |row| row.design(|design| design.counter_bits))
        .doc("bits of a counter")
        .inlined("most_elements", |row| row.row.elements)
        .doc("the most elements that fit, if you asked")
        .inlined("most_elements_unrounded", |row| row.row.elements_unrounded)
        .doc("the same for matrices, unrounded")
        .inlined("notes", |row| Joined(row.row.notes.clone(), "; "))
        .doc("remarks, in sentences")
}

/// A combination that a subset filter stores.
fn stored_columns() -> Columns<(Vec<String>, u32)> {
    Columns::default()
        .field("attributes", |row: &(Vec<String>, u32)| row.0.clone())
        .field("probes", |row| row.1)
}

/// Columns of a flat table, in order.
const COLUMNS: &str = "structure recommended rests_on fits wanted weight elements fpr weighted_fpr measured_fpr measured_weighted_fpr memory_bytes \
    same_rate_bytes count_std_error probes size unit arrays sizes cells cuts stored_probes remainder_bits \
    counter_bits most_elements most_elements_unrounded notes";

/// The columns of a structure and a combination that is wanted.
pub(super) fn line_columns<'a>() -> Columns<StructureRow<'a>> {
    let wanted = |row: &StructureRow<'a>| row.wanted.as_ref().map(|(_, wanted)| wanted.clone());
    structure_columns()
        .without("fpr")
        .without("measured_rates")
        .inlined("wanted", move |row| wanted(row).map_or_else(Vec::new, |wanted| wanted.attributes))
        .doc("the combination")
        .inlined("weight", move |row| wanted(row).map_or(0.0, |wanted| wanted.weight))
        .doc("its share of the queries")
        .inlined("elements", move |row| wanted(row)?.elements.map(|(elements, _)| elements))
        .doc("its distinct values")
        .inlined("fpr", |row| row.row.rates[row.wanted.as_ref()?.0])
        .doc("its predicted false-positive rate; null without an answer")
        .unit("share")
        .inlined("measured_fpr", |row| row.row.measured.as_ref()?.rates[row.wanted.as_ref()?.0])
        .doc("its measured rate")
        .unit("share")
        .inlined("stored_probes", |row| {
            let wanted = &row.wanted.as_ref()?.1;
            let mut stored = row.stored().into_iter();
            Some(stored.find(|(names, _)| *names == wanted.attributes)?.1)
        })
        .doc(
            "bits of this combination (k_S) in `subset`, if it is stored besides the whole element",
        )
        .select(COLUMNS)
}

/// What `rests_on` says.
const RESTS_ON: &str = "`sample`, or `even_values`: computed for evenly spread values; skewed traffic can ruin the rates of matrices";

impl PlanReport<'_> {
    /// What the plan rests on.
    fn rests_on(&self) -> &'static str {
        match self.sample {
            Some(_) => "sample",
            None => "even_values",
        }
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
        let remedy = match self.element {
            Some(_) => ": measure your traffic with --sample CAPTURE",
            None => "",
        };
        format!("{reason}; {assumed}{remedy}")
    }

    /// Asked is how many elements fit.
    pub(super) fn is_most(&self) -> bool {
        self.request.most_elements_in.is_some()
    }

    fn names(&self, mask: u32) -> Vec<String> {
        let names = self.request.attributes.iter().enumerate();
        names.filter(|(index, _)| mask >> index & 1 == 1).map(|(_, name)| name.clone()).collect()
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

    /// What stands before the rows.
    pub(super) fn frame(&self) -> Frame {
        let parameters = parameter_columns().object_of(self);
        Frame::new(SCHEMA, "rows").with("parameters", parameters)
    }

    pub(super) fn document(&self) -> Cell {
        let structures: Vec<StructureRow<'_>> = self
            .plan
            .rows
            .iter()
            .map(|row| StructureRow { report: self, row, shape: row.shape(), wanted: None })
            .collect();
        let sample = |sample| sample_columns().object_of(&(sample, self.request));
        let recommended = self.plan.recommended.map(Structure::name);
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(self)),
            ("wanted", wanted_columns().list_of(&self.wanted())),
            ("sample", self.sample.map_or(Cell::Null, sample)),
            ("inputs", inputs_cell(self.sample.map_or(&[], |sample| &sample.inputs))),
            ("structures", structure_columns().list_of(&structures)),
            ("recommended", recommended.cell()),
            ("rests_on", Cell::Text(self.rests_on().into())),
            ("reason", Cell::Text(self.reason().into())),
        ])
    }
}
