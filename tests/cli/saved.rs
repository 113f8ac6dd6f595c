//! Filters that are saved, looked at, asked and united.

use super::formats::{documented_set, fields, parquet_is_the_csv};
#[cfg(unix)]
use super::signals::{ended, listening, start};
use super::{Run, feed, flowsieve, program, record_offsets, sample};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn count(options: &[&str], save: &Path, captures: &[&Path]) -> Run {
    let mut line = vec!["count", "--quiet", "--slice", "all", "--save-filter"];
    line.push(save.to_str().unwrap());
    line.extend(options);
    line.extend(captures.iter().map(|path| path.to_str().unwrap()));
    flowsieve(&line)
}

fn info(path: &Path) -> Value {
    let line = ["filter", "info", "--format", "json", path.to_str().unwrap()];
    let document: Value = serde_json::from_str(&flowsieve(&line).done()).unwrap();
    assert_eq!(document["schema"], "flowsieve.filter-info/1");
    document["filters"][0].clone()
}

fn ask(path: &Path, values: &[&str]) -> Run {
    flowsieve(&[&["filter", "query", path.to_str().unwrap()], values].concat())
}

/// Source, destination, protocol and ports of the first packet of the sample.
fn first_packet() -> [String; 5] {
    let (_, pcap) = sample();
    let ip = &pcap[24 + 16 + 14..];
    assert_eq!(ip[0], 0x45);
    let address =
        |at: usize| ip[at..at + 4].iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    let port = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]).to_string();
    [address(12), address(16), ip[9].to_string(), port(20), port(22)]
}

#[test]
fn a_saved_filter_knows_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    let (capture, _) = sample();
    let report = count(&["--format", "json"], &path, &[&capture]).done();
    let report: Value = serde_json::from_str(&report).unwrap();
    let told = info(&path);
    for (field, expected) in [
        ("element", Value::from("host-pair")),
        ("filter", Value::from("subset")),
        ("shards", Value::from(8)),
        ("memory_bytes", Value::from(262_144)),
        ("estimate", report["totals"]["estimate"].clone()),
        ("std_error", report["totals"]["std_error"].clone()),
    ] {
        assert_eq!(told[field], expected, "{field}");
    }
    let table = flowsieve(&["filter", "info", path.to_str().unwrap()]).done();
    for words in ["host pairs", "256 KiB in 8 shards", "k = 4", "±"] {
        assert!(table.contains(words), "{table}");
    }
    let [source, destination, ..] = first_packet();
    let pair = format!("{source},{destination}");
    let answers = ask(&path, &[&pair, "203.0.113.1,203.0.113.2", "203.0.113.1,*"]).done();
    assert_eq!(
        answers,
        format!("{pair}\tyes\n203.0.113.1,203.0.113.2\tno\n203.0.113.1,*\tunknown\n")
    );
    let lines = format!("{pair}\n\n203.0.113.1,203.0.113.2\n");
    let line = ["filter", "query", path.to_str().unwrap(), "-"];
    let answers = feed(&line, lines.as_bytes()).done();
    assert_eq!(answers, format!("{pair}\tyes\n203.0.113.1,203.0.113.2\tno\n"));
    let run = feed(&line, b"nonsense\n203.0.113.1,203.0.113.2\n");
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().starts_with("line 1: "));
    assert_eq!(run.out, "203.0.113.1,203.0.113.2\tno\n");
}

