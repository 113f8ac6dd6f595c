//! Results while packets come: each row when it is final, through a pipe, from a growing file, and
//! from a ring of files.

#[cfg(target_os = "linux")]
use super::faults::library;
use super::signals::{PATIENCE, listening, signal, start, text};
use super::{flowsieve, program, sample};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Packets of one host pair each, in microsecond pcap.
fn packets(times_us: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, time_us) in times_us.into_iter().enumerate() {
        for word in [time_us / 1_000_000, time_us % 1_000_000, 20, 20] {
            bytes.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        let mut ip = [0_u8; 20];
        (ip[0], ip[3], ip[9]) = (0x45, 20, 250);
        ip[12..16].copy_from_slice(&[10, 0, 0, number as u8]);
        ip[16..20].copy_from_slice(&[10, 0, 1, 1]);
        bytes.extend(ip);
    }
    bytes
}

fn header() -> Vec<u8> {
    let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Ten packets in a second, from its beginning on.
fn second(second: u64) -> Vec<u8> {
    packets((0..10).map(|tenth| second * 1_000_000 + tenth * 10_000))
}

/// The lines that a program writes, each as soon as it is there.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

/// The second of the next row, its packets, and whether it is revised.
fn row(lines: &Receiver<String>) -> (i64, u64, bool) {
    let line = lines.recv_timeout(PATIENCE).expect("a row comes in time");
    let row: Value = serde_json::from_str(&line).unwrap();
    let start = row["start_ns"].as_i64().unwrap() / 1_000_000_000;
    (start, row["packets"].as_u64().unwrap(), row["revised"].as_bool().unwrap())
}

fn totals(summary: &Path) -> Value {
    let summary = fs::read_to_string(summary).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    summary["totals"].clone()
}

fn count(more: &[&str]) -> Child {
    start(&[&["count", "-", "--format", "jsonl", "--delay", "500ms"], more].concat())
}

#[test]
fn a_row_comes_when_its_slice_is_final_and_not_at_the_end_of_the_pipe() {
    let mut child = count(&[]);
    let lines = lines(child.stdout.take().unwrap());
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&second(100)).unwrap();
    for next in 101..105 {
        // Packets of the next second say that the delay is over. Nothing more is written before the
        // row is there.
        let late = next * 1_000_000 + 600_000;
        pipe.write_all(&packets((0..4).map(|i| late + i))).unwrap();
        assert_eq!(row(&lines).0 + 1, next as i64);
    }
    drop(pipe);
    assert_eq!(row(&lines), (104, 4, false));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_row_comes_by_the_clock_while_no_packet_does_and_not_before() {
    for shape in [&[][..], &["--no-exact"], &["--filter", "hll"]] {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let mut child = count(&[shape, &["--summary", text(&summary)]].concat());
        let lines = lines(child.stdout.take().unwrap());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&header()).unwrap();
        let written = Instant::now();
        pipe.write_all(&second(100)).unwrap();
        assert_eq!(row(&lines), (100, 10, false));
        // From the last packet to the end of the second, and the delay; a clock may run a little
        // faster than another.
        let least = Duration::from_millis(910 + 500 - 50);
        assert!(written.elapsed() >= least, "{:?}", written.elapsed());
        // A packet that comes later than that is counted, and its row is written again.
        pipe.write_all(&second(100)).unwrap();
        assert_eq!(row(&lines), (100, 20, true));
        drop(pipe);
        assert!(child.wait().unwrap().success());
        let totals = totals(&summary);
        assert_eq!((&totals["late"], &totals["uncounted"]), (&10.into(), &0.into()));
    }
}

/// Packets later than the delay are lost to windows. Times of packets alone say how late they are.
#[test]
fn windows_of_a_pipe_do_not_depend_on_pauses_or_on_the_format() {
    let windows = |format, pause| {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let line = ["count", "-", "--slice", "3s", "--every", "1s", "--delay", "1s"];
        let more = ["--format", format, "--summary", text(&summary)];
        let mut child = start(&[&line[..], &more].concat());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&header()).unwrap();
        pipe.write_all(&second(100)).unwrap();
        pipe.flush().unwrap();
        thread::sleep(pause);
        // In time; then packets that end the pane, and one that is too late.
        pipe.write_all(&[second(100), second(102), second(103), second(100)].concat()).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        (output.stdout, totals(&summary))
    };
    let pause = Duration::from_millis(2300);
    let at_once = windows("csv", Duration::ZERO);
    assert_eq!(at_once.1["uncounted"], 10);
    assert_eq!(windows("csv", pause), at_once);
    assert_eq!(windows("json", pause).1, at_once.1);
}

