//! Written captures are read again: by our reader, and block by block.

use std::io::Cursor;
use std::path::Path;

use super::super::{Capture, InputFormat, TraceBatch};
use super::*;

fn read(bytes: &[u8]) -> Capture {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let mut capture = Capture::from_reader(Path::new("x"), reader, InputFormat::Auto).unwrap();
    capture.keep_records();
    capture
}

/// Copies whole captures.
fn copy(inputs: &[&[u8]], format: WriteFormat) -> Result<(Vec<u8>, Written), WriteError> {
    let mut writer = CaptureWriter::new(Vec::new(), format, inputs.len() == 1).unwrap();
    for (input, bytes) in inputs.iter().enumerate() {
        let mut capture = read(bytes);
        while let Ok(Some(TraceBatch::Packets { packets, .. })) = capture.next_batch() {
            let count = packets.len();
            // In pieces, as runs of packets come.
            let batch = capture.record_batch();
            writer.write(input, &batch, 0, count / 2)?;
            writer.write(input, &batch, count / 2, count)?;
        }
    }
    writer.finish()
}

const PCAP: WriteFormat =
    WriteFormat { container: CaptureFormat::Pcap, compression: Compression::None };
const PCAPNG: WriteFormat =
    WriteFormat { container: CaptureFormat::Pcapng, compression: Compression::None };

/// Time, link type, wire length and bytes of each packet.
type Packets = Vec<(i64, u16, u32, Vec<u8>)>;

fn packets(bytes: &[u8]) -> Packets {
    let mut capture = read(bytes);
    let mut all = Vec::new();
    while let Some(batch) = capture.next_batch().unwrap() {
        let TraceBatch::Packets { bytes, packets } = batch else {
            panic!("packets");
        };
        all.extend(packets.iter().map(|packet| {
            let start = packet.start as usize;
            let frame = bytes[start..start + packet.captured as usize].to_vec();
            (packet.time_ns, packet.link.0, packet.wire, frame)
        }));
    }
    all
}

fn pcap(magic: u32, big: bool, link: u32, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let word = |word: u32| {
        if big { word.to_be_bytes() } else { word.to_le_bytes() }
    };
    let version = if big { 2 << 16 | 4 } else { 2 | 4 << 16 };
    let mut file: Vec<u8> = [magic, version, 0, 0, 77, link].into_iter().flat_map(word).collect();
    for (seconds, fraction, frame) in records {
        let length = frame.len() as u32;
        file.extend([*seconds, *fraction, length, length + 9].into_iter().flat_map(word));
        file.extend_from_slice(frame);
    }
    file
}

/// A block, its numbers in either order.
struct Order(bool);

