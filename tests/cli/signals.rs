//! Signals: the first ends the reading and not the result, the second the program.

use super::{Run, flowsieve, program, record_offsets, sample, slices};
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

pub(super) fn text(path: &Path) -> &str {
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
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    // Where this is not told, a second has to do.
    while catches().unwrap_or(0) & SIGINT == 0 && since.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(100));
}

pub(super) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
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
    let code = match name {
        "HUP" => 129,
        "INT" => 130,
        _ => 143,
    };
    assert_eq!(run.code, Some(code), "{}", run.err);
    let start = format!("flowsieve: interrupted by SIG{name}: ");
    assert!(run.err.starts_with(&start), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

/// While it waits for a pipe, in one thread or several: what was read is the result, and it is that
/// of a capture that ends there.
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
                let mut whole: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
                // A comparison names its captures with digests, and its command line.
                for document in
                    [&mut partial, &mut whole].into_iter().filter(|_| command == "compare")
                {
                    document["digests"] = Value::Null;
                    document["parameters"]["command"] = Value::Null;
                }
                assert_eq!(partial["totals"]["complete"], false);
                partial["totals"]["interrupted"] = false.into();
                partial["totals"]["complete"] = true.into();
                partial["inputs"][0]["path"] = text(&cut).into();
                assert_eq!(partial, whole);
            }
            // CSV and Parquet have no place for the mark: standard error and the exit code say it.
            for format in ["csv", "parquet"] {
                let [rows, partial] = ["rows", "rows.partial"].map(|name| folder.path().join(name));
                let line =
                    ["count", "-", "--format", format, "-o", text(&rows), "--threads", threads];
                check_end(&interrupted(&line, name), name);
                assert!(fs::metadata(&partial).unwrap().len() > 0 && !rows.exists(), "{format}");
                fs::remove_file(&partial).unwrap();
            }
        }
    }
}

/// A capture that has no end for as long as a test lasts, and takes no room: behind the sample
/// there are records without bytes in a hole of the file.
fn endless(folder: &Path) -> PathBuf {
    let path = folder.join("endless.pcap");
    fs::write(&path, &sample().1).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    path
}

/// In the middle of a file: the result is that of a file which ends there.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_reading_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = endless(folder.path());
    let bytes = sample().1;
    let cut = folder.path().join("cut.pcap");
    for (command, more, name) in [
        ("count", &["--threads", "1"][..], "INT"),
        ("count", &["--threads", "3"], "TERM"),
        ("compare", &["--threads", "1"], "INT"),
        ("flows", &["--threads", "2"], "TERM"),
        ("dedup", &["--dry-run", "--seed", "0"], "INT"),
        ("plan", &[], "TERM"),
    ] {
        let with = |path: &Path| {
            let mut line = vec![command.to_owned()];
            line.extend(more.iter().map(ToString::to_string));
            line.extend((command == "plan").then(|| "--sample".to_owned()));
            line.extend([text(path), "--format", "json"].map(str::to_owned));
            line
        };
        let line = with(&path);
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let child = start(&words);
        listening(&child);
        signal(&child, name);
        let run = ended(child);
        check_end(&run, name);
        let mut partial: Value = serde_json::from_str(&run.out).unwrap();
        let totals = if command == "plan" { "sample" } else { "totals" };
        assert_eq!(partial[totals]["interrupted"], true, "{command}");
        let packets = partial[totals]["packets"].as_u64().unwrap();
        assert!(packets > 8_000, "{command}: {packets}");
        fs::write(&cut, &bytes).unwrap();
        let file = File::options().write(true).open(&cut).unwrap();
        file.set_len(bytes.len() as u64 + (packets - 8_000) * 16).unwrap();
        let line = with(&cut);
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let whole: Value = serde_json::from_str(&flowsieve(&words).done()).unwrap();
        partial[totals]["interrupted"] = false.into();
        assert_eq!(partial[totals]["complete"], false, "{command}");
        partial[totals]["complete"] = true.into();
        partial["inputs"][0]["path"] = text(&cut).into();
        // An interrupted run has no digest, and another command line.
        if command == "compare" {
            partial["digests"] = whole["digests"].clone();
            partial["parameters"]["command"] = whole["parameters"]["command"].clone();
        }
        // A reading that a signal ended is not repeated to measure candidates.
        if command == "plan" {
            assert_eq!(partial["sample"], whole["sample"]);
            assert!(partial["reason"].as_str().unwrap().ends_with("computed, not measured"));
            continue;
        }
        assert_eq!(partial, whole, "{command}");
    }
}

