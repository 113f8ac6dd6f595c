//! Checks that every format has the documented fields, and no others.

use super::{document, flowsieve, text_of};
use flowsieve::decode::Skip;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};

const CAPTURE: &str = "traces/netns-dns.pcap";

/// Returns the names of the fields after `heading` in docs/output.md: from a list, from the first
/// cells of a table, or, if they are explained elsewhere, from the lines that follow.
pub(super) fn documented(heading: &str) -> Vec<String> {
    let manual = text_of("docs/output.md");
    let (_, rest) = manual.split_once(heading).unwrap();
    let (body, _) = rest.split_once("<!--end-->").unwrap();
    let own_lines = body.lines().skip(1).take_while(|line| !line.starts_with("**"));
    let names = own_lines.filter_map(|line| {
        if let Some(cells) = line.strip_prefix("| `") {
            return Some(format!("`{}", cells.split(" | ").next()?));
        }
        if let Some(item) = line.strip_prefix("- `") {
            return Some(format!("`{}", item.split([':', '(']).next()?));
        }
        let starts = ["[As everywhere](#common-fields)", "As above", "As for `flowsieve "];
        let (start, names) = line.split_once(": ")?;
        starts.iter().any(|known| start.starts_with(known)).then(|| names.to_owned())
    });
    names.flat_map(|names| quoted(&names)).collect()
}

/// Returns the body of the table after `heading` in docs/output.md.
fn table(heading: &str) -> Vec<Vec<String>> {
    let manual = text_of("docs/output.md");
    let (_, rest) = manual.split_once(heading).unwrap();
    let rows = rest.lines().skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()))
        .map(|cells| cells.skip(1).collect())
        .collect()
}

/// Returns all texts in backticks.
fn quoted(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

pub(super) fn fields(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

pub(super) fn documented_set(heading: &str, more: &[&str]) -> BTreeSet<String> {
    let more = more.iter().map(ToString::to_string);
    documented(heading).into_iter().chain(more).collect()
}

#[test]
fn json_has_the_documented_fields() {
    let (document, run) = document(&["--element", "dns", CAPTURE, "traces/generated.pcap"]);
    run.done();
    assert_eq!(fields(&document), set(["schema", "parameters", "slices", "inputs", "totals"]));
    assert_eq!(document["schema"], "flowsieve.count/1");
    assert!(text_of("docs/output.md").contains("`flowsieve.count/1`"));
    let parameters = documented_set("**`parameters`**", &[]);
    assert_eq!(fields(&document["parameters"]), parameters);
    let slices = document["slices"].as_array().unwrap();
    for slice in slices {
        assert_eq!(fields(slice), documented_set("**`slices`**", &[]));
    }
    assert!(slices.len() > 8);
    assert_eq!(document["inputs"].as_array().unwrap().len(), 2);
    for input in document["inputs"].as_array().unwrap() {
        assert_eq!(fields(input), documented_set("**`inputs`**", &[]));
        assert_eq!(input["container"], "pcap");
    }
    let totals = &document["totals"];
    assert_eq!(fields(totals), documented_set("**`totals`**", &[]));
    let quantiles = documented_set("**`quantiles`**", &[]);
    assert_eq!(fields(&totals["quantiles"]), quantiles);
    let reasons = documented_set("### Reasons", &[]);
    let skipped = fields(&totals["skipped"]);
    assert!(skipped.len() > 2 && skipped.is_subset(&reasons), "{skipped:?}");
}

/// The lines of a result. All have the same fields, and a field that is not null has one type.
pub(crate) fn lines_of_one_schema(arguments: &[&str]) -> Vec<Value> {
    let text = flowsieve(&[arguments, &["--format", "jsonl"]].concat()).done();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut types = BTreeMap::new();
    for line in &lines {
        assert_eq!(fields(line), fields(&lines[0]), "{arguments:?}");
        check_types("", line, &mut types);
    }
    lines
}

/// Checks that a value has the type of the values before it, unless it is null.
fn check_types(name: &str, value: &Value, types: &mut BTreeMap<String, &'static str>) {
    let own = match value {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::String(_) => "text",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::Array(values) => {
            for value in values {
                check_types(&format!("{name}[]"), value, types);
            }
            "list"
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                check_types(&format!("{name}.{field}"), value, types);
            }
            "object"
        }
    };
    assert_eq!(*types.entry(name.to_owned()).or_insert(own), own, "{name}: {value}");
}

#[test]
fn json_lines_are_the_rows_and_a_summary_is_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let lines = lines_of_one_schema(&["count", CAPTURE, "--summary", path.to_str().unwrap()]);
    let (mut document, _) = document(&[CAPTURE]);
    assert_eq!(Value::Array(lines), document["slices"]);
    let summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    document.as_object_mut().unwrap().remove("slices");
    assert_eq!(summary, document);
}

