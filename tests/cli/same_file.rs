//! No result takes the place of what it is made from.

use super::{feed, flowsieve, program, repository};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The program refuses with one sentence that has this in it, and the file stays as it was.
fn refused(line: &[&str], file: &Path, word: &str) {
    let before = fs::read(file).unwrap();
    let run = flowsieve(line);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{line:?}");
    assert!(run.err.contains(word), "{line:?}: {}", run.err);
    run.sentence();
    assert!(fs::read(file).unwrap() == before, "{line:?}");
}

#[test]
fn an_input_is_never_the_file_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    // A capture is told by its content, so any name may be one.
    for (name, lines) in [
        (
            "capture.csv",
            &[
                &["count", "-o"][..],
                &["count", "--html"],
                &["count", "--od", "24", "--od-out"],
                &["count", "--slice", "all", "--save-filter"],
                &["compare", "-o"],
                &["compare", "--html"],
                &["dedup", "-w"],
                &["flows", "-o"],
            ][..],
        ),
        ("capture", &[&["plan", "--memory", "64KiB", "-o"]]),
    ] {
        let path = folder.path().join(name);
        fs::copy(repository().join("traces/generated.pcap"), &path).unwrap();
        let link = folder.path().join(format!("link-{name}"));
        fs::hard_link(&path, &link).unwrap();
        for line in lines {
            for output in [&path, &link] {
                let mut line = [line, &[output.to_str().unwrap()][..]].concat();
                if line[0] == "plan" {
                    line.push("--sample");
                }
                line.push(path.to_str().unwrap());
                refused(&line, &path, "is an input");
            }
        }
    }
}

#[test]
fn a_saved_filter_is_not_the_file_of_what_is_said_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.fsieve");
    let name = path.to_str().unwrap();
    let save = ["count", "--slice", "all", "-q", "--save-filter", name];
    flowsieve(&[&save[..], &["traces/generated.pcap"]].concat()).done();
    refused(&["filter", "info", name, "-o", name], &path, "is an input");
    let line = ["count", "--slice", "all", "--continue", name, "-o", name, "traces/generated.pcap"];
    refused(&line, &path, "is an input");
    // A union takes the place of one of its filters, but of no file of an index.
    let archive = folder.path().join("archive");
    let archive_name = archive.to_str().unwrap();
    let run = flowsieve(&["index", "build", "-q", archive_name, "traces/generated.pcap"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let catalog = archive.join("catalog.json");
    let line = ["filter", "union", name, name, "-o", catalog.to_str().unwrap()];
    refused(&line, &catalog, "inside the directory of the index");
}

#[test]
fn a_key_is_not_the_file_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, [7; 32]).unwrap();
    let key = path.to_str().unwrap();
    for line in [
        &["flows", "-o", key][..],
        &["dedup", "-w", key],
        &["count", "--od", "24", "--html", key],
        &["compare", "--od", "24", "--html", key],
    ] {
        let line = [line, &["--anonymize-key", key, "traces/generated.pcap"]].concat();
        refused(&line, &path, "is an input");
    }
}

