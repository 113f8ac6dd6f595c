//! The truth that structures are compared with.

use crate::library::comparison::{plan, run};
use crate::manifest::Manifest;
use flowsieve::elements::ElementKind;
use std::path::Path;

pub(crate) fn the_truth_is_the_manifests(folder: &Path) {
    let manifest = Manifest::read(folder);
    for (name, kind, column) in [
        ("backbone/auckland2-20000125-oc3atm.erf", ElementKind::HOST_PAIR, "pairs_outer"),
        ("backbone/isp-10kp-anon.pcap.gz", ElementKind::FLOW, "tuples5_outer"),
        ("dns/zeek-ticks-dns.pcap", ElementKind::DNS, "dns_triples"),
    ] {
        let mut plan = plan(&[folder.join(name)], kind, &[1 << 14]);
        plan.slicing.width_ns = None;
        let comparison = run(&plan);
        assert_eq!(comparison.slices[0].exact, Some(manifest.number(name, column)), "{name}");
    }
}
