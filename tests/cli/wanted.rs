//! Filters of `count` that are designed for combinations of attributes: their counts against an
//! independent truth, the same in every format and with every number of threads, saved and asked.

use super::formats::{documented, documented_set, fields, parquet_is_the_csv};
use super::{feed, flowsieve};
use etherparse::{LaxNetSlice, LaxSlicedPacket};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const CAPTURE: &str = "traces/generated.pcap";

/// Three combinations of host pairs.
pub(super) const PAIRS: &[&str] =
    &["--want", "src,dst:2", "--want", "src", "--want", "dst", "--expect", "500"];

pub(crate) fn counted(options: &[&str]) -> Value {
    let line = [&["count", "--format", "json"], options].concat();
    serde_json::from_str(&flowsieve(&line).done()).unwrap()
}

pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Whether an estimate lies within four of its standard errors of the truth. Where losses are rare,
/// each of them is whole and more than the standard error says.
pub(crate) fn check_estimate(count: &Value, truth: usize) {
    let number = |name: &str| count[name].as_f64().unwrap();
    let (estimate, error) = (number("estimate"), number("std_error"));
    let (truth, most) = (truth as f64, (4.0 * error).max(1.0));
    assert!((estimate - truth).abs() <= most, "{count}: {truth}");
    assert!(number("first") <= truth, "{count}: {truth}");
}

/// Addresses of each packet of a pcap file by the second, read by another program's decoder.
fn addresses(pcap: &[u8]) -> BTreeMap<u32, Vec<(IpAddr, IpAddr)>> {
    let offsets = super::record_offsets(pcap);
    let mut seconds: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for ends in offsets.windows(2) {
        let record = &pcap[ends[0]..ends[1]];
        let second = u32::from_le_bytes(record[..4].try_into().unwrap());
        let packet = LaxSlicedPacket::from_ethernet(&record[16..]).unwrap();
        let pair = match packet.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                (header.source_addr().into(), header.destination_addr().into())
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                (header.source_addr().into(), header.destination_addr().into())
            }
            _ => continue,
        };
        seconds.entry(second).or_default().push(pair);
    }
    seconds
}

fn distinct<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> usize {
    values.collect::<HashSet<T>>().len()
}

#[test]
fn combinations_are_counted_as_an_independent_decoder_says() {
    let seconds = addresses(&super::sample().1);
    // In little memory something is lost.
    for memory in ["512", "2KiB"] {
        let options = [PAIRS, &["--memory", memory, CAPTURE]].concat();
        let document = counted(&options);
        let slices = array(&document["slices"]);
        assert_eq!(slices.len(), seconds.len());
        for (slice, pairs) in slices.iter().zip(seconds.values()) {
            let truth = [
                distinct(pairs.iter().map(|pair| pair.0)),
                distinct(pairs.iter().map(|pair| pair.1)),
            ];
            assert_eq!(slice["exact"], distinct(pairs.iter()));
            check_estimate(slice, distinct(pairs.iter()));
            let combinations = array(&slice["combinations"]);
            assert_eq!(combinations.len(), 2);
            for ((count, name), truth) in combinations.iter().zip(["src", "dst"]).zip(truth) {
                assert_eq!(count["attributes"], Value::from(vec![name]));
                check_estimate(count, truth);
            }
        }
        // Sums over the slices, as the others are.
        for (place, total) in array(&document["totals"]["combinations"]).iter().enumerate() {
            let sum = |name: &str| -> f64 {
                let of_slice = |slice: &Value| slice["combinations"][place][name].as_f64().unwrap();
                slices.iter().map(of_slice).sum()
            };
            for name in ["first", "estimate"] {
                let total = total[name].as_f64().unwrap();
                assert!((total - sum(name)).abs() < 1e-6, "{total} {name}");
            }
        }
    }
}

