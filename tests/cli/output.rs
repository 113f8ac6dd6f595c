//! Tests of output: a file is written completely or not at all, named pipes, readers that close
//! early.

#[cfg(unix)]
use super::signals::{check_end, ended, listening, signal, start};
use super::{flowsieve, program, sample, slices};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

fn names_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_file_holds_what_standard_output_would() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.csv");
    let result = path.to_str().unwrap();
    let line = ["count", "--format", "csv", "traces/generated.pcap", "-o", result];
    for _ in 0..2 {
        assert_eq!(flowsieve(&line).done(), "");
        assert_eq!(fs::read_to_string(&path).unwrap(), slices(&["traces/generated.pcap"]));
        fs::write(&path, "older").unwrap();
    }
    // The readable part of a bad input is a result, too.
    let run = flowsieve(&[&line[..], &["missing.pcap"]].concat());
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().starts_with("missing.pcap: "));
    assert_eq!(fs::read_to_string(&path).unwrap(), slices(&["traces/generated.pcap"]));
    assert_eq!(names_in(folder.path()), ["result.csv"]);
}

#[test]
fn the_name_of_a_file_chooses_the_format_unless_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, line: &[&str]| {
        let path = folder.path().join(name);
        let output = ["-o", path.to_str().unwrap(), "traces/netns-dns.pcap"];
        assert_eq!(flowsieve(&[line, &output].concat()).done(), "");
        fs::read(&path).unwrap()
    };
    for (name, format) in [
        ("a.csv", "csv"),
        ("a.JSON", "json"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.md", "markdown"),
        ("a.tex", "latex"),
        ("a.parquet", "parquet"),
        ("a.txt", "table"),
    ] {
        let given = written("given", &["count", "--format", format]);
        assert!(written(name, &["count"]) == given, "{name}");
    }
    assert!(written("a.csv", &["count", "--format", "json"]).starts_with(b"{"));
    assert!(written("rows.parquet", &["export"]).starts_with(b"PAR1"));
    assert_eq!(written("rows.txt", &["export"]), written("rows.csv", &["export"]));
    assert!(written("index.csv", &["flows"]).starts_with(b"start_ns,"));
}

#[test]
fn a_name_that_promises_compression_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (line, name, plain) in [
        (&["count", "traces/netns-dns.pcap", "-o"][..], "rows.csv.gz", "rows.csv and compress"),
        (&["export", "traces/netns-dns.pcap", "--summary"], "totals.zst", "totals and compress"),
        (&["count", "traces/netns-dns.pcap", "--html"], "page.html.gz", "page.html and compress"),
        (&["generate", "--packets", "10", "-w"], "some.pcap.xz", "some.pcap and compress"),
    ] {
        let run = flowsieve(&[line, &[&path(name)]].concat());
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains("not compressed") && run.err.contains(plain), "{}", run.err);
    }
    for name in ["some.pcapng", "some.pcapng.gz"] {
        let run = flowsieve(&["generate", "--packets", "10", "-w", &path(name)]);
        assert_eq!(run.code, Some(2));
        assert!(run.err.contains("not pcapng") && run.err.contains("some.pcap\n"), "{}", run.err);
    }
    assert!(names_in(folder.path()).is_empty());
    // DNS alone leaves room for any share of repeats.
    let line = ["generate", "--kind", "dns", "--repeat", "99", "--packets", "10", "-w"];
    flowsieve(&[&line[..], &[&path("dns.pcap")]].concat()).done();
}