/// A table in Markdown and in LaTeX has the cells of the CSV.
#[test]
fn tables_for_texts_are_the_csv() {
    let with = |format| flowsieve(&["count", CAPTURE, "--format", format]).done();
    let csv = with("csv");
    let cells = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
    let rows: Vec<Vec<String>> = csv.lines().map(cells).collect();
    let plain = |text: &str, separator: &str| -> Vec<String> {
        let cells = text.split(separator).map(|cell| cell.trim().replace("\\_", "_"));
        cells.collect()
    };
    let markdown = with("markdown");
    let lines = markdown.lines().map(|line| line.trim_matches('|'));
    let mut of_markdown: Vec<Vec<String>> = lines.map(|line| plain(line, "|")).collect();
    let rule = of_markdown.remove(1);
    assert!(rule.iter().all(|cell| cell == "--:" || cell == "---"), "{rule:?}");
    assert_eq!(of_markdown, rows);
    let latex = with("latex");
    let lines = latex.lines().filter_map(|line| line.strip_suffix(" \\\\"));
    assert_eq!(lines.map(|line| plain(line, "&")).collect::<Vec<_>>(), rows);
    assert!(latex.starts_with("\\begin{tabular}{") && latex.ends_with("\\end{tabular}\n"));
}

/// Every command that lists something has every format.
#[test]
fn every_command_has_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (archive, filter, file) = (path("archive"), path("filter"), path("rows.parquet"));
    flowsieve(&["index", "build", "-q", &archive, CAPTURE]).done();
    let saved = ["--slice", "all", "--save-filter", &filter, CAPTURE];
    flowsieve(&[&["count"], &saved[..]].concat()).done();
    let commands: [(&[&str], &str); 10] = [
        (&["count", CAPTURE], "slices"),
        (&["compare", "--memory", "1KiB", CAPTURE], "structures"),
        (&["flows", CAPTURE], "flows"),
        (&["dedup", "--dry-run", "--slice", "1s", CAPTURE], "slices"),
        (&["plan", "--expect", "1k"], "structures"),
        (&["reproduce", "cbfm-table-2"], "experiments"),
        (&["filter", "info", &filter], "filters"),
        (&["index", "search", &archive, "--port", "53"], "hits"),
        (&["index", "stats", &archive], "nodes"),
        (&["index", "verify", &archive], "problems"),
    ];
    for (command, rows) in commands {
        let with = |format: &str| flowsieve(&[command, &["--format", format]].concat()).done();
        assert!(!with("table").is_empty(), "{command:?}");
        let document: Value = serde_json::from_str(&with("json")).unwrap();
        assert!(document[rows].is_array(), "{command:?}");
        let lines = lines_of_one_schema(command);
        let csv = with("csv");
        let mut csv = csv::Reader::from_reader(csv.as_bytes());
        let count = csv.records().map(Result::unwrap).count();
        assert_eq!(lines.len(), count, "{command:?}");
        for format in ["markdown", "latex"] {
            assert!(!with(format).is_empty(), "{command:?} {format}");
        }
        let to_file = ["--format", "parquet", "-o", &file];
        assert_eq!(flowsieve(&[command, &to_file].concat()).done(), "");
        let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
        let parquet_rows = reader.metadata().file_metadata().num_rows();
        assert_eq!(parquet_rows as usize, count, "{command:?}");
        let run = flowsieve(&[command, &["--format", "xml"]].concat());
        assert_eq!(run.code, Some(2), "{command:?}");
        let arrow = if cfg!(feature = "arrow") { ", arrow, arrows" } else { "" };
        let known =
            format!("[possible values: table, csv, json, jsonl, markdown, latex, parquet{arrow}");
        assert!(run.err.contains(&known), "{}", run.err);
    }
}

