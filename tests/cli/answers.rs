//! Compares counts with those of an independent program, with the README, and for several numbers
//! of threads.

use super::{document, flowsieve, text_of};
use serde_json::Value;
use std::thread;

/// Columns of `traces/COUNTS.tsv`, and the options of the count that has this number.
const COUNTED: [(usize, &[&str]); 4] = [
    (3, &["--element", "host-pair"]),
    (4, &["--element", "flow"]),
    // Some of these messages are on another port.
    (5, &["--element", "dns", "--dns-port", "5301"]),
    (6, &["--element", "dns", "--dns-port", "5301", "--queries-only"]),
];

#[test]
fn committed_captures_have_the_counts_of_an_independent_program() {
    let counts = text_of("traces/COUNTS.tsv");
    for line in counts.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |column: usize| cells[column].parse::<u64>().unwrap();
        let capture = format!("traces/{}", cells[0]);
        for (column, options) in COUNTED {
            let (document, run) = document(&[&[&capture, "--slice", "all"], options].concat());
            run.done();
            let totals = &document["totals"];
            let ours = ["packets", "ip_packets", "exact"].map(|name| &totals[name]);
            let theirs = [1, 2, column].map(|column| Value::from(number(column)));
            // A capture without any element still has its one slice, with a count of 0.
            assert_eq!(ours, theirs.each_ref(), "{capture} {options:?}");
        }
    }
    assert_eq!(counts.lines().count(), 5);
}

#[test]
fn the_readme_shows_what_its_main_command_prints() {
    let readme = text_of("README.md");
    let command =
        readme.lines().find_map(|line| line.strip_prefix("    cargo run --release -- ")).unwrap();
    let (_, rest) = readme.split_once("```text\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let arguments: Vec<&str> = command.split(' ').collect();
    assert_eq!(flowsieve(&arguments).done(), block);
}

#[test]
fn the_number_of_threads_changes_not_one_byte() {
    let captures = ["traces/generated.pcap", "traces/netns-dns.pcap"];
    let elements = ["host-pair", "flow", "dns", "src", "dst"];
    thread::scope(|scope| {
        for filter in ["subset", "bloom", "mdbf", "cmdbf", "hll", "exact"] {
            scope.spawn(move || {
                for element in elements {
                    for format in ["table", "csv", "json", "jsonl"] {
                        let line = ["count", "--element", element, "--filter", filter];
                        let memory = ["--memory", "2KiB", "--shards", "4", "--format", format];
                        let count = |threads| {
                            let threads = ["--threads", threads];
                            flowsieve(&[&line[..], &memory, &threads, &captures].concat()).done()
                        };
                        let one = count("1");
                        for threads in ["2", "8"] {
                            assert_eq!(count(threads), one, "{element} {filter} {threads}");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn generate_makes_the_committed_capture_and_knows_its_counts() {
    let readme = text_of("traces/README.md");
    let command = readme.lines().find_map(|line| line.strip_prefix("    flowsieve ")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.pcap");
    let arguments = command.replace("traces/generated.pcap", path.to_str().unwrap());
    let said = flowsieve(&arguments.split(' ').collect::<Vec<_>>()).done();
    let (_, committed) = super::sample();
    assert!(std::fs::read(&path).unwrap() == committed);
    let said: Vec<&str> = said.split_whitespace().collect();
    let counts = text_of("traces/COUNTS.tsv");
    let mut lines = counts.lines().map(|line| line.split('\t'));
    let names = lines.next().unwrap();
    let line = lines.find(|line| line.clone().next() == Some("generated.pcap"));
    for (name, count) in names.zip(line.unwrap()) {
        if let Some(place) = said.iter().position(|word| *word == name) {
            assert_eq!(said[place + 1], count, "{name}");
        }
    }
    assert!(said.contains(&"dns_query_triples"));
}

#[test]
fn a_random_seed_is_drawn_and_told_and_a_full_filter_is_told() {
    let capture = "traces/generated.pcap";
    let ask = |seed: &str| {
        let (document, run) = document(&[capture, "--seed", seed, "--slice", "all"]);
        run.done();
        document
    };
    let (one, other) = (ask("random"), ask("random"));
    let seed = |document: &Value| document["parameters"]["seed"].as_u64().unwrap();
    assert_ne!(seed(&one), seed(&other));
    assert_eq!(one["totals"]["exact"], other["totals"]["exact"]);
    // The printed seed reproduces the results.
    assert_eq!(ask(&seed(&one).to_string())["slices"], one["slices"]);
    assert_eq!(one["totals"]["saturated_slices"], 0);
    let line = [capture, "--slice", "all", "--memory", "64", "--shards", "1"];
    // Slices with an estimate count.
    let (full, run) = document(&line);
    run.done();
    assert_eq!(full["slices"][0]["saturated"], false, "{full}");
    let line = [&line[..], &["--filter", "mdbf"]].concat();
    let (full, run) = document(&line);
    run.done();
    assert_eq!(full["slices"][0]["saturated"], true, "{full}");
    let table = flowsieve(&[&["count"], &line[..]].concat()).done();
    assert!(table.contains("filters were full in 1 of 1 slice"), "{table}");
    let quantiles = |line: &[&str]| document(line).0["totals"]["quantiles"].clone();
    let line = [capture, "--memory", "64", "--filter", "mdbf"];
    assert_eq!(quantiles(&line)["p50"], 509);
    assert_eq!(quantiles(&[&line[..], &["--no-exact"]].concat()), Value::Null);
}
