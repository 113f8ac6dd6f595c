//! Tests the harness itself: no test passes without the captures that it needs.

use crate::{FOLDER, TESTS, TESTS_WITH_PEERS};
use std::env;
use std::process::Command;

const ALL: usize = TESTS.len() + TESTS_WITH_PEERS.len();

/// Returns exit code and output of this program without this test.
fn run(change: impl FnOnce(&mut Command) -> &mut Command) -> (Option<i32>, String) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--skip", "harness"]);
    let output = change(&mut command).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

pub(crate) fn without_captures_no_test_passes() {
    let (code, text) = run(|command| command.env_remove(FOLDER));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ignored (FLOWSIEVE_TRACES is not set)"), "{text}");
    assert!(text.contains(&format!("0 failed; {ALL} ignored")), "{text}");

    let empty = tempfile::tempdir().unwrap();
    let (code, text) = run(|command| command.env(FOLDER, empty.path()));
    assert_eq!(code, Some(101), "{text}");
    assert!(text.contains(" 0 passed;"), "{text}");
}
