//! Domain names: wire form without the final zero byte, lower-cased, at most [`NAME_MAX`] bytes.

use std::fmt::Write;

use super::Skip;

/// Bytes of the longest name in wire form.
pub const NAME_MAX: usize = 255;
/// Bytes of the longest label.
const LABEL_MAX: usize = 63;
/// Compression pointers that are followed in one name. A name has at most 127 labels, so more
/// pointers than that lead nowhere.
const POINTERS_MAX: usize = 127;

/// Reads a name that begins at an offset of a message, following compression pointers.
///
/// Returns the length of the name in `buffer`, and the offset behind its representation. `beyond`
/// is the answer where the bytes end first.
pub(super) fn read(
    message: &[u8],
    start: usize,
    buffer: &mut [u8; NAME_MAX],
    beyond: Skip,
) -> Result<(usize, usize), Skip> {
    let mut at = start;
    // Labels that stand one behind the other, which is all of nearly every name, are copied at
    // once.
    let mut run = start;
    let mut length = 0;
    let mut behind = None;
    let mut pointers = 0;
    loop {
        let first = *message.get(at).ok_or(beyond)?;
        let low_bits = usize::from(first & 0x3f);
        match first >> 6 {
            0 if low_bits == 0 => {
                length = append(buffer, length, &message[run..at])?;
                return Ok((length, behind.unwrap_or(at + 1)));
            }
            0 => at += 1 + low_bits,
            3 => {
                let low = *message.get(at + 1).ok_or(beyond)?;
                pointers += 1;
                if pointers > POINTERS_MAX {
                    return Err(Skip::DnsMalformed);
                }
                length = append(buffer, length, &message[run..at])?;
                behind.get_or_insert(at + 2);
                at = low_bits << 8 | usize::from(low);
                run = at;
            }
            _ => return Err(Skip::DnsMalformed),
        }
    }
}

/// Appends labels in lower case; returns the new length.
fn append(buffer: &mut [u8; NAME_MAX], length: usize, labels: &[u8]) -> Result<usize, Skip> {
    // The final zero byte, though not kept, counts.
    let place = buffer[length..NAME_MAX - 1].get_mut(..labels.len()).ok_or(Skip::DnsMalformed)?;
    place.copy_from_slice(labels);
    // Length bytes, at most 63, are no letters.
    place.make_ascii_lowercase();
    Ok(length + labels.len())
}

/// Writes a name as text: labels joined by dots, no final dot, `.` for the root.
///
/// Dots and backslashes inside a label are escaped by a backslash, all bytes that do not print by
/// a backslash and three decimal digits, as in zone files. So different names have different
/// texts.
pub fn dotted(labels: &[u8]) -> String {
    let mut text = String::with_capacity(labels.len().max(1));
    push_dotted(labels, &mut text);
    text
}

/// Appends the same text.
pub fn push_dotted(labels: &[u8], text: &mut String) {
    if labels.is_empty() {
        text.push('.');
        return;
    }
    let mut rest = labels;
    while let Some((&length, tail)) = rest.split_first() {
        let (label, tail) = tail.split_at(tail.len().min(length.into()));
        if rest.len() != labels.len() {
            text.push('.');
        }
        for &byte in label {
            match byte {
                b'.' | b'\\' => text.extend(['\\', char::from(byte)]),
                0x21..=0x7e => text.push(char::from(byte)),
                _ => write!(text, "\\{byte:03}").expect("a String takes all that is written"),
            }
        }
        rest = tail;
    }
}

/// Turns the text of a name into lower-cased wire form without the final zero byte.
///
/// Understands the escapes of zone files (`\.`, `\032`) and of Zeek's logs (`\x20`), and both
/// spellings of the root (`.` and nothing). `None` if the text is no name: an empty or too long
/// label, or too long as a whole.
pub fn labels_from_text<'b>(text: &[u8], buffer: &'b mut [u8; NAME_MAX]) -> Option<&'b [u8]> {
    let mut text = match text {
        [b'.'] => &[],
        _ => text,
    };
    // The positions of the current label's length byte, and of the next byte to write.
    let mut start = 0;
    let mut end = 1;
    while let Some((&first, rest)) = text.split_first() {
        let (byte, rest) = match first {
            b'.' => {
                close_label(buffer, start, end)?;
                (start, end) = (end, end + 1);
                text = rest;
                continue;
            }
            b'\\' => unescape(rest)?,
            _ => (first, rest),
        };
        // The last byte stays free for the zero byte that is not kept.
        *buffer[..NAME_MAX - 1].get_mut(end)? = byte.to_ascii_lowercase();
        end += 1;
        text = rest;
    }
    if end == start + 1 {
        // Nothing behind the last dot, or no text at all.
        return Some(&buffer[..start]);
    }
    close_label(buffer, start, end)?;
    Some(&buffer[..end])
}

/// Writes a label's length before it.
fn close_label(buffer: &mut [u8; NAME_MAX], start: usize, end: usize) -> Option<()> {
    let length = end - start - 1;
    if length == 0 || length > LABEL_MAX {
        return None;
    }
    buffer[start] = length as u8;
    Some(())
}