/// It would deny the elements that it lacks, so it says that it lacks some; and it replaces no filter that a
/// count went on from.
#[test]
fn a_filter_of_a_damaged_capture_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (cut, path, day, both) = (at("cut.pcap"), at("cut.fsieve"), at("day.fsieve"), at("both"));
    let (capture, bytes) = sample();
    fs::write(&cut, &bytes[..200_000]).unwrap();
    let run = count(&[], &path, &[&cut]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("the file ends inside"), "{}", run.err);
    assert_eq!(info(&path)["complete"], false);
    let table = flowsieve(&["filter", "info", path.to_str().unwrap()]).done();
    assert!(table.contains("an input was not read to its end"), "{table}");
    let run = ask(&path, &["203.0.113.1,203.0.113.2"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "203.0.113.1,203.0.113.2\tno\n"));
    assert!(run.sentence().contains("could not be read to its end"), "{}", run.err);
    let run = ask(&path, &["203.0.113.1,203.0.113.2", "--format", "json"]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["complete"], false);

    count(&["--no-exact"], &day, &[&capture]).done();
    assert_eq!(info(&day)["complete"], true);
    let before = fs::read(&day).unwrap();
    let again = ["--no-exact", "--continue", day.to_str().unwrap()];
    let (missing, empty) = (at("missing.pcap"), at("empty"));
    fs::create_dir(&empty).unwrap();
    for inputs in [&[&*cut][..], &[&missing, &capture], &[&empty, &capture]] {
        let run = count(&again, &day, inputs);
        assert_eq!(run.code, Some(1));
        assert!(run.err.contains("day.fsieve.partial"), "{}", run.err);
        assert!(fs::read(&day).unwrap() == before);
        let partial = at("day.fsieve.partial");
        assert_eq!(info(&partial)["complete"], false);
        fs::remove_file(&partial).unwrap();
    }
    for (other, complete) in [(&path, false), (&day, true)] {
        let files = [&day, other].map(|path| path.to_str().unwrap());
        let summary = at("summary");
        let json = ["--format", "json", "--summary", summary.to_str().unwrap()];
        let run = flowsieve(&[&["filter", "intersect"], &files[..], &json].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        for text in [run.out, fs::read_to_string(&summary).unwrap()] {
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["complete"], complete, "{text}");
        }
    }
    // Neither a union nor a count that goes on makes it whole.
    let [path, day, both] = [&path, &day, &both].map(|path| path.to_str().unwrap());
    let run = flowsieve(&["filter", "union", day, path, "-o", both]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let told = format!("{path}: an input could not be read to its end when this filter was saved");
    assert!(run.sentence().contains(&told), "{}", run.err);
    assert_eq!(info(Path::new(both))["complete"], false);
    let again = ["--no-exact", "--continue", path];
    let run = count(&[&again[..], &["--format", "json"]].concat(), Path::new(both), &[&capture]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["totals"]["complete"], false);
    assert_eq!(info(Path::new(both))["complete"], false);
}

/// Before anything is read, and not after the count.
#[test]
fn a_filter_whose_label_would_be_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    let expression = vec!["tcp"; 170].join(" or ");
    let run = count(&["--where", &expression], &path, &[&sample().0]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.sentence().contains("shorter --where"), "{}", run.err);
}

#[test]
fn a_line_that_is_no_question_is_named_and_the_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    count(&[], &path, &[&sample().0]).done();
    let question = b"203.0.113.1,203.0.113.2";
    let long = vec![b'7'; 3 << 20];
    let lines = [&question[..], b"\xff\xfe", &long, b"", question, &long].join(&b'\n');
    let run = feed(&["filter", "query", path.to_str().unwrap(), "-"], &lines);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.out, "203.0.113.1,203.0.113.2\tno\n".repeat(2));
    let said: Vec<&str> = run.err.lines().collect();
    assert_eq!(said.len(), 3, "{}", run.err);
    for (line, start) in said.iter().zip(["line 2: ", "line 3: ", "line 6: "]) {
        assert!(line.starts_with(&format!("flowsieve: {start}")) && line.len() < 200, "{line}");
    }
}

#[test]
fn answers_are_complete_if_all_questions_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    count(&[], &path, &[&sample().0]).done();
    let line = ["filter", "query", path.to_str().unwrap(), "--format", "json", "-"];
    for (lines, complete) in [("203.0.113.1,203.0.113.2", true), ("203.0.113.1", false)] {
        let run = feed(&line, lines.as_bytes());
        let document: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(
            (document["complete"].as_bool(), run.code),
            (Some(complete), Some(i32::from(!complete)))
        );
    }
}

