//! Answers are those of a scan of all packets.

use super::questions::{Question, questions};
use super::scan::{Packet, scan};
use super::{ask, build, repository_captures, settings, writer};
use flowsieve::filters::FilterKind;
use flowsieve::index::{Ends, Record, RegionFilter, Settings, stats, verify};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Every packet asked for stands in an answer, and every answer has such a packet.
pub(crate) fn check(
    question: &Question,
    scanned: &BTreeMap<PathBuf, Vec<Packet>>,
    archive: &Path,
) -> u64 {
    let (mut found, explained) = ask(archive, &question.query());
    assert_eq!(explained.problems, Vec::<String>::new());
    assert_eq!(
        explained.regions,
        explained.regions_by_node
            + explained.regions_by_time
            + explained.regions_by_filter
            + explained.regions_opened
    );
    let mut answers = 0;
    let matches = question.matches();
    for (path, packets) in scanned {
        let records = found.remove(path).unwrap_or_default();
        answers += records.len() as u64;
        let covers = |record: &Record, ends: Ends, time_ns: i64| {
            let same_ends = record.directions().any(|of_record| {
                let same_hosts = (of_record.src, of_record.dst) == (ends.src, ends.dst);
                let ports = (of_record.src_port, of_record.dst_port);
                let same_ports = match record.domain {
                    Some(_) => of_record.dst_port == ends.dst_port,
                    None => ports == (ends.src_port, ends.dst_port),
                };
                same_hosts && same_ports
            });
            same_ends && record.start_ns <= time_ns && time_ns <= record.end_ns
        };
        let mut used = vec![false; records.len()];
        for packet in packets {
            for ends in matches(packet) {
                let mut covered = false;
                for (record, used) in records.iter().zip(&mut used) {
                    if covers(record, ends, packet.time_ns) {
                        covered = true;
                        *used = true;
                    }
                }
                assert!(
                    covered || !question.in_time(packet.time_ns),
                    "{question:?} misses {packet:?} of {}",
                    path.display()
                );
            }
        }
        assert!(used.iter().all(|used| *used), "{question:?}: an answer without a packet");
        for record in &records {
            assert!(question.from_ns.is_none_or(|from| record.end_ns >= from));
            assert!(question.to_ns.is_none_or(|to| record.start_ns < to));
        }
    }
    assert!(found.is_empty(), "{question:?}: a capture that nobody added");
    answers
}

pub(crate) fn compare_with_scan(
    captures: &[PathBuf],
    settings: Settings,
    nodes: usize,
    every: usize,
) {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let nodes: Vec<PathBuf> =
        (1..nodes).map(|node| folder.path().join(format!("node-{node}"))).collect();
    build(&archive, settings, &nodes, captures);
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
    let indexed: Vec<PathBuf> = {
        let captures = stats(&archive).unwrap().captures;
        captures.into_iter().map(|entry| entry.path).collect()
    };
    let scanned: BTreeMap<PathBuf, Vec<Packet>> =
        indexed.into_iter().map(|path| (path.clone(), scan(&path))).collect();
    let packets: Vec<&Packet> = scanned.values().flatten().collect();
    let questions = questions(&packets, every);
    let answered = questions.iter().filter(|question| check(question, &scanned, &archive) > 0);
    let answered = answered.count();
    println!("{} questions, {answered} with answers", questions.len());
    assert!(answered > questions.len() / 4 && answered < questions.len());
}

#[test]
fn answers_are_those_of_a_scan() {
    let captures = repository_captures();
    assert!(captures.len() >= 4);
    compare_with_scan(&captures, settings(RegionFilter::Ribbon, 1), 1, 400);
    compare_with_scan(&captures, settings(RegionFilter::Ribbon, 300), 3, 1500);
    compare_with_scan(&captures, settings(FilterKind::Subset, 1), 1, 400);
    compare_with_scan(&captures, settings(FilterKind::Subset, 300), 3, 1500);
    compare_with_scan(&captures, settings(FilterKind::Cbfm, 2), 1, 1500);
    compare_with_scan(&captures, settings(FilterKind::Mdbf, 2), 2, 1500);
}

#[test]
fn regions_of_a_capture_are_spread_over_nodes() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let nodes: Vec<PathBuf> =
        (0..3).map(|node| folder.path().join(format!("node-{node}"))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/generated.pcap");
    let one = settings(FilterKind::Subset, 1);
    build(&archive, one.clone(), &nodes, std::slice::from_ref(&path));
    let with_nodes = stats(&archive).unwrap();
    assert_eq!(with_nodes.captures.len(), 1);
    let regions: Vec<u64> = with_nodes.nodes.iter().map(|node| node.regions).collect();
    let all = with_nodes.captures[0].regions.len() as u64;
    assert!(all >= 8 && regions.iter().sum::<u64>() == all);
    // They get as many bytes, and the regions of a capture are much the same.
    assert!(regions.iter().all(|&of_node| of_node >= all / 4), "{regions:?}");
    // One node answers no more and no less.
    let alone = folder.path().join("alone");
    build(&alone, one, &[], std::slice::from_ref(&path));
    let scanned = scan(&path);
    let all: Vec<&Packet> = scanned.iter().collect();
    for question in questions(&all, 800) {
        assert_eq!(ask(&archive, &question.query()).0, ask(&alone, &question.query()).0);
    }
    // Dropped, it leaves no file in any node but the lock and the mark.
    let mut dropping = writer(&archive);
    assert_eq!(dropping.drop_captures(&path).unwrap(), 1);
    dropping.commit().unwrap();
    for node in &nodes {
        assert_eq!(fs::read_dir(node).unwrap().count(), 2);
    }
    assert_eq!(verify(&archive).unwrap().problems, Vec::<String>::new());
}