#[test]
fn a_name_that_promises_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let filters = ["a", "b"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    for (line, name, remedy) in [
        (&["count", "--html"][..], "s.csv", "a page cannot be written as .csv; write .html"),
        (&["count", "--summary"], "s.PCAP", "write .json"),
        (&["count", "--save-filter"], "s.parquet", "write .fsieve"),
        (&["count", "--od", "8", "--od-out"], "s.html", "--html"),
        (&["filter", "union", &filters[0], &filters[1], "-o"], "s.json", "write .fsieve"),
        (&["dedup", "-w"], "s.html", "packets cannot be written as .html; write .pcap"),
        (&["dedup", "-w", "s.pcap", "--dropped"], "s.jsonl.gz", "write .pcap"),
        (&["reproduce", "cbfm-table-2", "--markdown"], "s.html", "write .md"),
        (&["generate", "-w"], "s.csv", "write .pcap"),
        (&["count", "-o"], "s.html.gz", "pages are written by --html"),
    ] {
        let path = folder.path().join(name);
        let inputs =
            &["traces/netns-dns.pcap"][..usize::from(["count", "dedup"].contains(&line[0]))];
        let run = flowsieve(&[line, &[path.to_str().unwrap()], inputs].concat());
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains(remedy), "{}", run.err);
    }
    for (name, remedy) in [("r.HTML", "--html"), ("r.pcapng", "-w of dedup"), ("r.xlsx", ".csv")] {
        let path = folder.path().join(name);
        let line = ["count", "traces/netns-dns.pcap", "-o", path.to_str().unwrap()];
        let of_dedup = ["dedup", "--dry-run", line[1], "-o", line[3]];
        for line in [&line[..], &of_dedup] {
            let run = flowsieve(line);
            assert_eq!(run.code, Some(2), "{}", run.err);
            assert!(run.err.contains(remedy), "{}", run.err);
        }
    }
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn an_export_without_rows_says_why() {
    let line = ["export", "--element", "dns", "--where", "tcp port 80"];
    let run = flowsieve(&[&line[..], &["traces/netns-web-loss.pcap"]].concat());
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    assert!(run.err.contains("no rows: "), "{}", run.err);
}

#[test]
fn a_dash_is_standard_output() {
    let dash = flowsieve(&["count", "traces/netns-dns.pcap", "-o", "-"]).done();
    assert_eq!(dash, flowsieve(&["count", "traces/netns-dns.pcap"]).done());
    assert!(!Path::new("-").exists());
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path().join("no/such/result"), folder.path().to_owned()] {
        let place = place.to_str().unwrap();
        let run = flowsieve(&["count", "traces/generated.pcap", "-o", place]);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        let start = format!("cannot write {place}: ");
        assert!(run.sentence().starts_with(&start), "{}", run.err);
        assert!(!run.err.contains("os error"), "{}", run.err);
        let run = flowsieve(&["generate", "--packets", "10", "-w", place]);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert!(run.sentence().starts_with(&start), "{}", run.err);
        // This is refused before anything is read, so that no result lacks its summary.
        let run = flowsieve(&["count", "traces/generated.pcap", "--summary", place]);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
        assert!(run.sentence().starts_with(&start), "{}", run.err);
        assert!(names_in(folder.path()).is_empty());
    }
}

#[test]
fn a_run_that_is_ended_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    fs::write(&path, "older").unwrap();
    let mut child = program(&["count", "-", "-o", path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&sample().1).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"older");
}

#[cfg(unix)]
#[test]
fn a_directory_without_the_right_to_write_keeps_its_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    fs::write(&path, "older").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.path().join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    let run = flowsieve(&["count", "traces/generated.pcap", "-o", path.to_str().unwrap()]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().starts_with("cannot write "));
    assert_eq!(fs::read(&path).unwrap(), b"older");
    assert_eq!(names_in(folder.path()), ["result"]);
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_written_to_and_stays() {
    use std::os::unix::fs::FileTypeExt;
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).unwrap()
    });
    let line = ["count", "traces/generated.pcap", "--format", "csv", "-o"];
    flowsieve(&[&line[..], &[path.to_str().unwrap()]].concat()).done();
    assert_eq!(reader.join().unwrap(), slices(&["traces/generated.pcap"]));
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names_in(folder.path()), ["pipe"]);
}

