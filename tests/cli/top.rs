//! `top` as its users run it.

use super::{flowsieve, repository};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const CAPTURE: &str = "traces/generated.pcap";

fn document(line: &[&str]) -> Value {
    let out = flowsieve(&[&["top", "--format", "json"], line].concat()).done();
    serde_json::from_str(&out).unwrap()
}

/// Keys with what a field says of them.
fn keys(document: &Value, field: &str) -> Vec<(String, u64)> {
    let keys = document["keys"].as_array().unwrap().iter();
    keys.map(|key| {
        let text = key["key"].as_str().unwrap().to_owned();
        (text, key[field].as_f64().unwrap().round() as u64)
    })
    .collect()
}

/// Pairs of a capture by `flows --unique`, which shares neither extraction nor counting: addresses,
/// ports.
fn flows(capture: &str) -> Vec<[String; 4]> {
    let out = flowsieve(&["flows", "--unique", "--format", "jsonl", capture]);
    let lines = out.out.lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| {
        ["src", "dst", "src_port", "dst_port"]
            .map(|name| row[name].to_string().trim_matches('"').to_owned())
    })
    .collect()
}

/// The largest numbers of distinct others, the largest first.
fn largest(pairs: impl Iterator<Item = (String, String)>) -> Vec<u64> {
    let mut others: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, other) in pairs {
        others.entry(key).or_default().insert(other);
    }
    let mut numbers: Vec<u64> = others.values().map(|others| others.len() as u64).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.retain(|&number| number >= 2);
    numbers.truncate(20);
    numbers
}

#[test]
fn a_kind_of_element_stands_for_its_fields() {
    let by = |names: &str| document(&["--by", names, "--distinct", "dst-port", CAPTURE]);
    let fields = by("src,dst");
    assert_eq!(fields["parameters"]["by"], "src,dst");
    assert_eq!(by("host-pair"), fields);
}

#[test]
fn exact_numbers_are_those_of_the_flows() {
    for capture in [CAPTURE, "traces/netns-dns.pcap", "traces/netns-web-loss.pcap"] {
        let flows = flows(capture);
        assert!(!flows.is_empty());
        for (by, distinct, key, other) in [
            ("src", "dst", &[0][..], 1),
            ("dst", "src", &[1], 0),
            ("src,dst", "dst-port", &[0, 1], 3),
            ("src", "dst-port", &[0], 3),
        ] {
            let document = document(&["--by", by, "--distinct", distinct, capture]);
            let found: Vec<u64> = keys(&document, "exact").iter().map(|(_, n)| *n).collect();
            // Later fragments and the like have no ports, and give no element where they are asked
            // for.
            let with_ports = flows
                .iter()
                .filter(|flow| other != 3 || (flow[2].as_str(), flow[3].as_str()) != ("0", "0"));
            let pairs = with_ports.map(|flow| {
                let key: Vec<&str> = key.iter().map(|&at| flow[at].as_str()).collect();
                (key.join(","), flow[other].clone())
            });
            assert_eq!(found, largest(pairs), "{capture} {by} {distinct}");
        }
    }
}

/// A sentence about one key, two and more.
#[test]
fn the_footer_counts_keys_as_a_person_does() {
    for (number, words) in [("1", "this key"), ("2", "both keys"), ("3", "all 3 keys")] {
        let out = flowsieve(&["top", "-n", number, CAPTURE]).done();
        assert!(out.contains(&format!("finds {words}")), "{out}");
    }
}

#[test]
fn names_and_prefixes_are_keys() {
    let document_of = |line: &[&str]| keys(&document(line), "exact");
    let dns = "traces/netns-dns.pcap";
    let domains = document_of(&["--by", "domain2", "--distinct", "domain", dns]);
    assert_eq!(domains, [("example.test".to_owned(), 30)]);
    let clients = document_of(&["--by", "domain", "--distinct", "src", "-n", "3", dns]);
    assert!(clients.iter().all(|(name, _)| name.contains(".test")), "{clients:?}");
    let networks = document_of(&["--by", "src/8", "--distinct", "src", CAPTURE]);
    assert!(networks.iter().any(|(key, _)| key == "10.0.0.0/8"), "{networks:?}");
}

