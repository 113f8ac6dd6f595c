//! A wrong command line: exit code 2, the reason on standard error, nothing done.

use super::{flowsieve, program};
use std::fs;

/// Wrong arguments, and a word that must be in the message.
const WRONG: &[(&[&str], &str)] = &[
    (&["--slice", "0s"], "1s"),
    (&["--slice", "5x"], "unit"),
    (&["--slice=-1s"], "duration"),
    (&["--slice", "-1s"], "duration"),
    (&["--version"], "flowsieve --version"),
    (&["--sort", "bytes"], "--format csv"),
    (&["--top", "5"], "flowsieve top"),
    (&["--od", "128", "--od-out", "x.csv"], "1 to 32 bits"),
    (&["--slice", "200000d"], "292 years"),
    (&["--memory", "1"], "--memory 64"),
    (&["--memory", "1B", "--shards", "1"], "64 or more"),
    (&["--memory", "64Ki"], "64KiB"),
    (&["--memory", "2000TiB"], "ask for less"),
    (&["--shards", "0"], "shards"),
    (&["--shards", "1025"], "shards"),
    (&["--threads", "0"], "threads"),
    (&["--threads", "x"], "whole number from 1 to 1024"),
    (&["--shards", "x"], "whole number"),
    (&["--dns-port", "x"], "a port is a number"),
    (&["--dns-port", "53,5353"], "repeat the option"),
    (&["-r"], "without -r"),
    (&["--element", "dport"], "did you mean dst-port?"),
    (&["--expect", "2000G"], "at most 2^40"),
    (&["--fpr", "0", "--expect", "1k"], "0.001"),
    (&["--fpr", "1", "--expect", "1k"], "0.001"),
    (&["--fpr", "nan", "--expect", "1k"], "0.001"),
    (&["--fpr=-0.1", "--expect", "1k"], "0.001"),
    (&["--fpr", "0.1"], "--expect"),
    (&["--filter", "hll", "--memory", "15B"], "--memory 16 or more"),
    (&["--filter", "hll", "--memory", "127B", "--shards", "8"], "--memory 128 or more"),
    (&["--filter", "hll", "--memory", "2000TiB"], "ask for less"),
    (&["--filter", "hll", "--fpr", "0.1", "--expect", "1k"], "size it with --memory"),
    (&["--filter", "hll", "--slice", "all", "--save-filter", "x"], "hll cannot be saved"),
    (&["--fpr", "0.1", "--expect", "1k", "--memory", "1MiB"], "--memory"),
    (&["--undirected", "--element", "src"], "--undirected"),
    (&["--undirected", "--element", "dst"], "--undirected"),
    (&["--filter", "exact", "--no-exact"], "--no-exact"),
    (&["--shards", "100000"], "1 to 1024 shards"),
    (&["--expect", "0"], "at least 1"),
    (&["--fpr", "1e-300", "--expect", "500"], "reaches rates down to"),
    (&["--filter", "mdbf", "--fpr", "0.01", "--expect", "500"], "choose cmdbf"),
    (&["--dns-port", "5301"], "add --element dns"),
    (&["--element", "flow", "--queries-only"], "add --element dns"),
    (&["--quiet", "--verbose"], "--verbose"),
    (&["--element", "packets"], "host-pair"),
    (&["--frobnicate"], "--frobnicate"),
    (&["-", "-"], "once"),
];

#[test]
fn count_refuses_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result");
    fs::write(&result, "older").unwrap();
    for (options, word) in WRONG {
        let output = ["-o", result.to_str().unwrap(), "traces/generated.pcap"];
        let run = flowsieve(&[&["count"], *options, &output].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}: {}", run.err);
        assert!(run.err.contains(word), "no `{word}` in: {}", run.err);
        if !run.err.starts_with("error: ") {
            run.sentence();
        }
        assert_eq!(fs::read(&result).unwrap(), b"older", "{options:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{options:?}");
    }
}

#[test]
fn generate_refuses_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    for options in [
        &["--packets", "x"][..],
        &["--pairs", "0"],
        &["--pairs", "99G"],
        &["--names", "99G"],
        &["--snaplen", "10"],
        &["--dns", "101"],
        &["--kind", "dns", "--scan", "5"],
        &["--kind", "dns", "--dns", "5"],
        &["--duration", "1month"],
        &["--snaplen", "4GiB"],
        &["--seed", "x"],
    ] {
        let run = flowsieve(&[&["generate", "-w", path.to_str().unwrap()], options].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}: {}", run.err);
        if !run.err.starts_with("error: ") {
            run.sentence();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{options:?}");
    }
}

