//! Tests of limits of the system. Without the exact count, memory does not grow with the capture.

#![cfg(target_os = "linux")]

use super::{flowsieve, program};
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use std::fs;
use std::io::BufWriter;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Memory of the filters of all open slices with the defaults.
const FILTERS_KIB: u64 = 8 * 64;

#[test]
fn a_million_packets_take_no_more_memory_than_promised() {
    let line = ["count", "--no-exact", "--threads", "2", "--format", "json", "-"];
    let mut child = program(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    let plan = GeneratePlan {
        // So many distinct pairs that an exact set would be noticed.
        scan_percent: 50,
        ..GeneratePlan::new(GenerateKind::Traffic, 1_000_000)
    };
    generate(&plan, &mut input).unwrap();
    let input = input.into_inner().unwrap();
    // The program has read everything but the rest in the pipe, and waits for more.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["totals"]["packets"], 1_000_000);
    let peak_kib: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .unwrap()
        .parse()
        .unwrap();
    println!("{peak_kib} KiB resident at most");
    assert!(peak_kib < 64 * 1024 + FILTERS_KIB, "{peak_kib} KiB");
}

/// Under a limit of the address space a run goes on with fewer threads and less memory, or ends
/// with a sentence, and leaves no temporary file. `scripts/sweep-limits` does more of the same.
#[test]
fn memory_that_is_refused_ends_no_run_without_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("large.pcap");
    let plan =
        GeneratePlan { scan_percent: 80, ..GeneratePlan::new(GenerateKind::Traffic, 600_000) };
    let mut file = BufWriter::new(fs::File::create(&capture).unwrap());
    generate(&plan, &mut file).unwrap();
    drop(file);
    let results = folder.path().join("results");
    let commands = [
        "count CAPTURE",
        "count --threads 16 CAPTURE",
        "count --slice all --element flow CAPTURE",
        "export --threads 8 -o RESULTS/rows.csv CAPTURE",
        "export --threads 16 --all --format parquet -o RESULTS/rows.parquet CAPTURE",
        "flows --threads 16 --format parquet -o RESULTS/flows.parquet CAPTURE",
        "top --threads 3 --slice 1s CAPTURE",
        "count --slice all --memory 64MiB CAPTURE",
        "count --od 32 --od-out RESULTS/od.csv CAPTURE",
        "flows -o RESULTS/flows CAPTURE",
        "flows --unique -o RESULTS/flows CAPTURE",
        "compare --slice all --element flow --seeds 2 --filter subset,bloom CAPTURE",
        "compare --memory 16MiB --seeds 2 --filter subset,mdbf CAPTURE",
        "dedup -w RESULTS/unique.pcap --window 1h CAPTURE",
        "dedup --dry-run --window 1000000p --approximate CAPTURE",
        "plan --sample CAPTURE",
        "index build RESULTS/index CAPTURE",
    ];
    let mut ended = [0, 0];
    for mebibytes in [80, 110, 160, 320] {
        for command in commands {
            fs::create_dir(&results).unwrap();
            let line = command
                .replace("CAPTURE", capture.to_str().unwrap())
                .replace("RESULTS", results.to_str().unwrap());
            let program = env!("CARGO_BIN_EXE_flowsieve");
            let limited =
                format!("ulimit -v {}; exec timeout 60 '{program}' {line}", mebibytes << 10);
            let mut shell = Command::new("sh");
            // A panic would take memory for its backtrace.
            shell.args(["-c", &limited]).env("RUST_BACKTRACE", "0");
            let output = shell.output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            let at = format!("{mebibytes} MiB: {command}: {err}");
            match output.status.code() {
                Some(0) => ended[0] += 1,
                Some(1) => {
                    ended[1] += 1;
                    assert_eq!(err.lines().count(), 1, "{at}");
                    assert!(err.contains("memory") || err.contains("more distinct"), "{at}");
                    for entry in fs::read_dir(&results).unwrap() {
                        let name = entry.unwrap().file_name().into_string().unwrap();
                        assert!(name.ends_with(".partial"), "{name}: {at}");
                    }
                }
                _ => panic!("{at}"),
            }
            assert!(!err.contains("panicked") && !err.contains("mistake"), "{at}");
            let mut left = fs::read_dir(&results).unwrap();
            let is_temporary = |name: &str| name.starts_with(".flowsieve");
            assert!(!left.any(|entry| is_temporary(entry.unwrap().file_name().to_str().unwrap())));
            fs::remove_dir_all(&results).unwrap();
        }
    }
    assert!(ended[0] > 10 && ended[1] > 1, "{ended:?}");
}