/// Each of two counts that go on from a filter would replace what the other one added.
#[cfg(unix)]
#[test]
fn a_filter_that_changes_while_a_count_goes_on_from_it_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    let other = folder.path().join("other.fsieve");
    let name = path.to_str().unwrap();
    let (capture, bytes) = sample();
    for path in [&path, &other] {
        count(&[], path, &[&capture]).done();
    }
    let line = ["count", "--slice", "all", "-q", "--continue", name, "--save-filter", name];
    let mut child = start(&[&line[..], &["-"]].concat());
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&bytes[..3000]).unwrap();
    listening(&child);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let refused = flowsieve(&[&line[..], &[capture.to_str().unwrap()]].concat());
    assert_eq!(refused.code, Some(1));
    assert!(refused.sentence().contains("another command reads it"), "{}", refused.err);
    let united = flowsieve(&["filter", "union", name, other.to_str().unwrap(), "-o", name]);
    assert_eq!(united.code, Some(1), "{}", united.err);
    assert!(united.sentence().contains("another command reads it"), "{}", united.err);
    fs::rename(&other, &path).unwrap();
    let before = fs::read(&path).unwrap();
    pipe.write_all(&bytes[3000..]).unwrap();
    drop(pipe);
    let run = ended(child);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.sentence().contains("pairs.fsieve.partial"), "{}", run.err);
    assert!(fs::read(&path).unwrap() == before);
    // Nothing else is in its way now.
    flowsieve(&[&line[..], &["traces/netns-dns.pcap"]].concat()).done();
    assert!(fs::read(&path).unwrap() != before);
}

/// The file's head may be a lie, and what follows endless.
#[cfg(unix)]
#[test]
fn a_filter_from_a_pipe_takes_as_much_memory_as_its_parameters_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    count(&[], &path, &[&sample().0]).done();
    let whole = fs::read(&path).unwrap();
    let line = ["filter", "info", "/dev/stdin", "--format", "json"];
    let document: Value = serde_json::from_str(&feed(&line, &whole).done()).unwrap();
    assert_eq!(document["filters"][0]["shards"], 8);
    let cut = feed(&line, &whole[..whole.len() - 9]);
    assert_eq!(cut.code, Some(1));
    assert!(cut.sentence().contains(&(whole.len() - 9).to_string()), "{}", cut.err);
    let longer = feed(&line, &[&whole[..], b"\0"].concat());
    assert_eq!(longer.code, Some(1));
    longer.sentence();

    let sum = |bytes: &[u8]| {
        let mut checksum = flowsieve::hashing::Checksum::new();
        checksum.update(bytes);
        checksum.value().to_le_bytes()
    };
    let head =
        (44..whole.len() - 8).find(|&end| whole[end..end + 8] == sum(&whole[..end])).unwrap();
    let mut lie = whole;
    lie[16..24].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    let heads = [lie.clone(), [&lie[..head], &sum(&lie[..head]), &lie[head + 8..]].concat()];
    for head in heads {
        let mut child = program(&line)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let zeros = vec![0; 1 << 20];
        let mut pieces = std::iter::once(&head).chain(std::iter::repeat_n(&zeros, 64));
        let refused = pieces.any(|piece| stdin.write_all(piece).is_err());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(refused, "all of it was read: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn answers_are_the_same_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    let (capture, _) = sample();
    count(&[], &path, &[&capture]).done();
    let line = ["filter", "query", path.to_str().unwrap(), "203.0.113.1,203.0.113.2"];
    parquet_is_the_csv(&line);
    let csv = flowsieve(&[&line[..], &["--format", "csv"]].concat()).done();
    assert_eq!(csv, "question,answer\n\"203.0.113.1,203.0.113.2\",no\n");
    let json = flowsieve(&[&line[..], &["--format", "json"]].concat()).done();
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(fields(&document["answers"][0]), documented_set("**Filter: `answers`**", &[]));
    assert_eq!(document["answers"][0]["answer"], "no");
    let copy = folder.path().join("answers.txt");
    let file = [&line[..], &["-o", copy.to_str().unwrap()]].concat();
    assert_eq!(flowsieve(&file).done(), "");
    let written = fs::read_to_string(&copy).unwrap();
    assert_eq!(written, "203.0.113.1,203.0.113.2\tno\n");
}

#[test]
fn partial_questions_and_all_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, _) = sample();
    let [source, destination, protocol, from, to] = first_packet();
    let flow = [&*source, &destination, &protocol, &from, &to].join(",");
    for (options, questions) in [
        (
            vec!["--element", "flow", "--filter", "mdbf", "--shards", "3"],
            vec![
                (flow.clone(), "apart"),
                (format!("{source},*,*,*,*"), "yes"),
                ("203.0.113.9,*,*,*,*".into(), "no"),
            ],
        ),
        (
            vec!["--element", "flow", "--filter", "cmdbf"],
            vec![(flow, "yes"), (format!("{source},*,*,*,{to}"), "apart")],
        ),
        (
            vec!["--filter", "bfm", "--memory", "1MiB", "--shards", "2"],
            vec![
                (format!("{source},{destination}"), "yes"),
                (format!("*,{destination}"), "yes"),
                ("*,*".into(), "yes"),
            ],
        ),
        (
            vec!["--filter", "bfm", "--memory", "16MiB", "--undirected"],
            vec![
                (format!("{destination},{source}"), "yes"),
                (format!("{source},*"), "yes"),
                (format!("*,{source}"), "yes"),
                ("203.0.113.9,*".into(), "no"),
            ],
        ),
        (
            vec!["--element", "src", "--filter", "dleft"],
            vec![(source.clone(), "yes"), ("203.0.113.9".into(), "no")],
        ),
    ] {
        let path = folder.path().join("filter");
        count(&options, &path, &[&capture]).done();
        for (question, answer) in questions {
            let answers = ask(&path, &[&question]).done();
            assert_eq!(answers, format!("{question}\t{answer}\n"), "{options:?}");
        }
    }
}

