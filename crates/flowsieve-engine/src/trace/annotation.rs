//! Annotations of a pcapng file, which a writer copies: secrets, names, comments on sections, and
//! custom blocks.
//!
//! Their numbers are stored in little-endian order, whatever the order of their section.

pub(super) const NAMES: u32 = 4;
pub(super) const SECRETS: u32 = 10;
pub(super) const CUSTOM: u32 = 0x0000_0bad;
pub(super) const CUSTOM_NOT_TO_COPY: u32 = 0x4000_0bad;

named_enum! {
    /// Kind of an annotation, with its name in messages.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum AnnotationKind {
        /// Keys by which a reader decrypts the packets.
        Secrets = "decryption secrets block",
        /// Names of addresses.
        Names = "name resolution block",
        /// A custom block.
        Custom = "custom block",
        /// A comment on the first section.
        Comment = "section comment",
        /// A comment on another section; what is written has one.
        LaterComment = "comment",
        /// A custom block that only a program that knows it may copy.
        NotToCopy = "custom block",
        /// A block that is too large, of too many, or contradicts itself.
        Unreadable = "block",
    }
}

impl AnnotationKind {
    /// Returns a number of this kind in words.
    fn counted(self, count: u64) -> String {
        let rest = match self {
            Self::LaterComment => " of later sections",
            Self::NotToCopy => " marked as not to be copied",
            Self::Unreadable => " too large or too damaged to copy",
            _ => "",
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}{rest}", self.name())
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
