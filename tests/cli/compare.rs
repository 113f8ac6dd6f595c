//! `flowsieve compare`: what it prints, in every format, and what it refuses.

use super::formats::{documented_set, fields, lines_of_one_schema, parquet_is_the_csv};
use super::{feed, flowsieve, sample, text_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

const CAPTURE: &str = "traces/generated.pcap";

fn compared(options: &[&str]) -> Value {
    let line = [&["compare", "--format", "json"], options].concat();
    serde_json::from_str(&flowsieve(&line).done()).unwrap()
}

#[test]
fn formats_have_the_documented_fields() {
    let options = [
        "--memory",
        "32,1KiB",
        "--seeds",
        "2",
        "--queries",
        "--counts",
        "--filter",
        "all",
        CAPTURE,
    ];
    let document = compared(&options);
    assert_eq!(document["schema"], "flowsieve.compare/2");
    assert!(text_of("docs/output.md").contains("`flowsieve.compare/2`"));
    let is_documented = |value: &Value, section: &str| {
        assert_eq!(fields(value), documented_set(section, &[]), "{section}");
    };
    is_documented(&document, "**Compare**");
    is_documented(&document["digests"][0], "**Compare: `digests`**");
    is_documented(&document["parameters"], "**Compare: `parameters`**");
    is_documented(&document["slices"][0], "**Compare: `slices`**");
    is_documented(&document["floors"][0], "**Compare: `floors`**");
    is_documented(&document["best_sets"][0], "**Compare: `best_sets`**");
    let structures = document["structures"].as_array().unwrap();
    let is_predicted = |filter: &str| {
        let structure = structures.iter().find(|it| it["filter"] == filter).unwrap();
        let mut queries = structure["queries"].as_array().unwrap().iter();
        let whole = queries.find(|query| query["attributes"].as_array().unwrap().len() == 2);
        !whole.unwrap()["predicted_fpr"].is_null()
    };
    assert!(is_predicted("cmdbf") && !is_predicted("cmdbf-xor"));
    let verdicts = document["verdicts"].as_array().unwrap();
    for verdict in verdicts {
        is_documented(verdict, "**Compare: `verdicts`**");
        if verdict["note"].is_null() {
            is_documented(&verdict["mean_a"], "**Compare: `mean_a`, `mean_b`**");
            is_documented(&verdict["seeds_nearer"], "**Compare: `seeds_nearer`, `slices_nearer`**");
        }
    }
    assert_eq!(verdicts.len(), 2);
    let structures = document["structures"].as_array().unwrap();
    let slices = document["slices"].as_array().unwrap().len();
    for structure in structures {
        is_documented(structure, "**Compare: `structures`**");
        assert_eq!(structure["fits"] == false, structure["replicates"] == Value::Array(vec![]));
        for count in ["raw", "estimate"] {
            if !structure[count].is_null() {
                is_documented(&structure[count], "**Compare: `raw`, `estimate`**");
            }
        }
        for query in structure["queries"].as_array().unwrap() {
            is_documented(query, "**Compare: `queries`**");
        }
        for replicate in structure["replicates"].as_array().unwrap() {
            is_documented(replicate, "**Compare: `replicates`**");
            let counts = ["counts", "estimates"].map(|it| replicate[it].as_array().unwrap().len());
            assert!(counts.iter().all(|&count| count == slices || count == 0), "{structure}");
        }
    }
    let csv = flowsieve(&[&["compare", "--format", "csv"], options.as_slice()].concat()).done();
    let header: BTreeSet<String> =
        csv.lines().next().unwrap().split(',').map(str::to_owned).collect();
    assert_eq!(header, documented_set("**Compare: CSV**", &[]));
    // A row a structure, memory and seed; one for what does not fit.
    let rows: usize =
        structures.iter().map(|it| it["replicates"].as_array().unwrap().len().max(1)).sum();
    assert_eq!(csv.lines().count(), 1 + rows);
}

/// Anybody can redo the test from the rows.
#[test]
fn json_lines_are_the_replicates() {
    let options = ["compare", "--memory", "960", "--seeds", "5", CAPTURE];
    let document = compared(&options[1..]);
    let lines = lines_of_one_schema(&options);
    let structures = document["structures"].as_array().unwrap();
    let replicates = structures.iter().flat_map(|structure| {
        let replicates = structure["replicates"].as_array().unwrap();
        replicates.iter().map(|it| (structure["filter"].clone(), it.clone()))
    });
    let mut count = 0;
    for (line, (filter, replicate)) in lines.iter().zip(replicates) {
        assert_eq!(line["filter"], filter);
        for name in ["seed", "mean", "lost", "worst", "rms", "bias"] {
            assert_eq!(line[name], replicate[name], "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 15);
    let mean = |filter: &str| -> f64 {
        let own = lines.iter().filter(|line| line["filter"] == filter);
        own.map(|line| line["mean"].as_f64().unwrap()).sum::<f64>() / 5.0
    };
    let difference = document["verdicts"][0]["difference"].as_f64().unwrap();
    assert!((mean("mdbf") - mean("cmdbf") - difference).abs() < 1e-12);
}

#[test]
fn the_table_says_what_a_person_asks() {
    let table = flowsieve(&["compare", CAPTURE]).done();
    let words = table.replace('\n', " ");
    for word in [
        "generated.pcap: 4,114 host pairs in 8 seconds; raw counts",
        "equal total memory",
        "cmdbf's raw count is nearer",
        "mdbf loses at least",
        "joint hash, not the paper's XOR",
        "8,000 packets",
    ] {
        assert!(words.contains(word), "no `{word}` in: {table}");
    }
    assert!(table.lines().count() <= 20, "{table}");
    assert!(table.contains(" *"), "the best of each memory: {table}");
}

#[test]
fn a_pipe_gives_what_the_file_gives() {
    let (path, bytes) = sample();
    let options = ["compare", "--format", "csv", "--memory", "512"];
    let file = flowsieve(&[&options[..], &[path.to_str().unwrap()]].concat()).done();
    let pipe = feed(&[&options[..], &["-"]].concat(), &bytes).done();
    // The last two columns are the digest and the command line.
    let numbers = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.rsplitn(3, ',').last().unwrap().to_owned());
        lines.collect()
    };
    assert_eq!(numbers(&pipe), numbers(&file));
}

#[test]
fn damaged_captures_are_compared_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.pcap");
    let (_, bytes) = sample();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    let run = flowsieve(&["compare", "--memory", "480", damaged.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("is nearer"));
    run.sentence();
}

/// The half-read capture takes part, so every format says that it is half-read; one of which nothing
/// could be read has no letter, and is not forgotten either.
#[test]
fn captures_compared_one_by_one_say_what_was_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let [cut, empty, html] =
        ["cut.pcap", "empty", "page.html"].map(|name| folder.path().join(name));
    fs::write(&cut, &sample().1[..50_000]).unwrap();
    fs::create_dir(&empty).unwrap();
    let [cut, empty, html] = [&cut, &empty, &html].map(|path| path.to_str().unwrap());
    let line = ["compare", "--each", "--memory", "480", "--seeds", "2", "--html", html];
    let run = |more: &[&str]| {
        let run = flowsieve(&[&line[..], more, &[CAPTURE, cut, empty]].concat());
        assert_eq!(run.code, Some(1));
        run.out
    };
    let document: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(document["totals"], json!({ "interrupted": false, "complete": false }));
    let inputs = document["inputs"].as_array().unwrap();
    let is_whole: Vec<_> = inputs.iter().map(|it| (&it["path"], it["error"].is_null())).collect();
    assert_eq!(is_whole, [(&json!(empty), false), (&json!(CAPTURE), true), (&json!(cut), false)]);
    assert_eq!(document["captures"].as_array().unwrap().len(), 2);
    assert!(run(&[]).contains("2 inputs were not read in full; "));
    let page = fs::read_to_string(html).unwrap();
    assert_eq!(page.matches("Not read in full: ").count(), 2, "{page}");
    let whole = flowsieve(&[&line[..], &["--format", "json", CAPTURE]].concat()).done();
    let document: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(document["totals"], json!({ "interrupted": false, "complete": true }));
}

#[test]
fn chosen_structures_and_combinations_are_those_that_are_there() {
    let document = compared(&[
        "--element",
        "flow",
        "--filter",
        "plan,subset,plan",
        "--queries",
        "--want",
        "src,dst_port:3",
        "--want",
        "all",
        "--memory",
        "4KiB",
        "--expect",
        "2k",
        CAPTURE,
    ]);
    let structures = document["structures"].as_array().unwrap();
    let names: Vec<&Value> = structures.iter().map(|structure| &structure["filter"]).collect();
    assert_eq!(names, ["plan", "subset"]);
    let asked =
        serde_json::json!([["src", "dst", "proto", "src_port", "dst_port"], ["src", "dst_port"]]);
    assert_eq!(document["parameters"]["asked"], asked);
    assert_eq!(document["parameters"]["expected_elements"], 2000);
    assert_eq!(document["parameters"]["expected_from"], "given");
    assert_eq!(document["parameters"]["pair"], serde_json::json!(["plan", "subset"]));
    // The recommendation of a plan answers all that is wanted; a subset filter knows whole elements only.
    let answers = |structure: &Value| {
        let queries = structure["queries"].as_array().unwrap().clone();
        queries.iter().all(|query| query["observed_fpr"].as_f64().is_some_and(|rate| rate < 0.5))
    };
    assert!(answers(&structures[0]) && !answers(&structures[1]), "{document}");
    // Made for parts of elements, it has no count of whole ones.
    let parts = ["--element", "flow", "--filter", "plan,subset", "--want", "src,dst_port"];
    let document = compared(&[&parts[..], &["--memory", "4KiB", CAPTURE]].concat());
    let structures = document["structures"].as_array().unwrap();
    assert_eq!(document["parameters"]["pair"], json!([]));
    assert!(structures[0]["raw"].is_null() && !structures[1]["raw"].is_null(), "{document}");
}

#[test]
fn compare_refuses_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result");
    fs::write(&result, "older").unwrap();
    for (options, word) in [
        (&["--memory", "0"][..], "64KiB"),
        (&["--memory", "1KiB,1KiB"], "twice"),
        (&["--memory", "auto,1KiB"], "192,3KiB"),
        (&["--seeds", "0"], "--seeds 20 works"),
        (&["--k", "few"], "--k 4 works"),
        (&["--setting", "array", "--filter", "mdbf,hll"], "hll has no arrays"),
        (&["--expect", "0"], "--expect 1000 works"),
        (&["--bits", "512"], "add --setting array"),
        (&["--setting", "array", "--memory", "512"], "give --bits"),
        (&["--setting", "array", "--expect", "8"], "give --bits"),
        (&["--margin", "1"], "such as 0.001"),
        (&["--margin", "nan"], "such as 0.001"),
        (&["--memory", "2000TiB"], "1 TiB"),
        (&["--setting", "array", "--bits", "100000000000000"], "bits, not 100000000000000"),
        (&["--filter", "subset,foo"], "cmdbf"),
        (&["--want", "port"], "src, dst"),
        (&["--threads", "0"], "threads"),
        (&["--slice", "0s"], "1s"),
        (&["--undirected", "--element", "src"], "--undirected"),
        (&["-", "-"], "once"),
    ] {
        let output = ["-o", result.to_str().unwrap(), CAPTURE];
        let run = flowsieve(&[&["compare"], options, &output].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}: {}", run.err);
        assert!(run.err.contains(word), "no `{word}` in: {}", run.err);
        assert_eq!(fs::read(&result).unwrap(), b"older", "{options:?}");
    }
}