/// Other programs wait for a reader, too. Here signals had no effect during the wait.
#[cfg(unix)]
#[test]
fn a_named_pipe_that_nobody_reads_is_waited_for_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let pipe = path.to_str().unwrap();
    let capture = "traces/generated.pcap";
    for (line, name) in [
        (&["count", capture, "-o", pipe][..], "TERM"),
        (&["count", capture, "--html", pipe], "INT"),
        (&["dedup", capture, "-w", pipe], "TERM"),
        (&["generate", "--packets", "10", "-w", pipe], "INT"),
    ] {
        let child = start(line);
        listening(&child);
        signal(&child, name);
        let run = ended(child);
        check_end(&run, name);
        assert!(run.err.contains("nothing reads this pipe"), "{}", run.err);
    }
    let child = start(&["count", capture, "--format", "csv", "-o", pipe]);
    listening(&child);
    assert_eq!(fs::read_to_string(&path).unwrap(), slices(&[capture]));
    assert_eq!(ended(child).code, Some(0));
    // A file that replaces the pipe meanwhile is not written to.
    let child = start(&["count", capture, "-o", pipe]);
    listening(&child);
    // After this time the program has seen the pipe, even on a busy machine.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    fs::rename(&file, &path).unwrap();
    let run = ended(child);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("it was a pipe and is another file now"), "{}", run.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_file_is_replaced() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/result"), "older").unwrap();
    symlink("real/result", at("link")).unwrap();
    symlink(at("link"), at("chain")).unwrap();
    // A link to a file that does not exist yet.
    symlink("real/new", at("dangling")).unwrap();
    let expected = slices(&["traces/generated.pcap"]);
    for (name, real) in [("chain", "real/result"), ("dangling", "real/new")] {
        let line = ["count", "--format", "csv", "traces/generated.pcap", "-o"];
        let path = at(name);
        assert_eq!(flowsieve(&[&line[..], &[path.to_str().unwrap()]].concat()).done(), "");
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{name}");
        assert_eq!(fs::read_to_string(at(real)).unwrap(), expected, "{name}");
    }
    assert_eq!(names_in(&at("real")).len(), 2);
    // Two names of the same file, which does not exist yet.
    symlink("third", at("other")).unwrap();
    let names = [at("other"), at("third")];
    let [other, third] = names.each_ref().map(|path| path.to_str().unwrap());
    let line = ["count", "traces/generated.pcap", "-o", other, "--summary", third];
    let run = flowsieve(&line);
    assert_eq!(run.code, Some(2));
    assert!(run.sentence().contains("name the same file"), "{}", run.err);
}

/// In a directory that everybody may write to, a link of another user may lead to a file that only
/// this user can write.
#[cfg(target_os = "linux")]
#[test]
fn a_link_that_must_not_be_followed_is_refused() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "older").unwrap();
    symlink("loop", folder.path().join("loop")).unwrap();
    let line = ["count", "traces/netns-dns.pcap", "-o"];
    let run = flowsieve(&[&line[..], &[folder.path().join("loop").to_str().unwrap()]].concat());
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().starts_with("cannot write "), "{}", run.err);
    symlink("file", &link).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    if lchown(&link, Some(1), None).is_err() || fs::read(&link).is_ok() {
        eprintln!("skipped: this user can make no such link, or this system follows it");
        return;
    }
    let run = flowsieve(&[&line[..], &[link.to_str().unwrap()]].concat());
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("Permission denied"), "{}", run.err);
    assert_eq!(fs::read(&file).unwrap(), b"older");
    assert!(link.is_symlink());
}

#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    for mode in [0o600, 0o660, 0o640] {
        fs::write(&path, "older").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let line = ["count", "traces/netns-dns.pcap", "-o", path.to_str().unwrap()];
        flowsieve(&line).done();
        assert_ne!(fs::read(&path).unwrap(), b"older");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        fs::remove_file(&path).unwrap();
    }
}

/// A shell's `>` does not either.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    use super::inputs::bound;
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result");
    fs::write(&path, "older").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let line = ["count", "traces/netns-dns.pcap", "-o", path.to_str().unwrap()];
    let Some(run) = bound(&line) else {
        eprintln!("skipped: no other user may run the program");
        return;
    };
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.sentence().contains("you may not write the file that is there"), "{}", run.err);
    assert_eq!(fs::read(&path).unwrap(), b"older");
    assert_eq!(names_in(folder.path()), ["result"]);
}

