//! Comparisons of structures on real captures.

use crate::library::comparison::{PAIR, plan, report, run};
use crate::manifest::Manifest;
use flowsieve::comparison::statistics::Verdict;
use flowsieve::comparison::{ComparePlan, Contender, CountKind, Seeds, Sizes};
use flowsieve::elements::ElementKind;
use flowsieve::filters::FilterKind;
use flowsieve::report::document::Block;
use std::fmt::Write as _;
use std::fs;
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

/// Returns a plan for a single pair at these sizes.
fn of(pair: [Contender; 2], folder: &Path, name: &str, sizes: &[u64]) -> ComparePlan {
    ComparePlan {
        contenders: pair.to_vec(),
        pair: Some(pair),
        queries: false,
        seeds: Seeds::Auto,
        sizes: Sizes::Total(sizes.to_vec()),
        ..plan(&[folder.join(name)], ElementKind::HOST_PAIR, sizes)
    }
}

fn of_pair(folder: &Path, name: &str, sizes: &[u64]) -> ComparePlan {
    of(PAIR, folder, name, sizes)
}

/// With plenty of memory the losses of mdbf depend on the trace alone.
pub(crate) fn floors_are_reached(folder: &Path) {
    for (name, floor) in [
        ("backbone/isp-10kp-anon.pcap.gz", 0.0751),
        ("backbone/auckland2-20000125-oc3atm.erf", 0.0212),
    ] {
        let plan = of_pair(folder, name, &[3 << 10]);
        let comparison = run(&plan);
        let mdbf = comparison.entry(PAIR[0], 3 << 10).unwrap();
        for replicate in &mdbf.replicates {
            let counts = replicate.first.iter().map(|&first| u64::from(first));
            assert!(counts.eq(comparison.slices.iter().map(|slice| slice.floors.new_values)));
        }
        let floors = comparison.floors(&plan);
        assert!((floors[0].mean - floor).abs() < 0.000_05, "{name}: {floors:?}");
    }
}

/// Where the number of hash functions decides the verdict, the difference is small.
pub(crate) fn the_number_of_hash_functions_decides_little(folder: &Path) {
    let plan = of_pair(folder, "dns/nsd-live-ns.pcap.xz", &[192, 768]);
    let comparison = run(&plan);
    let verdict = comparison.verdict(PAIR, 192, CountKind::Raw);
    let judged = verdict.result.unwrap();
    assert!(matches!(judged.verdict, Verdict::Open | Verdict::A), "{judged:?}");
    assert!(judged.difference.value.abs() < 0.003, "{judged:?}");
    assert_ne!(verdict.probes[0], verdict.probes[1], "that is what the remark is about");
    let remark = "At 192 B k is rounded to 5 (mdbf) and 3 (cmdbf), which may decide";
    let is_remark = |block: &Block| matches!(block, Block::Warning(it) if it.starts_with(remark));
    let page = report(&plan, &comparison).page(None);
    assert!(page.blocks.iter().any(|(_, block)| is_remark(block)), "{:?}", page.blocks);
    // At 768 B the other one is nearer in every seed, by less than the margin.
    let is_within =
        |block: &Block| matches!(block, Block::Answer(it) if it == "No crossover that matters.");
    assert!(page.blocks.iter().any(|(_, block)| is_within(block)), "{:?}", page.blocks);
}

/// Compares the verdicts with the golden file: 12 captures by 10 memories for two pairs, 240 cells.
/// The rules were made on 200 cells of one pair, from 20 captures, 9 of which do not come with the
/// tests. The captures here are those of real networks with at least 100 distinct host pairs, and
/// 600 in the sum over seconds.
pub(crate) fn verdicts_are_those_of_the_golden_file(folder: &Path) {
    let mut found = String::new();
    let sizes = [48, 96, 192, 384, 768, 1536, 3072, 6144, 12_288, 24_576];
    for name in [
        "backbone/isp-10kp-anon.pcap.gz",
        "backbone/auckland2-20000125-oc3atm.erf",
        "campus/ndpi-bittorrent_transmission.pcapng",
        "campus/ndpi-srvloc.pcap",
        "campus/ndpi-skype.pcap",
        "campus/pcapplusplus-many-protocols.pcap",
        "campus/ppa-gnutella.pcap",
        "ddos/tcp-synflood-spoofed.pcap",
        "ddos/udp-amp-dahua37810-bacnet.pcapng",
        "ddos/udp-amp-isakmp.pcap",
        "dns/nsd-live-ns.pcap.xz",
        "dns/dns-amp-rrsig-fragmented.pcap",
    ] {
        let published = [PAIR[0], Contender::from(FilterKind::CmdbfXor)];
        for (pair, mark) in [(PAIR, ""), (published, " xor")] {
            let comparison = run(&of(pair, folder, name, &sizes));
            for verdict in comparison.sweep(pair, CountKind::Raw) {
                let judged = verdict.result.unwrap();
                let [a, b] = judged.means.map(|mean| mean.value * 100.0);
                let (size, seeds, word) = (verdict.size, judged.seeds, judged.verdict.name());
                writeln!(found, "{name} {size} {a:.3} {b:.3} {word} {seeds}{mark}").unwrap();
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shared_captures/verdicts.txt");
    if std::env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
        fs::write(path, &found).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap();
    assert!(golden == found, "the verdicts differ from {path}:\n{found}");
}
