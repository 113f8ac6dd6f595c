//! Runs the program like a user: its output, its messages on bad input, its exit codes.

#![allow(clippy::excessive_nesting, reason = "loops over all cases")]
#![allow(clippy::too_many_lines, reason = "a test may tell a long story")]
#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]
#![allow(clippy::disallowed_methods, reason = "tests name their own paths")]

mod answers;
mod compare;
mod cookbook;
mod dedup;
mod export;
#[cfg(unix)]
mod faults;
mod flows;
mod formats;
mod index;
mod index_faults;
mod index_folders;
mod inputs;
mod keys;
mod limits;
#[cfg(unix)]
mod live;
mod logs;
mod output;
mod page;
mod pcapng;
mod plan;
mod privacy;
mod recipes;
mod reproduce;
mod same_file;
mod saved;
mod selection;
mod shell;
mod signals;
mod terminal;
mod timezone;
mod top;
mod trouble;
mod usage;
pub(crate) mod wanted;

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// The result of running the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program with an empty standard input.
pub(crate) fn flowsieve<S: AsRef<OsStr>>(args: &[S]) -> Run {
    feed(args, &[])
}

/// Runs the program with these bytes on its standard input.
fn feed<S: AsRef<OsStr>>(args: &[S], input: &[u8]) -> Run {
    let mut child = program(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // A program that does not read its input closes it; that is not an error here.
        scope.spawn(move || stdin.write_all(input).ok());
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    })
}

fn program<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowsieve"));
    command.current_dir(repository()).args(args);
    command
}

impl Run {
    /// Returns the standard output of a successful run without messages.
    fn done(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""));
        self.out
    }

    /// Returns the standard output of a search that found nothing.
    fn nothing(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(1), ""));
        self.out
    }

    /// Returns the only message on standard error.
    fn sentence(&self) -> &str {
        let sentence = self.err.strip_suffix('\n').unwrap_or_default();
        let sentence = sentence.strip_prefix("flowsieve: ").unwrap_or_default();
        let is_one = !sentence.is_empty()
            && !sentence.contains('\n')
            && !sentence.contains(". ")
            && !sentence.ends_with('.');
        assert!(is_one, "not one sentence: {}", self.err);
        sentence
    }
}

/// Runs a count with JSON as its format.
fn counted<S: AsRef<OsStr>>(args: &[S]) -> Run {
    let mut line: Vec<&OsStr> = vec!["count".as_ref(), "--format".as_ref(), "json".as_ref()];
    line.extend(args.iter().map(AsRef::as_ref));
    flowsieve(&line)
}

/// Returns the JSON document of `count` with these arguments, and the run.
fn document<S: AsRef<OsStr>>(args: &[S]) -> (Value, Run) {
    let run = counted(args);
    let document = serde_json::from_str(&run.out)
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err));
    (document, run)
}

/// Returns the slices of a count as CSV, which has nothing about the inputs.
fn slices<S: AsRef<OsStr>>(args: &[S]) -> String {
    let mut line: Vec<&OsStr> = vec!["count".as_ref(), "--format".as_ref(), "csv".as_ref()];
    line.extend(args.iter().map(AsRef::as_ref));
    flowsieve(&line).done()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text_of(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// Returns the generated capture of this repository: 8,000 packets in eight seconds.
fn sample() -> (PathBuf, Vec<u8>) {
    let path = repository().join("traces/generated.pcap");
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// Returns the offset of each record of a classic little-endian pcap, and the end of the last one.
fn record_offsets(pcap: &[u8]) -> Vec<usize> {
    let mut offsets = vec![24];
    let mut at = 24;
    while at < pcap.len() {
        at += 16 + u32::from_le_bytes(pcap[at + 8..at + 12].try_into().unwrap()) as usize;
        offsets.push(at);
    }
    offsets
}
