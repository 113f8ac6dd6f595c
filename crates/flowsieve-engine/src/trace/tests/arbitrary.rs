//! Bytes of every kind: reading them ends, without a panic, whatever they are.

use proptest::prelude::*;

use super::super::{InputFormat, TraceErrorKind};
use super::{open, read_all};

/// Beginnings that lead into each reader.
const BEGINNINGS: &[&[u8]] = &[
    b"",
    b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0",
    b"\xa1\xb2\x3c\x4d\0\x02\0\x03\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0\0\xc5",
    b"\x34\xcd\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0",
    b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0",
    b"\0\0\0\0\0\0\0\0\x02\0\0\x10\0\0\0\0",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ\0",
    b"BZh91AY&SY",
    b"\x04\x22\x4d\x18",
    b"\x02\x21\x4c\x18",
    b"\x50\x2a\x4d\x18",
    b"#separator \\x09\n#fields\tts\tid.orig_h\tid.resp_h\tquery\n",
    b"{\"id.orig_h\":\"::1\",\"id.resp_h\":\"::2\",\"ts\":1,\"query\":\"\"}\n",
    b"ts,src,dst,qname\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_do_no_harm(
        beginning in proptest::sample::select(BEGINNINGS),
        rest in proptest::collection::vec(any::<u8>(), 0..400),
        tsh in any::<bool>(),
    ) {
        let bytes = [beginning, &rest].concat();
        let format = if tsh { InputFormat::Tsh } else { InputFormat::Auto };
        if let Ok(capture) = open(&bytes, format) {
            read_all(capture);
        }
    }

    /// Words that look like lengths and block types get deeper than random bytes do.
    #[test]
    fn arbitrary_words_do_no_harm(
        beginning in proptest::sample::select(BEGINNINGS),
        words in proptest::collection::vec(
            prop_oneof![0u32..64, Just(u32::MAX), Just(0x0a0d_0d0a), Just(0x4d3c_2b1a), any::<u32>()],
            0..100,
        ),
    ) {
        let rest: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Ok(capture) = open(&[beginning, &rest].concat(), InputFormat::Auto) {
            read_all(capture);
        }
    }
}

#[test]
fn what_is_no_capture_is_said_to_be_what_it_is() {
    for (bytes, words) in [
        (&b"snoop\0\0\0\0\0\0\x02"[..], "editcap"),
        (b"PK\x03\x04....", "zip archive"),
        (b"#!/bin/sh\necho hello\n", "it is text"),
        (b"\x7fELF....", "a program"),
        (b"\xff\xfe\0\x01\x02\x03", "no known container"),
    ] {
        let error = open(bytes, InputFormat::Auto).unwrap_err();
        assert!(matches!(error.kind, TraceErrorKind::NotACapture { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
