//! Texts that people give: questions, labels, names. The program's own numbers with units are not in the
//! library; they have tests beside their parsers.
#![no_main]

use flowsieve::decode::{NAME_MAX, dotted, labels_from_text};
use flowsieve::elements::{ElementKind, ElementLabel, ElementQuery, ElementRule};
use flowsieve::hashing::Digester;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for kind in ElementKind::ALL {
        for undirected in [false, true] {
            let rule = ElementRule {
                kind,
                undirected,
                ..ElementRule::default()
            };
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
});