#[test]
fn estimates_hold_where_memory_is_short() {
    let exact = document(&["-n", "100000", "--min", "1", CAPTURE]);
    let exact: BTreeMap<String, u64> = keys(&exact, "exact").into_iter().collect();
    assert_eq!(exact.len(), 892);
    let short = document(&["--no-exact", "--memory", "8KiB", "-n", "20", CAPTURE]);
    let rows = short["keys"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    let mut covered = 0;
    for row in rows {
        let truth = exact[row["key"].as_str().unwrap()];
        let bounds = ["lower", "upper"].map(|name| row[name].as_u64().unwrap());
        covered += usize::from((bounds[0]..=bounds[1]).contains(&truth));
        assert_eq!(row["exact"], Value::Null);
    }
    assert!(covered >= 19, "{covered} of 20");
    let listed = document(&["--no-exact", "--memory", "8KiB", "--min", "10", CAPTURE]);
    for row in listed["keys"].as_array().unwrap() {
        let certain = row["certainty"] == "certain";
        assert!(!certain || exact[row["key"].as_str().unwrap()] >= 10, "{row}");
    }
}

#[test]
fn results_do_not_depend_on_threads_or_on_how_captures_are_cut() {
    let line = ["top", "--slice", "1s", "--memory", "16KiB", "--format", "csv"];
    for more in [
        &[][..],
        &["--no-exact"],
        &["--no-exact", "--sort", "bytes"],
        &["--by", "domain2", "--distinct", "src"],
    ] {
        let run = |last: &[&str]| flowsieve(&[&line[..], more, last].concat()).done();
        let one = run(&["--threads", "1", CAPTURE]);
        assert!(one.lines().count() > 8);
        for threads in ["2", "3", "5"] {
            assert_eq!(run(&["--threads", threads, CAPTURE]), one);
        }
        // The capture in two files, the later one named first.
        let bytes = fs::read(repository().join(CAPTURE)).unwrap();
        let mut at = 24;
        while at < bytes.len() / 2 {
            let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
            at += 16 + length as usize;
        }
        let folder = tempfile::tempdir().unwrap();
        let [early, late] = ["early.pcap", "late.pcap"].map(|name| folder.path().join(name));
        fs::write(&early, &bytes[..at]).unwrap();
        fs::write(&late, [&bytes[..24], &bytes[at..]].concat()).unwrap();
        let [early, late] = [&early, &late].map(|path| path.to_str().unwrap());
        assert_eq!(run(&["--threads", "2", late, early]), one);
        // And out of order, in one file.
        let mixed = folder.path().join("mixed.pcap");
        fs::write(&mixed, [&bytes[..24], &bytes[at..], &bytes[24..at]].concat()).unwrap();
        let exact_only = |text: &str| -> Vec<String> {
            let columns = |row: &str| {
                let cells: Vec<&str> = row.split(',').collect();
                [cells[0], cells[4], cells[5], cells[10]].join(",")
            };
            text.lines().map(columns).collect()
        };
        let mixed = run(&[mixed.to_str().unwrap()]);
        assert_eq!(exact_only(&mixed).len(), exact_only(&one).len());
        if more.first() != Some(&"--no-exact") {
            assert_eq!(exact_only(&mixed), exact_only(&one));
        }
    }
}

#[test]
fn a_flood_of_sources_does_not_push_a_scanner_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flood.pcap");
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    let mut packet = |second: u32, source: u32, destination: u32| {
        for word in [second, 0, 20, 20] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0]);
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
    };
    for number in 0..100_000_u32 {
        // Spoofed sources, and every 200th packet is a scanner's.
        packet(1, number.wrapping_mul(0x9e37_79b9) | 1 << 31, 1);
        if number % 200 == 0 {
            packet(1, 2, 1_000 + number);
        }
    }
    fs::write(&path, &bytes).unwrap();
    let path = path.to_str().unwrap();
    let line = ["--no-exact", "--memory", "64KiB", "-n", "5", path];
    let found = keys(&document(&line), "estimate");
    assert_eq!(found[0].0, "0.0.0.2");
    assert!((350..650).contains(&found[0].1), "{found:?}");
    assert_eq!(found.len(), 1, "all others have one destination: {found:?}");
}

