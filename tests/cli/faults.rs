//! Runs in which something else fails: full disks, files that change, sudden ends.

use super::signals::{ended, names_in, start, text};
use super::{Run, document, flowsieve, program, record_offsets, repository, sample};
use flowsieve::trace::{Capture, InputFormat, TraceBatch};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for line in [&["--help"][..], &["--version"], &["count", "--help"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = program(line).stdout(full).output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{line:?}");
        let err = String::from_utf8(run.stderr).unwrap();
        assert!(err.starts_with("flowsieve: cannot write to standard output: "), "{err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_by_every_command_that_writes() {
    let capture = "traces/generated.pcap";
    let folder = tempfile::tempdir().unwrap();
    let (archive, saved) = (folder.path().join("archive"), folder.path().join("saved"));
    let (archive, saved) = (text(&archive), text(&saved));
    let built = flowsieve(&["index", "build", "-q", archive, capture]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    flowsieve(&["count", "--slice", "all", "--save-filter", saved, capture]).done();
    let search = ["index", "search", archive, "--host", "10.0.0.0/8"];
    for line in [
        &["count", capture, "-o", "/dev/full"][..],
        &[&search[..], &["-o", "/dev/full"]].concat(),
        &[&search[..], &["-o", text(&folder.path().join("answers")), "-w", "/dev/full"]].concat(),
        &["filter", "info", saved, "-o", "/dev/full"],
        &["filter", "union", saved, saved, "-o", "/dev/full"],
        &["count", capture, "--format", "parquet", "-o", "/dev/full"],
        &["count", capture, "--html", "/dev/full"],
        &["count", capture, "--slice", "all", "--save-filter", "/dev/full"],
        &["compare", capture, "-o", "/dev/full"],
        &["flows", capture, "-o", "/dev/full"],
        &["flows", capture, "--format", "parquet", "-o", "/dev/full"],
        &["flows", capture, "--unique", "-o", "/dev/full"],
        &["dedup", capture, "-w", "/dev/full"],
        &["dedup", capture, "--dry-run", "-o", "/dev/full"],
        &["generate", "--packets", "20k", "-w", "/dev/full"],
        &["reproduce", "cbfm-table-2", "-o", "/dev/full"],
        &["plan", "--expect", "9", "-o", "/dev/full"],
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(1), "{line:?}: {}", run.err);
        let sentence = run.sentence();
        assert!(sentence.starts_with("cannot "), "{line:?}: {sentence}");
        assert!(sentence.contains("No space left"), "{line:?}: {sentence}");
    }
}

/// One result that cannot be written took the others with it.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let capture = "traces/netns-dns.pcap";
    let (archive, saved, out) = (at("archive"), at("saved"), at("out"));
    assert_eq!(flowsieve(&["index", "build", "-q", &archive, capture]).code, Some(0));
    flowsieve(&["count", "--slice", "all", "--save-filter", &saved, capture]).done();
    let search = ["index", "search", &archive, "--host", "0.0.0.0/0"];
    let (full, summary) = (["-o", "/dev/full"], ["-o", "/dev/full", "--summary", &out]);
    for line in [
        [&["count", capture][..], &summary].concat(),
        [&["count", capture][..], &full, &["--html", &out]].concat(),
        [&["compare", capture, "--seeds", "1"][..], &summary].concat(),
        [&["top", capture][..], &summary].concat(),
        [&["flows", capture][..], &summary].concat(),
        [&["flows", capture, "-n", "5"][..], &summary].concat(),
        [&["export", capture][..], &summary].concat(),
        [&["dedup", capture, "-w", "/dev/full", "-o", &out][..]].concat(),
        [&["dedup", capture, "-w", &out][..], &full].concat(),
        [&search[..], &summary].concat(),
        [&search[..], &full, &["-w", &out]].concat(),
        [&search[..], &["-o", &out, "-w", "/dev/full"]].concat(),
        [&["index", "stats", &archive][..], &summary].concat(),
        [&["index", "verify", &archive][..], &summary].concat(),
        [&["filter", "info", &saved][..], &summary].concat(),
        [&["filter", "query", &saved, "10.0.0.1,10.0.0.2"][..], &summary].concat(),
        [&["filter", "intersect", &saved, &saved][..], &summary].concat(),
        [&["plan", "--expect", "9"][..], &summary].concat(),
        [&["reproduce", "cbfm-table-2"][..], &summary].concat(),
        [&["reproduce", "cbfm-table-2"][..], &full, &["--markdown", &out]].concat(),
        [&["reproduce", "cbfm-table-2"][..], &full, &["--html", &out]].concat(),
    ] {
        let run = flowsieve(&line);
        assert_eq!(run.code, Some(1), "{line:?}: {}", run.err);
        assert!(run.err.contains("No space left"), "{line:?}: {}", run.err);
        let written = fs::read(&out).unwrap_or_default();
        assert!(!written.is_empty(), "{line:?}: {}", run.err);
        fs::remove_file(&out).unwrap();
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
        let output =
            Command::new("sh").current_dir(repository()).args(["-c", &script]).output().unwrap();
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
            let reader = Failing { bytes: io::Cursor::new(bytes.clone()), left };
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

/// Builds a library that is loaded before the system's.
#[cfg(target_os = "linux")]
pub(super) fn library(folder: &Path, source: &str) -> Option<PathBuf> {
    let (file, shim) = (folder.join("shim.c"), folder.join("shim.so"));
    fs::write(&file, source).unwrap();
    let line = ["-shared", "-fPIC", "-o", text(&shim), text(&file), "-ldl"];
    let built = Command::new("cc").args(line).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler");
        return None;
    }
    Some(shim)
}

/// The system's own calls fail: a library that is loaded before the system's lets each file be read
/// up to a place.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fails_is_told_and_what_it_gave_is_counted() {
    const SHIM: &str = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdlib.h>
        #include <unistd.h>
        ssize_t read(int fd, void *to, size_t count) {
            ssize_t (*next)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
            size_t limit = strtoul(getenv("FAIL_AT"), 0, 10);
            if (count < 4096) return next(fd, to, count); /* not the capture */
            off_t at = lseek(fd, 0, SEEK_CUR);
            if (at < 0) return next(fd, to, count);
            if (at >= limit) { errno = EIO; return -1; }
            if (count > limit - at) count = limit - at;
            return next(fd, to, count);
        }"#;
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = library(folder.path(), SHIM) else { return };
    let offsets = record_offsets(&sample().1);
    for threads in ["1", "2"] {
        let at = offsets[4_321] + 5;
        let line = ["count", "traces/generated.pcap", "--format", "json", "--threads", threads];
        let output = program(&line)
            .env("LD_PRELOAD", &shim)
            .env("FAIL_AT", at.to_string())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.starts_with("flowsieve: traces/generated.pcap: "), "{err}");
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
    assert!(run.sentence().starts_with("/proc/self/mem: "), "{}", run.err);
    assert_eq!(document["totals"]["packets"], 8_000);
}

/// Starts a run over a file that is held up by its output when it has read no more than the
/// beginning of the file, changes the file, and lets it go on.
fn held_up(path: &Path, change: impl FnOnce(&Path)) -> Run {
    let line = ["flows", "--unique", "--threads", "1", "--format", "json", text(path)];
    let mut child = start(&line);
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    change(path);
    let mut run = ended(child);
    run.out.insert(0, first[0].into());
    run
}

fn packets_of(run: &Run) -> u64 {
    let document: Value = serde_json::from_str(&run.out).unwrap();
    document["totals"]["packets"].as_u64().unwrap()
}

#[test]
fn files_that_change_while_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changing.pcap");
    let line = ["generate", "--packets", "40k", "--pairs", "100k", "-w", text(&path)];
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
        file.write_all(&whole[offsets[20_000]..offsets[35_000]]).unwrap();
    });
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(packets_of(&run), 35_000);
}

