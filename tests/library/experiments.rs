//! The tables and figures of the papers: every experiment runs, has the same result for every
//! number of threads, and its formulas agree with an independent computation.

use flowsieve::experiments::{ALL, Agreement, Cell, Experiment, Scale, Settings, TOLERANCE};
use std::collections::HashSet;
use std::path::Path;

fn settings(threads: usize) -> Settings {
    Settings { scale: Scale::Small, seed: 1, threads, captures: Vec::new(), words: None }
}

fn run(name: &str) -> Experiment {
    let entry = ALL.iter().find(|entry| entry.name == name).unwrap();
    entry.run(&settings(2)).unwrap()
}

fn cell<'a>(experiment: &'a Experiment, label: &str) -> &'a Cell {
    experiment
        .cells
        .iter()
        .find(|cell| cell.label == label)
        .unwrap_or_else(|| panic!("no {label} in {}", experiment.name))
}

/// Removes the measured times, which differ in every run.
fn without_times(mut experiment: Experiment) -> Experiment {
    for cell in experiment.cells.iter_mut().filter(|cell| cell.is_time) {
        cell.measured = None;
    }
    let of_times = experiment.charts.iter_mut();
    for chart in of_times.filter(|chart| chart.y.label.starts_with("ns ")) {
        chart.curves.iter_mut().for_each(|curve| curve.points.clear());
    }
    experiment
}

/// Captures that cannot be read are not reported as captures with too few elements.
#[test]
fn generated_traffic_says_that_captures_could_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.pcap");
    std::fs::write(&junk, [0x5a; 3000]).unwrap();
    for name in ["cmdbf-fig-9", "cbfm-fig-8"] {
        let entry = ALL.iter().find(|entry| entry.name == name).unwrap();
        let settings = Settings { captures: vec![junk.clone()], ..settings(2) };
        let experiment = entry.run(&settings).unwrap();
        let [problem] = &experiment.problems[..] else { panic!("{:?}", experiment.problems) };
        assert!(experiment.remarks[0].contains(", as far as they could be read: "), "{name}");
        assert_eq!(experiment.remarks[1], format!("1 capture was not read in full; {problem}."));
    }
}

/// Checks that among the cells with the same figure of a paper those that agree are nearer to its
/// range than those that differ. Their range is the union of the ranges of these cells.
fn one_deviation_has_one_verdict(experiment: &Experiment) {
    let figures = || experiment.cells.iter().filter_map(|cell| cell.paper);
    let range = |value: f64| {
        let of_one = figures().filter(move |paper| paper.value.to_bits() == value.to_bits());
        of_one.fold((value, value), |(least, most), paper| {
            (least.min(paper.least), most.max(paper.most))
        })
    };
    let judged: Vec<_> = experiment
        .cells
        .iter()
        .filter_map(|cell| {
            let paper = cell.paper?;
            let (truth, error) = match (cell.formula, cell.measured) {
                (Some(formula), _) => (formula, cell.rounding),
                (None, measured) => (measured?.mean, TOLERANCE * measured?.std_error),
            };
            let (least, most) = range(paper.value);
            let apart = (least - truth).max(truth - most);
            Some((paper.value, apart - error, cell))
        })
        .collect();
    let of = |agreement| {
        let judged = judged.iter();
        judged.filter(move |(.., cell)| cell.agreement() == agreement)
    };
    for (value, near, agrees) in of(Agreement::Agrees) {
        for (other, far, differs) in of(Agreement::PaperDiffers) {
            let is_one = value.to_bits() == other.to_bits();
            assert!(!is_one || near < far, "{}: {agrees:?} {differs:?}", experiment.name);
        }
    }
}

#[test]
fn every_experiment_runs_and_threads_change_nothing() {
    let mut names = HashSet::new();
    let mut charts = HashSet::new();
    for entry in ALL {
        assert!(names.insert(entry.name));
        let one = without_times(entry.run(&settings(1)).unwrap());
        assert!(!one.cells.is_empty(), "{}", entry.name);
        let mut labels = HashSet::new();
        for cell in &one.cells {
            assert!(labels.insert(&cell.label), "{}: {}", entry.name, cell.label);
            let numbers = [
                cell.paper.map(|paper| paper.value),
                cell.formula,
                cell.measured.map(|measured| measured.mean),
                cell.measured.map(|measured| measured.std_error),
            ];
            for number in numbers.into_iter().flatten() {
                assert!(number.is_finite(), "{}: {cell:?}", entry.name);
            }
        }
        for chart in &one.charts {
            assert!(charts.insert(chart.name.clone()), "{}", chart.name);
            assert!(!chart.curves.is_empty(), "{}", chart.name);
        }
        one_deviation_has_one_verdict(&one);
        for threads in [2, 4] {
            let more = without_times(entry.run(&settings(threads)).unwrap());
            assert!(one == more, "{} with {threads} threads", entry.name);
        }
    }
}

#[test]
fn another_seed_is_another_experiment() {
    let entry = ALL.iter().find(|entry| entry.name == "cbfm-table-3").unwrap();
    let other = Settings { seed: 2, ..settings(2) };
    assert!(entry.run(&settings(2)).unwrap() != entry.run(&other).unwrap());
}

fn assert_formula(experiment: &Experiment, label: &str, expected: f64) {
    let ours = cell(experiment, label).formula.unwrap();
    assert!((ours / expected - 1.0).abs() < 1e-6, "{label}: {ours} {expected}");
}

