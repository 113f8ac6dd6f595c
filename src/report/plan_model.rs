//! A plan as it is told: one set of names for JSON and CSV, documented in `docs/output.md`.

use super::plan_table;
use crate::pipeline::SampleResult;
use crate::planner::{Goal, Plan, PlanRequest, PlanRow, RateRule, Structure};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Name and version of the document.
const PLAN_SCHEMA: &str = "flowsieve.plan/1";

/// How a plan is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PlanFormat {
    /// For people.
    #[default]
    Table,
    /// A line for each structure and wanted combination.
    Csv,
    /// One document.
    Json,
}

/// A plan, what was asked, and what it was measured on.
#[derive(Debug)]
pub struct PlanReport<'a> {
    /// Kind of element; none for abstract attributes.
    pub element: Option<&'a str>,
    /// What was asked.
    pub request: &'a PlanRequest,
    /// The answer.
    pub plan: &'a Plan,
    /// The captures that the numbers come from, if any.
    pub sample: Option<&'a SampleResult>,
    /// The command that builds the recommended structure, in parts between which lines may end; none if there
    /// is none.
    pub command: Option<Vec<String>>,
}

impl PlanReport<'_> {
    /// Writes it. `styled` allows the table to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(&self, format: PlanFormat, styled: bool, mut out: W) -> io::Result<W> {
        match format {
            PlanFormat::Table => plan_table::write(self, styled, &mut out)?,
            PlanFormat::Json => {
                serde_json::to_writer_pretty(&mut out, &self.document())?;
                writeln!(out)?;
            }
            PlanFormat::Csv => self.lines(&mut out)?,
        }
        out.flush()?;
        Ok(out)
    }

    fn lines(&self, out: &mut impl Write) -> io::Result<()> {
        let document = self.document();
        let mut csv = csv::Writer::from_writer(out);
        for structure in &document.structures {
            for (wanted, fpr) in document.wanted.iter().zip(structure.fpr) {
                let joined = |sizes: &[u64]| {
                    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                    sizes.join(" ")
                };
                let cuts: Vec<String> = structure.cuts.iter().map(|cut| cut.join(",")).collect();
                let line = Line {
                    structure: structure.structure,
                    recommended: structure.recommended,
                    fits: structure.fits,
                    wanted: wanted.attributes.join(","),
                    weight: wanted.weight,
                    elements: wanted.elements,
                    fpr: *fpr,
                    weighted_fpr: structure.weighted_fpr,
                    memory_bytes: structure.memory_bytes,
                    same_rate_bytes: structure.same_rate_bytes,
                    probes: structure.probes,
                    size: structure.size,
                    unit: structure.unit,
                    arrays: structure.arrays,
                    sizes: joined(&structure.sizes),
                    cells: structure.cells,
                    cuts: cuts.join(";"),
                    stored_probes: structure
                        .stored
                        .iter()
                        .find(|stored| stored.attributes == wanted.attributes)
                        .map(|stored| stored.probes),
                    remainder_bits: structure.remainder_bits,
                    counter_bits: structure.counter_bits,
                    most_elements: structure.most_elements,
                    most_elements_unrounded: structure.most_elements_unrounded,
                    notes: structure.notes.join("; "),
                };
                csv.serialize(line)
                    .map_err(|error| match error.into_kind() {
                        csv::ErrorKind::Io(error) => error,
                        other => io::Error::other(format!("{other:?}")),
                    })?;
            }
        }
        csv.flush()
    }

    fn names(&self, mask: u32) -> Vec<&str> {
        let names = self.request.attributes.iter().enumerate();
        names
            .filter(|(index, _)| mask >> index & 1 == 1)
            .map(|(_, name)| name.as_str())
            .collect()
    }

    fn document(&self) -> Document<'_> {
        let request = self.request;
        let (memory_bytes, fpr, attribute_fpr, most) = match request.goal {
            Goal::Memory { bytes } => (Some(bytes), None, None, false),
            Goal::Rate { fpr } => (None, Some(fpr), None, false),
            Goal::AttributeRate { fpr } => (None, None, Some(fpr), false),
            Goal::MostElements { bytes, rate } => match rate {
                RateRule::Weighted(fpr) => (Some(bytes), Some(fpr), None, true),
                RateRule::Attribute(fpr) => (Some(bytes), None, Some(fpr), true),
            },
        };
        let wanted = request.wanted.iter().zip(request.shares());
        Document {
            schema: PLAN_SCHEMA,
            parameters: Parameters {
                element: self.element,
                attributes: &request.attributes,
                memory_bytes,
                fpr,
                attribute_fpr,
                most_elements: most,
                known: request.known,
            },
            wanted: wanted
                .map(|(wanted, weight)| WantedRow {
                    attributes: self.names(wanted.mask),
                    weight,
                    elements: (!most).then(|| request.elements.of(wanted.mask) as u64),
                    elements_from: (!most).then(|| request.elements.origin(wanted.mask).name()),
                })
                .collect(),
            sample: self.sample.map(|sample| SampleRow {
                packets: sample.packets,
                elements: sample.elements,
                interrupted: sample.interrupted,
                skewed: request.skewed,
                spread: sample
                    .spread
                    .iter()
                    .zip(&request.attributes)
                    .map(|(spread, attribute)| SpreadRow {
                        attribute,
                        values: spread.values,
                        most: spread.most,
                        skew: spread.skew(),
                    })
                    .collect(),
            }),
            structures: self
                .plan
                .rows
                .iter()
                .map(|row| self.structure(row))
                .collect(),
            recommended: self.plan.recommended.map(Structure::name),
            reason: &self.plan.reason,
        }
    }

    fn structure<'b>(&'b self, row: &'b PlanRow) -> StructureRow<'b> {
        let shape = row.shape();
        let design = shape.as_ref();
        StructureRow {
            structure: row.structure.name(),
            recommended: self.plan.recommended == Some(row.structure),
            fits: row.fits,
            memory_bytes: row.memory_bytes.map(Whole),
            same_rate_bytes: row.same_rate_bytes.map(Whole),
            fpr: &row.rates,
            weighted_fpr: row.weighted,
            probes: design.and_then(|d| d.probes),
            size: design.and_then(|d| d.size),
            unit: design.map(|d| d.unit).filter(|unit| !unit.is_empty()),
            arrays: design.and_then(|d| d.arrays),
            sizes: design.map_or_else(Vec::new, |d| d.sizes.clone()),
            cells: design.and_then(|d| d.cells).map(Whole),
            cuts: design.map_or_else(Vec::new, |d| {
                d.cuts.iter().map(|&cut| self.names(cut)).collect()
            }),
            stored: design.map_or_else(Vec::new, |d| {
                let stored = d.stored.iter();
                stored
                    .map(|&(mask, probes)| StoredRow {
                        attributes: self.names(mask),
                        probes,
                    })
                    .collect()
            }),
            remainder_bits: design.and_then(|d| d.remainder_bits),
            counter_bits: design.and_then(|d| d.counter_bits),
            most_elements: row.elements,
            most_elements_unrounded: row.elements_unrounded,
            notes: &row.notes,
        }
    }
}

