//! Packets extracted are those of a scan, in the order of time.

use super::questions::{Question, questions};
use super::scan::{Packet, scan};
use super::{build, pieces, settings};
use flowsieve::filters::FilterKind;
use flowsieve::index::{CaptureEntry, Ends, ExtractPlan, Extracted, Hit, HitSink, extract, search};
use flowsieve::trace::StopFlag;
use flowsieve::trace::write::WriteFormat;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The captures with answers.
struct Captures(BTreeMap<u64, CaptureEntry>);

impl HitSink for Captures {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.0.insert(hit.capture.id, hit.capture.clone());
        Ok(())
    }
}

/// Extracts the packets that answer a question. Returns the problems as well.
fn extracted_to<W: Write + Send + 'static>(
    archive: &Path,
    question: &Question,
    format: WriteFormat,
    out: W,
) -> (Extracted, Vec<String>) {
    let mut captures = Captures(BTreeMap::new());
    let (query, stop) = (question.query(), StopFlag::default());
    search(archive, &query, &stop, &mut captures).unwrap();
    let captures: Vec<CaptureEntry> = captures.0.into_values().collect();
    let mut problems = Vec::new();
    let plan = ExtractPlan {
        query: &query,
        selection: &flowsieve::selection::Selection::default(),
        captures: &captures,
        format,
        anonymizer: None,
        stop: &stop,
    };
    let (_, extracted) = extract(archive, plan, out, &mut problems).unwrap();
    (extracted, problems)
}

/// The packets that answer a question, as they are extracted.
fn extracted(archive: &Path, question: &Question, out: &Path) -> (Vec<(i64, Ends)>, Extracted) {
    let (format, file) = (WriteFormat::of_name(out), fs::File::create(out).unwrap());
    let (extracted, problems) = extracted_to(archive, question, format, file);
    assert_eq!(problems, Vec::<String>::new());
    let packets = scan(out);
    let found = packets.iter().map(|packet| (packet.time_ns, packet.ends));
    (found.collect(), extracted)
}

/// The packets that answer a question, by a scan, in the order of time.
fn expected(question: &Question, packets: &[Packet]) -> Vec<(i64, Ends)> {
    let matches = question.matches();
    let mut expected: Vec<(i64, Ends)> = packets
        .iter()
        .filter(|packet| question.in_time(packet.time_ns))
        .filter(|packet| !matches(packet).is_empty())
        .map(|packet| (packet.time_ns, packet.ends))
        .collect();
    expected.sort_by_key(|(time_ns, _)| *time_ns);
    expected
}

/// The generated capture, whose packets are in the order of time, dealt out in turn to so many
/// captures.
fn dealt(folder: &Path, count: usize) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/generated.pcap");
    let bytes = fs::read(path).unwrap();
    let mut captures = vec![bytes[..24].to_vec(); count];
    let (mut at, mut number) = (24, 0);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
        let end = at + 16 + length as usize;
        captures[number % count].extend(&bytes[at..end]);
        (at, number) = (end, number + 1);
    }
    let write = |(number, bytes): (usize, Vec<u8>)| {
        let path = folder.join(format!("dealt-{number:03}.pcap"));
        fs::write(&path, bytes).unwrap();
        path
    };
    captures.into_iter().enumerate().map(write).collect()
}

#[test]
fn packets_extracted_are_those_of_a_scan() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 500, 8);
    let archive = folder.path().join("archive");
    let nodes = [folder.path().join("one"), folder.path().join("two")];
    build(&archive, settings(FilterKind::Subset, 3), &nodes, &paths);
    let packets: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
    let all: Vec<&Packet> = packets.iter().collect();
    let out = folder.path().join("out.pcapng");
    let mut written = 0;
    for question in questions(&all, 500) {
        let (found, told) = extracted(&archive, &question, &out);
        let expected = expected(&question, &packets);
        assert_eq!(found, expected, "{question:?}");
        assert_eq!(told.packets, expected.len() as u64);
        written += told.packets;
    }
    assert!(written > 0);
}

/// Captures that overlap, few and more than may be open at one time.
#[test]
fn captures_that_overlap_are_merged_by_time() {
    for count in [5, 300] {
        let folder = TempDir::new().unwrap();
        let paths = dealt(folder.path(), count);
        let archive = folder.path().join("archive");
        build(&archive, settings(FilterKind::Subset, 300), &[], &paths);
        let packets: Vec<Packet> = paths.iter().flat_map(|path| scan(path)).collect();
        let question = Question { host: Some("0.0.0.0/0".into()), ..Question::default() };
        let mut expected = expected(&question, &packets);
        for name in ["out.pcapng", "out.pcap"] {
            let out = folder.path().join(name);
            let (mut found, told) = extracted(&archive, &question, &out);
            assert_eq!(told.packets, expected.len() as u64);
            assert!(found.is_sorted_by_key(|(time_ns, _)| *time_ns));
            // Packets of one time may come in any order.
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert!(told.packets > 5000);
        }
    }
}

/// Changes something before the first packets are written.
struct Changing(Option<Box<dyn FnOnce() + Send>>);

impl Write for Changing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(change) = self.0.take() {
            change();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Digests are compared before packets are read, which takes minutes for large captures.
#[test]
fn a_capture_that_changes_after_its_digest_was_compared_is_named() {
    let folder = TempDir::new().unwrap();
    let paths = pieces(folder.path(), 500, 3);
    let archive = folder.path().join("archive");
    build(&archive, settings(FilterKind::Subset, 300), &[], &paths[..2]);
    let question = Question { host: Some("0.0.0.0/0".into()), ..Question::default() };
    let bytes = fs::read(&paths[1]).unwrap();
    let append = |path: &Path, more: &[u8]| {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(more).unwrap();
    };
    let told = |change: Box<dyn FnOnce() + Send>| {
        let out = Changing(Some(change));
        extracted_to(&archive, &question, WriteFormat::of_name(Path::new("x.pcap")), out).1
    };
    let (path, more) = (paths[1].clone(), bytes[24..].to_vec());
    let grown = told(Box::new(move || append(&path, &more)));
    fs::write(&paths[1], &bytes).unwrap();
    let (path, other) = (paths[1].clone(), paths[2].clone());
    let replaced = told(Box::new(move || fs::rename(other, path).unwrap()));
    for problems in [grown, replaced] {
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("001.pcap: this capture changed while"), "{problems:?}");
    }
}