impl Order {
    fn word(&self, word: u32) -> [u8; 4] {
        if self.0 { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let halves = [code, value.len() as u16];
        let halves =
            halves.map(|half| if self.0 { half.to_be_bytes() } else { half.to_le_bytes() });
        let mut option = [halves.concat(), value.to_vec()].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn block(&self, kind: u32, body: &[&[u8]]) -> Vec<u8> {
        let body = body.concat();
        let length = self.word(body.len() as u32 + 12);
        [&self.word(kind)[..], &length, &body, &length].concat()
    }

    fn section(&self) -> Vec<u8> {
        let version = if self.0 { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
        self.block(0x0a0d_0d0a, &[&self.word(0x1a2b_3c4d), &version, &[0xff; 8]])
    }

    fn interface(&self, link: u16, snap: u32, options: &[Vec<u8>]) -> Vec<u8> {
        let link = if self.0 { link.to_be_bytes() } else { link.to_le_bytes() };
        self.block(1, &[&link, &[0, 0], &self.word(snap), &options.concat()])
    }

    fn packet(&self, interface: u32, ticks: u64, frame: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        let mut padded = frame.to_vec();
        padded.resize(frame.len().next_multiple_of(4), 0);
        let length = frame.len() as u32;
        let words = [interface, (ticks >> 32) as u32, ticks as u32, length, length + 5];
        let words = words.map(|word| self.word(word)).concat();
        self.block(6, &[&words, &padded, &options.concat()])
    }
}

/// Two sections of different byte orders; names, comments, flags, clocks of every kind, a simple
/// packet.
fn rich(big: bool) -> Vec<u8> {
    let order = Order(big);
    let offset = |seconds: i64| {
        if big { seconds.to_be_bytes() } else { seconds.to_le_bytes() }
    };
    let end = order.option(0, &[]);
    [
        order.section(),
        order.interface(
            1,
            1500,
            &[
                order.option(2, b"eth0"),
                order.option(9, &[9]),
                order.option(8, &offset(1_000_000_000)),
                end.clone(),
            ],
        ),
        order.interface(1, 0, &[order.option(2, b"micro")]),
        order.interface(
            101,
            0,
            &[order.option(9, &[0x8a]), order.option(14, &offset(1000)), end.clone()],
        ),
        order.packet(
            0,
            1_700_000_000_123_456_789,
            b"first",
            &[order.option(1, b"a comment"), order.option(2, &order.word(0x0102)), end],
        ),
        order.packet(1, 1_700_000_001_000_007, b"second", &[]),
        order.packet(2, (1_700_000_000 << 10) + 513, b"third", &[order.option(1, b"x")]),
        order.block(3, &[&order.word(3), b"abc\0"]),
    ]
    .concat()
}

/// Kind and body of each block of a little-endian file.
fn blocks(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(word(at + length - 4) as usize, length);
        all.push((word(at), bytes[at + 8..at + length - 4].to_vec()));
        at += length;
    }
    all
}

#[test]
fn a_pcap_file_stays_as_it_is() {
    for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
        let frames: [(u32, u32, &[u8]); 3] =
            [(5, 999_999, b"one"), (6, 7, b""), (4_294_967_295, 1, &[7; 60])];
        let file = pcap(magic, false, 1 | 0x2400_0000, &frames);
        assert_eq!(copy(&[&file], PCAP).unwrap().0, file);
        let empty = pcap(magic, false, 101, &[]);
        // No batch, no word of the interface: what is written is readable all the same.
        assert!(packets(&copy(&[&empty], PCAP).unwrap().0).is_empty());
        assert!(packets(&copy(&[&empty], PCAPNG).unwrap().0).is_empty());
        let big = pcap(magic, true, 1, &frames);
        let turned = pcap(magic, false, 1, &frames);
        assert_eq!(copy(&[&big], PCAP).unwrap().0, turned, "another byte order");
        for input in [&file, &big] {
            let (written, _) = copy(&[input], PCAPNG).unwrap();
            assert_eq!(packets(&written), packets(input));
        }
    }
}

#[test]
fn several_inputs_have_nanoseconds() {
    let micro = pcap(0xa1b2_c3d4, false, 1, &[(5, 999_999, b"one")]);
    let nano = pcap(0xa1b2_3c4d, false, 1, &[(5, 999_999_999, b"two")]);
    for format in [PCAP, PCAPNG] {
        let (written, _) = copy(&[&micro, &nano], format).unwrap();
        assert_eq!(packets(&written), [packets(&micro), packets(&nano)].concat());
    }
}

#[test]
fn pcapng_keeps_interfaces_times_and_options() {
    for big in [false, true] {
        let input = [rich(big), rich(!big)].concat();
        let (written, count) = copy(&[&input], PCAPNG).unwrap();
        assert_eq!((count.packets, count.without_options), (8, 0));
        assert_eq!(packets(&written), packets(&input));
        let little = Order(false);
        let expected = blocks(&rich(false));
        let found = blocks(&written);
        let of_kind = |blocks: &[(u32, Vec<u8>)], kind: u32| -> Vec<Vec<u8>> {
            let of_kind = blocks.iter().filter(|block| block.0 == kind);
            of_kind.map(|block| block.1.clone()).collect()
        };
        let interfaces = of_kind(&found, 1);
        assert_eq!(interfaces.len(), 6);
        let wanted = of_kind(&expected, 1);
        assert_eq!(interfaces[0], wanted[0], "name, resolution and speed");
        // Options without an end mark get one.
        assert_eq!(interfaces[1], [wanted[1].clone(), little.option(0, &[])].concat());
        assert_eq!(interfaces[2], wanted[2]);
        assert_eq!(interfaces[3..], interfaces[..3], "the second section's");
        let enhanced = of_kind(&found, 6);
        assert_eq!(enhanced[0], of_kind(&expected, 6)[0], "comment and flags");
        assert_eq!(enhanced[1], of_kind(&expected, 6)[1]);
        assert_eq!(enhanced[2], [of_kind(&expected, 6)[2].clone(), little.option(0, &[])].concat());
        assert_eq!(enhanced[4][..4], 3_u32.to_le_bytes(), "an interface of the second section");
    }
}

#[test]
fn what_pcap_cannot_hold_is_said() {
    let file = rich(false);
    assert!(
        matches!(copy(&[&file], PCAP), Err(WriteError::LinkTypes(one, other)) if (one.0, other.0) == (1, 101))
    );
    let text = copy(&[&file], PCAP).unwrap_err().to_string();
    assert!(text.contains("(ethernet and raw_ip)") && text.contains(".pcapng"), "{text}");
    let order = Order(false);
    let comment = order.option(1, b"lost");
    let one = |ticks| {
        let packet = order.packet(0, ticks, b"x", std::slice::from_ref(&comment));
        [order.section(), order.interface(1, 0, &[]), packet].concat()
    };
    let (written, count) = copy(&[&one(17)], PCAP).unwrap();
    assert_eq!(packets(&written), packets(&one(17)));
    assert_eq!(count.without_options, 1);
    // The year 2106.
    assert!(matches!(copy(&[&one(4_294_967_296_000_000)], PCAP), Err(WriteError::Time(_))));
}

#[test]
fn every_compression_comes_back() {
    let frames: Vec<Vec<u8>> = (0..9000_u32).map(|n| n.to_be_bytes().repeat(200)).collect();
    let records: Vec<(u32, u32, &[u8])> = frames.iter().map(|frame| (9, 1, &frame[..])).collect();
    let file = pcap(0xa1b2_c3d4, false, 1, &records);
    for (name, compression) in [
        ("a.pcap", Compression::None),
        ("a.pcap.gz", Compression::Gzip),
        ("a.pcap.zst", Compression::Zstd),
        ("a.PCAP.XZ", Compression::Xz),
        ("a.cap.bz2", Compression::Bzip2),
        ("a.pcap.lz4", Compression::Lz4),
    ] {
        let format = WriteFormat::of_name(Path::new(name));
        assert_eq!(format, WriteFormat { compression, ..PCAP });
        let (written, _) = copy(&[&file], format).unwrap();
        let capture = read(&written);
        assert_eq!(capture.compression(), compression);
        assert_eq!(packets(&written), packets(&file), "{name}");
    }
    for name in ["-", "a", "a.pcapng", "a.gz", "/dev/null", "a.ntar.zst"] {
        assert_eq!(WriteFormat::of_name(Path::new(name)).container, CaptureFormat::Pcapng);
    }
}

#[test]
fn the_error_of_the_writing_thread_comes_out() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let frame = [7; 1000];
    let records: Vec<(u32, u32, &[u8])> = (0..5000).map(|n| (n, 1, &frame[..])).collect();
    for count in [1, 5000] {
        let file = pcap(0xa1b2_c3d4, false, 1, &records[..count]);
        let mut writer = CaptureWriter::new(Full, PCAP, true).unwrap();
        let mut capture = read(&file);
        let mut result = Ok(());
        while let Some(TraceBatch::Packets { packets, .. }) = capture.next_batch().unwrap() {
            let count = packets.len();
            result = result.and_then(|()| writer.write(0, &capture.record_batch(), 0, count));
        }
        let error = result.and_then(|()| writer.finish().map(|_| ())).unwrap_err();
        assert!(
            matches!(error, WriteError::Io(error) if error.kind() == io::ErrorKind::StorageFull)
        );
    }
}

