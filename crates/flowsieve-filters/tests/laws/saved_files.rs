//! Saved filters: files of other machines, damaged files, and files with false claims.

use flowsieve_filters::hashing::{Checksum, Digest, Digester, shard_of};
use flowsieve_filters::saved::{LoadError, SavedFilter, UnionError};
use flowsieve_filters::{
    BloomSpec, CartesianSpec, CmdbfSpec, Combination, CountingSpec, DigestColumns, DleftSpec,
    ElementDigests, FilterSpec, IndexMap, LineShape, MatrixSpec, MdbfSpec, PlannedCombination,
    Refill, ScalableSpec, SplitCountingSpec, SubsetSpec,
};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

/// Returns name, parameters and shards of each structure, in every layout of its state.
fn small() -> Vec<(&'static str, FilterSpec, usize)> {
    let combination = |mask| PlannedCombination { mask, probes: 3 };
    vec![
        ("bloom", FilterSpec::Bloom(BloomSpec { bits: 700, probes: 4 }), 2),
        ("mdbf", FilterSpec::Mdbf(MdbfSpec { attributes: 2, bits: 100, probes: 3 }), 1),
        (
            "cmdbf",
            FilterSpec::Cmdbf(CmdbfSpec {
                attributes: 2,
                bits: 256,
                probes: 3,
                combination: Combination::XorIndependent,
            }),
            1,
        ),
        (
            "subset",
            FilterSpec::Subset(SubsetSpec {
                halving: false,
                attributes: 2,
                shape: 3.into(),
                probes: 4,
                combinations: vec![combination(0b01), combination(0b10)],
            }),
            2,
        ),
        (
            "counting",
            FilterSpec::Counting(CountingSpec { counters: 101, probes: 3, counter_bits: 3 }),
            2,
        ),
        (
            "split-counting",
            FilterSpec::SplitCounting(SplitCountingSpec { part: 33, probes: 3, counter_bits: 5 }),
            1,
        ),
        (
            "scalable",
            FilterSpec::Scalable(ScalableSpec {
                part: 20,
                probes: 3,
                counter_bits: 4,
                most_links: 5,
                refill: Refill::default(),
            }),
            1,
        ),
        (
            "dleft-16",
            FilterSpec::Dleft(DleftSpec { buckets: 4, remainder_bits: 10, counter_bits: 4 }),
            1,
        ),
        (
            "dleft-32",
            FilterSpec::Dleft(DleftSpec { buckets: 2, remainder_bits: 20, counter_bits: 2 }),
            1,
        ),
        (
            "cartesian",
            FilterSpec::Cartesian(CartesianSpec { attributes: 2, size: 20, probes: 2 }),
            1,
        ),
        (
            "matrix",
            FilterSpec::Matrix(MatrixSpec {
                sizes: vec![40, 30],
                cuts: vec![0b11],
                probes: 2,
                index_map: IndexMap::Rank,
            }),
            1,
        ),
    ]
}

fn digests(number: u32) -> (Digest, [Digest; 2]) {
    let digester = Digester::new(9);
    let of = |value: u32| digester.digest(&value.to_le_bytes());
    (of(number), [of(number % 7), of(number / 7)])
}

fn filter(spec: &FilterSpec, shards: usize, elements: u32) -> SavedFilter {
    let label = b"what the elements are".to_vec();
    let mut filter = SavedFilter::empty(spec.clone(), 9, label, shards).unwrap();
    for number in 0..elements {
        let (whole, attributes) = digests(number);
        filter.insert(ElementDigests { whole, attributes: &attributes });
    }
    filter
}

fn bytes_of(filter: &SavedFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<SavedFilter, LoadError> {
    SavedFilter::read(&mut &*bytes, bytes.len() as u64)
}

/// Returns the error, which is one sentence.
fn refused(bytes: &[u8]) -> String {
    let sentence = read(bytes).expect_err("it should be refused").to_string();
    let is_one = !sentence.is_empty()
        && !sentence.contains('\n')
        && !sentence.contains(". ")
        && !sentence.ends_with('.');
    assert!(is_one, "{sentence}");
    sentence
}

#[test]
fn no_byte_can_change() {
    for (name, spec, shards) in small() {
        let bytes = bytes_of(&filter(&spec, shards, 40));
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                assert!(read(&damaged).is_err(), "{name}: byte {at} ^ {flip}");
            }
        }
    }
}

#[test]
fn no_byte_can_be_missing_or_too_many() {
    for (_, spec, shards) in small() {
        let bytes = bytes_of(&filter(&spec, shards, 40));
        for length in 0..bytes.len() {
            refused(&bytes[..length]);
            // Also if the file was cut after its length was read.
            assert!(SavedFilter::read(&mut &bytes[..length], bytes.len() as u64).is_err());
        }
        refused(&[&*bytes, b"\n"].concat());
        refused(&[&*bytes, &*bytes].concat());
    }
}

