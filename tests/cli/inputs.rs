//! Tests ways to pass the same packets, and logs instead of packets.

use super::{Run, document, feed, flowsieve, program, record_offsets, sample, slices};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

#[test]
fn a_pipe_gives_the_answer_of_the_file() {
    let (path, bytes) = sample();
    let piped = feed(&["count", "--format", "csv", "-"], &bytes).done();
    assert_eq!(piped, slices(&[path]));
}

/// A pipe can be read only once, whatever its name, and is merged in the order of time although its
/// first time is not known in advance.
#[cfg(unix)]
#[test]
fn a_pipe_beside_a_file_takes_its_place_in_time() {
    let (path, bytes) = sample();
    let middle = record_offsets(&bytes)[5_500];
    let (early, late) = (bytes[..middle].to_vec(), [&bytes[..24], &bytes[middle..]].concat());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part.pcap");
    for (piped, stored) in [(&early, &late), (&late, &early)] {
        fs::write(&file, stored).unwrap();
        for align in ["epoch", "first"] {
            let expected = slices(&["--align", align, path.to_str().unwrap()]);
            for pipe in ["-", "/dev/stdin"] {
                let line = ["count", "--format", "csv", "--align", align, pipe];
                let line = [&line[..], &[file.to_str().unwrap()]].concat();
                assert_eq!(feed(&line, piped).done(), expected, "{line:?}");
            }
        }
    }
}

/// Files are read twice for packets out of order, a pipe is not; a name without a file is no pipe.
#[test]
fn a_missing_file_leaves_the_rows_of_the_others_as_they_are() {
    let (_, bytes) = sample();
    let places = record_offsets(&bytes);
    let folder = tempfile::tempdir().unwrap();
    let [shuffled, gone] =
        ["shuffled.pcap", "gone.pcap"].map(|name| folder.path().join(name).display().to_string());
    let order = (0..8_000).map(|number| number * 3_001 % 8_000);
    let records = order.flat_map(|number| &bytes[places[number]..places[number + 1]]);
    fs::write(&shuffled, bytes[..24].iter().chain(records).copied().collect::<Vec<u8>>()).unwrap();
    for line in [
        &["top", "--slice", "100ms"][..],
        &["count", "--slice", "2s", "--every", "500ms"],
        &["export", "--slice", "1s"],
        &["flows", "--idle", "500ms"],
        &["count", "--from", "+2s"],
    ] {
        let line = [line, &["--format", "csv"]].concat();
        let whole = flowsieve(&[&line[..], &[&shuffled]].concat());
        let beside = flowsieve(&[&line[..], &[&shuffled, &gone]].concat());
        assert_eq!((whole.code, beside.code), (Some(0), Some(1)), "{line:?}: {}", beside.err);
        assert_eq!(beside.out, whole.out, "{line:?}");
        assert!(beside.err.contains("gone.pcap: no such file"), "{}", beside.err);
    }
    let packets = fs::read(&shuffled).unwrap();
    for line in [&["top", "--slice", "100ms"][..], &["count", "--slice", "2s", "--every", "500ms"]]
    {
        let piped = feed(&[line, &["--format", "csv", "-"]].concat(), &packets).err;
        let said = "packets are in no slice, since they came too late; in a file";
        assert!(piped.contains(said), "{piped}");
    }
}

/// Their targets were missing from the result without a message.
#[cfg(unix)]
#[test]
fn links_that_are_not_followed_are_named() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let [day, elsewhere] = [captures.join("day"), folder.path().join("elsewhere")];
    for folder in [&day, &elsewhere] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::copy(sample().0, day.join("a.pcap")).unwrap();
    // Its target is read.
    symlink(&day, captures.join("latest")).unwrap();
    let count = || flowsieve(&["count", "--format", "csv", captures.to_str().unwrap()]);
    let expected = count().done();
    symlink(&elsewhere, captures.join("other")).unwrap();
    symlink("gone", captures.join("gone.pcap")).unwrap();
    let run = count();
    assert_eq!((run.code, run.out), (Some(1), expected));
    assert!(run.err.contains("other: this is a link to a directory"), "{}", run.err);
    assert!(run.err.contains("gone.pcap: "), "{}", run.err);
}

