//! Every structure but the matrices: by a search over its size, or by its own rule.

use super::search::least;
use super::{Design, Goal, PlanRequest, PlanRow, Structure};
use crate::filters::{FilterKind, FilterSpec, Search, Sizing, Workload};

/// Plans one of the structures.
pub(super) fn row(request: &PlanRequest, kind: FilterKind) -> PlanRow {
    let mut remarks = Vec::new();
    let found = match kind.search() {
        Some(search) => by_search(request, search, &mut remarks),
        None => by_rule(request, kind),
    };
    let structure = Structure::Filter(kind);
    let spec = match found {
        Ok(spec) => spec,
        Err(why) => return PlanRow::impossible(structure, request.wanted.len(), why),
    };
    request.with_workload(|workload| {
        let more_bytes = spec.additional_bytes(workload.elements());
        let (rates, memory) = (workload.rates(&spec), spec.memory_bytes() + more_bytes);
        if matches!(request.goal, Goal::Memory { bytes } if more_bytes > 0 && memory > bytes) {
            remarks.push(format!("it takes about {memory} bytes with what overflows its buckets"));
        }
        let more = spec.remarks(workload);
        let mut row = PlanRow::new(request, structure, Design::Filter(spec), memory as f64, rates);
        row.fits = remarks.is_empty();
        row.notes = remarks;
        row.notes.extend(more);
        row
    })
}

/// Returns the best filter of the largest size that fits, or of the smallest that reaches the rate.
/// If not even the smallest fits, a remark says so.
fn by_search(
    request: &PlanRequest,
    search: &Search,
    remarks: &mut Vec<String>,
) -> Result<FilterSpec, String> {
    let smallest_rate = |workload: &Workload<'_>, fpr: f64| {
        let reached = |size: u64| workload.answered(&(search.fit)(workload, size));
        let size = least(1, search.most, |size| reached(size) <= fpr)
            .ok_or_else(|| (search.out_of_reach)(reached(search.most)))?;
        Ok((search.fit)(workload, size))
    };
    request.with_workload(|workload| match request.goal {
        Goal::Memory { bytes } => {
            let spec = (search.in_memory)(workload, bytes);
            if spec.memory_bytes() > bytes {
                remarks.push(format!("the smallest has {} bytes", spec.memory_bytes()));
            }
            Ok(spec)
        }
        Goal::AttributeRate { fpr } => match search.by_attribute_rate {
            Some(rule) => Ok(rule(workload, fpr)),
            None => smallest_rate(workload, fpr),
        },
        Goal::Rate { fpr } => smallest_rate(workload, fpr),
    })
}

/// Returns the filter as [`FilterSpec::new`] sizes it, for whole elements.
fn by_rule(request: &PlanRequest, kind: FilterKind) -> Result<FilterSpec, String> {
    let expected = request.elements.whole().ceil() as u64;
    let sizing = match request.goal {
        Goal::Memory { bytes } => Sizing::Memory { bytes, expected: Some(expected) },
        Goal::Rate { fpr } | Goal::AttributeRate { fpr } => Sizing::Rate { fpr, expected },
    };
    FilterSpec::new(kind, request.attributes.len(), sizing).map_err(|error| error.to_string())
}
