//! Commands in the pages of the manual print what the page shows below them.

use super::repository;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The directory of a Python with the modules of the recipes; without one the reason stands on
/// standard error, where it is seen also when the test passes.
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

/// Runs a line in a shell that finds the program; both outputs, as they come.
fn run(line: &str, folder: &Path, python: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_flowsieve")).parent().unwrap();
    let path = format!("{}:{python}:{}", program.display(), env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("({line}) 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}: {text}");
    // What is read from a directory of this machine has its name.
    text.replace(&*folder.to_string_lossy(), "…").lines().map(str::trim_end).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    )
}

/// The page with the output of each of its commands as it is now, and how many there were.
fn rewritten(page: &str, folder: &Path, python: Option<&str>) -> (String, usize) {
    let (mut written, mut in_block, mut commands) = (String::new(), false, 0);
    for line in page.lines() {
        let fence = line.starts_with("```");
        if fence || !in_block {
            writeln!(written, "{line}").unwrap();
        }
        if fence {
            in_block = line == "```console" || (line == "```console python" && python.is_some());
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