/// Runs the program as a user without the superuser's exemption from permissions.
#[cfg(unix)]
pub(super) fn bound(line: &[&str]) -> Option<Run> {
    use std::os::unix::{fs::MetadataExt, process::CommandExt};

    let mut program = program(line);
    if fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0) {
        program.uid(65_534).gid(65_534);
    }
    let run = program.output().ok()?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some(Run { code: run.status.code(), out: text(run.stdout), err: text(run.stderr) })
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_reached_are_named() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let permit = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(folder.path(), 0o755);
    let captures = folder.path().join("captures");
    let hidden = captures.join("hidden");
    fs::create_dir_all(&hidden).unwrap();
    fs::copy(sample().0, captures.join("a.pcap")).unwrap();
    fs::copy(sample().0, hidden.join("ring1")).unwrap();
    // The directory can be listed, but its files cannot be accessed.
    permit(&hidden, 0o644);
    let count = ["count", "--format", "csv", captures.to_str().unwrap()];
    let run = bound(&count);
    permit(&hidden, 0o755);
    match run {
        Some(run) => {
            assert_eq!(run.code, Some(1), "{}", run.err);
            assert!(run.err.contains("ring1: permission denied"), "{}", run.err);
        }
        None => eprintln!("skipped: no other user may run the program"),
    }
    fs::remove_dir_all(&hidden).unwrap();
    symlink("/not/mounted/ring2", captures.join("ring2")).unwrap();
    let run = flowsieve(&count);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("ring2: no such file"), "{}", run.err);
}

#[test]
fn what_interrupted_runs_left_is_no_input_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(sample().0, at("a.pcap")).unwrap();
    let count = ["count", "--format", "csv", folder.path().to_str().unwrap()];
    let expected = flowsieve(&count).done();
    for name in ["b.pcap.partial", "b.pcap.partial.2", ".flowsieve-1-abcdef.tmp", ".a.pcap.Ab12Cd"]
    {
        fs::copy(sample().0, at(name)).unwrap();
    }
    // Snapshots of a file system have all captures again.
    fs::create_dir_all(at(".snapshot/daily")).unwrap();
    fs::copy(sample().0, at(".snapshot/daily/a.pcap")).unwrap();
    let run = flowsieve(&count);
    assert_eq!((run.code, run.out), (Some(0), expected));
    assert!(
        run.err.contains("left out 4 files that are hidden or that interrupted runs left"),
        "{}",
        run.err
    );
    assert!(run.err.contains("left out 1 hidden directory, such as "), "{}", run.err);
    let partial = at("b.pcap.partial");
    assert_eq!(flowsieve(&["count", partial.to_str().unwrap()]).code, Some(0));
}

/// The user may have meant to read it.
#[cfg(unix)]
#[test]
fn a_pipe_in_a_directory_that_is_called_a_capture_is_left_out_with_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    fs::create_dir(&captures).unwrap();
    for name in ["live.pcap", "control"] {
        let made = std::process::Command::new("mkfifo").arg(captures.join(name)).status().unwrap();
        assert!(made.success());
    }
    let archive = folder.path().join("archive");
    let (named, archive) = (captures.to_str().unwrap(), archive.to_str().unwrap());
    let lines = [&["count", "--format", "csv", named][..], &["index", "build", archive, named]];
    for is_alone in [true, false] {
        if !is_alone {
            fs::copy(sample().0, captures.join("a.pcap")).unwrap();
            fs::copy(sample().0, captures.join(".a.pcap")).unwrap();
        }
        for line in lines {
            let run = flowsieve(line);
            assert_eq!(run.code, Some(i32::from(is_alone)), "{}", run.err);
            let said = "left out 1 pipe, socket or device, such as ";
            assert!(run.err.contains(said) && run.err.contains("live.pcap"), "{}", run.err);
            let is_hidden = run.err.contains("left out 1 file that is hidden");
            assert_eq!(is_hidden, !is_alone, "{}", run.err);
            assert!(!run.err.contains("control"), "{}", run.err);
        }
    }
}

type Encoder = fn(&[u8]) -> Vec<u8>;