/// A whole number that may be larger than any integer type: digits as long as it is exact.
#[derive(Clone, Copy, Debug)]
struct Whole(f64);

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 < 2.0_f64.powi(63) {
            serializer.serialize_u64(self.0 as u64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    parameters: Parameters<'a>,
    wanted: Vec<WantedRow<'a>>,
    sample: Option<SampleRow<'a>>,
    structures: Vec<StructureRow<'a>>,
    recommended: Option<&'static str>,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Parameters<'a> {
    element: Option<&'a str>,
    attributes: &'a [String],
    memory_bytes: Option<u64>,
    fpr: Option<f64>,
    attribute_fpr: Option<f64>,
    most_elements: bool,
    known: f64,
}

#[derive(Debug, Serialize)]
struct WantedRow<'a> {
    attributes: Vec<&'a str>,
    weight: f64,
    elements: Option<u64>,
    elements_from: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct SampleRow<'a> {
    packets: u64,
    elements: u64,
    interrupted: bool,
    skewed: bool,
    spread: Vec<SpreadRow<'a>>,
}

#[derive(Debug, Serialize)]
struct SpreadRow<'a> {
    attribute: &'a str,
    values: u64,
    most: u64,
    skew: f64,
}

#[derive(Debug, Serialize)]
struct StructureRow<'a> {
    structure: &'static str,
    recommended: bool,
    fits: bool,
    memory_bytes: Option<Whole>,
    same_rate_bytes: Option<Whole>,
    fpr: &'a [Option<f64>],
    weighted_fpr: Option<f64>,
    probes: Option<u32>,
    size: Option<u64>,
    unit: Option<&'static str>,
    arrays: Option<u32>,
    sizes: Vec<u64>,
    cells: Option<Whole>,
    cuts: Vec<Vec<&'a str>>,
    stored: Vec<StoredRow<'a>>,
    remainder_bits: Option<u32>,
    counter_bits: Option<u32>,
    most_elements: Option<u64>,
    most_elements_unrounded: Option<f64>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct StoredRow<'a> {
    attributes: Vec<&'a str>,
    probes: u32,
}

/// A line of CSV.
#[derive(Debug, Serialize)]
struct Line<'a> {
    structure: &'a str,
    recommended: bool,
    fits: bool,
    wanted: String,
    weight: f64,
    elements: Option<u64>,
    fpr: Option<f64>,
    weighted_fpr: Option<f64>,
    memory_bytes: Option<Whole>,
    same_rate_bytes: Option<Whole>,
    probes: Option<u32>,
    size: Option<u64>,
    unit: Option<&'a str>,
    arrays: Option<u32>,
    sizes: String,
    cells: Option<Whole>,
    cuts: String,
    stored_probes: Option<u32>,
    remainder_bits: Option<u32>,
    counter_bits: Option<u32>,
    most_elements: Option<u64>,
    most_elements_unrounded: Option<f64>,
    notes: String,
}
