//! Every structure but the matrices.

use super::row::weighted;
use super::search::least;
use super::{Design, Goal, PlanRequest, PlanRow, Structure};
use crate::filters::allocation::{Demand, shared_probes};
use crate::filters::matrix_sizing::{attribute_size, table_probes};
use crate::filters::sizing::{
    MAX_LINE_PROBES, MAX_PROBES, bloom_fpr, dleft_given_up, dleft_overfull_fpr, shared_blocked_fpr,
    split_fpr,
};
use crate::filters::{FilterKind, FilterSpec, Sizing};
use std::f64::consts::LN_2;

/// Most lines of a subset filter, 2^40 bytes as [`FilterSpec::new`] has it.
const MOST_LINES: u64 = 1 << 34;

/// Plans one of the structures.
pub(super) fn row(request: &PlanRequest, kind: FilterKind, goal: Goal) -> PlanRow {
    match kind {
        FilterKind::Subset => subset(request, goal),
        FilterKind::Bloom | FilterKind::Mdbf | FilterKind::Cmdbf => bit_arrays(request, kind, goal),
        _ => counters(request, kind, goal),
    }
}

/// Rates of a structure that knows the whole element only.
fn of_whole(request: &PlanRequest, fpr: f64) -> Vec<Option<f64>> {
    let full = request.full();
    let wanted = request.wanted.iter();
    wanted.map(|w| (w.mask == full).then_some(fpr)).collect()
}

fn impossible(request: &PlanRequest, kind: FilterKind, note: impl Into<String>) -> PlanRow {
    PlanRow::impossible(Structure::Filter(kind), request.wanted.len(), note.into())
}

/// The standard filter, MDBF and CMDBF: equal arrays of m bits.
fn bit_arrays(request: &PlanRequest, kind: FilterKind, goal: Goal) -> PlanRow {
    let attributes = request.attributes.len();
    let arrays = match kind {
        FilterKind::Mdbf => attributes,
        FilterKind::Cmdbf => attributes + 1,
        _ => 1,
    };
    let rates = |bits: f64, probes: u32| -> Vec<Option<f64>> {
        let whole = bloom_fpr(bits, probes, request.elements.whole());
        if kind == FilterKind::Bloom {
            return of_whole(request, whole);
        }
        let of = |mask: u32| -> f64 {
            let known = if mask.is_power_of_two() {
                0.0
            } else {
                request.known
            };
            let members = (0..attributes).filter(|one| mask >> one & 1 == 1);
            let stage: f64 = members
                .map(|one| {
                    let fpr = bloom_fpr(bits, probes, request.elements.of(1 << one));
                    known + (1.0 - known) * fpr
                })
                .product();
            if kind == FilterKind::Cmdbf && mask == request.full() {
                stage * whole
            } else {
                stage
            }
        };
        request.wanted.iter().map(|w| Some(of(w.mask))).collect()
    };
    let answered = |bits: u64, probes: u32| weighted(request, &rates(bits as f64, probes), None);
    let best = |bits: u64| -> u32 {
        (1..=MAX_PROBES as u32)
            .min_by(|&a, &b| answered(bits, a).total_cmp(&answered(bits, b)))
            .expect("there is at least one number of hash functions")
    };
    let mut too_large = None;
    let (bits, probes) = match goal {
        Goal::Memory { bytes } => {
            let bits = bytes / arrays as u64 / 8 * 64;
            if bits == 0 {
                too_large = Some(format!("the smallest has {} bytes", arrays * 8));
            }
            (bits.max(64), best(bits.max(64)))
        }
        Goal::AttributeRate { fpr } => {
            let elements = match kind {
                FilterKind::Mdbf => request.elements.largest_single(),
                _ => request.elements.whole(),
            };
            let bits = attribute_size(fpr, elements).floor().max(1.0) as u64;
            (bits, table_probes(fpr).clamp(1, MAX_PROBES as u32))
        }
        Goal::MostElements { .. } => unreachable!("the caller asks for rates"),
        Goal::Rate { fpr } => {
            let Some(bits) = least(1, 1 << 48, |bits| answered(bits, best(bits)) <= fpr) else {
                let why = if kind == FilterKind::Bloom {
                    "it answers for all attributes together only, which are not wanted"
                } else {
                    "no size has this rate: values that all occur look like an element"
                };
                return impossible(request, kind, why);
            };
            (bits, best(bits))
        }
    };
    let design = Design {
        probes: Some(probes),
        size: Some(bits),
        unit: "bits",
        arrays: (arrays > 1).then_some(arrays as u32),
        ..Design::default()
    };
    let memory = arrays as f64 * bits.div_ceil(8) as f64;
    let rates = rates(bits as f64, probes);
    let mut row = PlanRow::new(request, Structure::Filter(kind), design, memory, rates);
    row.fits = too_large.is_none();
    row.notes.extend(too_large);
    let partial = request
        .wanted
        .iter()
        .any(|w| w.mask != request.full() && w.mask.count_ones() > 1 && request.known > 0.0);
    if partial && kind != FilterKind::Bloom {
        row.notes.push(
            "part of the attributes is answered by the attributes' own filters, which cannot tell values that occur apart".into(),
        );
    }
    row
}

