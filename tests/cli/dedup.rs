//! Tests of `flowsieve dedup`.

use super::{feed, flowsieve, program, repository};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

const CAPTURE: &str = "traces/generated.pcap";

fn summary(line: &[&str]) -> Value {
    let out = flowsieve(&[&["dedup", "--format", "json"], line].concat()).done();
    serde_json::from_str(&out).unwrap()
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_summary_is_the_same_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let document = summary(&["--slice", "1s", CAPTURE, "-w", name(&out)]);
    assert_eq!(document["schema"], "flowsieve.dedup/1");
    let totals = &document["totals"];
    assert_eq!(totals["packets"], 8000);
    let dropped = totals["dropped"].as_u64().unwrap();
    assert!(dropped > 100, "{totals}");
    assert_eq!(totals["kept"], 8000 - dropped);
    let slices = document["slices"].as_array().unwrap();
    assert_eq!(slices.len(), 8);
    for name in ["packets", "kept", "dropped", "bytes", "dropped_bytes", "dropped_packet"] {
        let sum: u64 = slices.iter().map(|slice| slice[name].as_u64().unwrap()).sum();
        assert_eq!(totals[name], sum, "{name}");
    }
    let line = ["dedup", "--slice", "1s", "--dry-run", CAPTURE];
    let csv = flowsieve(&[&line[..], &["--format", "csv"]].concat()).done();
    let mut rows = csv.lines();
    let header: Vec<&str> = rows.next().unwrap().split(',').collect();
    for (row, slice) in rows.zip(slices) {
        for (name, value) in header.iter().zip(row.split(',')) {
            assert_eq!(slice[*name].to_string().trim_matches('"'), value);
        }
    }
    let table = flowsieve(&line).done();
    assert!(
        table.starts_with("duplicates by packet in a window of 50 ms; rotating filter, exact\n")
    );
    let line = table.lines().find(|line| line.starts_with("dropped ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1].replace(',', ""), dropped.to_string());
    // The output has no more duplicates.
    let again = summary(&[name(&out), "--dry-run"]);
    assert_eq!(again["totals"]["packets"], 8000 - dropped);
    assert_eq!(again["totals"]["dropped"], 0);
}

#[test]
fn kept_and_dropped_are_everything_and_options_agree() {
    let folder = tempfile::tempdir().unwrap();
    let [kept, dropped] = ["kept.pcap.gz", "dropped.pcapng"].map(|name| folder.path().join(name));
    for by in ["packet", "frame", "retransmission", "flow"] {
        let mut seen = Vec::new();
        for filter in ["rotating", "dleft", "counting", "split-counting"] {
            let line = ["--by", by, "--filter", filter, CAPTURE, "-w", name(&kept)];
            let document = summary(&[&line[..], &["--dropped", name(&dropped)]].concat());
            let counts = [&kept, &dropped]
                .map(|path| summary(&["--dry-run", name(path)])["totals"]["packets"].clone());
            assert_eq!(counts[0], document["totals"]["kept"]);
            assert_eq!(counts[1], document["totals"]["dropped"]);
            seen.push(counts);
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{by}: {seen:?}");
    }
}

#[test]
fn a_pipe_gets_pcapng_and_standard_error_the_summary() {
    let input = fs::read(repository().join(CAPTURE)).unwrap();
    let mut child = program(&["dedup", "--quiet", "-", "-w", "-"])
        .stdin(fs::File::open(repository().join(CAPTURE)).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut written = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut written).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(written[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("kept") && said.contains("dropped"), "{said}");
    let of = |bytes: &[u8]| feed(&["dedup", "--dry-run", "--format", "csv", "-"], bytes).done();
    assert_eq!(of(&input).lines().count(), 2);
    assert!(of(&written).lines().nth(1).unwrap().split(',').nth(6) == Some("0"));
}

#[test]
fn wrong_command_lines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [input, link, hard, out] =
        ["in.pcap", "link.pcap", "hard.pcap", "out.pcap"].map(|name| folder.path().join(name));
    fs::copy(repository().join(CAPTURE), &input).unwrap();
    fs::hard_link(&input, &hard).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&input, &link).unwrap();
    #[cfg(not(unix))]
    fs::hard_link(&input, &link).unwrap();
    let before = fs::read(&input).unwrap();
    let (from, to) = (name(&input), name(&out));
    for (line, wanted) in [
        (&[from][..], "-w"),
        (&[from, "-w", from], "an input as well as"),
        (&[from, "-w", name(&link)], "an input as well as"),
        (&[from, "-w", name(&hard)], "an input as well as"),
        (&[from, "-w", to, "--dropped", name(&link)], "an input as well as"),
        (&[name(folder.path()), "-w", from], "an input as well as"),
        (&[from, "-w", to, "--dropped", to], "the same file"),
        (&[from, "-w", to, "-o", to], "the same file"),
        (&[from, "-w", "-", "--dropped", "-"], "the same file"),
        (&["-", "-", "-w", to], "only once"),
        (&[from, "-w", to, "--by", "frame", "--distinguish", "ttl"], "--by packet"),
        (&[from, "-w", to, "--approximate", "--filter", "dleft"], "--filter rotating"),
        (&[from, "-w", to, "--approximate", "--window", "1p"], "2p or more"),
        (&[from, "-w", to, "--memory", "1KiB"], "256KiB"),
    ] {
        let run = flowsieve(&[&["dedup"], line].concat());
        assert_eq!(run.code, Some(2), "{line:?}: {}", run.err);
        assert!(run.sentence().contains(wanted), "{line:?}: {}", run.err);
    }
    for line in [
        &["--window", "0p"][..],
        &["--window", "5"],
        &["--window", "p"],
        &["--slice", "0s"],
        &["--dry-run", "-w", to],
    ] {
        let run = flowsieve(&[&["dedup", from], line].concat());
        assert_eq!(run.code, Some(2), "{line:?}: {}", run.err);
    }
    assert_eq!(fs::read(&input).unwrap(), before);
    assert!(!out.exists());
}

#[test]
fn a_cut_capture_is_deduplicated_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    let whole = fs::read(repository().join(CAPTURE)).unwrap();
    fs::write(&input, &whole[..whole.len() / 2 + 5]).unwrap();
    let run = flowsieve(&["dedup", name(&input), "-w", name(&out), "--format", "json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("in.pcap"), "{}", run.err);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert!(document["inputs"][0]["error"].is_string());
    let kept = document["totals"]["kept"].as_u64().unwrap();
    assert!(kept > 3000);
    assert_eq!(summary(&["--dry-run", name(&out)])["totals"]["packets"], kept);
    // An input that is no capture gives an empty output and a message.
    fs::write(&input, "no capture").unwrap();
    let run = flowsieve(&["dedup", name(&input), "-w", name(&out)]);
    assert_eq!(run.code, Some(1));
    run.sentence();
}

#[test]
fn several_link_types_need_pcapng() {
    let folder = tempfile::tempdir().unwrap();
    let [raw, out, rich] =
        ["raw.pcap", "out.pcap", "out.pcapng"].map(|name| folder.path().join(name));
    let mut bytes = fs::read(repository().join(CAPTURE)).unwrap();
    bytes[20] = 101;
    fs::write(&raw, &bytes).unwrap();
    fs::write(&out, "older").unwrap();
    let run = flowsieve(&["dedup", CAPTURE, name(&raw), "-w", name(&out)]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains(".pcapng"), "{}", run.err);
    assert_eq!(fs::read(&out).unwrap(), b"older");
    flowsieve(&["dedup", CAPTURE, name(&raw), "-w", name(&rich)]).done();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn faults_leave_no_half_capture() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    #[cfg(target_os = "linux")]
    for line in [
        &["dedup", CAPTURE, "-w", "/dev/full"][..],
        &["dedup", CAPTURE, "-w", name(&out), "--dropped", "/dev/full"],
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(1), "{line:?}");
        assert!(run.sentence().starts_with("cannot write /dev/full"), "{}", run.err);
        assert!(!out.exists());
    }
    // Kills the program while it waits for input.
    fs::write(&out, "older").unwrap();
    let mut child = program(&["dedup", "-", "-w", name(&out)])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = fs::read(repository().join(CAPTURE)).unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), &input).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"older");
    // The reader closes the pipe early.
    for bytes in [0, 10] {
        let mut child = program(&["dedup", "--quiet", CAPTURE, "-w", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut vec![0; bytes]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("flowsieve:"), "{said}");
    }
}