#[test]
fn what_found_no_cell_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    let (capture, _) = sample();
    let told = |memory: &str| {
        let options = ["--filter", "dleft", "--memory", memory];
        count(&options, &path, &[&capture]).done();
        let told = info(&path);
        let number = |field: &str| told[field].as_u64().unwrap();
        assert!(number("memory_bytes") >= 16 * number("stashed"));
        [number("stashed"), number("given_up")]
    };
    assert_eq!(told("1MiB"), [0, 0]);
    // 128 cells; a stash of 64 elements; 4 buckets in the first subtable.
    assert_eq!(told("256B"), [64, 4]);
    let table = flowsieve(&["filter", "info", path.to_str().unwrap()]).done();
    assert!(table.contains("64 elements stashed, 4 buckets given up"));
    count(&[], &path, &[&capture]).done();
    assert!(info(&path)["stashed"].is_null());
}

#[test]
fn two_filters_are_intersected() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (_, pcap) = sample();
    let offsets = record_offsets(&pcap);
    let parts = [file("first.pcap"), file("second.pcap"), file("all.pcap")];
    // Packets in the middle are in both.
    for (part, range) in
        parts.iter().zip([24..offsets[5000], offsets[3000]..pcap.len(), 24..pcap.len()])
    {
        fs::write(part, [&pcap[..24], &pcap[range]].concat()).unwrap();
    }
    let [a, b, all] = ["a", "b", "all"].map(file);
    let exact = ["--filter", "dleft", "--memory", "1MiB"];
    let truth = |to: &Path, part: &Path| {
        count(&exact, to, &[part]).done();
        info(to)["estimate"].as_f64().unwrap()
    };
    let [one, other, either] =
        [(&a, &parts[0]), (&b, &parts[1]), (&all, &parts[2])].map(|(to, part)| truth(to, part));
    let line = ["filter", "intersect", a.to_str().unwrap(), b.to_str().unwrap()];
    for options in [&exact[..], &["--filter", "bloom", "--memory", "16KiB"], &["--memory", "64KiB"]]
    {
        count(options, &a, &[&parts[0]]).done();
        count(options, &b, &[&parts[1]]).done();
        let json = flowsieve(&[&line[..], &["--format", "json"]].concat()).done();
        let document: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["schema"], "flowsieve.filter-intersect/1");
        let rows = document["sets"].as_array().unwrap();
        for (row, (set, truth)) in rows.iter().zip([
            ("first", one),
            ("second", other),
            ("either", either),
            ("both", one + other - either),
        ]) {
            let number = |name: &str| row[name].as_f64().unwrap();
            assert_eq!(row["set"], set);
            let error = (number("estimate") - truth).abs();
            assert!(error < 4.0 * number("std_error") + 1.0, "{options:?} {row} {truth}");
            assert!(number("lower") <= number("estimate").ceil(), "{row}");
        }
    }
    assert!(flowsieve(&line).done().contains("both"));
    for options in [&["--filter", "mdbf"][..], &["--memory", "64"]] {
        count(options, &a, &[&parts[0]]).done();
        count(options, &b, &[&parts[1]]).done();
        let run = flowsieve(&line);
        assert_eq!(run.code, Some(1), "{options:?}");
        assert!(run.sentence().contains("--fpr"), "{}", run.err);
        // A structure without a count at any size gets none from more memory.
        assert_eq!(run.sentence().contains("more memory"), !options.contains(&"mdbf"));
    }
    count(&["--element", "flow", "--filter", "mdbf"], &b, &[&parts[1]]).done();
    assert!(flowsieve(&line).sentence().contains("the same kind and rule"));
}

