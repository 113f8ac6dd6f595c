//! Runs the examples on the captures of this repository.

#![allow(dead_code, reason = "what only prints is not called here")]

use flowsieve::Count;
use std::fs;
use std::path::Path;
use std::time::Duration;

#[path = "../../examples/compare_filters.rs"]
mod compare_filters;
#[path = "../../examples/count.rs"]
mod count;
#[path = "../../examples/filter_alone.rs"]
mod filter_alone;
#[path = "../../examples/flows_to_parquet.rs"]
mod flows_to_parquet;
#[path = "../../scripts/limit.rs"]
mod limit;
#[path = "../../examples/read_packets.rs"]
mod read_packets;
#[path = "../../examples/search_index.rs"]
mod search_index;

const CAPTURE: &str = "traces/generated.pcap";

#[test]
fn flows_are_counted() {
    let counted = count::count(Path::new(CAPTURE)).unwrap();
    assert_eq!(counted.slices.len(), 8);
    for row in &counted {
        assert!(row.rel_error().unwrap().abs() < 0.1, "{row:?}");
    }
}

#[test]
fn filters_are_compared() {
    let errors = compare_filters::compare(Path::new(CAPTURE), 2 << 10).unwrap();
    assert_eq!(errors.len(), 2);
    for errors in errors {
        assert!(errors.estimate.abs() < 0.2 && errors.missed < 0.2, "{}", errors.name);
    }
}

#[test]
fn flows_become_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("flows.parquet");
    let flows = flows_to_parquet::convert(Path::new(CAPTURE), &parquet).unwrap();
    assert!((1_000..=3_953).contains(&flows), "{flows}");
    assert!(fs::read(parquet).unwrap().ends_with(b"PAR1"));
}

#[test]
fn packets_are_read() {
    let read = read_packets::by_link_type(Path::new(CAPTURE)).unwrap();
    let packets: Vec<u64> = read.values().map(|(packets, _)| *packets).collect();
    assert_eq!(packets, [8_000]);
    assert!(read.values().all(|(packets, bytes)| bytes > &(packets * 40)));
}

#[test]
fn the_limit_program_counts_what_a_count_counts() {
    let second = Duration::from_secs(1);
    let counted = Count::of([CAPTURE]).slice(second).run().unwrap();
    let exact: u64 = counted.slices.iter().map(|row| row.exact.unwrap()).sum();
    let bytes = fs::metadata(CAPTURE).unwrap().len();
    assert_eq!(limit::pairs(CAPTURE, 24, bytes), (8_000, exact));
    let middle = limit::parts(CAPTURE, bytes, 2)[1];
    let halves = [limit::pairs(CAPTURE, 24, middle), limit::pairs(CAPTURE, middle, bytes)];
    assert_eq!(halves[0].0 + halves[1].0, 8_000);
    assert_eq!(halves[0].1 + halves[1].1, exact);
    assert!(halves.iter().all(|(packets, _)| *packets > 0));
}

#[test]
fn an_index_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    let captures = ["traces/netns-dns.pcap".into(), "traces/netns-mirror.pcap".into()];
    let found = search_index::find(folder.path(), "*.example.test", &captures).unwrap();
    assert!(found > 0);
}

#[test]
fn a_filter_stands_alone() {
    let log = [("ann", "/"), ("bob", "/"), ("ann", "/news"), ("ann", "/")];
    let (count, new, seen) = filter_alone::visits(&log, "bob").unwrap();
    assert!((count - 3.0).abs() < 0.5 && !new && seen);
    assert!(!filter_alone::visits(&log, "eve").unwrap().2);
}
