//! `flowsieve index` and the folders, files and captures of others.

use super::signals::{ended, listening, names_in, signal, start};
use super::{Run, flowsieve, repository};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Runs `flowsieve index COMMAND` with these words.
fn index(command: &str, words: &[&Path]) -> Run {
    let words = words.iter().map(|path| path.to_str().unwrap());
    flowsieve(&["index", command].into_iter().chain(words).collect::<Vec<_>>())
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

/// A folder with two captures and an index `A` of them, with one node outside it.
fn built() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    for name in ["netns-dns.pcap", "netns-mirror.pcap"] {
        fs::copy(repository().join("traces").join(name), root.join(name)).unwrap();
    }
    let [node, dns, mirror] = ["n1", "netns-dns.pcap", "netns-mirror.pcap"].map(|n| root.join(n));
    let words = [&root.join("A"), Path::new("-q"), Path::new("--nodes"), &node, &dns, &mirror];
    let run = index("build", &words);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    (folder, root)
}

fn is_whole(archive: &Path) -> bool {
    let run = index("verify", &[archive, Path::new("--json")]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    document["whole"].as_bool().unwrap()
}

#[test]
fn dropping_from_a_copy_does_not_destroy_the_original() {
    let (_folder, root) = built();
    let [a, b, node] = ["A", "B", "n1"].map(|name| root.join(name));
    let capture = root.join("netns-dns.pcap");
    copy(&a, &b);
    for (command, words) in
        [("drop", &[&*b, &capture][..]), ("add", &[&*b, &capture]), ("repair", &[&*b])]
    {
        let run = index(command, words);
        assert_eq!(run.code, Some(1), "{}", run.err);
        let told = run.sentence();
        assert!(told.contains(&node.display().to_string()), "{told}");
        assert!(told.contains("index adopt") && told.contains("copy the nodes too"), "{told}");
    }
    assert!(is_whole(&a) && !is_whole(&b));
    let run = index("adopt", &[&b]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.sentence().contains("--nodes"), "{}", run.err);
    // As it is told.
    copy(&node, &root.join("n2"));
    let run = index("adopt", &[&b, Path::new("--nodes"), &root.join("n2")]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "1 node belongs to this index\n"));
    assert_eq!(index("drop", &[&b, &capture]).code, Some(0));
    assert!(is_whole(&a) && is_whole(&b));
}

/// Puts another text into the catalogue, with the right checksum.
fn lie(archive: &Path, change: impl Fn(&str) -> String) {
    let path = archive.join("catalog.json");
    let text = fs::read_to_string(&path).unwrap();
    let (_, inner) = text.split_once("\"catalog\":").unwrap();
    let inner = change(inner.trim_end().strip_suffix('}').unwrap());
    let mut sum = flowsieve::hashing::Checksum::new();
    sum.update(inner.as_bytes());
    let sum = sum.value();
    let text =
        format!("{{\"schema\":\"flowsieve.index/6\",\"checksum\":{sum},\"catalog\":{inner}}}\n");
    fs::write(&path, text).unwrap();
}

/// A file of which most is a hole takes no room on the disk, and ended the program.
#[cfg(target_os = "linux")]
#[test]
fn a_filter_of_a_tebibyte_is_refused_in_a_sentence() {
    let (_folder, root) = built();
    let a = root.join("A");
    let filter = find(&root.join("n1"), ".filter").unwrap();
    let file = fs::File::options().write(true).open(&filter).unwrap();
    let before = format!("\"bytes\":{},", file.metadata().unwrap().len());
    if file.set_len(1 << 40).is_err() {
        println!("this file system has no such files");
        return;
    }
    lie(&a, |text| text.replace(&before, &format!("\"bytes\":{},", 1_u64 << 40)));
    for words in ["search A --host 10.0.0.2", "verify A", "stats A"] {
        let line = format!("ulimit -v 1000000; exec \"$0\" index {words}");
        let mut command = Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_flowsieve")]).current_dir(&root);
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {told}");
        assert!(
            told.contains("bytes of memory, which the system does not give"),
            "{words}: {told}"
        );
    }
}

