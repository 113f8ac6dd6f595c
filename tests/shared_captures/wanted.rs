//! Filters of `count` that are designed for combinations of attributes.

use crate::cli::wanted::{array, check_estimate, counted};
use crate::manifest::Manifest;
use std::path::Path;

/// Compares sources of real captures with the exact set of another element, and host pairs with an
/// independent tool.
pub(crate) fn combinations_are_counted(folder: &Path) {
    let manifest = Manifest::read(folder);
    for name in ["backbone/auckland2-20000125-oc3atm.erf", "backbone/isp-10kp-anon.pcap.gz"] {
        let capture = folder.join(name);
        let capture = capture.to_str().unwrap();
        let line = ["--slice", "all", "--element", "src", "--filter", "exact", capture];
        let sources = counted(&line)["totals"]["exact"].as_u64().unwrap() as usize;
        let document = counted(&[
            "--slice",
            "all",
            "--element",
            "flow",
            "--want",
            "all",
            "--want",
            "src",
            "--want",
            "src,dst",
            "--expect",
            "20k",
            "--memory",
            "16KiB",
            capture,
        ]);
        let counts = array(&document["slices"][0]["combinations"]);
        check_estimate(&counts[0], sources);
        check_estimate(&counts[1], manifest.number(name, "pairs_outer") as usize);
    }
}