#[test]
fn every_format_tells_them_and_the_default_none() {
    let options = [PAIRS, &[CAPTURE]].concat();
    let document = counted(&options);
    let design = &document["parameters"]["design"];
    assert_eq!(fields(design), documented_set("**`design`**", &[]));
    let count = documented_set("**`combinations`**", &[]);
    for counts in [&document["totals"], &document["slices"][0]] {
        for row in array(&counts["combinations"]) {
            assert_eq!(fields(row), count);
        }
    }
    assert_eq!(design["combinations"], serde_json::json!([["src"], ["dst"]]));
    assert_eq!(design["stored"][1]["attributes"], serde_json::json!(["dst"]));
    assert_eq!(document["parameters"]["shards"], 1);
    let lines = flowsieve(&[&["count", "--format", "jsonl"], options.as_slice()].concat()).done();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_slices = array(&document["slices"]);
    assert_eq!(lines.len(), of_slices.len());
    for (line, slice) in lines.iter().zip(of_slices) {
        assert_eq!(line["combinations"], slice["combinations"]);
    }
    // Flat tables: a column for each count of each combination.
    let csv = super::slices(&options);
    let mut csv = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = csv.next().unwrap();
    let mut usual = documented("**`slices`**");
    // Columns of combinations stand before the marks and what is new.
    let marks = usual.iter().position(|name| name == "out_of_range").unwrap();
    let last = usual.split_off(marks);
    assert_eq!(header[header.len() - last.len()..], last);
    assert_eq!(header[..usual.len()], usual);
    let names = ["first", "estimate", "std_error", "lower", "upper", "exact"];
    let columns: Vec<String> = ["src", "dst"]
        .iter()
        .flat_map(|attribute| names.map(|name| format!("{attribute}_{name}")))
        .collect();
    let combinations = usual.len()..header.len() - last.len();
    assert_eq!(header[combinations.clone()], columns);
    for (line, slice) in csv.zip(of_slices) {
        let counts = array(&slice["combinations"]).iter();
        let values: Vec<&Value> = counts.flat_map(|count| names.map(|name| &count[name])).collect();
        let cells: Vec<Value> = line[combinations.clone()]
            .iter()
            .map(|cell| serde_json::from_str(cell).unwrap())
            .collect();
        assert_eq!(cells.iter().collect::<Vec<_>>(), values);
    }
    parquet_is_the_csv(&[&["count"], options.as_slice()].concat());
    // Without an answer there is nothing in the column.
    let without = ["--filter", "mdbf", "--want", "src", "--expect", "500", CAPTURE];
    parquet_is_the_csv(&[&["count"], &without[..]].concat());
    let table = flowsieve(&[&["count"], options.as_slice()].concat()).done();
    let mut lines = table.lines();
    let title = lines.next().unwrap();
    assert!(title.contains("in 1 shard, k = ") && title.contains(", src k = "), "{title}");
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head[head.len() - 2..], ["src", "dst"]);
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let estimate = of_slices[0]["combinations"][1]["estimate"].as_f64().unwrap();
    let last = &first[first.len() - 3..];
    assert_eq!((last[0], last[1]), (&*format!("{estimate:.0}"), "±"), "{table}");
    // Combinations that nobody asked for are nowhere.
    for format in ["json", "jsonl", "csv", "table"] {
        let plain = flowsieve(&["count", "--format", format, CAPTURE]).done();
        assert!(!plain.contains("combinations") && !plain.contains("design"));
        assert!(!plain.contains("src"), "{plain}");
    }
}

/// DNS triples that nothing was read for: names, clients and servers that occur in several of them.
fn triples() -> Vec<[String; 3]> {
    (0..3000_u32)
        .map(|i| {
            // Few servers, some clients, and about half as many names as triples.
            let client = i.wrapping_mul(2_654_435_761) >> 21;
            let name = i.wrapping_mul(40_503) % 1499;
            [
                format!("10.0.{}.{}", client / 256, client % 256),
                format!("192.0.2.{}", i % 7),
                format!("host{name}.example"),
            ]
        })
        .collect()
}

fn log(triples: &[[String; 3]], folder: &Path) -> PathBuf {
    let lines = triples.iter().enumerate();
    let log = lines.fold("ts,src,dst,qname\n".to_owned(), |log, (i, [src, dst, name])| {
        log + &format!("{},{src},{dst},{name}\n", 1000 + i / 1000)
    });
    let path = folder.join("queries.csv");
    fs::write(&path, log).unwrap();
    path
}

