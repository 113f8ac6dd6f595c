//! The archive index against a scan of all packets, against itself, and against those who kill it.

pub(crate) mod answers;
mod damage;
mod durability;
mod extraction;
mod logs;
mod ownership;
mod questions;
mod retention;
mod scan;
mod signals;

use flowsieve::index::{
    Added, Explained, Hit, HitSink, IndexError, IndexQuery, IndexWriter, Record, RegionFilter,
    Settings, search,
};
use flowsieve::trace::StopFlag;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Keeps the answers, by capture.
#[derive(Default)]
struct Kept(BTreeMap<PathBuf, Vec<Record>>);

impl HitSink for Kept {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        let records = self.0.entry(hit.capture.path.clone()).or_default();
        records.push(hit.record.clone());
        Ok(())
    }
}

pub(crate) fn settings(filter: impl Into<RegionFilter>, region_s: i64) -> Settings {
    Settings { region_ns: region_s * 1_000_000_000, filter: filter.into(), ..Settings::default() }
}

fn build(
    archive: &Path,
    settings: Settings,
    nodes: &[PathBuf],
    captures: &[PathBuf],
) -> Vec<Added> {
    let mut writer = IndexWriter::create(archive, settings, nodes).unwrap();
    let added = captures.iter().map(|path| writer.add(path, &()).unwrap());
    let added = added.collect();
    writer.commit().unwrap();
    added
}

/// Opens for writing. A process that another test begins has a copy of every lock until it runs its
/// program, so a lock that was given back may be held for a moment.
fn writer(archive: &Path) -> IndexWriter {
    let started = Instant::now();
    loop {
        match IndexWriter::open(archive) {
            Err(IndexError::Busy(_)) if started.elapsed() < Duration::from_secs(10) => {
                sleep(Duration::from_millis(2));
            }
            opened => return opened.unwrap(),
        }
    }
}

fn ask(archive: &Path, query: &IndexQuery) -> (BTreeMap<PathBuf, Vec<Record>>, Explained) {
    let mut kept = Kept::default();
    let explained = search(archive, query, &StopFlag::default(), &mut kept).unwrap();
    (kept.0, explained)
}

fn repository_captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "pcap"));
    paths.sort();
    paths
}

/// The generated capture cut into pieces of so many packets, in files of a folder.
fn pieces(folder: &Path, packets: usize, most: usize) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/generated.pcap");
    let bytes = fs::read(path).unwrap();
    let mut at = 24;
    let mut paths = Vec::new();
    while at < bytes.len() && paths.len() < most {
        let start = at;
        for _ in 0..packets {
            if at < bytes.len() {
                let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
                at += 16 + length as usize;
            }
        }
        let path = folder.join(format!("{:03}.pcap", paths.len()));
        fs::write(&path, [&bytes[..24], &bytes[start..at]].concat()).unwrap();
        paths.push(path);
    }
    paths
}

fn program(command: &[&str], archive: &Path, captures: &[PathBuf]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_flowsieve"))
        .args(command)
        .arg("--quiet")
        .arg(archive)
        .args(captures)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}