/// A file that is replaced meanwhile is one of the two, not both. Who reads a pipe a second time
/// finds nothing in it.
#[cfg(unix)]
#[test]
fn a_filter_to_intersect_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, pipe] = ["a", "b", "pipe"].map(|name| folder.path().join(name));
    let (capture, _) = sample();
    count(&["--memory", "64KiB"], &a, &[&capture]).done();
    count(&["--memory", "64KiB"], &b, &[Path::new("traces/netns-dns.pcap")]).done();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let [a, b, pipe] = [&a, &b, &pipe].map(|path| path.to_str().unwrap());
    let files = flowsieve(&["filter", "intersect", a, b, "--format", "csv"]).done();
    for (read, line) in [(a, [pipe, b]), (b, [a, pipe])] {
        let child = start(&[&["filter", "intersect"][..], &line, &["--format", "csv"]].concat());
        fs::write(pipe, fs::read(read).unwrap()).unwrap();
        assert_eq!(ended(child).done(), files);
    }
}

#[test]
fn the_union_of_two_halves_is_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (whole, pcap) = sample();
    let middle = record_offsets(&pcap)[4000];
    let halves = [file("first.pcap"), file("second.pcap")];
    fs::write(&halves[0], &pcap[..middle]).unwrap();
    fs::write(&halves[1], [&pcap[..24], &pcap[middle..]].concat()).unwrap();
    let [a, b, all, both] = ["a", "b", "all", "both"].map(file);
    let unite = |from: &[&Path], to: &Path| {
        let mut line = vec!["filter", "union", "-o", to.to_str().unwrap()];
        line.extend(from.iter().map(|path| path.to_str().unwrap()));
        flowsieve(&line)
    };
    for filter in ["subset", "bloom", "mdbf", "counting", "cbfm", "dleft"] {
        let options = ["--filter", filter, "--memory", "16KiB"];
        count(&options, &a, &[&halves[0]]).done();
        count(&options, &b, &[&halves[1]]).done();
        count(&options, &all, &[&whole]).done();
        assert_eq!(unite(&[&a, &b], &both).done(), "");
        let (union, expected) = (info(&both), info(&all));
        for field in ["fill_ratio", "memory_bytes", "saturated", "overflows", "element"] {
            // Counters add up what the halves have in common, bits do not.
            let counts = ["counting", "dleft"].contains(&filter);
            if !counts || field == "fill_ratio" {
                assert_eq!(union[field], expected[field], "{filter} {field}");
            }
        }
        let number = |value: &Value| value.as_f64();
        if let (Some(estimate), Some(truth)) =
            (number(&union["estimate"]), number(&expected["estimate"]))
        {
            let error = number(&union["std_error"]).unwrap();
            assert!((estimate - truth).abs() < 5.0 * error + 5.0, "{filter}");
        }
    }
    // Only what was made alike is united, and what was there before stays.
    let before = fs::read(&both).unwrap();
    count(&["--seed", "1"], &b, &[&halves[1]]).done();
    for (options, word) in [
        (&["--seed", "1"][..], "seed"),
        (&["--memory", "16KiB"], "parameters"),
        (&["--shards", "4", "--memory", "128KiB"], "shards"),
        (&["--undirected"], "elements"),
        (&["--filter", "dleft"], "parameters"),
    ] {
        count(&[], &a, &[&halves[0]]).done();
        count(options, &b, &[&halves[1]]).done();
        let run = unite(&[&a, &b], &both);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert!(run.sentence().contains(word), "{}", run.err);
    }
    // Chains whose links are all full, as many of them as there may be.
    for (half, to) in halves.iter().zip([&a, &b]) {
        count(&["--filter", "scalable", "--memory", "1KiB"], to, &[half]).done();
    }
    let run = unite(&[&a, &b], &both);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.sentence().contains("at most 8 links"), "{}", run.err);
    assert_eq!(fs::read(&both).unwrap(), before);
    for (half, to) in halves.iter().zip([&a, &b]) {
        count(&["--filter", "scalable", "--memory", "1MiB"], to, &[half]).done();
    }
    assert_eq!(unite(&[&a, &b], &both).done(), "");
    // The links of both hold some elements twice, so only bounds are known.
    count(&["--filter", "scalable", "--memory", "1MiB"], &all, &[&whole]).done();
    let (union, expected) = (info(&both), info(&all));
    let value = |row: &Value, name: &str| row[name].as_f64().unwrap();
    assert!(union["estimate"].is_null() && union["std_error"].is_null());
    let estimate = value(&expected, "estimate");
    assert!(value(&union, "lower") <= estimate && estimate <= value(&union, "upper"), "{union}");
    // So it is with filters that watch a sample.
    let crowded = ["--element", "flow", "--memory", "64"];
    count(&crowded, &a, &[&halves[0]]).done();
    count(&crowded, &b, &[&halves[1]]).done();
    assert_eq!(unite(&[&a, &b], &both).done(), "");
    let union = info(&both);
    assert!(union["stage"].as_u64().unwrap() > 0 && union["estimate"].is_null(), "{union}");
    let table = flowsieve(&["filter", "info", both.to_str().unwrap()]).done();
    assert!(table.contains("at most one element in"), "{table}");
}

