//! Tests of `flowsieve index`.

use super::{Run, flowsieve, repository};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Builds an index of this repository's captures.
fn built() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let traces = repository().join("traces");
    let run = index("build", &archive, &["--quiet", traces.to_str().unwrap()]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    (folder, archive)
}

fn index(command: &str, archive: &Path, rest: &[&str]) -> Run {
    let mut line = vec!["index", command, archive.to_str().unwrap()];
    line.extend(rest);
    flowsieve(&line)
}

#[test]
fn answers_are_the_same_in_every_format() {
    let (_folder, archive) = built();
    let asked = ["--host", "10.0.0.2", "--dst-port", "53"];
    let search = |more: &[&str]| index("search", &archive, &[&asked[..], more].concat()).done();
    let json: Value = serde_json::from_str(&search(&["--format", "json"])).unwrap();
    assert_eq!(json["schema"], "flowsieve.index-search/1");
    let hits = json["hits"].as_array().unwrap();
    assert!(hits.len() > 10);
    assert_eq!(json["explain"]["hits"], hits.len());
    let csv = search(&["--format", "csv"]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    for (row, hit) in reader.records().map(Result::unwrap).zip(hits) {
        for (name, cell) in header.iter().zip(&row) {
            let expected = match &hit[name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            assert_eq!(cell, expected, "{name}");
        }
    }
    assert_eq!(csv.lines().count(), 1 + hits.len());
    let table = search(&["--explain"]);
    let lines = table.lines().filter(|line| line.starts_with("  2")).count();
    assert_eq!(lines, hits.len());
    assert!(table.contains("observed FPR"));
    assert!(
        !json["explain"]["region_fpr"].is_null()
            || json["explain"]["regions_ruled_out_by_filter"] == 0
    );
    // Filters cannot answer for prefixes, so they are not used, and there is no rate.
    let prefix = index("search", &archive, &["--src", "172.16.0.0/12", "--format", "json"]);
    let prefix: Value = serde_json::from_str(&prefix.nothing()).unwrap();
    assert!(prefix["explain"]["regions_opened"].as_u64().unwrap() > 0);
    assert!(prefix["explain"]["region_fpr"].is_null() && prefix["explain"]["node_fpr"].is_null());
    let nothing = index("search", &archive, &[&asked[..], &["--to", "1"]].concat()).nothing();
    assert_eq!(nothing.trim_end(), "Nothing found.");
}

#[test]
fn packets_are_written_as_they_were() {
    let (folder, archive) = built();
    let out = folder.path().join("out.pcap");
    let asked = ["--domain", "*.test", "--src", "10.0.0.2", "-w", out.to_str().unwrap()];
    let run = index("search", &archive, &asked);
    assert_eq!(run.code, Some(0));
    let written = fs::read(&out).unwrap();
    let packets: usize = run.err.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(super::record_offsets(&written).len(), packets + 1);
    assert!(packets > 10);
    let written = |end, port| {
        let asked = [end, "10.0.0.2", "--port", port, "-w", out.to_str().unwrap()];
        index("search", &archive, &asked).err
    };
    assert!(written("--src", "53").contains("packets of the other direction are not among them"));
    let none = written("--src", "54321");
    assert!(none.starts_with("0 packets written to ") && none.lines().count() == 1, "{none}");
    assert_eq!(written("--host", "53").lines().count(), 1);
}

#[test]
fn what_is_no_question_is_one_sentence() {
    let (_folder, archive) = built();
    for (asked, words) in [
        (&[][..], "--host 10.1.2.3"),
        (&["--from", "2026-11-20T00:00:00Z"], "--host 10.1.2.3"),
        (&["--port", "1", "--from", "2", "--to", "1"], "--to"),
    ] {
        let run = index("search", &archive, asked);
        assert_eq!(run.code, Some(2), "{asked:?}");
        assert!(run.sentence().contains(words), "{}", run.err);
    }
    for (asked, words) in [
        (["--src", "10.0.0.256"], "2001:db8::/32"),
        (["--dst", "10.0.0.0/33"], "2001:db8::/32"),
        (["--host", "10.0.0.0/"], "2001:db8::/32"),
        (["--port", "65536"], "65535"),
        (["--domain", "a..b"], "www.example.com"),
        (["--domain", "*."], "*.example.com"),
        (["--domain", "*"], "*.example.com"),
        (["--domain", "a*.com"], "*.example.com"),
        (["--from", "yesterday"], "2026-11-20T12:00:00Z"),
    ] {
        let run = index("search", &archive, &asked);
        assert_eq!(run.code, Some(2), "{asked:?}");
        assert!(run.err.contains(words), "{}", run.err);
    }
}

#[test]
fn what_cannot_be_read_is_named_and_skipped() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let captures = folder.path().join("captures");
    fs::create_dir(&captures).unwrap();
    let whole = repository().join("traces/netns-dns.pcap");
    let bytes = fs::read(&whole).unwrap();
    fs::write(captures.join("whole.pcap"), &bytes).unwrap();
    fs::write(captures.join("cut.pcap"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(captures.join("head.pcap"), &bytes[..10]).unwrap();
    let text = captures.join("text.pcap");
    fs::write(&text, "no capture").unwrap();
    let folder_name = captures.to_str().unwrap();
    let run = index("build", &archive, &["--quiet", folder_name, text.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for name in ["cut.pcap", "head.pcap", "text.pcap"] {
        assert!(run.err.contains(name), "{}", run.err);
    }
    assert_eq!(run.err.lines().count(), 3, "{}", run.err);
    let stats: Value = serde_json::from_str(&index("stats", &archive, &["--json"]).done()).unwrap();
    assert_eq!(
        (&stats["schema"], &stats["captures"]),
        (&"flowsieve.index-stats/1".into(), &2.into())
    );
    let run = index("add", &archive, &["missing.pcap"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("missing.pcap"));
    // A second time: known captures are skipped.
    let run = index("add", &archive, &[captures.join("whole.pcap").to_str().unwrap()]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("in the index already: 1 capture"), "{}", run.err);
    assert!(!run.err.contains("content of"), "{}", run.err);
    // A copy leaves the index with the file that it is a copy of.
    let copy = captures.join("copy.pcap");
    fs::copy(captures.join("whole.pcap"), &copy).unwrap();
    let run = index("add", &archive, &[copy.to_str().unwrap()]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("copy.pcap: it has the content of"), "{}", run.err);
    assert_eq!(index("drop", &archive, &["--quiet", "missing.pcap"]).code, Some(1));
    // A capture is found by any path that it had, also if its folder is gone.
    fs::remove_dir_all(&captures).unwrap();
    let around = archive.join("../captures/whole.pcap");
    assert_eq!(index("drop", &archive, &["--quiet", around.to_str().unwrap()]).code, Some(0));
    let run = index("verify", &archive, &[]);
    assert!(run.done().starts_with("1 capture"));
    assert_eq!(index("drop", &archive, &["--quiet", folder_name]).code, Some(0));
    let run = index("verify", &archive, &[]);
    assert!(run.done().starts_with("0 captures"));
}

#[test]
fn folders_that_are_no_index_are_called_that() {
    let (folder, archive) = built();
    let missing = folder.path().join("missing");
    for command in ["search", "verify", "stats", "add", "drop"] {
        let rest: &[&str] = match command {
            "search" => &["--port", "1"],
            "add" | "drop" => &["x.pcap"],
            _ => &[],
        };
        let run = index(command, &missing, rest);
        assert_eq!(run.code, Some(1));
        assert!(run.sentence().contains("index build"), "{}", run.err);
        assert!(!missing.exists());
        let file = archive.join("catalog.json");
        let run = index(command, &file, rest);
        assert_eq!(run.code, Some(1));
        let told = run.sentence();
        assert!(told.contains("this is a file"), "{told}");
        assert!(!told.contains("os error"), "{told}");
    }
    // Without a capture no index is created. It would prevent the same command with the right name.
    let run = index("build", &missing, &["x.pcap"]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("no such file; check the path"), "{}", run.err);
    assert!(run.err.contains("no index was made") && !missing.exists());
    let empty = folder.path().join("empty.pcap");
    fs::write(&empty, "").unwrap();
    let run = index("build", &missing, &[empty.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("it is empty"), "{}", run.err);
    assert!(run.err.contains("no index was made") && !missing.exists(), "{}", run.err);
    let line = ["-q", "--memory", "18446744073709551615", "traces/netns-dns.pcap"];
    index("build", &missing, &line).done();
    fs::remove_dir_all(&missing).unwrap();
    let run = index("build", &archive, &["x.pcap"]);
    assert_eq!(run.code, Some(2));
    assert!(run.sentence().contains("index add"));
    let run = index("build", folder.path(), &["x.pcap"]);
    assert_eq!(run.code, Some(2));
    assert!(run.sentence().contains("folder of its own"), "{}", run.err);
    let run = index("build", &missing, &["-"]);
    assert_eq!(run.code, Some(2));
    let catalog = archive.join("catalog.json");
    let text = fs::read_to_string(&catalog).unwrap();
    fs::write(&catalog, text.replace("flowsieve.index/6", "flowsieve.index/9")).unwrap();
    for command in ["verify", "stats"] {
        let run = index(command, &archive, &[]);
        assert_eq!(run.code, Some(1));
        assert!(run.sentence().contains("flowsieve.index/9"), "{}", run.err);
    }
}

#[test]
fn a_file_that_is_called_like_a_lock_stays() {
    let folder = TempDir::new().unwrap();
    let [archive, node, bad] = ["archive", "n", "bad.pcap"].map(|name| folder.path().join(name));
    fs::write(&bad, "no capture").unwrap();
    let build = || {
        let nodes = ["--nodes", node.to_str().unwrap(), bad.to_str().unwrap()];
        index("build", &archive, &nodes)
    };
    for place in [&archive, &node] {
        fs::create_dir(place).unwrap();
        let lock = place.join("lock");
        // The lock of an index is empty, so this file is not one.
        fs::write(&lock, "mine").unwrap();
        assert!(build().sentence().contains("other files in it (lock)"), "{}", build().err);
        fs::write(&lock, "").unwrap();
        assert!(build().err.contains("no index was made"), "{}", build().err);
        assert_eq!(fs::read_dir(place).unwrap().count(), 1);
        assert_eq!(fs::read(&lock).unwrap(), b"");
        fs::remove_dir_all(place).unwrap();
    }
    assert!(build().err.contains("no index was made") && !archive.exists() && !node.exists());
}