/// Another file takes the name while a pipe is read: the result is kept, even if the name has the
/// greatest length.
#[cfg(unix)]
#[test]
fn a_result_that_cannot_take_its_place_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["result.csv".to_owned(), format!("{}.csv", "é".repeat(125) + "n")] {
        assert!(name.len() == 255 || name == "result.csv");
        let path = folder.path().join(&name);
        let mut child = start(&["count", "-", "--format", "csv", "-o", path.to_str().unwrap()]);
        let mut pipe = child.stdin.take().unwrap();
        let (capture, bytes) = sample();
        pipe.write_all(&bytes[..3000]).unwrap();
        listening(&child);
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::create_dir(&path).unwrap();
        pipe.write_all(&bytes[3000..]).unwrap();
        drop(pipe);
        let run = ended(child);
        assert_eq!(run.code, Some(1), "{}", run.err);
        let sentence = run.sentence();
        assert!(sentence.starts_with("cannot write "), "{sentence}");
        let (_, kept) = sentence.split_once("; what there is was written to ").unwrap();
        let names = names_in(folder.path());
        let partial = names.iter().find(|name| name.ends_with(".partial")).unwrap();
        assert!(kept.ends_with(partial.as_str()), "{kept}");
        let kept = folder.path().join(partial);
        assert_eq!(fs::read_to_string(&kept).unwrap(), slices(&[capture]));
        fs::remove_file(kept).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.csv");
    let (capture, _) = sample();
    let capture = capture.to_str().unwrap();
    let line = ["count", capture, "--format", "csv", "-o", path.to_str().unwrap()];
    let run = flowsieve(&[&line[..], &["--html", "/dev/full"]].concat());
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), slices(&[capture]));
    let name = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("x", name("distribution.svg")).unwrap();
    let (summary, filter) = (name("summary.json"), name("filter"));
    let (pairs, page, figures) = (name("pairs.csv"), name("page.html"), name(""));
    let others = ["--summary", &summary, "--od", "24", "--od-out", &pairs, "--html", &page];
    let save = ["--slice", "all", "--save-filter"];
    for (line, written) in [
        (&["top", capture, "--html", "/dev/full", "--summary", &summary][..], &[&summary][..]),
        (
            &[&["count", capture, "-o", "/dev/full"][..], &others].concat(),
            &[&summary, &pairs, &page],
        ),
        (
            &[&["count", capture, "--svg", &figures][..], &others].concat(),
            &[&summary, &pairs, &page],
        ),
        (&[&["count", capture][..], &save, &["/dev/full", "--html", &page]].concat(), &[&page]),
        (&[&["count", capture, "-o", "/dev/full"][..], &save, &[&filter]].concat(), &[&filter]),
    ] {
        let run = flowsieve(line);
        assert_eq!(run.code, Some(1), "{line:?}: {}", run.err);
        for file in written {
            assert!(fs::metadata(file).unwrap().len() > 0, "{line:?}: {file}");
            fs::remove_file(file).unwrap();
        }
    }
    // Files that were finished before the error have their names; later ones are kept as parts.
    let kept = folder.path().join("kept.pcap");
    let line = ["dedup", capture, "-w", kept.to_str().unwrap(), "--dropped", "/dev/full"];
    let run = flowsieve(&line);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(names_in(folder.path()).iter().any(|name| name.starts_with("kept.pcap")));
}

