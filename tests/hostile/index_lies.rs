//! Index files that are damaged with their checksums put right: nothing panics, and what cannot be is named.

use super::samples::all;
use flowsieve::hashing::Checksum;
use flowsieve::index::{
    Hit, HitSink, IndexQuery, IndexWriter, RegionFilter, Settings, search, verify,
};
use flowsieve::pipeline::Watch;
use flowsieve::trace::StopFlag;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _: u64, _: u64) {}
}

struct Nowhere;

impl HitSink for Nowhere {
    fn hit(&mut self, _: Hit<'_>) -> io::Result<()> {
        Ok(())
    }
}

fn index() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture.pcap");
    let mut samples = all().into_iter();
    let sample = samples.find(|sample| sample.name == "pcap-dns").unwrap();
    fs::write(&capture, &sample.bytes).unwrap();
    let archive = folder.path().join("archive");
    let settings = Settings {
        region_ns: 3_600_000_000_000,
        filter: RegionFilter::Subset,
        dns_ports: Vec::new(),
    };
    let mut writer = IndexWriter::create(&archive, settings, &[]).unwrap();
    writer.add(&capture, &Unwatched).unwrap();
    writer.commit().unwrap();
    (folder, archive)
}

fn sum(bytes: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.update(bytes);
    checksum.value()
}

/// Writes a catalogue with a right checksum; `inner` is what it holds.
fn write_catalog(archive: &Path, inner: &str) {
    let text = format!(
        "{{\"schema\":\"flowsieve.index/1\",\"checksum\":{},\"catalog\":{inner}}}\n",
        sum(inner.as_bytes())
    );
    fs::write(archive.join("catalog.json"), text).unwrap();
}

fn catalog(archive: &Path) -> String {
    let text = fs::read_to_string(archive.join("catalog.json")).unwrap();
    let (_, inner) = text.split_once("\"catalog\":").unwrap();
    inner.trim_end().strip_suffix('}').unwrap().to_owned()
}

fn mark(bytes: &[u8]) -> String {
    format!("{{\"bytes\":{},\"checksum\":{}}}", bytes.len(), sum(bytes))
}

/// Everything that is read when an index is asked and verified.
fn problems(archive: &Path) -> Vec<String> {
    let query = IndexQuery {
        port: Some(53),
        ..IndexQuery::default()
    };
    let searched = search(archive, &query, &StopFlag::default(), &mut Nowhere)
        .map(|explained| explained.problems);
    let verified = verify(archive).map(|verified| verified.problems);
    [searched, verified]
        .into_iter()
        .flat_map(|result| result.unwrap_or_else(|error| vec![error.to_string()]))
        .collect()
}

/// Places in the file of filters came from the catalogue as they stood there.
#[test]
fn a_catalogue_whose_filters_are_longer_than_their_file_is_refused() {
    let (_folder, archive) = index();
    assert_eq!(problems(&archive), Vec::<String>::new());
    let right = catalog(&archive);
    let at = right.find("\"bytes\":[").unwrap() + "\"bytes\":[".len();
    let told = |lie: &str| {
        let end = at + right[at..].find([',', ']']).unwrap();
        write_catalog(&archive, &[&right[..at], lie, &right[end..]].concat());
        problems(&archive)
    };
    for lie in ["99999999", "18446744073709551615,1"] {
        let problems = told(lie);
        assert!(!problems.is_empty());
        for problem in problems {
            assert!(problem.contains("catalog.json: the catalogue"), "{problem}");
        }
    }
    // Shorter than they are, they are no filters.
    let problems = told("9");
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|p| p.contains(".filters: this file")));
}

/// The reader of Parquet panics where the lengths in a page are wrong, and its schema was taken for granted;
/// so were the attributes of filters.
#[test]
fn every_byte_of_every_file_of_an_index_may_lie() {
    let (_folder, archive) = index();
    let right = catalog(&archive);
    let node = archive.join("node");
    let capture = node.join("000000");
    let files = [&node, &capture].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_file()).collect::<Vec<_>>()
    });
    let mut told = 0;
    for path in files {
        let content = fs::read(&path).unwrap();
        let named = right.contains(&mark(&content));
        assert!(named, "{}", path.display());
        for at in (0..content.len()).step_by(content.len() / 150 + 1) {
            let mut lie = content.clone();
            lie[at] = if at % 2 == 0 { 0xff } else { !lie[at] };
            fs::write(&path, &lie).unwrap();
            write_catalog(&archive, &right.replace(&mark(&content), &mark(&lie)));
            told += usize::from(!problems(&archive).is_empty());
        }
        fs::write(&path, &content).unwrap();
    }
    assert!(told > 200, "{told}");
}
