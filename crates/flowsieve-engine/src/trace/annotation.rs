//! Annotations of a pcapng file, which a writer copies: secrets, names, comments on sections, and
//! custom blocks.
//!
//! Their numbers are stored in little-endian order, whatever the order of their section.

use super::record::Records;
use super::write::options::{self, Block};

const NAMES: u32 = 4;
const SECRETS: u32 = 10;
const CUSTOM: u32 = 0x0000_0bad;
const CUSTOM_NOT_TO_COPY: u32 = 0x4000_0bad;

/// Bytes of annotations that are kept between two batches of packets.
const MAX_BYTES: usize = 64 << 20;

/// Kind of an annotation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnnotationKind {
    /// Keys by which a reader decrypts the packets.
    Secrets,
    /// Names of addresses.
    Names,
    /// A custom block.
    Custom,
    /// A comment on the first section.
    Comment,
    /// A comment on another section; what is written has one.
    LaterComment,
    /// A custom block that only a program that knows it may copy.
    NotToCopy,
    /// A block that is too large, of too many, or contradicts itself.
    Unreadable,
}

impl AnnotationKind {
    /// All kinds, in the order of [`Lost`].
    const ALL: [Self; 7] = [
        Self::Secrets,
        Self::Names,
        Self::Custom,
        Self::Comment,
        Self::LaterComment,
        Self::NotToCopy,
        Self::Unreadable,
    ];

    /// Returns a number of this kind in words.
    fn counted(self, count: u64) -> String {
        let (noun, rest) = match self {
            Self::Secrets => ("decryption secrets block", ""),
            Self::Names => ("name resolution block", ""),
            Self::Custom => ("custom block", ""),
            Self::Comment => ("section comment", ""),
            Self::LaterComment => ("comment", " of later sections"),
            Self::NotToCopy => ("custom block", " marked as not to be copied"),
            Self::Unreadable => ("block", " too large or too damaged to copy"),
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural}{rest}")
    }

    /// Returns the type of its block, if it can be written as one.
    pub(super) fn block(self) -> Option<u32> {
        match self {
            Self::Secrets => Some(SECRETS),
            Self::Names => Some(NAMES),
            Self::Custom => Some(CUSTOM),
            _ => None,
        }
    }

    /// Returns whether a writer can write it to a pcapng file.
    fn is_kept(self) -> bool {
        self == Self::Comment || self.block().is_some()
    }
}

/// Annotations that are not in what was written, by kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lost([u64; AnnotationKind::ALL.len()]);

impl Lost {
    /// Returns those that at least one of two files lacks.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind].max(other.0[kind])))
    }

    /// Returns the number of each kind in words, or `None` if there are none.
    pub fn in_words(&self) -> Option<String> {
        let counts = AnnotationKind::ALL.into_iter().zip(self.0);
        let words = counts.filter(|&(_, count)| count > 0);
        let mut words: Vec<String> = words.map(|(kind, count)| kind.counted(count)).collect();
        let last = words.pop()?;
        Some(if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) })
    }

    /// Counts those that no writer can keep; with `all`, every one.
    pub(crate) fn add(&mut self, annotations: &[Annotation], all: bool) {
        for annotation in annotations {
            let kind = annotation.kind;
            self.0[kind as usize] += u64::from(all || !kind.is_kept());
        }
    }

    /// Counts some that were too long, or too many.
    pub(crate) fn add_unreadable(&mut self, count: u64) {
        self.0[AnnotationKind::Unreadable as usize] += count;
    }

    /// Adds others.
    pub(super) fn add_all(&mut self, others: &Self) {
        for (count, other) in self.0.iter_mut().zip(others.0) {
            *count += other;
        }
    }
}

/// An annotation between packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Annotation {
    /// Its kind.
    pub kind: AnnotationKind,
    /// Packets of the batch that stand before it.
    pub before: u32,
    /// The body of the block, or the text of the comment; little-endian. Empty if it cannot be
    /// written.
    pub(super) body: Vec<u8>,
}

#[cfg(test)]
impl Annotation {
    pub(super) fn for_test(kind: AnnotationKind, before: u32) -> Self {
        Self { kind, before, body: Vec::new() }
    }
}

/// Returns whether blocks of this type are annotations.
pub(super) fn is_one(block: u32) -> bool {
    matches!(block, NAMES | SECRETS | CUSTOM | CUSTOM_NOT_TO_COPY)
}

/// Stores a block that follows this many packets of the batch.
pub(super) fn take_down(
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
    match body {
        Some(body) => put(kind, body, before, records),
        None => put(AnnotationKind::Unreadable, Vec::new(), before, records),
    }
}

/// Stores the comments of a section, which are among its options.
pub(super) fn take_down_section(
    bytes: &[u8],
    big_endian: bool,
    before: usize,
    records: &mut Records,
) {
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

/// Notes a block that is too long to be kept.
pub(super) fn take_down_long(records: &mut Records) {
    records.unkept += 1;
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
    loop {
        if rest.is_empty() {
            // Some writers leave out the record that ends the list.
            out.extend([0; HEAD]);
            return Some(out);
        }
        let (&[a, b, c, d], values) = rest.split_first_chunk::<HEAD>()?;
        let [kind, length] = if big_endian {
            [[a, b], [c, d]].map(u16::from_be_bytes)
        } else {
            [[a, b], [c, d]].map(u16::from_le_bytes)
        };
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
