//! The compression of a stream, recognised by its first bytes.

named_enum! {
    /// Compression around a capture.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    #[non_exhaustive]
    pub enum Compression {
        /// None.
        None = "none",
        /// gzip, of one or more members (RFC 1952).
        Gzip = "gzip",
        /// Zstandard, of one or more frames (RFC 8878).
        Zstd = "zstd",
        /// xz, of one or more streams.
        Xz = "xz",
        /// bzip2, of one or more streams.
        Bzip2 = "bzip2",
        /// LZ4 frame format, of one or more frames.
        Lz4 = "lz4",
    }
}

impl Compression {
    /// Number of bytes that [`Self::sniff`] looks at.
    pub(super) const SNIFF_BYTES: usize = 6;

    /// Recognises the compression by the first bytes of a stream.
    pub(super) fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // The second pattern is a skippable frame, with which parallel compressors begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // Block magic 0x314159…, or 0x177245… of a stream without blocks.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Self::Bzip2,
            // The second pattern is the legacy frame of the first tools.
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }
}