const DNS: &[&str] = &["--element", "dns", "--slice", "all", "--want", "all"];
const PARTIAL: [&str; 6] = ["src", "dst", "domain", "src,dst", "src,domain", "dst,domain"];

/// The values of the triple's attributes that a combination names.
fn part(triple: &[String; 3], combination: &str) -> Vec<Option<String>> {
    let names = ["src", "dst", "domain"];
    let values = triple.iter().zip(names);
    values
        .map(|(value, name)| {
            let is_named = combination.split(',').any(|other| other == name);
            is_named.then(|| value.clone())
        })
        .collect()
}

fn question(part: &[Option<String>]) -> String {
    let values = part.iter();
    let values: Vec<&str> = values.map(|value| value.as_deref().unwrap_or("*")).collect();
    values.join(",")
}

#[test]
fn every_part_of_an_element_is_found_in_a_saved_filter_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let triples = triples();
    let capture = log(&triples, folder.path());
    let saved = folder.path().join("dns.fsieve");
    let mut options = DNS.to_vec();
    for combination in PARTIAL {
        options.extend(["--want", combination]);
    }
    options.extend(["--expect", "3k", "--memory", "64KiB", "--save-filter"]);
    options.extend([saved.to_str().unwrap(), capture.to_str().unwrap()]);
    let document = counted(&options);
    let line = ["filter", "info", "--format", "json", saved.to_str().unwrap()];
    let info: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
    let stored = array(&info["filters"][0]["combinations"]);
    let filters = documented_set("**`filters`**", &[]);
    assert_eq!(fields(&info["filters"][0]), filters);
    let table = flowsieve(&["filter", "info", saved.to_str().unwrap()]).done();
    for (place, combination) in PARTIAL.into_iter().enumerate() {
        let parts: HashSet<_> = triples.iter().map(|t| part(t, combination)).collect();
        let count = &document["slices"][0]["combinations"][place];
        check_estimate(count, parts.len());
        // The saved filter tells the same, and the bits of the design.
        let told = &stored[place];
        assert_eq!(fields(told), documented_set("**Stored combinations**", &[]));
        for name in ["attributes", "first", "estimate", "std_error"] {
            assert_eq!(told[name], count[name], "{combination}");
        }
        let design = &document["parameters"]["design"]["stored"][place];
        assert_eq!(told["probes"], design["probes"]);
        assert!(table.contains(&format!("\n  {combination:<11} ")), "{table}");
        // No false negative; and what is not there is nearly always known not to be.
        let ask = |questions: &str| {
            let line = ["filter", "query", saved.to_str().unwrap(), "-"];
            feed(&line, questions.as_bytes()).done()
        };
        let questions: Vec<String> = parts.iter().map(|part| question(part)).collect();
        let answers = ask(&questions.join("\n"));
        assert_eq!(answers.lines().count(), parts.len());
        assert!(answers.lines().all(|line| line.ends_with("\tyes")), "{combination}");
        let strangers: Vec<String> = (0..200)
            .map(|i| {
                let stranger = [
                    format!("203.0.113.{i}"),
                    format!("198.51.100.{i}"),
                    format!("absent{i}.example"),
                ];
                question(&part(&stranger, combination))
            })
            .collect();
        let answers = ask(&strangers.join("\n"));
        let found = answers.lines().filter(|line| line.ends_with("\tyes")).count();
        let none = answers.lines().filter(|line| line.ends_with("\tno")).count();
        assert!(found + none == 200 && found < 10, "{combination}: {found}");
    }
}