#[test]
fn times_are_also_in_rfc_3339() {
    let (document, _) = document(&[CAPTURE]);
    let slice = &document["slices"][0];
    let start = slice["start_ns"].as_i64().unwrap();
    let time = chrono::DateTime::from_timestamp_nanos(start);
    let time = time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
    assert_eq!(slice["start"], time.clone());
    let csv = super::slices(&[CAPTURE]);
    let mut csv = csv.lines();
    assert!(csv.next().unwrap().starts_with("start_ns,start,end_ns,end,packets,"));
    let cells: Vec<&str> = csv.next().unwrap().split(',').collect();
    assert_eq!(cells[..2], [start.to_string(), time.clone()]);
}

#[test]
fn csv_has_the_documented_columns_and_the_numbers_of_json() {
    for options in [&["--memory", "512"][..], &["--no-exact"], &["--filter", "mdbf"]] {
        let csv = super::slices(&[options, &[CAPTURE]].concat());
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().unwrap();
        assert_eq!(header, documented("**`slices`**"));
        let (document, _) = document(&[options, &[CAPTURE]].concat());
        let slices = document["slices"].as_array().unwrap();
        assert_eq!(lines.clone().count(), slices.len());
        for (line, slice) in lines.zip(slices) {
            for (name, cell) in header.iter().zip(line) {
                let same = match &slice[name] {
                    Value::Null => cell.is_empty(),
                    Value::String(text) => cell == text,
                    value => serde_json::from_str::<Value>(cell).unwrap() == *value,
                };
                assert!(same, "{name}: {cell} and {}", slice[name]);
            }
        }
    }
}

#[test]
fn a_table_in_a_pipe_is_plain() {
    let table = flowsieve(&["count", CAPTURE]).done();
    assert!(!table.contains('\x1b'));
    assert!(table.starts_with("distinct host pairs in slices of 1 s; "));
}

#[test]
fn every_reason_is_documented_and_no_other() {
    let rows = table("### Reasons");
    let mut ours: Vec<(String, &str)> = Skip::ALL
        .iter()
        .map(|skip| {
            let has_ip = if skip.has_ip() { "yes" } else { "no" };
            (skip.name().into_owned(), has_ip)
        })
        .collect();
    ours.push(("link_type_…".to_owned(), "no"));
    let manual: Vec<(String, &str)> =
        rows.iter().map(|row| (quoted(&row[0]).concat(), row[1].as_str())).collect();
    assert_eq!(manual, ours);
}

#[test]
fn the_table_sums_what_its_lines_say() {
    // Nine slices, then a packet of the first one, which is closed by then: it counts there.
    let log: String = (1..10).chain([1]).fold("ts,src,dst,qname\n".to_owned(), |log, time| {
        log + &format!("{time},10.0.0.1,10.0.0.2,a\n")
    });
    let table = super::feed(&["count", "-"], log.as_bytes()).done();
    let sum = table.lines().find(|line| line.starts_with("sum of 9 slices")).unwrap();
    let cells: Vec<&str> = sum.split_whitespace().collect();
    assert_eq!(cells[4..7], ["10", "10", "9"], "{table}");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.contains(&"10 packets, 10 of them IP"), "{table}");
    let first = lines.iter().find(|line| line.starts_with("1970-01-01T00:00:01Z"));
    let cells: Vec<&str> = first.unwrap().split_whitespace().collect();
    assert_eq!(cells[1..4], ["2", "2", "1"], "{table}");
}

