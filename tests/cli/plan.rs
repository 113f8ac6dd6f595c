//! Tests of `flowsieve plan`: the tables of the CBFM paper, plans for traffic, formats, and bad
//! input.

use super::formats::{documented_set, fields};
use super::{feed, flowsieve, text_of};
use serde_json::Value;
use std::fs;

fn plan(args: &[&str]) -> Value {
    let out = flowsieve(&[&["plan", "--format", "json"], args].concat()).done();
    serde_json::from_str(&out).unwrap()
}

fn structure<'a>(document: &'a Value, name: &str) -> &'a Value {
    let structures = document["structures"].as_array().unwrap();
    structures.iter().find(|structure| structure["structure"] == name).unwrap()
}

/// Formulas go below the rate at which the digests of two elements are the same; a remark says so.
#[test]
fn rates_below_those_of_digests_have_a_remark() {
    for (elements, remarks) in [("10", 1), ("1m", 0)] {
        let line = ["plan", "--expect", elements, "--memory", "1MiB", "--filter", "bloom"];
        let table = flowsieve(&line).done();
        let remark = "bloom: digests of 64 bits add 5.4e-19 to the predicted rate";
        assert_eq!(table.matches(remark).count(), remarks, "{table}");
    }
}

#[test]
fn a_filter_has_the_best_number_of_bits_at_high_rates_too() {
    let subset = plan(&["--expect", "20k", "--fpr", "0.3", "--filter", "subset"]);
    let subset = structure(&subset, "subset");
    assert_eq!((&subset["probes"], &subset["memory_bytes"]), (&2.into(), &6_336.into()));
}

/// Plans charge memory in addition to the arrays, and recommend no filter that always says yes.
#[test]
fn what_is_recommended_keeps_to_the_memory_and_says_no() {
    let of = |elements: &str, memory: &str, filter: &str| {
        plan(&["--expect", elements, "--memory", memory, "--filter", filter])
    };
    let fits = |document: &Value| {
        let dleft = structure(document, "dleft");
        (dleft["memory_bytes"].as_f64().unwrap(), dleft["fits"] == true)
    };
    assert_eq!(fits(&of("100", "256", "dleft")), (256.0, true));
    let full = of("150", "256", "dleft,subset");
    let (bytes, is_fitting) = fits(&full);
    assert!(bytes > 500.0 && !is_fitting && full["recommended"] == "subset", "{full}");
    for (elements, memory, filters) in [("50M", "256KiB", "subset,bloom"), ("985", "1KiB", "dleft")]
    {
        assert!(of(elements, memory, filters)["recommended"].is_null(), "{filters}");
    }
}

/// An exact set takes as much as `--exact-limit` asks for it.
#[test]
fn an_exact_set_is_charged_while_it_grows() {
    let needed = |elements: &str| {
        let plan = plan(&["--expect", elements, "--filter", "exact"]);
        structure(&plan, "exact")["memory_bytes"].as_f64().unwrap()
    };
    assert!((1.88e6..1.91e6).contains(&needed("81861")), "{}", needed("81861"));
    let sources = plan(&["--element", "src", "--expect", "39123", "--filter", "exact"]);
    let bytes = structure(&sources, "exact")["memory_bytes"].as_f64().unwrap();
    assert!((1.77e6..1.80e6).contains(&bytes), "{bytes}");
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    for (line, words) in [
        (&["--expect", "100", "--where", "tcp"][..], "--sample"),
        (&["--expect", "100", "--from", "+1s"], "--sample"),
        (&["--expect", "100", "--expect", "src=3", "--expect", "dst=4"], "contradicts"),
        (&["--expect", "5", "--expect", "src,dst=6"], "contradicts"),
    ] {
        let run = flowsieve(&[&["plan"], line].concat());
        assert_eq!(run.code, Some(2), "{line:?}");
        assert!(run.err.contains(words), "{}", run.err);
    }
}

#[test]
fn a_structure_that_takes_less_is_named_beside_the_recommended_one() {
    let line = ["plan", "--sample", "traces/netns-dns.pcap", "--fpr", "1e-5"];
    let words = flowsieve(&line).done().split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "subset reaches the rate in the least memory up to a factor of 1.2 (bloom is better by less) and counts each combination";
    assert!(words.contains(sentence), "{words}");
}

