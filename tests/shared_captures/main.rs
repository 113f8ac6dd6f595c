//! Tests that need the shared captures, whose folder `FLOWSIEVE_TRACES` names. Without this
//! variable the tests are reported as ignored; with it, a missing file makes them fail.
//!
//! A test is ignored at run time, which rustc's own harness does not support.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]
#![allow(clippy::disallowed_methods, reason = "tests name their own paths")]

mod capture_filters;
mod comparison;
mod continued;
mod counts;
mod coverage;
mod decoding;
mod dedup;
mod flows;
mod harness;
mod index;
mod manifest;
mod order;
mod packets;
mod top;
mod wanted;
mod windows;

// The tests in these modules do not run here; only their helpers are used.
#[allow(dead_code, unused_imports, reason = "used by the tests")]
#[path = "../cli/main.rs"]
mod cli;
#[allow(dead_code, unused_imports, reason = "used by the tests")]
#[path = "../library/main.rs"]
mod library;
#[allow(dead_code, reason = "its main is that of a program")]
#[path = "../../scripts/measure_coverage.rs"]
mod measure_coverage;

use libtest_mimic::{Arguments, Completion, Trial};
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The variable that names the folder of shared captures.
const FOLDER: &str = "FLOWSIEVE_TRACES";

type Test = (&'static str, fn(&Path));

const TESTS: [Test; 13] = [
    ("comparison::floors_are_reached", comparison::floors_are_reached),
    (
        "comparison::the_number_of_hash_functions_decides_little",
        comparison::the_number_of_hash_functions_decides_little,
    ),
    (
        "comparison::verdicts_are_those_of_the_golden_file",
        comparison::verdicts_are_those_of_the_golden_file,
    ),
    ("comparison::the_truth_is_the_manifests", comparison::the_truth_is_the_manifests),
    ("continued::counts_hold_and_take_no_repeat", continued::counts_hold_and_take_no_repeat),
    (
        "counts::every_capture_has_the_counts_of_the_independent_tool",
        counts::every_capture_has_the_counts_of_the_independent_tool,
    ),
    ("coverage::bounds_hold_on_all_captures", coverage::bounds_hold_on_all_captures),
    (
        "decoding::the_short_path_gives_the_answer_of_the_general_path",
        decoding::the_short_path_gives_the_answer_of_the_general_path,
    ),
    ("index::answers_are_those_of_a_scan", index::answers_are_those_of_a_scan),
    (
        "order::a_real_capture_out_of_order_has_all_packets_in_slices",
        order::a_real_capture_out_of_order_has_all_packets_in_slices,
    ),
    (
        "packets::every_capture_is_read_as_the_manifest_says",
        packets::every_capture_is_read_as_the_manifest_says,
    ),
    ("wanted::combinations_are_counted", wanted::combinations_are_counted),
    ("windows::are_what_a_range_of_time_has", windows::are_what_a_range_of_time_has),
];

/// Tests that are ignored where another program is missing.
type TestWithPeer = (&'static str, fn(&Path) -> Completion);

const TESTS_WITH_PEERS: [TestWithPeer; 5] = [
    ("capture_filters::keep_what_tcpdump_keeps", capture_filters::keep_what_tcpdump_keeps),
    ("dedup::by_frame_keeps_what_editcap_keeps", dedup::by_frame_keeps_what_editcap_keeps),
    (
        "dedup::headers_that_are_left_read_the_same_in_tshark",
        dedup::headers_that_are_left_read_the_same_in_tshark,
    ),
    ("flows::packets_and_bytes_are_those_of_tshark", flows::packets_and_bytes_are_those_of_tshark),
    ("top::numbers_are_those_of_tshark", top::numbers_are_those_of_tshark),
];

fn trial(name: &str, test: impl FnOnce(&Path) -> Completion + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        Ok(match env::var_os(FOLDER).map(PathBuf::from) {
            Some(folder) => test(&folder),
            None => Completion::ignored_with(format!("{FOLDER} is not set")),
        })
    })
}

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("harness::without_captures_no_test_passes", || {
        harness::without_captures_no_test_passes();
        Ok(())
    })];
    trials.extend(TESTS.map(|(name, test)| {
        trial(name, move |folder| {
            test(folder);
            Completion::Completed
        })
    }));
    trials.extend(TESTS_WITH_PEERS.map(|(name, test)| trial(name, test)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