#[test]
fn a_plan_on_part_of_a_sample_is_marked_and_on_nothing_is_none() {
    for name in ["INT", "TERM"] {
        let run = interrupted(&["plan", "--sample", "-", "--format", "json"], name);
        check_end(&run, name);
        let plan: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(plan["sample"]["interrupted"], true);
        let packets = plan["sample"]["packets"].as_u64().unwrap();
        assert!((5_000..=8_000).contains(&packets), "{packets}");
    }
    let run = interrupted(&["plan", "--sample", "-"], "INT");
    check_end(&run, "INT");
    assert_eq!(run.out.matches("interrupted: there was").count(), 1);
    let mut child = start(&["plan", "--sample", "-"]);
    let stdin = child.stdin.take().unwrap();
    listening(&child);
    signal(&child, "INT");
    let run = ended(child);
    drop(stdin);
    check_end(&run, "INT");
    assert!(run.err.contains("there is no plan"), "{}", run.err);
    assert_eq!(run.out, "");
}

/// Questions that were answered stay so; half a union is none.
#[test]
fn filters_are_given_up_at_the_first_signal() {
    let folder = tempfile::tempdir().unwrap();
    let filter = folder.path().join("filter.fsieve");
    let line = ["count", "traces/generated.pcap", "--slice", "all"];
    let saved = ["--memory", "4MiB", "--save-filter", text(&filter)];
    flowsieve(&[&line[..], &saved].concat()).done();
    let mut child = start(&["filter", "query", text(&filter), "-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"10.0.0.1,10.0.0.2\n10.0.").unwrap();
    listening(&child);
    signal(&child, "TERM");
    let run = ended(child);
    drop(stdin);
    check_end(&run, "TERM");
    assert!(run.out.starts_with("10.0.0.1,10.0.0.2\t"), "{}", run.out);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);

    let mut child = start(&["filter", "query", "--format", "json", text(&filter), "-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"10.0.0.1,10.0.0.2\n10.0.").unwrap();
    listening(&child);
    signal(&child, "TERM");
    let run = ended(child);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((document["complete"].as_bool(), run.code), (Some(false), Some(143)));

    let union = folder.path().join("union.fsieve");
    let files = vec![text(&filter); 20_000];
    for (line, what) in [
        (&["filter", "union", "-o", text(&union)][..], "no filter was written"),
        (&["filter", "info"], "the results hold"),
    ] {
        let child = start(&[line, &files].concat());
        listening(&child);
        signal(&child, "INT");
        let run = ended(child);
        check_end(&run, "INT");
        assert!(run.err.contains(what), "{}", run.err);
        assert_eq!(names_in(folder.path()), ["filter.fsieve"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_that_nobody_writes_to_is_waited_for_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (line, name) in [
        (&["count", text(&pipe)][..], "TERM"),
        (&["count", text(&pipe), text(&pipe)], "INT"),
        (&["dedup", text(&pipe), "-w", "/dev/null"], "TERM"),
    ] {
        let child = start(line);
        listening(&child);
        signal(&child, name);
        let run = ended(child);
        assert_eq!(run.code, Some(if name == "TERM" { 143 } else { 130 }), "{}", run.err);
    }
    // A writer that comes late is read to its end.
    let child = start(&["count", "--format", "csv", text(&pipe)]);
    listening(&child);
    fs::write(&pipe, sample().1).unwrap();
    assert_eq!(ended(child).done(), slices(&[sample().0]));
}

#[test]
fn tables_say_that_they_are_partial() {
    for line in
        [&["count", "-"][..], &["flows", "-"], &["compare", "-"], &["compare", "--each", "-"]]
    {
        let run = interrupted(line, "INT");
        check_end(&run, "INT");
        let mark = "interrupted: there was more to read";
        assert_eq!(run.out.matches(mark).count(), 1, "{}", run.out);
    }
    assert!(!flowsieve(&["count", "traces/netns-dns.pcap"]).done().contains("interrupted"));
}

/// A table that is kept in a file says it too: there nobody sees standard error.
#[test]
fn tables_say_which_input_was_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [cut, empty] = ["cut.pcap", "empty"].map(|name| folder.path().join(name));
    fs::write(&cut, &sample().1[..50_000]).unwrap();
    fs::create_dir(&empty).unwrap();
    for line in ["count", "count --slice all", "top", "flows", "dedup --dry-run", "compare"] {
        let table = |captures: &[&str]| {
            let table =
                flowsieve(&line.split(' ').chain(captures.iter().copied()).collect::<Vec<_>>()).out;
            table.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let one = table(&[text(&cut)]);
        let mark = format!("1 input was not read in full; {}: ", text(&cut));
        assert_eq!(one.matches(&mark).count(), 1, "{line}: {one}");
        let two = table(&[text(&cut), text(&empty)]);
        let mark = "2 inputs were not read in full; ";
        assert_eq!(two.matches(mark).count(), 1, "{line}: {two}");
    }
    assert!(!flowsieve(&["count", "traces/netns-dns.pcap"]).done().contains("to the end"));
}

#[test]
fn partial_results_are_kept_under_another_name_and_filters_are_not_there() {
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
    assert!(run.err.contains("result.json.partial"), "{}", run.err);
    assert_eq!(names_in(folder.path()), ["page.html.partial", "result.json.partial"]);
    let document = fs::read(at("result.json.partial")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["totals"]["interrupted"], true);
    assert_eq!(document["totals"]["complete"], false);
    assert_eq!(document["slices"][0]["partial"], true);
    let shown = fs::read_to_string(at("page.html.partial")).unwrap();
    assert!(shown.contains("The run was interrupted"));

    fs::write(&capture, "older").unwrap();
    let run = interrupted(&["dedup", "-", "-w", text(&capture), "--format", "json"], "INT");
    check_end(&run, "INT");
    assert!(run.err.contains("out.pcap.partial"), "{}", run.err);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["totals"]["interrupted"], true);
    assert!(document["totals"]["packets"].as_u64().unwrap() > 5_000);
    assert_eq!(fs::read(&capture).unwrap(), b"older");
    assert_eq!(names_in(folder.path()).len(), 4, "no temporary file stays");
    let kept = at("out.pcap.partial");
    let again = flowsieve(&["count", "--format", "json", text(&kept)]).done();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!(again["totals"]["packets"].as_u64().unwrap() > 4_000);
}

/// A connection that is lost ends the terminal, and not what was read for hours.
#[test]
fn a_terminal_that_goes_away_leaves_the_result_and_nohup_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let line = ["count", "-", "--format", "csv", "-o", text(&path)];
    if !cfg!(target_os = "linux") {
        return;
    }
    // Under nohup, this test and what it starts ignore the signal.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is_ignored = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1;
    let mut names = vec!["x.csv"];
    if !is_ignored {
        check_end(&interrupted(&line, "HUP"), "HUP");
        assert_eq!(names_in(folder.path()), ["x.csv.partial"]);
        names.push("x.csv.partial");
    }
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_flowsieve")])
        .args(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    listening(&child);
    stdin.write_all(&sample().1).unwrap();
    signal(&child, "HUP");
    drop(stdin);
    let run = ended(child);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(names_in(folder.path()), names);
}

/// Rows of half a capture look like those of a whole one in CSV and Parquet, so the file does not
/// get its name.
#[test]
fn an_interrupted_table_never_gets_its_name() {
    for (format, name) in [("csv", "x.csv"), ("parquet", "x.parquet"), ("jsonl", "x.jsonl")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let line = ["count", "-", "--slice", "100ms", "--format", format, "-o", text(&path)];
        let run = interrupted(&line, "INT");
        check_end(&run, "INT");
        assert_eq!(names_in(folder.path()), [format!("{name}.partial")], "{}", run.err);
    }
}

/// An older partial result may be all that there is of it, or the input of this run.
#[test]
fn a_partial_result_replaces_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let older = folder.path().join("x.csv.partial");
    fs::write(&older, "older").unwrap();
    let line = ["count", "-", "--slice", "100ms", "--format", "csv", "-o", text(&path)];
    let run = interrupted(&line, "INT");
    check_end(&run, "INT");
    assert_eq!(names_in(folder.path()), ["x.csv.partial", "x.csv.partial.2"], "{}", run.err);
    assert_eq!(fs::read(&older).unwrap(), b"older");
    assert!(run.err.contains("x.csv.partial.2"), "{}", run.err);
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
    listening(&child);
    signal(&child, "TERM");
    let run = ended(child);
    check_end(&run, "TERM");
    assert_eq!(run.out, "");
    assert!(names_in(folder.path()).is_empty());
    // Bytes that went into a pipe are there.
    let mut child = start(&["generate", "--packets", "100M", "-w", "-"]);
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0; 24]).unwrap();
    signal(&child, "TERM");
    io::copy(&mut pipe, &mut io::sink()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("the capture that was written is not whole"), "{said}");
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

/// The capture that it generates for itself has no name, so that even a sudden end leaves nothing.
#[cfg(target_os = "linux")]
#[test]
fn reproduce_leaves_no_generated_capture() {
    for name in ["INT", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let line = ["reproduce", "cmdbf-fig-9", "--full-scale"];
        let mut child = program(&line)
            .env("TMPDIR", folder.path())
            .env_remove("FLOWSIEVE_TRACES")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let since = Instant::now();
        // It is open, and something is in it.
        let is_begun = || {
            let files = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
            let mut files =
                files.map(|file| (fs::read_link(file.path()), fs::metadata(file.path())));
            files.any(|(target, data)| {
                target.is_ok_and(|target| target.starts_with(folder.path()))
                    && data.is_ok_and(|data| data.len() > 0)
            })
        };
        while !is_begun() {
            assert!(since.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(5));
        }
        signal(&child, name);
        child.wait().unwrap();
        assert_eq!(names_in(folder.path()), Vec::<String>::new(), "{name}");
    }
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
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