#[test]
fn parquet_has_the_rows_of_the_csv() {
    // 32 B are too few for some structures, whose rows have nothing about replicates.
    parquet_is_the_csv(&[
        "compare", CAPTURE, "--memory", "32,1KiB", "--filter", "all", "--seeds", "2",
    ]);
}

#[test]
fn the_matrix_is_that_of_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (page, of_compare, of_count) = (path("page.html"), path("a.csv"), path("b.csv"));
    let od = ["--od", "24", "--od-out"];
    let compared = ["compare", CAPTURE, "--memory", "1KiB", "--html", &page];
    flowsieve(&[&compared, &od[..], &[&of_compare]].concat()).done();
    flowsieve(&[&["count", CAPTURE], &od[..], &[&of_count]].concat()).done();
    let matrix = fs::read_to_string(&of_compare).unwrap();
    assert!(matrix.lines().count() > 100, "{matrix}");
    assert_eq!(matrix, fs::read_to_string(&of_count).unwrap());
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("id=\"origin-destination\""), "the heat map is there");
    let run = flowsieve(&["compare", CAPTURE, "--od", "24"]);
    assert_eq!(run.code, Some(2));
    assert!(run.sentence().contains("--html"), "{}", run.err);
}

#[test]
fn without_an_element_nothing_is_said_about_errors() {
    let capture = "traces/netns-web-loss.pcap";
    let out = flowsieve(&["compare", "--element", "dns", capture]).done();
    let words = out.replace('\n', " ");
    assert!(words.contains("0 DNS triples in 0 seconds"), "{out}");
    assert!(words.contains("cannot be compared: no slice is judged"), "{out}");
}

