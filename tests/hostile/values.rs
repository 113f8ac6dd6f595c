//! Texts that users give: queries to a saved filter, and its label. (Numbers with units have tests
//! of their own beside their parsers, in the program.)

use super::mutations::{Tell, in_parallel};
use super::random::Random;
use flowsieve::decode::{NAME_MAX, dotted, labels_from_text};
use flowsieve::elements::{ElementKind, ElementLabel, ElementQuery, ElementRule};
use flowsieve::hashing::Digester;
use flowsieve::trace::write::WriteFormat;
use std::path::Path;

const SAMPLES: [&str; 9] = [
    "10.0.0.1,10.0.0.2",
    "2001:db8::1,*",
    "10.0.0.1,10.0.0.2,tcp,80,*",
    "10.0.0.1,10.0.0.2,www.example.com",
    "*,*,a\\.b\\007.example.",
    "flowsieve.elements/1 element=dns undirected=no tunnel=outer queries_only=yes dns_ports=5353,5355",
    "flowsieve.elements/1 element=host-pair undirected=yes tunnel=inner",
    "capture.pcapng.zst",
    "",
];

const PIECES: [&str; 16] = [
    ",",
    "*",
    ".",
    ":",
    "::",
    "\\",
    "\\000",
    "255",
    "4294967296",
    "=",
    " ",
    "\u{e9}",
    "\u{1f980}",
    "element=",
    "%",
    "\0",
];

#[test]
fn questions_and_labels_of_any_text_are_understood_or_refused() {
    let understood = in_parallel(60_000, |number| {
        let _tell = Tell(number, "texts");
        let mut random = Random::new(number);
        let mut text: Vec<char> = random.pick(&SAMPLES).chars().collect();
        for _ in 0..random.below(4) {
            let at = random.below(text.len() + 1);
            match random.below(4) {
                0 => text.truncate(at),
                1 if at < text.len() => text[at] = char::from(random.next() as u8),
                2 => {
                    let piece: Vec<char> = random.pick(&PIECES).chars().collect();
                    text.splice(at..at, piece);
                }
                _ => {
                    let copy = text[at..].to_vec();
                    text.extend(copy);
                }
            }
        }
        let text: String = text.into_iter().collect();
        let mut understood = 0;
        for kind in ElementKind::ALL {
            let rule = ElementRule { kind, undirected: number % 2 == 0, ..ElementRule::default() };
            match ElementQuery::parse(&text, &rule, Digester::new(number)) {
                Ok(_) => understood += 1,
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        if let Some(label) = ElementLabel::parse(text.as_bytes()) {
            assert_eq!(label.to_string(), text, "a label is read only if it is exactly one");
        }
        let mut buffer = [0; NAME_MAX];
        if let Some(labels) = labels_from_text(text.as_bytes(), &mut buffer) {
            let dotted = dotted(labels);
            let mut again = [0; NAME_MAX];
            assert!(labels.len() < NAME_MAX && dotted.len() >= labels.len().saturating_sub(1));
            let _ = labels_from_text(dotted.as_bytes(), &mut again);
        }
        let _ = WriteFormat::of_name(Path::new(&text));
        understood
    });
    assert!(understood > 1000, "{understood} were understood");
}
