//! Compares counts that continue the filter of another capture with the exact count of both.

use crate::cli::flowsieve;
use crate::manifest::Manifest;
use serde_json::Value;
use std::path::Path;

/// Fewest host pairs of a capture: the filters of the test are then too small for its flows.
const LEAST_PAIRS: u64 = 150;

/// The bounds hold for filters that see every element, and for those that sample them. Counting
/// both captures once more changes nothing.
pub(crate) fn counts_hold_and_take_no_repeat(folder: &Path) {
    let manifest = Manifest::read(folder);
    let large = manifest.files().filter(|file| manifest.number(file, "pairs_outer") >= LEAST_PAIRS);
    let large: Vec<String> =
        large.map(|file| folder.join(file).to_str().unwrap().to_owned()).collect();
    let saved = tempfile::tempdir().unwrap();
    let [first, both] = ["first", "both"].map(|name| saved.path().join(name));
    let [first, both] = [&first, &both].map(|path| path.to_str().unwrap());
    let (mut stages, mut held, mut all) = ([0; 7], 0, 0);
    for days in large.windows(2) {
        let [day, next] = [&*days[0], &*days[1]];
        let Some(exact) = count(&["--filter", "exact", day, next]) else { continue };
        for memory in ["64", "512", "4KiB"] {
            for seed in ["1", "2"] {
                let options = ["--no-exact", "--memory", memory, "--seed", seed];
                count(&[&options[..], &["--save-filter", first, day]].concat()).unwrap();
                let go_on = ["--no-exact", "--continue", first, "--save-filter", both, next];
                let counted = count(&go_on).unwrap();
                let again = count(&["--no-exact", "--continue", both, next, day]).unwrap();
                for field in ["estimate", "std_error", "lower", "upper"] {
                    assert_eq!(again[field], counted[field], "{day} {next} {memory} {seed}");
                }
                let bounds = ["lower", "upper"].map(|bound| counted[bound].as_u64().unwrap());
                let exact = exact["exact"].as_u64().unwrap();
                held += u32::from((bounds[0]..=bounds[1]).contains(&exact));
                all += 1;
                let info = flowsieve(&["filter", "info", "--format", "json", both]).out;
                let info: Value = serde_json::from_str(&info).unwrap();
                stages[info["filters"][0]["stage"].as_u64().unwrap() as usize] += 1;
            }
        }
    }
    println!("bounds hold in {held} of {all}; counts by stage: {stages:?}");
    assert!(all >= 50 && held * 100 >= all * 95, "{held} of {all}");
    assert!(stages[..4].iter().all(|&counts| counts > 0), "{stages:?}");
}

/// Returns the totals of a count of flows, or `None` if a capture cannot be read to its end.
fn count(options: &[&str]) -> Option<Value> {
    let start = ["count", "-q", "--slice", "all", "--element", "flow", "--format", "json"];
    let run = flowsieve(&[&start[..], options].concat());
    let report: Value = (run.code == Some(0)).then(|| serde_json::from_str(&run.out).unwrap())?;
    Some(report["totals"].clone())
}
