//! Workers decompress as the codec does alone: the same bytes, and the same end.

use std::io::{Cursor, Read, Write};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::error::CodecDamage;
use super::parts::{Divided, Parts, Workers};
use super::{Compression, Decompressor, decompressor_with, input::Input, zstd};

/// A frame or a member of a file.
#[derive(Clone, Debug)]
enum Stream {
    Zstd {
        content: Content,
        says_length: bool,
        has_checksum: bool,
        small_window: bool,
    },
    Skippable(usize),
    Gzip(Content),
    Bgzf {
        content: Content,
        /// A field before the one that says how long the member is.
        further_field: bool,
        /// Added to the length that it says.
        longer: i8,
    },
}

#[derive(Clone, Debug)]
struct Content {
    length: usize,
    kind: u8,
}

impl Content {
    /// Bytes that are compressed well, hardly, not at all, or into one byte a block.
    fn bytes(&self) -> Vec<u8> {
        let mut state = self.length as u64 + 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let bytes = (0..self.length as u64).map(|i| match self.kind {
            0 => (i * i % 1013) as u8,
            1 => (random() % 7 * (i % 251)) as u8,
            2 => random() as u8,
            _ => 7,
        });
        bytes.collect()
    }
}

impl Stream {
    fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Zstd { content, says_length, has_checksum, small_window } => {
                let bytes = content.bytes();
                let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(*has_checksum).unwrap();
                encoder.include_contentsize(*says_length).unwrap();
                if *says_length {
                    let length = bytes.len() as u64;
                    encoder.set_pledged_src_size(Some(length)).unwrap();
                }
                if *small_window {
                    encoder.window_log(12).unwrap();
                }
                encoder.write_all(&bytes).unwrap();
                encoder.finish().unwrap()
            }
            Self::Skippable(length) => {
                let mut frame = b"\x51\x2a\x4d\x18".to_vec();
                frame.extend((*length as u32).to_le_bytes());
                frame.resize(8 + length, 1);
                frame
            }
            Self::Gzip(content) => member(flate2::GzBuilder::new(), content),
            Self::Bgzf { content, further_field, longer } => {
                let further: &[u8] = if *further_field { b"XY\x03\0abc" } else { b"" };
                let field = [further, b"BC\x02\0\0\0"].concat();
                let at = 12 + field.len() - 2;
                let mut member = member(flate2::GzBuilder::new().extra(field), content);
                let size = member.len() as i64 - 1 + i64::from(*longer);
                member[at..at + 2].copy_from_slice(&(size as u16).to_le_bytes());
                member
            }
        }
    }
}

fn member(head: flate2::GzBuilder, content: &Content) -> Vec<u8> {
    let mut encoder = head.write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&content.bytes()).unwrap();
    encoder.finish().unwrap()
}

fn content(most: usize) -> impl Strategy<Value = Content> {
    let length = prop_oneof![
        1 => Just(0),
        3 => 1..most.min(300),
        3 => 1..most.min(30_000),
        3 => 1..most,
    ];
    (length, 0..4_u8).prop_map(|(length, kind)| Content { length, kind })
}

