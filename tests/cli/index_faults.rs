//! `flowsieve index` and signals, pipes, odd names, captures that change, and full disks.

use super::signals::{check_end, ended, listening, names_in, signal, start};
use super::{Run, flowsieve, program, repository};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PACKETS: usize = 12;

/// The generated capture cut into many small ones.
fn captures(folder: &Path) -> PathBuf {
    let bytes = fs::read(repository().join("traces/generated.pcap")).unwrap();
    let offsets = super::record_offsets(&bytes);
    let captures = folder.join("captures");
    fs::create_dir(&captures).unwrap();
    for (number, cut) in offsets.windows(PACKETS + 1).step_by(PACKETS).enumerate() {
        let piece = [&bytes[..24], &bytes[cut[0]..cut[PACKETS]]].concat();
        fs::write(captures.join(format!("{number:03}.pcap")), piece).unwrap();
    }
    captures
}

fn document(line: &[&str]) -> Value {
    serde_json::from_str(&flowsieve(line).done()).unwrap()
}

/// Returns the names in an index without the files of its segments, whose number must be that of
/// `index stats`.
fn names_of(archive: &Path) -> Vec<String> {
    let names = names_in(archive).into_iter();
    let (segments, others): (Vec<_>, Vec<_>) = names.partition(|name| name.ends_with(".segment"));
    let stats = document(&["index", "stats", "--json", archive.to_str().unwrap()]);
    assert_eq!(stats["segments"], segments.len());
    others
}

/// Returns the concatenated files that name the captures of an index.
fn texts_of(archive: &Path) -> String {
    let names = names_in(archive).into_iter();
    let segments = names.filter(|name| name.ends_with(".segment"));
    let texts = segments.map(|name| fs::read_to_string(archive.join(name)).unwrap());
    texts.collect()
}

/// Returns the number before these words.
fn number_before(text: &str, words: &str) -> u64 {
    let before = text.split(words).next().unwrap();
    before.split(' ').next_back().unwrap().parse().unwrap()
}

#[test]
fn a_signal_leaves_the_captures_that_are_done() {
    let folder = TempDir::new().unwrap();
    let captures = captures(folder.path());
    let all = names_in(&captures).len() as u64;
    let (archive, captures) = (folder.path().join("archive"), captures.to_str().unwrap());
    let index = archive.to_str().unwrap();
    let mut before = 0;
    for (command, name) in [("build", "INT"), ("add", "TERM"), ("add", "INT")] {
        let child = start(&["index", command, index, captures]);
        listening(&child);
        signal(&child, name);
        let run = ended(child);
        check_end(&run, name);
        let count = number_before(&run.err, " capture");
        let added = number_before(&run.err, " of them added now");
        assert_eq!(count, before + added, "{}", run.err);
        assert!(count < all, "it was done before the signal came");
        let verified = document(&["index", "verify", "--json", index]);
        assert_eq!(verified["schema"], "flowsieve.index-verify/1");
        assert_eq!(verified["captures"], count);
        assert_eq!(verified["whole"], true);
        assert_eq!(verified["problems"], Value::Array(Vec::new()));
        // There is nothing that the catalogue does not name.
        let kept = names_in(&archive.join("node"));
        let folders = kept.iter().filter(|name| !name.contains('.') && *name != "lock").count();
        assert_eq!(folders as u64, count);
        assert_eq!(names_of(&archive), ["catalog.json", "lock", "node"]);
        before = count;
    }
    assert_eq!(flowsieve(&["index", "add", "-q", index, captures]).code, Some(0));
    let stats = document(&["index", "stats", "--json", index]);
    assert_eq!(stats["captures"], all);
}

