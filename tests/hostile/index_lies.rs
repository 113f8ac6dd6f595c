//! Files of an index that are damaged and have correct checksums: nothing panics, and impossible
//! values are reported.

use super::samples::all;
use flowsieve::filters::FilterKind;
use flowsieve::hashing::Checksum;
use flowsieve::index::{
    CaptureEntry, ExtractPlan, GlobalFilter, Hit, HitSink, IndexQuery, IndexWriter, Settings,
    extract, search, stats, verify,
};
use flowsieve::report::{ReportFormat, TerminalStyle, index_stats};
use flowsieve::selection::Selection;
use flowsieve::trace::StopFlag;
use flowsieve::trace::write::WriteFormat;
use flowsieve::zone::Zone;
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

struct Nowhere;

impl HitSink for Nowhere {
    fn hit(&mut self, _: Hit<'_>) -> io::Result<()> {
        Ok(())
    }
}

fn index(global: GlobalFilter) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture.pcap");
    let mut samples = all().into_iter();
    let sample = samples.find(|sample| sample.name == "pcap-dns").unwrap();
    fs::write(&capture, &sample.bytes).unwrap();
    let archive = folder.path().join("archive");
    let settings = Settings {
        region_ns: 3_600_000_000_000,
        filter: FilterKind::Subset.into(),
        global,
        ..Settings::default()
    };
    let mut writer = IndexWriter::create(&archive, settings, &[]).unwrap();
    writer.add(&capture, &()).unwrap();
    writer.commit().unwrap();
    (folder, archive)
}

fn sum(bytes: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.update(bytes);
    checksum.value()
}

/// The texts of an index that describe its files: the catalogue, and the captures of its segment.
#[derive(Clone)]
struct Texts {
    catalog: String,
    segment: String,
}

impl Texts {
    fn of(archive: &Path) -> Self {
        let text = fs::read_to_string(archive.join("catalog.json")).unwrap();
        let (_, inner) = text.split_once("\"catalog\":").unwrap();
        Self {
            catalog: inner.trim_end().strip_suffix('}').unwrap().to_owned(),
            segment: fs::read_to_string(segment_file(archive)).unwrap(),
        }
    }

    /// Replaces the captures of the segment, and their mark in the catalogue.
    fn with_segment(&self, segment: String) -> Self {
        let marks = [&self.segment, &segment].map(|text| mark(text.as_bytes()));
        Self { catalog: self.catalog.replace(&marks[0], &marks[1]), segment }
    }

    /// Replaces the mark of a file.
    fn with_mark(&self, before: &str, after: &str) -> Self {
        let mut texts = self.with_segment(self.segment.replace(before, after));
        texts.catalog = texts.catalog.replace(before, after);
        texts
    }

    /// Writes them with correct checksums.
    fn write(&self, archive: &Path) {
        let text = format!(
            "{{\"schema\":\"flowsieve.index/6\",\"checksum\":{},\"catalog\":{}}}\n",
            sum(self.catalog.as_bytes()),
            self.catalog
        );
        fs::write(archive.join("catalog.json"), text).unwrap();
        for folder in [archive, &archive.join("node")] {
            fs::write(segment_file(folder), &self.segment).unwrap();
        }
    }
}

fn segment_file(archive: &Path) -> PathBuf {
    let entries = fs::read_dir(archive).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "segment");
    paths.find(is_one).unwrap()
}

/// Returns the content of a file in blocks with their checksums at its end, and its mark.
fn in_blocks(mut content: Vec<u8>) -> (Vec<u8>, String) {
    let checksums: Vec<u8> =
        (content.chunks(4096)).flat_map(|block| sum(block).to_le_bytes()).collect();
    content.extend(&checksums);
    let mark = format!("{{\"bytes\":{},\"checksum\":{}}}", content.len(), sum(&checksums));
    (content, mark)
}

fn mark(bytes: &[u8]) -> String {
    format!("{{\"bytes\":{},\"checksum\":{}}}", bytes.len(), sum(bytes))
}

/// Searches and verifies an index and returns the problems.
fn problems(archive: &Path) -> Vec<String> {
    let query = IndexQuery { port: Some(53), ..IndexQuery::default() };
    let searched = search(archive, &query, &StopFlag::default(), &mut Nowhere)
        .map(|explained| explained.problems);
    let verified = verify(archive).map(|verified| verified.problems);
    [searched, verified]
        .into_iter()
        .flat_map(|result| result.unwrap_or_else(|error| vec![error.to_string()]))
        .collect()
}

