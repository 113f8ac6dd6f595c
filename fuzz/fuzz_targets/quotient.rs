//! Quotient filters: loads any bytes and queries them in place, and compares any insertions and
//! removals with a map.
#![no_main]

use flowsieve::filters::{QuotientFilter, QuotientInPlace};
use flowsieve::hashing::{Checksum, Digest};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    // The bytes as a file; its checksum is corrected if the first byte is odd.
    let mut file = rest.to_vec();
    if choice & 1 == 1 && file.len() > 8 {
        let end = file.len() - 8;
        let mut checksum = Checksum::new();
        checksum.update(&file[..end]);
        file[end..].copy_from_slice(&checksum.value().to_le_bytes());
    }
    let some: Vec<Digest> = (0..16).map(Digest::from_value).collect();
    if let Ok(Ok(filter)) = QuotientInPlace::open(&file[..], file.len() as u64) {
        for &element in &some {
            let _ = filter.contains(element);
        }
    }
    if let Ok(mut filter) = QuotientFilter::load(&file) {
        assert_eq!(filter.save(), file, "what is loaded is what was saved");
        let before: Vec<u64> = some.iter().map(|&of| filter.count(of)).collect();
        filter.insert(some[0]);
        assert!(filter.contains(some[0]) && filter.count(some[0]) > before[0]);
        assert!(filter.remove(some[0]));
        assert_eq!(filter.save(), file, "a removal undoes an insertion");
    }
    // The bytes as changes of a filter. The elements are few, so that counts grow and removals find
    // something. The fingerprints are long, so that no two of 128 elements share one, and the
    // counts equal those of the map.
    let Ok(mut filter) = QuotientFilter::new(48 + u32::from(choice % 9)) else { return };
    let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
    for (at, &byte) in rest.iter().enumerate() {
        let (number, inserts) = (byte & 0x7f, byte & 0x80 == 0);
        let element = Digest::from_value(number.into());
        let count = counts.entry(number).or_default();
        if inserts {
            filter.insert(element);
            *count += 1;
        } else {
            assert_eq!(filter.remove(element), *count > 0);
            *count = count.saturating_sub(1);
        }
        assert_eq!(filter.count(element), *count);
        // Changes are merged when there are many of them; saving merges them earlier.
        if at % 61 == 60 {
            let _ = filter.save();
        }
    }
    let saved = filter.save();
    let mut again = QuotientFilter::load(&saved).expect("what was saved is read");
    let Ok(Ok(in_place)) = QuotientInPlace::open(&saved[..], saved.len() as u64) else {
        panic!("what was saved is opened");
    };
    for (&number, &count) in &counts {
        let element = Digest::from_value(number.into());
        assert_eq!(again.count(element), count);
        assert_eq!(in_place.contains(element), Ok(count > 0));
    }
    assert_eq!(again.insertions(), counts.values().sum::<u64>());
    let sum = again.insertions();
    again.unite(&filter).expect("fingerprints have one length");
    assert_eq!(again.insertions(), 2 * sum);
    // The same elements in batches.
    let batch: Vec<Digest> = counts
        .iter()
        .flat_map(|(&number, &count)| (0..count).map(move |_| Digest::from_value(number.into())))
        .collect();
    again.remove_batch(&batch);
    assert_eq!(again.save(), saved);
    again.remove_batch(&batch);
    assert_eq!(again.insertions(), 0);
    again.insert_batch(&batch);
    assert_eq!(again.save(), saved);
});