#[test]
fn a_combination_without_an_answer_has_no_memory_at_the_same_rate() {
    let line = ["--want", "src", "--expect", "100k", "--memory", "64KiB", "--filter"];
    let plan = plan(&[&line[..], &["subset,bloom,counting,dleft,cuckoo"]].concat());
    assert!(structure(&plan, "subset")["same_rate_bytes"].is_u64());
    for name in ["bloom", "counting", "dleft", "cuckoo"] {
        assert!(structure(&plan, name)["same_rate_bytes"].is_null(), "{name}");
    }
}

/// Plans with the parameters of the tables: three attributes, cuts {1,3} and {1,2}.
fn of_the_tables(fpr: &str, more: &[&str]) -> Value {
    let line =
        ["--attributes", "3", "--filter", "bfm,cbfm", "--cuts", "1,3;1,2", "--attribute-fpr", fpr];
    plan(&[&line, more].concat())
}

/// Table 3: rate, k, m, and megabytes of 2^23 bits as printed. The first two sizes of BFM are
/// misprints (13 125.9996 and 105 007.9968: the fraction was rounded up and the carry lost), so
/// ours follow.
#[test]
fn table_3_of_the_cbfm_paper() {
    for (fpr, k, m, bfm, ours, cbfm) in [
        ("0.1", 3, 4792, "13125.00", "13126.00", "2.74"),
        ("0.01", 6, 9585, "105007.00", "105008.00", "10.96"),
        ("0.001", 9, 14_377, "354328.05", "354328.05", "24.65"),
        ("0.0001", 13, 19_170, "839932.53", "839932.53", "43.81"),
        ("0.00001", 16, 23_962, "1640339.20", "1640339.20", "68.46"),
    ] {
        let document = of_the_tables(fpr, &["--expect", "1000"]);
        for (name, megabytes) in [("bfm", ours), ("cbfm", cbfm)] {
            let structure = structure(&document, name);
            assert_eq!(structure["probes"], k);
            assert_eq!(structure["size"], m);
            let cells = structure["cells"].as_u64().unwrap();
            assert_eq!(format!("{:.2}", cells as f64 / 8_388_608.0), megabytes, "{fpr} {name}");
        }
        // The misprints have the right integer part before rounding.
        let cells = structure(&document, "bfm")["cells"].as_u64().unwrap();
        assert_eq!((cells >> 23).to_string(), bfm.split('.').next().unwrap());
    }
}

/// Table 2: elements in 2^23 bits as printed. BFM's column is rounded down, CBFM's to the nearest:
/// 121 at 1e-5 needs 1.0029 MB, and 120 is what fits.
#[test]
fn table_2_of_the_cbfm_paper() {
    for (fpr, bfm, cbfm, fits) in [
        ("0.1", 42, 604, 604),
        ("0.01", 21, 302, 302),
        ("0.001", 14, 201, 201),
        ("0.0001", 10, 151, 151),
        ("0.00001", 8, 121, 120),
    ] {
        let document = of_the_tables(fpr, &["--expect", "max", "--memory", "1MiB"]);
        assert_eq!(structure(&document, "bfm")["most_elements"], bfm, "{fpr}");
        let structure = structure(&document, "cbfm");
        assert_eq!(structure["most_elements"], fits, "{fpr}");
        let unrounded = structure["most_elements_unrounded"].as_f64().unwrap();
        assert_eq!(unrounded.round() as u64, cbfm, "{fpr}");
        assert!(structure["memory_bytes"].as_u64().unwrap() <= 1 << 20);
    }
}

const PAIRS: &[&str] = &["--want", "src,dst:3", "--want", "src:1"];