/// The capture is of a router on all of its ports. The expected counts are those of tshark, see
/// `traces/README.md`.
#[test]
fn recorded_duplicates_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let path = "traces/netns-mirror.pcap";
    let document = summary(&[path, "-w", name(&out)]);
    assert_eq!(document["totals"]["packets"], 409);
    assert_eq!(document["totals"]["dropped_packet"], 181);
    // Each copy has another TTL, and other bytes in its link header.
    for line in [&["--distinguish", "ttl"][..], &["--by", "frame"]] {
        let document = summary(&[&[path, "--dry-run"], line].concat());
        assert_eq!(document["totals"]["dropped"], 0);
    }
    let line = ["--by", "retransmission", "--window", "1h", name(&out), "--dry-run"];
    let totals = &summary(&line)["totals"];
    assert_eq!(totals["dropped_retransmission"], 32);
    assert_eq!(totals["dropped"], 32);
}

/// Returns frames with the same packet, plain and inside tunnels.
fn plain_and_inside_tunnels() -> Vec<Vec<u8>> {
    let v4 = |protocol: u8, ttl: u8, parts: &[&[u8]]| {
        let payload = parts.concat();
        let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 7, 0, 0];
        packet.extend([ttl, protocol, 0, ttl, 10, 0, 0, protocol, 10, 0, 0, 2]);
        [packet, payload].concat()
    };
    let ethernet = |packet: &[u8]| [&[2; 12][..], &[8, 0], packet].concat();
    let mut tcp = vec![0; 20];
    tcp[..8].copy_from_slice(&[0, 80, 0, 81, 0, 0, 0, 1]);
    tcp[12..14].copy_from_slice(&[0x50, 0x10]);
    let plain = |ttl: u8| v4(6, ttl, &[&tcp, b"data"]);
    let udp = |port: u16, parts: &[&[u8]]| {
        let payload = parts.concat();
        let head = [9, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes);
        v4(17, 64, &[&head.concat(), &payload])
    };
    let gre_of_ip = [0, 0, 8, 0];
    let erspan = [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 9][..], &[0x10; 8]].concat();
    let packets = [
        plain(64),
        udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], &ethernet(&plain(63))]),
        v4(47, 64, &[&gre_of_ip, &plain(62)]),
        v4(47, 64, &[&erspan, &ethernet(&plain(61))]),
        v4(4, 64, &[&plain(60)]),
        udp(2152, &[&[0x30, 255, 0, 44, 0, 0, 0, 1], &plain(59)]),
        v4(4, 64, &[&v4(47, 64, &[&gre_of_ip, &plain(58)])]),
    ];
    packets.iter().map(|packet| ethernet(packet)).collect()
}