/// Recomputes both checksums after a change; the head ends where its own checksum does.
fn resealed(bytes: &[u8], head: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for end in [head, bytes.len()] {
        let mut checksum = Checksum::new();
        checksum.update(&bytes[..end - 8]);
        bytes[end - 8..end].copy_from_slice(&checksum.value().to_le_bytes());
    }
    bytes
}

/// Returns where the head of a file ends: after 44 bytes, the label, the parameters and the
/// checksum.
fn head_of(bytes: &[u8]) -> usize {
    (44..bytes.len() - 8)
        .find(|&end| {
            let mut checksum = Checksum::new();
            checksum.update(&bytes[..end]);
            bytes[end..end + 8] == checksum.value().to_le_bytes()
        })
        .unwrap()
        + 8
}

/// Any change with valid checksums gives an error or a filter that can be queried, and never a
/// panic.
#[test]
fn changes_with_valid_checksums_are_found_or_harmless() {
    for (name, spec, shards) in small() {
        let bytes = bytes_of(&filter(&spec, shards, 40));
        let head = head_of(&bytes);
        let mut refusals = 0;
        for at in 0..bytes.len() - 8 {
            for value in [0, 1, 0x7f, 0xff, bytes[at] ^ 0x10] {
                let mut lie = bytes.clone();
                lie[at] = value;
                match read(&resealed(&lie, head)) {
                    Err(_) => refusals += 1,
                    Ok(mut filter) => {
                        filter.stats();
                        filter.distinct();
                        let (whole, attributes) = digests(3);
                        // The change may be in the number of attributes.
                        if filter.spec().attributes().is_none_or(|number| number == 2) {
                            let element = ElementDigests { whole, attributes: &attributes };
                            filter.insert(element);
                            assert!(filter.contains(element), "{name} {at} {value}");
                        }
                        assert!(read(&bytes_of(&filter)).is_ok());
                        // Two filters of the same kind are united whatever they claim.
                        let other = read(&resealed(&lie, head)).unwrap();
                        if filter.unite(&other).is_ok() {
                            let again = read(&bytes_of(&filter));
                            assert!(
                                again.is_ok(),
                                "{name} {at} {value} {:?} {again:?}",
                                filter.distinct()
                            );
                        }
                    }
                }
            }
        }
        assert!(refusals > 100, "{name}: {refusals}");
    }
}

#[test]
fn heads_that_claim_terabytes_are_refused_before_memory_is_allocated() {
    let spec = |bits| FilterSpec::Bloom(BloomSpec { bits, probes: 4 });
    let bytes = bytes_of(&filter(&spec(640), 1, 10));
    let head = head_of(&bytes);
    let place = bytes.windows(8).position(|window| window == 640_u64.to_le_bytes()).unwrap();
    for bits in [704_u64, 1 << 43, u64::MAX, 1 << 63, 0] {
        let mut lie = bytes.clone();
        lie[place..place + 8].copy_from_slice(&bits.to_le_bytes());
        let sentence = refused(&resealed(&lie, head));
        assert!(
            sentence.contains("bytes of state")
                || sentence.contains("cut short")
                || sentence.contains("from 1 to 2^43 bits"),
            "{sentence}"
        );
    }
    // More shards than there is room for, and a length that is not the file's.
    let mut lie = bytes.clone();
    lie[12..16].copy_from_slice(&1024_u32.to_le_bytes());
    assert!(refused(&resealed(&lie, head)).contains("bytes of state"));
    lie[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refused(&resealed(&lie, head)).contains("shards"));
    let mut lie = bytes;
    lie[16..24].copy_from_slice(&(1_u64 << 44).to_le_bytes());
    assert!(refused(&resealed(&lie, head)).contains("17592186044416 by its head"));
}

#[test]
fn errors_name_the_problem() {
    let (_, spec, shards) = &small()[0];
    let bytes = bytes_of(&filter(spec, *shards, 10));
    let head = head_of(&bytes);
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        resealed(&bytes, head)
    };
    for (bytes, words) in [
        (b"GIF89a".to_vec(), "no saved filter"),
        (vec![], "ends at byte 0"),
        (vec![0; 1000], "no saved filter"),
        (
            changed(8, &[2, 0]),
            "of version 2 of the format, and only version 4 is known here; make it again",
        ),
        (changed(8, &[3, 0]), "of version 3"),
        (changed(8, &[5, 0]), "of version 5"),
        (changed(8, &[0, 0]), "of version 0"),
        (changed(10, &[1]), "are not 0"),
        (changed(32, &[7; 8]), "another digest function"),
        (changed(24, &[8]), "another digest function"),
        (changed(40, &[255; 4]), "label is longer"),
        (bytes[..300].to_vec(), "300 bytes, and"),
    ] {
        let sentence = refused(&bytes);
        assert!(sentence.contains(words), "{sentence}");
    }
    let mut damaged = bytes.clone();
    damaged[head + 60] ^= 4;
    assert!(refused(&damaged).contains("checksum at byte"));
}