// The numbers below come from an independent computation.

#[test]
fn formulas_of_the_cmdbf_paper() {
    let table = run("cmdbf-table-1");
    for (label, expected) in [
        ("L=2 k=4 MDBF theory", 0.061_010_035),
        ("L=2 k=8 CMDBF theory", 0.112_424_415),
        ("L=5 k=4 CMDBF mean", 0.000_227_093_049_565),
        ("L=5 k=8 CMDBF mean", 0.012_639_249_038),
    ] {
        assert_formula(&table, label, expected);
    }
    let space = run("cmdbf-space");
    assert_formula(&space, "L = 5, CMDBF", 196_608.0);
    assert_formula(&space, "L = 5, CMDBF saves", 87.712);
    assert_eq!(cell(&space, "L = 5, CMDBF saves").agreement(), Agreement::Agrees);
    // Each run has 500 negatives, and differences between filters add little to the binomial
    // deviation.
    let sd = cell(&table, "L=2 k=8 MDBF sd").formula.unwrap();
    let binomial = (0.232_938_f64 * 0.767_062 / 500.0).sqrt();
    assert!(sd > binomial && sd < 1.05 * binomial, "{sd}");
    let examples = run("cmdbf-examples");
    assert!(examples.cells.iter().all(|cell| {
        let measured = cell.measured.unwrap().mean;
        (cell.paper.unwrap().value - measured).abs() < 1e-12
    }));
}

#[test]
fn formulas_of_the_cbfm_paper() {
    let table = run("cbfm-table-3");
    assert_formula(&table, "ε = 1e-1, BFM memory", 13_125.999_598_5);
    assert_formula(&table, "ε = 1e-5, CBFM memory", 68.455_918_312);
    let figure = run("cbfm-fig-11");
    assert_formula(&figure, "d = 3, BFM", 13_824_000.0);
    assert_formula(&figure, "d = 4, CBFM", 27_619_200.0);
    assert_formula(&figure, "d = 3, BFM / CBFM", 240.250_260_688);
    let figure = run("cbfm-memory");
    assert_formula(&figure, "d = 8, BFM", 6_975_757_441.0 / 8.0);
    assert_formula(&figure, "d = 8, CBFM", 796_539_777.0 / 8.0);
    // All cells of one claim of the paper have the same verdict.
    let rates = run("cbfm-fig-7");
    let pairs = rates.cells.iter();
    let pairs = pairs.filter(|cell| cell.label.starts_with("{2,3}, CBFM, one cut"));
    let verdicts: HashSet<_> = pairs.map(|cell| format!("{:?}", cell.agreement())).collect();
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let table = run("cbfm-table-2");
    for (label, most) in
        [("ε = 1e-1, BFM", 42.0), ("ε = 1e-1, CBFM", 604.0), ("ε = 1e-5, CBFM", 120.0)]
    {
        let measured = cell(&table, label).measured.unwrap().mean;
        assert!((measured - most).abs() < 1e-12, "{label}: {measured}");
    }
}

#[test]
fn formulas_of_the_counting_filters() {
    let tables = run("scbf-tables-2-3");
    assert_formula(&tables, "1 bits, j = 2: as printed", 0.250_365_776);
    assert_formula(&tables, "5 bits, j = 32: as printed", 3.071_665_676e-41);
    assert_formula(&tables, "1 bits, j = 2: one counter", 0.154_241_653_3);
    assert_formula(&tables, "4 bits, j = 16: one counter", 7.418_974_045e-17);
    let table = run("scbf-table-4");
    assert_formula(&table, "4 bits, CBF", 7.072_832_256_7e-17);
    let figure = run("course-fig-2");
    assert_formula(&figure, "m/n = 8: 0.6185^(m/n)", 0.021_415_847);
    assert_formula(&figure, "m/n = 8: best k", 5.545_177_444);
    let rates = run("dleft-rate");
    assert_formula(&rates, "B = 2^13, r = 11, n = 196608", 0.011_650_353_2);
}

#[test]
fn captures_and_words_of_the_user_are_used() {
    let mut with = settings(2);
    with.captures = vec![
        Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/generated.pcap"),
        "/nonexistent/capture.pcap".into(),
    ];
    let entry = ALL.iter().find(|entry| entry.name == "cmdbf-fig-9").unwrap();
    let found = entry.run(&with).unwrap();
    assert!(found.remarks[0].starts_with("Real captures"), "{:?}", found.remarks);
    assert!(found.cells[0].label.starts_with("generated.pcap"));
    with.captures.remove(0);
    let found = entry.run(&with).unwrap();
    assert!(found.remarks[0].contains("not real traffic"), "{:?}", found.remarks);

    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("words");
    std::fs::write(&list, "one\ntwo\r\n\none\nthree\n").unwrap();
    with.words = Some(list.clone());
    let entry = ALL.iter().find(|entry| entry.name == "course-fig-3").unwrap();
    let found = entry.run(&with).unwrap();
    assert!(found.remarks[0].contains("3 distinct"), "{:?}", found.remarks);
    std::fs::write(&list, "").unwrap();
    entry.run(&with).unwrap();
    std::fs::remove_file(&list).unwrap();
    let error = entry.run(&with).unwrap_err().to_string();
    assert!(error.contains("FLOWSIEVE_WORDS"), "{error}");
}
