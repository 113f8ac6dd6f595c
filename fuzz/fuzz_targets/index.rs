//! Searches and verifies an index with one damaged file: its catalogue, the captures of its segment
//! or their copy, filters, records or lists. In half of the cases the checksums are corrected, so
//! that the damage is read; then nothing may panic. Otherwise `verify` must name the file, and a
//! search must find everything or name it, too.
//!
//! The first byte chooses the file, the second the kind of damage and the query, and the others are
//! places and values of the damage.
#![no_main]

use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
use flowsieve::hashing::Checksum;
use flowsieve::index::RegionFilter;
use flowsieve::index::{Hit, HitSink, IndexQuery, IndexWriter, Settings, search, stats, verify};
use flowsieve::trace::StopFlag;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

static TEMPLATE: LazyLock<Template> = LazyLock::new(Template::make);

fuzz_target!(|bytes: &[u8]| {
    let Some((&[file, mode], changes)) = bytes.split_first_chunk() else { return };
    let template = &*TEMPLATE;
    let file = usize::from(file) % template.files.len();
    let (path, content) = &template.files[file];
    let mut damaged = damage(content, changes, mode & 2 != 0);
    if mode & 1 == 0 {
        fs::write(path, &damaged).expect("a file of the index can be written");
        template.honest(mode, path, &damaged != content);
    } else {
        if mode & 4 != 0 {
            seal_filters(content, &mut damaged);
        }
        template.lie(mode, path, content, &damaged);
    }
    for (path, content) in &template.files {
        fs::write(path, content).expect("a file of the index can be written");
    }
});

/// Sets, flips, inserts or removes bytes of `content`, with four bytes of `changes` for each
/// change. If `replaced`, returns `changes` themselves.
fn damage(content: &[u8], changes: &[u8], replaced: bool) -> Vec<u8> {
    if replaced {
        return changes.to_vec();
    }
    let mut damaged = content.to_vec();
    for &[high, low, what, value] in changes.as_chunks().0 {
        // Counts from either end, since the metadata of Parquet are at the end.
        let at = usize::from(u16::from_be_bytes([high, low])) % (damaged.len() + 1);
        let at = if what & 8 == 0 { at } else { damaged.len() - at };
        match (what % 8, damaged.get_mut(at)) {
            (0..=2, Some(byte)) => *byte = value,
            (3, Some(byte)) => *byte ^= 1 << (value % 8),
            (4, _) => damaged.insert(at, value),
            (5, Some(_)) => drop(damaged.remove(at)),
            (6, _) => damaged.truncate(at),
            (7, Some(_)) => {
                let end = damaged.len().min(at + 8);
                damaged[at..end].fill(value);
            }
            _ => {}
        }
    }
    damaged
}