#[test]
fn every_structure_is_there_for_every_goal() {
    for goal in [
        &["--expect", "100k"][..],
        &["--expect", "100k", "--memory", "1MiB"],
        &["--expect", "src,dst=100k", "--expect", "src=5k", "--fpr", "0.001"],
        &["--expect", "100k", "--attribute-fpr", "0.01"],
        &["--expect", "max", "--fpr", "0.01", "--memory", "64KiB"],
        &["--sample", "traces/generated.pcap"],
    ] {
        let document = plan(&[PAIRS, goal].concat());
        let names: Vec<&str> = document["structures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|structure| structure["structure"].as_str().unwrap())
            .collect();
        assert_eq!(names.len(), 16);
        for structure in document["structures"].as_array().unwrap() {
            assert_eq!(structure["fpr"].as_array().unwrap().len(), 2);
            for rate in structure["fpr"].as_array().unwrap() {
                assert!(rate.is_null() || (0.0..=1.0).contains(&rate.as_f64().unwrap()));
            }
        }
        let recommended = document["recommended"].as_str().unwrap();
        assert!(document["reason"].as_str().unwrap().contains(recommended));
        assert_eq!(structure(&document, recommended)["recommended"], true);
    }
}

/// A BFM of five attributes that has to answer for single ones is shown with the size it would
/// need.
#[test]
fn a_structure_that_cannot_fit_is_not_hidden() {
    let line = ["--element", "flow", "--expect", "100k", "--attribute-fpr", "0.001"];
    let document = plan(&line);
    let bfm = structure(&document, "bfm");
    assert_eq!(bfm["fits"], false);
    assert!(bfm["memory_bytes"].as_f64().unwrap() > 1e20);
    let table = flowsieve(&[&["plan"], &line[..]].concat()).done();
    assert!(table.contains("larger than 1 TiB"), "{table}");
}

/// A structure that is too large for the memory is shown with its smallest size, and with all
/// reasons against it.
#[test]
fn a_structure_that_does_not_fit_is_shown_with_its_size_and_all_reasons() {
    let line = |goal: [&'static str; 2]| {
        let line = ["--attributes", "13", "--expect", "1000", "--want", "1,2"];
        [&line[..], &goal].concat()
    };
    let structures = |goal: [&'static str; 2]| plan(&line(goal));
    for (goal, name, bytes, reasons) in [
        (["--memory", "512"], "bfm", 1024, &["1024 bytes", "8192 combinations"][..]),
        (["--memory", "64KiB"], "bfm", 1024, &["8192 combinations"]),
        (["--memory", "64"], "mdbf", 104, &["104 bytes"]),
    ] {
        let document = structures(goal);
        let row = structure(&document, name);
        assert_eq!((&row["fits"], &row["memory_bytes"]), (&false.into(), &bytes.into()));
        let notes = row["notes"].to_string();
        assert!(reasons.iter().all(|reason| notes.contains(reason)), "{notes}");
        assert_eq!(structure(&document, "cbfm")["fits"], true);
    }
    let bfm = structures(["--fpr", "0.001"]);
    let notes = structure(&bfm, "bfm")["notes"].to_string();
    assert!(notes.contains("1 TiB") && notes.contains("8192 combinations"), "{notes}");
}

/// Only the wanted pair is stored: by hand, m = 721 and a rate of 2.7e-39.
#[test]
fn cuts_of_six_attributes_follow_what_is_wanted() {
    let line = [
        "--attributes",
        "6",
        "--expect",
        "1000",
        "--want",
        "1,2",
        "--memory",
        "64KiB",
        "--filter",
        "cbfm,wcbfm",
    ];
    let document = plan(&line);
    let cbfm = structure(&document, "cbfm");
    assert_eq!((&cbfm["size"], cbfm["cuts"].as_array().unwrap().len()), (&721.into(), 14));
    let [equal, weighted] =
        ["cbfm", "wcbfm"].map(|name| structure(&document, name)["weighted_fpr"].as_f64().unwrap());
    assert!(weighted <= equal && equal < 2.8e-39, "{weighted} {equal}");
}

/// An option that only one of all structures takes applies to that one.
#[test]
fn cuts_and_weights_go_with_all_structures() {
    let line = ["--expect", "1k", "--cuts", "src,dst", "--weights", "1,2"];
    assert_eq!(plan(&line)["structures"].as_array().unwrap().len(), 16);
}

#[test]
fn a_sample_is_counted_exactly() {
    let document = plan(&["--sample", "traces/generated.pcap", "--want", "all", "--want", "src"]);
    let count = |element: &str| {
        let line = ["count", "--element", element, "--slice", "all", "--format", "json"];
        let out = flowsieve(&[&line[..], &["traces/generated.pcap"]].concat()).done();
        let document: Value = serde_json::from_str(&out).unwrap();
        document["totals"]["exact"].as_u64().unwrap()
    };
    for (place, element) in [(0, "host-pair"), (1, "src")] {
        assert_eq!(document["wanted"][place]["elements"], count(element));
        assert_eq!(document["wanted"][place]["elements_from"], "measured");
    }
    let spread = document["sample"]["spread"].as_array().unwrap();
    assert_eq!(spread[0]["attribute"], "src");
    assert_eq!(spread[0]["values"], count("src"));
    let dns =
        plan(&["--sample", "traces/netns-dns.pcap", "--element", "dns", "--want", "src,domain"]);
    assert!(dns["wanted"][0]["elements"].as_u64().unwrap() > 0);
}

#[test]
fn trouble_with_a_sample_is_told() {
    let run = flowsieve(&["plan", "--sample", "traces/generated.pcap", "--exact-limit", "10kB"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.sentence().contains("--exact-limit"));
    let run = flowsieve(&["plan", "--sample", "no-such-file.pcap"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    run.sentence();
    // The plan uses the readable part.
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("cut.pcap");
    let (_, bytes) = super::sample();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    let run = flowsieve(&["plan", "--sample", damaged.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("recommended"));
    run.sentence();
}

/// A plan may be kept in a file, without the messages about its sample on standard error.
#[test]
fn a_plan_says_which_sample_was_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [cut, empty] = ["cut.pcap", "empty"].map(|name| folder.path().join(name));
    fs::write(&cut, &super::sample().1[..50_000]).unwrap();
    fs::create_dir(&empty).unwrap();
    let capture = "traces/generated.pcap";
    for bad in [cut.to_str().unwrap(), empty.to_str().unwrap()] {
        let line = ["plan", "--sample", capture, "--sample", bad, "--memory", "1KiB"];
        let run = |more: &[&str]| flowsieve(&[&line[..], more].concat());
        let json = run(&["--format", "json"]);
        assert_eq!(json.code, Some(1), "{}", json.err);
        json.sentence();
        let document: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(document["sample"]["complete"], false);
        let is_bad = |input: &&Value| !input["error"].is_null();
        let inputs = document["inputs"].as_array().unwrap();
        let bad_ones: Vec<_> = inputs.iter().filter(is_bad).map(|input| &input["path"]).collect();
        assert_eq!((inputs.len(), bad_ones), (2, vec![&Value::from(bad)]));
        // The other one is still measured on its filters.
        assert!(document["reason"].as_str().unwrap().contains("measured rate"), "{document}");
        let table = run(&[]).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(table.contains("1 input was not read in full; "), "{table}");
    }
    let document = plan(&["--sample", capture]);
    assert_eq!(document["sample"]["complete"], true);
    assert_eq!(document["inputs"][0]["path"], capture);
    assert_eq!(plan(&["--expect", "1000"])["inputs"], Value::Array(Vec::new()));
}

#[test]
fn formats_have_the_documented_fields() {
    let document = plan(&[PAIRS, &["--sample", "traces/generated.pcap"]].concat());
    assert_eq!(document["schema"], "flowsieve.plan/1");
    assert!(text_of("docs/output.md").contains("`flowsieve.plan/1`"));
    assert_eq!(fields(&document), documented_set("**Plan**", &[]));
    for (part, heading) in
        [("parameters", "**Plan: `parameters`**"), ("sample", "**Plan: `sample`**")]
    {
        assert_eq!(fields(&document[part]), documented_set(heading, &[]), "{part}");
    }
    for (part, heading) in
        [("wanted", "**Plan: `wanted`**"), ("structures", "**Plan: `structures`**")]
    {
        assert_eq!(fields(&document[part][0]), documented_set(heading, &[]), "{part}");
    }
    let line = [&["plan", "--format", "csv", "--expect", "10k"], PAIRS].concat();
    let csv = flowsieve(&line).done();
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let expected = documented_set("**Plan: CSV**", &[]);
    assert_eq!(
        header.iter().map(ToString::to_string).collect::<std::collections::BTreeSet<_>>(),
        expected
    );
    assert_eq!(csv.lines().count(), 1 + 2 * 16);
}

#[test]
fn the_table_fits_a_terminal() {
    let table =
        flowsieve(&[&["plan", "--expect", "100k", "--memory", "1MiB"], PAIRS].concat()).done();
    for line in table.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(table.contains("n/a") && table.contains("not answered"));
    assert!(table.contains("all of their values occur, but not together"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.txt");
    let line = ["plan", "--expect", "100k", "--memory", "1MiB", "-o", path.to_str().unwrap()];
    flowsieve(&[&line[..], PAIRS].concat()).done();
    assert_eq!(fs::read_to_string(path).unwrap(), table);
}

#[test]
fn bad_input_is_answered_with_the_rule_and_a_value_that_works() {
    for (options, word) in [
        (&["--memory", "1MiB"][..], "--expect 100k"),
        (&["--expect", "0"], "--expect 1000 works"),
        (&["--expect", "many"], "100k"),
        (&["--expect", "1k", "--expect", "2k"], "src=5k"),
        (&["--expect", "src=5k"], "--expect 100k"),
        (&["--expect", "src=5k", "--expect", "src,dst=1k"], "src,dst=5000"),
        (&["--expect", "1k", "--want", "source"], "src works"),
        (&["--expect", "1k", "--want", "src,src"], "leave one out"),
        (&["--expect", "1k", "--want", "src", "--want", "src:2"], "add its weights up"),
        (&["--expect", "1k", "--want", "src:0"], "sum above 0"),
        (&["--expect", "1k", "--want", "src:-1", "--want", "dst"], "1 works"),
        (&["--expect", "1k", "--want", "src:x"], "0.5"),
        (&["--expect", "1k", "--known", "1.5"], "worst case"),
        (&["--expect", "1k", "--memory", "63"], "64KiB works"),
        (&["--expect", "1k", "--memory", "2TiB"], "64KiB works"),
        (&["--expect", "1k", "--fpr", "0"], "0.001 works"),
        (&["--expect", "1k", "--fpr", "nan"], "0.001 works"),
        (&["--expect", "1k", "--fpr", "1e-16"], "rates from 8.7e-16 on"),
        (&["--expect", "1k", "--attribute-fpr", "0.9"], "0.001 works"),
        (&["--expect", "1k", "--cuts", "src"], "at least two"),
        (&["--expect", "1k", "--weights", "1"], "1,1 works"),
        (&["--expect", "1k", "--weights", "0,0"], "sum above 0"),
        (&["--expect", "1k", "--weights", "-1,2"], "1 works"),
        (&["--expect", "1k", "--weights", "1,2", "--filter", "cbfm,bfm"], "--filter wcbfm works"),
        (&["--expect", "1k", "--cuts", "src,dst", "--filter", "bfm"], "--filter cbfm works"),
        (&["--expect", "1k", "--weights", "1,2", "--attribute-fpr", "0.1"], "--fpr instead"),
        (&["--expect", "max"], "--memory 1MiB"),
        (&["--expect", "max", "--memory", "1MiB", "--fpr", "1e-19"], "rates from 8.7e-19 on"),
        (&["--expect", "1k", "--memory", "1MiB", "--fpr", "0.1"], "--expect max"),
        (&["--expect", "1k", "--attributes", "17"], "3 works"),
        (&["--expect", "1k", "--attributes", "0"], "3 works"),
        (&["--expect", "1k", "--filter", "quotient"], "cbfm"),
        (&["--undirected", "--element", "src", "--expect", "1k"], "two ends"),
        (&["--expect", "1k", "--queries-only"], "add --element dns"),
        (&["--expect", "1k", "--attributes", "3", "--tunnel", "inner"], "--tunnel"),
    ] {
        let run = flowsieve(&[&["plan"], options].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}: {}", run.err);
        assert!(run.err.contains(word), "no `{word}` in: {}", run.err);
        if !run.err.starts_with("error: ") {
            run.sentence();
        }
    }
}

/// Without a sample values are assumed to be evenly spread, and every recommendation says so.
#[test]
fn a_plan_without_a_sample_says_what_it_rests_on() {
    let given = ["--expect", "10k", "--memory", "64KiB"];
    let sampled = ["--sample", "traces/generated.pcap", "--memory", "64KiB"];
    let remedy = "measure your traffic with --sample CAPTURE";
    let matrix = ["--filter", "cbfm"];
    for (line, assumption) in [
        (given.to_vec(), Some("this is computed for evenly spread values")),
        ([&given[..], &matrix].concat(), Some("skewed traffic ruins this rate")),
        (sampled.to_vec(), None),
    ] {
        let table = flowsieve(&[&["plan"], &line[..]].concat()).done();
        let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
        let document = plan(&line);
        let reason = document["reason"].as_str().unwrap().to_owned();
        for text in [&table, &reason] {
            assert_eq!(text.contains(remedy), assumption.is_some(), "{text}");
            assert!(text.contains(assumption.unwrap_or("")), "{text}");
        }
        let rests_on = if assumption.is_some() { "even_values" } else { "sample" };
        assert_eq!(document["rests_on"], rests_on);
        assert_eq!(document["structures"][0]["rests_on"], rests_on);
        for format in ["csv", "jsonl"] {
            let out = flowsieve(&[&["plan", "--format", format], &line[..]].concat()).done();
            assert!(out.contains("rests_on") && out.contains(rests_on), "{out}");
        }
    }
    // Attributes without a kind cannot be sampled.
    let abstract_plan = plan(&["--attributes", "2", "--expect", "1k"]);
    let reason = abstract_plan["reason"].as_str().unwrap();
    assert!(reason.contains("no sample was measured") && !reason.contains("--sample"), "{reason}");
}

/// At 0.5 bits per element the filter alone would predict an infinite error.
#[test]
fn the_error_of_counts_is_predicted() {
    let planned = plan(&["--expect", "1M", "--memory", "64KiB"]);
    let error = |name| structure(&planned, name)["count_std_error"].as_f64();
    // One filter: 3.7 % at most, and less before it is full.
    assert!(error("subset").is_some_and(|error| (0.001..0.037).contains(&error)));
    assert!(error("bloom").is_some_and(|error| (0.001..0.037).contains(&error)));
    assert_eq!((error("mdbf"), error("exact")), (None, Some(0.0)));
    assert!(error("hll").is_some_and(|error| (error - 0.003_252).abs() < 1e-6));
}

/// With a sample the best structures by formula are built and queried, and the best of them is the
/// one that `compare` builds for the same queries. A pipe cannot be read again for that.
#[test]
fn a_sample_decides_by_what_was_measured() {
    let capture = "traces/generated.pcap";
    for wants in [&["--want", "src,dst"][..], &["--want", "src,dst", "--want", "src"]] {
        let goal = [wants, &["--memory", "1KiB"]].concat();
        let document = plan(&[&["--sample", capture][..], &goal].concat());
        let measured = |row: &Value| row["measured_weighted_fpr"].as_f64();
        let rows = document["structures"].as_array().unwrap();
        let all: Vec<f64> = rows.iter().filter_map(measured).collect();
        let lowest = all.iter().copied().fold(1.0, f64::min);
        assert!((2..=4).contains(&all.len()), "{all:?}");
        let recommended = document["recommended"].as_str().unwrap();
        let best = structure(&document, recommended);
        assert!(measured(best).unwrap() <= 1.2 * lowest, "{document}");
        let rates = best["measured_rates"].as_array().unwrap();
        assert_eq!(rates.len(), wants.len() / 2);
        assert!(document["reason"].as_str().unwrap().contains("measured rate"));
        let line = ["compare", "--format", "json", "--filter", "plan", "--slice", "all", capture];
        let compared = flowsieve(&[&line[..], &goal].concat()).done();
        let compared: Value = serde_json::from_str(&compared).unwrap();
        assert_eq!(compared["structures"][0]["structure"], recommended);
    }
    let piped = feed(&["plan", "--sample", "-", "--memory", "1KiB"], &fs::read(capture).unwrap());
    let piped = piped.done().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(piped.contains("computed, not measured") && !piped.contains(" measured:"), "{piped}");
}