#[test]
fn photos_are_not_deleted() {
    let (_folder, root) = built();
    let (a, photos) = (root.join("A"), root.join("photos"));
    fs::create_dir_all(photos.join("000042")).unwrap();
    fs::write(photos.join("000042/holiday.jpg"), "mine").unwrap();
    fs::write(photos.join("20240131"), "mine").unwrap();
    let node = root.join("n1").display().to_string();
    lie(&a, |text| text.replace(&node, &photos.display().to_string()));
    let run = index("add", &[&a, &repository().join("traces/generated.pcap")]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("no mark of the index"), "{}", run.err);
    assert!(!is_whole(&a));
    assert_eq!(names_in(&photos), ["000042", "20240131"]);
    assert_eq!(names_in(&photos.join("000042")), ["holiday.jpg"]);
}

/// They were left out without a word.
#[test]
fn captures_inside_an_index_are_named_and_not_indexed() {
    let (_folder, root) = built();
    let a = root.join("A");
    fs::create_dir(a.join("captures")).unwrap();
    let capture = a.join("captures/new.pcap");
    fs::copy(repository().join("traces/generated.pcap"), &capture).unwrap();
    fs::create_dir(root.join("n1/captures")).unwrap();
    fs::copy(&capture, root.join("n1/captures/new.pcap")).unwrap();
    for (named, why) in [
        (capture, "this is in the directory of an index"),
        (a.join("captures"), "this is an index of captures"),
        (root.join("n1/captures"), "this is in the directory of an index"),
    ] {
        let run = index("add", &[&a, &named]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains(&format!("{}: {why}", named.display())), "{}", run.err);
    }
    // A path through the index may lead to a folder that is none of it.
    fs::create_dir(root.join("plain")).unwrap();
    fs::copy(a.join("captures/new.pcap"), root.join("plain/new.pcap")).unwrap();
    let run = flowsieve(&["count", "-q", a.join("../plain").to_str().unwrap()]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    // Files of the index are left out of a folder around it.
    let run = index("add", &[Path::new("-q"), &a, &root]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(is_whole(&a));
}

/// A folder that an index left its mark in was passed over without a word.
#[test]
fn captures_in_a_folder_of_another_index_are_named() {
    let (_folder, root) = built();
    let [a, disk, out, new] = ["A", "n1", "out", "new"].map(|name| root.join(name));
    fs::remove_dir_all(&a).unwrap();
    fs::create_dir(&out).unwrap();
    fs::rename(root.join("netns-dns.pcap"), disk.join("one.pcap")).unwrap();
    fs::rename(disk, out.join("disk")).unwrap();
    fs::rename(root.join("netns-mirror.pcap"), out.join("other.pcap")).unwrap();
    let run = index("build", &[&new, &out]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let told = format!("{}: this is in the directory of an index", out.join("disk").display());
    assert_eq!(run.err.matches(&told).count(), 1, "{}", run.err);
    assert!(run.err.contains("1 capture indexed"), "{}", run.err);
    // So are captures in the directory of the other index itself.
    let inside = new.join("mine");
    fs::create_dir(&inside).unwrap();
    fs::copy(out.join("other.pcap"), inside.join("copy.pcap")).unwrap();
    let run = index("build", &[&root.join("newer"), &root]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let told = format!("{}: this is in the directory of an index", inside.display());
    assert_eq!(run.err.matches(&told).count(), 1, "{}", run.err);
    // Captures there are known by content, too; files of the index are none.
    fs::copy(out.join("other.pcap"), inside.join("copy.pcap1")).unwrap();
    let run = flowsieve(&["count", "--slice", "all", "--format", "json", root.to_str().unwrap()]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let inputs = document["inputs"].as_array().unwrap().iter();
    let in_indexes = inputs.filter(|input| input["path"].as_str().unwrap().contains("/new/"));
    assert_eq!(in_indexes.count(), 2, "{}", run.out);
    fs::remove_dir_all(&inside).unwrap();
    // In the index itself this is a remark.
    fs::create_dir(new.join("node/mine")).unwrap();
    fs::copy(out.join("other.pcap"), new.join("node/mine/copy.pcap")).unwrap();
    let run = index("add", &[&new, &new.join("node")]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    fs::rename(new.join("node"), root.join("n2")).unwrap();
    assert_eq!(index("adopt", &[&new, Path::new("--nodes"), &root.join("n2")]).code, Some(0));
    fs::rename(&out, root.join("elsewhere")).unwrap();
    let run = index("add", &[&new, &root, &root.join("elsewhere/other.pcap")]);
    assert!(run.err.contains("n2/mine: this is in the directory of an index"), "{}", run.err);
}

/// It replaced what an earlier search had written by a capture without packets.
#[test]
fn a_search_that_can_read_nothing_replaces_no_result() {
    let (_folder, root) = built();
    let [a, node, away, out, answers] =
        ["A", "n1", "away", "out.pcapng", "answers.csv"].map(|name| root.join(name));
    let files = [Path::new("-w"), &out, Path::new("-o"), &answers];
    let search = || {
        index("search", &[&[&*a, Path::new("--host"), Path::new("0.0.0.0/0")], &files[..]].concat())
    };
    let names = ["netns-dns.pcap", "netns-mirror.pcap"];
    let run = search();
    assert_eq!(run.code, Some(0), "{}", run.err);
    let kept = || [&out, &answers].map(|path| fs::read(path).unwrap());
    let before = kept();
    // The disk of the captures is not mounted.
    fs::create_dir(&away).unwrap();
    for name in &names {
        fs::rename(root.join(name), away.join(name)).unwrap();
    }
    let run = search();
    assert_eq!(run.code, Some(1), "{}", run.err);
    let told = "out.pcapng: no packets were written to this file";
    assert!(run.err.contains(told) && kept() == before, "{}", run.err);
    fs::remove_file(&out).unwrap();
    assert!(search().code == Some(1) && !out.exists());
    fs::write(&out, &before[0]).unwrap();
    for name in &names {
        fs::rename(away.join(name), root.join(name)).unwrap();
    }
    // That of the node is not.
    fs::rename(&node, away.join("n1")).unwrap();
    let run = search();
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    assert!(run.sentence().contains("index adopt") && kept() == before, "{}", run.err);
    fs::rename(away.join("n1"), &node).unwrap();
    // It is, and nothing in it can be read.
    while let Some(records) = find(&node, ".records.parquet") {
        fs::remove_file(records).unwrap();
    }
    let run = search();
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains(told) && kept() == before, "{}", run.err);
    assert!(run.err.contains("answers.csv: not written"), "{}", run.err);
    // Its mark alone is there.
    for entry in fs::read_dir(&node).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            fs::remove_dir_all(entry).unwrap();
        } else if !entry.ends_with("node.json") {
            fs::remove_file(entry).unwrap();
        }
    }
    let run = search();
    assert!(run.code == Some(1) && kept() == before, "{}", run.err);
}

/// Its only copy was replaced.
#[test]
fn a_capture_that_was_renamed_is_replaced_by_no_result() {
    let (_folder, root) = built();
    let [a, capture, renamed] =
        ["A", "netns-dns.pcap", "renamed.pcapng"].map(|name| root.join(name));
    fs::rename(&capture, &renamed).unwrap();
    let before = fs::read(&renamed).unwrap();
    let asked = ["--host", "0.0.0.0/0", "-o"].map(Path::new);
    let null = Path::new("/dev/null");
    for files in [&[&*renamed][..], &[null, Path::new("-w"), &renamed]] {
        let run = index("search", &[&[&*a], &asked[..], files].concat());
        assert_eq!(run.code, Some(2), "{}", run.err);
        let told = format!("is the capture that was indexed as {}", capture.display());
        assert!(run.sentence().contains(&told), "{}", run.err);
        assert!(fs::read(&renamed).unwrap() == before);
    }
    let mut search = Command::new(env!("CARGO_BIN_EXE_flowsieve"));
    search.args(["index", "search", a.to_str().unwrap(), "--host", "0.0.0.0/0"]);
    let file = fs::File::options().append(true).open(&renamed).unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(search.stdout(file).status().unwrap().code(), Some(2));
        assert!(fs::read(&renamed).unwrap() == before);
    }
    // Another file that is as long has its name.
    fs::write(&capture, vec![0; before.len()]).unwrap();
    let run = index("search", &[&[&*a], &asked[..], &[&renamed]].concat());
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(fs::read(&renamed).unwrap() == before);
    // A name that is no capture's may still promise something else.
    let page = renamed.with_extension("html");
    let run = index("search", &[&[&*a], &asked[..], &[&page]].concat());
    assert!(run.code == Some(2) && run.err.contains("cannot be written as .html"), "{}", run.err);
    // A copy may be.
    fs::copy(&renamed, &capture).unwrap();
    let run = index("search", &[&[&*a], &asked[..], &[null, Path::new("-w"), &renamed]].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
}

/// All answers came twice.
#[test]
fn a_capture_that_was_compressed_takes_the_place_of_its_plain_file() {
    let (_folder, root) = built();
    let [a, plain, packed, out] =
        ["A", "netns-dns.pcap", "netns-dns.pcap.gz", "out.pcapng"].map(|name| root.join(name));
    let everything = [&*a, Path::new("--host"), Path::new("0.0.0.0/0")];
    let hits = || index("search", &everything).out.replace(".pcap.gz", ".pcap");
    let before = hits();
    let bytes = fs::read(&plain).unwrap();
    // Other bytes under that name are another capture, and so is one beside the plain file.
    for (is_gone, content, is_replaced) in
        [(false, &bytes[..], false), (true, &bytes[..bytes.len() - 1], false), (true, &bytes, true)]
    {
        fs::write(&packed, super::inputs::gzip(content)).unwrap();
        if is_gone {
            let _ = fs::remove_file(&plain);
        }
        index("add", &[&a, &packed]);
        assert_eq!(hits() == before, is_replaced, "{is_gone}");
    }
    assert!(is_whole(&a));
    let run = index("search", &[&everything[..], &[Path::new("-w"), &out]].concat());
    assert!(run.code == Some(0) && out.exists(), "{}", run.err);
}

/// The first node deleted files of the second when it gave up a capture.
#[test]
fn no_node_is_inside_another_one() {
    let (_folder, root) = built();
    let [a, b, capture] = ["A", "B", "netns-dns.pcap"].map(|name| root.join(name));
    for (one, other) in [("k", "k/000002"), ("k/sub", "k"), ("k", "k/../k/sub")] {
        let nodes = [one, other].map(|name| root.join(name).display().to_string()).join(",");
        let run = index("build", &[&b, Path::new("--nodes"), Path::new(&nodes), &capture]);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.sentence().contains("one of these folders is inside the other"), "{}", run.err);
        assert!(!b.exists() && !root.join("k").exists());
    }
    // Nor is one that was moved.
    let other = root.join("on");
    let run = index("build", &[&b, Path::new("-q"), Path::new("--nodes"), &other, &capture]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    fs::rename(root.join("n1"), other.join("000007")).unwrap();
    let run = index("adopt", &[&a, Path::new("--nodes"), &other.join("000007")]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.sentence().contains("part of the index in"), "{}", run.err);
}

/// The shell opens the file, and results were appended to it.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_goes_to_no_file_of_a_node() {
    let (_folder, root) = built();
    let (a, node) = (root.join("A"), root.join("n1"));
    let inside = [".filter", ".filters", ".records.parquet", "node.json"];
    let inside = inside.map(|ending| find(&node, ending).unwrap());
    let elsewhere = root.join("elsewhere");
    fs::hard_link(&inside[2], &elsewhere).unwrap();
    let new = [node.join("new.txt"), a.join("new.txt"), elsewhere];
    for path in inside.into_iter().chain(new) {
        let file = fs::File::options().create(true).append(true).open(&path).unwrap();
        let before = fs::read(&path).unwrap();
        for words in ["stats A", "verify A", "search A --host 10.0.0.2"] {
            let words = ["index"].into_iter().chain(words.split(' '));
            let mut command = Command::new(env!("CARGO_BIN_EXE_flowsieve"));
            let command = command.args(words).current_dir(&root);
            let output = command.stdout(file.try_clone().unwrap()).output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{}: {told}", path.display());
            assert!(fs::read(&path).unwrap() == before, "{}", path.display());
        }
    }
    assert!(is_whole(&a));
}

/// All that the index had of it was exchanged for a part of what it is now.
#[test]
fn a_part_of_a_capture_that_grew_takes_the_place_of_nothing() {
    let folder = TempDir::new().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let [archive, capture] = ["A", "c.pcap"].map(|name| root.join(name));
    let bytes = fs::read(repository().join("traces/netns-dns.pcap")).unwrap();
    let cut = super::record_offsets(&bytes)[40];
    fs::write(&capture, &bytes[..cut]).unwrap();
    assert_eq!(index("build", &[&archive, Path::new("-q"), &capture]).code, Some(0));
    let search = ["--host", "0.0.0.0/0", "--format", "csv"].map(Path::new);
    let found = || index("search", &[&[&*archive], &search[..]].concat()).out;
    let before = found();
    fs::write(&capture, &bytes).unwrap();
    let run = index("add", &[&archive, &capture, Path::new("--where"), Path::new("port 9")]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("the index keeps what it had of it"), "{}", run.err);
    assert_eq!(found(), before);
    let run = index("add", &[&archive, &capture]);
    assert!(run.err.contains("1 capture indexed"), "{}", run.err);
    assert!(found().lines().count() > before.lines().count());
}

/// A pipe in the place of a capture was waited for, and the first signal did not end that.
#[test]
fn a_search_does_not_wait_for_a_pipe() {
    let (_folder, root) = built();
    let capture = root.join("netns-dns.pcap");
    fs::remove_file(&capture).unwrap();
    assert!(Command::new("mkfifo").arg(&capture).status().unwrap().success());
    let (a, out) = (root.join("A"), root.join("out.pcap"));
    let [a, out] = [&a, &out].map(|path| path.to_str().unwrap());
    let child = start(&["index", "search", a, "--host", "0.0.0.0/0", "-w", out, "-o", "/dev/null"]);
    let run = ended(child);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("netns-dns.pcap: this was a capture"), "{}", run.err);
    assert!(run.err.contains(" packets written to "), "{}", run.err);
}

/// The one file below a folder whose name ends so.
fn find(folder: &Path, ending: &str) -> Option<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().find_map(|path| {
        if path.is_dir() {
            find(&path, ending)
        } else {
            path.to_string_lossy().ends_with(ending).then_some(path)
        }
    })
}

