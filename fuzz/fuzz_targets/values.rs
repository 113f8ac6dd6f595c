//! Texts that users give: the words of command lines, queries, labels, names.
//!
//! The first byte chooses an option, and the rest is its value; or the rest is a whole command line
//! with one word per line.
#![no_main]

use flowsieve::cli;
use flowsieve::decode::{NAME_MAX, dotted, labels_from_text};
use flowsieve::elements::{ElementKind, ElementLabel, ElementQuery, ElementRule};
use flowsieve::hashing::Digester;
use flowsieve::index::{AddressRange, DomainRange};
use flowsieve::trace::time_from_text;
use libfuzzer_sys::fuzz_target;

/// The words of a command line before a value of each kind.
const OPTIONS: &[&[&str]] = &[
    &["count", "x", "--slice"],
    &["count", "x", "--memory"],
    &["count", "x", "--fpr"],
    &["count", "x", "--expect"],
    &["count", "x", "--seed"],
    &["count", "x", "--filter"],
    &["count", "x", "--dns-port"],
    &["count", "x", "--element"],
    &["count", "x", "--shards"],
    &["count", "x", "--od"],
    &["count", "x", "--expect", "9", "--want"],
    &["count", "x", "--expect", "9", "--filter", "cbfm", "--cuts"],
    &["count", "x", "--expect", "9", "--filter", "wcbfm", "--weights"],
    &["compare", "x", "--want"],
    &["compare", "x", "--filter"],
    &["dedup", "x", "--window"],
    &["dedup", "x", "--slice"],
    &["dedup", "x", "--distinguish"],
    &["flows", "x", "--idle"],
    &["flows", "x", "--memory"],
    &["generate", "--packets"],
    &["generate", "--duration"],
    &["generate", "--scan"],
    &["generate", "--snaplen"],
    &["index", "build", "a", "x", "--region"],
    &["index", "search", "a", "--host"],
    &["index", "search", "a", "--domain"],
    &["index", "search", "a", "--from"],
    &["index", "search", "a", "--port"],
    &["filter", "query", "x"],
    &["reproduce"],
    &["plan", "--expect"],
    &["plan", "--expect", "9", "--want"],
    &["plan", "--expect", "9", "--fpr"],
    &["plan", "--expect", "9", "--filter"],
    &["plan", "--expect", "9", "--cuts"],
    &["plan", "--expect", "9", "--attributes"],
    &["plan", "--expect", "9", "--attributes", "4", "--weights"],
    &["plan", "--expect", "9", "--attributes", "8", "--cuts"],
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match OPTIONS.get(usize::from(choice) / 2) {
        Some(option) => {
            let option = option.iter().copied();
            understood(option.chain([text]));
        }
        None if choice < 160 => understood(text.split('\n')),
        None => texts(text),
    }
});

/// Checks that a command line is understood, or refused with a message.
fn understood<'a>(words: impl Iterator<Item = &'a str>) {
    let wrong = cli::misunderstood(std::iter::once("flowsieve").chain(words));
    assert!(wrong.is_none_or(|sentence| !sentence.is_empty()));
}

fn texts(text: &str) {
    for kind in ElementKind::ALL {
        for undirected in [false, true] {
            let rule = ElementRule { kind, undirected, ..ElementRule::default() };
            let _ = ElementQuery::parse(text, &rule, Digester::new(0));
        }
    }
    if let Some(label) = ElementLabel::parse(text.as_bytes()) {
        assert_eq!(label.to_string(), text);
    }
    let mut buffer = [0; NAME_MAX];
    if let Some(labels) = labels_from_text(text.as_bytes(), &mut buffer) {
        let _ = dotted(labels);
    }
    if let Ok(range) = text.parse::<AddressRange>() {
        let address = text.split('/').next().expect("split gives one");
        let address = address.parse().expect("the range has an address");
        assert!(range.contains(address), "{text}");
    }
    let _ = (text.parse::<DomainRange>(), time_from_text(text));
}