/// A count that goes on is one count over both captures, to the last digit; also when its filter
/// is crowded.
#[test]
fn a_count_goes_on_from_a_saved_filter() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (whole, pcap) = sample();
    let middle = record_offsets(&pcap)[4000];
    let halves = [file("first.pcap"), file("second.pcap")];
    fs::write(&halves[0], &pcap[..middle]).unwrap();
    fs::write(&halves[1], [&pcap[..24], &pcap[middle..]].concat()).unwrap();
    let [first, both, all] = ["first", "both", "all"].map(file);
    let go_on = |more: &[&str], capture: &Path| {
        let start = ["count", "-q", "--format", "json", "--continue", first.to_str().unwrap()];
        flowsieve(&[&start, more, &[capture.to_str().unwrap()]].concat())
    };
    for (options, threads) in [
        (&["--element", "flow", "--memory", "64"][..], "1"),
        (&["--element", "flow", "--memory", "2KiB"], "3"),
        (&[], "2"),
        (&["--filter", "bloom", "--memory", "1KiB", "--seed", "5"], "2"),
    ] {
        count(options, &first, &[&halves[0]]).done();
        count(options, &all, &[&whole]).done();
        let element = if options.contains(&"flow") { &["--element", "flow"][..] } else { &[] };
        let save =
            ["--slice", "all", "--threads", threads, "--save-filter", both.to_str().unwrap()];
        let report = go_on(&[&save, element].concat(), &halves[1]).done();
        let report: Value = serde_json::from_str(&report).unwrap();
        let (both, all) = (info(&both), info(&all));
        for field in ["estimate", "std_error", "lower", "upper", "fill_ratio", "stage"] {
            assert_eq!(both[field], all[field], "{options:?} {field}");
        }
        assert_eq!(report["totals"]["estimate"], all["estimate"], "{options:?}");
        assert!(report["totals"]["exact"].is_null());
    }
    // Nothing comes, so nothing is saved.
    let empty = file("empty.pcap");
    fs::write(&empty, &pcap[..24]).unwrap();
    count(&[], &first, &[&halves[0]]).done();
    for (options, words) in [
        (&[][..], "--slice all"),
        (&["--slice", "all", "--element", "flow"], "other elements"),
        (&["--slice", "all", "--undirected"], "other elements"),
        (&["--slice", "all", "--memory", "1MiB"], "cannot be used with"),
        (&["--slice", "all", "--want", "src", "--expect", "10"], "cannot be used with"),
    ] {
        let run = go_on(options, &halves[1]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(run.err.contains(words), "{}", run.err);
    }
    let before = fs::read(&both).unwrap();
    let run = go_on(&["--slice", "all", "--save-filter", both.to_str().unwrap()], &empty);
    assert_ne!(run.code, Some(0));
    assert!(run.err.contains("the saved filter stays as it is"), "{}", run.err);
    assert_eq!(fs::read(&both).unwrap(), before);
}