#[test]
fn matrices_count_single_attributes_without_bias_and_others_from_below() {
    let folder = tempfile::tempdir().unwrap();
    let triples = triples();
    let capture = log(&triples, folder.path());
    let capture = capture.to_str().unwrap();
    let with = |more: &[&str]| {
        let wants = ["--want", "src", "--want", "src,domain", "--want", "src,dst"];
        let numbers = ["--expect", "3k", "--expect", "dst=7", "--memory", "256KiB"];
        counted(&[DNS, &wants, &numbers, more, &[capture]].concat())
    };
    let truth = |combination| distinct(triples.iter().map(|t| part(t, combination)));
    for filter in ["cbfm", "wcbfm"] {
        // The pair of client and server is cut.
        let document = with(&["--filter", filter, "--cuts", "src,dst"]);
        let design = &document["parameters"]["design"];
        assert_eq!(design["cuts"], serde_json::json!([["src", "dst"]]));
        let counts = array(&document["slices"][0]["combinations"]);
        check_estimate(&counts[0], truth("src"));
        let first = counts[1]["first"].as_u64().unwrap() as usize;
        assert!(first <= truth("src,domain") && first > 0, "{document}");
        for (place, name) in [
            (1, "estimate"),
            (1, "std_error"),
            (1, "lower"),
            (1, "upper"),
            (2, "first"),
            (2, "estimate"),
        ] {
            assert!(counts[place][name].is_null(), "{document}");
        }
        let sizes = array(&design["sizes"]);
        let all_equal = sizes.windows(2).all(|two| two[0] == two[1]);
        assert_eq!(all_equal, filter == "cbfm", "{design}");
    }
    // Weights by hand.
    let document = with(&["--filter", "wcbfm", "--weights", "4,1,4"]);
    let sizes = array(&document["parameters"]["design"]["sizes"]);
    assert_eq!(sizes[0], sizes[2]);
    assert!(sizes[0].as_u64().unwrap() >= 4 * sizes[1].as_u64().unwrap());
    let line = [DNS, &["--want", "src,dst", "--expect", "3k", "--filter", "bfm", capture]].concat();
    let table = flowsieve(&[&["count"], line.as_slice()].concat()).done();
    assert!(table.contains("≥ ") && table.contains("a lower bound"), "{table}");
    // MDBFs answer combinations without counting them.
    let document =
        counted(&[DNS, &["--want", "src", "--expect", "3k", "--filter", "mdbf", capture]].concat());
    let count = &document["totals"]["combinations"][0];
    assert!(count["first"].is_null() && count["estimate"].is_null());
}

#[test]
fn the_number_of_threads_changes_not_one_byte_of_them() {
    for filter in ["subset", "cbfm", "wcbfm", "mdbf", "cartesian"] {
        for format in ["table", "csv", "json", "jsonl"] {
            let line = ["count", "--filter", filter, "--format", format, "--threads"];
            let count =
                |threads| flowsieve(&[&line[..], &[threads], PAIRS, &[CAPTURE]].concat()).done();
            let one = count("1");
            for threads in ["2", "3"] {
                assert_eq!(count(threads), one, "{filter} {format} {threads}");
            }
        }
    }
}

#[test]
fn a_filter_that_is_too_small_for_combinations_claims_no_upper_bound() {
    let wants = ["--want", "all", "--want", "src", "--want", "dst", "--expect", "500"];
    let line = ["--memory", "64", "--slice", "all", CAPTURE];
    let document = counted(&[&wants[..], &line].concat());
    let within = |count: &Value| {
        let exact = count["exact"].as_u64().unwrap();
        let lower = count["lower"].as_u64().unwrap();
        assert!(lower <= exact, "{count}");
        // A filter that is full claims no more than that.
        let Some(upper) = count["upper"].as_u64() else { return };
        let [estimate, error] = ["estimate", "std_error"].map(|name| count[name].as_f64().unwrap());
        assert!((lower..=upper).contains(&(estimate.round() as u64)), "{count}");
        assert!((estimate - exact as f64).abs() <= 4.0 * error + 1.0, "{count}");
    };
    within(&document["slices"][0]);
    let combinations = array(&document["slices"][0]["combinations"]);
    assert!(combinations.len() >= 2, "{document}");
    combinations.iter().for_each(within);
    assert_eq!(document["totals"]["saturated_slices"], 1, "{document}");
    assert!(document["slices"][0]["upper"].is_null(), "{document}");
    // A matrix estimates only the values of single attributes, which have little memory each.
    let line = ["--filter", "bfm", "--memory", "512", "--slice", "all", CAPTURE];
    let document = counted(&[&wants[..], &line].concat());
    array(&document["slices"][0]["combinations"])
        .iter()
        .filter(|count| !count["estimate"].is_null())
        .for_each(within);
    let empty =
        feed(&[&["count", "--format", "json", "-"], &wants[..]].concat(), b"ts,src,dst,qname\n");
    let document: Value = serde_json::from_str(&empty.out).unwrap();
    for count in array(&document["totals"]["combinations"]) {
        assert_eq!((&count["first"], &count["estimate"]), (&0.into(), &0.0.into()));
    }
}

