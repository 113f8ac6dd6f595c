//! Tests of output to a terminal: tables of its width, a limit of rows, and bold face where it is
//! allowed.

use super::{flowsieve, program, repository};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Returns the output of a shell command on a terminal of `columns` columns, or `None` if there is
/// no program that creates a terminal.
#[cfg(target_os = "linux")]
fn shown(columns: usize, line: &str) -> Option<String> {
    let line = format!("stty cols {columns} rows 40; {line}")
        .replace("flowsieve ", &format!("'{}' ", env!("CARGO_BIN_EXE_flowsieve")));
    let terminal = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(repository())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = terminal else {
        eprintln!("there is no `script` here, so nothing is shown on a terminal");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

/// Returns the text without bold face.
fn plain(text: &str) -> String {
    text.replace("\x1b[1m", "").replace("\x1b[0m", "")
}

/// Builds an index of the captures of this repository.
fn index() -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("archive");
    let path = path.to_str().unwrap();
    let run = flowsieve(&["index", "build", path, "traces/netns-dns.pcap"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    folder
}

#[cfg(target_os = "linux")]
#[test]
fn tables_fit_the_terminal() {
    let archive = index();
    let archive = archive.path().join("archive").display().to_string();
    let lines = [
        "flowsieve count -q traces/generated.pcap".to_owned(),
        "flowsieve count -q --no-exact traces/generated.pcap".to_owned(),
        "flowsieve count -q --element flow --want src --expect 1k traces/netns-dns.pcap".to_owned(),
        "flowsieve flows -q --rows all traces/netns-dns.pcap".to_owned(),
        "flowsieve flows -q --rows all --bidirectional traces/netns-dns.pcap".to_owned(),
        "flowsieve flows -q --unique traces/netns-dns.pcap".to_owned(),
        "flowsieve top -q --by domain --distinct src traces/netns-dns.pcap".to_owned(),
        "flowsieve top -q --no-exact --slice 1s traces/netns-dns.pcap".to_owned(),
        "flowsieve dedup -q --dry-run --slice 1ms traces/netns-mirror.pcap".to_owned(),
        "flowsieve compare -q --element dns traces/netns-dns.pcap".to_owned(),
        "flowsieve compare -q --each traces/netns-dns.pcap".to_owned(),
        "flowsieve compare -q --queries --element dns traces/netns-dns.pcap".to_owned(),
        "flowsieve plan --element dns --want src --want dst,domain --memory 64KiB --expect 10k"
            .to_owned(),
        format!("flowsieve index search {archive} --host 198.51.100.5 --explain"),
        format!("flowsieve index stats {archive} --captures"),
    ];
    for line in &lines {
        for width in [60, 80, 120] {
            let Some(text) = shown(width, line) else { return };
            let text = plain(&text);
            assert!(text.lines().count() > 3, "{line}: {text}");
            for row in text.lines() {
                // A path cannot be broken.
                let is_path = row.split(' ').any(|word| word.chars().count() > width / 2);
                let fits = is_path || row.chars().count() <= width;
                assert!(fits, "{line} at {width}: {row}\n{text}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn sentences_on_a_terminal_break_at_spaces() {
    let lines = [
        "flowsieve count -o x.pcap traces/generated.pcap",
        "flowsieve count --where 'http or dns' traces/generated.pcap",
        "flowsieve generate -w x.pcap --snaplen 1",
        "flowsieve filter query no-such-file 192.0.2.1",
        "flowsieve help environment",
        "flowsieve help formats",
        "flowsieve help structures",
    ];
    for line in lines {
        for width in [60, 80] {
            let Some(text) = shown(width, &format!("NO_COLOR=1 {line}; true")) else { return };
            let fits = |line: &str| line.chars().count() <= width;
            assert!(text.lines().all(fits) && text.lines().count() > 1, "{width}: {text}");
        }
    }
}

/// The answer stays in the narrowest terminal; the widest has all columns, in at most 20 lines.
#[cfg(target_os = "linux")]
#[test]
fn a_comparison_keeps_its_answer_at_every_width() {
    const ALWAYS: [&str; 4] = ["error, %", "mdbf", "cmdbf", "nearer"];
    const MORE: [&str; 4] = ["lost", "by, points", "seeds", "bloom"];
    for (width, columns) in [(60, &MORE[..0]), (80, &["by, points", "bloom"]), (120, &MORE)] {
        let Some(text) = shown(width, "flowsieve compare -q traces/generated.pcap") else { return };
        let text = plain(&text);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        let heads = text.lines().find(|line| line.starts_with("error, %")).unwrap();
        let at: Vec<_> = ALWAYS.iter().map(|head| heads.find(head)).collect();
        assert!(at.is_sorted() && at.iter().all(Option::is_some), "{width}: {heads}");
        for head in MORE {
            assert_eq!(heads.contains(head), columns.contains(&head), "{width}: {heads}");
        }
        assert_eq!(text.contains("not shown: "), width < 120, "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in [
            "cmdbf's raw count is nearer: at 1,056 B mean error 0.3 % (95 % 0.2-0.4)",
            "Nearer: mdbf up to 48 B, cmdbf from 288 B on",
            "mdbf loses at least 12 % here at any memory",
        ] {
            assert!(words.contains(sentence), "{width}: no `{sentence}` in {text}");
        }
        assert!(width < 120 || text.lines().count() <= 20, "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn columns_that_have_no_room_are_named_once() {
    let Some(text) = shown(60, "flowsieve count -q traces/generated.pcap") else { return };
    let words = plain(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    let remark = "not shown: packets, elements, first, ± std error, rel. error, observed FPR, \
        new; a wider terminal shows them, and so do files and pipes";
    assert_eq!(words.matches(remark).count(), 1, "{text}");
    assert!(text.contains("\x1b[1mstart"), "{text:?}");
    // A pipe gets them all, and no bold face.
    let text = flowsieve(&["count", "-q", "traces/generated.pcap"]).done();
    assert!(text.contains("observed FPR") && !text.contains("not shown"), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn long_tables_show_their_ends_and_name_the_option_for_all() {
    let count = |more: &str| {
        shown(80, &format!("flowsieve count -q --slice 1ms {more} traces/generated.pcap"))
    };
    let (Some(short), Some(all)) = (count(""), count("--rows all")) else { return };
    let is_row = |line: &&str| line.starts_with("2023-");
    let rows: Vec<&str> = all.lines().filter(is_row).collect();
    assert!(rows.len() > 1000, "{}", rows.len());
    let ends: Vec<&str> = short.lines().filter(is_row).collect();
    assert_eq!(ends[..50], rows[..50]);
    assert_eq!(ends[50..], rows[rows.len() - ends[50..].len()..]);
    assert!(ends.len() <= 100, "{}", ends.len());
    let between = "rows between; --rows all shows them";
    assert!(short.contains(between) && !all.contains(between), "{short}");
    // The sums are of all rows.
    let sum = |text: &str| text.lines().find(|line| line.starts_with("sum of")).map(str::to_owned);
    assert_eq!(sum(&short), sum(&all));
    // A pipe gets all rows.
    let piped = flowsieve(&["count", "-q", "--slice", "1ms", "traces/generated.pcap"]).done();
    assert_eq!(piped.lines().filter(is_row).count(), rows.len());
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_ranking_keys_are_rows_and_totals_are_none() {
    let top = "flowsieve top -q -n 8 --slice 2s --rows 4 traces/generated.pcap";
    let Some(text) = shown(120, top) else { return };
    assert!(text.contains("… 28 rows between"), "{text}");
    let dedup = "flowsieve dedup -q traces/netns-mirror.pcap --dry-run --rows 2";
    let text = shown(80, dedup).unwrap();
    assert!(text.contains("kept") && !text.contains("between"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_line_about_speed_stands_behind_the_rows() {
    let Some(text) = shown(100, "flowsieve flows traces/netns-dns.pcap") else { return };
    let last = text.lines().rev().find(|line| !line.is_empty()).unwrap();
    assert!(last.contains(" packets in ") && last.contains("packets/s"), "{text}");
    // The rows of a pipe are printed by another program, at an unknown time.
    let piped = shown(100, "flowsieve flows traces/netns-dns.pcap | cat").unwrap();
    assert!(!piped.contains(" packets in "), "{piped}");
}

#[test]
fn bold_face_follows_option_and_environment() {
    let is_bold = |color: Option<&str>, environment: &[(&str, &str)]| {
        let mut command = program(&["count", "-q", "traces/generated.pcap"]);
        command.args(color.map(|when| format!("--color={when}")));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        let output = command.envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap().contains("\x1b[1m")
    };
    assert!(!is_bold(None, &[]));
    assert!(!is_bold(Some("auto"), &[("TERM", "xterm")]));
    assert!(is_bold(Some("always"), &[("NO_COLOR", "1")]));
    assert!(is_bold(None, &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_bold(None, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_bold(Some("never"), &[("CLICOLOR_FORCE", "1")]));
}

#[cfg(target_os = "linux")]
#[test]
fn terminals_that_take_no_colours_get_none() {
    let bold = |before: &str, more: &str| {
        let line = format!("{before} flowsieve count {more} -q traces/generated.pcap");
        shown(80, &line).map(|text| text.contains("\x1b[1m"))
    };
    let Some(usual) = bold("", "") else { return };
    assert!(usual);
    assert_eq!(bold("TERM=dumb", ""), Some(false));
    // The same in a CI system, where the variable asks for colours in files.
    assert_eq!(bold("CI=true TERM=dumb", ""), Some(false));
    assert_eq!(bold("CI=true", ""), Some(true));
    assert_eq!(bold("NO_COLOR=1", ""), Some(false));
    assert_eq!(bold("", "--color never"), Some(false));
    assert_eq!(bold("TERM=dumb", "--color always"), Some(true));
    // Help follows the option wherever it stands.
    let help = |line: &str| shown(80, line).unwrap().contains("\x1b[");
    assert!(help("flowsieve count --help"));
    assert!(!help("CI=true TERM=dumb flowsieve count --help"));
    assert!(!help("flowsieve --color never count --help"));
    assert!(!help("flowsieve count --help --color=never"));
}

#[test]
fn a_search_that_finds_nothing_ends_as_grep_does() {
    let archive = index();
    let archive = archive.path().join("archive").display().to_string();
    let search = |host: &str, format: &str| {
        flowsieve(&["index", "search", &archive, "--host", host, "--format", format])
    };
    for format in ["table", "json", "csv"] {
        let nothing = search("203.0.113.250", format);
        assert_eq!((nothing.code, nothing.err.as_str()), (Some(1), ""), "{format}");
        assert_eq!(search("198.51.100.5", format).code, Some(0), "{format}");
    }
    assert_eq!(search("203.0.113.250", "table").out, "Nothing found.\n");
}

#[test]
fn topics_of_help_are_listed_and_have_texts() {
    let help = flowsieve(&["--help"]).done();
    let (_, topics) = help.split_once("Topics (flowsieve help TOPIC):\n  ").unwrap();
    let topics: Vec<&str> = topics.lines().next().unwrap().split(", ").collect();
    assert!(topics.len() > 5, "{help}");
    for topic in topics {
        let text = flowsieve(&["help", topic]).done();
        assert!(text.lines().count() > 3, "{topic}: {text}");
    }
    // The help of a command works as before, and an unknown topic is refused.
    assert!(flowsieve(&["help", "count"]).done().contains("--slice"));
    assert_eq!(flowsieve(&["help", "weather"]).code, Some(2));
    // The topic lists the values of the option.
    assert!(flowsieve(&["help", "structures"]).done().contains("\n  cmdbf"));
}

#[test]
fn ports_of_a_search_have_names() {
    let archive = index();
    let archive = archive.path().join("archive").display().to_string();
    for option in ["--port", "--dst-port"] {
        let search = |port| flowsieve(&["index", "search", &archive, option, port]);
        assert_eq!(search("domain").done(), search("53").done());
        assert_eq!(search("dns").done(), search("53").done());
        let refused = search("nonsense");
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("such as dns, https or ssh"), "{}", refused.err);
    }
}

#[test]
fn small_numbers_and_names_are_written_for_people() {
    let table = flowsieve(&["count", "-q", "--element", "dns", "traces/netns-dns.pcap"]).done();
    assert!(table.contains("2 ARP, 13 not DNS, 146 on a DNS port without payload"), "{table}");
    let dedup = ["dedup", "-q", "--dry-run", "--format", "csv", "traces/generated.pcap"];
    let csv = flowsieve(&dedup).done();
    assert!(csv.starts_with("packets,kept,dropped"), "{csv}");
    let csv = flowsieve(&[&dedup[..], &["--slice", "1s"]].concat()).done();
    assert!(csv.starts_with("start_ns,start,end_ns,end,packets"), "{csv}");
}

/// A name that sets the title of a terminal, forges a line and reverses the direction of the text.
#[cfg(target_os = "linux")]
const EVIL: &str = "a\u{1b}]0;title\u{7}\nforged: all is well\r\u{9b}2J\u{202e}b";

/// Runs every command that shows paths, on files of such names.
#[cfg(target_os = "linux")]
#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(format!("{EVIL}{name}")).display().to_string();
    let (capture, cut, missing) = (path(".pcap"), path("cut.pcap"), path("missing.pcap"));
    let bytes = std::fs::read(repository().join("traces/netns-dns.pcap")).unwrap();
    std::fs::write(&capture, &bytes).unwrap();
    std::fs::write(&cut, &bytes[..5000]).unwrap();
    let (filter, archive, node) = (path(".filter"), path(".index"), path(".node"));
    let out = path("out.pcap");
    let (capture, cut, missing, out) =
        (capture.as_str(), cut.as_str(), missing.as_str(), out.as_str());
    let (filter, archive, node) = (filter.as_str(), archive.as_str(), node.as_str());
    let (page, csv) = (path(".html"), path("/not/there.csv"));
    let lines: &[&[&str]] = &[
        &["count", capture, cut, missing, "--save-filter", filter, "--slice", "all"],
        &["count", capture, "--html", &page],
        &["count", capture, "-o", &csv],
        &["count", missing],
        &["top", capture, cut, missing],
        &["flows", capture, cut, missing],
        &["export", capture, cut, missing],
        &["compare", capture, cut],
        &["dedup", capture, cut, "-w", out],
        &["filter", "info", filter],
        &["filter", "info", capture],
        &["filter", "info", missing],
        &["filter", "query", filter, "10.0.0.1,10.0.0.2"],
        &["filter", "union", filter, missing, "-o", &csv],
        &["index", "build", archive, "--nodes", node, capture, cut, missing],
        &["index", "build", archive, capture],
        &["index", "add", archive, capture, cut, missing],
        &["index", "stats", archive],
        &["index", "stats", archive, "--captures"],
        &["index", "search", archive, "--port", "53"],
        &["index", "search", archive, "--port", "53", "--explain", "-w", out],
        &["index", "search", capture, "--port", "53"],
        &["index", "verify", archive],
        &["index", "adopt", archive],
        &["index", "repair", archive],
        &["index", "drop", archive, capture, missing],
        &["generate", "-w", &csv],
        &["plan", "--sample", capture],
        &["plan", "--sample", missing],
    ];
    let check = |line: &[&str]| {
        let output = program(line).stdin(Stdio::null()).output().unwrap();
        for bytes in [output.stdout, output.stderr] {
            let text = String::from_utf8_lossy(&bytes);
            // CSV, the default of `export`, has names unchanged in quotes.
            let is_bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!text.contains(is_bad), "{line:?}: {text:?}");
            let forged = text.lines().any(|line| line.starts_with("forged"));
            assert!(!forged, "{line:?}: {text}");
        }
    };
    for line in lines {
        check(line);
    }
    // Once more with everything of the index damaged.
    for entry in std::fs::read_dir(node).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::write(path, "x").unwrap();
        }
    }
    for line in lines.iter().filter(|line| line[0] == "index") {
        check(line);
    }
    let catalog = std::path::Path::new(archive).join("catalog.json");
    let schema = format!("flowsieve.index/{EVIL}");
    let text = serde_json::json!({"schema": schema, "checksum": 0, "catalog": {}}).to_string();
    std::fs::write(&catalog, text).unwrap();
    check(&["index", "verify", archive]);
    std::fs::write(&catalog, EVIL).unwrap();
    check(&["index", "verify", archive]);
}

#[cfg(unix)]
#[test]
fn names_in_csv_are_no_formulas() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (capture, filter) = (file("capture.pcap"), "=cmd|'x'!A1.filter");
    std::fs::copy(repository().join("traces/netns-dns.pcap"), &capture).unwrap();
    let in_folder = |line: &[&str]| {
        let output = program(line).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    in_folder(&["count", &capture, "--slice", "all", "--save-filter", filter]);
    let csv = in_folder(&["filter", "info", filter, "--format", "csv"]);
    assert!(csv.lines().nth(1).unwrap().starts_with("'=cmd|'x'!A1.filter,"), "{csv}");
    // Other formats have the name unchanged.
    let json = in_folder(&["filter", "info", filter, "--format", "jsonl"]);
    assert!(json.contains("\"=cmd|'x'!A1.filter\""), "{json}");
}