/// By its estimate a filter that noticed next to nothing is never the best.
#[test]
fn the_estimate_of_a_full_filter_is_never_the_best() {
    let options = [
        CAPTURE,
        "--slice",
        "all",
        "--memory",
        "64",
        "--filter",
        "bloom,subset",
        "--expect",
        "100",
    ];
    let document = compared(&options);
    let bloom = &document["structures"][0];
    assert_eq!(bloom["filter"], "bloom");
    assert_eq!(bloom["saturated_slices"], 1);
    assert_eq!(bloom["best_estimate"], false);
    assert_eq!(document["totals"]["saturated_slices"], 1);
}

/// The number of hash functions that is given is that of every structure that has one.
#[test]
fn hash_functions_are_those_given() {
    let all = "subset,bloom,mdbf,cmdbf,cmdbf-xor,cartesian,bfm,cbfm,wcbfm,counting,split-counting,scalable,dleft,hll";
    for k in [1, 3, 8] {
        let number = k.to_string();
        let options = ["--filter", all, "--memory", "256,2KiB", "--seeds", "1", "--k", &number];
        let document = compared(&[&options[..], &[CAPTURE]].concat());
        assert_eq!(document["parameters"]["probes"], k);
        for structure in document["structures"].as_array().unwrap() {
            let name = structure["filter"].as_str().unwrap();
            match name {
                "hll" => assert!(structure["probes"].is_null()),
                "dleft" => assert_eq!(structure["probes"], 4, "its subtables"),
                _ => assert_eq!(structure["probes"], k, "{name}"),
            }
            for stored in structure["stored"].as_array().unwrap() {
                assert_eq!(stored["probes"], k, "{name}");
            }
            // Divided counters are as many as undivided ones.
            if let "split-counting" | "scalable" = name {
                let used = structure["memory_bytes"].as_u64().unwrap();
                let asked = structure["memory_asked_bytes"].as_u64().unwrap();
                assert!(used <= asked, "{name}");
            }
        }
    }
    let table = flowsieve(&["compare", "--k", "3", CAPTURE]).done();
    assert!(table.contains("k = 3 for every structure that has a k, as given"), "{table}");
    assert!(compared(&[CAPTURE])["parameters"]["probes"].is_null());
}

