//! The recipes of CONTRIBUTING.md, each followed by a toy that only tests have.

use super::{program, repository};
use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The lines of the sources that name a toy, each behind its file.
fn places(name: &str) -> Vec<String> {
    let folders =
        ["src", "crates/flowsieve-engine/src", "crates/flowsieve-filters/src", "python/src"];
    let mut places = Vec::new();
    for file in folders.iter().flat_map(|folder| sources(&repository().join(folder))) {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.strip_prefix(repository()).unwrap().display().to_string();
        let named = text.lines().filter(|line| line.to_lowercase().contains(name));
        places.extend(named.map(|line| format!("{shown}: {}", line.trim())));
    }
    places.sort();
    places
}

/// A structure is its file, a line among the modules, a line of the registry and a row of the laws;
/// every command that knows structures knows it from there.
#[test]
fn a_structure_is_added_in_the_places_that_its_recipe_names() {
    let named = [places("bitmapspec"), places("kind::bitmap")].concat();
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("spec/registry.rs"), "{named:?}");

    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("toy.fsieve").display().to_string();
    let trace = "traces/netns-mirror.pcap";
    let knows = |args: &[&str], said: &str| {
        let run = program(args).env("FLOWSIEVE_TOY", "1").output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success() && out.contains(said), "{args:?}: {out}");
    };
    knows(&["help", "structures"], "One bit an element");
    let count = ["count", trace, "--filter", "bitmap", "--format", "json", "--slice", "all"];
    knows(&[&count[..], &["--save-filter", &saved]].concat(), r#""filter":"bitmap""#);
    knows(&["filter", "info", &saved], "bitmap");
    let compare = ["compare", trace, "--filter", "bitmap,bloom", "--memory", "1KiB"];
    knows(&[&compare[..], &["--format", "csv"]].concat(), "bitmap");
    let plan = ["plan", "--filter", "bitmap", "--expect", "1000", "--memory", "64KiB"];
    knows(&[&plan[..], &["--element", "host-pair"]].concat(), "bitmap");
}

/// An IPv4 packet without a payload between two hosts.
fn packet(from: u8, to: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend([192, 0, 2, from, 192, 0, 2, to]);
    packet
}

/// A container is its file, a line among the modules and a line among the formats; help, commands
/// and writers know it from there.
#[test]
fn a_container_is_added_in_the_places_that_its_recipe_names() {
    let named = places("toycap");
    let is_place =
        |line: &&String| line.contains("trace/mod.rs") || line.contains("trace/formats.rs");
    assert!(named.iter().all(|line| is_place(&line)), "{named:?}");
    let formats = named.iter().filter(|line| line.contains("::FORMAT")).count();
    assert_eq!(formats, 1, "{named:?}");

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut capture = b"TOYCAP\n".to_vec();
    for (second, packet) in [(7_u32, packet(1, 2)), (8, packet(1, 3)), (9, packet(1, 3))] {
        capture.extend(second.to_le_bytes());
        capture.extend((packet.len() as u16).to_le_bytes());
        capture.extend(packet);
    }
    fs::write(path("a"), &capture).unwrap();
    let run = |args: &[&str]| {
        let run = program(args).env("FLOWSIEVE_TOY", "1").output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
        out
    };
    assert!(run(&["count", "--help"]).contains("toycap"));
    let counted = |input: &str, container: &str| {
        let out = run(&["count", input, "--format", "json", "--slice", "all"]);
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["inputs"][0]["container"], container, "{out}");
        assert_eq!(document["totals"]["packets"], 3, "{out}");
        assert_eq!(document["slices"][0]["exact"], 2, "{out}");
    };
    counted(&path("a"), "toycap");
    run(&["dedup", "-q", "-w", &path("b.pcapng"), &path("a")]);
    let read = run(&["count", &path("b.pcapng"), "--format", "json", "--slice", "all"]);
    assert!(read.contains("pcapng"), "{read}");
    // A record that is cut is an error with its place.
    fs::write(path("cut"), &capture[..capture.len() - 1]).unwrap();
    let cut = program(&["count", &path("cut")]).output().unwrap();
    assert!(String::from_utf8_lossy(&cut.stderr).contains("inside the record of packet 3"));
}