/// Lines shared by the whole element and the wanted combinations.
fn subset(request: &PlanRequest, goal: Goal) -> PlanRow {
    let full = request.full();
    // The whole element is always stored, and first.
    let mut masks = vec![full];
    masks.extend(
        request
            .wanted
            .iter()
            .map(|w| w.mask)
            .filter(|&mask| mask != full),
    );
    let shares = request.shares();
    let demands: Vec<Demand> = masks
        .iter()
        .map(|&mask| Demand {
            elements: request.elements.of(mask),
            weight: request
                .wanted
                .iter()
                .zip(&shares)
                .find(|(wanted, _)| wanted.mask == mask)
                .map_or(0.0, |(_, share)| *share),
        })
        .collect();
    let probes = |lines: u64| shared_probes(&demands, (lines * 512) as f64, MAX_LINE_PROBES);
    let rates = |lines: u64, probes: &[u32]| -> Vec<Option<f64>> {
        let written: Vec<(f64, u32)> = demands
            .iter()
            .zip(probes)
            .map(|(demand, &probes)| (demand.elements, probes))
            .collect();
        let rate = |mask: u32| {
            let place = masks.iter().position(|&stored| stored == mask)?;
            Some(shared_blocked_fpr(lines as f64, probes[place], &written))
        };
        request.wanted.iter().map(|w| rate(w.mask)).collect()
    };
    let reached = |lines: u64| weighted(request, &rates(lines, &probes(lines)), Some(1.0));
    let lines = match goal {
        Goal::Memory { bytes } => bytes / 64,
        Goal::Rate { fpr } | Goal::AttributeRate { fpr } => {
            let Some(lines) = least(1, MOST_LINES, |lines| reached(lines) <= fpr) else {
                let note = format!(
                    "it reaches rates down to {:.1e} in 1 TiB, with eight bits an element",
                    reached(MOST_LINES)
                );
                return impossible(request, FilterKind::Subset, note);
            };
            lines
        }
        Goal::MostElements { .. } => unreachable!("the caller asks for rates"),
    };
    if lines == 0 {
        return impossible(request, FilterKind::Subset, "the smallest has 64 bytes");
    }
    let probes = probes(lines);
    let design = Design {
        probes: Some(probes[0]),
        size: Some(lines),
        unit: "lines",
        stored: masks[1..]
            .iter()
            .copied()
            .zip(probes[1..].iter().copied())
            .collect(),
        ..Design::default()
    };
    let structure = Structure::Filter(FilterKind::Subset);
    let rates = rates(lines, &probes);
    PlanRow::new(request, structure, design, (lines * 64) as f64, rates)
}

