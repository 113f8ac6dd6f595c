//! Compares the functions at the root of the library with the plans that they use.

use super::common;
use flowsieve::decode::{Headers, Tunnel};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Structure};
use flowsieve::trace::Source;
use flowsieve::{Count, Counted};
use std::fs;
use std::io::Cursor;
use std::time::Duration;

const PATHS: [&str; 2] = ["traces/generated.pcap", "traces/netns-dns.pcap"];

/// Returns inputs and totals as text, without the identity of the files.
fn inputs_and_totals(counted: &mut Counted) -> String {
    for input in &mut counted.summary.inputs {
        (input.file, input.file_at_end) = (None, None);
    }
    format!("{:?}", counted.summary)
}

#[test]
fn the_defaults_are_those_of_the_command_line() {
    let plan = common::plan(&PATHS.map(Into::into), ElementKind::FLOW);
    let (slices, _) = common::run(&plan);
    let count = Count::of(PATHS).element(ElementKind::FLOW);
    let counted = count.run().unwrap();
    assert_eq!(counted.slices, slices);
    assert!(counted.into_iter().eq(slices));
}

#[test]
fn captures_from_readers_count_like_those_from_files() {
    let ordered = |count: Count| {
        let mut counted = count.slice(Duration::from_millis(500)).threads(3).run().unwrap();
        (counted.slices.clone(), inputs_and_totals(&mut counted))
    };
    let readers = || PATHS.map(|path| Source::reader(path, Cursor::new(fs::read(path).unwrap())));
    assert_eq!(ordered(Count::of(readers())), ordered(Count::of(PATHS)));
}

#[test]
fn a_reader_that_was_read_is_an_input_with_an_error() {
    let reader = Source::reader("upload", Cursor::new(fs::read(PATHS[0]).unwrap()));
    let count = Count::of([reader]);
    assert_eq!(count.run().unwrap().summary.totals.packets, 8_000);
    let again = count.run().unwrap();
    let error = again.summary.inputs[0].error.as_ref().unwrap().to_string();
    assert!(error.starts_with("upload: "), "{error}");
    assert!(error.contains("this reader was read before"), "{error}");
}

#[test]
fn choices_that_do_not_go_together_are_refused() {
    let count = || Count::of(PATHS);
    assert!(count().slice(Duration::ZERO).run().is_err());
    assert!(count().memory(1).run().is_err());
    assert!(count().filter(Structure::Exact).without_exact().run().is_err());
    assert!(count().filter(Structure::Hll).rate(0.01, 1_000).run().is_err());
}

#[test]
fn every_choice_reaches_the_plan() {
    let plan = Count::of(PATHS)
        .element(ElementRule { undirected: true, queries_only: true, ..ElementRule::default() })
        .inner_header()
        .dns_port(5353)
        .one_slice()
        .from_first_packet()
        .filter(FilterKind::Bloom)
        .rate(0.01, 5_000)
        .exact_limit(1 << 20)
        .seed(7)
        .threads(2)
        .plan()
        .unwrap();
    assert_eq!((plan.shards, plan.seed, plan.trace.threads), (1, 7, 2));
    assert_eq!(plan.exact_limit_bytes, Some(1 << 20));
    assert_eq!(plan.slicing.width_ns, None);
    assert!(plan.rule.undirected && plan.rule.queries_only);
    let headers = Headers { tunnel: Tunnel::Inner, dns_ports: vec![5353] };
    assert_eq!(plan.trace.headers, headers);
    assert!(plan.counter_bytes().unwrap() > 5_000);
    let plan = Count::of(PATHS).shards(3).expect(100).without_exact().plan().unwrap();
    assert_eq!((plan.shards, plan.exact_limit_bytes), (3, None));
    assert!(Count::of(PATHS).filter(Structure::Exact).plan().unwrap().counter.is_none());
}