/// The library that reads the records of a region aborts the program if an allocation fails.
#[test]
fn memory_that_is_refused_to_an_index_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("large.pcap");
    let plan =
        GeneratePlan { scan_percent: 80, ..GeneratePlan::new(GenerateKind::Traffic, 300_000) };
    generate(&plan, &mut fs::File::create(&capture).map(BufWriter::new).unwrap()).unwrap();
    let index = folder.path().join("index");
    let (capture, index) = (capture.to_str().unwrap(), index.to_str().unwrap());
    flowsieve(&["index", "build", "-q", index, capture]).done();
    let mut refused = 0;
    for mebibytes in [40, 48, 56, 64, 72] {
        for command in ["search --port 53", "verify"] {
            let program = env!("CARGO_BIN_EXE_flowsieve");
            let limited = format!(
                "ulimit -v {}; exec timeout 60 '{program}' index {command} '{index}'",
                mebibytes << 10
            );
            let mut shell = Command::new("sh");
            shell.args(["-c", &limited]).env("RUST_BACKTRACE", "0");
            let output = shell.output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            let at = format!("{mebibytes} MiB: {command}: {err}");
            if output.status.code() != Some(0) {
                assert_eq!(output.status.code(), Some(1), "{at}");
                assert!(err.starts_with("flowsieve: ") && err.lines().count() == 1, "{at}");
                refused += usize::from(err.contains("allow more of it"));
            }
        }
    }
    assert!(refused > 0, "no limit was one of a region");
}

/// An ordinary user who has no other processes.
const USER: u32 = 54_321;

/// If threads cannot be created, fewer do the work, down to the caller alone: the result is the
/// same, and there is one message.
#[test]
fn threads_that_are_refused_change_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Root may have as many threads as it wants, so an ordinary user needs everything here.
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), all).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_flowsieve"), at("flowsieve")).unwrap();
    let plan = GeneratePlan::new(GenerateKind::Traffic, 60_000);
    let mut file = BufWriter::new(fs::File::create(at("large.pcap")).unwrap());
    generate(&plan, &mut file).unwrap();
    drop(file);
    let small = GeneratePlan::new(GenerateKind::Traffic, 30_000);
    generate(&small, &mut fs::File::create(at("small.pcap")).unwrap()).unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let run = |line: &str, limit: &str| {
        let line = line.replace("LARGE", &at("large.pcap")).replace("SMALL", &at("small.pcap"));
        let limited = format!("{limit} exec '{}' {line}", at("flowsieve"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &limited]);
        if is_root {
            shell.uid(USER);
        }
        let output = shell.output().unwrap();
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    for command in [
        "count --slice 1s --format csv LARGE",
        "count --slice 1s --format csv LARGE SMALL",
        "compare --filter subset,bloom --format csv LARGE",
        "top --slice 1s --format csv LARGE",
        "flows --format csv LARGE",
        "flows --format csv LARGE SMALL",
        "export --format csv LARGE",
        "export --all --format csv LARGE SMALL",
        "dedup --window 1p -w - LARGE",
        "reproduce cmdbf-examples --format csv",
    ] {
        for threads in ["", " --threads 1", " --threads 3", " --threads 16"] {
            if command.starts_with("dedup") && !threads.is_empty() {
                continue;
            }
            let line = format!("{command}{threads}");
            let expected = run(&line, "");
            let limited = run(&line, "ulimit -u 1;");
            assert_eq!((expected.0, limited.0), (Some(0), Some(0)), "{line}: {}", limited.2);
            assert!(expected.1 == limited.1, "{line}: another result");
            let said = limited.2.matches("the system refused some threads").count();
            assert!(said <= 1, "{line}: {}", limited.2);
            if threads.ends_with('3') || threads.ends_with('6') {
                assert_eq!(said, 1, "{line}: {}", limited.2);
            }
            assert!(!limited.2.contains("panicked"), "{line}: {}", limited.2);
        }
    }
}

/// Inputs that overlap in time are open together. The program raises its own limit as far as it
/// may; further inputs wait until others have ended, and no packet is lost.
#[test]
fn inputs_beyond_the_limit_of_open_files_lose_no_packet() {
    const CAPTURES: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    for number in 0..CAPTURES {
        let file = fs::File::create(folder.path().join(format!("{number}.pcap"))).unwrap();
        let plan = GeneratePlan { seed: number, ..GeneratePlan::new(GenerateKind::Traffic, 2_000) };
        generate(&plan, &mut BufWriter::new(file)).unwrap();
    }
    let count = |limit: &str| {
        let program = env!("CARGO_BIN_EXE_flowsieve");
        let folder = folder.path().display();
        let line = format!("{limit} exec '{program}' count --slice 1s --format json '{folder}'");
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{limit}: {err}");
        let is_late = limit.contains(" -n ");
        let remarks = err.matches("may be open at once").count();
        assert_eq!(remarks, usize::from(is_late), "{limit}: {err}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let fields = ["start_ns", "packets", "elements", "exact"];
        let rows = document["slices"].as_array().unwrap().iter();
        rows.map(|row| fields.map(|name| row[name].as_u64().unwrap())).collect::<Vec<_>>()
    };
    let expected = count("");
    assert_eq!(expected.iter().map(|row| row[1]).sum::<u64>(), 2_000 * CAPTURES);
    assert_eq!(count("ulimit -Sn 40;"), expected);
    assert_eq!(count("ulimit -n 80;"), expected);
    assert_eq!(count("ulimit -n 30;"), expected);
}
