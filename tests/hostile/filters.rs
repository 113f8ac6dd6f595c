//! Damaged saved filters are refused with a message, or they are filters that answer.

use super::mutate::mutate;
use super::mutations::{Tell, in_parallel};
use super::random::Random;
use super::samples::Sample;
use flowsieve::elements::ElementLabel;
use flowsieve::filters::saved::SavedFilter;
use flowsieve::filters::{ElementDigests, Pattern};
use flowsieve::hashing::{Checksum, Digest};

const CASES: u64 = 60_000;

fn golden() -> Vec<Sample> {
    let folder = format!("{}/crates/flowsieve-filters/tests/golden", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let samples = paths.iter().map(|path| {
        let bytes = std::fs::read(path).unwrap();
        Sample {
            name: "golden",
            format: flowsieve::trace::InputFormat::Auto,
            header: 0,
            ends: Vec::new(),
            other_ends: Vec::new(),
            fields: (8..bytes.len().min(160)).step_by(4).collect(),
            is_text: false,
            is_compressed: false,
            bytes,
        }
    });
    samples.collect()
}

/// Calls every method of a filter.
fn use_all(mut filter: SavedFilter) {
    let attributes: Vec<Digest> = (0..filter.spec().attributes().unwrap_or(2))
        .map(|i| Digest::from_value(i as u64))
        .collect();
    let element = ElementDigests { whole: Digest::from_value(7), attributes: &attributes };
    filter.insert(element);
    assert!(filter.contains(element), "what was inserted is there");
    let given: Vec<Option<Digest>> = attributes.iter().map(|&digest| Some(digest)).collect();
    let _ = filter.contains_where(Pattern { whole: Some(element.whole), attributes: &given });
    let _ = (
        filter.stats(),
        filter.distinct(),
        filter.distinct_of(1),
        ElementLabel::parse(filter.label()),
    );
    let mut out = Vec::new();
    filter.save(&mut out).unwrap();
}

/// Corrects the checksums of a saved filter, so that damage is not refused because of them. `head`
/// is the end of its head.
fn sealed(mut bytes: Vec<u8>, head: usize) -> Vec<u8> {
    for end in [head, bytes.len()] {
        if end >= 8 && end <= bytes.len() {
            let mut checksum = Checksum::new();
            checksum.update(&bytes[..end - 8]);
            bytes[end - 8..end].copy_from_slice(&checksum.value().to_le_bytes());
        }
    }
    bytes
}

fn head_of(bytes: &[u8]) -> usize {
    let sum = |end: usize| {
        let mut checksum = Checksum::new();
        checksum.update(&bytes[..end]);
        checksum.value().to_le_bytes()
    };
    8 + (44..bytes.len() - 8).find(|&end| bytes[end..end + 8] == sum(end)).unwrap()
}

#[test]
fn damaged_saved_filters_are_refused_or_answer() {
    let samples = golden();
    let heads: Vec<usize> = samples.iter().map(|sample| head_of(&sample.bytes)).collect();
    let loaded = in_parallel(CASES, |number| {
        let _tell = Tell(number, "golden");
        let mut random = Random::new(number);
        let which = number as usize % samples.len();
        let mut bytes = mutate(&samples[which], &samples, &mut random);
        if number % 4 > 0 {
            bytes = sealed(bytes, heads[which]);
            // Corrects the length, too.
            if number % 4 == 3 && bytes.len() > 24 {
                let length = bytes.len() as u64;
                bytes[16..24].copy_from_slice(&length.to_le_bytes());
                bytes = sealed(bytes, heads[which]);
            }
        }
        match SavedFilter::read(&mut &*bytes, bytes.len() as u64) {
            Ok(filter) => {
                use_all(filter);
                1
            }
            Err(error) => {
                let sentence = error.to_string();
                assert!(!sentence.contains('\n') && sentence.len() < 500, "{sentence}");
                0
            }
        }
    });
    assert!((100..CASES).contains(&loaded), "{loaded} of {CASES} were loaded");
}
