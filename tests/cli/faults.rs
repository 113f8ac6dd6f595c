//! What happens when something else fails: signals, full disks, files that change, sudden ends.

use super::{Run, document, flowsieve, program, record_offsets, repository, sample};
use flowsieve::trace::{Capture, InputFormat, TraceBatch};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything here may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(super) fn start(line: &[&str]) -> Child {
    program(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the program catches signals.
pub(super) fn listening(child: &Child) {
    const SIGINT: u64 = 1 << 1;
    let since = Instant::now();
    let catches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    // Where this is not told, a second has to do.
    while catches().unwrap_or(0) & SIGINT == 0 && since.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(100));
}

pub(super) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits for the end, which must come without a further signal.
pub(super) fn ended(mut child: Child) -> Run {
    let (mut out, mut err) = (String::new(), String::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let code = thread::scope(|scope| {
        scope.spawn(|| stdout.unwrap().read_to_string(&mut out).unwrap());
        scope.spawn(|| stderr.unwrap().read_to_string(&mut err).unwrap());
        let since = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if since.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("it did not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
    });
    Run { code, out, err }
}

/// Gives the sample to a run on a pipe that then stays open, and sends it a signal.
fn interrupted(line: &[&str], name: &str) -> Run {
    let mut child = start(line);
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: when it is written, the program is reading.
    stdin.write_all(&sample().1).unwrap();
    signal(&child, name);
    let run = ended(child);
    drop(stdin);
    run
}

pub(super) fn check_end(run: &Run, name: &str) {
    let code = if name == "INT" { 130 } else { 143 };
    assert_eq!(run.code, Some(code), "{}", run.err);
    let start = format!("flowsieve: interrupted by SIG{name}: ");
    assert!(run.err.starts_with(&start), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

/// While it waits for a pipe, in one thread or several: what was read is the result, and it is that of a
/// capture that ends there.
#[test]
fn a_signal_ends_the_reading_and_not_the_result() {
    let (_, bytes) = sample();
    let offsets = record_offsets(&bytes);
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pcap");
    for name in ["INT", "TERM"] {
        for threads in ["1", "2", "3"] {
            let options = ["--format", "json", "--threads", threads];
            for command in ["count", "flows", "compare"] {
                let line = [&[command, "-"], &options[..]].concat();
                let run = interrupted(&line, name);
                check_end(&run, name);
                let mut partial: Value = serde_json::from_str(&run.out).unwrap();
                assert_eq!(partial["totals"]["interrupted"], true);
                let packets = partial["totals"]["packets"].as_u64().unwrap();
                assert!((5_000..=8_000).contains(&packets), "{packets}");
                assert_eq!(partial["inputs"][0]["packets"], packets);
                assert_eq!(partial["inputs"][0]["error"], Value::Null);
                fs::write(&cut, &bytes[..offsets[packets as usize]]).unwrap();
                let line = [&[command, text(&cut)], &options[..]].concat();
                let whole: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
                partial["totals"]["interrupted"] = false.into();
                partial["inputs"][0]["path"] = text(&cut).into();
                assert_eq!(partial, whole);
            }
        }
    }
}

#[test]
fn tables_say_that_they_are_partial() {
    for command in ["count", "flows", "compare"] {
        let run = interrupted(&[command, "-"], "INT");
        check_end(&run, "INT");
        let mark = "interrupted: there was more to read";
        assert_eq!(run.out.matches(mark).count(), 1, "{}", run.out);
    }
    assert!(
        !flowsieve(&["count", "traces/netns-dns.pcap"])
            .done()
            .contains("interrupted")
    );
}

#[test]
fn files_of_partial_results_are_marked_and_half_captures_and_filters_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (result, page) = (at("result.json"), at("page.html"));
    let (filter, capture) = (at("filter.fsieve"), at("out.pcap"));
    let files = ["-o", text(&result), "--html", text(&page)];
    let line = ["count", "-", "--slice", "all", "--format", "json"];
    let saved = ["--save-filter", text(&filter)];
    let run = interrupted(&[&line, &files[..], &saved].concat(), "TERM");
    check_end(&run, "TERM");
    assert!(run.err.contains("was not saved"));
    let document: Value = serde_json::from_slice(&fs::read(&result).unwrap()).unwrap();
    assert_eq!(document["totals"]["interrupted"], true);
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("The run was interrupted")
    );
    assert_eq!(names_in(folder.path()), ["page.html", "result.json"]);

    fs::write(&capture, "older").unwrap();
    let run = interrupted(
        &["dedup", "-", "-w", text(&capture), "--format", "json"],
        "INT",
    );
    check_end(&run, "INT");
    assert!(run.err.contains("no capture was written"));
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["totals"]["interrupted"], true);
    assert!(document["totals"]["packets"].as_u64().unwrap() > 5_000);
    assert_eq!(fs::read(&capture).unwrap(), b"older");
    assert_eq!(names_in(folder.path()).len(), 3, "no temporary file stays");
}

/// To a pipe packets have gone already: what is there is a whole capture of them.
#[test]
fn an_interrupted_stream_of_packets_ends_at_a_packet() {
    let mut child = program(&["dedup", "-", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).unwrap();
        bytes
    });
    stdin.write_all(&sample().1).unwrap();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let written = reader.join().unwrap();
    let run = super::feed(&["count", "-", "--format", "json"], &written);
    let document: Value = serde_json::from_str(&run.done()).unwrap();
    assert!(document["totals"]["packets"].as_u64().unwrap() > 4_000);
}

#[test]
fn generate_leaves_nothing_when_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let child = start(&["generate", "--packets", "100M", "-w", text(&path)]);
    let since = Instant::now();
    while names_in(folder.path()).is_empty() {
        assert!(since.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "TERM");
    let run = ended(child);
    check_end(&run, "TERM");
    assert_eq!(run.out, "");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn reproduce_keeps_the_experiments_that_are_done() {
    let child = start(&["reproduce", "all", "--full-scale", "--format", "json"]);
    listening(&child);
    signal(&child, "INT");
    let run = ended(child);
    assert_eq!(run.code, Some(130));
    let last = run.err.lines().last().unwrap();
    assert!(last.starts_with("flowsieve: interrupted by SIGINT: the results hold the "));
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["interrupted"], true);
    assert!(document["experiments"].as_array().unwrap().len() < 20);
}

/// A reader that does not read holds up the results of the first signal; the second does not wait.
#[test]
fn a_second_signal_ends_at_once() {
    let mut child = start(&["flows", "-", "--format", "json"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&sample().1).unwrap();
    signal(&child, "INT");
    // The results have begun, and are more than a pipe holds.
    let mut first = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_by_every_command_that_writes() {
    let capture = "traces/generated.pcap";
    for line in [
        &["count", capture, "-o", "/dev/full"][..],
        &["count", capture, "--format", "parquet", "-o", "/dev/full"],
        &["count", capture, "--html", "/dev/full"],
        &[
            "count",
            capture,
            "--slice",
            "all",
            "--save-filter",
            "/dev/full",
        ],
        &["compare", capture, "-o", "/dev/full"],
        &["flows", capture, "-o", "/dev/full"],
        &["flows", capture, "--format", "parquet", "-o", "/dev/full"],
        &["flows", capture, "--unique", "-o", "/dev/full"],
        &["dedup", capture, "-w", "/dev/full"],
        &["dedup", capture, "--dry-run", "-o", "/dev/full"],
        &["generate", "--packets", "20k", "-w", "/dev/full"],
        &["reproduce", "cbfm-table-2", "-o", "/dev/full"],
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(1), "{line:?}: {}", run.err);
        let sentence = run.sentence();
        assert!(sentence.starts_with("cannot "), "{line:?}: {sentence}");
        assert!(sentence.contains("No space left"), "{line:?}: {sentence}");
    }
}

/// A file that may not become so large: the limit comes in the middle of writing.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_grow_is_not_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let program = env!("CARGO_BIN_EXE_flowsieve");
    for line in [
        "generate --packets 20k -w OUT",
        "dedup traces/generated.pcap -w OUT",
        "flows traces/generated.pcap --format csv -o OUT",
        "count traces/generated.pcap --slice all --memory 1MiB --save-filter OUT",
    ] {
        fs::write(&path, "older").unwrap();
        let line = line.replace("OUT", text(&path));
        let script = format!("trap '' XFSZ; ulimit -f 100; exec {program} {line}");
        let output = Command::new("sh")
            .current_dir(repository())
            .args(["-c", &script])
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {err}");
        assert!(err.contains("File too large"), "{line}: {err}");
        assert_eq!(fs::read(&path).unwrap(), b"older");
        assert_eq!(names_in(folder.path()), ["out"]);
    }
}

/// Gives so many bytes, and then an error.
struct Failing {
    bytes: io::Cursor<Vec<u8>>,
    left: usize,
}

impl Read for Failing {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("the disk is gone"));
        }
        let count = target.len().min(self.left).min(1 << 16);
        let count = self.bytes.read(&mut target[..count])?;
        self.left -= count;
        Ok(count)
    }
}