/// The places of filters in their file were taken from the catalogue without a check.
#[test]
fn a_catalogue_whose_filters_are_longer_than_their_file_is_refused() {
    let (_folder, archive) = index(GlobalFilter::default());
    assert_eq!(problems(&archive), Vec::<String>::new());
    let right = Texts::of(&archive);
    let text = &right.segment;
    let at = text.find("\"bytes\":[").unwrap() + "\"bytes\":[".len();
    let told = |lie: &str| {
        let end = at + text[at..].find([',', ']']).unwrap();
        let lie = [&text[..at], lie, &text[end..]].concat();
        right.with_segment(lie).write(&archive);
        problems(&archive)
    };
    for lie in ["99999999", "18446744073709551615,1"] {
        let problems = told(lie);
        assert!(!problems.is_empty());
        for problem in problems {
            assert!(problem.contains(".segment: this file of the index is damaged"), "{problem}");
        }
    }
    // A range shorter than the filter holds no filter.
    let problems = told("9");
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|p| p.contains(".filters: this file")));
}

/// The Parquet reader panics if lengths in a page are wrong. The schema of the file, and the
/// attributes of filters, were not checked.
#[test]
fn every_byte_of_every_file_of_an_index_may_lie() {
    for global in GlobalFilter::ALL {
        lie_in_every_file(global);
    }
}