/// In every output: the word, and no upper bound; also of structures without an estimate, and of
/// combinations.
#[test]
fn a_full_filter_says_so_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.fsieve");
    let (capture, _) = sample();
    let names = "bloom bfm cbfm wcbfm cartesian mdbf cmdbf cmdbf-xor counting split-counting \
                 scalable dleft cuckoo";
    let wanted = ["--want", "all", "--want", "src", "--expect", "100"];
    let cases = names.split_whitespace().map(|name| (name, &[][..]));
    for (name, more) in cases.chain([("subset", &wanted[..])]) {
        let options = [&["--filter", name, "--memory", "64"], more].concat();
        let report = [&options[..], &["--format", "json"]].concat();
        let report: Value =
            serde_json::from_str(&count(&report, &path, &[&capture]).done()).unwrap();
        let slice = &report["slices"][0];
        assert!(slice["saturated"] == true && slice["upper"].is_null(), "{name} {slice}");
        let table = count(&options, &path, &[&capture]).done();
        assert!(table.contains(" full "), "{name}: {table}");
        let told = info(&path);
        assert!(told["full"] == true && told["upper"].is_null(), "{name}: {told}");
        let table = flowsieve(&["filter", "info", path.to_str().unwrap()]).done();
        assert!(table.contains("the filter is full"), "{name}: {table}");
        for stored in told["combinations"].as_array().unwrap() {
            assert!(stored["estimate"].is_null() || stored["upper"].is_null(), "{name} {told}");
        }
        if name == "subset" {
            assert!(table.contains(" full, k = "), "{table}");
        }
    }
    count(&[], &path, &[&capture]).done();
    assert_eq!(info(&path)["full"], false);
}

/// 64 bytes are one shard; most of the elements are not known, and nothing is denied.
#[test]
fn a_crowded_filter_says_which_elements_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.fsieve");
    let (capture, _) = sample();
    let options = ["--element", "flow", "--memory", "64", "--format", "json"];
    let report: Value = serde_json::from_str(&count(&options, &path, &[&capture]).done()).unwrap();
    assert_eq!(report["parameters"]["shards"], 1);
    assert_eq!(report["parameters"]["memory_bytes"], 64);
    let [lower, exact, upper] =
        ["lower", "exact", "upper"].map(|name| report["totals"][name].as_u64().unwrap());
    assert!(lower <= exact && exact <= upper, "{lower} {exact} {upper}");
    let flow = first_packet();
    let asked: Vec<String> = (0..64)
        .map(|port| format!("{},{},{},{},{}", flow[0], flow[1], flow[2], flow[3], 7_000 + port))
        .collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let answers = ask(&path, &asked).done();
    let unknown = answers.lines().filter(|line| line.ends_with("unknown")).count();
    assert!(unknown > 16, "{answers}");
    let known = ask(&path, &[&flow.join(",")]).done();
    assert!(!known.ends_with("no\n"), "{known}");
}

#[test]
fn what_is_no_saved_filter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, pcap) = sample();
    let path = folder.path().join("pairs.fsieve");
    count(&[], &path, &[&capture]).done();
    let bytes = fs::read(&path).unwrap();
    let wrong = folder.path().join("wrong");
    for (contents, word) in [
        (&pcap[..], "no saved filter"),
        (&[], "cut short"),
        (&bytes[..bytes.len() - 1], "cut short"),
    ] {
        fs::write(&wrong, contents).unwrap();
        for task in ["info", "query"] {
            let mut line = vec!["filter", task, wrong.to_str().unwrap()];
            line.extend((task == "query").then_some("1.1.1.1,2.2.2.2"));
            let run = flowsieve(&line);
            assert_eq!(run.code, Some(1));
            assert!(run.sentence().contains(word), "{}", run.err);
        }
    }
    for line in [
        &["filter", "info", "gone"][..],
        &["filter", "query", "gone", "1.1.1.1,2.2.2.2"],
        &["count", "--slice", "all", "--continue", "gone", capture.to_str().unwrap()],
    ] {
        let run = flowsieve(line);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{line:?}");
        assert!(run.sentence().contains("gone: there is no such file; check"), "{}", run.err);
    }
    for (values, word) in [
        (&["1.1.1.1"][..], "src,dst"),
        (&["1.1.1.1,2.2.2.2", "1.1.1.1,x"], "IP address"),
        (&["-", "-"], "once"),
    ] {
        let run = ask(&path, values);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{values:?}");
        assert!(run.sentence().contains(word), "{}", run.err);
    }
    // A filter is of everything, and none is written when the command line is wrong.
    let other = folder.path().join("other");
    for (options, word) in [
        (&["--slice", "1s"][..], "--slice all"),
        (&["--slice", "all", "--filter", "exact"], "--filter"),
        (&["--slice", "all", "-o", other.to_str().unwrap()], "--output"),
    ] {
        let line = ["count", "--save-filter", other.to_str().unwrap()];
        let run = flowsieve(&[&line, options, &[capture.to_str().unwrap()]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(run.sentence().contains(word), "{}", run.err);
        assert!(!other.exists());
    }
    for line in [
        &["filter", "--help"][..],
        &["filter", "info", "--help"],
        &["filter", "query", "--help"],
        &["filter", "union", "--help"],
        &["filter", "intersect", "--help"],
    ] {
        assert!(flowsieve(line).done().contains("Examples:"));
    }
}

/// Outputs that are open already are appended to.
#[cfg(target_os = "linux")]
#[test]
fn a_filter_that_is_read_is_not_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, _) = sample();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    for path in [&a, &b] {
        count(&[], path, &[&capture]).done();
    }
    let before = fs::read(&a).unwrap();
    for line in [
        "filter union a b -o - >> a",
        "filter union a b -o /dev/fd/3 3<> a",
        "count -q --slice all --no-exact --continue a --save-filter /dev/fd/3 CAPTURE 3<> a",
    ] {
        let line = line.replace("CAPTURE", capture.to_str().unwrap());
        let script = format!("exec {} {line}", env!("CARGO_BIN_EXE_flowsieve"));
        let mut shell = Command::new("sh");
        let run = shell.args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("is an input as well"), "{line}: {said}");
        assert!(fs::read(&a).unwrap() == before, "{line}");
    }
    let [a, b] = [&a, &b].map(|path| path.to_str().unwrap());
    flowsieve(&["filter", "union", a, b, "-o", a]).done();
}