#[test]
fn a_read_error_in_the_middle_has_its_place_and_the_packets_before_it() {
    let (_, bytes) = sample();
    let offsets = record_offsets(&bytes);
    for packets in [0, 1, 777, 4_000, 7_999] {
        for more in [0, 1, 15, 17] {
            let left = offsets[packets] + more;
            let reader = Failing {
                bytes: io::Cursor::new(bytes.clone()),
                left,
            };
            let name = Path::new("disk.pcap");
            let mut capture =
                Capture::from_reader(name, Box::new(reader), InputFormat::Auto).unwrap();
            let mut seen = 0;
            let error = loop {
                match capture.next_batch() {
                    Ok(Some(TraceBatch::Packets { packets, .. })) => seen += packets.len(),
                    Ok(other) => panic!("no error: {other:?}"),
                    Err(error) => break error.to_string(),
                }
            };
            assert_eq!(seen, packets);
            assert!(error.starts_with("disk.pcap: "), "{error}");
            assert!(error.contains("the disk is gone"), "{error}");
            assert!(error.contains(&format!("offset {left}")), "{error}");
            assert!(matches!(capture.next_batch(), Ok(None)));
        }
    }
}

/// The system's own calls fail: a library that is loaded before the system's lets each file be read up to
/// a place.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fails_is_told_and_what_it_gave_is_counted() {
    const SHIM: &str = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdlib.h>
        #include <unistd.h>
        static size_t given;
        ssize_t read(int fd, void *to, size_t count) {
            ssize_t (*next)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
            size_t limit = strtoul(getenv("FAIL_AT"), 0, 10);
            if (count < 65536) return next(fd, to, count);
            if (given >= limit) { errno = EIO; return -1; }
            if (count > limit - given) count = limit - given;
            ssize_t got = next(fd, to, count);
            if (got > 0) given += got;
            return got;
        }"#;
    let folder = tempfile::tempdir().unwrap();
    let (source, shim) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
    fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", text(&shim), text(&source), "-ldl"])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    let offsets = record_offsets(&sample().1);
    for threads in ["1", "2"] {
        let at = offsets[4_321] + 5;
        let line = [
            "count",
            "traces/generated.pcap",
            "--format",
            "json",
            "--threads",
            threads,
        ];
        let output = program(&line)
            .env("LD_PRELOAD", &shim)
            .env("FAIL_AT", at.to_string())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(
            err.starts_with("flowsieve: traces/generated.pcap: "),
            "{err}"
        );
        assert!(err.contains(&format!("offset {at}")), "{err}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["totals"]["packets"], 4_321);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_opens_and_cannot_be_read_is_named() {
    let (document, run) = document(&["/proc/self/mem", "traces/generated.pcap"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.sentence().starts_with("/proc/self/mem: "),
        "{}",
        run.err
    );
    assert_eq!(document["totals"]["packets"], 8_000);
}

/// Starts a run over a file that is held up by its output when it has read no more than the beginning of
/// the file, changes the file, and lets it go on.
fn held_up(path: &Path, change: impl FnOnce(&Path)) -> Run {
    let line = [
        "flows",
        "--unique",
        "--threads",
        "1",
        "--format",
        "jsonl",
        text(path),
    ];
    let mut child = start(&line);
    let mut first = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    change(path);
    let mut run = ended(child);
    run.out.insert(0, first[0].into());
    run
}

fn packets_of(run: &Run) -> u64 {
    let totals = run.out.lines().last().unwrap();
    let totals: Value = serde_json::from_str(totals).unwrap();
    assert_eq!(totals["record"], "totals");
    totals["packets"].as_u64().unwrap()
}

#[test]
fn files_that_change_while_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changing.pcap");
    let line = [
        "generate",
        "--packets",
        "40k",
        "--pairs",
        "100k",
        "-w",
        text(&path),
    ];
    flowsieve(&line).done();
    let whole = fs::read(&path).unwrap();
    let offsets = record_offsets(&whole);
    assert_eq!(packets_of(&held_up(&path, |_| {})), 40_000);

    // It shrinks, to the middle of a record that was not read yet.
    let run = held_up(&path, |path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(offsets[30_000] as u64 + 20).unwrap();
    });
    assert_eq!(run.code, Some(1));
    let at = format!("the record of packet 30001, at offset {}", offsets[30_000]);
    assert!(run.sentence().contains(&at), "{}", run.err);
    assert_eq!(packets_of(&run), 30_000);

    // It grows: the end is where it is when reading comes there.
    fs::write(&path, &whole[..offsets[20_000]]).unwrap();
    let run = held_up(&path, |path| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(&whole[offsets[20_000]..offsets[35_000]])
            .unwrap();
    });
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(packets_of(&run), 35_000);
}