/// The byte that is written behind a backslash, and what follows.
fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    fn digits(text: &[u8], radix: u32) -> Option<u8> {
        // Not `from_str_radix` alone: it takes a sign.
        let text = str::from_utf8(text).ok()?;
        let digits = text.bytes().all(|b| b.is_ascii_alphanumeric());
        u8::from_str_radix(text, radix).ok().filter(|_| digits)
    }
    match text {
        [b'x', high, low, rest @ ..] if digits(&[*high, *low], 16).is_some() => {
            Some((digits(&[*high, *low], 16)?, rest))
        }
        [b'0'..=b'9', _, _, rest @ ..] => Some((digits(&text[..3], 10)?, rest)),
        [literal, rest @ ..] => Some((*literal, rest)),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wire(text: &str) -> Option<Vec<u8>> {
        labels_from_text(text.as_bytes(), &mut [0; NAME_MAX]).map(<[u8]>::to_vec)
    }

    fn message_name(message: &[u8], start: usize) -> Result<(Vec<u8>, usize), Skip> {
        let mut buffer = [0; NAME_MAX];
        let (length, behind) = read(message, start, &mut buffer, Skip::DnsCutShort)?;
        Ok((buffer[..length].to_vec(), behind))
    }

    #[test]
    fn text_becomes_labels() {
        fn check(text: &str, labels: Option<&[u8]>) {
            assert_eq!(wire(text).as_deref(), labels, "{text}");
        }
        check("", Some(b""));
        check(".", Some(b""));
        check("Example.COM", Some(b"\x07example\x03com"));
        check("example.com.", Some(b"\x07example\x03com"));
        check(r"a\.b.c\\", Some(b"\x03a.b\x02c\\"));
        check(r"\065\x42\120", Some(b"\x03abx"));
        check(r"\xzz", Some(b"\x03xzz"));
        check("a..b", None);
        check("..", None);
        check(".a", None);
        check(r"a\", None);
        check(r"\256", None);
        check(r"\2+5", None);
        check(&"a".repeat(63), Some(&[&[63], &[b'a'; 63][..]].concat()));
        check(&"a".repeat(64), None);
        // 126 labels and their length bytes make 252 bytes: one more label fits, two do not.
        assert_eq!(wire(&"a.".repeat(126)).unwrap().len(), 252);
        assert_eq!(wire(&"a.".repeat(127)).unwrap().len(), 254);
        check(&"a.".repeat(128), None);
        check(&format!("{}ab", "a.".repeat(126)), None);
    }

    #[test]
    fn labels_become_text() {
        assert_eq!(dotted(b""), ".");
        assert_eq!(dotted(b"\x07example\x03com"), "example.com");
        assert_eq!(dotted(b"\x03a.b\x03c\\ "), r"a\.b.c\\\032");
        // A damaged name shows what there is.
        assert_eq!(dotted(b"\x09ab"), "ab");
    }

    #[test]
    fn pointers_are_followed_and_bounded() {
        let message = b"xx\x03cOm\x00\x01A\xc0\x02\xff";
        assert_eq!(message_name(message, 2), Ok((b"\x03com".to_vec(), 7)));
        assert_eq!(message_name(message, 7), Ok((b"\x01a\x03com".to_vec(), 11)));
        assert_eq!(message_name(b"\xc0\x00", 0), Err(Skip::DnsMalformed));
        assert_eq!(message_name(b"\x01a\xc0\x00", 0), Err(Skip::DnsMalformed));
        assert_eq!(message_name(b"\x40", 0), Err(Skip::DnsMalformed));
        assert_eq!(message_name(b"\x80", 0), Err(Skip::DnsMalformed));
        assert_eq!(message_name(b"\x02a", 0), Err(Skip::DnsCutShort));
        assert_eq!(message_name(b"\xc0", 0), Err(Skip::DnsCutShort));
        assert_eq!(message_name(b"", 0), Err(Skip::DnsCutShort));
    }

    #[test]
    fn names_end_at_255_bytes_with_the_zero() {
        let longest = [b"\x01a".repeat(127), vec![0]].concat();
        assert_eq!(message_name(&longest, 0).unwrap().0.len(), 254);
        let too_long = [b"\x01a".repeat(126), b"\x02ab\x00".to_vec()].concat();
        assert_eq!(message_name(&too_long, 0), Err(Skip::DnsMalformed));
    }

    proptest! {
        #[test]
        fn text_and_labels_are_each_others_inverse(
            labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..12),
        ) {
            let mut wire: Vec<u8> = Vec::new();
            for label in &labels {
                wire.push(label.len() as u8);
                wire.extend(label.to_ascii_lowercase());
            }
            let text = dotted(&wire);
            let mut buffer = [0; NAME_MAX];
            prop_assert_eq!(labels_from_text(text.as_bytes(), &mut buffer), Some(&wire[..]));
            let sent = [&wire[..], &[0]].concat();
            prop_assert_eq!(message_name(&sent, 0), Ok((wire, sent.len())));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, start in 0..20usize) {
            let _ = message_name(&bytes, start);
            let mut buffer = [0; NAME_MAX];
            if let Some(labels) = labels_from_text(&bytes, &mut buffer) {
                let text = dotted(labels);
                let mut again = [0; NAME_MAX];
                prop_assert_eq!(labels_from_text(text.as_bytes(), &mut again), Some(labels));
            }
            let _ = dotted(&bytes);
        }
    }
}
