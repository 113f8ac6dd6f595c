//! Bad input: one message each on standard error, exit code 1, and a result with the readable part.

use super::inputs::gzip;
use super::{counted, document, feed, flowsieve, record_offsets, sample};
use flowsieve::trace::{Capture, InputFormat};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Counts a bad input alone and beside a good one. It must yield `packets` packets, and one message
/// that names it and contains these words. If nothing could be opened there is no result.
fn check(bad: &Path, packets: u64, words: &[&str]) {
    let (good, _) = sample();
    let name = bad.to_str().unwrap();
    for (inputs, expected) in [
        (vec![bad], packets),
        (vec![bad, &good], packets + 8_000),
        (vec![&good, bad], packets + 8_000),
    ] {
        let run = counted(&inputs);
        assert_eq!(run.code, Some(1), "{name}");
        let sentence = run.sentence();
        assert!(sentence.starts_with(&format!("{name}: ")), "{sentence}");
        for word in words {
            assert!(sentence.contains(word), "no `{word}` in: {sentence}");
        }
        if Capture::open(bad, InputFormat::Auto).is_err() && inputs.len() == 1 {
            assert_eq!(run.out, "", "{name}");
            continue;
        }
        let document: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(document["totals"]["packets"], expected, "{sentence}");
        // The document has the same message, if the input was opened.
        let input =
            document["inputs"].as_array().unwrap().iter().find(|input| input["path"] == name);
        if let Some(input) = input {
            assert_eq!(input["packets"], packets);
            assert_eq!(input["error"], sentence);
        }
    }
}

fn check_bytes(name: &str, bytes: &[u8], packets: u64, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    check(&path, packets, words);
}

#[test]
fn what_is_no_capture() {
    let not = "not a capture that can be read";
    check_bytes("a.txt", b"It rained.\n", 0, &[not, "it is text"]);
    check_bytes("a.zip", b"PK\x03\x04\0\0\0\0", 0, &[not, "unpack it first"]);
    let filter = b"\x89FSIEVE\n\x04\0\0\0";
    check_bytes("a.fsieve", filter, 0, &[not, "`flowsieve filter info` reads it"]);
    check_bytes("a.bin", &[0x9d; 4_000], 0, &[not]);
    check_bytes("b.txt.gz", &gzip(b"It rained.\n"), 0, &[not, "it is text"]);
    check_bytes("empty.pcap", b"", 0, &["it is empty"]);
    check_bytes("empty.gz", &gzip(b""), 0, &["it is empty"]);
}

