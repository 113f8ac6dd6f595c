//! Every shared capture against the exact counts of an independent tool.
//!
//! `FLOWSIEVE_TRACES` names the folder with `MANIFEST.tsv`; its head defines the figures.

mod common;

use flowsieve::decode::Tunnel;
use flowsieve::elements::ElementKind;
use flowsieve::pipeline::{Align, CountPlan, Slicing};
use flowsieve::trace::InputFormat;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One file's figures, ours or the manifest's.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Figures {
    packets: u64,
    ip_packets: u64,
    pairs_outer: u64,
    pairs_inner: u64,
    tuples5_outer: u64,
    dns_triples: u64,
    dns_query_triples: u64,
}

impl Figures {
    fn each(&self) -> [(&'static str, u64); 7] {
        [
            ("packets", self.packets),
            ("ip_packets", self.ip_packets),
            ("pairs_outer", self.pairs_outer),
            ("pairs_inner", self.pairs_inner),
            ("tuples5_outer", self.tuples5_outer),
            ("dns_triples", self.dns_triples),
            ("dns_query_triples", self.dns_query_triples),
        ]
    }
}

/// Where we differ from the manifest, and why: file, figure, ours, reason.
const DIFFERENCES: &[(&str, &str, u64, &str)] = &[];

/// Files in which DNS is spoken on other ports, and these ports.
const DNS_PORTS: &[(&str, &[u16])] = &[];

fn measure(path: &Path, name: &str) -> Figures {
    let one = |kind, change: &dyn Fn(&mut CountPlan)| {
        let mut plan = common::plan(&[path.to_owned()], kind);
        plan.slicing = Slicing {
            width_ns: None,
            align: Align::Epoch,
        };
        plan.filter = None;
        if name.ends_with(".tsh") {
            plan.input_format = InputFormat::Tsh;
        }
        if let Some((_, ports)) = DNS_PORTS.iter().find(|(file, _)| *file == name) {
            plan.rule.dns_ports = ports.to_vec();
        }
        change(&mut plan);
        let (slices, summary) = common::run(&plan);
        let exact: u64 = slices
            .iter()
            .map(|slice| slice.exact.expect("within the limit"))
            .sum();
        (exact, summary)
    };
    let (pairs_outer, summary) = one(ElementKind::HostPair, &|_| {});
    Figures {
        packets: summary.totals.packets,
        ip_packets: summary.totals.ip_packets,
        pairs_outer,
        pairs_inner: one(ElementKind::HostPair, &|plan| plan.tunnel = Tunnel::Inner).0,
        tuples5_outer: one(ElementKind::Flow, &|_| {}).0,
        dns_triples: one(ElementKind::Dns, &|_| {}).0,
        dns_query_triples: one(ElementKind::Dns, &|plan| plan.rule.queries_only = true).0,
    }
}

fn read_manifest(folder: &Path) -> BTreeMap<String, Figures> {
    let text = fs::read_to_string(folder.join("MANIFEST.tsv")).expect("a manifest");
    let mut rows = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = rows.next().expect("a header").split('\t').collect();
    rows.map(|row| {
        let cells: BTreeMap<&str, &str> = header.iter().copied().zip(row.split('\t')).collect();
        let number = |name: &str| cells[name].parse().expect("a number");
        let figures = Figures {
            packets: number("packets"),
            ip_packets: number("ip_packets"),
            pairs_outer: number("pairs_outer"),
            pairs_inner: number("pairs_inner"),
            tuples5_outer: number("tuples5_outer"),
            dns_triples: number("dns_triples"),
            dns_query_triples: number("dns_query_triples"),
        };
        (cells["file"].to_owned(), figures)
    })
    .collect()
}

#[test]
fn every_shared_capture_has_the_counts_of_the_independent_tool() {
    let Some(folder) = std::env::var_os("FLOWSIEVE_TRACES").map(PathBuf::from) else {
        eprintln!("SKIPPED: FLOWSIEVE_TRACES is not set, so the shared captures are not compared");
        return;
    };
    let manifest = read_manifest(&folder);
    assert!(manifest.len() >= 448, "{} files", manifest.len());
    let mut wrong = Vec::new();
    let mut explained = 0;
    for (name, expected) in &manifest {
        let ours = measure(&folder.join(name), name);
        for ((figure, expected), (_, ours)) in expected.each().into_iter().zip(ours.each()) {
            let known = DIFFERENCES
                .iter()
                .find(|(file, of, ..)| file == name && *of == figure);
            match known {
                Some((.., value, _)) if *value == ours && ours != expected => explained += 1,
                Some((.., value, _)) => wrong.push(format!(
                    "{name}: {figure} {ours}, the manifest has {expected}, the table of differences {value}"
                )),
                None if ours != expected => {
                    wrong.push(format!("{name}: {figure} {ours}, the manifest has {expected}"));
                }
                None => {}
            }
        }
    }
    assert_eq!(explained, DIFFERENCES.len(), "a listed difference is gone");
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
