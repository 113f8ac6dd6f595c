//! The recipes of `docs/cookbook.md` do what stands there.

use super::repository;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The directory of a Python with the modules of the recipes; without one the reason stands on standard error, where it is seen also
/// when the test passes.
fn python() -> Option<String> {
    let script = repository().join("scripts/python-place");
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
    let path = format!(
        "{}:{python}:{}",
        program.display(),
        env::var("PATH").unwrap()
    );
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
    text.replace(&*folder.to_string_lossy(), "…")
        .lines()
        .map(str::trim_end)
        .fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        })
}

#[cfg(unix)]
#[test]
fn every_recipe_has_the_output_that_stands_below_it() {
    let path = repository().join("docs/cookbook.md");
    let page = fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(repository().join("traces"), folder.join("traces")).unwrap();
    let python = python();
    let (mut written, mut in_block, mut recipes) = (String::new(), false, 0);
    for line in page.lines() {
        let fence = line.starts_with("```");
        if fence || !in_block {
            writeln!(written, "{line}").unwrap();
        }
        if fence {
            in_block = line == "```console" || (line == "```console python" && python.is_some());
        }
        if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            let python = python.as_deref().unwrap_or_default();
            write!(written, "{line}\n{}", run(command, &folder, python)).unwrap();
            recipes += 1;
        }
    }
    assert!(recipes > 12, "{recipes}");
    if env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
        fs::write(path, written).unwrap();
        return;
    }
    assert!(
        page == written,
        "docs/cookbook.md is out of date: FLOWSIEVE_WRITE_DOCS=1 cargo test --test cli cookbook writes it"
    );
}