#[test]
fn filters_that_differ_have_no_union() {
    let bloom = |bits| FilterSpec::Bloom(BloomSpec { bits, probes: 4 });
    let empty = |bits, seed, label: &[u8], shards| {
        SavedFilter::empty(bloom(bits), seed, label.to_vec(), shards).unwrap()
    };
    let mut filter = empty(64, 1, b"pairs", 2);
    for (other, error) in [
        (empty(128, 1, b"pairs", 2), UnionError::Parameters),
        (empty(64, 2, b"pairs", 2), UnionError::Seed),
        (empty(64, 1, b"flows", 2), UnionError::Label),
        (empty(128, 1, b"flows", 2), UnionError::Label),
        (empty(64, 1, b"pairs", 3), UnionError::Shards),
    ] {
        assert_eq!(filter.unite(&other), Err(error));
    }
    assert!(filter.unite(&empty(64, 1, b"pairs", 2)).is_ok());
    assert!(SavedFilter::empty(bloom(64), 0, vec![], 0).is_err());
    assert!(SavedFilter::empty(bloom(64), 0, vec![], 1025).is_err());
    assert!(SavedFilter::empty(bloom(0), 0, vec![], 1).is_err());
    assert!(SavedFilter::empty(bloom(64), 0, vec![0; 1025], 1).is_err());
}

/// Returns a chain of one shard with these elements.
fn chain(refill: Refill, numbers: std::ops::Range<u32>) -> SavedFilter {
    let spec = FilterSpec::Scalable(ScalableSpec {
        part: 40,
        probes: 7,
        counter_bits: 4,
        most_links: 6,
        refill,
    });
    let mut filter = SavedFilter::empty(spec, 9, vec![], 1).unwrap();
    for number in numbers {
        filter.insert(ElementDigests { whole: digests(number).0, attributes: &[] });
    }
    filter
}

#[test]
fn a_chain_that_is_a_union_is_saved_and_loaded() {
    for refill in [Refill::FirstNotFull, Refill::Newest] {
        let mut union = chain(refill, 0..80);
        union.unite(&chain(refill, 60..130)).unwrap();
        let bytes = bytes_of(&union);
        let loaded = read(&bytes).unwrap();
        assert_eq!(bytes_of(&loaded), bytes);
        let mut present = 0;
        for number in 0..2000 {
            let whole = digests(number).0;
            let expected = union.contains(ElementDigests { whole, attributes: &[] });
            assert!(expected || number >= 130);
            let element = ElementDigests { whole, attributes: &[] };
            assert_eq!(loaded.contains(element), expected);
            present += u32::from(expected);
        }
        assert!((130..300).contains(&present), "{present}");
        // Only in a union, which has links of several chains, may the numbers be out of order.
        let head = head_of(&bytes);
        let mut lie = bytes.clone();
        assert_eq!([lie[head], lie[head + 41]], [3, 1], "bounds, and the mark of a union");
        lie[head + 41] = 0;
        let lie = resealed(&lie, head);
        assert!(refused(&lie).contains("do not ascend"));
        // An impossible number of a link, after the mark, the removals and the number of links.
        let mut lie = bytes.clone();
        lie[head + 54..head + 62].fill(0);
        assert!(refused(&resealed(&lie, head)).contains("a number that none has"));
    }
}

/// Each shard is checked for too many links, and a refused union changes nothing.
#[test]
fn a_union_of_too_many_links_is_refused_as_a_whole() {
    let spec = FilterSpec::Scalable(ScalableSpec {
        part: 64,
        probes: 4,
        counter_bits: 4,
        most_links: 2,
        refill: Refill::FirstNotFull,
    });
    let label = b"what the elements are".to_vec();
    let with = |numbers: std::ops::Range<u32>| {
        let mut filter = SavedFilter::empty(spec.clone(), 9, label.clone(), 2).unwrap();
        for number in numbers {
            let whole = digests(number).0;
            // Most elements are in the second shard.
            if number % 8 == 0 || shard_of(whole, 2) == 1 {
                filter.insert(ElementDigests { whole, attributes: &[] });
            }
        }
        filter
    };
    let mut filter = with(0..120);
    let before = bytes_of(&filter);
    let error = filter.unite(&with(1000..1120)).unwrap_err();
    assert!(matches!(error, UnionError::Links { most: 2, links } if links > 2));
    assert_eq!(
        error.to_string(),
        "scalable filters unite or intersect only if together they have at most 2 links in a shard, not 3; count the captures together, or save each with more memory (--memory)"
    );
    assert_eq!(bytes_of(&filter), before);
    // With fewer elements in the second shard there is room.
    assert_eq!(filter.unite(&with(1000..1001)), Ok(()));
    assert_ne!(bytes_of(&filter), before);
}