/// It took all other results with it.
#[cfg(target_os = "linux")]
#[test]
fn a_filter_that_cannot_be_saved_leaves_the_other_results() {
    let (capture, _) = sample();
    let line = ["count", "--slice", "all", "--format", "csv", capture.to_str().unwrap()];
    let expected = flowsieve(&line).done();
    let run = flowsieve(&[&line[..], &["--save-filter", "/dev/full"]].concat());
    assert_eq!((run.code, &run.out), (Some(1), &expected));
    assert!(run.sentence().contains("cannot"), "{}", run.err);
}

/// "Is a directory (os error 21)" says nothing of what to do.
#[test]
fn a_directory_in_the_place_of_a_file_is_one_sentence_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("directory");
    fs::create_dir(&directory).unwrap();
    let [directory, file, output] = [directory, folder.path().join("f"), folder.path().join("o")]
        .map(|path| path.to_str().unwrap().to_owned());
    let capture = "traces/netns-dns.pcap";
    let bloom = ["count", "-q", "--slice", "all", "--filter", "bloom", "-o", "/dev/null"];
    flowsieve(&[&bloom[..], &["--save-filter", &file, capture]].concat()).done();
    let read: [&[&str]; 5] = [
        &["filter", "info", &directory],
        &["filter", "query", &directory, "10.0.0.1,10.0.0.2"],
        &["filter", "intersect", &file, &directory],
        &["filter", "union", "-o", &output, &file, &directory],
        &[
            "count",
            "-q",
            "--slice",
            "all",
            "--continue",
            &directory,
            "--save-filter",
            &output,
            capture,
        ],
    ];
    for words in read {
        let run = flowsieve(words);
        assert_eq!(run.code, Some(1), "{words:?}: {}", run.err);
        let told = run.sentence();
        assert!(
            told.contains("name the file that `flowsieve count --save-filter` wrote"),
            "{told}"
        );
    }
    let missing = format!("{directory}/new/");
    let run = flowsieve(&["count", "-q", "-o", &missing, capture]);
    assert!(run.sentence().contains("is that of a directory; name a file"), "{}", run.err);
    let written: [&[&str]; 7] = [
        &["count", "-q", "-o", &directory, capture],
        &["count", "-q", "--html", &directory, capture],
        &["count", "-q", "--summary", &directory, "-o", &output, capture],
        &["count", "-q", "--slice", "all", "--save-filter", &directory, capture],
        &["dedup", "-q", "-w", &directory, capture],
        &["generate", "-w", &directory],
        &["filter", "union", "-o", &directory, &file, &file],
    ];
    for words in written {
        let run = flowsieve(words);
        assert_eq!(run.code, Some(1), "{words:?}: {}", run.err);
        assert!(run.sentence().contains("it is a directory; name a file in it"), "{}", run.err);
    }
    let index = flowsieve(&["index", "stats", &file]);
    assert!(index.sentence().contains("name the directory that `flowsieve index build` made"));
}