#[test]
fn a_counter_that_is_no_filter_has_no_columns_of_a_filter() {
    let options = ["count", "--filter", "hll", "traces/generated.pcap"];
    let text = flowsieve(&options).done();
    let mut lines = text.lines();
    let title = lines.next().unwrap();
    assert!(title.ends_with("; hll counter, 256 KiB a slice in 1 shard"), "{title}");
    let head: Vec<&str> = lines.next().unwrap().split("  ").map(str::trim).collect();
    let head: Vec<&str> = head.into_iter().filter(|name| !name.is_empty()).collect();
    let names = ["start", "packets", "elements", "exact", "estimate"];
    assert_eq!(head[..5], names);
    assert!(!text.contains("first") && !text.contains("FPR"), "{text}");
    let (document, _) = document(&options);
    let parameters = &document["parameters"];
    assert_eq!(parameters["filter"], "hll");
    assert_eq!(parameters["memory_bytes"], 262_144);
    assert!(parameters["probes"].is_null());
    assert!(document["totals"]["first"].is_null());
    assert!(document["totals"]["estimate"].is_f64());
}

#[test]
fn a_count_that_passed_its_limit_is_not_shown_as_zero() {
    let line = ["--exact-limit", "1", "--filter", "exact", "traces/generated.pcap"];
    let (document, run) = document(&line);
    run.done();
    let totals = &document["totals"];
    assert!(totals["exact"].is_null() && totals["quantiles"].is_null());
    for slice in document["slices"].as_array().unwrap() {
        assert_eq!(slice["exact_over_limit"], true);
        assert!(slice["exact"].is_null());
    }
    let table = flowsieve(&[&["count"], &line[..]].concat()).done();
    assert!(table.contains("passed its limit in 8 of 8 slices; raise it with --exact-limit"));
    assert!(!table.contains("median"), "{table}");
}

/// `--format parquet` has the columns and the values of `--format csv`.
pub(crate) fn parquet_is_the_csv(arguments: &[&str]) {
    let csv = flowsieve(&[arguments, &["--format", "csv"]].concat()).done();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let file = ["--format", "parquet", "-o", path.to_str().unwrap()];
    assert_eq!(flowsieve(&[arguments, &file].concat()).done(), "");
    let mut lines = csv::Reader::from_reader(csv.as_bytes());
    let header = lines.headers().unwrap().clone();
    let lines: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert!(!lines.is_empty());
    assert_eq!(rows.len(), lines.len());
    for (row, line) in rows.iter().zip(&lines) {
        assert!(row.get_column_iter().map(|(name, _)| name).eq(&header));
        for ((name, field), text) in row.get_column_iter().zip(line) {
            let same = match field {
                Field::Null => text.is_empty(),
                Field::Str(value) => value == text,
                Field::Bool(value) => text == value.to_string(),
                Field::ULong(value) => text == value.to_string(),
                Field::UShort(value) => text == value.to_string(),
                Field::UByte(value) => text == value.to_string(),
                Field::Long(ns) if text.contains('T') => {
                    let time = chrono::DateTime::parse_from_rfc3339(text).unwrap();
                    time.timestamp_nanos_opt() == Some(*ns)
                }
                Field::Long(value) => text == value.to_string(),
                Field::Double(value) => text.parse::<f64>().unwrap().to_bits() == value.to_bits(),
                other => panic!("{name}: {other:?}"),
            };
            assert!(same, "{name}: {field:?} is not {text:?}");
        }
    }
}