#[test]
fn a_directory_that_goes_away_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (command, option) in [("count", "-o"), ("flows", "-o"), ("dedup", "-w")] {
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let path = gone.join("result");
        let mut child = start(&[command, "-", option, text(&path)]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&sample().1).unwrap();
        fs::remove_dir_all(&gone).unwrap();
        drop(stdin);
        let run = ended(child);
        assert_eq!(run.code, Some(1), "{command}: {}", run.err);
        let begin = format!("cannot write {}: ", path.display());
        assert!(run.sentence().starts_with(&begin), "{}", run.err);
    }
}

/// Numbers without order, always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Ends runs of every command that writes files at any time: each file is then the older one, or none, or
/// the whole new one; and what else is left behind can be told by its name.
#[cfg(target_os = "linux")]
#[test]
fn a_sudden_end_leaves_whole_files() {
    const KILLS: u64 = 40;
    let inputs = tempfile::tempdir().unwrap();
    let filter = inputs.path().join("filter.fsieve");
    let line = [
        "count",
        "traces/generated.pcap",
        "--slice",
        "all",
        "--memory",
        "4MiB",
    ];
    flowsieve(&[&line[..], &["--save-filter", text(&filter)]].concat()).done();
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for (line, outputs) in [
        ("generate --packets 20k -w OUT1", 1),
        ("dedup traces/generated.pcap -w OUT1 --dropped OUT2", 2),
        ("dedup traces/netns-mirror.pcap -w OUT1.pcapng.gz", 0),
        (
            "count traces/generated.pcap --slice all --memory 4MiB --save-filter OUT1 --html OUT2 -o OUT3",
            3,
        ),
        ("flows traces/generated.pcap --format parquet -o OUT1", 1),
        ("compare traces/netns-dns.pcap --threads 1 -o OUT1", 1),
        ("filter union -o OUT1 FILTER FILTER", 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let outs: Vec<PathBuf> = if outputs == 0 {
            vec![folder.path().join("out1.pcapng.gz")]
        } else {
            (1..=outputs)
                .map(|i| folder.path().join(format!("out{i}")))
                .collect()
        };
        let mut words = line.replace("OUT", &format!("{}/out", folder.path().display()));
        words = words.replace("FILTER", text(&filter));
        let words: Vec<&str> = words.split(' ').collect();
        let since = Instant::now();
        let run = flowsieve(&words);
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
        let time = since.elapsed();
        let whole: Vec<Vec<u8>> = outs.iter().map(|out| fs::read(out).unwrap()).collect();
        assert_eq!(names_in(folder.path()).len(), outs.len());
        let mut killed = 0;
        for round in 0..KILLS {
            for out in &outs {
                fs::remove_file(out).ok();
                if round % 2 == 0 {
                    fs::write(out, "older").unwrap();
                }
            }
            let mut child = program(&words)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_micros(
                numbers.below(time.as_micros() as u64),
            ));
            child.kill().unwrap();
            killed += u64::from(child.wait().unwrap().code().is_none());
            for (out, whole) in outs.iter().zip(&whole) {
                match fs::read(out) {
                    Ok(bytes) if round % 2 == 0 && bytes == b"older" => {}
                    Ok(bytes) => assert!(bytes == *whole, "{line}: {} bytes", bytes.len()),
                    Err(error) => {
                        assert_eq!((round % 2, error.kind()), (1, io::ErrorKind::NotFound));
                    }
                }
            }
            for name in names_in(folder.path()) {
                if outs.iter().any(|out| out.ends_with(&name)) {
                    continue;
                }
                let begin = format!(".flowsieve-{}-", child.id());
                let temporary = name.starts_with(&begin)
                    && Path::new(&name).extension().is_some_and(|end| end == "tmp");
                assert!(temporary, "{line}: {name}");
                fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
        assert!(killed > KILLS / 4, "{line}: only {killed} runs were ended");
    }
}