/// No packet within the delay is lost, however many panes are open for it, however much memory they
/// take, and however many packets come meanwhile.
#[test]
fn windows_of_a_pipe_wait_for_late_packets() {
    let uncounted = |every: &str, memory: &str, delay: &str, times: &[u64]| {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let line = ["count", "-", "--slice", "2s", "--every", every, "--memory", memory];
        let more = ["--delay", delay, "--summary", text(&summary)];
        let mut child = start(&[&line[..], &more].concat());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&[header(), packets(times.iter().copied())].concat()).unwrap();
        drop(pipe);
        assert!(child.wait_with_output().unwrap().status.success());
        totals(&summary)["uncounted"].as_u64().unwrap()
    };
    let mut times: Vec<u64> = (0..80).map(|number| 1_000_000_000 + number * 50_000).collect();
    times.insert(60, times[60] - 1_500_000);
    for memory in ["256KiB", "16MiB"] {
        assert_eq!(uncounted("100ms", memory, "2s", &times), 0, "{memory}");
        assert_eq!(uncounted("100ms", memory, "1min", &times), 0, "{memory}");
        assert_eq!(uncounted("100ms", memory, "1s", &times), 1, "{memory}");
    }
    let mut fast: Vec<u64> = (0..200_000).map(|number| 1_000_000_000 + number * 10).collect();
    fast.insert(150_000, fast[150_000] - 1_100_000);
    assert_eq!(uncounted("1s", "256KiB", "2s", &fast), 0);
    // No more panes wait than the memory allows, and wild times do not keep their places.
    assert_eq!(uncounted("1ms", "16MiB", "1min", &fast), 1);
    let wild: Vec<u64> = (0..2000)
        .flat_map(|number| {
            let stray = 3_000_000_000 + number * 10_000_000;
            let stray = (number % 50 == 0).then_some(stray);
            stray.into_iter().chain([1_000_000_000 + number * 50_000])
        })
        .collect();
    assert!(uncounted("1s", "16MiB", "2s", &wild) <= 40, "more is lost than what is wild");
}

/// A stream remembers 65,536 closed slices. A packet for an older one is reported, and nothing else
/// is lost.
#[test]
fn a_packet_for_a_slice_that_is_no_longer_remembered_is_reported_as_uncounted() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let line = ["count", "-", "--slice", "1ms", "--format", "jsonl", "--summary", text(&summary)];
    let mut child = start(&line);
    let lines = lines(child.stdout.take().unwrap());
    let mut pipe = child.stdin.take().unwrap();
    let slices = (1 << 16) + 2000;
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&packets((0..slices).map(|slice| slice * 1000))).unwrap();
    // One for the oldest slice, and one for a slice that is remembered.
    pipe.write_all(&packets([0, (slices - 1000) * 1000])).unwrap();
    drop(pipe);
    lines.iter().for_each(drop);
    assert!(child.wait().unwrap().success());
    let totals = totals(&summary);
    assert_eq!(
        (&totals["packets"], &totals["late"], &totals["uncounted"]),
        (&(slices + 2).into(), &1.into(), &1.into())
    );
    assert_eq!(totals["slices"], slices);
}

/// A table grows, too, and the formats that are one document have final rows only.
#[test]
fn only_rows_that_stand_by_themselves_come_early() {
    for format in ["table", "csv"] {
        let mut child = start(&["count", "-", "--delay", "0s", "--format", format]);
        let lines = lines(child.stdout.take().unwrap());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&header()).unwrap();
        pipe.write_all(&second(100)).unwrap();
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains("1970-01-01T00:01:40")) {
            seen.push(lines.recv_timeout(PATIENCE).expect("a row comes in time"));
        }
        drop(pipe);
        assert!(child.wait().unwrap().success());
    }
    let mut child = start(&["count", "-", "--delay", "0s", "--format", "json"]);
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&second(100)).unwrap();
    thread::sleep(Duration::from_millis(300));
    pipe.write_all(&second(100)).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["slices"].as_array().unwrap().len(), 1);
    assert_eq!(document["slices"][0]["packets"], 20);
    assert_eq!(document["slices"][0]["revised"], false);
}

