//! Checks that the commands in the pages of the manual print the output shown below them.

use super::repository;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns the directory of a Python with the modules of the recipes. If there is none, prints the
/// reason to standard error, where it is visible even if the test passes.
fn python() -> Option<String> {
    let script = repository().join("scripts/python-environment");
    let output = Command::new(script).output().unwrap();
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    let mut sentence = b"SKIPPED: recipes of Python were not run: ".to_vec();
    sentence.extend_from_slice(&output.stderr);
    io::stderr().write_all(&sentence).unwrap();
    None
}

/// Runs a line in a shell that finds the program, and returns both outputs in their order.
fn run(line: &str, folder: &Path, python: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_flowsieve")).parent().unwrap();
    let path = format!("{}:{python}:{}", program.display(), env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("({line}) 2>&1")]).current_dir(folder);
    command.env("PATH", path).env("LC_ALL", "C");
    let mut output = command.output().unwrap();
    // At exit a thread of pyarrow sometimes calls `std::terminate`, so Python is run again.
    if output.stdout.ends_with(b"terminate called without an active exception\n") {
        output = command.output().unwrap();
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}: {text}");
    // Removes directories of this machine: that of the commands, and the target of its link to the
    // captures.
    let captures = fs::canonicalize(repository()).unwrap();
    let text = [folder, &captures]
        .iter()
        .fold(text, |text, folder| text.replace(&*folder.to_string_lossy(), "…"));
    text.lines().map(str::trim_end).fold(String::new(), |mut all, line| {
        all.push_str(line);
        all.push('\n');
        all
    })
}

/// Returns the page with the current output of each of its commands, and the number of commands.
fn rewritten(page: &str, folder: &Path, python: Option<&str>) -> (String, usize) {
    let (mut written, mut in_block, mut commands) = (String::new(), false, 0);
    for line in page.lines() {
        let fence = line.starts_with("```");
        if fence || !in_block {
            writeln!(written, "{line}").unwrap();
        }
        if fence {
            in_block = match line {
                "```console" => true,
                "```console python" => python.is_some(),
                "```console shared" => folder.join("shared").exists(),
                _ => false,
            };
        }
        if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            let python = python.unwrap_or_default();
            write!(written, "{line}\n{}", run(command, folder, python)).unwrap();
            commands += 1;
        }
    }
    (written, commands)
}

#[cfg(unix)]
#[test]
fn every_recipe_has_the_output_that_stands_below_it() {
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.sort();
    let python = python();
    let mut all = 0;
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        // Each page has a directory of its own, so that it depends on no other.
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        std::os::unix::fs::symlink(repository().join("traces"), folder.join("traces")).unwrap();
        // The captures that are not part of the project, if they exist.
        if let Some(captures) = env::var_os("FLOWSIEVE_TRACES") {
            std::os::unix::fs::symlink(captures, folder.join("shared")).unwrap();
        }
        let (written, commands) = rewritten(&page, &folder, python.as_deref());
        all += commands;
        if env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
            if page != written {
                fs::write(path, written).unwrap();
            }
            continue;
        }
        assert!(
            page == written,
            "{} is out of date: FLOWSIEVE_WRITE_DOCS=1 cargo test --test cli cookbook writes it",
            path.display()
        );
    }
    assert!(all > 30, "{all}");
}

/// Returns the commands of a page without output, in their order: lines of code blocks, and with
/// `with_tables` the cells of tables.
fn shown(page: &str, with_tables: bool) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_fence = false;
    for line in page.lines() {
        in_fence ^= line.starts_with("```");
        if let Some(command) = line.strip_prefix("    ").filter(|_| !in_fence) {
            commands.push(command.trim_start().to_owned());
        } else if line.starts_with('|') && with_tables {
            commands.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    commands
}

/// Creates the files that the pages name in a folder.
fn put_examples(folder: &Path) {
    let write = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let traces = repository().join("traces");
    fs::create_dir_all(folder.join("captures/2026-01")).unwrap();
    for name in ["capture.pcap", "monday.pcap", "captures/2026-01/a.pcap"] {
        let ten_minutes = ["--packets", "2k", "--duration", "10min"];
        let path = write(name);
        let line = [&["generate", "-w", &path], &ten_minutes[..]].concat();
        super::flowsieve(&line).done();
    }
    fs::copy(folder.join("capture.pcap"), folder.join("capture.pcap.gz")).unwrap();
    fs::copy(traces.join("generated.pcap"), folder.join("tuesday.pcap")).unwrap();
    fs::copy(traces.join("netns-mirror.pcap"), folder.join("mirrored.pcapng")).unwrap();
    fs::copy(traces.join("netns-dns.pcap"), folder.join("captures/b.pcap")).unwrap();
    fs::write(folder.join("key"), [7; 32]).unwrap();
    std::os::unix::fs::symlink(traces, folder.join("traces")).unwrap();
}

/// Commands that this test skips: they take minutes, or need other disks (see `index_folders`).
const NOT_RUN: [&str; 3] = ["flowsieve reproduce all", "/disk", "flowsieve --"];

#[cfg(unix)]
#[test]
fn every_command_that_the_manual_shows_runs() {
    let mut pages: Vec<PathBuf> = vec![repository().join("README.md")];
    pages.extend(
        fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path()),
    );
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    let mut all = 0;
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap();
        // The page of all commands shows their usage.
        let lines = shown(&page, name == "README.md" || name == "archive.md");
        let lines = lines.into_iter().filter(|line| !line.contains(['<', '…']));
        let folder = tempfile::tempdir().unwrap();
        for (number, line) in lines.enumerate() {
            if let Some(script) = line.split(' ').next().filter(|word| word.starts_with("scripts/"))
            {
                assert!(repository().join(script.trim_end_matches(';')).exists(), "{line}");
            }
            let is_left = NOT_RUN.iter().any(|part| line.contains(part));
            if !line.starts_with("flowsieve ") || is_left || name == "commands.md" {
                continue;
            }
            if !folder.path().join("key").exists() {
                put_examples(folder.path());
            }
            if line.starts_with("flowsieve index build archive") {
                let _ = fs::remove_dir_all(folder.path().join("archive"));
            }
            let words = format!("({line}\n) >out{number} 2>err{number}; echo $? >code");
            run(&words, folder.path(), "");
            let read = |file: String| fs::read_to_string(folder.path().join(file)).unwrap();
            // A search that finds nothing exits with 1, like grep.
            let is_search =
                line.starts_with("flowsieve index search") && read("code".into()) == "1\n";
            let (code, err) = (read("code".into()), read(format!("err{number}")));
            assert!(code == "0\n" || is_search, "{}: {line}: {code}{err}", path.display());
            all += 1;
        }
    }
    assert!(all > 30, "{all}");
}
