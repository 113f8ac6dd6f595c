//! Compression of what is written, as one stream.

use std::io::{self, Write};

use super::super::compression::Compression;

/// Level of zstd: its own default.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 3;

/// Preset of xz; further ones take several times the time and the memory.
const XZ_PRESET: u32 = 3;

/// A compressor in front of `W`, or none.
pub(super) enum Compressor<W: Write> {
    None(W),
    Gzip(flate2::write::GzEncoder<W>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Xz(Box<lzma_rust2::XzWriter<W>>),
    Bzip2(bzip2::write::BzEncoder<W>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<W>>),
}

/// Memory that a compressor takes, about. Some allocate when they are first used, and end the
/// program if it is refused.
pub(super) const fn memory_bytes(compression: Compression) -> u64 {
    match compression {
        Compression::None => 0,
        Compression::Gzip => 1 << 20,
        Compression::Zstd | Compression::Bzip2 | Compression::Lz4 => 10 << 20,
        Compression::Xz => 48 << 20,
    }
}

impl<W: Write> Compressor<W> {
    pub(super) fn new(out: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(out),
            Compression::Gzip => {
                let level = flate2::Compression::default();
                Self::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => {
                let reason = "this build of flowsieve has no compressor for zstd";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            Compression::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(XZ_PRESET);
                Self::Xz(Box::new(lzma_rust2::XzWriter::new(out, options)?))
            }
            Compression::Bzip2 => {
                let level = bzip2::Compression::default();
                Self::Bzip2(bzip2::write::BzEncoder::new(out, level))
            }
            Compression::Lz4 => Self::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(out))),
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(out) => out.write_all(bytes),
            Self::Gzip(out) => out.write_all(bytes),
            #[cfg(feature = "zstd")]
            Self::Zstd(out) => out.write_all(bytes),
            Self::Xz(out) => out.write_all(bytes),
            Self::Bzip2(out) => out.write_all(bytes),
            Self::Lz4(out) => out.write_all(bytes),
        }
    }

    /// Ends the stream.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::None(mut out) => out.flush().map(|()| out),
            Self::Gzip(out) => out.finish(),
            #[cfg(feature = "zstd")]
            Self::Zstd(out) => out.finish(),
            Self::Xz(out) => out.finish(),
            Self::Bzip2(out) => out.finish(),
            Self::Lz4(out) => out.finish().map_err(io::Error::other),
        }
    }
}
