//! Real captures whose packets are not in the order of time.

use crate::cli::wanted::{array, counted};
use std::path::Path;

/// One packet is 44 seconds late. The expected counts come from an independent tool,
/// `tshark -T fields -e frame.time_epoch` with a set for each second.
pub(crate) fn a_real_capture_out_of_order_has_all_packets_in_slices(folder: &Path) {
    let capture = folder.join("campus/ppa-ftp-crack.pcap");
    let capture = capture.to_str().unwrap();
    for slice in ["1s", "100ms", "10s"] {
        let document = counted(&["--slice", slice, capture]);
        let totals = &document["totals"];
        assert_eq!(totals["packets"], 19_730);
        assert_eq!((&totals["late"], &totals["uncounted"]), (&0.into(), &0.into()));
        let slices = array(&document["slices"]);
        let sum = |field: &str| slices.iter().map(|s| s[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("packets"), 19_730);
        if slice == "1s" {
            assert_eq!(sum("exact"), 90);
        }
    }
}