#[test]
fn flows_of_a_pipe_come_as_they_end() {
    for (line, later) in [
        (&["flows", "-", "--idle", "100ms", "--delay", "100ms", "--format", "csv"][..], 4),
        (&["flows", "-", "--unique", "--delay", "100ms", "--format", "csv"], 0),
    ] {
        let mut child = start(line);
        let lines = lines(child.stdout.take().unwrap());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&header()).unwrap();
        pipe.write_all(&second(100)).unwrap();
        // Packets of four of the ten flows say that the others have ended, too.
        pipe.write_all(&packets((0..4).map(|number| 101_000_000 + number))).unwrap();
        // A header, and a line a flow, while the pipe is open.
        for _ in 0..11 {
            lines.recv_timeout(PATIENCE).expect("a flow comes in time");
        }
        drop(pipe);
        assert!(child.wait().unwrap().success());
        assert_eq!(lines.iter().count(), later, "{line:?}");
    }
}

/// Only the times of packets end flows, however long the pipe is silent in between.
#[test]
fn flows_of_a_slow_pipe_are_those_of_a_fast_one() {
    let line = ["flows", "-", "--idle", "1ms", "--delay", "0s", "--format", "jsonl"];
    let mut bytes = header();
    // Two packets of each flow, half a millisecond apart.
    for second in 100..110 {
        bytes.extend(packets([0, 0, 0].map(|us| second * 1_000_000 + us)));
        bytes.extend(packets([500, 500, 500].map(|us| second * 1_000_000 + us)));
    }
    let fast = super::feed(&line, &bytes).done();
    let ended = |lines: &str| lines.matches("\"ended\":\"idle\"").count();
    assert_eq!(ended(&fast), 27, "{fast}");
    let mut child = start(&line);
    let lines = lines(child.stdout.take().unwrap());
    let mut pipe = child.stdin.take().unwrap();
    let (mut slow, mut written) = (String::new(), 0);
    for second in 0..10 {
        // Up to between the two packets of the last flow.
        let end = 24 + 36 * (6 * second + 5);
        pipe.write_all(&bytes[written..end]).unwrap();
        written = end;
        // The rows of the flows before come when nothing else does: that is later than the timeout.
        while ended(&slow) < second * 3 {
            slow += &(lines.recv_timeout(PATIENCE).expect("a row comes in time") + "\n");
        }
    }
    pipe.write_all(&bytes[written..]).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    for line in &lines {
        slow += &(line + "\n");
    }
    assert_eq!(slow, fast);
}

/// Packets that come later than the delay may divide flows that have ended; a remark says so.
#[test]
fn flows_that_late_packets_begin_are_counted() {
    let mut bytes = header();
    bytes.extend(second(100));
    // Four packets agree that the time is 101 s; then three other flows go on at 100.05 s.
    let late_us = [[101_000_000; 4].as_slice(), &[100_050_000; 3]].concat();
    bytes.extend(packets(late_us));
    let directory = tempfile::tempdir().unwrap();
    for (delay, late) in [("100ms", 3), ("1s", 0)] {
        let summary = directory.path().join(delay);
        let line = ["flows", "-", "--idle", "100ms", "--delay", delay, "--format", "csv"];
        let run = super::feed(&[&line[..], &["--summary", text(&summary)]].concat(), &bytes);
        assert_eq!(run.code, Some(0));
        let said = "flows began with a packet that came late";
        assert_eq!(run.err.contains(said), late > 0, "{}", run.err);
        let summary: Value = serde_json::from_slice(&fs::read(summary).unwrap()).unwrap();
        assert_eq!(summary["totals"]["late"], late);
    }
}

/// A pipe gives the rows of the file, whatever the format.
#[test]
fn a_pipe_that_is_written_at_once_gives_what_the_file_gives() {
    let (path, bytes) = sample();
    for format in ["csv", "json", "jsonl"] {
        let line = |input| ["count", input, "--format", format, "--delay", "1h"];
        let file = flowsieve(&line(text(&path))).done();
        let pipe = super::feed(&line("-"), &bytes).done();
        assert_eq!(pipe.replace("\"-\"", &format!("{:?}", text(&path))), file);
    }
}

fn followed(path: &Path) -> (Child, Receiver<String>) {
    let line = ["count", text(path), "--follow", "--format", "jsonl", "--delay", "0s"];
    let mut child = start(&line);
    let lines = lines(child.stdout.take().unwrap());
    listening(&child);
    (child, lines)
}

