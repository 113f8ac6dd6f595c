//! Memory: without the exact count it does not grow with the capture.

#![cfg(target_os = "linux")]

use super::program;
use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use std::fs;
use std::io::BufWriter;
use std::process::Stdio;

/// Filters of all open slices with the defaults.
const FILTERS_KIB: u64 = 8 * 64;

#[test]
fn a_million_packets_take_no_more_memory_than_promised() {
    let line = [
        "count",
        "--no-exact",
        "--threads",
        "2",
        "--format",
        "json",
        "-",
    ];
    let mut child = program(&line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
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
