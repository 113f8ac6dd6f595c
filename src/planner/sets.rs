//! What is planned for comparison: hash sets, and counts that answer no query.

use super::{Design, PlanRequest, PlanRow, Structure, Target};

/// A hash set for each wanted combination.
pub(super) fn exact(request: &PlanRequest, goal: Target) -> PlanRow {
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
    let mut row = PlanRow::new(request, Structure::Exact, Design::Exact, memory, rates);
    row.notes
        .push("for comparison: a hash set a wanted combination, memory estimated".into());
    if let Target::Memory { bytes } = goal {
        row.fits = memory <= bytes as f64;
    }
    row
}

/// Relative standard error of a `HyperLogLog`'s count of a stream: √(ln 2 / m).
pub(super) fn hll_std_error(registers: u64) -> f64 {
    (std::f64::consts::LN_2 / registers as f64).sqrt()
}

/// A count for each wanted combination, which answers no query.
pub(super) fn hll(request: &PlanRequest, goal: Target) -> PlanRow {
    let counts = request.wanted.len() as u64;
    let precision = match goal {
        Target::Memory { bytes } => (bytes / counts).max(16).ilog2().clamp(4, 21),
        _ => 14,
    };
    let registers = 1_u64 << precision;
    let design = Design::Hll {
        registers,
        counts: counts as u32,
    };
    let rates = vec![None; request.wanted.len()];
    let memory = (registers * counts) as f64;
    let mut row = PlanRow::new(request, Structure::Hll, design, memory, rates);
    row.weighted = None;
    row.notes.push(format!(
        "for comparison: counts with a standard error of {:.2} %, and answers no query",
        100.0 * hll_std_error(registers)
    ));
    row
}