/// All spellings of the same size, count or duration mean the same in every option.
#[test]
fn values_with_units_are_understood_in_every_spelling() {
    let capture = "traces/generated.pcap";
    for (command, same) in [
        (
            &["count", "--format", "csv", "--memory"][..],
            &["64KiB", "64K", "64k", "65536", "65536B"][..],
        ),
        (&["count", "--format", "csv", "--memory"], &["64kB", "64KB", "64000"]),
        (
            &["count", "--format", "csv", "--slice"],
            &["1min", "1m", "60", "60s", "60000ms", "1minute"],
        ),
        (&["count", "--format", "csv", "--slice"], &["1d", "1day", "24h", "86400"]),
        (&["count", "--format", "csv", "--expect"], &["2M", "2m", "2000k", "2000000"]),
        (
            &["compare", "--filter", "bloom", "--format", "csv", "--memory"],
            &["1KiB,4KiB", "1K,4k", "1024,4096B"],
        ),
        (&["flows", "--format", "csv", "--idle"], &["1s", "1", "1000ms", "1sec"]),
        (&["dedup", "--dry-run", "--format", "csv", "--window"], &["1s", "1", "1000000us"]),
    ] {
        // A comparison ends its lines with the command, as it was given.
        let run = |value| -> Vec<String> {
            let text = flowsieve(&[command, &[value, capture]].concat()).done();
            let lines = text.lines().map(|line| line.split(",\"flowsieve ").next().unwrap_or(line));
            lines.map(str::to_owned).collect()
        };
        let first = run(same[0]);
        for value in &same[1..] {
            assert_eq!(run(value), first, "{command:?} {value}");
        }
    }
}

/// A date, a time without a zone, RFC 3339 and epoch seconds name the same instant.
#[test]
fn times_are_understood_in_every_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    let build = ["index", "build", "-q", archive, "traces/generated.pcap"];
    flowsieve(&build).done();
    let search = |option, time| {
        let line = ["index", "search", archive, "--host", "0.0.0.0/0"];
        flowsieve(&[&line[..], &["--format", "csv", option, time]].concat())
    };
    let nothing = search("--from", "2023-11-15").nothing();
    let search = |option, time| search(option, time).done();
    let answers = search("--to", "1700000001");
    assert!(answers.lines().count() > 1, "{answers}");
    for time in
        ["2023-11-14T22:13:21", "2023-11-14 22:13:21Z", "2023-11-14T23:13:21+01:00", "1700000001.0"]
    {
        assert_eq!(search("--to", time), answers, "{time}");
    }
    // A date is the time at which it begins.
    let everything = search("--from", "2023-11-14");
    assert_eq!(search("--to", "2023-11-15"), everything);
    assert!(everything.len() > answers.len());
    assert_eq!(nothing.lines().count(), 1);
}

/// One table says how values are written, and each command that takes them points there.
#[test]
fn help_says_once_how_values_are_written() {
    let help = flowsieve(&["--help"]).done();
    for name in ["SIZE", "COUNT", "DURATION", "TIME"] {
        assert!(help.contains(&format!("\n  {name} ")), "{help}");
    }
    for command in [
        &["count"][..],
        &["compare"],
        &["dedup"],
        &["flows"],
        &["generate"],
        &["plan"],
        &["index", "build"],
        &["index", "search"],
    ] {
        let help = flowsieve(&[command, &["--help"]].concat()).done();
        assert!(help.ends_with("times are written: flowsieve --help\n"), "{help}");
    }
}

#[test]
fn a_line_without_a_task_is_wrong_and_a_question_is_not() {
    for line in [&[][..], &["count"], &["generate"], &["weigh"]] {
        let run = flowsieve(line);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{line:?}");
        assert!(run.err.contains("Usage") || run.err.contains("usage"), "{}", run.err);
    }
    for line in [
        &["--help"][..],
        &["--version"],
        &["count", "--help"],
        &["count", "-h"],
        &["generate", "--help"],
        &["plan", "--help"],
        &["plan", "-h"],
    ] {
        assert!(!flowsieve(line).done().is_empty());
    }
}