#[test]
fn a_directory_that_goes_away_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (command, option) in [
        ("count -", "-o"),
        ("compare -", "-o"),
        ("flows -", "-o"),
        ("dedup -", "-w"),
        ("plan --sample -", "-o"),
    ] {
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let path = gone.join("result");
        let words: Vec<&str> = command.split(' ').collect();
        let mut child = start(&[&words[..], &[option, text(&path)]].concat());
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

/// Ends runs of a command at any time: each of its files is then the older one, or none, or the
/// whole new one. Nothing else is left behind, but for a moment in which an older file is replaced.
#[cfg(target_os = "linux")]
fn leaves_whole_files(line: &str, outputs: usize) {
    const KILLS: u64 = 40;
    let inputs = tempfile::tempdir().unwrap();
    let filter = inputs.path().join("filter.fsieve");
    if line.contains("FILTER") {
        let save = "count traces/generated.pcap --slice all --memory 4MiB --save-filter";
        let save: Vec<&str> = save.split(' ').chain([text(&filter)]).collect();
        flowsieve(&save).done();
    }
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let folder = tempfile::tempdir().unwrap();
    let outs: Vec<PathBuf> = if outputs == 0 {
        vec![folder.path().join("out1.pcapng.gz")]
    } else {
        (1..=outputs).map(|i| folder.path().join(format!("out{i}"))).collect()
    };
    let mut words = line.replace("OUT", &format!("{}/out", folder.path().display()));
    words = words.replace("FILTER", text(&filter));
    let words: Vec<&str> = words.split(' ').collect();
    let since = Instant::now();
    let run = flowsieve(&words);
    assert_eq!(run.code, Some(0), "{line}: {}", run.err);
    // The first run may have had company that the others have not: the range follows what becomes
    // of them.
    let mut range = since.elapsed();
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
        let mut child =
            program(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_micros(numbers.below(range.as_micros().max(1) as u64)));
        child.kill().unwrap();
        let ended = child.wait().unwrap().code().is_none();
        killed += u64::from(ended);
        range = if ended { range * 9 / 8 } else { range * 3 / 4 };
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
            let replaces = round % 2 == 0;
            assert!(temporary && replaces, "{line}: {name}; are there no files without names?");
            fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
    assert!(killed > KILLS / 4, "{line}: only {killed} runs were ended");
}

#[cfg(target_os = "linux")]
#[test]
fn a_sudden_end_leaves_whole_captures() {
    leaves_whole_files("generate --packets 20k -w OUT1", 1);
    leaves_whole_files("dedup traces/generated.pcap -w OUT1 --dropped OUT2", 2);
    leaves_whole_files("dedup traces/netns-mirror.pcap -w OUT1.pcapng.gz", 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sudden_end_leaves_whole_counts() {
    leaves_whole_files(
        "count traces/generated.pcap --slice all --memory 4MiB --save-filter OUT1 --html OUT2 -o OUT3",
        3,
    );
    leaves_whole_files("flows traces/generated.pcap --format parquet -o OUT1", 1);
    leaves_whole_files("compare traces/netns-dns.pcap --threads 1 -o OUT1", 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sudden_end_leaves_whole_filters() {
    leaves_whole_files("filter union -o OUT1 FILTER FILTER", 1);
    leaves_whole_files("filter info -o OUT1 FILTER FILTER", 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sudden_end_leaves_whole_plans_and_experiments() {
    leaves_whole_files(
        "plan --filter subset,bloom --sample traces/netns-web-loss.pcap --format json -o OUT1",
        1,
    );
    leaves_whole_files("reproduce cbfm-table-2 cmdbf-examples --format csv -o OUT1", 1);
}