#[test]
fn captures_of_other_tools_are_refused_with_the_command_that_converts_them() {
    let snoop = [&b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"[..], &[0; 24]].concat();
    for (name, bytes, what) in [
        ("a.snoop", &snoop[..], "a snoop (RFC 1761) capture"),
        ("a.snoop.gz", &gzip(&snoop), "a snoop (RFC 1761) capture"),
        ("b.cap", b"RTSS\x01\x01\x01\0", "a Microsoft Network Monitor 1 capture"),
        ("c.cap", b"GMBU\0\x02\x01\0", "a Microsoft Network Monitor 2 capture"),
    ] {
        let command = "convert it with `editcap in out.pcapng` of Wireshark";
        check_bytes(name, bytes, 0, &[what, command]);
    }
}

#[test]
fn what_ends_too_early() {
    let (_, bytes) = sample();
    let header = ["inside its pcap header", "24 bytes were expected, 10 are there"];
    check_bytes("header.pcap", &bytes[..10], 0, &header);
    let offsets = record_offsets(&bytes);
    let at = format!("inside the record of packet 1001, at offset {}", offsets[1_000]);
    for more in [1, 15, 16, 40] {
        let cut = &bytes[..offsets[1_000] + more];
        let present = match more {
            1 => "1 is there".to_owned(),
            more => format!("{more} are there"),
        };
        check_bytes("record.pcap", cut, 1_000, &[&at, &present, "copy"]);
    }
    // Intact compression does not change the place of the cut.
    check_bytes("record.gz", &gzip(&bytes[..offsets[1_000] + 7]), 1_000, &[&at]);
}

#[test]
fn what_is_damaged_within() {
    let (_, bytes) = sample();
    let offsets = record_offsets(&bytes);
    let mut damaged = bytes.clone();
    damaged[offsets[777] + 11] = 0x7f;
    let at = format!("the record of packet 778, at offset {}", offsets[777]);
    check_bytes("long.pcap", &damaged, 777, &[&at, "more than", "copy"]);
    let log = "ts,src,dst,qname\n1,10.0.0.1,10.0.0.2,a\n2,10.0.0.1,10.0.0.2,b\n3,10.0.0.1\n4,10.0.0.1,10.0.0.2,d\n";
    let at = format!("line 4, at offset {}", log.find("3,10").unwrap());
    check_bytes("dns.csv", log.as_bytes(), 3, &[&at, "skipped", "fix the line"]);
}

#[test]
fn a_compressed_stream_that_breaks_off_counts_up_to_there() {
    let (_, bytes) = sample();
    let whole = gzip(&bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.pcap.gz");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (document, run) = document(&[&path]);
    assert_eq!(run.code, Some(1));
    let packets = document["totals"]["packets"].as_u64().unwrap();
    assert!((2_000..7_000).contains(&packets), "{packets}");
    let at = format!("at offset {} of the compressed file", whole.len() / 2);
    check(&path, packets, &["gzip", "ends too early", &at]);
    // The result is that of a prefix of the trace: every slice except the last one is complete.
    let slices = document["slices"].as_array().unwrap();
    for slice in &slices[..slices.len() - 1] {
        assert_eq!(slice["packets"], 1_000);
    }
}

#[test]
fn what_is_not_there_or_not_for_us() {
    let folder = tempfile::tempdir().unwrap();
    check(&folder.path().join("missing.pcap"), 0, &["no such file"]);
    check(Path::new("port"), 0, &["no such file; a capture filter goes after --where"]);
    check(folder.path(), 0, &["no capture in this directory; name one", "or logs"]);
    check(Path::new("traces/generated.pcap/"), 0, &["leave out the / after its name"]);
    fs::write(folder.path().join("notes.txt"), "It rained.\n").unwrap();
    check(folder.path(), 0, &["no capture in this directory"]);
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.pcap");
    fs::write(&path, sample().1).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    check(&path, 0, &["permission denied"]);
    // In a directory it is reported, too, and not skipped like other files.
    let run = counted(&[folder.path()]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    let start = format!("{}: permission denied", path.display());
    assert!(run.sentence().starts_with(&start), "{}", run.err);
}

#[test]
fn a_run_that_can_read_nothing_touches_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, kept) = (path("empty.pcap"), path("kept"));
    fs::write(&empty, "").unwrap();
    fs::write(&kept, "an earlier result").unwrap();
    for line in [
        &["count", "-o"][..],
        &["count", "--html"],
        &["count", "--slice", "all", "--save-filter"],
        &["count", "--format", "parquet", "-o"],
        &["compare", "-o"],
        &["flows", "-o"],
        &["flows", "--unique", "-o"],
        &["dedup", "-w"],
        &["dedup", "--dry-run", "-o"],
        &["dedup", "-w", "/dev/null", "--dropped"],
    ] {
        let run = flowsieve(&[line, &[&kept, "no-such-file.pcap", &empty]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{line:?}");
        for problem in ["no-such-file.pcap: no such file", "it is empty"] {
            assert!(run.err.contains(problem), "{line:?}: {}", run.err);
        }
        assert_eq!(fs::read_to_string(&kept).unwrap(), "an earlier result");
    }
    for command in ["count", "compare", "flows"] {
        let run = flowsieve(&[command, "no-such-file.pcap"]);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{command}");
        run.sentence();
    }
    let mut left = super::signals::names_in(folder.path());
    left.sort();
    assert_eq!(left, ["empty.pcap", "kept"]);
}

#[test]
fn no_result_takes_the_place_of_a_file_of_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let name = archive.to_str().unwrap();
    flowsieve(&["index", "build", "-q", name, "traces/generated.pcap"]).done();
    let catalog = archive.join("catalog.json");
    let before = fs::read(&catalog).unwrap();
    for line in [
        &["dedup", "traces/generated.pcap", "-w"][..],
        &["count", "traces/generated.pcap", "-o"],
        &["flows", "traces/generated.pcap", "-o"],
    ] {
        let run = flowsieve(&[line, &[catalog.to_str().unwrap()]].concat());
        assert_eq!(run.code, Some(2), "{line:?}");
        assert!(run.err.contains("inside the directory of the index"), "{}", run.err);
        assert_eq!(fs::read(&catalog).unwrap(), before);
    }
}

#[test]
fn of_many_problems_the_first_are_said() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..500 {
        fs::write(folder.path().join(format!("{number}.pcap")), "").unwrap();
    }
    let run = counted(&[folder.path(), Path::new("traces/generated.pcap")]);
    assert_eq!(run.code, Some(1));
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 11, "{}", run.err);
    assert_eq!(lines[10], "flowsieve: 490 more inputs had problems");
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["inputs"].as_array().unwrap().len(), 501);
}

