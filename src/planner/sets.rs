//! Plans for comparison: hash sets, and counters that answer no query.

use super::{Design, Goal, PlanRequest, PlanRow, Structure};
use crate::filters::{CounterSpec, ExaLogLog};

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