#[test]
fn a_shorter_ranking_is_the_begin_of_a_longer_one() {
    let of = |most| {
        let line = ["--memory", "8KiB", "--no-exact", "--min", "10", "-n", most, CAPTURE];
        keys(&document(&line), "estimate")
    };
    let longer = of("6");
    assert_eq!(longer.len(), 6);
    assert!(longer.is_sorted_by(|one, other| one.1 >= other.1), "{longer:?}");
    assert_eq!(of("5"), longer[..5]);
}

#[test]
fn a_page_without_the_exact_count_limits_the_most_bytes_to_keys_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let sentence = |more: &[&str]| {
        let line = ["top", "-q", "--sort", "bytes", "--html", page.to_str().unwrap(), CAPTURE];
        flowsieve(&[&line[..], more].concat()).done();
        fs::read_to_string(&page).unwrap().contains("Of the keys in the table ")
    };
    assert!(sentence(&["--no-exact"]));
    assert!(!sentence(&[]));
}

#[test]
fn the_bytes_of_logs_are_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("flows.csv");
    fs::write(&list, flowsieve(&["flows", "--format", "csv", CAPTURE]).done()).unwrap();
    let list = list.to_str().unwrap();
    let by = |number| flowsieve(&["top", "--sort", number, list]).done();
    assert!(by("bytes").contains("records of logs have no bytes in this ranking"));
    assert!(!by("packets").contains("records of logs"));
}

#[test]
fn every_format_has_the_same_keys() {
    let line = ["--slice", "1s", "-n", "3", CAPTURE];
    let json = document(&line);
    assert_eq!(json["schema"], "flowsieve.top/1");
    assert_eq!(json["totals"]["keys"], 24);
    assert_eq!(json["totals"]["found_keys"], json["totals"]["exact_keys"]);
    let keys = json["keys"].as_array().unwrap();
    let csv = flowsieve(&[&["top", "--format", "csv"], &line[..]].concat()).done();
    let mut rows = csv.lines();
    let header: Vec<&str> = rows.next().unwrap().split(',').collect();
    for (row, key) in rows.zip(keys) {
        for (name, value) in header.iter().zip(row.split(',')) {
            match key[*name].as_f64().filter(|_| *name == "share") {
                // A float may be read back with another last digit.
                Some(share) => assert!((share - value.parse::<f64>().unwrap()).abs() < 1e-12),
                None if key[*name].is_null() => assert_eq!(value, "", "{name}"),
                None => assert_eq!(key[*name].to_string().trim_matches('"'), value, "{name}"),
            }
        }
    }
    let lines = flowsieve(&[&["top", "--format", "jsonl"], &line[..]].concat()).done();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_lines: Vec<Value> = lines.collect();
    assert_eq!(of_lines.len(), keys.len());
    assert!(of_lines.iter().zip(keys).all(|(line, key)| line["key"] == key["key"]));
    let table = flowsieve(&[&["top"], &line[..]].concat()).done();
    let bars = table.lines().filter(|line| line.contains('█'));
    assert_eq!(bars.count(), 24, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
}

#[test]
fn a_page_has_the_keys_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let name = page.to_str().unwrap();
    flowsieve(&["top", "--slice", "1s", "--html", name, "-o", "/dev/null", CAPTURE]).done();
    let text = fs::read_to_string(&page).unwrap();
    for expected in ["keys-over-time", "others-over-time", "10.0.0.0 has the most distinct"] {
        assert!(text.contains(expected), "{expected}");
    }
    // Keys of slices that are not drawn, since they are partial, get no place.
    let line = ["top", "--by", "domain", "--slice", "2s", "--html", name, "-o", "/dev/null"];
    flowsieve(&[&line[..], &[CAPTURE]].concat()).done();
    let text = fs::read_to_string(&page).unwrap();
    let figure = &text[text.find("id=\"keys-over-time\"").unwrap()..];
    let figure = &figure[..figure.find("</svg>").unwrap()];
    assert_eq!(figure.matches("class=\"line\" d=\"M").count(), 10);
    assert!(!figure.contains("d=\"\""));
    // Bars of keys that perhaps do not belong there are marked.
    let line = ["top", "--no-exact", "--memory", "8KiB", "--min", "25", "--html", name];
    flowsieve(&[&line[..], &["-o", "/dev/null", CAPTURE]].concat()).done();
    let text = fs::read_to_string(&page).unwrap();
    assert!(!text.contains("Packets without an element"));
    assert!(text.contains("possible: 100.108.70.80") && !text.contains("possible: 10.0.0.0"));
    assert!(text.contains("Not exact: the table below has bounds."));
}