/// Copies a capture with what stands between its packets, of which every second one is passed over.
fn copy_annotated(bytes: &[u8], format: WriteFormat, single: bool) -> (Vec<u8>, Written) {
    let mut writer = CaptureWriter::new(Vec::new(), format, single).unwrap();
    let mut capture = read(bytes);
    capture.keep_annotations();
    while let Ok(Some(TraceBatch::Packets { packets, .. })) = capture.next_batch() {
        let count = packets.len();
        let batch = capture.record_batch();
        for index in 0..count {
            if index % 2 == 0 {
                writer.write(0, &batch, index, index + 1).unwrap();
            } else {
                writer.pass_over(0, &batch, index, index + 1).unwrap();
            }
        }
    }
    writer.annotate(capture.record_batch().annotations).unwrap();
    writer.finish().unwrap()
}

const SECRETS: u32 = 10;
const NAMES: u32 = 4;
const CUSTOM: u32 = 0x0bad;

/// Packets, and everything that may stand before, between and behind them.
fn annotated(big: bool) -> Vec<u8> {
    let order = Order(big);
    let head = |length: usize| [order.word(0x544c_534b), order.word(length as u32)].concat();
    let half = |number: u16| order.word(number.into())[if big { 2..4 } else { 0..2 }].to_vec();
    let name = |options: &[Vec<u8>]| {
        let record = [half(1), half(12), vec![10, 0, 0, 1], b"a.local\0".to_vec()].concat();
        order.block(NAMES, &[&record, &[0; 4], &options.concat()])
    };
    let options = [order.option(1, b"about names"), order.option(0, &[])];
    let version = if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
    let section = |comments: &[&[u8]]| {
        let comments = comments.iter().map(|text| order.option(1, text));
        let comments: Vec<u8> = comments.flatten().collect();
        let magic = order.word(0x1a2b_3c4d);
        order.block(0x0a0d_0d0a, &[&magic, &version, &[0xff; 8], &comments])
    };
    [
        section(&[b"first", b"second one"]),
        order.block(SECRETS, &[&head(5), b"keys\n\0\0\0"]),
        order.interface(1, 0, &[]),
        name(&options),
        order.packet(0, 1, b"one", &[]),
        order.block(CUSTOM, &[&order.word(32_473), b"own data"]),
        order.packet(0, 2, b"two", &[]),
        order.block(0x4000_0bad, &[&order.word(32_473), b"not to copy!"]),
        order.packet(0, 3, b"three", &[]),
        section(&[b"of the second section"]),
        order.block(NAMES, &[b"\xff\xff\xff\xff"]),
        name(&[]),
    ]
    .concat()
}