#[cfg(unix)]
#[test]
fn terminals_do_not_obey_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\u{1b}[31m\nflowsieve: b.pcap");
    fs::write(&path, "").unwrap();
    let run = counted(&[&path]);
    let sentence = run.sentence();
    assert!(sentence.contains("a\\u{1b}[31m\\nflowsieve: b.pcap"), "{sentence}");
}

#[test]
fn captures_that_count_twice_get_a_remark() {
    let (_, bytes) = sample();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    fs::write(&path, &bytes).unwrap();
    fs::write(folder.path().join("a.pcap.gz"), gzip(&bytes)).unwrap();
    let run = counted(&[folder.path()]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.sentence().ends_with("a.pcap.gz may be the same capture; packets of both are counted")
    );
    let run = counted(&[&path, &path]);
    assert_eq!(run.code, Some(0));
    assert!(run.sentence().ends_with("is named twice; its packets are counted twice"));
    let line = ["count", "--quiet", path.to_str().unwrap(), path.to_str().unwrap()];
    flowsieve(&line).done();
    // An index reads it once.
    let index = folder.path().join("index");
    let [index, path] = [&index, &path].map(|path| path.to_str().unwrap());
    let run = flowsieve(&["index", "build", index, path, path]);
    assert_eq!(run.code, Some(0));
    assert!(!run.err.contains("twice"), "{}", run.err);
}

#[test]
fn standard_input_has_a_name_of_its_own() {
    let run = feed(&["count", "-"], b"It rained.\n");
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().starts_with("standard input: not a capture"));
}

/// A stream cannot be opened a second time after its format was recognised.
#[test]
fn a_stream_that_cannot_be_read_leaves_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old");
    let old = file.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["count", "-"],
        &["count", "-", "--format", "csv"],
        &["count", "-", "-o", old],
        &["count", "-", "--html", old],
        &["count", "-", "--slice", "all", "--save-filter", old],
        &["compare", "-"],
        &["compare", "-", "--html", old],
        &["flows", "-"],
        &["flows", "-", "-o", old],
        &["flows", "-", "--unique", "--format", "csv"],
        &["dedup", "-", "-w", old],
        &["dedup", "-", "-w", "-"],
        &["dedup", "-", "--dry-run", "-o", old],
    ];
    for bytes in [&b"It rained.\n"[..], b""] {
        for &command in commands {
            fs::write(&file, "what an earlier run wrote").unwrap();
            let run = feed(command, bytes);
            assert_eq!(run.code, Some(1), "{command:?}");
            assert_eq!(run.out, "", "{command:?}");
            assert!(run.sentence().starts_with("standard input: "), "{}", run.err);
            let kept = fs::read_to_string(&file).unwrap();
            assert_eq!(kept, "what an earlier run wrote", "{command:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn every_bad_input_gets_its_own_line() {
    let (good, _) = sample();
    let good = good.to_str().unwrap();
    let (document, run) = document(&["missing-1", good, "missing-2"]);
    assert_eq!(run.code, Some(1));
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("flowsieve: missing-1: "));
    assert!(lines[1].starts_with("flowsieve: missing-2: "));
    assert_eq!(document["totals"]["packets"], 8_000);
}
