//! Tests completions and manual pages with shells and `man`.

use super::flowsieve;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns the commands that this help lists.
fn listed(group: &[&str]) -> Vec<String> {
    let help = flowsieve(&[group, &["--help"]].concat()).done();
    let Some((_, commands)) = help.split_once("Commands:\n") else { return Vec::new() };
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands.lines().filter_map(|line| {
        // Lines that are indented further continue the line above.
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

/// Returns the words of every command.
fn commands() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for name in listed(&[]) {
        let below = listed(&[&name]);
        all.push(vec![name.clone()]);
        all.extend(below.into_iter().map(|below| vec![name.clone(), below]));
    }
    all
}

/// Returns the long options in the help of this command.
fn options(command: &[String]) -> BTreeSet<String> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let help = flowsieve(&[&words[..], &["--help"]].concat()).done();
    let lines = help.lines().map(str::trim_start);
    let options = lines.filter(|line| line.starts_with('-')).filter_map(|line| {
        let (_, name) = line.split_once("--")?;
        let end = name.find(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        Some(name[..end.unwrap_or(name.len())].to_owned())
    });
    options.filter(|name| !name.is_empty()).collect()
}

/// Runs a program of the system on this file; `None` if there is no such program.
fn checked(program: &str, arguments: &[&str], file: &Path) -> Option<Output> {
    let run = Command::new(program).args(arguments).arg(file).stdin(Stdio::null()).output();
    if run.is_err() {
        eprintln!("{program} is not here, so {} is not checked by it", file.display());
    }
    run.ok()
}

#[test]
fn every_command_has_a_manual_page_with_all_options() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("new/man1");
    assert_eq!(flowsieve(&["man", pages.to_str().unwrap()]).done(), "");
    let commands = commands();
    assert!(commands.len() >= 20, "{commands:?}");
    let mut expected = BTreeSet::new();
    for command in &commands {
        let mut name = vec!["flowsieve".to_owned()];
        name.extend(command.iter().cloned());
        let file = pages.join(format!("{}.1", name.join("-")));
        let page = fs::read_to_string(&file).unwrap();
        for option in options(command) {
            let option = format!("\\fB\\-\\-{}\\fR", option.replace('-', "\\-"));
            let head = page.find(&format!(".TP\n{option}"));
            let head = head.or_else(|| page.find(&format!(", {option}")));
            let head = head.unwrap_or_else(|| panic!("no {option} in {}", file.display()));
            // The line below says what it is for.
            let text = page[head..].trim_start_matches(".TP\n").lines().nth(1).unwrap();
            assert!(!text.starts_with('.'), "{option} without a word in {}", file.display());
        }
        if let Some(output) = checked("groff", &["-man", "-Tutf8", "-ww", "-z"], &file) {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{said}");
        }
        expected.insert(file);
    }
    let entries = fs::read_dir(&pages).unwrap();
    let written: BTreeSet<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(written, expected);
    // Without a directory the page of the program goes to standard output.
    let page = fs::read_to_string(pages.join("flowsieve.1")).unwrap();
    assert_eq!(flowsieve(&["man"]).done(), page);
}

#[test]
fn a_directory_for_manual_pages_that_cannot_be_is_an_error() {
    let run = flowsieve(&["man", "/dev/null/man1"]);
    assert_eq!(run.code, Some(1));
    assert!(run.sentence().contains("/dev/null/man1"));
}

#[test]
fn completions_are_printed_for_every_shell() {
    let names = &["search", "queries-only"][..];
    let values = &["host-pair", "split-counting", "latex"][..];
    // For the last two clap generates scripts without values.
    for (shell, has_values) in
        [("bash", true), ("zsh", true), ("fish", true), ("powershell", false), ("elvish", false)]
    {
        let script = flowsieve(&["completions", shell]).done();
        for word in names {
            assert!(script.contains(word), "no {word} for {shell}");
        }
        for word in values {
            assert_eq!(script.contains(word), has_values, "{word} for {shell}");
        }
    }
    assert_eq!(flowsieve(&["completions", "cmd"]).code, Some(2));
}

/// The shell loads the script and offers the values that the program accepts.
#[cfg(unix)]
#[test]
fn bash_completes_options_and_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("flowsieve.bash");
    fs::write(&script, flowsieve(&["completions", "bash"]).done()).unwrap();
    let Some(syntax) = checked("bash", &["-n"], &script) else { return };
    assert!(syntax.status.success() && syntax.stderr.is_empty());
    let offered = |words: &[&str]| {
        let ask = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
            _flowsieve flowsieve \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[*]}\"";
        let output = Command::new("bash")
            .args(["--norc", "-c", ask])
            .arg(&script)
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let element = ["flowsieve", "count", "--element", ""];
    assert_eq!(offered(&element), "host-pair flow dns src dst");
    let variants = "cmdbf cmdbf-xor cmdbf-xor-independent";
    assert_eq!(offered(&["flowsieve", "compare", "--filter", "cm"]), variants);
    assert_eq!(offered(&["flowsieve", "top", "--format", "js"]), "json jsonl");
    assert_eq!(offered(&["flowsieve", "index", "search", "--dom"]), "--domain");
    assert_eq!(offered(&["flowsieve", "comp"]), "compare completions");
}