/// Corrects the checksums of a sequence of saved filters, if the damage did not change its length.
fn seal_filters(content: &[u8], damaged: &mut [u8]) {
    const MARK: &[u8] = b"\x89FSIEVE\n";
    if content.len() != damaged.len() || !content.starts_with(MARK) {
        return;
    }
    let begins = |&at: &usize| content[at..].starts_with(MARK);
    let mut starts: Vec<usize> = (0..content.len()).filter(begins).collect();
    starts.push(content.len());
    for range in starts.windows(2) {
        let (whole, damaged) = (&content[range[0]..range[1]], &mut damaged[range[0]..range[1]]);
        let is_head = |&end: &usize| whole[end..end + 8] == sum(&whole[..end]).to_le_bytes();
        let head = (44..whole.len() - 8).find(is_head).expect("a head has a checksum");
        for end in [head, whole.len() - 8] {
            let right = sum(&damaged[..end]).to_le_bytes();
            damaged[end..end + 8].copy_from_slice(&right);
        }
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.update(bytes);
    checksum.value()
}

/// A small index, and the hits of some queries on it.
struct Template {
    _folder: TempDir,
    archive: PathBuf,
    /// The catalogue first.
    files: Vec<(PathBuf, Vec<u8>)>,
    answers: Vec<(IndexQuery, BTreeSet<String>)>,
}

impl Template {
    fn make() -> Self {
        // The Parquet reader may panic, and the library catches that. The hook of the fuzzer would
        // abort at once, so it is replaced; a panic that reaches the target still ends it.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
        let folder = TempDir::new().expect("a folder can be made");
        let capture = folder.path().join("capture.pcap");
        let mut plan = GeneratePlan::new(GenerateKind::Traffic, 150);
        plan.dns_percent = 20;
        let mut bytes = Vec::new();
        generate(&plan, &mut bytes).expect("memory");
        fs::write(&capture, bytes).expect("a capture can be written");
        let archive = folder.path().join("archive");
        let settings = Settings {
            region_ns: 30_000_000_000,
            filter: RegionFilter::default(),
            ..Settings::default()
        };
        let mut writer = IndexWriter::create(&archive, settings, &[]).expect("an index is made");
        writer.add(&capture, &()).expect("a capture is added");
        writer.commit().expect("an index is written");
        drop(writer);
        let mut files = Vec::new();
        collect(&archive, &mut files);
        files.sort_by_key(|(path, _)| (!path.ends_with("catalog.json"), path.clone()));
        let mut template = Self { _folder: folder, archive, files, answers: Vec::new() };
        let port = |port| IndexQuery { port: Some(port), ..IndexQuery::default() };
        let hosts = ["10.0.0.0/8", "0.0.0.0/0", "::/0", "10.0.0.1"]
            .map(|text| IndexQuery { host: text.parse().ok(), ..IndexQuery::default() });
        let domain = IndexQuery { domain: "*.example".parse().ok(), ..IndexQuery::default() };
        let queries = [port(53), port(443), domain].into_iter().chain(hosts);
        for query in queries {
            let mut found = Found::default();
            let explained = search(&template.archive, &query, &StopFlag::default(), &mut found)
                .expect("it is whole");
            assert_eq!(explained.problems, Vec::<String>::new());
            template.answers.push((query, found.0));
        }
        assert!(template.answers.iter().any(|(_, found)| !found.is_empty()));
        template
    }

    fn asked(&self, mode: u8) -> &(IndexQuery, BTreeSet<String>) {
        &self.answers[usize::from(mode >> 3) % self.answers.len()]
    }

    /// Checks an index whose checksums do not fit the damage: the changed file is named, and
    /// everything found exists.
    fn honest(&self, mode: u8, path: &Path, changed: bool) {
        let is_catalog = path == self.files[0].0;
        let names = |problems: &[String]| {
            let name = path.to_string_lossy().into_owned();
            problems.iter().any(|problem| problem.contains(&name))
        };
        let (query, there) = self.asked(mode);
        let mut found = Found::default();
        match search(&self.archive, query, &StopFlag::default(), &mut found) {
            Ok(explained) => {
                assert!(found.0.is_subset(there), "{query:?}: what is not there");
                assert!(
                    found.0 == *there || names(&explained.problems),
                    "{query:?}: {:?}",
                    explained.problems
                );
            }
            Err(error) => assert!(is_catalog && changed, "{error}"),
        }
        match verify(&self.archive) {
            Ok(verified) if is_catalog => assert!(verified.problems.is_empty()),
            Ok(verified) => assert_eq!(names(&verified.problems), changed),
            Err(error) => assert!(is_catalog && changed, "{error}"),
        }
    }

    /// Searches and verifies an index whose checksums are those of the damaged file.
    fn lie(&self, mode: u8, path: &Path, content: &[u8], damaged: &[u8]) {
        let (catalog_path, catalog) = &self.files[0];
        let text = std::str::from_utf8(catalog).expect("it is JSON");
        let (_, inner) = text.split_once("\"catalog\":").expect("it holds one");
        let inner = inner.trim_end().strip_suffix('}').expect("it ends");
        let write = |path: &Path, bytes: &[u8]| {
            fs::write(path, bytes).expect("a file of the index can be written");
        };
        let is_segment = |path: &Path| path.extension().is_some_and(|found| found == "segment");
        let lie = if path == catalog_path {
            let start = catalog.len() - inner.len() - 2;
            let end = damaged.len().saturating_sub(2);
            damaged.get(start..end).unwrap_or(damaged).to_vec()
        } else if is_segment(path) {
            // The copy is damaged in the same way, so that it cannot replace the segment.
            self.files
                .iter()
                .filter(|(path, _)| is_segment(path))
                .for_each(|(path, _)| write(path, damaged));
            inner.replace(&mark(content), &mark(damaged)).into_bytes()
        } else {
            // The marks of regions are in the captures of the segment, the others in the catalogue.
            let (_, before) = sealed(path, content);
            let (damaged, after) = sealed(path, damaged);
            write(path, &damaged);
            let segments = || self.files.iter().filter(|(path, _)| is_segment(path));
            let captures = &segments().next().expect("there is a segment").1;
            let text = std::str::from_utf8(captures).expect("it is JSON");
            assert!(inner.contains(&before) || text.contains(&before), "every file has a mark");
            let lie = text.replace(&before, &after);
            segments().for_each(|(path, _)| write(path, lie.as_bytes()));
            let inner = inner.replace(&before, &after);
            inner.replace(&mark(captures), &mark(lie.as_bytes())).into_bytes()
        };
        let head =
            format!("{{\"schema\":\"flowsieve.index/5\",\"checksum\":{},\"catalog\":", sum(&lie));
        write(catalog_path, &[head.as_bytes(), &lie, b"}\n"].concat());
        let _ =
            search(&self.archive, &self.asked(mode).0, &StopFlag::default(), &mut Found::default());
        let _ = (verify(&self.archive), stats(&self.archive));
    }
}

/// Returns the mark of a file that is read as a whole, as the catalogue has it.
fn mark(bytes: &[u8]) -> String {
    format!("{{\"bytes\":{},\"checksum\":{}}}", bytes.len(), sum(bytes))
}

/// Returns a file with corrected checksums, and its mark. A global filter is read in blocks: it
/// ends with their checksums, and its mark has the checksum of these.
fn sealed(path: &Path, bytes: &[u8]) -> (Vec<u8>, String) {
    if path.extension().is_none_or(|found| found != "filter") {
        return (bytes.to_vec(), mark(bytes));
    }
    let blocks = bytes.len().div_ceil(4096 + 8);
    let content = &bytes[..bytes.len().saturating_sub(8 * blocks)];
    let sums: Vec<u8> = content.chunks(4096).flat_map(|block| sum(block).to_le_bytes()).collect();
    let whole = [content, &sums].concat();
    let mark = format!("{{\"bytes\":{},\"checksum\":{}}}", whole.len(), sum(&sums));
    (whole, mark)
}

/// Adds all files except locks, which are empty, and `node.json`, which has no checksum.
fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if !path.ends_with("lock") && !path.ends_with("node.json") {
            let content = fs::read(&path).expect("the file can be read");
            files.push((path, content));
        }
    }
}

/// Collects the hits.
#[derive(Default)]
struct Found(BTreeSet<String>);

impl HitSink for Found {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.0.insert(format!("{} {:?}", hit.number, hit.record));
        Ok(())
    }
}