/// A link to an open file must not be replaced, nor what others have written to that file.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_has_other_names() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    symlink("/proc/self/fd/1", &link).unwrap();
    let expected = slices(&["traces/generated.pcap"]);
    for name in [link.to_str().unwrap(), "/dev/fd/1", "/proc/self/fd/1"] {
        let mut out = fs::File::create(&file).unwrap();
        out.write_all(b"before\n").unwrap();
        let line = ["count", "--format", "csv", "traces/generated.pcap", "-o", name];
        let run = program(&line).stdout(out).output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{name}");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("before\n{expected}"), "{name}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    // Report and capture cannot go to the same place.
    for line in [
        &["dedup", "traces/netns-dns.pcap", "-w"][..],
        &["dedup", "traces/netns-dns.pcap", "-w", "/dev/null", "--dropped"],
        &["generate", "--packets", "10", "-w"],
    ] {
        let dash = program(&[line, &["-"]].concat()).output().unwrap();
        for name in ["/dev/stdout", link.to_str().unwrap()] {
            let run = program(&[line, &[name]].concat()).output().unwrap();
            assert_eq!(run.status.code(), Some(0), "{line:?}");
            assert!(run.stdout == dash.stdout && !run.stdout.ends_with(b"\n"), "{line:?}");
            assert_eq!(run.stderr, dash.stderr, "{line:?}");
        }
    }
    // Nor does a page.
    let run = flowsieve(&["count", "traces/netns-dns.pcap", "--html", "/dev/stdout"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    // Others write to the file, too.
    let script = "exec 3>\"$1\"; echo before >&3; \"$0\" count traces/netns-dns.pcap --format csv -o /dev/fd/3; echo after >&3";
    let shell = std::process::Command::new("sh")
        .current_dir(super::repository())
        .args(["-c", script, env!("CARGO_BIN_EXE_flowsieve"), file.to_str().unwrap()])
        .status();
    assert!(shell.unwrap().success());
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("before\n"), "{written}");
}

/// Runs the program for a reader that closes after this many bytes. Returns the exit code and the
/// messages.
fn read_partly(line: &[&str], bytes: usize) -> (Option<i32>, String) {
    let mut child = program(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut vec![0; bytes]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    for format in ["table", "csv", "json", "jsonl"] {
        for slice in ["1s", "1ms"] {
            let line = ["count", "--format", format, "--slice", slice, "traces/generated.pcap"];
            assert_eq!(read_partly(&line, 0), (Some(0), String::new()), "{line:?}");
        }
        let long = ["count", "--format", format, "--slice", "1ms", "traces/generated.pcap"];
        assert_eq!(read_partly(&long, 1_000), (Some(0), String::new()), "{long:?}");
    }
    let line = ["generate", "-w", "-", "--packets", "20k"];
    assert_eq!(read_partly(&line, 1_000), (Some(0), String::new()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let line = ["generate", "--packets", "10", "-w", path.to_str().unwrap()];
    assert_eq!(read_partly(&line, 0), (Some(0), String::new()));
    assert_eq!(names_in(folder.path()), ["out.pcap"]);
}

/// The other results are complete, and problems with inputs are reported.
#[test]
fn a_reader_that_leaves_early_takes_nothing_from_other_results() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let paths = ["cut.pcap", "s.json", "p.html", "svg", "u.pcap"].map(at);
    let [cut, summary, page, figures, kept] = paths.each_ref().map(|path| path.to_str().unwrap());
    fs::write(cut, &sample().1[..200_000]).unwrap();
    let count = ["count", "--slice", "1ms", "--format", "csv", "traces/generated.pcap"];
    for bytes in [0, 1_000] {
        let line = [&count[..], &["--summary", summary, "--html", page]].concat();
        assert_eq!(read_partly(&line, bytes), (Some(0), String::new()));
        let line = [&count[..], &["--svg", figures]].concat();
        assert_eq!(read_partly(&line, bytes), (Some(0), String::new()));
        for path in [summary, page] {
            assert!(fs::metadata(path).unwrap().len() > 100, "{path}");
            fs::remove_file(path).unwrap();
        }
        assert!(!names_in(Path::new(figures)).is_empty());
        fs::remove_dir_all(figures).unwrap();
    }
    let dedup = ["dedup", cut, "-w", kept];
    for line in [&dedup[..], &["dedup", "--dry-run", cut], &["count", cut]] {
        let (code, said) = read_partly(line, 0);
        assert_eq!(code, Some(1), "{line:?}");
        assert!(said.contains("the file ends inside the record"), "{line:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{line:?}: {said}");
    }
    assert_eq!(flowsieve(&["count", kept]).code, Some(0));
}

/// The same for answers of an index.
#[test]
fn a_reader_of_answers_that_leaves_early_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    let built = program(&["index", "build", "-q", archive, "traces"]).status();
    assert!(built.unwrap().success());
    for format in ["table", "csv", "json"] {
        let line = ["index", "search", archive, "--host", "10.0.0.0/8", "--format", format];
        for bytes in [0, 1_000] {
            assert_eq!(read_partly(&line, bytes), (Some(0), String::new()), "{format}");
        }
    }
}

/// Messages that cannot be written to standard error change neither the work nor the exit code.
#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_cannot_be_written_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    for (line, code) in [
        (&["count", "traces/nothing.pcap"][..], 1),
        (&["count", "--shards", "0", "traces/generated.pcap"], 2),
        (&["count", "-v", "traces/generated.pcap"], 0),
        (&["index", "build", archive, "traces/generated.pcap"], 0),
        (&["index", "add", archive, "traces/nothing.pcap"], 1),
        (&["index", "search", archive], 2),
        (&["frobnicate"], 2),
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let run = program(line).stderr(full).stdout(Stdio::null()).status();
        assert_eq!(run.unwrap().code(), Some(code), "{line:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    for line in [
        &["count", "traces/generated.pcap"][..],
        &["count", "--format", "csv", "--slice", "1ms", "traces/generated.pcap"],
        &["generate", "-w", "-", "--packets", "10"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program(line).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.starts_with("flowsieve: cannot write "), "{err}");
    }
}

#[test]
fn remarks_come_when_asked_for_and_not_into_the_result() {
    let run = flowsieve(&["count", "--verbose", "traces/generated.pcap"]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("8,000 packets in "), "{}", run.err);
    assert_eq!(run.out, flowsieve(&["count", "traces/generated.pcap"]).done());
    let run = super::counted(&["--quiet", "missing.pcap"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    run.sentence();
}
