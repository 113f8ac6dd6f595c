//! `flowsieve reproduce`: names, formats, the page, and bad input.

use super::formats::{documented_set, fields, parquet_is_the_csv};
use super::{flowsieve, repository, sample, text_of};
use serde_json::Value;
use std::fs;

#[test]
fn names_are_listed_and_known() {
    let list = flowsieve(&["reproduce", "--list"]).done();
    let names: Vec<&str> = list.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(names.len() >= 20, "{list}");
    for name in &names {
        // With --list nothing is run, but the names are checked.
        flowsieve(&["reproduce", name, "--list"]).done();
    }
    let run = flowsieve(&["reproduce", "table-1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("cmdbf-table-1"), "{}", run.err);
    parquet_is_the_csv(&["reproduce", "--list"]);
    let json = flowsieve(&["reproduce", "--list", "--format", "json"]).done();
    let document: Value = serde_json::from_str(&json).unwrap();
    let listed = document["experiments"].as_array().unwrap();
    assert_eq!(listed.len(), names.len());
    assert_eq!(fields(&listed[0]), ["name", "source", "title"].map(str::to_owned).into());
}

#[test]
fn json_has_the_documented_fields() {
    let out = flowsieve(&["reproduce", "cbfm-fig-11", "cmdbf-examples", "--format", "json"]).done();
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], "flowsieve.reproduce/1");
    assert!(text_of("docs/output.md").contains("`flowsieve.reproduce/1`"));
    assert_eq!(fields(&document), documented_set("**Reproduce**", &[]));
    let parameters = documented_set("**Reproduce: `parameters`**", &[]);
    assert_eq!(fields(&document["parameters"]), parameters);
    let experiments = document["experiments"].as_array().unwrap();
    let names: Vec<&Value> = experiments.iter().map(|e| &e["name"]).collect();
    assert_eq!(document["complete"], true);
    // In the order of the papers, whatever the order of the names.
    assert_eq!(names, ["cmdbf-examples", "cbfm-fig-11"]);
    let documented = documented_set("**Reproduce: `experiments`**", &[]);
    let cells = documented_set("**Reproduce: `cells`**", &[]);
    for experiment in experiments {
        assert_eq!(fields(experiment), documented);
        for cell in experiment["cells"].as_array().unwrap() {
            assert_eq!(fields(cell), cells);
            assert_eq!(cell["agreement"], "agrees");
        }
    }
    let charts = documented_set("**Reproduce: `charts`**", &[]);
    assert_eq!(fields(&experiments[1]["charts"][0]), charts);
}

#[test]
fn csv_has_a_line_a_figure() {
    let out = flowsieve(&["reproduce", "cbfm-table-2", "--format", "csv"]).done();
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let mut expected = documented_set("**Reproduce: `cells`**", &["experiment"]);
    assert_eq!(header[0], "experiment");
    assert_eq!(header.len(), expected.len());
    for name in header {
        assert!(expected.remove(&name), "{name}");
    }
    assert_eq!(reader.records().count(), 11);
}

#[test]
fn the_page_has_its_figures_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let args = ["reproduce", "cbfm-memory", "--markdown", page.to_str().unwrap()];
    let table = flowsieve(&args).done();
    assert!(table.contains("d = 8, BFM"), "{table}");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("(figures/cbfm-memory.svg)"), "{text}");
    // It prints a command that runs.
    let traces = folder.path().join("my traces");
    fs::create_dir(&traces).unwrap();
    fs::copy(repository().join("traces/netns-dns.pcap"), traces.join("a.pcap")).unwrap();
    let line = [&args[..], &["--seed", "2", "--capture", traces.to_str().unwrap()]].concat();
    let table = flowsieve(&line).done();
    let command =
        format!("flowsieve reproduce cbfm-memory --seed 2 --capture '{}'", traces.display());
    let text = table.replace(" \\\n   ", "");
    assert!(text.contains(&format!("  {command}\n")), "{text}");
    let svg = fs::read_to_string(folder.path().join("figures/cbfm-memory.svg")).unwrap();
    assert!(svg.starts_with("<svg"), "{svg}");
    let run = flowsieve(&["reproduce", "cbfm-memory", "--markdown", "a", "-o", "a"]);
    assert_eq!(run.code, Some(2));
    run.sentence();
}

#[test]
fn the_manual_has_a_verdict_of_every_experiment() {
    let page = text_of("docs/reproduction.md");
    let list = flowsieve(&["reproduce", "--list"]).done();
    for line in list.lines() {
        let name = line.split(' ').next().unwrap();
        assert!(page.contains(&format!("(`{name}`)")), "{name}");
    }
    let figures = page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    for figure in figures {
        assert!(text_of(&format!("docs/{figure}")).starts_with("<svg"), "{figure}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let run = flowsieve(&["reproduce", "cmdbf-fig-9", "--capture", "/nonexistent/a.pcap"]);
    assert_eq!(run.code, Some(2));
    assert!(run.sentence().contains("/nonexistent/a.pcap"));
}

#[test]
fn captures_that_are_not_read_to_their_ends_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [cut, junk] = ["cut.pcap", "junk.pcap"].map(|name| folder.path().join(name));
    fs::write(&cut, &sample().1[..50_000]).unwrap();
    fs::write(&junk, [0x5a; 3000]).unwrap();
    let [cut, junk] = [&cut, &junk].map(|path| path.to_str().unwrap());
    let line =
        ["reproduce", "cmdbf-fig-9", "--format", "json", "--capture", cut, "--capture", junk];
    let run = flowsieve(&line);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for bad in [cut, junk] {
        assert_eq!(run.err.matches(bad).count(), 1, "{}", run.err);
    }
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["complete"], false);
    let remarks = document["experiments"][0]["remarks"].as_array().unwrap();
    assert!(remarks[0].as_str().unwrap().starts_with("Real captures: "), "{remarks:?}");
    let mark = format!("2 captures were not read in full; {cut}: ");
    assert!(remarks[1].as_str().unwrap().starts_with(&mark), "{remarks:?}");
}

#[test]
fn parquet_has_the_rows_of_the_csv() {
    parquet_is_the_csv(&["reproduce", "cmdbf-examples", "cbfm-table-2", "cbfm-fig-11"]);
}