#[test]
fn the_manual_names_every_container() {
    let manual = fs::read_to_string(repository().join("docs/inputs.md")).unwrap();
    let names = flowsieve::trace::container_names().filter(|name| *name != "toycap");
    let missing: Vec<_> = names.filter(|name| !manual.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A kind of element is an entry of the table of kinds; every command that knows kinds knows it from
/// there.
#[test]
fn an_element_kind_is_added_in_one_place() {
    let named = places("toy-service");
    // Its entry, and the check that hides it unless it is asked for.
    assert!(named.len() <= 2, "{named:?}");
    assert!(named.iter().all(|place| place.contains("elements/kind.rs")), "{named:?}");

    let trace = "traces/netns-web-loss.pcap";
    let knows = |args: &[&str], said: &str| {
        let run = program(args).env("FLOWSIEVE_TOY", "1").output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success() && out.contains(said), "{args:?}: {out}");
    };
    knows(&["count", "--help"], "toy-service");
    let knows_with = |args: &[&str], said: &str| {
        knows(&[args, &["--element", "toy-service"]].concat(), said);
    };
    knows_with(&["count", trace, "--format", "json"], r#""element":"toy-service""#);
    knows_with(&["compare", trace, "--memory", "1KiB"], "services");
    knows_with(&["export", trace, "--format", "csv"], "dst_port");
    knows_with(&["plan", "--expect", "1000"], "toy-service");
    let top = ["top", trace, "--by", "toy-service", "--distinct", "src", "--min", "1"];
    knows(&[&top[..], &["--format", "json"]].concat(), r#""by":"proto,dst-port""#);
}

/// A command is its file, a line among the modules, a variant and its line where commands are run;
/// inputs, progress, signals, partial results and exit codes are those of all commands.
#[test]
fn a_command_is_added_in_the_places_that_its_recipe_names() {
    let named: Vec<String> = places("toy::");
    let others = named.iter().filter(|place| !place.starts_with("src/cli/mod.rs")).count();
    assert_eq!((named.len(), others), (2, 0), "{named:?}");

    let trace = "traces/generated.pcap";
    let flows = program(&["flows", trace, "--format", "json"]).output().unwrap();
    let flows = String::from_utf8(flows.stdout).unwrap();
    let said = |args: &[&str]| {
        let run = program(&[&["toy"], args].concat()).output().unwrap();
        (run.status.code(), String::from_utf8(run.stdout).unwrap())
    };
    let (code, out) = said(&[trace]);
    let number = out.trim_end().strip_suffix(" flows").unwrap();
    assert_eq!(code, Some(0));
    assert!(
        flows.contains(&format!("\"flows\": {number}"))
            || flows.contains(&format!("\"flows\":{number}")),
        "{out}"
    );
    assert_eq!(said(&["missing.pcap"]), (Some(1), String::new()));
    assert_eq!(said(&["-", "-"]).0, Some(2));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toy.txt").display().to_string();
    assert_eq!(said(&[trace, "-o", &file]), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(file).unwrap(), out);
}

/// An option of all commands is declared once, and is a field of the selection and a column of
/// results. (The code that heeds it is its own.)
#[test]
fn an_option_of_all_commands_is_added_in_the_places_that_its_recipe_names() {
    let named = places("toy_least");
    let mut files: Vec<&str> =
        named.iter().map(|place| place.split(": ").next().unwrap()).collect();
    files.dedup();
    let engine = files.iter().filter(|file| file.contains("flowsieve-engine")).count();
    assert_eq!(files.len() - engine, 2, "{named:?}");

    let trace = "traces/generated.pcap";
    let packets = |args: &[&str]| {
        let run = program(args).env("FLOWSIEVE_TOY", "1").output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        let least = document["parameters"]["toy_least"].as_u64();
        (least, document["totals"]["packets"].as_u64().unwrap())
    };
    let commands = ["count", "top", "flows", "export", "dedup --dry-run", "compare --memory 1KiB"];
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let args = [&words[..], &[trace, "--format", "json"]].concat();
        let (least, all) = packets(&args);
        assert_eq!((least, all), (Some(0), 8_000), "{command}");
        let (least, long) = packets(&[&args[..], &["--toy-least", "100"]].concat());
        assert_eq!(least, Some(100), "{command}");
        assert!(0 < long && long < all, "{command}: {long}");
    }
}

/// A format is its file, a line among the modules and a line of the table; every command has it.
#[test]
fn a_format_is_added_in_the_places_that_its_recipe_names() {
    let places = places("bars::format");
    assert_eq!(places.len(), 1, "{places:?}");
    assert!(places[0].contains("report/format.rs"), "{places:?}");
    let trace = "traces/netns-mirror.pcap";
    let out = |line: &[&str]| super::flowsieve(line).done();
    let csv = out(&["count", trace, "--format", "csv"]);
    assert_eq!(out(&["count", trace, "--format", "bars"]), csv.replace(',', "|"));
    assert!(out(&["flows", trace, "--format", "bars"]).starts_with("start_ns|start|end_ns|end|"));
    assert!(!out(&["count", "--help"]).contains("bars"));
}