fn zstd_stream() -> impl Strategy<Value = Stream> {
    let frame = (
        prop_oneof![20 => content(200_000), 1 => content(2_000_000)],
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    let frame = frame.prop_map(|(content, says_length, has_checksum, small_window)| Stream::Zstd {
        content,
        says_length,
        has_checksum,
        small_window,
    });
    prop_oneof![6 => frame, 1 => (0..50_000_usize).prop_map(Stream::Skippable)]
}

fn gzip_stream() -> impl Strategy<Value = Stream> {
    let block = (content(60_000), any::<bool>(), prop_oneof![40 => Just(0), 1 => any::<i8>()]);
    let block = block.prop_map(|(content, further_field, longer)| Stream::Bgzf {
        content,
        further_field,
        longer,
    });
    prop_oneof![12 => block, 1 => content(200_000).prop_map(Stream::Gzip)]
}

/// Damage that is done to a file.
#[derive(Clone, Debug)]
enum Harm {
    None,
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Zeros(prop::sample::Index, usize),
    Lost(prop::sample::Index, usize),
    Appended(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        2 => Just(Harm::None),
        2 => place().prop_map(Harm::Cut),
        3 => (place(), 0..8_u8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        1 => (place(), 1..3000_usize).prop_map(|(at, length)| Harm::Zeros(at, length)),
        1 => (place(), 1..3000_usize).prop_map(|(at, length)| Harm::Lost(at, length)),
        1 => vec(any::<u8>(), 1..40).prop_map(Harm::Appended),
        1 => (1..9000_usize).prop_map(|length| Harm::Appended(vec![0; length])),
    ]
}

fn harmed(mut file: Vec<u8>, harm: &Harm) -> Vec<u8> {
    match harm {
        Harm::None => {}
        Harm::Cut(at) => file.truncate(at.index(file.len())),
        Harm::Flip(at, bit) => {
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
        }
        Harm::Zeros(at, length) => {
            let at = at.index(file.len());
            let end = file.len().min(at + length);
            file[at..end].fill(0);
        }
        Harm::Lost(at, length) => {
            let at = at.index(file.len());
            let end = file.len().min(at + length);
            file.drain(at..end);
        }
        Harm::Appended(bytes) => file.extend(bytes),
    }
    file
}

/// Bytes, what the end was, and how many of the bytes workers made.
type Outcome = (Vec<u8>, Option<CodecDamage>, usize);

/// Reads as a capture does: the first bytes before there are workers, then into buffers of one
/// length.
fn read(file: &[u8], workers: usize) -> Outcome {
    let count = Workers::default();
    let source = Box::new(Cursor::new(file.to_vec()));
    let (_, reader) = decompressor_with(source, &count);
    read_from(reader, &count, workers)
}

fn read_from(mut reader: Box<dyn Read + Send>, count: &Workers, workers: usize) -> Outcome {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 50_000]);
    let mut room = 100;
    loop {
        let mut length = 0;
        while length < room {
            match reader.read(&mut buffer[length..room]) {
                Ok(0) => {
                    all.extend_from_slice(&buffer[..length]);
                    return (all, None, count.taken());
                }
                Ok(got) => length += got,
                Err(error) => {
                    all.extend_from_slice(&buffer[..length]);
                    let damage = error.downcast::<CodecDamage>().expect("damage of a codec");
                    assert_eq!(reader.read(&mut buffer).unwrap(), 0);
                    return (all, Some(damage), count.taken());
                }
            }
        }
        all.extend_from_slice(&buffer[..length]);
        count.set(workers);
        room = buffer.len();
    }
}

fn check(file: &[u8]) -> Result<(), TestCaseError> {
    let (alone, end, taken) = read(file, 1);
    prop_assert_eq!(taken, 0);
    for workers in [2, 3, 8] {
        let (all, damage, _) = read(file, workers);
        prop_assert!(all == alone, "{} bytes of {}", all.len(), alone.len());
        prop_assert_eq!(format!("{damage:?}"), format!("{end:?}"));
    }
    Ok(())
}

fn file(streams: &[Stream]) -> Vec<u8> {
    streams.iter().flat_map(Stream::encoded).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn frames_of_zstd_are_what_the_codec_makes(streams in vec(zstd_stream(), 1..20), harm in harm()) {
        check(&harmed(file(&streams), &harm))?;
    }

    #[test]
    fn members_of_gzip_are_what_the_codec_makes(streams in vec(gzip_stream(), 1..20), harm in harm()) {
        check(&harmed(file(&streams), &harm))?;
    }
}

fn frame(length: usize) -> Stream {
    Stream::Zstd {
        content: Content { length, kind: 1 },
        says_length: length.is_multiple_of(2),
        has_checksum: !length.is_multiple_of(3),
        small_window: false,
    }
}

fn block(length: usize, longer: i8) -> Stream {
    Stream::Bgzf { content: Content { length, kind: 1 }, further_field: false, longer }
}

#[test]
fn workers_make_all_but_the_first_frame_or_member() {
    let frames: Vec<_> = (0..40).map(|i| frame(30_000 + i)).collect();
    let members: Vec<_> = (0..40).map(|i| block(30_000 + i, 0)).collect();
    for streams in [frames, members] {
        let file = file(&streams);
        let (all, damage, taken) = read(&file, 2);
        assert!(damage.is_none(), "{damage:?}");
        assert_eq!(all.len(), (30_000..30_040).sum::<usize>());
        assert_eq!(taken, all.len() - 30_000);
        assert_eq!(read(&file, 1).2, 0);
    }
}

#[test]
fn behind_what_workers_do_not_do_they_go_on() {
    // Too long for a worker, and a member that does not say its length.
    let long = Stream::Zstd {
        content: Content { length: 3_000_000, kind: 2 },
        says_length: true,
        has_checksum: true,
        small_window: false,
    };
    let frames = [frame(1000), frame(1001), long, frame(90_000), frame(90_001)];
    let plain = Stream::Gzip(Content { length: 100_000, kind: 2 });
    let members = [block(1000, 0), block(1001, 0), plain, block(60_000, 0), block(60_001, 0)];
    for (streams, expected) in [(&frames, 181_002), (&members, 121_002)] {
        let (all, damage, taken) = read(&file(streams), 2);
        assert!(damage.is_none(), "{damage:?}");
        assert!(all == read(&file(streams), 1).0);
        assert_eq!(taken, expected, "of {}", all.len());
    }
}