fn interrupted(mut child: Child, lines: &Receiver<String>) -> Vec<String> {
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lines.iter().collect()
}

#[test]
fn a_growing_capture_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.pcap");
    let mut file = File::create(&path).unwrap();
    file.write_all(&header()).unwrap();
    file.write_all(&second(100)).unwrap();
    let (child, lines) = followed(&path);
    assert_eq!(row(&lines), (100, 10, false));
    let next = second(101);
    // A record is there in part.
    file.write_all(&next[..next.len() - 7]).unwrap();
    assert_eq!(row(&lines), (101, 9, false));
    file.write_all(&next[next.len() - 7..]).unwrap();
    assert_eq!(row(&lines), (101, 10, true));
    let rest = interrupted(child, &lines);
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn rows_of_a_log_come_as_its_lines_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.csv");
    let line = |second: u64| format!("{second},10.0.0.1,10.0.0.2,a.example\n");
    fs::write(&path, format!("ts,src,dst,qname\n{}", line(100))).unwrap();
    let (child, lines) = followed(&path);
    assert_eq!(row(&lines), (100, 1, false));
    let mut file = File::options().append(true).open(&path).unwrap();
    let text = line(101) + &line(102);
    // Part of the last line is still missing.
    file.write_all(&text.as_bytes()[..text.len() - 7]).unwrap();
    assert_eq!(row(&lines), (101, 1, false));
    file.write_all(&text.as_bytes()[text.len() - 7..]).unwrap();
    assert_eq!(row(&lines), (102, 1, false));
    interrupted(child, &lines);
}

#[test]
fn a_directory_into_which_captures_are_written_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, seconds: std::ops::Range<u64>| {
        let bytes: Vec<u8> = header().into_iter().chain(seconds.flat_map(second)).collect();
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    fs::write(folder.path().join("notes.txt"), "these are no packets at all").unwrap();
    write("ring0", 100..102);
    let (child, lines) = followed(folder.path());
    assert_eq!((row(&lines).0, row(&lines).0), (100, 101));
    write("ring1", 102..103);
    assert_eq!(row(&lines).0, 102);
    // The ring begins anew.
    write("ring0", 103..105);
    assert_eq!((row(&lines).0, row(&lines).0), (103, 104));
    fs::remove_file(folder.path().join("ring1")).unwrap();
    write("ring2", 105..106);
    assert_eq!(row(&lines).0, 105);
    interrupted(child, &lines);
}

/// Files of a rotating capturer are renamed, compressed and copied: each packet counts once, and
/// doubts are reported.
#[test]
fn a_followed_file_that_is_renamed_compressed_or_copied_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let bytes = |seconds: std::ops::Range<u64>| -> Vec<u8> {
        header().into_iter().chain(seconds.flat_map(second)).collect()
    };
    fs::write(path("tmp.part"), bytes(100..102)).unwrap();
    let (child, lines) = followed(folder.path());
    assert_eq!((row(&lines), row(&lines)), ((100, 10, false), (101, 10, false)));
    fs::rename(path("tmp.part"), path("r0.pcap")).unwrap();
    fs::write(path("r1.pcap"), bytes(102..103)).unwrap();
    assert_eq!(row(&lines).0, 102);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes(100..102)).unwrap();
    fs::write(path("r0.pcap.gz"), gzip.finish().unwrap()).unwrap();
    fs::remove_file(path("r0.pcap")).unwrap();
    fs::copy(path("r1.pcap"), path("r1.copy")).unwrap();
    // Copies are compared half a second after they were written; these files come later.
    thread::sleep(Duration::from_secs(1));
    fs::write(path("r2.pcap"), bytes(103..104)).unwrap();
    assert_eq!(row(&lines).0, 103);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    // A packet that counts twice would revise the row of its slice.
    assert_eq!(lines.iter().next(), None);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("is not counted again").count(), 1, "{said}");
    assert!(said.contains("r1.copy: it has the bytes of"), "{said}");
}

#[test]
fn a_followed_file_that_cannot_be_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = header().into_iter().chain(second(100)).collect();
    fs::write(folder.path().join("ring0"), &bytes).unwrap();
    // An interrupted run left this.
    fs::write(folder.path().join("ring0.partial"), bytes).unwrap();
    std::os::unix::fs::symlink("/not/mounted/ring1", folder.path().join("ring1")).unwrap();
    let line = ["count", text(folder.path()), "--follow", "--format", "jsonl", "--delay", "0s"];
    let mut child = start(&line);
    let lines = lines(child.stdout.take().unwrap());
    assert_eq!(row(&lines).0, 100);
    signal(&child, "INT");
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(130));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("ring1: no such file"), "{said}");
}