#[test]
fn a_signal_ends_dropping_between_two_captures() {
    let folder = TempDir::new().unwrap();
    let captures = captures(folder.path());
    let archive = folder.path().join("archive");
    let index = archive.to_str().unwrap();
    let text = captures.to_str().unwrap();
    assert_eq!(flowsieve(&["index", "build", "-q", index, text]).code, Some(0));
    let stats = || document(&["index", "stats", "--json", index])["captures"].as_u64();
    let all = stats().unwrap();
    let paths = fs::read_dir(&captures).unwrap();
    let paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    let mut line = vec!["index", "drop", index];
    // Paths of missing captures take time, too, and change nothing.
    let missing = captures.join("missing");
    line.extend(std::iter::repeat_n(missing.to_str().unwrap(), 20_000));
    line.extend(paths.iter().map(|path| path.to_str().unwrap()));
    let child = start(&line);
    listening_at_once(&child);
    signal(&child, "TERM");
    let run = ended(child);
    assert_eq!(run.code, Some(143), "{}", run.err);
    let last = run.err.lines().last().unwrap();
    assert!(last.contains("interrupted by SIGTERM"), "{last}");
    let dropped = number_before(last, " capture");
    assert_eq!(stats(), Some(all - dropped));
    assert!(dropped < all);
    assert_eq!(document(&["index", "verify", "--json", index])["whole"], true);
}

/// Like `listening`, but without a further wait.
fn listening_at_once(child: &std::process::Child) {
    for _ in 0..2000 {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if mask.unwrap_or(0) & 2 != 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_interrupted_search_has_the_answers_found_until_then() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let index = archive.to_str().unwrap();
    let capture = repository().join("traces/generated.pcap");
    let line = ["index", "build", "-q", "--region", "1s", index];
    let built = flowsieve(&[&line[..], &[capture.to_str().unwrap()]].concat());
    assert_eq!(built.code, Some(0), "{}", built.err);
    let line = ["index", "search", index, "--host", "0.0.0.0/0"];
    let json = [&line[..], &["--format", "json"]].concat();
    let whole = document(&json);
    let whole = whole["hits"].as_array().unwrap();
    // The answers are more than a pipe holds, so it waits for a reader.
    let child = start(&json);
    listening(&child);
    thread::sleep(Duration::from_millis(300));
    signal(&child, "INT");
    let run = ended(child);
    check_end(&run, "INT");
    let partial: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(partial["explain"]["interrupted"], true);
    let hits = partial["hits"].as_array().unwrap();
    assert!(!hits.is_empty() && hits.len() < whole.len());
    assert_eq!(hits[..], whole[..hits.len()]);
    // No result is written among the index's files.
    for (command, file) in [("stats", "catalog.json"), ("verify", "000000.segment")] {
        let inside = archive.join(file);
        let before = fs::read(&inside).ok();
        let run = flowsieve(&["index", command, index, "-o", inside.to_str().unwrap()]);
        assert_eq!(run.code, Some(2), "{command}: {}", run.err);
        assert!(run.err.contains("inside the directory of the index"), "{}", run.err);
        assert_eq!(fs::read(&inside).ok(), before, "{command}");
    }
    let inside = archive.join("catalog.json");
    let run = flowsieve(&["generate", "--packets", "10", "-w", inside.to_str().unwrap()]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    // There is no incomplete capture.
    let out = folder.path().join("out.pcapng");
    let child = start(&[&line[..], &["-w", out.to_str().unwrap()]].concat());
    listening(&child);
    thread::sleep(Duration::from_millis(300));
    signal(&child, "TERM");
    let run = ended(child);
    check_end(&run, "TERM");
    assert!(run.err.contains("no capture was written"), "{}", run.err);
    assert!(run.out.contains("interrupted: there was more to search"));
    assert_eq!(names_in(folder.path()), ["archive"]);
}

#[test]
fn an_interrupted_search_keeps_its_answers_as_partial() {
    let folder = TempDir::new().unwrap();
    let (archive, out) = (folder.path().join("archive"), folder.path().join("answers.csv"));
    let (index, named) = (archive.to_str().unwrap(), out.to_str().unwrap());
    let capture = repository().join("traces/generated.pcap");
    let line = ["index", "build", "-q", "--region", "1s", index, capture.to_str().unwrap()];
    assert_eq!(flowsieve(&line).code, Some(0));
    fs::write(&out, "mine").unwrap();
    let line = ["index", "search", index, "--host", "0.0.0.0/0", "--format", "csv", "-o", named];
    // The search may end before the signal arrives.
    for _ in 0..50 {
        let child = start(&line);
        listening_at_once(&child);
        signal(&child, "INT");
        let run = ended(child);
        if run.code == Some(0) {
            fs::write(&out, "mine").unwrap();
            continue;
        }
        check_end(&run, "INT");
        assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
        assert!(run.err.contains("answers.csv.partial"), "{}", run.err);
        let partial = fs::read_to_string(folder.path().join("answers.csv.partial")).unwrap();
        assert!(partial.starts_with("capture,"), "{partial}");
        return;
    }
    panic!("no search was interrupted");
}

fn ran(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A pipe cannot be read twice. It is refused before anything waits for it.
/// The only copy of the packets was replaced by an empty capture.
#[test]
fn a_search_that_can_read_nothing_replaces_no_result() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [capture, archive, node, packets, answers] =
        ["a.pcap", "archive", "node", "packets.pcap", "answers.csv"].map(at);
    fs::copy("traces/netns-dns.pcap", &capture).unwrap();
    let build = ["index", "build", "-q", "--nodes", &node, &archive, &capture];
    assert_eq!(flowsieve(&build).code, Some(0));
    let search = ["index", "search", &archive, "--host", "0.0.0.0/0", "-o", &answers];
    let search = [&search[..], &["-w", &packets]].concat();
    let run = flowsieve(&search);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let [before, answers_before] = [&packets, &answers].map(|path| fs::read(path).unwrap());
    fs::rename(&capture, at("moved")).unwrap();
    let run = flowsieve(&search);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("a.pcap: no such file"), "{}", run.err);
    assert!(fs::read(&packets).unwrap() == before, "there is no other copy");
    fs::rename(at("node/000000"), at("regions")).unwrap();
    let table = flowsieve(&[&search[..5], &["--explain"]].concat());
    let words = "incomplete: not all of the index could be read; nothing was found in the rest\n";
    assert!(table.out.starts_with(words), "{}", table.out);
    assert!(table.out.contains("0 opened, 0 in vain; observed FPR –"), "{}", table.out);
    fs::rename(at("regions"), at("node/000000")).unwrap();
    fs::rename(&node, at("away")).unwrap();
    let run = flowsieve(&search);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains(&node), "{}", run.err);
    assert!(fs::read(&packets).unwrap() == before, "nothing was searched");
    assert!(fs::read(&answers).unwrap() == answers_before, "nothing was searched");
}