#[test]
fn a_cut_at_any_place_is_what_the_codec_says() {
    let frames = [0, 900, 40_000, 1, 35_000, 500].map(frame);
    let members = [0, 900, 40_000, 1, 35_000, 500].map(|length| block(length, 0));
    for streams in [frames, members] {
        let file = file(&streams);
        for length in (0..file.len()).rev().step_by(41).chain(6..60) {
            check(&file[..length]).unwrap();
        }
    }
}

#[test]
fn zeros_that_a_member_counts_as_its_own_are_not_its_own() {
    // The length says that zeros belong to it; the codec alone takes them for the end of a tape.
    let members = [block(1000, 0), block(30_000, 0), block(0, 16)].map(|member| member.encoded());
    let rest = [block(30_001, 0), block(500, 0)].map(|member| member.encoded());
    for zeros in [15, 16, 17] {
        let file = [members.concat(), vec![0; zeros], rest.concat()].concat();
        let (_, damage, _) = read(&file, 1);
        assert!(damage.is_some(), "other data follows the zeros");
        check(&file).unwrap();
    }
}

#[test]
fn a_worker_that_panics_leaves_its_part_to_the_codec() {
    let file = file(&(0..40).map(|i| frame(30_000 + i)).collect::<Vec<_>>());
    let count = Workers::default();
    let divided = Divided { extent: zstd::extent, codec: |_| panic!("on purpose") };
    let reader = Decompressor {
        compression: Compression::Zstd,
        codec: Box::new(zstd::Zstd::new(Input::new(Box::new(Cursor::new(file.clone()))))),
        parts: Some(Parts::new(divided, count.clone())),
        pending: None,
        done: false,
    };
    let (all, damage, taken) = read_from(Box::new(reader), &count, 3);
    assert!(damage.is_none(), "{damage:?}");
    assert!(all == read(&file, 1).0);
    assert_eq!(taken, 0);
}

/// A step with an input.
#[derive(Clone, Debug)]
enum Use {
    Peek(usize),
    Consume(usize),
    Skip(usize),
    /// Read so far ahead, and cut off this much.
    Ahead(usize, usize),
}

fn input_use() -> impl Strategy<Value = Use> {
    prop_oneof![
        (1..20_usize).prop_map(Use::Peek),
        (1..200_000_usize).prop_map(Use::Consume),
        (1..600_000_usize).prop_map(Use::Skip),
        (1..700_000_usize, 1..500_000_usize).prop_map(|(look, cut)| Use::Ahead(look, cut)),
    ]
}

proptest! {
    #[test]
    fn the_codec_sees_no_difference_if_somebody_looks_ahead(uses in vec(input_use(), 1..40)) {
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|i| (i ^ i >> 9) as u8).collect();
        let input = || Input::new(Box::new(Cursor::new(bytes.clone())));
        let (mut alone, mut ahead) = (input(), input());
        for step in [Use::Peek(6)].into_iter().chain(uses) {
            match step {
                Use::Peek(count) => {
                    alone.peek(count);
                    ahead.peek(count);
                }
                Use::Consume(count) => {
                    let here = alone.available().len();
                    ahead.available();
                    alone.consume(count.min(here));
                    ahead.consume(count.min(here));
                }
                Use::Skip(count) => {
                    prop_assert_eq!(alone.skip(count as u64), ahead.skip(count as u64));
                }
                Use::Ahead(look, cut) => {
                    if ahead.ahead().offset() <= ahead.offset() {
                        prop_assert!(ahead.go_on_ahead());
                        prop_assert_eq!(ahead.ahead().offset(), ahead.offset());
                    }
                    let at = ahead.ahead().offset() as usize;
                    let known = ahead.ahead().look(look).map(<[u8]>::to_vec);
                    if let Some(known) = known.filter(|_| cut <= look) {
                        prop_assert!(bytes[at..].starts_with(&known));
                        let part = ahead.ahead().cut(cut).expect("there is memory");
                        prop_assert!(part.as_ref() == &bytes[at..at + cut]);
                    }
                }
            }
            prop_assert_eq!(alone.offset(), ahead.offset());
            prop_assert_eq!(alone.is_drained(), ahead.is_drained());
            if !alone.is_drained() {
                prop_assert!(alone.available() == ahead.available());
            }
        }
    }
}