/// The command behind a plan, without its first word, for this capture.
fn command_of(table: &str, capture: &str) -> Vec<String> {
    let (_, command) = table.split_once("to build it:\n").unwrap();
    let command = command.replace(" \\\n", " ");
    let words = command.split_whitespace().map(|word| match word {
        "CAPTURE" => capture.to_owned(),
        word => word.trim_matches('\'').to_owned(),
    });
    let words: Vec<String> = words.collect();
    assert_eq!(words[0], "flowsieve");
    words[1..].to_vec()
}

/// Runs what a plan with these options prints, and compares what is built with what was planned.
fn check_command(options: &[&str]) {
    let table = flowsieve(&[&["plan"], options].concat()).done();
    let (_, command) = table.split_once("to build it:\n").unwrap();
    assert!(command.lines().all(|line| line.chars().count() <= 98), "{table}");
    let json = flowsieve(&[&["plan", "--format", "json"], options].concat()).done();
    let planned: Value = serde_json::from_str(&json).unwrap();
    let structures = array(&planned["structures"]);
    let row = structures.iter().find(|row| row["recommended"] == true).unwrap();
    let capture = if options.contains(&"dns") { "traces/netns-dns.pcap" } else { CAPTURE };
    let words = command_of(&table, capture);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(words[0], "count");
    let built = counted(&words[1..]);
    let parameters = &built["parameters"];
    assert_eq!(parameters["filter"], row["structure"], "{words:?}");
    assert_eq!(parameters["memory_bytes"], row["memory_bytes"], "{words:?}");
    assert_eq!(parameters["probes"], row["probes"], "{words:?}");
    let design = &parameters["design"];
    assert_eq!(design["stored"], row["stored"], "{words:?}");
    assert_eq!(design["cuts"], row["cuts"], "{words:?}");
    if row["structure"] == "wcbfm" {
        assert_eq!(design["sizes"], row["sizes"], "{words:?}");
    }
    assert!(built["totals"]["first"].as_u64().unwrap() > 0);
    let partial = array(&planned["wanted"]).iter().map(|wanted| &wanted["attributes"]);
    let all = &planned["parameters"]["attributes"];
    let partial: Vec<&Value> = partial.filter(|attributes| *attributes != all).collect();
    let counted = array(&design["combinations"]);
    assert_eq!(counted.iter().collect::<Vec<_>>(), partial);
}

/// The command that `plan` prints builds the planned filter.
#[test]
fn the_command_of_a_plan_builds_what_it_planned() {
    let pairs = ["--want", "src,dst:3", "--want", "src:1"];
    for options in [
        &["--expect", "1000"][..],
        &[&pairs[..], &["--expect", "100k", "--memory", "1MiB"]].concat(),
        &[&pairs[..], &["--expect", "1k", "--expect", "src=50", "--memory", "1000"]].concat(),
        &[&pairs[..], &["--expect", "src=30", "--expect", "dst=40", "--fpr", "0.001"]].concat(),
        &[&pairs[..], &["--expect", "max", "--fpr", "0.01", "--memory", "8KiB"]].concat(),
        &[&pairs[..], &["--sample", CAPTURE, "--undirected"]].concat(),
        &["--sample", CAPTURE, "--where", "tcp", "--to=+5s", "--memory", "1200"],
        &[&pairs[..], &["--expect", "1k", "--filter", "cmdbf"]].concat(),
        &[&pairs[..], &["--expect", "1k", "--expect", "dst=9", "--filter", "cbfm"]].concat(),
        &[
            &pairs[..],
            &["--expect", "1k", "--expect", "src=9", "--filter", "wcbfm", "--weights", "1,2"],
        ]
        .concat(),
        &["--element", "flow", "--want", "src,dst_port", "--want", "proto:0.5", "--expect", "5k"],
        &[
            "--element",
            "dns",
            "--want",
            "src,domain:2",
            "--want",
            "domain",
            "--sample",
            "traces/netns-dns.pcap",
            "--queries-only",
            "--dns-port",
            "5301",
        ],
        &[
            "--element",
            "dns",
            "--want",
            "1,3",
            "--filter",
            "cbfm",
            "--cuts",
            "1,2;2,3",
            "--expect",
            "4k",
            "--memory",
            "300kB",
        ],
        &["--element", "src", "--expect", "50", "--filter", "counting"],
    ] {
        check_command(options);
    }
    // Plans for which `count` has no options get no command.
    for options in [
        &["--attributes", "3", "--expect", "1000"][..],
        &["--expect", "1k", "--attribute-fpr", "0.01"],
        &["--expect", "1k", "--want", "src", "--filter", "exact,hll"],
        &["--expect", "1k", "--known", "0.5", "--filter", "mdbf"],
    ] {
        let table = flowsieve(&[&["plan"], options].concat()).done();
        assert!(!table.contains("to build it"), "{table}");
    }
}