#[test]
fn damage_is_named_by_its_capture_and_repaired() {
    let (_folder, root) = built();
    let (a, node) = (root.join("A"), root.join("n1"));
    let search = ["--host", "0.0.0.0/0", "--format", "csv"].map(Path::new);
    let search = [&[&*a], &search[..]].concat();
    let expected = index("search", &search).done();
    let of_node = [".records.parquet", ".lists.parquet", ".filter", ".filters", ".segment"];
    let files = of_node.map(|ending| (&node, ending)).into_iter().chain([(&a, ".segment")]);
    for (place, ending) in files {
        for gone in [false, true] {
            let path = find(place, ending).unwrap();
            if gone {
                fs::remove_file(&path).unwrap();
            } else {
                let mut bytes = fs::read(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(&path, bytes).unwrap();
            }
            let repair = format!("`flowsieve index repair {}`", a.display());
            let filters = ending.starts_with(".filter") || ending == ".segment";
            let belongs = if filters { " and 1 more" } else { "netns-" };
            // A quotient filter is read in part, so a search need not see the damage, and the copy of
            // a segment is not read.
            let is_seen = ending != ".filter" && (place, ending) != (&node, ".segment");
            let said = [("verify", &[&*a][..], true), ("search", &search, is_seen)];
            for (command, words, always) in said {
                let run = index(command, words);
                if !always && run.code == Some(0) {
                    continue;
                }
                assert_eq!(run.code, Some(1));
                let all = |part: &str| run.err.lines().all(|line| line.contains(part));
                assert!(all(&repair) && all("it belongs to ") && all(belongs), "{}", run.err);
            }
            let run = index("repair", &[&a]);
            assert_eq!(run.code, Some(0), "{}", run.err);
            let told = if filters {
                "0 captures indexed again; filters of 1 segment made again"
            } else {
                "1 capture indexed again; filters of 0 segments made again"
            };
            assert!(run.err.contains(told), "{}", run.err);
            assert!(is_whole(&a), "{ending}");
            let mut lines: Vec<String> =
                index("search", &search).done().lines().map(str::to_owned).collect();
            let mut whole: Vec<&str> = expected.lines().collect();
            lines.sort();
            whole.sort_unstable();
            assert_eq!(lines, whole);
        }
    }
    // Without its capture nothing can be made again, and the rest is.
    for path in [find(&node, ".records.parquet").unwrap(), find(&node, ".filter").unwrap()] {
        fs::write(path, "").unwrap();
    }
    let damaged = index("verify", &[&a]);
    let capture = ["netns-dns.pcap", "netns-mirror.pcap"];
    let is_named = |name: &&str| {
        damaged.err.lines().any(|line| line.contains(".records.parquet") && line.contains(name))
    };
    let capture = root.join(capture.into_iter().find(is_named).unwrap());
    fs::remove_file(&capture).unwrap();
    let run = index("repair", &[&a, Path::new("-q")]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("no such file"), "{}", run.err);
    assert!(run.sentence().contains("index drop"), "{}", run.err);
    assert_eq!(index("verify", &[&a]).err.lines().count(), 1);
    assert_eq!(index("drop", &[&a, Path::new("-q"), &capture]).code, Some(0));
    assert!(is_whole(&a));
}

/// The part of a capture that was indexed is indexed again.
#[test]
fn a_repaired_capture_has_the_packets_that_it_had() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("A");
    let capture = repository().join("traces/netns-dns.pcap");
    let words = ["-q", "--where", "udp"].map(Path::new);
    assert_eq!(index("build", &[&[&*archive, &capture], &words[..]].concat()).code, Some(0));
    let search = [&*archive, Path::new("--host"), Path::new("0.0.0.0/0")];
    let expected = index("search", &search);
    fs::write(find(&archive, ".lists.parquet").unwrap(), "").unwrap();
    assert_eq!(index("repair", &[&archive]).code, Some(0));
    let found = index("search", &search);
    assert_eq!((found.code, found.out, found.err), (Some(0), expected.out, expected.err));
    let stats = index("stats", &[&archive, Path::new("--captures")]).done();
    assert!(stats.contains("in part"), "{stats}");
}

