//! Every codec: several streams in one, cut at every byte, flipped bits, zeros and garbage at the
//! end.

use std::io::{Cursor, Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::super::compression::Compression;
use super::super::error::{CodecDamage, Fault};
use super::decompressor;

/// Text that can be compressed, but not into nothing.
fn text() -> Vec<u8> {
    (0..60_000u32).flat_map(|number| (number * number % 1013).to_le_bytes()).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(data, 1).unwrap()
}

fn lz4(data: &[u8]) -> Vec<u8> {
    // Blocks so small that a cut leaves some; in linked mode they refer to each other.
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Linked)
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

type Encoder = fn(&[u8]) -> Vec<u8>;

const CODECS: [(Compression, Encoder); 5] = [
    (Compression::Gzip, gzip),
    (Compression::Bzip2, bzip2),
    (Compression::Xz, xz),
    (Compression::Zstd, zstd),
    (Compression::Lz4, lz4),
];

/// Reads to the end or to the damage.
fn read(bytes: &[u8]) -> (Compression, Vec<u8>, Option<CodecDamage>) {
    let (compression, mut reader) = decompressor(Box::new(Cursor::new(bytes.to_vec())));
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return (compression, all, None),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => {
                let damage = error.downcast::<CodecDamage>().expect("damage of a codec");
                return (compression, all, Some(damage));
            }
        }
    }
}

#[test]
fn several_streams_are_one() {
    let text = text();
    for (codec, encode) in CODECS {
        let file = [encode(&text), encode(b""), encode(&text[..1000])].concat();
        let (found, all, damage) = read(&file);
        assert_eq!(found, codec);
        assert!(damage.is_none(), "{}: {damage:?}", codec.name());
        assert!(all == [&text, &text[..1000]].concat(), "{}", codec.name());
    }
}

#[test]
fn a_dictionary_that_is_too_large_is_no_damage() {
    let mut file = xz(&text());
    // The header of the first block ends with its filter, padding and a checksum.
    let header = 12..12 + (usize::from(file[12]) + 1) * 4;
    let filter =
        header.start + file[header.clone()].windows(2).position(|two| two == [0x21, 1]).unwrap();
    for (size, mebibytes) in [(34, 512), (36, 1024), (39, 3072)] {
        file[filter + 2] = size;
        let mut checksum = flate2::Crc::new();
        checksum.update(&file[header.start..header.end - 4]);
        file[header.end - 4..header.end].copy_from_slice(&checksum.sum().to_le_bytes());
        let (_, all, damage) = read(&file);
        let damage = damage.expect("it is refused");
        assert!(damage.fault == Fault::Unsupported && all.is_empty(), "{damage:?}");
        let needed = damage.reason.split(' ').find_map(|word| word.parse::<u32>().ok());
        assert!((mebibytes..mebibytes + 2).contains(&needed.unwrap()), "{damage:?}");
    }
}

#[test]
fn lz4_frames_of_different_block_sizes_are_one_stream() {
    let text = text();
    let info = FrameInfo::new().block_size(BlockSize::Max4MB);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&text).unwrap();
    let large = encoder.finish().unwrap();
    let (_, all, damage) = read(&[&large, lz4(&text).as_slice(), &large].concat());
    assert!(damage.is_none(), "{damage:?}");
    assert!(all == text.repeat(3));
}

#[test]
fn a_cut_stream_delivers_what_came_before() {
    let text = text();
    for (codec, encode) in CODECS {
        let file = encode(&text);
        let step = (file.len() / 300).max(1);
        let mut most = 0;
        for length in (6..file.len()).step_by(step) {
            let (found, all, damage) = read(&file[..length]);
            assert_eq!(found, codec, "cut at {length}");
            assert!(text.starts_with(&all), "{} cut at {length}", codec.name());
            let damage = damage.expect("an error");
            assert!(damage.fault == Fault::Cut, "{} cut at {length}: {damage}", codec.name());
            assert_eq!(damage.codec, codec);
            assert!(damage.offset <= length as u64, "{damage}");
            most = most.max(all.len());
        }
        assert!(most > text.len() / 3, "{}: {most} of {}", codec.name(), text.len());
    }
}

#[test]
fn a_cut_is_seen_wherever_it_is() {
    let text = &text()[..2000];
    for (codec, encode) in CODECS {
        let file = encode(text);
        for length in 6..file.len() {
            let (_, all, damage) = read(&file[..length]);
            assert!(text.starts_with(&all), "{} cut at {length}", codec.name());
            let cut = damage.is_some_and(|damage| damage.fault == Fault::Cut);
            assert!(cut, "{} cut at {length} of {}", codec.name(), file.len());
        }
    }
}

#[test]
fn zeros_at_the_end_are_ignored_and_garbage_is_reported() {
    let text = text();
    for (codec, encode) in CODECS {
        let zeros = [encode(&text), vec![0; 4096]].concat();
        let (_, all, damage) = read(&zeros);
        assert!(all == text, "{}", codec.name());
        assert!(damage.is_none(), "{}: {damage:?}", codec.name());
        let garbage = [encode(&text), b"garbage, twelve".to_vec()].concat();
        let (_, all, damage) = read(&garbage);
        assert!(all == text, "{}", codec.name());
        assert!(damage.expect("an error").fault != Fault::Cut, "{}", codec.name());
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    let text = &text()[..4000];
    for (_, encode) in CODECS {
        let mut file = encode(text);
        for at in 0..file.len() {
            for bit in [0, 3, 7] {
                file[at] ^= 1 << bit;
                read(&file);
                file[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn skippable_frames_are_skipped() {
    let text = text();
    let skippable = b"\x53\x2a\x4d\x18\x05\0\0\0hello".as_slice();
    for (codec, encode) in [(Compression::Zstd, zstd as Encoder), (Compression::Lz4, lz4)] {
        let file = [&encode(&text), skippable, &encode(&text)].concat();
        let (_, all, damage) = read(&file);
        assert!(damage.is_none(), "{}: {damage:?}", codec.name());
        assert!(all == text.repeat(2), "{}", codec.name());
    }
    let (_, all, damage) = read(&[skippable, &zstd(&text)].concat());
    assert!(damage.is_none() && all == text);
    let hostile = [&zstd(&text), b"\x53\x2a\x4d\x18\xff\xff\xff\xff".as_slice()].concat();
    assert!(read(&hostile).2.expect("an error").fault == Fault::Cut);
}

#[test]
fn a_failure_of_the_disk_is_not_taken_for_a_cut() {
    let text = text();
    for (codec, encode) in CODECS {
        let file = encode(&text);
        let half = Cursor::new(file[..file.len() / 2].to_vec());
        let (_, mut reader) = decompressor(Box::new(half.chain(Failing)));
        let mut all = Vec::new();
        let error = reader.read_to_end(&mut all).unwrap_err();
        assert_eq!(error.to_string(), "pulled out", "{}", codec.name());
    }
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("pulled out"))
    }
}
