//! Deduplication against editcap.

use crate::library::dedup::{Frame, frames, plan, run};
use flowsieve::dedup::{Sameness, WindowWidth};
use flowsieve::trace::{Capture, InputFormat};
use libtest_mimic::Completion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn by_frame_keeps_what_editcap_keeps(traces: &Path) -> Completion {
    if Command::new("editcap").arg("--version").output().is_err() {
        return Completion::ignored_with("there is no editcap (Debian: wireshark-common)");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut captures = Vec::new();
    for group in ["backbone", "campus", "ddos", "dns", "encap", "formats"] {
        let mut paths: Vec<PathBuf> = fs::read_dir(traces.join(group))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let readable = paths.into_iter().filter(|path| {
            Capture::open(path, InputFormat::Auto)
                .is_ok_and(|capture| capture.container().starts_with("pcap"))
        });
        captures.extend(readable.take(6));
    }
    let (mut compared, mut dropped) = (0, 0);
    for path in captures {
        let theirs = folder.path().join("theirs.pcapng");
        let editcap = Command::new("editcap")
            .arg("-d")
            .args([&path, &theirs])
            .output()
            .unwrap();
        if !editcap.status.success() {
            continue;
        }
        let plan = plan(
            std::slice::from_ref(&path),
            Sameness::Frame,
            WindowWidth::Packets(5),
        );
        let (summary, kept, _) = run(&plan, folder.path());
        let bytes = |frames: Vec<Frame>| -> Vec<Vec<u8>> {
            frames.into_iter().map(|(_, bytes)| bytes).collect()
        };
        assert_eq!(bytes(kept), bytes(frames(&theirs)), "{}", path.display());
        compared += 1;
        dropped += summary.totals.dropped();
    }
    eprintln!("{compared} captures compared with editcap, {dropped} frames dropped");
    assert!(
        compared >= 10 && dropped > 0,
        "{compared} captures, {dropped} frames dropped"
    );
    Completion::Completed
}