#[test]
fn hash_functions_that_cannot_be_are_refused() {
    for (options, word) in [
        (&["--k", "0"][..], "1 to 32 hash functions, not 0"),
        (&["--k", "33", "--filter", "bfm"], "--k 33 is not possible for bfm"),
        (&["--k", "33", "--filter", "subset"], "--k 33 is not possible for subset"),
        (&["--k", "3", "--filter", "dleft,hll"], "changes none of these structures"),
    ] {
        let run = flowsieve(&[&["compare"], options, &[CAPTURE]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(run.sentence().contains(word), "no `{word}` in: {}", run.err);
    }
    // A structure that does not fit refuses nothing.
    let table = flowsieve(&["compare", "--k", "9", "--filter", "bloom,cbfm", CAPTURE]).done();
    assert!(table.contains("k = 9"), "{table}");
    let options = ["--k", "9", "--filter", "subset,hll", "--memory", "32"];
    let table = flowsieve(&[&["compare"], &options[..], &[CAPTURE]].concat()).done();
    assert!(table.contains("does not fit"), "{table}");
}

/// Without queries, weights are chosen for whole elements, which alone are counted.
#[test]
fn weights_are_those_of_the_queries_that_are_asked() {
    let mean = |options: &[&str]| {
        let line = ["compare", "--slice", "all", "--filter", "wcbfm", "--memory", "4KiB"];
        let format = ["--seeds", "1", "--format", "json"];
        let run = flowsieve(&[&line[..], &format, options, &[CAPTURE]].concat());
        let document: Value = serde_json::from_str(&run.done()).unwrap();
        document["structures"][0]["replicates"][0]["mean"].as_f64().unwrap()
    };
    assert!(mean(&[]) < 0.01 && mean(&["--want", "all"]) < 0.01);
    assert!(mean(&["--queries"]) > 0.1);
}

#[test]
fn estimates_of_full_filters_are_marked() {
    let line = ["compare", "--slice", "all", "--filter", "dleft,cuckoo", "--pair", "dleft,cuckoo"];
    let table = |memory| {
        let options = ["--memory", memory, "--seeds", "2", CAPTURE];
        flowsieve(&[&line[..], &options].concat()).done()
    };
    assert!(table("960").contains("(full)"), "{}", table("960"));
    assert!(!table("64KiB").contains("(full)"), "{}", table("64KiB"));
}

/// A verdict that the number of hash functions turns is named.
#[test]
fn the_best_k_says_what_it_turns() {
    let options = ["--k", "best", "--seeds", "5", "--memory", "480", CAPTURE];
    let document = compared(&options);
    let verdict = &document["verdicts"][0];
    assert!(verdict["formula_verdict"].is_string(), "{verdict}");
    assert_eq!(document["parameters"]["k_rule"], "best");
    let table = flowsieve(&[&["compare"], &options[..]].concat()).done();
    let words = table.replace('\n', " ");
    assert!(words.contains("k: the best of trials"), "{table}");
}

#[test]
fn equal_arrays_are_the_setting_of_the_paper() {
    let options = ["--setting", "array", "--bits", "512,2048,32768", "--seeds", "5", CAPTURE];
    let document = compared(&options);
    assert_eq!(document["parameters"]["setting"], "array");
    assert_eq!(document["parameters"]["array_bits"], serde_json::json!([512, 2048, 32768]));
    assert!(document["parameters"]["memory_bytes"].is_null());
    for structure in document["structures"].as_array().unwrap() {
        assert_eq!(structure["probes"], 4);
        assert!(structure["memory_asked_bytes"].is_null());
    }
    // Half as much memory again, and one verdict all the same.
    let verdict = &document["verdicts"][0];
    let used =
        ["memory_used_bytes_a", "memory_used_bytes_b"].map(|it| verdict[it].as_u64().unwrap());
    assert_eq!(used, [128, 192]);
    assert_eq!(verdict["verdict"], "b");
    assert!(verdict["difference_low"].is_number() && verdict["mean_a"]["high"].is_number());
    // Where all seeds agree there is no interval.
    let agreed = &document["verdicts"][2];
    assert_eq!((&agreed["array_bits"], &agreed["verdict"]), (&json!(32768), &json!("b")));
    assert!(agreed["difference"].is_number() && agreed["mean_a"]["value"].is_number());
    for none in ["difference_low", "difference_high", "difference_low_joint"] {
        assert!(agreed[none].is_null(), "{agreed}");
    }
    assert!(agreed["mean_a"]["low"].is_null() && agreed["mean_b"]["high"].is_null(), "{agreed}");
    let one = &compared(&["--memory", "480", "--seeds", "1", CAPTURE])["verdicts"][0];
    assert!(one["mean_a"]["low"].is_null() && one["mean_a"]["value"].is_number(), "{one}");
    let table = flowsieve(&[&["compare"], &options[..]].concat()).done();
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("m = 512") && table.contains("arrays of equal size"), "{table}");
    assert!(table.contains("cmdbf is never farther off: at m = "), "{table}");
    assert!(table.contains("and takes 1.5 times the memory."), "{table}");
}

/// The output alone says what was compared, on what, and with which uncertainty.
#[test]
fn every_format_says_all_that_is_needed_to_repeat_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html").to_str().unwrap().to_owned();
    let digest = "057e512f89d5a8e2aefd24b49614a172bf865d340044d6249b3045b50fb39ee4";
    let command = "flowsieve compare --slice 500ms --where ip --seed 7 --memory 192,768 traces/generated.pcap";
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let run = |more: &[&str]| flowsieve(&[&words[..], more].concat()).done().replace('\n', " ");
    let table = run(&[]);
    let unrelated = ["-q", "--color=never", "--od", "16", "--anonymize", "--counts"];
    let same = run(&[&["--threads", "3", "--html", &page], &unrelated[..]].concat());
    assert_eq!(table, same);
    let page = fs::read_to_string(page).unwrap();
    for text in [&table, &run(&["--format", "latex"]), &run(&["--format=markdown"]), &page] {
        let text = text.replace("\\%", "%").replace("\\textbar{}", "|").replace("\\|", "|");
        // TeX makes a dash of two hyphens.
        let text = text.replace("-{}-", "--");
        for word in [
            "generated.pcap: ",
            " host pairs in 16 slices of 500 ms; raw counts",
            "equal total memory",
            "k: by formula for ",
            "of --seed 7, until decided at level 0.62 % or 30; margin 0.1 points or 5 % of the larger error",
            "95 %",
            "mdbf loses at least ",
            "joint",
            "SHA-256 of generated.pcap: 057e512f89d5a8e2",
            "flowsieve 0.1.0",
            command,
        ] {
            assert!(text.contains(word), "no `{word}` in: {text}");
        }
    }
    assert!(page.contains(digest), "the terminal alone shortens it");
    assert!(table.contains("mean over slices of |count - exact| / exact"), "{table}");
    let made = format!("flowsieve 0.1.0: {command}");
    let csv = run(&["--format", "csv", "--threads=2"]);
    let line = csv.lines().next().unwrap();
    assert!(line.contains(&made) && line.contains(digest), "{csv}");
    let document: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(document["parameters"]["command"], command);
    assert_eq!(document["parameters"]["version"], "0.1.0");
    assert_eq!(document["parameters"]["where"], "ip");
    assert_eq!(document["digests"][0], json!({"capture": CAPTURE, "sha256": digest}));
    // A directory without captures takes no other's digest.
    let words = [&words[..], &["--format", "json", folder.path().to_str().unwrap()]].concat();
    let with_directory: Value = serde_json::from_str(&flowsieve(&words).out).unwrap();
    assert_eq!(with_directory["digests"][0]["sha256"], digest);
    // Nor is it counted as a capture.
    let words = ["compare", "--seeds", "1", CAPTURE, folder.path().to_str().unwrap()];
    let out = flowsieve(&words).out;
    assert!(out.starts_with("generated.pcap: "), "{out}");
    // Programs get a name as it is, people without signs that a terminal obeys.
    let odd = folder.path().join("a\u{1b}[2Jb.pcap").to_str().unwrap().to_owned();
    fs::copy(CAPTURE, &odd).unwrap();
    let out = |format| flowsieve(&["compare", "--seeds", "1", "--format", format, &odd]).out;
    let as_json: Value = serde_json::from_str(&out("json")).unwrap();
    assert_eq!(as_json["digests"][0]["capture"], odd);
    assert!(out("table").starts_with("a\\u{1b}[2Jb.pcap: "), "{}", out("table"));
    let estimand = "mean over slices of |count - exact| / exact";
    assert_eq!(document["verdicts"][0]["estimand"], estimand);
}

