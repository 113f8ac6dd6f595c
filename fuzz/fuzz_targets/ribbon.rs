//! Ribbon filters: opens any bytes and queries them in place, and builds filters of any elements.
#![no_main]

use flowsieve::filters::{RibbonFilter, RibbonInPlace};
use flowsieve::hashing::{Checksum, Digest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let elements: Vec<Digest> = rest
        .chunks(8)
        .map(|chunk| {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            Digest::from_value(u64::from_le_bytes(value))
        })
        .collect();
    // The bytes as a file; its checksum is corrected if the first byte is odd.
    let mut file = rest.to_vec();
    if choice & 1 == 1 && file.len() > 8 {
        let end = file.len() - 8;
        let mut checksum = Checksum::new();
        checksum.update(&file[..end]);
        file[end..].copy_from_slice(&checksum.value().to_le_bytes());
    }
    if let Ok(filter) = RibbonInPlace::open(&file) {
        for &element in elements.iter().take(64) {
            let _ = filter.contains(element);
        }
    }
    let _ = RibbonInPlace::check(&file);
    // The bytes as elements.
    let Ok(filter) = RibbonFilter::build(&elements, u32::from(choice % 34)) else { return };
    assert!(elements.iter().all(|&element| filter.contains(element)));
    let saved = filter.save();
    let again = RibbonInPlace::check(&saved).expect("what was saved is read");
    assert!(elements.iter().all(|&element| again.contains(element)));
});
