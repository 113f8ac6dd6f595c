//! Reads any bytes as a saved filter. If the first byte is odd, the checksums are corrected, so
//! that damage is not refused because of them.
#![no_main]

use flowsieve::filters::ElementDigests;
use flowsieve::filters::saved::SavedFilter;
use flowsieve::hashing::{Checksum, Digest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, file)) = bytes.split_first() else { return };
    let mut file = file.to_vec();
    if choice & 1 == 1 && file.len() > 60 {
        let length = file.len() as u64;
        file[16..24].copy_from_slice(&length.to_le_bytes());
        // The head has at least 52 bytes; the first byte says where it ends.
        let head = 52 + usize::from(choice >> 1).min(file.len() - 52);
        for end in [head, file.len()] {
            let mut checksum = Checksum::new();
            checksum.update(&file[..end - 8]);
            file[end - 8..end].copy_from_slice(&checksum.value().to_le_bytes());
        }
    }
    let Ok(mut filter) = SavedFilter::read(&mut &*file, file.len() as u64) else { return };
    let attributes: Vec<Digest> = (0..filter.spec().attributes().unwrap_or(2))
        .map(|i| Digest::from_value(i as u64))
        .collect();
    let element = ElementDigests { whole: Digest::from_value(7), attributes: &attributes };
    filter.insert(element);
    assert!(filter.contains(element));
    let _ = (filter.stats(), filter.distinct());
    let mut out = Vec::new();
    filter.save(&mut out).expect("memory");
    let again = SavedFilter::read(&mut &*out, out.len() as u64).expect("what was saved is read");
    if filter.unite(&again).is_ok() {
        assert!(filter.contains(element));
        out.clear();
        filter.save(&mut out).expect("memory");
        let united = SavedFilter::read(&mut &*out, out.len() as u64);
        assert!(united.is_ok(), "{:?}", united.err());
    }
});