/// A table for a paper says all that is needed to repeat it.
#[test]
fn markdown_and_latex_are_tables_with_captions() {
    let run = |format: &str| {
        flowsieve(&["compare", "--memory", "192,768", "--seeds", "5", "--format", format, CAPTURE])
            .done()
    };
    let (latex, markdown) = (run("latex"), run("markdown"));
    for text in [&latex, &markdown] {
        for word in [
            "MDBF",
            "CMDBF (joint)",
            "BLOOM",
            "SHA-256 of generated.pcap: ",
            "5 seeds",
            "5/5 seeds",
            "host pairs",
        ] {
            assert!(text.contains(word), "no `{word}` in: {text}");
        }
    }
    assert!(latex.contains("\\begin{tabular}{rrrrl}") && latex.contains("\\textbf{"), "{latex}");
    assert!(latex.contains("768\\,B") && latex.contains("-{}-memory 192,768"), "{latex}");
    assert!(
        markdown.starts_with("| memory | MDBF | CMDBF (joint) | BLOOM | nearer |\n"),
        "{markdown}"
    );
    assert!(markdown.contains("| **"), "{markdown}");
}

/// A structure that takes more memory than it was given is marked in every format, and never the
/// best.
#[test]
fn a_structure_that_exceeds_its_memory_is_marked() {
    let options = ["--filter", "dleft,bloom", "--memory", "256", "--seeds", "5", CAPTURE];
    let table = flowsieve(&[&["compare"], &options[..]].concat()).done();
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "Not the memory that was asked for: dleft at 256 B uses 1,297 B";
    assert!(words.contains(sentence), "{table}");
    let document = compared(&options);
    let [dleft, bloom] = &document["structures"].as_array().unwrap()[..] else {
        panic!("two structures");
    };
    assert_eq!((&dleft["exceeds_memory"], &dleft["fits"]), (&true.into(), &true.into()));
    let note = "it uses 1,297 bytes, more than the 256 asked for: not equal memory";
    assert_eq!(dleft["note"], note);
    assert_eq!((&bloom["exceeds_memory"], &bloom["note"]), (&false.into(), &Value::Null));
    assert_eq!((&dleft["best_raw"], &bloom["best_raw"]), (&false.into(), &true.into()));
}

