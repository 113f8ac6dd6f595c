//! `flowsieve compare`: what it prints, in every format, and what it refuses.

use super::formats::{documented_set, fields, lines_of_one_schema, parquet_is_the_csv};
use super::{feed, flowsieve, sample, text_of};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const CAPTURE: &str = "traces/generated.pcap";

fn compared(options: &[&str]) -> Value {
    let line = [&["compare", "--format", "json"], options].concat();
    serde_json::from_str(&flowsieve(&line).done()).unwrap()
}

#[test]
fn formats_have_the_documented_fields() {
    let options = ["--memory", "32,1KiB", "--timing", CAPTURE];
    let document = compared(&options);
    assert_eq!(document["schema"], "flowsieve.compare/1");
    assert!(text_of("docs/output.md").contains("`flowsieve.compare/1`"));
    assert_eq!(fields(&document), documented_set("**Compare**", &[]));
    let parameters = documented_set("**Compare: `parameters`**", &[]);
    assert_eq!(fields(&document["parameters"]), parameters);
    let slices = documented_set("**Compare: `slices`**", &[]);
    assert_eq!(fields(&document["slices"][0]), slices);
    let pairs = documented_set("**Compare: `pairs`**", &[]);
    assert_eq!(fields(&document["pairs"][0]), pairs);
    let of_structure = documented_set("**Compare: `structures`**", &[]);
    let of_errors = documented_set("**Compare: errors**", &[]);
    let of_queries = documented_set("**Compare: `queries`**", &[]);
    let of_counts = documented_set("**Compare: `counts`**", &[]);
    let structures = document["structures"].as_array().unwrap();
    // Eight structures in two memories, and the exact set.
    assert_eq!(structures.len(), 17);
    for structure in structures {
        assert_eq!(fields(structure), of_structure);
        assert_eq!(structure["fits"].as_bool(), Some(structure["note"].is_null()));
        for error in ["estimate_error", "first_error"] {
            if !structure[error].is_null() {
                assert_eq!(fields(&structure[error]), of_errors);
            }
        }
        for query in structure["queries"].as_array().unwrap() {
            assert_eq!(fields(query), of_queries);
        }
        let counts = structure["counts"].as_array().unwrap();
        let slices = document["slices"].as_array().unwrap().len();
        let expected = if structure["fits"] == true { slices } else { 0 };
        assert_eq!(counts.len(), expected);
        assert_eq!(structure["ns_per_element"].is_number(), expected > 0);
        for count in counts {
            assert_eq!(fields(count), of_counts);
        }
    }
    let csv = flowsieve(&[&["compare", "--format", "csv"], options.as_slice()].concat()).done();
    let header: BTreeSet<String> =
        csv.lines().next().unwrap().split(',').map(str::to_owned).collect();
    assert_eq!(header, documented_set("**Compare: CSV**", &[]));
}

#[test]
fn json_lines_are_the_rows_of_the_csv() {
    let document = compared(&["--memory", "1KiB", CAPTURE]);
    let lines = lines_of_one_schema(&["compare", "--memory", "1KiB", CAPTURE]);
    let structures = document["structures"].as_array().unwrap();
    let queries = structures.iter().flat_map(|structure| {
        let queries = structure["queries"].as_array().unwrap();
        queries.iter().map(|query| (structure["filter"].clone(), query.clone()))
    });
    let told = lines.iter().filter(|line| !line["negatives"].is_null());
    let mut count = 0;
    for (line, (filter, query)) in told.zip(queries) {
        assert_eq!(line["filter"], filter);
        for (name, value) in query.as_object().unwrap() {
            assert_eq!(&line[name], value, "{name}");
        }
        count += 1;
    }
    assert!(count > 5);
}

#[test]
fn the_table_says_what_a_person_asks() {
    let table = flowsieve(&["compare", "--memory", "512,2KiB", CAPTURE]).done();
    for word in [
        "512 B a slice",
        "2 KiB a slice",
        "k chosen for 529 host pairs a slice",
        "mdbf lost",
        "Below 1 % error in every second",
        "src,dst",
        "no answer",
        "8,000 packets",
    ] {
        assert!(table.contains(word), "no `{word}` in: {table}");
    }
    let starred = table.lines().filter(|line| line.starts_with("* ")).count();
    assert!(starred >= 2, "the best of each memory: {table}");
}

