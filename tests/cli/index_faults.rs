//! Signals in the midst of `flowsieve index`.

use super::signals::{check_end, ended, listening, names_in, signal, start};
use super::{flowsieve, repository};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PACKETS: usize = 12;

/// The generated capture cut into many small ones.
fn captures(folder: &Path) -> PathBuf {
    let bytes = fs::read(repository().join("traces/generated.pcap")).unwrap();
    let offsets = super::record_offsets(&bytes);
    let captures = folder.join("captures");
    fs::create_dir(&captures).unwrap();
    for (number, cut) in offsets.windows(PACKETS + 1).step_by(PACKETS).enumerate() {
        let piece = [&bytes[..24], &bytes[cut[0]..cut[PACKETS]]].concat();
        fs::write(captures.join(format!("{number:03}.pcap")), piece).unwrap();
    }
    captures
}

fn document(line: &[&str]) -> Value {
    serde_json::from_str(&flowsieve(line).done()).unwrap()
}

/// The number in front of these words.
fn number_before(text: &str, words: &str) -> u64 {
    let before = text.split(words).next().unwrap();
    before.split(' ').next_back().unwrap().parse().unwrap()
}

#[test]
fn a_signal_leaves_the_captures_that_are_done() {
    let folder = TempDir::new().unwrap();
    let captures = captures(folder.path());
    let all = names_in(&captures).len() as u64;
    let (archive, captures) = (folder.path().join("archive"), captures.to_str().unwrap());
    let index = archive.to_str().unwrap();
    let mut before = 0;
    for (command, name) in [("build", "INT"), ("add", "TERM"), ("add", "INT")] {
        let child = start(&["index", command, index, captures]);
        listening(&child);
        signal(&child, name);
        let run = ended(child);
        check_end(&run, name);
        let count = number_before(&run.err, " captures are in the index");
        let added = number_before(&run.err, " were added now");
        assert_eq!(count, before + added, "{}", run.err);
        assert!(count < all, "it was done before the signal came");
        let verified = document(&["index", "verify", "--json", index]);
        assert_eq!(verified["schema"], "flowsieve.index-verify/1");
        assert_eq!(verified["captures"], count);
        assert_eq!(verified["whole"], true);
        assert_eq!(verified["problems"], Value::Array(Vec::new()));
        // Nothing but what the catalogue names.
        let kept = names_in(&archive.join("node"));
        let folders = kept.iter().filter(|name| !name.contains('.')).count();
        assert_eq!(folders as u64, count);
        assert_eq!(names_in(&archive), ["catalog.json", "lock", "node"]);
        before = count;
    }
    assert_eq!(
        flowsieve(&["index", "add", "-q", index, captures]).code,
        Some(0)
    );
    let stats = document(&["index", "stats", "--json", index]);
    assert_eq!(stats["captures"], all);
}

#[test]
fn a_signal_ends_dropping_between_two_captures() {
    let folder = TempDir::new().unwrap();
    let captures = captures(folder.path());
    let archive = folder.path().join("archive");
    let index = archive.to_str().unwrap();
    let text = captures.to_str().unwrap();
    assert_eq!(
        flowsieve(&["index", "build", "-q", index, text]).code,
        Some(0)
    );
    let stats = || document(&["index", "stats", "--json", index])["captures"].as_u64();
    let all = stats().unwrap();
    let paths = fs::read_dir(&captures).unwrap();
    let paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    let mut line = vec!["index", "drop", index];
    // Paths of which there is no capture take time as well, and change nothing.
    let missing = captures.join("missing");
    line.extend(std::iter::repeat_n(missing.to_str().unwrap(), 20_000));
    line.extend(paths.iter().map(|path| path.to_str().unwrap()));
    let child = start(&line);
    listening_at_once(&child);
    signal(&child, "TERM");
    let run = ended(child);
    assert_eq!(run.code, Some(143), "{}", run.err);
    let last = run.err.lines().last().unwrap();
    assert!(last.contains("interrupted by SIGTERM"), "{last}");
    let dropped = number_before(last, " captures were dropped");
    assert_eq!(stats(), Some(all - dropped));
    assert!(dropped < all);
    assert_eq!(
        document(&["index", "verify", "--json", index])["whole"],
        true
    );
}

/// As `listening`, without waiting any longer.
fn listening_at_once(child: &std::process::Child) {
    for _ in 0..2000 {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if mask.unwrap_or(0) & 2 != 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_interrupted_search_has_the_answers_found_until_then() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let index = archive.to_str().unwrap();
    let capture = repository().join("traces/generated.pcap");
    let line = ["index", "build", "-q", "--region", "1s", index];
    let built = flowsieve(&[&line[..], &[capture.to_str().unwrap()]].concat());
    assert_eq!(built.code, Some(0), "{}", built.err);
    let line = ["index", "search", index, "--host", "0.0.0.0/0"];
    let json = [&line[..], &["--format", "json"]].concat();
    let whole = document(&json);
    let whole = whole["hits"].as_array().unwrap();
    // It waits for a reader of its answers, which are more than a pipe holds.
    let child = start(&json);
    listening(&child);
    thread::sleep(Duration::from_millis(300));
    signal(&child, "INT");
    let run = ended(child);
    check_end(&run, "INT");
    let partial: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(partial["explain"]["interrupted"], true);
    let hits = partial["hits"].as_array().unwrap();
    assert!(!hits.is_empty() && hits.len() < whole.len());
    assert_eq!(hits[..], whole[..hits.len()]);
    // Half a capture is not there.
    let out = folder.path().join("out.pcapng");
    let child = start(&[&line[..], &["-w", out.to_str().unwrap()]].concat());
    listening(&child);
    thread::sleep(Duration::from_millis(300));
    signal(&child, "TERM");
    let run = ended(child);
    check_end(&run, "TERM");
    assert!(run.err.contains("no capture was written"), "{}", run.err);
    assert!(run.out.contains("interrupted: there was more to search"));
    assert_eq!(names_in(folder.path()), ["archive"]);
}