/// Help begins with the purpose of the command, as in the list of commands.
#[test]
fn help_begins_with_what_the_command_is_for() {
    for group in [&[][..], &["filter"], &["index"]] {
        let list = flowsieve(&[group, &["--help"]].concat()).done();
        let (_, commands) = list.split_once("Commands:\n").unwrap();
        let (commands, _) = commands.split_once("\n\n").unwrap();
        let mut seen = 0;
        for line in commands.lines() {
            let (name, about) = line.trim().split_once(' ').unwrap();
            if name == "help" {
                continue;
            }
            seen += 1;
            for option in ["-h", "--help"] {
                let help = flowsieve(&[group, &[name, option]].concat()).done();
                assert!(help.starts_with(about.trim()), "{name} {option}: {help}");
            }
        }
        assert!(seen >= 3, "{list}");
    }
}

/// `-h` fits one screen of 80 columns, and says where the rest is; `--help` has all of it.
#[test]
fn short_help_fits_one_screen() {
    let commands = [
        "count",
        "top",
        "flows",
        "dedup",
        "export",
        "compare",
        "plan",
        "reproduce",
        "generate",
        "index",
        "filter",
        "index search",
        "index build",
        "index add",
        "filter query",
        "completions",
        "man",
    ];
    for command in commands {
        let help = |option| {
            let words: Vec<&str> = command.split(' ').chain([option]).collect();
            let output = program(&words).env("COLUMNS", "80").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (short, long) = (help("-h"), help("--help"));
        let lines = short.lines().count();
        assert!(lines <= 40, "{command} -h has {lines} lines:\n{short}");
        assert!(short.contains("--help"), "{short}");
        let is_wide =
            |line: &str| line.chars().count() > 80 && !line.trim_start().starts_with("flowsieve ");
        assert!(!short.lines().any(is_wide), "a line is too wide:\n{short}");
        assert!(long.len() >= short.len(), "{command}");
    }
    let help = flowsieve(&["count", "--help"]).done();
    let headings =
        ["\nInput:", "\nWhat to count:", "\nFilter:", "\nExact count:", "\nSpeed:", "\nOutput:"];
    let places = headings.map(|heading| help.find(heading).expect(heading));
    assert!(places.is_sorted(), "{help}");
}

/// The commands that most people need come first.
#[test]
fn commands_are_listed_in_the_order_in_which_people_need_them() {
    let help = flowsieve(&["-h"]).done();
    let order = [
        "count",
        "top",
        "flows",
        "dedup",
        "index",
        "export",
        "compare",
        "plan",
        "reproduce",
        "filter",
        "generate",
    ];
    let places = order.map(|name| help.find(&format!("\n  {name} ")).expect(name));
    assert!(places.is_sorted(), "{help}");
}

/// The error of a file that cannot be made names it as the user did, and in no other way.
#[test]
fn a_temporary_file_is_not_named() {
    let page = "/no/such/dir/x.html";
    let run = flowsieve(&["count", "--html", page, "traces/generated.pcap"]);
    assert_eq!(run.code, Some(1));
    let sentence = run.sentence();
    assert!(sentence.contains(page) && !sentence.contains("tmp"), "{sentence}");
}

/// A list of values is one word, so that the capture behind it is not taken for another value.
#[test]
fn a_capture_follows_a_list_of_values() {
    let line = ["compare", "--memory", "1KiB", "--seeds", "1", "--margin", "0.1%,5%"];
    flowsieve(&[&line[..], &["traces/netns-dns.pcap"]].concat()).done();
}

#[test]
fn windows_take_as_many_shards_as_their_memory_has_room_for() {
    for memory in ["1216", "2000", "4096", "9000", "9800"] {
        let line = ["count", "-q", "--slice", "4s", "--every", "1s", "--memory", memory];
        flowsieve(&[&line[..], &["traces/generated.pcap"]].concat()).done();
    }
}

#[test]
fn attributes_have_the_names_of_fields() {
    let count = |want| {
        let line = ["count", "-q", "--slice", "all", "--element", "src,src-port", "--want", want];
        flowsieve(&[&line[..], &["--expect", "1k", "traces/generated.pcap"]].concat()).done()
    };
    assert_eq!(count("src-port"), count("src_port"));
}