/// Returns further names, parameters and shards.
fn more() -> Vec<(&'static str, FilterSpec, usize)> {
    vec![
        (
            "dleft-24",
            FilterSpec::Dleft(DleftSpec { buckets: 3, remainder_bits: 20, counter_bits: 2 }),
            1,
        ),
        (
            "subset-several-lines",
            FilterSpec::Subset(SubsetSpec {
                halving: false,
                attributes: 2,
                shape: 5.into(),
                probes: 18,
                combinations: vec![PlannedCombination { mask: 0b10, probes: 9 }],
            }),
            1,
        ),
        ("subset-halving", SubsetSpec::counting(2, LineShape::halving(512), 4).into(), 2),
        ("subset-in-stages", SubsetSpec::counting(2, LineShape::halving(100), 8).into(), 1),
        ("subset-short-lines", SubsetSpec::knowing(2, LineShape::in_bytes(300), 5).into(), 1),
    ]
}

fn golden(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(format!("{name}.fsieve"))
}

/// The files were written once and never change: a filter that was saved long ago and elsewhere
/// loads, answers the same, and is saved with the same bytes.
#[test]
fn golden_files_are_loaded_and_saved_byte_for_byte() {
    for (name, spec, shards) in small().into_iter().chain(more()) {
        let expected = filter(&spec, shards, 40);
        let path = golden(name);
        if std::env::var_os("FLOWSIEVE_WRITE_GOLDEN").is_some() {
            fs::write(&path, bytes_of(&expected)).unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() < 4096);
        let loaded = SavedFilter::load(&path).unwrap();
        assert!(bytes_of(&loaded) == bytes, "{name} is saved otherwise");
        assert!(bytes_of(&expected) == bytes, "{name} is filled otherwise");
        assert_eq!((loaded.spec(), loaded.seed()), (&spec, 9));
        assert_eq!(loaded.label(), b"what the elements are");
        for number in 0..400 {
            let (whole, attributes) = digests(number);
            let element = ElementDigests { whole, attributes: &attributes };
            assert_eq!(loaded.contains(element), expected.contains(element));
            assert!(number >= 40 || loaded.contains(element), "{name} {number}");
        }
        assert_eq!(loaded.stats(), expected.stats());
        assert_eq!(loaded.distinct(), expected.distinct());
    }
}

/// Batches equal single insertions for all structures and shards.
#[test]
fn a_batch_is_saved_like_single_insertions() {
    for (name, spec, _) in small() {
        for shards in [1, 3] {
            let empty = || SavedFilter::empty(spec.clone(), 9, Vec::new(), shards).unwrap();
            let (mut one_by_one, mut batch) = (empty(), empty());
            let (mut whole, mut attributes) = (Vec::new(), Vec::new());
            for number in (0..300).map(|number| number % 170) {
                let (digest, values) = digests(number);
                one_by_one.insert(ElementDigests { whole: digest, attributes: &values });
                whole.push(digest);
                attributes.extend(values);
            }
            batch.insert_batch(DigestColumns { whole: &whole, attributes: &attributes });
            assert!(bytes_of(&batch) == bytes_of(&one_by_one), "{name} {shards}");
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        refused(&bytes);
    }

    #[test]
    fn arbitrary_bytes_after_a_valid_beginning_are_refused(
        which in 0_usize..11,
        kept in 0.0_f64..1.0,
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (_, spec, shards) = &small()[which];
        let bytes = bytes_of(&filter(spec, *shards, 40));
        let kept = (bytes.len() as f64 * kept) as usize;
        let mixed = [&bytes[..kept], &rest].concat();
        if mixed != bytes {
            refused(&mixed);
        }
    }

    #[test]
    fn arbitrary_contents_with_valid_checksums_never_panic(
        which in 0_usize..11,
        writes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (_, spec, shards) = &small()[which];
        let mut bytes = bytes_of(&filter(spec, *shards, 40));
        let head = head_of(&bytes);
        for (at, value) in writes {
            let at = 44 + at.index(bytes.len() - 52);
            bytes[at] = value;
        }
        if let Ok(filter) = read(&resealed(&bytes, head)) {
            filter.stats();
            filter.distinct();
        }
    }
}
