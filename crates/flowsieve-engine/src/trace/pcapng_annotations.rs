//! Stores the annotations among the blocks of a pcapng file.
//!
//! Not by pcap-parser, which drops the length of a name record, and requires the record that ends
//! the list.

use super::annotation::{Annotation, AnnotationKind, CUSTOM, CUSTOM_NOT_TO_COPY, NAMES, SECRETS};
use super::record::Records;
use super::write::options::{self, Block};

/// Bytes of annotations that are kept between two batches of packets.
const MAX_BYTES: usize = 64 << 20;

/// Returns whether blocks of this type are annotations.
pub(super) fn is_one(block: u32) -> bool {
    matches!(block, NAMES | SECRETS | CUSTOM | CUSTOM_NOT_TO_COPY)
}

/// Stores a block that follows this many packets of the batch.
pub(super) fn store(
    block: u32,
    body: &[u8],
    big_endian: bool,
    before: usize,
    records: &mut Records,
) {
    let (kind, body) = match block {
        NAMES => (AnnotationKind::Names, names(body, big_endian)),
        SECRETS => (AnnotationKind::Secrets, secrets(body, big_endian)),
        CUSTOM => (AnnotationKind::Custom, turned(body, 1, big_endian)),
        CUSTOM_NOT_TO_COPY => (AnnotationKind::NotToCopy, Some(Vec::new())),
        _ => return,
    };
    let kind = if body.is_some() { kind } else { AnnotationKind::Unreadable };
    put(kind, body.unwrap_or_default(), before, records);
}

/// Stores the comments of a section, which are among its options.
pub(super) fn store_comments(bytes: &[u8], big_endian: bool, before: usize, records: &mut Records) {
    const COMMENT: u16 = 1;
    let kind = if std::mem::replace(&mut records.in_section, true) {
        AnnotationKind::LaterComment
    } else {
        AnnotationKind::Comment
    };
    options::each(bytes, big_endian, |code, value| {
        if code == COMMENT {
            put(kind, value.to_vec(), before, records);
        }
    });
}

fn put(kind: AnnotationKind, body: Vec<u8>, before: usize, records: &mut Records) {
    let bytes = records.annotation_bytes + size_of::<Annotation>() + body.len();
    if bytes > MAX_BYTES {
        records.unkept += 1;
        return;
    }
    records.annotation_bytes = bytes;
    records.annotations.push(Annotation { kind, before: before as u32, body });
}

/// Returns the body with the first words in little-endian order; `None` if it is too short.
fn turned(body: &[u8], words: usize, big_endian: bool) -> Option<Vec<u8>> {
    let mut body = body.to_vec();
    let head = body.get_mut(..4 * words)?;
    if big_endian {
        for word in head.chunks_exact_mut(4) {
            word.reverse();
        }
    }
    Some(body)
}

/// Kind of secrets and their length; the secrets, options.
fn secrets(body: &[u8], big_endian: bool) -> Option<Vec<u8>> {
    const HEAD: usize = 8;
    let mut out = turned(body.get(..HEAD)?, 2, big_endian)?;
    let length = u32::from_le_bytes([out[4], out[5], out[6], out[7]]) as usize;
    let end = HEAD.checked_add(length.checked_next_multiple_of(4)?)?;
    out.extend_from_slice(body.get(HEAD..end)?);
    convert_options(body.get(end..)?, big_endian, &mut out);
    Some(out)
}

/// Records up to one of kind 0: kind, length, an address and its names; then options.
fn names(body: &[u8], big_endian: bool) -> Option<Vec<u8>> {
    const HEAD: usize = 4;
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    let short = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
    loop {
        if rest.is_empty() {
            // Some writers leave out the record that ends the list.
            out.extend([0; HEAD]);
            return Some(out);
        }
        let (&[a, b, c, d], values) = rest.split_first_chunk::<HEAD>()?;
        let [kind, length] = [[a, b], [c, d]].map(short);
        out.extend([kind.to_le_bytes(), length.to_le_bytes()].concat());
        let end = usize::from(length).next_multiple_of(4);
        out.extend_from_slice(values.get(..end)?);
        rest = &values[end..];
        if kind == 0 {
            convert_options(rest, big_endian, &mut out);
            return Some(out);
        }
    }
}

fn convert_options(bytes: &[u8], big_endian: bool, out: &mut Vec<u8>) {
    const NONE: u16 = u16::MAX;
    let before = out.len();
    options::convert(Block::Other, bytes, big_endian, NONE, out);
    options::end(before, out);
}