#[test]
fn a_search_spares_captures_and_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture.pcap");
    fs::copy(repository().join("traces/generated.pcap"), &capture).unwrap();
    let archive = folder.path().join("archive");
    let (archive, capture_name) = (archive.to_str().unwrap(), capture.to_str().unwrap());
    let run = flowsieve(&["index", "build", "--quiet", archive, capture_name]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let search = ["index", "search", archive, "--host", "10.0.0.2"];
    let catalog = Path::new(archive).join("catalog.json");
    let new = Path::new(archive).join("node/new.pcap");
    for option in ["-w", "-o"] {
        let line = [&search[..], &[option, capture_name]].concat();
        refused(&line, &capture, "is an input");
        let line = [&search[..], &[option, catalog.to_str().unwrap()]].concat();
        refused(&line, &catalog, "directory of the index");
        let line = [&search[..], &[option, new.to_str().unwrap()]].concat();
        refused(&line, &catalog, "directory of the index");
    }
    for command in ["stats", "verify"] {
        for option in ["-o", "--summary"] {
            let line = ["index", command, archive, option, capture_name];
            refused(&line, &capture, "is an input");
            let line = ["index", command, archive, option, new.to_str().unwrap()];
            refused(&line, &capture, "directory of the index");
        }
    }
    let line = ["plan", "--expect", "1000", "-o", catalog.to_str().unwrap()];
    refused(&line, &catalog, "directory of the index");
    let line = ["reproduce", "--list", "-o", catalog.to_str().unwrap()];
    refused(&line, &catalog, "directory of the index");
    #[cfg(unix)]
    {
        let before = fs::read(&capture).unwrap();
        for line in ["search archive --host 10.0.0.2", "stats archive", "add archive capture.pcap"]
        {
            let run = redirected(&format!("index {line} >> capture.pcap"), folder.path());
            assert_eq!(run.status.code(), Some(2), "{line}");
            assert!(fs::read(&capture).unwrap() == before, "{line}");
        }
    }
    let both = folder.path().join("both.pcap");
    let both = both.to_str().unwrap();
    let line = [&search[..], &["-w", both, "-o", both]].concat();
    refused(&line, &capture, "same file");
    refused(&[&search[..], &["-w", "-"]].concat(), &capture, "--output");
    // With another file for the answers the packets may go to standard output, and are all there
    // is.
    let answers = folder.path().join("answers.csv");
    let line = ["-w", "-", "-o", answers.to_str().unwrap()];
    let run = program(&[&search[..], &line].concat()).output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    let count = feed(&["count", "--format", "json", "-"], &run.stdout).done();
    let count: Value = serde_json::from_str(&count).unwrap();
    assert!(count["totals"]["packets"].as_u64().unwrap() > 0);
    let answers = fs::read_to_string(&answers).unwrap();
    assert!(answers.contains("capture.pcap"), "{answers}");
}

/// Runs the program with standard input and output redirected as a shell does.
#[cfg(unix)]
fn redirected(line: &str, folder: &Path) -> std::process::Output {
    let script = format!("exec {} {line}", env!("CARGO_BIN_EXE_flowsieve"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder).output().unwrap()
}

#[cfg(unix)]
#[test]
fn standard_input_and_output_are_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("captures")).unwrap();
    let path = at("captures/x.pcap");
    let capture = fs::read(repository().join("traces/netns-dns.pcap")).unwrap();
    fs::write(&path, &capture).unwrap();
    let refused = |line: &str, word: &str| {
        let run = redirected(line, folder.path());
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(word), "{line}: {said}");
    };
    for line in [
        "count captures/x.pcap >> captures/x.pcap",
        "count captures >> captures/x.pcap",
        "count - -o - < captures/x.pcap >> captures/x.pcap",
        "dedup captures/x.pcap -w other.pcap >> captures/x.pcap",
        "top - -o captures/x.pcap < captures/x.pcap",
        "flows - -o captures/x.pcap < captures/x.pcap",
        "dedup - -w captures/x.pcap < captures/x.pcap",
    ] {
        refused(line, "is an input as well");
        assert!(fs::read(&path).unwrap() == capture, "{line}");
    }
    // Two results do not share a file.
    for line in [
        "count captures/x.pcap --format json --summary s.json > s.json",
        "count captures/x.pcap --format csv --od 24 --od-out m.csv > m.csv",
    ] {
        refused(line, "name the same file, ");
    }
    for line in [
        "count - < captures/x.pcap > out",
        "count captures/x.pcap | cat > out",
        "dedup captures/x.pcap -w - > out",
        "dedup captures/x.pcap -w out -o report",
    ] {
        assert!(redirected(line, folder.path()).status.success(), "{line}");
    }
    let run = redirected("count - captures/x.pcap < captures/x.pcap", folder.path());
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("standard input and captures/x.pcap are the same file"), "{said}");
}

/// The shell opens such a file, so no name of it is on the command line.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_goes_into_no_file_of_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture.pcap");
    fs::copy(repository().join("traces/netns-dns.pcap"), &capture).unwrap();
    let run = redirected("index build -q archive capture.pcap", folder.path());
    assert!(run.status.success());
    let catalog = folder.path().join("archive/catalog.json");
    let before = fs::read(&catalog).unwrap();
    for line in [
        "count capture.pcap",
        "dedup capture.pcap -w -",
        "generate --packets 10 -w -",
        "filter info capture.pcap",
        "plan --expect 1000",
        "man",
        "completions bash",
        "reproduce --list",
    ] {
        for file in ["archive/catalog.json", "archive/node/new"] {
            let run = redirected(&format!("{line} >> {file}"), folder.path());
            let said = String::from_utf8(run.stderr).unwrap();
            assert_eq!(run.status.code(), Some(2), "{line}: {said}");
            assert!(said.contains("inside the directory of the index"), "{line}: {said}");
        }
        assert!(fs::read(&catalog).unwrap() == before, "{line}");
    }
}