/// A library with which `ring1` cannot be read as long as there is a file that `BAD` names.
#[cfg(target_os = "linux")]
const UNREADABLE: &str = r#"
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    ssize_t read(int fd, void *to, size_t count) {
        ssize_t (*next)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
        char link[64], name[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, name, sizeof name - 1);
        if (length > 0) {
            name[length] = 0;
            if (strstr(name, "ring1") && !access(getenv("BAD"), F_OK)) { errno = EIO; return -1; }
        }
        return next(fd, to, count);
    }"#;

/// Follows a directory with a library that lets reads of `ring1` fail while the file `bad` exists.
/// Returns the program and its rows.
#[cfg(target_os = "linux")]
fn follow_faulty(ring: &Path, shim: &Path, bad: &Path, more: &[&str]) -> (Child, Receiver<String>) {
    let line = ["count", text(ring), "--follow", "--format", "jsonl", "--delay", "0s"];
    let mut child = program(&[&line[..], more].concat())
        .env("LD_PRELOAD", shim)
        .env("BAD", bad)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let rows = lines(child.stdout.take().unwrap());
    (child, rows)
}

/// One file of a followed directory cannot be read for a time.
#[cfg(target_os = "linux")]
#[test]
fn a_followed_file_that_cannot_be_read_is_one_error_and_is_tried_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = library(folder.path(), UNREADABLE) else { return };
    let (bad, summary) = (folder.path().join("bad"), folder.path().join("summary"));
    for (is_new, is_mended) in [(false, false), (false, true), (true, false), (true, true)] {
        let ring = tempfile::tempdir().unwrap();
        let whole = |at: u64| header().into_iter().chain(second(at)).collect::<Vec<u8>>();
        let ring1 = ring.path().join("ring1");
        let append = |at: u64| {
            let mut file = File::options().append(true).open(&ring1).unwrap();
            file.write_all(&second(at)).unwrap();
        };
        fs::write(ring.path().join("ring0"), whole(100)).unwrap();
        let (child, rows) = follow_faulty(ring.path(), &shim, &bad, &["--summary", text(&summary)]);
        let next = || loop {
            let (second, packets, _) = row(&rows);
            if packets > 0 {
                return second;
            }
        };
        assert_eq!(next(), 100);
        if is_new {
            fs::write(&bad, "").unwrap();
            fs::write(&ring1, whole(101)).unwrap();
        } else {
            fs::write(&ring1, whole(101)).unwrap();
            assert_eq!(next(), 101);
            fs::write(&bad, "").unwrap();
            append(102);
        }
        // More than once it is looked at.
        thread::sleep(Duration::from_secs(1));
        fs::write(ring.path().join("ring2"), whole(103)).unwrap();
        assert_eq!(next(), 103);
        if is_mended {
            fs::remove_file(&bad).unwrap();
            append(104);
            assert_eq!([next(), next()], [if is_new { 101 } else { 102 }, 104]);
        }
        signal(&child, "INT");
        let run = child.wait_with_output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        let about: Vec<&str> = said.lines().filter(|line| line.contains("ring1")).collect();
        let partial = folder.path().join("summary.partial");
        let document: Value = serde_json::from_slice(&fs::read(&partial).unwrap()).unwrap();
        fs::remove_file(&partial).unwrap();
        let error = document["inputs"][0]["error"].as_str();
        if is_mended {
            assert_eq!((about.len(), error), (0, None), "{said}");
        } else {
            assert_eq!(about.len(), 1, "{said}");
            assert!(about[0].contains("cannot be read at offset"), "{said}");
            assert!(error.is_some_and(|error| about[0].ends_with(error)), "{document}");
            fs::remove_file(&bad).unwrap();
        }
    }
}