fn lie_in_every_file(global: GlobalFilter) {
    let (_folder, archive) = index(global);
    let right = Texts::of(&archive);
    let node = archive.join("node");
    let capture = node.join("000000");
    let files = [&node, &capture].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_named = |path: &PathBuf| !path.ends_with("lock") && !path.ends_with("node.json");
        paths.filter(|path| path.is_file() && is_named(path)).collect::<Vec<_>>()
    });
    let mut told = 0;
    for path in files {
        let whole = fs::read(&path).unwrap();
        let has_blocks = global == GlobalFilter::Quotient && path.extension().unwrap() == "filter";
        let with_mark = |content: Vec<u8>| {
            if has_blocks {
                in_blocks(content)
            } else {
                let mark = mark(&content);
                (content, mark)
            }
        };
        let mut content = whole.clone();
        if has_blocks {
            content.truncate(whole.len() - 8 * whole.len().div_ceil(4104));
        }
        let (again, right_mark) = with_mark(content.clone());
        assert_eq!(again, whole);
        let named = right.catalog.contains(&right_mark) || right.segment.contains(&right_mark);
        assert!(named, "{}", path.display());
        for at in (0..content.len()).step_by(content.len() / 150 + 1) {
            let mut lie = content.clone();
            lie[at] = if at % 2 == 0 { 0xff } else { !lie[at] };
            let (lie, mark) = with_mark(lie);
            fs::write(&path, &lie).unwrap();
            right.with_mark(&right_mark, &mark).write(&archive);
            told += usize::from(!problems(&archive).is_empty());
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(told > 200, "{told}");
    // Damage in the captures of the segment.
    let text = right.segment.as_bytes();
    for at in (0..text.len()).step_by(text.len() / 150 + 1) {
        for byte in [b'9', b'"', b']'] {
            let mut lie = text.to_vec();
            lie[at] = byte;
            let lie = String::from_utf8(lie).unwrap();
            right.with_segment(lie).write(&archive);
            problems(&archive);
        }
    }
}

/// Adds the paths of all values in a document.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate().take(2) {
                places(value, &format!("{path}/{at}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Calls everything that reads and writes an index.
fn use_index(folder: &Path, archive: &Path) {
    let query = IndexQuery { host: "0.0.0.0/0".parse().ok(), ..IndexQuery::default() };
    let look = TerminalStyle::default();
    let mut found = Captures::default();
    let _ = search(archive, &query, &StopFlag::default(), &mut found);
    let plan = ExtractPlan {
        query: &query,
        selection: &Selection::default(),
        captures: &found.0,
        format: WriteFormat::of_name(Path::new("x.pcapng")),
        anonymizer: None,
        stop: &StopFlag::default(),
    };
    let _ = extract(archive, plan, Vec::new(), &mut Vec::new());
    if let Ok(stats) = stats(archive) {
        for format in [ReportFormat::TABLE, ReportFormat::JSON, ReportFormat::CSV] {
            for captures in [false, true] {
                index_stats(&stats, captures, Zone::UTC).write(format, look, Vec::new()).unwrap();
            }
        }
    }
    let damage = verify(archive).map(|verified| verified.damage).unwrap_or_default();
    if let Ok(mut writer) = IndexWriter::open(archive) {
        let _ = writer.repair(&damage, &());
        let _ = writer.commit();
    }
    if let Ok(mut writer) = IndexWriter::open(archive) {
        let _ = writer.drop_captures(&folder.join("capture.pcap"));
        let _ = writer.add(&folder.join("capture.pcap"), &());
        let _ = writer.commit();
    }
    if let Ok(mut writer) = IndexWriter::open(archive) {
        let _ = writer.drop_captures(Path::new("/"));
        let _ = writer.commit();
    }
}

/// Collects the captures with hits.
#[derive(Default)]
struct Captures(Vec<CaptureEntry>);

impl HitSink for Captures {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        if self.0.last() != Some(hit.capture) {
            self.0.push(hit.capture.clone());
        }
        Ok(())
    }
}

/// Replaces each value of the catalogue and of a segment, with correct checksums: nothing panics or
/// waits, and nothing outside the index changes.
#[test]
fn every_value_of_a_catalogue_may_lie() {
    let (folder, archive) = index(GlobalFilter::default());
    let outside = folder.path().join("photos");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir_all(outside.join("000042")).unwrap();
    let photos = ["000042/holiday.jpg", "20240131", "000003.filter"].map(|name| outside.join(name));
    for path in &photos {
        fs::write(path, "mine").unwrap();
    }
    let capture = fs::read(folder.path().join("capture.pcap")).unwrap();
    let template = folder.path().join("template");
    fs::rename(&archive, &template).unwrap();
    let right = Texts::of(&template);
    let most = i64::MAX.to_string();
    let (outside_text, pipe_text) = (outside.display().to_string(), pipe.display().to_string());
    let lies: Vec<Value> = [
        Value::from(0),
        Value::from(u64::MAX),
        Value::from((1_u64 << 48) - 1),
        Value::from((1_u64 << 47) + 5),
        Value::from(i64::MIN),
        Value::from(i64::MAX),
        Value::Null,
        Value::from(""),
        Value::from(most),
        Value::from(outside_text),
        Value::from("../photos"),
        Value::from(pipe_text),
    ]
    .into();
    let texts = [&right.catalog, &right.segment];
    let mut told = 0;
    for (which, text) in texts.into_iter().enumerate() {
        let document: Value = serde_json::from_str(text).unwrap();
        let mut all = Vec::new();
        places(&document, "", &mut all);
        assert!(all.len() > 15, "{all:?}");
        for place in &all {
            let is_text = document.pointer(place).unwrap().is_string();
            for lie in lies.iter().filter(|lie| !is_text || lie.is_string() || lie.is_null()) {
                if !is_text && lie.is_string() {
                    continue;
                }
                let mut lied = document.clone();
                *lied.pointer_mut(place).unwrap() = lie.clone();
                let lied = serde_json::to_string(&lied).unwrap();
                let _ = fs::remove_dir_all(&archive);
                let copied = Command::new("cp").arg("-r").args([&template, &archive]).status();
                assert!(copied.unwrap().success());
                if which == 0 {
                    Texts { catalog: lied, segment: right.segment.clone() }.write(&archive);
                } else {
                    right.with_segment(lied).write(&archive);
                }
                use_index(folder.path(), &archive);
                told += 1;
                for path in &photos {
                    assert_eq!(fs::read(path).unwrap(), b"mine", "{place} {lie}");
                }
                assert_eq!(fs::read_dir(&outside).unwrap().count(), 3, "{place} {lie}");
                let now = fs::read(folder.path().join("capture.pcap")).unwrap();
                assert!(now == capture, "{place} {lie}");
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "{place} {lie}");
            }
        }
    }
    assert!(told > 150, "{told}");
}

/// Returns a page of a list that claims `claimed` values, and has `levels` levels and at most 128
/// values.
fn page_that_claims(claimed: u32, levels: u32) -> Vec<u8> {
    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }
    // Thrift encodes integers in zigzag, with the sign in the lowest bit.
    let number = |value: u64| varint(value << 1);
    // All values belong to one record, and none is null.
    let run = [varint(u64::from(levels) << 1), vec![1]].concat();
    let run = [&(run.len() as u32).to_le_bytes()[..], &run].concat();
    // DELTA_BINARY_PACKED: blocks of 128 in 4 parts, the number of values, the first value, and a
    // block of differences of 0.
    let mut values = vec![0x80, 1, 4];
    values.extend(varint(levels.into()));
    values.extend([0; 6]);
    let body = [run.clone(), run, values].concat();
    let length = number(body.len() as u64);
    // The header of a data page (0): its lengths, and in field 5 the number of values, the encoding
    // DELTA_BINARY_PACKED (5), and that of the levels, RLE (3).
    let mut page = vec![0x15, 0, 0x15];
    page.extend(&length);
    page.push(0x15);
    page.extend(&length);
    page.extend([0x2c, 0x15]);
    page.extend(number(claimed.into()));
    page.extend([0x15, 10, 0x15, 6, 0x15, 6, 0, 0]);
    page.extend(body);
    page
}