/// A folder that is mounted twice has two names that no link tells.
#[cfg(target_os = "linux")]
#[test]
fn a_new_file_is_known_in_a_folder_that_is_mounted_twice() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let script = format!(
        "mount --bind a b || exit 77; exec {} dedup {} -w a/new.pcap --dropped b/new.pcap",
        env!("CARGO_BIN_EXE_flowsieve"),
        repository().join("traces/generated.pcap").display(),
    );
    let mut shell = std::process::Command::new("unshare");
    let run = shell.args(["-rm", "sh", "-c", &script]).current_dir(folder.path()).output();
    let Some(run) = run.ok().filter(|run| !matches!(run.status.code(), Some(1 | 77))) else {
        eprintln!("skipped: this user can mount nothing");
        return;
    };
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("name the same file"), "{said}");
}

#[test]
fn experiments_spare_the_captures_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    fs::copy(repository().join("traces/netns-dns.pcap"), &path).unwrap();
    let (directory, name) = (folder.path().to_str().unwrap(), path.to_str().unwrap());
    let line = ["reproduce", "cbfm-table-2", "--capture", directory, "-o", name];
    refused(&line, &path, "is an input");
    let line = ["reproduce", "--list", "--capture", directory, "-o", name];
    refused(&line, &path, "is an input");
    let run = program(&["reproduce", "cbfm-table-2", "-o", name])
        .env("FLOWSIEVE_TRACES", directory)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn figures_replace_neither_inputs_nor_other_results() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (path, figures) = (at("capture.pcap"), at("figures"));
    fs::copy(repository().join("traces/netns-dns.pcap"), &path).unwrap();
    fs::create_dir(&figures).unwrap();
    let skipped = at("figures/skipped.svg");
    let count = ["count", &path, "--svg", &figures];
    for option in ["--html", "--summary"] {
        let line = [&count[..], &[option, &skipped]].concat();
        refused(&line, Path::new(&path), "name the same file");
    }
    // Figures that are there are replaced.
    for _ in 0..2 {
        assert_eq!(flowsieve(&count).code, Some(0));
    }
    // Nor do they if their directory is new.
    let new = ["new", "new/distribution.svg", "./new/distribution.svg", "new/x", "./new/x"].map(at);
    let count_new = ["count", &path, "--svg", &new[0]];
    for files in
        [["--html", &new[1]].as_slice(), &["-o", &new[2]], &["-o", &new[3], "--html", &new[4]]]
    {
        refused(&[&count_new[..], files].concat(), Path::new(&path), "name the same file");
        assert!(!Path::new(&new[0]).exists());
    }
    fs::remove_file(&skipped).unwrap();
    std::os::unix::fs::symlink(&path, &skipped).unwrap();
    refused(&count, Path::new(&path), "is an input");
    fs::remove_file(&skipped).unwrap();
    // A link among them stays, and so does the file where it leads.
    let (precious, figure) = (at("precious.txt"), fs::read_dir(&figures).unwrap().next().unwrap());
    let figure = figure.unwrap().path();
    fs::write(&precious, "mine").unwrap();
    fs::remove_file(&figure).unwrap();
    std::os::unix::fs::symlink(&precious, &figure).unwrap();
    let run = flowsieve(&count);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.sentence().contains("figures replace no links"), "{}", run.err);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    let archive = at("archive");
    assert_eq!(flowsieve(&["index", "build", "-q", &archive, &path]).code, Some(0));
    let catalog = at("archive/catalog.json");
    for new in ["archive", "archive/new", "archive/new/figures"].map(at) {
        refused(&["count", &path, "--svg", &new], Path::new(&path), "directory of the index");
        refused(&["man", &new], Path::new(&catalog), "directory of the index");
    }
    assert!(!Path::new(&at("archive/new")).exists());
}