const ENCODERS: [(&str, Encoder); 5] = [
    ("gzip", gzip),
    ("zstd", |data| zstd::encode_all(data, 1).unwrap()),
    ("xz", |data| {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }),
    ("bzip2", |data| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }),
    ("lz4", |data| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }),
];

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_recognised_whatever_the_name() {
    let (path, bytes) = sample();
    let expected = slices(&[path]);
    let folder = tempfile::tempdir().unwrap();
    for (name, encode) in ENCODERS {
        let encoded = encode(&bytes);
        let path = folder.path().join("capture");
        fs::write(&path, &encoded).unwrap();
        assert_eq!(slices(&[&path]), expected, "{name}");
        let (document, _) = document(&[&path]);
        assert_eq!(document["inputs"][0]["container"], format!("pcap in {name}"));
        let piped = feed(&["count", "--format", "csv", "-"], &encoded).done();
        assert_eq!(piped, expected, "{name} in a pipe");
    }
}

#[test]
fn several_files_and_directories_are_one_trace() {
    let (path, bytes) = sample();
    let expected = slices(&[path]);
    let offsets = record_offsets(&bytes);
    let piece =
        |from: usize, to: usize| [&bytes[..24], &bytes[offsets[from]..offsets[to]]].concat();
    let last = offsets.len() - 1;
    // The middle, the end and the beginning, in folders and beside files that are no captures.
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("b/c");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let files = [folder.path().join("a.pcap"), inner.join("late"), inner.join("z.pcap.gz")];
    fs::write(&files[0], piece(2_500, 6_001)).unwrap();
    fs::write(&files[1], piece(6_001, last)).unwrap();
    fs::write(&files[2], gzip(&piece(0, 2_500))).unwrap();
    fs::write(folder.path().join("notes.txt"), "Recorded on a Monday.\n").unwrap();
    fs::write(inner.join("nothing"), "").unwrap();
    assert_eq!(slices(&files), expected);
    assert_eq!(slices(&[folder.path()]), expected);
    assert_eq!(slices(&[folder.path().join("a.pcap"), folder.path().join("b")]), expected);
    let (document, run) = document(&[folder.path()]);
    run.done();
    let read: Vec<&str> = document["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["path"].as_str().unwrap())
        .collect();
    assert_eq!(read, files.each_ref().map(|path| path.to_str().unwrap()));
}

/// The name shows that it was meant to be a capture.
#[test]
fn files_in_directories_that_are_called_captures_and_are_none_are_told() {
    let (path, _) = sample();
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    fs::create_dir(&captures).unwrap();
    fs::copy(path, captures.join("whole.pcap")).unwrap();
    fs::write(captures.join("begun.PCAP"), "").unwrap();
    fs::write(captures.join("page.pcapng.gz"), gzip(b"<html>not found</html>")).unwrap();
    fs::write(captures.join("notes"), "").unwrap();
    fs::write(captures.join("notes.gz"), gzip(b"Recorded on a Monday.")).unwrap();
    fs::write(captures.join("other"), b"snoop\0\0\0\0\0\0\x02\0\0\0\x04").unwrap();
    let archive = folder.path().join("archive");
    let (captures, archive) = (captures.to_str().unwrap(), archive.to_str().unwrap());
    for line in [&["count", captures][..], &["index", "build", archive, captures]] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("begun.PCAP: it is empty"), "{}", run.err);
        assert!(run.err.contains("page.pcapng.gz: "), "{}", run.err);
        assert!(!run.err.contains("notes"), "{}", run.err);
        assert!(run.err.contains("left out ") && run.err.contains("editcap"), "{}", run.err);
    }
    let stats = flowsieve(&["index", "stats", archive]).done();
    assert!(stats.starts_with("captures         1 with "), "{stats}");
}

/// A directory that is not read is an input that was not read, in every format.
#[test]
fn a_directory_that_is_not_read_makes_results_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();
    let (path, _) = sample();
    let path = path.to_str().unwrap();
    let commands =
        ["count", "flows", "top", "dedup --dry-run", "compare", "export --element host-pair"];
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let run = |captures: &[&str]| {
            let run = flowsieve(&[&words[..], &["--format", "json"], captures].concat());
            let document: serde_json::Value = serde_json::from_str(&run.out).unwrap();
            (run, document)
        };
        let (whole, expected) = run(&[path]);
        assert_eq!(whole.code, Some(0), "{command}: {}", whole.err);
        let (run, document) = run(&[empty, path]);
        assert_eq!(run.code, Some(1), "{command}: {}", run.err);
        assert_eq!(run.err.matches("there is no capture in this directory").count(), 1);
        assert_eq!(expected["totals"]["complete"], true, "{command}");
        assert_eq!(document["totals"]["complete"], false, "{command}");
        assert_eq!(document["totals"]["packets"], expected["totals"]["packets"], "{command}");
        let inputs = document["inputs"].as_array().unwrap();
        assert_eq!(inputs.len(), 2, "{command}");
        assert_eq!(inputs[0]["path"], empty, "{command}");
        assert!(inputs[0]["error"].as_str().unwrap().contains("no capture"), "{command}");
        assert_eq!(inputs[1], expected["inputs"][0], "{command}");
    }
}

