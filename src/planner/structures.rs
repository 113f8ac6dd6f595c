//! Every structure but the matrices: by a search over its size, or by its own rule; for comparison
//! hash sets, and counters that answer no query.

use super::{Design, Goal, PlanRequest, PlanRow, Structure};
use crate::filters::sizing::last;
use crate::filters::{CounterSpec, ExaLogLog, FilterKind, FilterSpec, Search, Sizing, Workload};

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

/// Returns the smallest number from `low` to `high` for which `holds`, if it does from there on;
/// `None` if it does not hold for `high`.
pub(super) fn least(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if holds(low) {
        return Some(low);
    }
    if !holds(high) {
        return None;
    }
    last(low, high, |number| !holds(number)).map(|number| number + 1)
}

/// Plans a hash set for each wanted combination.
pub(super) fn exact(request: &PlanRequest) -> PlanRow {
    let share = request.key_bytes as f64 / request.attributes.len() as f64;
    let bytes_of = |mask: u32| {
        // Tables have a power of two of slots of 8 or 16 bytes, or more for names, at most 7/8 of
        // them used, and one more byte for each slot.
        let places = (request.elements.of(mask) * 8.0 / 7.0).log2().ceil().exp2().max(4.0);
        let key = share * f64::from(mask.count_ones());
        places * (if key.total_cmp(&8.0).is_eq() { key } else { key.max(16.0) } + 1.0)
    };
    // While a table grows, half of it is there twice, and `--exact-limit` keeps a sixteenth back.
    let grown = |bytes: f64| (bytes * 1.5 * 16.0 / 15.0).ceil();
    let memory: f64 = request.wanted.iter().map(|w| grown(bytes_of(w.mask))).sum();
    let rates = vec![Some(0.0); request.wanted.len()];
    let mut row = PlanRow::new(request, Structure::Exact, Design::Exact, memory, rates);
    row.notes.push("for comparison: a hash set a wanted combination, memory estimated".into());
    if let Goal::Memory { bytes } = request.goal {
        row.fits = memory <= bytes as f64;
    }
    row
}

/// Returns the relative standard error of the count of a stream by registers: of a `HyperLogLog`
/// √(ln 2 / m).
pub(super) fn registers_std_error(structure: Structure, registers: u64) -> f64 {
    match structure {
        Structure::Ell => ExaLogLog::std_error_of(registers as f64),
        _ => (std::f64::consts::LN_2 / registers as f64).sqrt(),
    }
}

/// Plans a counter for each wanted combination, which answers no query.
pub(super) fn registers(request: &PlanRequest, structure: Structure) -> PlanRow {
    let counts = request.wanted.len() as u64;
    let bytes = match request.goal {
        Goal::Memory { bytes } => bytes / counts,
        _ => 1 << 14,
    };
    let (counter, least) = CounterSpec::of_registers(structure, bytes);
    let of_each = counter.map_or(least, |counter| counter.memory_bytes());
    let registers = match structure {
        Structure::Ell => of_each / ExaLogLog::REGISTER_BYTES,
        _ => of_each,
    };
    let design = Design::Registers { registers, counts: counts as u32 };
    let rates = vec![None; request.wanted.len()];
    let memory = (of_each * counts) as f64;
    let mut row = PlanRow::new(request, structure, design, memory, rates);
    row.weighted = None;
    row.notes.push(format!(
        "for comparison: counts with a standard error of {:.2} %, and answers no query",
        100.0 * registers_std_error(structure, registers)
    ));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_is_found_wherever_it_is() {
        for border in 0..40 {
            assert_eq!(last(3, 30, |n| n < border), (border > 3).then(|| (border - 1).min(30)));
            assert_eq!(least(3, 30, |n| n >= border), (border <= 30).then(|| border.max(3)));
        }
        assert_eq!(last(0, u64::MAX - 1, |_| true), Some(u64::MAX - 1));
    }
}