#[test]
fn a_link_that_leads_nowhere_is_no_directory_of_an_index() {
    let folder = TempDir::new().unwrap();
    let link = folder.path().join("archive");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let run = flowsieve(&["index", "build", link.to_str().unwrap(), "traces/netns-dns.pcap"]);
    assert!(run.sentence().contains("this link leads nowhere"), "{}", run.err);
    assert!(link.is_symlink() && !folder.path().join("nowhere").exists());
}

#[test]
fn a_pipe_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let archive = folder.path().join("archive");
    let (index, named) = (archive.to_str().unwrap(), pipe.to_str().unwrap());
    // First the pipe has no writer, then its writer stalls.
    for stalled in [false, true] {
        let mut options = fs::File::options();
        let _writer = stalled.then(|| options.read(true).write(true).open(&pipe).unwrap());
        let run = ended(start(&["index", "build", index, named]));
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("can be read only once"), "{}", run.err);
        assert!(!archive.exists(), "there was nothing to index");
    }
    let capture = "traces/generated.pcap";
    for (command, captures) in [("build", 1), ("add", 1)] {
        let run = ended(start(&["index", command, "-q", index, named, capture]));
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.sentence().contains("write it to a file first"), "{}", run.err);
        let verified = document(&["index", "verify", "--json", index]);
        assert_eq!((&verified["captures"], &verified["whole"]), (&captures.into(), &true.into()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_are_not_unicode_are_indexed() {
    use std::os::unix::ffi::OsStrExt;
    let folder = TempDir::new().unwrap();
    let odd = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    let (first, second, plain) = (odd(b"caf\xe9.pcap"), odd(b"caf\xea.pcap"), odd(b"plain.pcap"));
    let captures = captures(folder.path());
    for (number, path) in [&first, &second, &plain].into_iter().enumerate() {
        fs::copy(captures.join(format!("{number:03}.pcap")), path).unwrap();
    }
    let (archive, node) = (odd(b"ind\xffex"), odd(b"nod\xfee"));
    let index = |command: &str, rest: &[&std::ffi::OsStr]| {
        ran(program(&["index", command]).arg(&archive).args(rest))
    };
    let all = [first.as_os_str(), second.as_os_str(), plain.as_os_str()];
    let nodes = ["-q".as_ref(), "--nodes".as_ref(), node.as_os_str()];
    let built = index("build", &[&nodes[..], &all].concat());
    assert_eq!((built.code, built.err.as_str()), (Some(0), ""));
    // Ordinary paths are written as they are, others so that they can be restored.
    let text = texts_of(&archive);
    assert!(text.contains(&format!("\"{}\"", plain.display())), "{text}");
    assert!(text.contains("caf\\u0000e9.pcap\"") && text.contains("caf\\u0000ea.pcap\""));
    let known = index("add", &all);
    assert!(known.err.contains("in the index already: 3 captures"), "{}", known.err);
    let verified: Value =
        serde_json::from_str(&index("verify", &["--json".as_ref()]).done()).unwrap();
    assert_eq!((&verified["captures"], &verified["whole"]), (&3.into(), &true.into()));
    let json = ["--captures".as_ref(), "--json".as_ref()];
    let stats: Value = serde_json::from_str(&index("stats", &json).done()).unwrap();
    assert_eq!(stats["captures"], 3);
    let packets = odd(b"out\xe9.pcap");
    for format in ["table", "csv", "json", "jsonl", "parquet"] {
        let answers = odd(b"answers\xe9");
        let rest = ["--host", "0.0.0.0/0", "--format", format].map(std::ffi::OsStr::new);
        let files = ["-o".as_ref(), answers.as_os_str(), "-w".as_ref(), packets.as_os_str()];
        let run = index("search", &[&rest[..], &files].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        let answers = fs::read(answers).unwrap();
        let name = "caf\u{fffd}.pcap".as_bytes();
        assert!(answers.windows(name.len()).any(|part| part == name), "{format}");
    }
    // Packets of all three captures; a few are IPv6.
    let written = fs::read(&packets).unwrap();
    assert!(super::record_offsets(&written).len() > 2 * PACKETS + 1);
    // An indexed capture is never overwritten, whatever its name.
    let rest = ["--host".as_ref(), "0.0.0.0/0".as_ref(), "-w".as_ref(), first.as_os_str()];
    assert_eq!(index("search", &rest).code, Some(2));
    let dropped = index("drop", &[first.as_os_str()]);
    assert!(dropped.err.contains("1 capture dropped"), "{}", dropped.err);
    let left = texts_of(&archive);
    assert!(!left.contains("u0000e9") && left.contains("u0000ea"));
    assert_eq!(index("verify", &[]).code, Some(0));
}

/// The content of a capture changes, but not its length and time.
#[test]
fn a_capture_that_changed_in_place_is_noticed() {
    let folder = TempDir::new().unwrap();
    let capture = folder.path().join("capture.pcap");
    fs::copy(repository().join("traces/generated.pcap"), &capture).unwrap();
    let (archive, out) = (folder.path().join("archive"), folder.path().join("out.pcap"));
    let (index, path) = (archive.to_str().unwrap(), capture.to_str().unwrap());
    assert_eq!(flowsieve(&["index", "build", "-q", index, path]).code, Some(0));
    let out = out.to_str().unwrap();
    let search = ["index", "search", index, "--host", "0.0.0.0/0", "-w", out];
    let search = [&search[..], &["-o", "/dev/null"]].concat();
    assert_eq!(flowsieve(&search).code, Some(0));
    let time = fs::metadata(&capture).unwrap().modified().unwrap();
    let mut bytes = fs::read(&capture).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&capture, &bytes).unwrap();
    let file = fs::File::options().write(true).open(&capture).unwrap();
    file.set_modified(time).unwrap();
    let run = flowsieve(&search);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let sentence = "capture.pcap: this capture has changed since it was indexed";
    assert!(run.err.contains(sentence), "{}", run.err);
    bytes[last] ^= 1;
    fs::write(&capture, &bytes).unwrap();
    assert_eq!(flowsieve(&search).code, Some(0), "it is what was indexed again");
}

/// Returns the number of captures of an index, and the hits of a search.
fn holds(index: &str) -> (u64, Value) {
    let verified = document(&["index", "verify", "--json", index]);
    assert_eq!(verified["whole"], true, "{verified}");
    let search = ["index", "search", index, "--host", "0.0.0.0/0"];
    let found = flowsieve(&[&search[..], &["--format", "json"]].concat());
    // An index without captures has no answer.
    assert!(matches!(found.code, Some(0 | 1)) && found.err.is_empty(), "{}", found.err);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    (verified["captures"].as_u64().unwrap(), found["hits"].clone())
}

/// A limit of the file size simulates a full disk at any place of a writer.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_last_commit() {
    const LATER: usize = 60;
    let folder = TempDir::new().unwrap();
    let captures = captures(folder.path());
    let capture = repository().join("traces/generated.pcap");
    let limited = |blocks: u64, command: &str, index: &Path, capture: &Path| {
        let script = format!("ulimit -f {blocks}; exec \"$@\"");
        let program = env!("CARGO_BIN_EXE_flowsieve");
        let line = ["-c", &script, "sh", program, "index", command, "-q"];
        ran(Command::new("sh").args(line).arg(index).arg(capture))
    };
    // Many small captures make a large segment, so that each kind of file reaches the limit.
    let later = folder.path().join("later");
    fs::create_dir(&later).unwrap();
    let names = names_in(&captures);
    for name in &names[..LATER] {
        fs::rename(captures.join(name), later.join(name)).unwrap();
    }
    for name in &names[2 * LATER..] {
        fs::remove_file(captures.join(name)).unwrap();
    }
    let made = folder.path().join("made");
    let index = made.to_str().unwrap();
    let line = ["index", "build", "-q", index, captures.to_str().unwrap()];
    assert_eq!(flowsieve(&line).code, Some(0));
    let before = holds(index);
    let mut places = std::collections::BTreeSet::new();
    for (capture, count) in [(&later, LATER as u64), (&capture, 1)] {
        let mut blocks = 0;
        loop {
            let copy = folder.path().join("copy");
            let _ = fs::remove_dir_all(&copy);
            let copied = Command::new("cp").arg("-r").args([&made, &copy]).status();
            assert!(copied.unwrap().success());
            let run = limited(blocks, "add", &copy, capture);
            let archive = copy.to_str().unwrap();
            if run.code == Some(0) {
                assert_eq!(holds(archive).0, before.0 + count);
                break;
            }
            assert_eq!(run.code, Some(1), "{blocks}: {}", run.err);
            let sentence = run.sentence();
            assert!(sentence.contains("File too large"), "{sentence}");
            assert_eq!(holds(archive), before, "{blocks}");
            assert_eq!(names_of(&copy), ["catalog.json", "lock", "node"]);
            let name = sentence.split(": ").next().unwrap();
            if places.insert(name.rsplit('.').next().unwrap().to_owned()) {
                // Without the limit it continues.
                let path = capture.to_str().unwrap();
                let again = flowsieve(&["index", "add", "-q", archive, path]);
                assert_eq!((again.code, holds(archive).0), (Some(0), before.0 + count));
            }
            blocks += 1 + blocks / 2;
        }
    }
    let some = ["filter", "parquet", "segment"];
    assert!(some.iter().all(|place| places.contains(*place)), "{places:?}");
    assert_eq!(names_of(&made), ["catalog.json", "lock", "node"]);
    // A new index is in the state of its first, empty commit, or does not exist.
    for blocks in [0, 1, 8, 32] {
        let archive = folder.path().join(format!("build-{blocks}"));
        let run = limited(blocks, "build", &archive, &capture);
        assert_eq!(run.code, Some(1), "{blocks}: {}", run.err);
        run.sentence();
        let path = archive.to_str().unwrap();
        let command = if archive.join("catalog.json").exists() {
            assert_eq!(holds(path), (0, Value::Array(Vec::new())));
            "add"
        } else {
            "build"
        };
        let again = flowsieve(&["index", command, "-q", path, capture.to_str().unwrap()]);
        assert_eq!((again.code, holds(path).0), (Some(0), 1), "{}", again.err);
    }
}
