//! How often the bounds of a count hold on real captures; `scripts/measure-counting` measures it at
//! more memories.

use crate::measure_coverage::{Coverage, Memory, captures, measure};
use std::path::Path;

pub(crate) fn bounds_hold_on_all_captures(folder: &Path) {
    let captures = captures(folder).unwrap();
    // The filters are small, so that they miss elements: nearly all slices have few.
    let memories = [(64, 1), (512, 8)].map(|(bytes, shards)| Memory { bytes, shards });
    let mut pooled = Coverage::default();
    for memory in memories {
        for width_ms in [100, 1_000, 10_000] {
            measure(&captures, width_ms, memory, 0, &mut pooled).unwrap();
        }
    }
    // Slices of a capture repeat, so shares differ much between seeds: 99.1 % of the first three,
    // 98.9 % of all.
    for seed in 1..40 {
        measure(&captures, 1_000, memories[0], seed, &mut pooled).unwrap();
    }
    // Nearly every count is exact, and its bounds say so.
    assert!(pooled.all.slices > 100_000, "{pooled:?}");
    assert!(pooled.all.percent() > 99.0, "{pooled:?}");
    // The bounds of the others hold as often as promised, also for slices with missed elements.
    for share in [pooled.open, pooled.missed] {
        assert!(share.slices > 500, "{pooled:?}");
        assert!((95.0..=99.0).contains(&share.percent()), "{pooled:?}");
    }
}