#[test]
fn what_cannot_be_designed_is_refused_with_what_works() {
    let want = ["--want", "src", "--expect", "1k"];
    for (options, words) in [
        (&["--want", "src"][..], "--expect 100k works"),
        (&["--want", "src", "--expect", "src=5"], "--expect 100k works"),
        (&["--want", "source", "--expect", "1k"], "src works"),
        (&["--want", "src:x", "--expect", "1k"], "0.5"),
        (&["--want", "src", "--want", "src", "--expect", "1k"], "add its weights up"),
        (&["--want", "src", "--expect", "0"], "--expect 1000 works"),
        (&["--want", "src", "--expect", "many"], "--expect takes 100k"),
        (&["--want", "src", "--expect", "2T"], "--expect takes 100k"),
        (&["--want", "src", "--expect", "2000G"], "2^40"),
        (&["--want", "src", "--expect", "1k", "--expect", "2k"], "--expect src=5k"),
        (&["--want", "src", "--expect", "1k", "--expect", "src=1", "--expect", "src=2"], "twice"),
        (&["--want", "src", "--expect", "1k", "--expect", "src=2k"], "--expect src,dst=2000"),
        (&["--expect", "src=5"], "--expect 100k works"),
        (&["--expect", "1k", "--expect", "2k"], "--expect 100k works"),
        (&["--expect", "many"], "--expect 100k works"),
        (&[&want[..], &["--shards", "4"]].concat(), "leave out --shards"),
        (&[&want[..], &["--filter", "bloom"]].concat(), "--filter subset works"),
        (&[&want[..], &["--filter", "bloom", "--fpr", "0.01"]].concat(), "--filter subset works"),
        (&[&want[..], &["--filter", "dleft"]].concat(), "--filter subset works"),
        (&[&want[..], &["--filter", "hll"]].concat(), "--filter subset"),
        (&[&want[..], &["--filter", "exact"]].concat(), "--filter subset"),
        (&[&want[..], &["--cuts", "src,dst"]].concat(), "--filter cbfm works"),
        (&[&want[..], &["--filter", "cbfm", "--weights", "1,1"]].concat(), "--filter wcbfm works"),
        (&[&want[..], &["--filter", "cbfm", "--cuts", "src"]].concat(), "at least two"),
        (&[&want[..], &["--filter", "wcbfm", "--weights", "1"]].concat(), "1,1 works"),
        (&[&want[..], &["--memory", "63"]].concat(), "64KiB works"),
        (&[&want[..], &["--fpr", "2"]].concat(), "0.001 works"),
        (
            &["--want", "all", "--expect", "1k", "--filter", "mdbf", "--fpr", "0.001"],
            "--memory 64KiB instead of --fpr works",
        ),
    ] {
        let run = flowsieve(&[&["count"], options, &[CAPTURE]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}: {}", run.err);
        assert!(run.sentence().contains(words), "no `{words}` in: {}", run.err);
    }
}
