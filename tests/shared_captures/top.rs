//! Rankings against numbers that tshark's fields give.

use crate::cli::flowsieve;
use crate::manifest::Manifest;
use libtest_mimic::Completion;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Captures that are compared, at least.
const LEAST_CAPTURES: usize = 30;

/// Bytes of the largest of them: tshark takes its time.
const LARGEST: u64 = 1 << 20;

/// A packet as tshark shows it: both addresses of its outermost header, and the destination port.
struct Packet {
    src: String,
    dst: String,
    port: Option<String>,
}

pub(crate) fn numbers_are_those_of_tshark(folder: &Path) -> Completion {
    let manifest = Manifest::read(folder);
    let mut compared = 0;
    for name in manifest.files() {
        let path = folder.join(name);
        let is_small = fs::metadata(&path).is_ok_and(|data| data.len() <= LARGEST);
        if !is_small || !name.starts_with("campus/") || compared >= 2 * LEAST_CAPTURES {
            continue;
        }
        let Some(packets) = packets(&path) else {
            return Completion::ignored_with("there is no tshark");
        };
        let pairs: BTreeSet<(&str, &str)> =
            packets.iter().map(|packet| (packet.src.as_str(), packet.dst.as_str())).collect();
        // Fields alone do not say which header is outermost, nor whether addresses were cut: only
        // captures where that makes no difference.
        if pairs.is_empty() || pairs.len() as u64 != manifest.number(name, "pairs_outer") {
            continue;
        }
        compared += 1;
        let path = path.to_str().unwrap();
        compare(path, "src", "dst", packets.iter().map(|p| (&p.src, Some(&p.dst))));
        compare(path, "dst", "src", packets.iter().map(|p| (&p.dst, Some(&p.src))));
        compare(path, "src", "dst-port", packets.iter().map(|p| (&p.src, p.port.as_ref())));
    }
    assert!(compared >= LEAST_CAPTURES, "only {compared} captures");
    Completion::Completed
}

/// The packets of a capture as tshark sees them; none if there is no tshark.
fn packets(path: &Path) -> Option<Vec<Packet>> {
    let fields = [
        "ip.src",
        "ip.dst",
        "ipv6.src",
        "ipv6.dst",
        "tcp.dstport",
        "udp.dstport",
        "sctp.dstport",
        "frame.protocols",
    ];
    let mut command = Command::new("tshark");
    for option in
        ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"]
    {
        command.args(["-o", option]);
    }
    command.args(["-T", "fields", "-E", "occurrence=f"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let packet = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let protocols: Vec<&str> = cells.get(7)?.split(':').collect();
        let is_ip = |name: &&str| ["ip", "ipv6"].contains(name);
        let outermost = protocols.iter().position(is_ip)?;
        let at = if protocols[outermost] == "ip" { 0 } else { 2 };
        if cells[at].is_empty() {
            return None;
        }
        // Ports in a tunnel, or quoted in an ICMP error, are not those of the outermost header.
        let mut upper = protocols[outermost + 1..].iter();
        let upper = upper.find(|name| !name.starts_with("ipv6."));
        let mut transport = ["tcp", "udp", "sctp"].iter();
        let transport = transport.position(|name| Some(name) == upper);
        let port = transport.map(|at| cells[4 + at]);
        let port = port.filter(|port| !port.is_empty());
        Some(Packet {
            src: cells[at].to_owned(),
            dst: cells[at + 1].to_owned(),
            port: port.map(ToOwned::to_owned),
        })
    };
    Some(text.lines().filter_map(packet).collect())
}

/// The exact answer for a question against that from these keys and others.
fn compare<'a>(
    path: &str,
    by: &str,
    distinct: &str,
    pairs: impl Iterator<Item = (&'a String, Option<&'a String>)>,
) {
    let mut others: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, other) in pairs {
        if let Some(other) = other {
            others.entry(key).or_default().insert(other);
        }
    }
    let mut expected: BTreeMap<String, u64> =
        others.into_iter().map(|(key, others)| (key.to_owned(), others.len() as u64)).collect();
    expected.retain(|_, number| *number >= 2);
    let line =
        ["top", "-q", "--format", "json", "--min", "2", "--by", by, "--distinct", distinct, path];
    let run = flowsieve(&line);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let rows = document["keys"].as_array().unwrap().iter();
    let found: BTreeMap<String, u64> = rows
        .map(|row| {
            let key = row["key"].as_str().unwrap().to_owned();
            (key, row["exact"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(found, expected, "{path}: {by} by {distinct}");
}