#[test]
fn what_stands_between_packets_stays_there() {
    let wanted = blocks(&annotated(false));
    for big in [false, true] {
        let (written, count) = copy_annotated(&annotated(big), PCAPNG, true);
        let found = blocks(&written);
        let kinds: Vec<u32> = found.iter().map(|block| block.0).collect();
        // The second packet was passed over.
        let expected = [0x0a0d_0d0a, 1, SECRETS, NAMES, 6, CUSTOM, 6, NAMES];
        assert_eq!(kinds, expected);
        let [.., secrets, names, _, custom, _, last] = &found[..] else {
            panic!("{kinds:?}");
        };
        assert_eq!(*secrets, wanted[1]);
        assert_eq!(*names, wanted[3]);
        assert_eq!(*custom, wanted[5]);
        assert_eq!(*last, wanted[11]);
        let comments = &wanted[0].1[16..];
        assert_eq!(&found[0].1[16..][..comments.len()], comments);
        assert_eq!(
            count.lost.in_words().unwrap(),
            "1 comment of later sections, 1 custom block marked as not to be copied and 1 block too large or \
             too damaged to copy"
        );
        for (format, single) in [(PCAP, true), (PCAPNG, false)] {
            let (written, count) = copy_annotated(&annotated(big), format, single);
            assert_eq!(packets(&written).len(), 2);
            let lost = count.lost.in_words().unwrap();
            let all = "1 decryption secrets block, 2 name resolution blocks, 1 custom block, 2 section comments, ";
            assert!(lost.starts_with(all), "{lost}");
        }
    }
}

/// Wherever a block with annotations is cut or damaged, the error is that of a reader that passes
/// over it.
#[test]
fn annotations_change_no_error() {
    for big in [false, true] {
        let whole = annotated(big);
        let outcome = |bytes: &[u8], annotations: bool| {
            let mut capture = match Capture::from_reader(
                Path::new("x"),
                Box::new(Cursor::new(bytes.to_vec())),
                InputFormat::Auto,
            ) {
                Ok(capture) => capture,
                Err(error) => return (0, Some(error.to_string())),
            };
            capture.keep_records();
            if annotations {
                capture.keep_annotations();
            }
            let mut count = 0;
            loop {
                match capture.next_batch() {
                    Ok(Some(TraceBatch::Packets { packets, .. })) => count += packets.len(),
                    Ok(_) => return (count, None),
                    Err(error) => return (count, Some(error.to_string())),
                }
            }
        };
        for at in 0..whole.len() {
            assert_eq!(outcome(&whole[..at], true), outcome(&whole[..at], false), "{at}");
            for flip in [1, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                assert_eq!(outcome(&damaged, true), outcome(&damaged, false), "{at}");
            }
        }
    }
}

/// More secrets at once than memory is for, and a block that is longer than any that is kept:
/// counted, not kept.
#[test]
fn annotations_take_bounded_memory() {
    let order = Order(false);
    let secrets = |length: u32| {
        let head = [order.word(1), order.word(length)].concat();
        order.block(SECRETS, &[&head, &vec![7; length as usize]])
    };
    let mut file = [order.section(), order.interface(1, 0, &[])].concat();
    for _ in 0..20 {
        file.extend(secrets(4 << 20));
    }
    file.extend(order.packet(0, 1, b"one", &[]));
    file.extend(secrets(17 << 20));
    file.extend(order.packet(0, 2, b"two", &[]));
    let mut capture = read(&file);
    capture.keep_annotations();
    capture.next_batch().unwrap().unwrap();
    let kept = capture.record_batch().annotations;
    let bytes: usize = kept.iter().map(|one| one.body.len()).sum();
    assert!((48 << 20..=64 << 20).contains(&bytes), "{bytes}");
    assert_eq!((kept.len(), capture.unkept_annotations()), (15, 5));
    capture.next_batch().unwrap().unwrap();
    assert!(capture.record_batch().annotations.is_empty());
    assert_eq!(capture.unkept_annotations(), 6);
    // A long block that is cut is an error like others, whether it would be kept or not.
    for length in [300_000, 17 << 20] {
        let mut file = [order.section(), order.interface(1, 0, &[]), secrets(length)].concat();
        file.truncate(file.len() - 100);
        let errors = [false, true].map(|annotations| {
            let mut capture = read(&file);
            if annotations {
                capture.keep_annotations();
            }
            capture.next_batch().unwrap_err().to_string()
        });
        assert_eq!(errors[0], errors[1]);
    }
}