#[test]
fn errors_of_captures_that_are_known_are_said_once() {
    let folder = TempDir::new().unwrap();
    let (archive, captures) = (folder.path().join("A"), folder.path().join("captures"));
    fs::create_dir(&captures).unwrap();
    let bytes = fs::read(repository().join("traces/netns-dns.pcap")).unwrap();
    // Damaged after some packets, and in the first one.
    for (name, length) in [("many.pcap", 5000), ("first.pcap", 50)] {
        fs::write(captures.join(name), &bytes[..length]).unwrap();
    }
    let run = index("build", &[&archive, &captures, Path::new("-q")]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.err.lines().count(), 2, "{}", run.err);
    let run = index("add", &[&archive, &captures]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("in the index already: 2 captures"), "{}", run.err);
    let stats = index("stats", &[&archive, Path::new("--captures")]).done();
    let damaged = stats.lines().filter(|line| line.ends_with("damaged"));
    assert_eq!(damaged.count(), 2, "{stats}");
    let run = index("search", &[&archive, Path::new("--host"), Path::new("192.0.2.1")]);
    assert!(run.err.contains("of 2 captures the index holds only some packets"), "{}", run.err);
    // A capture that was copied again is indexed in its place.
    fs::write(captures.join("first.pcap"), &bytes).unwrap();
    assert_eq!(index("add", &[&archive, &captures]).code, Some(0));
    let stats = index("stats", &[&archive, Path::new("--captures")]).done();
    assert_eq!(stats.lines().filter(|line| line.ends_with("damaged")).count(), 1, "{stats}");
    // A capture that is in the index is not exchanged for one of which nothing can be read.
    fs::write(captures.join("first.pcap"), &bytes[..60]).unwrap();
    let run = index("add", &[&archive, &captures, Path::new("-q")]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let stats = index("stats", &[&archive, Path::new("--captures")]).done();
    assert_eq!(stats.lines().filter(|line| line.ends_with("damaged")).count(), 1, "{stats}");
}

/// A disk that is not mounted is no reason to drop what the index knows.
#[test]
fn a_repair_without_its_capture_is_to_be_run_again() {
    let (_folder, root) = built();
    let [a, capture, away] = ["A", "netns-dns.pcap", "away"].map(|name| root.join(name));
    for lists in ["n1", "A"].iter().filter_map(|folder| find(&root.join(folder), ".lists.parquet"))
    {
        fs::write(lists, "").unwrap();
    }
    for name in ["netns-dns.pcap", "netns-mirror.pcap"] {
        fs::create_dir_all(&away).unwrap();
        fs::rename(root.join(name), away.join(name)).unwrap();
    }
    let run = index("repair", &[&a]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let again = "run `flowsieve index repair` again once the capture can be read";
    assert!(run.err.contains(again) && run.err.contains("gone for good"), "{}", run.err);
    for name in ["netns-dns.pcap", "netns-mirror.pcap"] {
        fs::rename(away.join(name), root.join(name)).unwrap();
    }
    assert!(capture.exists() && !is_whole(&a));
    assert_eq!(index("repair", &[&a]).code, Some(0));
    assert!(is_whole(&a));
}

/// The first signal ends a repair, and what was done stays.
#[test]
fn a_signal_ends_a_repair_between_two_captures() {
    let folder = TempDir::new().unwrap();
    let (archive, captures) = (folder.path().join("A"), folder.path().join("captures"));
    fs::create_dir(&captures).unwrap();
    let bytes = fs::read(repository().join("traces/generated.pcap")).unwrap();
    for number in 0..60_u32 {
        // Each with a time of its own.
        let mut piece = bytes[..200_000.min(bytes.len())].to_vec();
        piece[28..32].copy_from_slice(&number.to_le_bytes());
        fs::write(captures.join(format!("{number}.pcap")), piece).unwrap();
    }
    index("build", &[&archive, &captures, Path::new("-q")]);
    for entry in fs::read_dir(archive.join("node")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::write(path.join("0.lists.parquet"), "").unwrap();
        }
    }
    let before = index("verify", &[&archive]).err.lines().count();
    let child = start(&["index", "repair", archive.to_str().unwrap()]);
    listening(&child);
    sleep(Duration::from_millis(200));
    signal(&child, "INT");
    let run = ended(child);
    if run.code == Some(130) {
        assert!(run.err.contains("the same command goes on with the rest"), "{}", run.err);
    }
    assert!(index("verify", &[&archive]).err.lines().count() <= before);
    index("repair", &[&archive, Path::new("-q")]);
    assert!(is_whole(&archive));
    assert_eq!(names_in(&archive.join("node")).iter().filter(|n| !n.contains('.')).count(), 61);
}

/// A capture in two xz streams; the second takes 256 MiB to decompress.
fn with_a_large_dictionary(bytes: &[u8]) -> Vec<u8> {
    let cut = super::record_offsets(bytes)[40];
    let [first, mut second] = [&bytes[..cut], &bytes[cut..]].map(|part| {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    });
    // The header of the first block ends with its filter, padding and a checksum.
    let header = 12..12 + (usize::from(second[12]) + 1) * 4;
    let filter = second[header.clone()].windows(2).position(|two| two == [0x21, 1]).unwrap();
    second[header.start + filter + 2] = 32;
    let mut checksum = flate2::Crc::new();
    checksum.update(&second[header.start..header.end - 4]);
    second[header.end - 4..header.end].copy_from_slice(&checksum.sum().to_le_bytes());
    [first, second].concat()
}

/// Memory that was refused made an index of part of a capture the last word on it.
#[cfg(target_os = "linux")]
#[test]
fn a_capture_that_could_not_be_read_for_a_time_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let bytes = fs::read(repository().join("traces/generated.pcap")).unwrap();
    let (a, capture) = (root.join("A"), root.join("m.pcap.xz"));
    fs::write(&capture, with_a_large_dictionary(&bytes)).unwrap();
    let limited = |words: &str| {
        let line = format!("ulimit -v 307200; exec \"$0\" index {words}");
        let mut command = Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_flowsieve")]).current_dir(&root);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let search = ["--host", "0.0.0.0/0", "--format", "csv"].map(Path::new);
    let search = [&[&*a], &search[..]].concat();
    // Once there is memory, `add` reads the capture again.
    let (code, told) = limited("build A m.pcap.xz");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("MiB of memory") && told.contains("1 capture indexed"), "{told}");
    let search_part = || {
        let run = index("search", &search);
        assert_eq!(run.code, Some(0));
        assert!(run.err.contains("of 1 capture the index holds only some packets"), "{}", run.err);
        run.out.lines().count()
    };
    let part = search_part();
    let (code, told) = limited("add A m.pcap.xz");
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(search_part(), part);
    let run = index("add", &[&a, &capture]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("1 capture indexed"), "{}", run.err);
    let whole = index("search", &search).done();
    assert!(whole.lines().count() > part);
    let run = index("add", &[&a, &capture]);
    assert!(run.err.contains("in the index already: 1 capture"), "{}", run.err);
    // A repair that can read less leaves what there is.
    fs::write(find(&a, ".lists.parquet").unwrap(), "").unwrap();
    let (code, told) = limited("repair A");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("0 captures indexed again"), "{told}");
    assert!(told.contains("the index keeps what it has"), "{told}");
    let run = index("repair", &[&a]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(is_whole(&a));
    assert_eq!(index("search", &search).done(), whole);
}