/// In slices of 100 ms two sources have nine destinations each, in different slices.
#[test]
fn a_page_says_that_others_have_as_many() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let name = page.to_str().unwrap();
    let line = ["top", "--slice", "100ms", "--html", name, "-o", "/dev/null", CAPTURE];
    flowsieve(&line).done();
    let text = fs::read_to_string(&page).unwrap();
    let sentence = "has the most distinct destinations: 9 in the slice that begins at 2023-11-14 22:13:21.5 UTC; other keys have as many.";
    assert!(text.contains(sentence));
}

#[test]
fn what_is_counted_follows_from_the_key() {
    for (by, sort, distinct) in [
        ("src", "distinct", "dst"),
        ("dst", "distinct", "src"),
        ("dst,dst-port", "bytes", "src"),
        ("dst/24", "distinct", "dst"),
        ("host-pair", "packets", "vlan"),
        ("flow", "bytes", "vlan"),
    ] {
        let document = document(&["--by", by, "--sort", sort, CAPTURE]);
        assert_eq!(document["parameters"]["distinct"], distinct, "{by}");
    }
    let pairs = flowsieve(&["top", "--by", "src,dst", CAPTURE]);
    assert_eq!(pairs.code, Some(2));
    assert!(pairs.sentence().ends_with("--distinct, such as dst-port"), "{}", pairs.err);
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    for line in [
        &["--by", "src", "--distinct", "src"][..],
        &["--by", "source"],
        &["--by", "src/40"],
        &["--by", "dst-port/8"],
        &["--by", "domain", "--distinct", "domain2"],
        &["--queries-only"],
        &["-n", "0"],
        &["--min", "0"],
        &["--memory", "1KiB"],
        &["--slice", "0s"],
    ] {
        let run = flowsieve(&[&["top"], line, &[CAPTURE]].concat());
        assert_eq!(run.code, Some(2), "{line:?}: {}", run.err);
        assert_eq!(run.out, "");
    }
    let missing = flowsieve(&["top", "there-is-no-such.pcap"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
}

#[test]
fn keys_are_ranked_by_packets_and_bytes_as_the_flows_add_up() {
    for name in ["packets", "bytes"] {
        let rows = flowsieve(&["flows", "--format", "jsonl", CAPTURE]).done();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            *sums.entry(row["src"].as_str().unwrap().to_owned()).or_default() +=
                row[name].as_u64().unwrap();
        }
        let all: u64 = sums.values().sum();
        let mut expected: Vec<(String, u64)> = sums.clone().into_iter().collect();
        expected.sort_by_key(|(_, sum)| u64::MAX - sum);
        let document = document(&["--sort", name, CAPTURE]);
        let found = keys(&document, name);
        let numbers = |rows: &[(String, u64)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
        assert_eq!(numbers(&found), numbers(&expected[..20]), "{name}");
        let share = document["keys"][0]["share"].as_f64().unwrap();
        assert!((share - found[0].1 as f64 / all as f64).abs() < 1e-9, "{share}");
        assert_eq!(document["parameters"]["sort"], name);
        assert_eq!(document["keys"][0]["at_most"], Value::Null);
        // A full table has the largest keys, and bounds that hold.
        let short = ["--sort", name, "--no-exact", "--memory", "8KiB", "-n", "10", CAPTURE];
        let rows = self::document(&short)["keys"].as_array().unwrap().clone();
        let mut missed: BTreeSet<&str> = expected[..10].iter().map(|(key, _)| &**key).collect();
        for row in &rows {
            let key = row["key"].as_str().unwrap();
            let bounds = row[name].as_u64().unwrap()..=row["at_most"].as_u64().unwrap();
            assert!(bounds.contains(&sums[key]), "{row} {}", sums[key]);
            missed.remove(key);
        }
        assert!(rows.len() == 10 && missed.len() <= 2, "{name} {missed:?}");
        let sentence = "any key that is not in the table has at most";
        assert!(flowsieve(&[&["top"], &short[..]].concat()).done().contains(sentence));
        assert!(!flowsieve(&["top", "--sort", name, CAPTURE]).done().contains(sentence));
        // A table with room for all keys knows as much.
        let bounded = self::document(&["--sort", name, "--no-exact", CAPTURE]);
        assert_eq!(numbers(&keys(&bounded, name)), numbers(&found), "{name}");
    }
}

/// The capture with each of its Ethernet frames in VXLAN, between 192.0.2.1:50000 and 192.0.2.2.
fn in_vxlan(capture: &[u8]) -> Vec<u8> {
    let (head, mut records) = capture.split_at(24);
    let mut tunnelled = head.to_vec();
    while let Some((record, rest)) = records.split_first_chunk::<16>() {
        let length = u32::from_le_bytes(record[8..12].try_into().unwrap());
        let (frame, rest) = rest.split_at(length as usize);
        records = rest;
        let [udp, ip] = [16, 36].map(|header| (length as u16 + header).to_be_bytes());
        let longer = (length + 50).to_le_bytes();
        tunnelled.extend([&record[..8], &longer, &longer, &[2; 12], &[8, 0]].concat());
        tunnelled.extend([&[0x45, 0][..], &ip, &[0, 0, 0, 0, 64, 17, 0, 0]].concat());
        tunnelled.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        tunnelled.extend([&50_000_u16.to_be_bytes()[..], &4789_u16.to_be_bytes(), &udp].concat());
        tunnelled.extend([&[0, 0, 8, 0, 0, 0, 0, 0, 1, 0], frame].concat());
    }
    tunnelled
}

#[test]
fn names_in_tunnels_have_the_ports_of_the_addresses_that_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tunnel.pcap");
    let plain = repository().join("traces/netns-dns.pcap");
    fs::write(&path, in_vxlan(&fs::read(&plain).unwrap())).unwrap();
    let ranked = |tunnel, capture: &str| {
        let line = ["--by", "src,src-port,proto", "--distinct", "domain", "--min", "1"];
        keys(&document(&[&line[..], &["--tunnel", tunnel, capture]].concat()), "exact")
    };
    let [path, plain] = [&path, &plain].map(|path| path.to_str().unwrap());
    assert_eq!(ranked("inner", path), ranked("outer", plain));
    let outer = ranked("outer", path);
    assert_eq!(outer.len(), 1, "{outer:?}");
    assert_eq!(outer[0].0, "192.0.2.1,50000,17");
}