/// Packets that it had meanwhile may be lost, or none.
#[cfg(target_os = "linux")]
#[test]
fn a_followed_file_that_could_not_be_read_for_a_time_is_an_error_if_some_of_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = library(folder.path(), UNREADABLE) else { return };
    let bad = folder.path().join("bad");
    for (is_new, is_lost) in [(false, false), (false, true), (true, true)] {
        let ring = tempfile::tempdir().unwrap();
        let at = |name: &str| ring.path().join(name);
        let write = |name: &str, packets: Vec<u8>| {
            fs::write(at(name), [header(), packets].concat()).unwrap();
        };
        let touch = || {
            let file = File::options().append(true).open(at("ring1")).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
        };
        write("ring0", second(100));
        let (child, rows) = follow_faulty(ring.path(), &shim, &bad, &[]);
        let next = || loop {
            let (second, packets, _) = row(&rows);
            if packets > 0 {
                return (second, packets);
            }
        };
        assert_eq!(next(), (100, 10));
        if !is_new {
            write("ring1", second(101));
            assert_eq!(next(), (101, 10));
        }
        write("ring2", second(102));
        assert_eq!(next(), (102, 10));
        fs::write(&bad, "").unwrap();
        if is_lost {
            write("ring1", [second(101), second(103)].concat());
        } else {
            touch();
        }
        thread::sleep(Duration::from_secs(1));
        fs::remove_file(&bad).unwrap();
        if is_lost {
            write("ring1", packets((0..5).map(|tenth| 104_000_000 + tenth)));
            assert_eq!(next(), (104, 5));
        } else {
            touch();
            // It is compared when it has not changed for half a second.
            thread::sleep(Duration::from_secs(3));
        }
        signal(&child, "INT");
        let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert_eq!(said.matches("ring1: ").count(), usize::from(is_lost), "{said}");
    }
}

#[test]
fn a_followed_directory_that_goes_away_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("ring");
    fs::create_dir(&ring).unwrap();
    let bytes: Vec<u8> = header().into_iter().chain(second(100)).collect();
    fs::write(ring.join("ring0"), bytes).unwrap();
    let (child, lines) = followed(&ring);
    assert_eq!(row(&lines).0, 100);
    fs::rename(&ring, folder.path().join("moved")).unwrap();
    let run = child.wait_with_output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("ring: no such file"), "{said}");
}

/// As in a directory that is not followed: whoever named a file so believes that it is one.
#[test]
fn a_followed_file_that_is_called_a_capture_and_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = header().into_iter().chain(second(100)).collect();
    fs::write(folder.path().join("ring0.pcap"), bytes).unwrap();
    for name in ["ring1.pcap", "notes.txt"] {
        fs::write(folder.path().join(name), [0; 1000]).unwrap();
    }
    let (child, lines) = followed(folder.path());
    assert_eq!(row(&lines).0, 100);
    signal(&child, "INT");
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("ring1.pcap: not a capture") && !said.contains("notes"), "{said}");
}

#[test]
fn what_is_not_there_cannot_be_followed() {
    let run = flowsieve(&["count", "--follow", "missing"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.sentence().starts_with("missing: "), "{}", run.err);
}

/// A pipe ends where it ends, also if it is to be followed.
#[test]
fn a_pipe_that_is_followed_is_read_to_its_end() {
    let bytes: Vec<u8> = header().into_iter().chain(second(100)).collect();
    let run = super::feed(&["count", "--follow", "-", "--format", "csv"], &bytes);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("1970-01-01T00:01:40"), "{}", run.out);
}

/// The second of the next key, the key's exact number, and whether its row is revised.
fn key(lines: &Receiver<String>) -> (i64, u64, bool) {
    let line = lines.recv_timeout(PATIENCE).expect("a row comes in time");
    let row: Value = serde_json::from_str(&line).unwrap();
    let start = row["start_ns"].as_i64().unwrap() / 1_000_000_000;
    (start, row["exact"].as_u64().unwrap(), row["revised"].as_bool().unwrap())
}

#[test]
fn a_ranking_comes_when_its_slice_is_final_and_again_when_packets_come_late() {
    let ranking = ["top", "-", "--by", "dst", "--distinct", "src", "--slice", "1s"];
    let mut child = start(&[&ranking[..], &["--format", "jsonl", "--delay", "500ms"]].concat());
    let lines = lines(child.stdout.take().unwrap());
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&second(100)).unwrap();
    pipe.write_all(&packets((0..4).map(|i| 101_600_000 + i))).unwrap();
    assert_eq!(key(&lines), (100, 10, false));
    // More sources, of the second that is over.
    pipe.write_all(&packets((0..20).map(|i| 100_900_000 + i))).unwrap();
    assert_eq!(key(&lines), (100, 20, true));
    drop(pipe);
    assert_eq!(key(&lines), (101, 4, false));
    assert!(lines.recv_timeout(PATIENCE).is_err());
    assert!(child.wait().unwrap().success());
}