#[test]
fn copies_inside_tunnels_are_copies_when_asked_for() {
    let frames = plain_and_inside_tunnels();
    let mut capture =
        [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for frame in &frames {
        let length = frame.len() as u32;
        capture.extend([7, 0, length, length].map(u32::to_le_bytes).concat());
        capture.extend(frame);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tunnels.pcap");
    fs::write(&path, capture).unwrap();
    let dropped = |more: &[&str]| {
        let document = summary(&[&[name(&path), "--dry-run"], more].concat());
        assert!(document["parameters"]["tunnel"].is_string());
        document["totals"]["dropped"].as_u64().unwrap()
    };
    let copies = frames.len() as u64 - 1;
    // By the outer headers, the tunnels of one protocol are one flow.
    for (by, outside) in [("packet", 0), ("retransmission", 0), ("flow", 2)] {
        assert_eq!(dropped(&["--by", by, "--tunnel", "inner"]), copies, "{by}");
        assert_eq!(dropped(&["--by", by]), outside, "{by}");
        assert_eq!(dropped(&["--by", by, "--tunnel", "outer"]), outside, "{by}");
    }
    assert_eq!(dropped(&["--tunnel", "inner", "--distinguish", "ttl"]), 0);
    let line = ["dedup", "--dry-run", "--tunnel", "inner", name(&path)];
    let table = flowsieve(&line).done();
    assert!(table.starts_with("duplicates by packet inside tunnels in a window of 50 ms;"));
    let refused = flowsieve(&[&line[..], &["--by", "frame"]].concat());
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("leave out --tunnel inner"), "{}", refused.err);
}

#[test]
fn a_log_makes_the_result_incomplete() {
    let line = ["dedup", "--dry-run", "--format", "json", CAPTURE, "tests/logs/nfdump.csv"];
    let run = flowsieve(&line);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("nfdump.csv: a log has no packets"), "{}", run.err);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["totals"]["complete"], false);
}