#[test]
fn what_always_says_yes_is_never_the_best() {
    let options = ["--filter", "mdbf", "--memory", "15KiB", "--queries", "--seeds", "5", CAPTURE];
    let document = compared(&options);
    let mdbf = &document["structures"][0];
    let apart = &mdbf["queries"][0];
    assert_eq!((&apart["negatives"], &apart["observed_fpr"]), (&"apart".into(), &1.0.into()));
    assert_eq!(mdbf["best_raw"], false);
}

#[test]
fn the_first_sentences_are_the_verdicts() {
    let table = |options: &[&str]| {
        let line = [&["compare"], options, &[CAPTURE]].concat();
        flowsieve(&line).done().replace('\n', " ")
    };
    let near = table(&["--memory", "480"]);
    assert!(near.contains("At 480 B cmdbf's raw count is nearer: mean error "), "{near}");
    assert!(near.contains("in 5 of 5 seeds."), "{near}");
    let sweep = table(&["--memory", "192,480,960"]);
    assert!(
        sweep.contains("At 192, 480 and 960 B cmdbf's raw count is nearer: at 480 B"),
        "{sweep}"
    );
    assert!(sweep.contains("No crossover."), "{sweep}");
    assert!(!near.contains("crossover"), "one memory has none: {near}");
    let crossing = table(&[]);
    assert!(crossing.contains("they cross near 78 B, and k changes there."), "{crossing}");
    let same_k = table(&["--memory", "48,288", "--k", "2"]);
    assert!(same_k.contains("they cross near") && !same_k.contains("k changes"), "{same_k}");
    // All verdicts that are no winner, and no sentence about a crossover.
    let open = table(&["--memory", "48,96,60KiB", "--seeds", "2", "--pair", "bloom,subset"]);
    assert!(!open.contains("crossover"), "{open}");
    let equal = table(&["--memory", "60KiB", "--pair", "bloom,subset"]);
    assert!(equal.contains("At 60 KiB both counts are the same in all "), "{equal}");
    let range = ["--memory", "96,128", "--seeds", "2", "--pair", "bloom,subset"];
    let range = table(&range);
    assert!(range.contains("2 seeds do not decide (at 96 B -"), "{range}");
    let many = table(&["--memory", "64", "--margin", "0", "--seeds", "101"]);
    assert!(many.contains("101 seeds do not decide (-0.2 to +0.1 points). mdbf"), "{many}");
    // Five seeds are enough for a loss that the trace alone decides.
    let floor = table(&["--setting", "array", "--bits", "32768", "--seeds", "5"]);
    assert!(floor.contains("cmdbf's raw count is nearer: mean error 0 % against"), "{floor}");
    assert!(floor.contains("the same difference in all 5 seeds."), "{floor}");
    let whys = table(&["--memory", "48,200", "--seeds", "2", "--pair", "dleft,cuckoo"]);
    assert!(whys.contains("cannot be compared at 48 B: dleft: a dleft filter needs"), "{whys}");
    assert!(whys.contains("cannot be compared at 200 B: they do not have the same"), "{whys}");
    let one = table(&["--memory", "480", "--seeds", "1"]);
    assert!(one.contains("1 seed does not decide"), "{one}");
    let unfit = table(&["--memory", "1"]);
    assert!(unfit.contains("mdbf and cmdbf cannot be compared: "), "{unfit}");
    let unjudged = table(&["--memory", "480", "--exact-limit", "1KiB"]);
    assert!(unjudged.contains("no slice is judged"), "{unjudged}");
    // Structures without raw counts are compared by their estimates.
    let mixed = table(&["--memory", "512", "--pair", "hll,bloom"]);
    assert!(mixed.contains("bloom's estimate is nearer: root mean square error "), "{mixed}");
    let run = flowsieve(&["compare", "--pair", "mdbf", CAPTURE]);
    assert_eq!(run.code, Some(2));
    run.sentence();
}