#[test]
fn a_directory_is_searched_for_the_format_that_is_named() {
    let mut record = [0_u8; 44];
    record[8] = 0x45;
    record[20..24].copy_from_slice(&[10, 0, 0, 1]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.tsh"), record.repeat(3)).unwrap();
    let other = "A text whose ninth byte is no IPv4 header.\n";
    fs::write(folder.path().join("notes.txt"), other).unwrap();
    let directory = folder.path().to_str().unwrap();
    let (document, run) = document(&["--input-format", "tsh", directory]);
    run.done();
    assert_eq!(document["inputs"].as_array().unwrap().len(), 1);
    assert_eq!(document["totals"]["packets"], 3);
}

/// Time, client, client port, server, protocol, and name (empty for a record without a query).
const RECORDS: [(&str, &str, u16, &str, &str, &str); 6] = [
    ("1.0", "10.0.0.1", 4000, "10.0.0.53", "udp", "a.example"),
    ("1.5", "10.0.0.1", 4001, "10.0.0.53", "udp", "A.Example"),
    ("2.0", "10.0.0.2", 4000, "10.0.0.53", "tcp", "b.example"),
    ("2.5", "10.0.0.2", 4000, "10.0.0.53", "tcp", "a.example"),
    ("2.7", "10.0.0.9", 4000, "10.0.0.53", "udp", ""),
    ("3.0", "2001:db8::1", 4000, "2001:db8::53", "udp", "b.example"),
];

/// Returns the records in Zeek's format with tabs and as JSON, and as CSV without protocol and
/// ports.
fn logs() -> [(&'static str, String); 3] {
    let mut tsv = "#separator \\x09\n#unset_field\t-\n#path\tdns\n\
        #fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\n"
        .to_owned();
    let mut json = String::new();
    let mut csv = "ts,src,dst,qname\n".to_owned();
    for (time, client, port, server, protocol, name) in RECORDS {
        let unset = if name.is_empty() { "-" } else { name };
        writeln!(tsv, "{time}\t{client}\t{port}\t{server}\t53\t{protocol}\t{unset}").unwrap();
        let query = match name {
            "" => String::new(),
            name => format!(r#","query":"{name}""#),
        };
        writeln!(
            json,
            r#"{{"ts":{time},"id.orig_h":"{client}","id.orig_p":{port},"id.resp_h":"{server}","id.resp_p":53,"proto":"{protocol}"{query}}}"#
        )
        .unwrap();
        writeln!(csv, "{time},{client},{server},{name}").unwrap();
    }
    [("zeek-dns-tsv", tsv), ("zeek-dns-json", json), ("dns-csv", csv)]
}

#[test]
fn dns_logs_are_counted_like_the_packets_they_tell_of() {
    let folder = tempfile::tempdir().unwrap();
    for (container, log) in logs() {
        let path = folder.path().join(container);
        fs::write(&path, log).unwrap();
        let path = path.to_str().unwrap();
        // CSV without ports has no flows.
        let flows = if container == "dns-csv" {
            (0, json!({"no_transport_in_log": 6}))
        } else {
            (5, json!({}))
        };
        for (element, (distinct, skipped)) in [
            ("dns", (4, json!({"dns_no_question": 1}))),
            ("host-pair", (4, json!({}))),
            ("src", (4, json!({}))),
            ("dst", (2, json!({}))),
            ("flow", flows),
        ] {
            let (document, run) = document(&["--slice", "all", "--element", element, path]);
            run.done();
            assert_eq!(document["inputs"][0]["container"], container);
            let totals = &document["totals"];
            assert_eq!(totals["packets"], 6, "{container}");
            assert_eq!(totals["exact"], distinct, "{container} {element}");
            assert_eq!(totals["skipped"], skipped, "{container} {element}");
        }
        // All records are queries.
        let queries = slices(&["--element", "dns", "--queries-only", path]);
        assert_eq!(queries, slices(&["--element", "dns", path]), "{container}");
    }
}
