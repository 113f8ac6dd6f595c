//! Memory: without the exact count it does not grow with the capture.

#![cfg(target_os = "linux")]

use super::program;
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use std::fs;
use std::io::BufWriter;
use std::process::{Command, Stdio};

/// Filters of all open slices with the defaults.
const FILTERS_KIB: u64 = 8 * 64;

#[test]
fn a_million_packets_take_no_more_memory_than_promised() {
    let line = ["count", "--no-exact", "--threads", "2", "--format", "json", "-"];
    let mut child = program(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    let plan = GeneratePlan {
        // As many distinct pairs as there can be: an exact set would show.
        scan_percent: 50,
        ..GeneratePlan::new(GenerateKind::Traffic, 1_000_000)
    };
    generate(&plan, &mut input).unwrap();
    let input = input.into_inner().unwrap();
    // All but the contents of a pipe has been read, and the program waits for more.
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

/// Under a limit of the address space a run goes on with less memory or ends with a sentence, and
/// leaves no temporary file.
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
        "count --slice all --element flow CAPTURE",
        "count --slice all --memory 64MiB CAPTURE",
        "count --od 32 --od-out RESULTS/od.csv CAPTURE",
        "flows -o RESULTS/flows CAPTURE",
        "flows --unique -o RESULTS/flows CAPTURE",
        "compare --slice all --element flow --filter subset,bloom,exact CAPTURE",
        "compare --memory 16MiB --filter subset,mdbf CAPTURE",
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
                    assert_eq!(fs::read_dir(&results).unwrap().count(), 0, "{at}");
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