#[test]
fn each_capture_has_a_letter_and_all_are_counted() {
    let other = "traces/netns-mirror.pcap";
    let run = |more: &[&str]| {
        let line =
            [&["compare", "--each", "--memory", "480,96", "--seeds", "5"], more, &[CAPTURE, other]]
                .concat();
        flowsieve(&line).done()
    };
    let document: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(document["schema"], "flowsieve.compare-each/2");
    let captures = document["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 2);
    for (capture, name) in captures.iter().zip([CAPTURE, other]) {
        assert_eq!(fields(capture), documented_set("**Compare: `captures`**", &[]));
        assert_eq!(capture["capture"], name);
        assert_eq!(capture["sha256"].as_str().map(str::len), Some(64));
        // Each is what the capture gives alone.
        let alone =
            compared(&["--memory", "480,96", "--filter", "mdbf,cmdbf", "--seeds", "5", name]);
        let raw = alone["verdicts"].as_array().unwrap().iter().filter(|it| it["count"] == "raw");
        let raw: Vec<&Value> = raw.collect();
        let own: Vec<&Value> = capture["verdicts"].as_array().unwrap().iter().collect();
        assert_eq!(own, raw);
    }
    let summary = document["summary"].as_array().unwrap();
    for sum in summary {
        assert_eq!(fields(sum), documented_set("**Compare: `summary`**", &[]));
        let counts = ["a", "b", "no_matter", "same", "open", "none"];
        assert_eq!(counts.map(|it| sum[it].as_u64().unwrap()).iter().sum::<u64>(), 2);
    }
    lines_of_one_schema(&["compare", "--each", "--memory", "480,96", CAPTURE, other]);
    parquet_is_the_csv(&["compare", "--each", "--memory", "480,96", CAPTURE, other]);
    let table = run(&["--by", "load"]);
    for word in
        ["generated.pcap", "netns-mirror.pcap", "Of 4 cells", "C: cmdbf nearer", "below 0.4"]
    {
        assert!(table.contains(word), "no `{word}` in: {table}");
    }
    for refused in [["--filter", "mdbf"], ["--filter", "mdbf,cmdbf,bloom"], ["--by", "size"]] {
        let refused = flowsieve(&[&["compare", "--each"], &refused[..], &[CAPTURE]].concat());
        assert_eq!(refused.code, Some(2));
        refused.sentence();
    }
    // Two structures that are named are the pair, also by their estimates.
    let named = run(&["--filter", "bloom,subset", "--format", "json"]);
    let named: Value = serde_json::from_str(&named).unwrap();
    assert_eq!(named["parameters"]["pair"], json!(["bloom", "subset"]));
    let verdicts = named["captures"][0]["verdicts"].as_array().unwrap();
    let counts: Vec<&str> = verdicts.iter().map(|it| it["count"].as_str().unwrap()).collect();
    assert_eq!(counts, ["raw", "raw", "estimate", "estimate"]);
    let sketches = run(&["--filter", "hll,ell"]);
    assert!(sketches.contains("estimates, each capture by itself"), "{sketches}");
}
