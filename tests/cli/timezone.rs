//! `--timezone`, in every command that shows times.

use super::{flowsieve, sample};
use chrono::{DateTime, FixedOffset};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Zones with the hours by which they are ahead of UTC on the sample's day, in November.
const ZONES: [(&str, f64); 3] =
    [("Europe/Berlin", 1.0), ("Asia/Kolkata", 5.5), ("America/New_York", -5.0)];

fn out(line: &[&str]) -> String {
    let output = flowsieve(line);
    assert!(output.code == Some(0), "{line:?}: {}", output.err);
    output.out
}

fn json(line: &[&str]) -> Value {
    serde_json::from_str(&out(&[line, &["--format", "json"]].concat())).unwrap()
}

fn at(text: &Value) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(text.as_str().unwrap()).unwrap()
}

fn nanoseconds(text: &Value) -> i64 {
    at(text).timestamp_nanos_opt().unwrap()
}

fn hours_ahead(text: &Value) -> f64 {
    f64::from(at(text).offset().local_minus_utc()) / 3600.0
}

/// Writes a capture with a packet of the sample at each of these times.
fn capture(folder: &Path, times: &[&str]) -> PathBuf {
    let (_, bytes) = sample();
    let length = u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
    let mut pcap = bytes[..24].to_vec();
    for time in times {
        let time = DateTime::parse_from_rfc3339(time).unwrap();
        pcap.extend((time.timestamp() as u32).to_le_bytes());
        pcap.extend(0_u32.to_le_bytes());
        pcap.extend(&bytes[32..40 + length]);
    }
    let path = folder.join("days.pcap");
    fs::write(&path, pcap).unwrap();
    path
}

#[test]
fn texts_of_times_have_the_offset_and_stay_the_same_times() {
    let (path, _) = sample();
    let path = path.to_str().unwrap();
    for (command, rows) in [
        (&["count", "--slice", "250ms"][..], "slices"),
        (&["top", "--slice", "1s"], "keys"),
        (&["compare", "--memory", "512"], "slices"),
        (&["flows"], "flows"),
        (&["export"], "rows"),
        (&["dedup", "--dry-run", "--seed", "1", "--slice", "1s"], "slices"),
    ] {
        let utc = json(&[command, &[path]].concat());
        assert_eq!(utc["parameters"]["timezone"], "UTC");
        for (zone, hours) in ZONES {
            let local = json(&[command, &["--timezone", zone, path]].concat());
            assert_eq!(local["parameters"]["timezone"], zone, "{command:?}");
            let [rows, of_utc] = [&local, &utc].map(|all| all[rows].as_array().unwrap());
            assert_eq!(rows.len(), of_utc.len());
            for (row, of_utc) in rows.iter().zip(of_utc) {
                assert_eq!(row["start_ns"], of_utc["start_ns"], "{command:?}");
                assert_eq!(row["start_ns"].as_i64(), Some(nanoseconds(&row["start"])));
                assert!((hours_ahead(&row["start"]) - hours).abs() < 1e-9, "{row}");
            }
            assert_eq!(local["totals"], utc["totals"]);
        }
        // Lines of other formats have the same texts.
        let csv = |zone| out(&[command, &["--format", "csv", "--timezone", zone, path]].concat());
        if rows != "slices" || command[0] != "compare" {
            assert!(csv("Asia/Kolkata").contains("+05:30,"), "{command:?}");
            assert!(!csv("UTC").contains("+00:00"), "{command:?}");
        }
    }
    let nested = json(&["compare", "--timezone", "Asia/Kolkata", path]);
    let worst = &nested["structures"][0]["replicates"][0]["worst_start"];
    assert!((hours_ahead(worst) - 5.5).abs() < 1e-9, "{worst}");
    let ecs = ["flows", "--names", "ecs", "--format", "jsonl", "--timezone", "Asia/Kolkata", path];
    assert!(out(&ecs).lines().all(|line| line.contains("+05:30\",\"event.end\"")));
}

#[test]
fn tables_and_pages_name_the_zone() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let (path, _) = sample();
    let (path, html) = (path.to_str().unwrap(), page.to_str().unwrap());
    for command in [
        &["count", "--html", html][..],
        &["top", "--slice", "1s", "--html", html],
        &["compare", "--memory", "512", "--html", html],
        &["flows"],
        &["dedup", "--dry-run", "--slice", "1s"],
    ] {
        let table = |zone| out(&[command, &["-q", "--timezone", zone, path]].concat());
        assert!(!table("UTC").contains("times of"), "{command:?}");
        let local = table("Europe/Berlin").replace('\n', " ");
        assert!(local.contains("times of Europe/Berlin"), "{local}");
        if command.contains(&"--html") {
            let page = fs::read_to_string(&page).unwrap();
            for part in [
                "Times are of Europe/Berlin.",
                "beginning of the slice, Europe/Berlin",
                ">23:13:2",
                "\"zone\":\"Europe/Berlin\"",
                // Microseconds since 1970, and an hour.
                ",3600000000]]",
            ] {
                assert!(page.contains(part), "{command:?}: {part}");
            }
            assert!(!page.contains("UTC."), "{command:?}");
        }
    }
}

