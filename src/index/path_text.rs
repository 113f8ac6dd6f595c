//! Paths in the catalogue, which is JSON and so UTF-8.
//!
//! A path that is UTF-8 is stored unchanged. In others each byte that is not UTF-8 is a NUL and two
//! hexadecimal digits: no path has a NUL, so each text stands for one path.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use std::path::{Path, PathBuf};

/// Precedes the digits of a byte that is not UTF-8.
const ESCAPE: char = '\0';

/// Returns whether the catalogue can name a path. Only on Unix are paths bytes.
pub(super) fn can_be_named(path: &Path) -> bool {
    encoded(path).is_some()
}

pub(super) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    let text = encoded(path).ok_or_else(|| S::Error::custom("a path that is not Unicode"))?;
    text.serialize(out)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(input)?;
    decoded(&text).ok_or_else(|| D::Error::custom(format!("{text:?} stands for no path")))
}

fn encoded(path: &Path) -> Option<String> {
    match path.to_str() {
        Some(text) => (!text.contains(ESCAPE)).then(|| text.to_owned()),
        None => encoded_bytes(path),
    }
}

#[cfg(unix)]
fn encoded_bytes(path: &Path) -> Option<String> {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;

    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "{ESCAPE}{byte:02x}").ok()?;
        }
    }
    Some(text)
}

#[cfg(not(unix))]
fn encoded_bytes(_: &Path) -> Option<String> {
    None
}

fn decoded(text: &str) -> Option<PathBuf> {
    if text.contains(ESCAPE) { decoded_bytes(text) } else { Some(text.into()) }
}

#[cfg(unix)]
fn decoded_bytes(text: &str) -> Option<PathBuf> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    let mut parts = text.split(ESCAPE);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if !digits.bytes().all(is_digit) {
            return None;
        }
        let byte = u8::from_str_radix(digits, 16).ok()?;
        bytes.push(byte);
        bytes.extend(rest.as_bytes());
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    // Each path has one text.
    (encoded(&path).as_deref() == Some(text)).then_some(path)
}

#[cfg(not(unix))]
fn decoded_bytes(_: &str) -> Option<PathBuf> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    #[test]
    fn paths_of_unicode_stand_as_they_are() {
        for text in ["/captures/a.pcap", "/tmp/%e9 \\xe9 é/ \n\u{1}.pcap", ""] {
            assert_eq!(encoded(Path::new(text)).as_deref(), Some(text));
            assert_eq!(decoded(text), Some(text.into()));
        }
        assert_eq!(encoded(Path::new("a\0b")), None);
    }

    #[test]
    fn bytes_that_are_no_text_come_back() {
        let path = PathBuf::from(OsString::from_vec(b"/a\xe9\xff/\xc3\xa9\xc3".to_vec()));
        let text = encoded(&path).unwrap();
        assert_eq!(text, "/a\0e9\0ff/é\0c3");
        assert_eq!(decoded(&text), Some(path));
        // Texts of no path, or of a path that has another text.
        for text in
            ["\0", "\0e", "\0g0", "\0E9", "\0é", "\0+9", "\0\0e9", "\x0041", "\x0000", "\0c3\0a9"]
        {
            assert_eq!(decoded(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_path_comes_back(bytes in proptest::collection::vec(1_u8.., 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = encoded(&path).unwrap();
            prop_assert!(path.to_str().is_none_or(|plain| plain == text));
            prop_assert_eq!(decoded(&text), Some(path));
        }
    }
}