#[test]
fn a_pipe_gives_what_the_file_gives() {
    let (path, bytes) = sample();
    let options = ["compare", "--format", "csv", "--memory", "512"];
    let file = flowsieve(&[&options[..], &[path.to_str().unwrap()]].concat()).done();
    let pipe = feed(&[&options[..], &["-"]].concat(), &bytes).done();
    assert_eq!(pipe, file);
}

#[test]
fn damaged_captures_are_compared_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.pcap");
    let (_, bytes) = sample();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    let run = flowsieve(&["compare", "--memory", "512", damaged.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("mdbf lost"));
    run.sentence();
}

#[test]
fn chosen_structures_and_combinations_are_those_that_are_there() {
    let document = compared(&[
        "--element",
        "flow",
        "--filter",
        "subset-planned,exact,subset-planned",
        "--want",
        "src,dst_port",
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
    assert_eq!(names, ["subset-planned", "exact"]);
    let asked =
        serde_json::json!([["src", "dst", "proto", "src_port", "dst_port"], ["src", "dst_port"]]);
    assert_eq!(document["parameters"]["asked"], asked);
    assert_eq!(document["parameters"]["expected_elements"], 2000);
    assert_eq!(document["parameters"]["expected_from"], "given");
    assert_eq!(structures[0]["stored"][0]["attributes"], asked[1]);
    assert_eq!(structures[1]["estimate_error"]["worst"], 0.0);
}

#[test]
fn compare_refuses_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result");
    fs::write(&result, "older").unwrap();
    for (options, word) in [
        (&["--memory", "0"][..], "64KiB"),
        (&["--memory", "1KiB,1KiB"], "twice"),
        (&["--expect", "0"], "--expect 1000 works"),
        (&["--memory", "2000TiB"], "1 TiB"),
        (&["--filter", "subset,foo"], "subset-planned"),
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
    // 32 B are too few for some structures, whose rows have nothing about queries.
    parquet_is_the_csv(&["compare", CAPTURE, "--memory", "32,1KiB"]);
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
    assert!(words.contains("with 0 DNS triples in all"), "{out}");
    assert!(!out.contains("Below 1 %"), "{out}");
}

/// A filter that noticed next to nothing is named as such, and never the best.
#[test]
fn a_full_filter_is_named_and_never_the_best() {
    let options = [
        CAPTURE,
        "--slice",
        "all",
        "--memory",
        "64",
        "--filter",
        "bloom,subset,hll",
        "--expect",
        "100",
    ];
    let table = flowsieve(&[&["compare"], &options[..]].concat()).done();
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "Filters were full, and their counts say nothing, in some of the 1 slices: bloom at 64 B in 1; give them more --memory.";
    assert!(words.contains(sentence), "{table}");
    let document = compared(&options);
    let bloom = &document["structures"][0];
    assert_eq!(bloom["filter"], "bloom");
    assert_eq!(bloom["saturated_slices"], 1);
    assert_eq!(bloom["best"], false);
    assert_eq!(document["totals"]["slices"], 1);
    assert_eq!(document["totals"]["saturated_slices"], 1);
}

/// The number of hash functions that is given is that of every structure that has one.
#[test]
fn hash_functions_are_those_given() {
    let all = "subset,subset-planned,bloom,mdbf,cmdbf,cartesian,bfm,cbfm,wcbfm,counting,split-counting,scalable,dleft,hll,exact";
    for k in [1, 3, 8] {
        let number = k.to_string();
        let options = ["--filter", all, "--memory", "256,2KiB", "--k", &number];
        let document = compared(&[&options[..], &[CAPTURE]].concat());
        assert_eq!(document["parameters"]["probes"], k);
        for structure in document["structures"].as_array().unwrap() {
            let name = structure["filter"].as_str().unwrap();
            match name {
                "hll" | "exact" => assert!(structure["probes"].is_null()),
                "dleft" => assert_eq!(structure["probes"], 4, "its subtables"),
                _ => assert_eq!(structure["probes"], k, "{name}"),
            }
            for stored in structure["stored"].as_array().unwrap() {
                assert_eq!(stored["probes"], k, "{name}");
            }
            // What the counters are divided into has as many of them as without.
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
    // What does not fit refuses nothing.
    let table = flowsieve(&["compare", "--k", "9", "--filter", "bloom,cbfm", CAPTURE]).done();
    assert!(table.contains("k = 9"), "{table}");
    let options = ["--k", "9", "--filter", "subset,hll", "--memory", "32"];
    let table = flowsieve(&[&["compare"], &options[..], &[CAPTURE]].concat()).done();
    assert!(table.contains("does not fit"), "{table}");
}

/// A structure that takes more memory than it was given is marked in every format, and never the
/// best.
#[test]
fn a_structure_that_exceeds_its_memory_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let options = ["--filter", "dleft,bloom", "--memory", "256", CAPTURE];
    let html = ["--html", page.to_str().unwrap()];
    let table = flowsieve(&[&["compare"], &options[..], &html].concat()).done();
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("\n! dleft"), "{table}");
    let sentence = "More memory than asked for, so not compared at equal memory and never the best: dleft at 256 B uses 1,297 B.";
    assert!(words.contains(sentence), "{table}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(sentence) && page.contains("1,297, more than asked for"));
    let document = compared(&options);
    let [dleft, bloom] = &document["structures"].as_array().unwrap()[..] else {
        panic!("two structures");
    };
    assert_eq!((&dleft["exceeds_memory"], &dleft["fits"]), (&true.into(), &true.into()));
    let note = "it uses 1,297 bytes, more than the 256 asked for: not equal memory";
    assert_eq!(dleft["note"], note);
    assert_eq!((&bloom["exceeds_memory"], &bloom["note"]), (&false.into(), &Value::Null));
    let csv = flowsieve(&[&["compare", "--format", "csv"], &options[..]].concat()).done();
    assert!(csv.lines().next().unwrap().contains(",exceeds_memory,"), "{csv}");
    // Alone it has nobody beside it, and is not the best all the same.
    let alone = compared(&["--filter", "dleft", "--memory", "256", CAPTURE]);
    assert_eq!(alone["structures"][0]["best"], false);
}

#[test]
fn what_always_says_yes_is_never_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let options = ["--filter", "mdbf", "--memory", "16KiB", CAPTURE];
    let document = compared(&options);
    let mdbf = &document["structures"][0];
    let apart = &mdbf["queries"][0];
    assert_eq!((&apart["negatives"], &apart["observed_fpr"]), (&"apart".into(), &1.0.into()));
    assert_eq!(mdbf["best"], false);
    let html = ["--html", page.to_str().unwrap()];
    let table = flowsieve(&[&["compare"], &options[..], &html].concat()).done();
    let page = fs::read_to_string(page).unwrap();
    for text in [&table, &page] {
        assert!(!text.contains("mdbf at 16 KiB: worst"), "{text}");
        assert!(!text.contains("Fewest false positives"), "{text}");
        assert!(
            text.contains(
                "Yes to every absent element of a kind, so never the best: mdbf at 16 KiB."
            )
        );
    }
    assert!(!table.contains("\n* "), "{table}");
}

#[test]
fn the_first_sentence_says_which_of_the_pair_was_nearer() {
    let table = |options: &[&str]| {
        let line = [&["compare"], options, &[CAPTURE]].concat();
        flowsieve(&line).done().replace('\n', " ")
    };
    // Both ways round, each with means and worst slices of their own.
    let near = table(&["--memory", "512"]);
    assert!(near.starts_with("cmdbf's raw count was nearer to the truth than mdbf's in all 8 seconds, by 11 points on average (mean error 2.3 % against 13 %; worst second 2.9 % against 15 %), at 512 B each"), "{near}");
    let far = table(&["--memory", "64"]);
    assert!(
        far.starts_with("mdbf's raw count was nearer to the truth than cmdbf's in 6 of 8 seconds"),
        "{far}"
    );
    let alone = table(&["--memory", "512", "--slice", "all"]);
    assert!(alone.starts_with("cmdbf's raw count was nearer to the truth than mdbf's over the whole trace, by 15 points: 28 % off against 44 %"), "{alone}");
    let equal = table(&["--memory", "64KiB", "--pair", "bloom,subset"]);
    assert!(equal.starts_with("bloom's raw count and subset's raw count were equally near to the truth in all 8 seconds (mean error 0 % against 0 %"), "{equal}");
    let one = table(&["--memory", "512", "--expect", "1"]);
    assert!(one.contains("k chosen for 1 host pair a slice, as given"), "{one}");
    let unfit = table(&["--memory", "8"]);
    assert!(unfit.starts_with("mdbf and cmdbf cannot be compared at 8 B; mdbf: "), "{unfit}");
    let unjudged = table(&["--memory", "512", "--exact-limit", "1KiB"]);
    assert!(unjudged.starts_with("mdbf and cmdbf cannot be held against the truth"), "{unjudged}");
    // A structure without a raw count takes part by its estimate; both run although --filter has
    // neither.
    let mixed = table(&["--memory", "512", "--filter", "mdbf", "--pair", "hll,bloom"]);
    assert!(
        mixed.starts_with("bloom's raw count was nearer to the truth than hll's estimate"),
        "{mixed}"
    );
    let sweep = table(&["--memory", "64,512,2KiB", "--filter", "mdbf,cmdbf"]);
    assert!(sweep.contains("Nearer at other memories: mdbf in 8 of 8 seconds at 64 B"), "{sweep}");
    // Nobody is held against anybody where there are not two.
    let none = table(&["--memory", "512", "--filter", "mdbf,bloom,subset"]);
    assert!(none.starts_with("distinct host pairs in slices"), "{none}");
    let run = flowsieve(&["compare", "--pair", "mdbf", CAPTURE]);
    assert_eq!(run.code, Some(2));
    run.sentence();
}

#[test]
fn each_capture_has_a_line_and_all_a_summary() {
    let other = "traces/netns-mirror.pcap";
    let run = |more: &[&str]| {
        let line = [&["compare", "--each", "--memory", "512,64"], more, &[CAPTURE, other]].concat();
        flowsieve(&line).done()
    };
    let document: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(document["schema"], "flowsieve.compare-each/1");
    let rows = document["captures"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let documented = documented_set("**Compare: each**", &[]);
    let sides = documented_set("**Compare: `a`, `b`**", &[]);
    let summary = document["summary"].as_array().unwrap();
    for row in rows.iter().chain(summary) {
        assert_eq!(fields(row), documented);
        assert_eq!(fields(&row["a"]), sides);
    }
    // Each line is what the capture gives alone, and the summary all slices together.
    for (row, capture) in rows.iter().zip([CAPTURE, CAPTURE, other, other]) {
        assert_eq!(row["capture"], capture);
        let alone = compared(&["--memory", "512,64", "--filter", "mdbf,cmdbf", capture]);
        let mut pairs = alone["pairs"].as_array().unwrap().iter();
        let own = pairs.find(|pair| pair["memory_asked_bytes"] == row["memory_asked_bytes"]);
        for field in ["slices", "exact", "equal", "a", "b", "note"] {
            assert_eq!(own.unwrap()[field], row[field], "{field} of {capture}");
        }
    }
    for (number, all) in summary.iter().enumerate() {
        let own = [&rows[number], &rows[number + 2]];
        let sum = |of: &dyn Fn(&Value) -> f64| own.iter().map(|row| of(row)).sum::<f64>();
        let slices = sum(&|row| row["slices"].as_f64().unwrap());
        assert!((all["slices"].as_f64().unwrap() - slices).abs() < 1e-9);
        let mean = sum(&|row| row["b"]["mean"].as_f64().unwrap() * row["slices"].as_f64().unwrap());
        assert!((all["b"]["mean"].as_f64().unwrap() - mean / slices).abs() < 1e-12);
        assert_eq!(all["captures"], 2);
        assert!(all["capture"].is_null());
    }
    lines_of_one_schema(&["compare", "--each", "--memory", "512,64", CAPTURE, other]);
    parquet_is_the_csv(&["compare", "--each", "--memory", "512,64", CAPTURE, other]);
    let table = run(&[]);
    for word in ["all 2", "generated.pcap", "netns-mirror.pcap", "Of 2 captures", "cmdbf nearer"] {
        assert!(table.contains(word), "no `{word}` in: {table}");
    }
    let refused = flowsieve(&["compare", "--each", "--filter", "mdbf", CAPTURE]);
    assert_eq!(refused.code, Some(2));
}