#[test]
fn days_begin_at_local_midnight_and_keep_their_length_when_clocks_change() {
    let folder = tempfile::tempdir().unwrap();
    // Clocks went forward at 01:00 UTC on 2024-03-31.
    let times = [
        "2024-03-30T00:30:00+01:00",
        "2024-03-30T23:30:00+01:00",
        "2024-03-31T12:00:00+02:00",
        "2024-04-01T00:30:00+02:00",
        "2024-04-01T12:00:00+02:00",
    ];
    let path = capture(folder.path(), &times);
    let path = path.to_str().unwrap();
    for command in [&["count"][..], &["dedup", "--dry-run", "--by", "frame"]] {
        let days = ["--slice", "1d", "--timezone", "Europe/Berlin", path];
        let days = json(&[command, &days].concat());
        let days = days["slices"].as_array().unwrap().iter();
        let days: Vec<(DateTime<FixedOffset>, u64)> =
            days.map(|day| (at(&day["start"]), day["packets"].as_u64().unwrap())).collect();
        let expected = [
            ("2024-03-30T00:00:00+01:00", 2),
            // An hour of the first of April belongs to the 24 hours that began at the midnight of
            // the 31st.
            ("2024-03-31T00:00:00+01:00", 2),
            ("2024-04-01T01:00:00+02:00", 1),
        ];
        let expected = expected.map(|(day, n)| (DateTime::parse_from_rfc3339(day).unwrap(), n));
        assert_eq!(days, expected, "{command:?}");
    }
    for (zone, first) in [
        ("UTC", "2024-03-29T00:00:00+00:00"),
        ("Asia/Kolkata", "2024-03-30T00:00:00+05:30"),
        ("America/New_York", "2024-03-29T00:00:00-04:00"),
    ] {
        let days = json(&["count", "--slice", "1d", "--timezone", zone, path]);
        assert_eq!(at(&days["slices"][0]["start"]).to_rfc3339(), first);
        let half_hours = ["--slice", "1h", "--align", "first", "--timezone", zone];
        let from_first = json(&[&["count"], &half_hours[..], &[path]].concat());
        assert_eq!(nanoseconds(&from_first["slices"][0]["start"]), nanoseconds(&times[0].into()));
    }
}

#[test]
fn from_and_to_without_an_offset_are_of_the_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = capture(
        folder.path(),
        &["2024-06-30T23:59:59+02:00", "2024-07-01T00:00:00+02:00", "2024-07-01T01:59:59+02:00"],
    );
    let path = path.to_str().unwrap();
    let packets = |zone, from, to| {
        let range = ["--slice", "all", "--timezone", zone, "--from", from, "--to", to];
        let count = json(&[&["count"], &range[..], &[path]].concat());
        count["totals"]["packets"].as_u64().unwrap()
    };
    assert_eq!(packets("Europe/Berlin", "2024-07-01", "2024-07-02"), 2);
    assert_eq!(packets("UTC", "2024-06-30", "2024-07-01"), 3);
    assert_eq!(packets("Europe/Berlin", "2024-07-01T01:59", "2024-07-02"), 1);
    // A time with an offset does not depend on the zone.
    assert_eq!(packets("Asia/Kolkata", "2024-07-01T00:00:00+02:00", "2024-07-02"), 2);
}

#[test]
fn archives_and_saved_filters_are_asked_in_the_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let (archive, filter) = (path("archive"), path("pairs.fsieve"));
    let (capture, _) = sample();
    let capture = capture.to_str().unwrap();
    out(&["index", "build", &archive, capture, "-q"]);
    let kolkata = ["--timezone", "Asia/Kolkata"];
    let search = |from| {
        let when = [
            "index",
            "search",
            &archive,
            "--port",
            "443",
            "--from",
            from,
            "--to",
            "2023-11-15T03:43:22",
        ];
        flowsieve(&[&when[..], &kolkata].concat())
    };
    let found = search("2023-11-15T03:43:21");
    assert!(found.code == Some(0) && found.out.contains("2023-11-15T03:43:2"), "{}", found.err);
    assert!(found.out.lines().all(|line| line.contains("+05:30")));
    assert_eq!(search("2023-11-14").code, Some(0));
    assert_eq!(
        flowsieve(&["index", "search", &archive, "--port", "443", "--from", "2023-11-15"]).code,
        Some(1)
    );
    let from = ["--from", "2023-11-15T03:43:21"];
    let count = ["count", "-q", "--slice", "all", "--save-filter", &filter, capture];
    out(&[&count[..], &from, &kolkata].concat());
    let info = |more: &[&str]| out(&[&["filter", "info", &filter], more].concat());
    assert!(info(&kolkata).contains("from 2023-11-15T03:43:21.000000000+05:30"));
    assert!(info(&[]).contains("from 2023-11-14T22:13:21.000000000Z"));
    assert!(info(&["--format", "csv", "--timezone", "Asia/Kolkata"]).contains("+05:30"));
    let part = path("part");
    out(&[&["index", "build", &part, capture, "-q"][..], &from, &kolkata].concat());
    let stats = |more: &[&str]| json(&[&["index", "stats", "--captures", &part], more].concat());
    let beginning = |stats: &Value| stats["capture_list"][0]["from"].clone();
    let (there, utc) = (beginning(&stats(&kolkata)), beginning(&stats(&[])));
    assert_eq!((hours_ahead(&there), hours_ahead(&utc)), (5.5, 0.0));
    assert_eq!(at(&there), at(&utc));
}

#[test]
fn a_wrong_name_gets_one_sentence_with_the_name_that_is_near() {
    let (path, _) = sample();
    let wrong = flowsieve(&["count", "--timezone", "Europe/Berln", path.to_str().unwrap()]);
    assert_eq!(wrong.code, Some(2));
    let sentence = "no time zone has this name; Europe/Berlin is near it";
    assert!(wrong.err.contains(sentence), "{}", wrong.err);
}