/// The structures that can remove, sized as [`FilterSpec::new`] does.
fn counters(request: &PlanRequest, kind: FilterKind, goal: Goal) -> PlanRow {
    let n = request.elements.whole();
    let expected = n.ceil() as u64;
    let sizing = match goal {
        Goal::Memory { bytes } => Sizing::Memory {
            bytes,
            expected: Some(expected),
        },
        Goal::Rate { fpr } | Goal::AttributeRate { fpr } => Sizing::Rate { fpr, expected },
        Goal::MostElements { .. } => unreachable!("the caller asks for rates"),
    };
    let spec = match FilterSpec::new(kind, request.attributes.len(), sizing) {
        Ok(spec) => spec,
        Err(error) => return impossible(request, kind, error.to_string()),
    };
    let mut notes = Vec::new();
    let (design, fpr) = match spec {
        FilterSpec::Counting {
            counters,
            probes,
            counter_bits,
        } => (
            Design {
                probes: Some(probes),
                size: Some(counters),
                unit: "counters",
                counter_bits: Some(counter_bits),
                ..Design::default()
            },
            bloom_fpr(counters as f64, probes, n),
        ),
        FilterSpec::SplitCounting {
            part,
            probes,
            counter_bits,
        } => (
            Design {
                probes: Some(probes),
                size: Some(part),
                unit: "counters",
                arrays: Some(probes),
                counter_bits: Some(counter_bits),
                ..Design::default()
            },
            split_fpr(part as f64, probes, n),
        ),
        FilterSpec::Scalable {
            part,
            probes,
            counter_bits,
            most_links,
            ..
        } => (
            Design {
                probes: Some(probes),
                size: Some(part),
                unit: "counters",
                arrays: Some(most_links),
                counter_bits: Some(counter_bits),
                ..Design::default()
            },
            chain_fpr(part, probes, most_links, n),
        ),
        FilterSpec::Dleft {
            bucket_bits,
            remainder_bits,
            counter_bits,
        } => {
            let given_up = dleft_given_up(bucket_bits, remainder_bits, n);
            if given_up > 0.0 {
                notes.push(format!(
                    "too few cells for the elements; about {:.0} % of its buckets answer yes to everything",
                    given_up * 100.0
                ));
            }
            (
                Design {
                    size: Some(1 << bucket_bits),
                    unit: "buckets",
                    arrays: Some(4),
                    remainder_bits: Some(remainder_bits),
                    counter_bits: Some(counter_bits),
                    ..Design::default()
                },
                dleft_overfull_fpr(bucket_bits, remainder_bits, n),
            )
        }
        _ => return impossible(request, kind, "it has no counters"),
    };
    let memory = spec.memory_bytes() as f64;
    let rates = of_whole(request, fpr);
    let mut row = PlanRow::new(request, Structure::Filter(kind), design, memory, rates);
    row.notes = notes;
    row
}

/// The rate of a chain of links, all but the newest of which are half full, with `elements` in all.
fn chain_fpr(part: u64, probes: u32, most_links: u32, elements: f64) -> f64 {
    let a_link = part as f64 * LN_2;
    let full = (elements / a_link).floor().min(f64::from(most_links - 1));
    let newest = split_fpr(part as f64, probes, elements - full * a_link);
    let of_full = 2.0_f64.powi(-(probes as i32));
    -(full * (-of_full).ln_1p() + (-newest.min(1.0)).ln_1p()).exp_m1()
}

/// A hash set for each wanted combination.
pub(super) fn exact(request: &PlanRequest, goal: Goal) -> PlanRow {
    let share = request.key_bytes as f64 / request.attributes.len() as f64;
    let bytes_of = |mask: u32| {
        // Tables have a power of two of places, at most 7/8 of them used, with a byte beside each.
        let places = (request.elements.of(mask) * 8.0 / 7.0)
            .log2()
            .ceil()
            .exp2()
            .max(4.0);
        places * ((share * f64::from(mask.count_ones())).max(8.0) + 1.0)
    };
    let memory: f64 = request.wanted.iter().map(|w| bytes_of(w.mask)).sum();
    let rates = vec![Some(0.0); request.wanted.len()];
    let mut row = PlanRow::new(request, Structure::Exact, Design::default(), memory, rates);
    row.notes
        .push("for comparison: a hash set a wanted combination, memory estimated".into());
    if let Goal::Memory { bytes } = goal {
        row.fits = memory <= bytes as f64;
    }
    row
}

/// A count for each wanted combination, which answers no query.
pub(super) fn hll(request: &PlanRequest, goal: Goal) -> PlanRow {
    let counts = request.wanted.len() as u64;
    let precision = match goal {
        Goal::Memory { bytes } => (bytes / counts).max(16).ilog2().clamp(4, 21),
        _ => 14,
    };
    let registers = 1_u64 << precision;
    let design = Design {
        size: Some(registers),
        unit: "registers",
        arrays: (counts > 1).then_some(counts as u32),
        ..Design::default()
    };
    let rates = vec![None; request.wanted.len()];
    let memory = (registers * counts) as f64;
    let mut row = PlanRow::new(request, Structure::Hll, design, memory, rates);
    row.weighted = None;
    row.notes.push(format!(
        "for comparison: counts with a standard error of {:.2} %, and answers no query",
        83.255_461_1 / (registers as f64).sqrt()
    ));
    row
}
