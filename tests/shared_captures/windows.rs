//! Sliding windows over real captures.

use flowsieve::Count;
use flowsieve::filters::Structure;
use flowsieve::selection::{Selection, TimeBound};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Windows at several places of real captures equal one slice over the same range of time.
pub(crate) fn are_what_a_range_of_time_has(folder: &Path) {
    let files = sorted(folder).into_iter().filter(|path| {
        fs::metadata(path).is_ok_and(|file| (100_000..4_000_000).contains(&file.len()))
    });
    let (mut captures, mut compared) = (0, 0);
    for path in files {
        let count = Count::of([&path]).threads(1);
        let whole = count.clone().one_slice().filter(Structure::Exact).run().unwrap();
        let [all] = &whole.slices[..] else { continue };
        let step = (all.end_ns - all.start_ns) / 40;
        if step < 1000 || captures == 30 {
            continue;
        }
        captures += 1;
        let every = Duration::from_nanos(step as u64);
        let windows =
            count.clone().slice(7 * every).every(every).exact_limit(1 << 30).run().unwrap();
        assert_eq!(
            windows.summary.totals.packets,
            whole.summary.totals.packets,
            "{}",
            path.display()
        );
        for row in windows.slices.iter().step_by(9) {
            let range = Selection {
                from: Some(TimeBound::At(row.start_ns)),
                to: Some(TimeBound::At(row.end_ns)),
                ..Selection::default()
            };
            let alone =
                count.clone().one_slice().filter(Structure::Exact).only(range).run().unwrap();
            let exact = alone.slices.first().map_or(Some(0), |slice| slice.exact);
            assert_eq!(row.exact, exact, "{} at {}", path.display(), row.start_ns);
            assert_eq!(row.packets, alone.summary.totals.packets, "{}", path.display());
            let (estimate, error) = (row.estimate.unwrap(), row.std_error.unwrap());
            assert!(
                (estimate - exact.unwrap() as f64).abs() <= 5.0 * error + 1.0,
                "{} {estimate} ± {error}, not {exact:?}",
                path.display()
            );
            compared += 1;
        }
    }
    assert!(captures >= 10 && compared >= 50, "{captures} {compared}");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sorted(&path));
        } else if path
            .extension()
            .is_some_and(|ending| ending != "tsv" && ending != "md" && ending != "tsh")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}