/// Replaces the pages of the last column, the numbers of records.
fn with_pages(lists: Vec<u8>, levels: u32, pages: &[u8]) -> Vec<u8> {
    let lists = bytes::Bytes::from(lists);
    let file = SerializedFileReader::new(lists.clone()).unwrap();
    let group = file.metadata().row_group(0);
    let schema = file.metadata().file_metadata().schema_descr();
    let schema = schema.root_schema().clone();
    let mut forged = SerializedFileWriter::new(Vec::new(), schema.into(), Arc::default()).unwrap();
    let mut columns = forged.next_row_group().unwrap();
    for (number, right) in group.columns().iter().enumerate() {
        let (bytes, metadata) = if number + 1 < group.num_columns() {
            (lists.clone(), right.clone())
        } else {
            let metadata = ColumnChunkMetaData::builder(right.column_descr_ptr())
                .set_compression(Compression::UNCOMPRESSED)
                .set_encodings(right.encodings().collect())
                .set_num_values(levels.into())
                .set_total_compressed_size(pages.len() as i64)
                .set_total_uncompressed_size(pages.len() as i64)
                .set_data_page_offset(0);
            (pages.to_vec().into(), metadata.build().unwrap())
        };
        let close = ColumnCloseResult {
            bytes_written: metadata.compressed_size() as u64,
            rows_written: group.num_rows() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        columns.append_column(&bytes, close).unwrap();
    }
    columns.close().unwrap();
    forged.into_inner().unwrap()
}

/// An index whose lists get forged pages.
struct WithPages {
    _folder: TempDir,
    archive: PathBuf,
    path: PathBuf,
    lists: Vec<u8>,
    right: Texts,
}

impl WithPages {
    fn new() -> Self {
        let (folder, archive) = index(GlobalFilter::default());
        let files = fs::read_dir(archive.join("node/000000")).unwrap();
        let mut paths = files.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.to_string_lossy().ends_with(".lists.parquet")).unwrap();
        Self {
            lists: fs::read(&path).unwrap(),
            right: Texts::of(&archive),
            path,
            archive,
            _folder: folder,
        }
    }

    /// Returns the problems of the index if these are the pages and hold `levels` values.
    fn problems(&self, levels: u32, pages: &[u8]) -> Vec<String> {
        let lie = with_pages(self.lists.clone(), levels, pages);
        fs::write(&self.path, &lie).unwrap();
        let lied = self.right.with_mark(&mark(&self.lists), &mark(&lie));
        lied.write(&self.archive);
        problems(&self.archive)
    }
}

/// The library allocates memory for the claimed number of values, and a few bytes can hold as many
/// levels.
#[test]
fn pages_that_claim_more_values_than_there_can_be_are_damage() {
    let index = WithPages::new();
    let claimed = |problems: &[String]| {
        let words = "its pages claim more values than there can be";
        problems.iter().any(|problem| problem.contains(words))
    };
    let most = i32::MAX as u32;
    let problems = index.problems(most, &page_that_claims(most, most));
    assert!(claimed(&problems), "{problems:?}");
    // Many pages together claim more values than one page may.
    let quarter = 1 << 24;
    let problems = index.problems(5 * quarter, &page_that_claims(quarter, quarter).repeat(5));
    assert!(claimed(&problems), "{problems:?}");
    // A small claim is read; there are too few values then.
    let problems = index.problems(10, &page_that_claims(10, 10));
    assert!(!problems.is_empty() && !claimed(&problems), "{problems:?}");
}

/// The library looped forever when it skipped rows of a page with fewer levels than it claims.
#[test]
fn pages_with_fewer_levels_than_they_claim_are_damage() {
    let index = WithPages::new();
    for levels in [1, 3, 99] {
        let problems = index.problems(100, &page_that_claims(100, levels));
        assert!(!problems.is_empty(), "{levels}");
        assert!(problems.iter().all(|problem| problem.contains(".lists.parquet")), "{problems:?}");
    }
}
