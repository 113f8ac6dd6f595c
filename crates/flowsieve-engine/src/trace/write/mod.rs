//! Writing captures: packets that a reader [took down](super::Capture::keep_records), as they were.
//!
//! ```text
//!   record batches ─► pcap │ pcapng ─► blocks ─► (thread) compression ─► file, pipe
//! ```
//!
//! The container is fixed when the writer is made, its head when the first packet comes. What goes on
//! behind the blocks happens in a thread of its own.

mod behind;
mod compress;
pub(super) mod options;
mod pcap;
mod pcapng;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use self::behind::Behind;
use self::pcap::PcapWriter;
use self::pcapng::PcapngWriter;
use super::compression::Compression;
use super::packet::LinkType;
use super::record::RecordBatch;

/// The container of a capture that is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CaptureFormat {
    /// pcap: one link type, no interfaces, no comments.
    Pcap,
    /// pcapng.
    Pcapng,
}

/// Container and compression of a capture that is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteFormat {
    /// The container.
    pub container: CaptureFormat,
    /// The compression around it.
    pub compression: Compression,
}

impl WriteFormat {
    /// What a file of this name should hold: pcap if it ends in `.pcap`, `.cap`, `.dmp` or `.dump`, else
    /// pcapng; compressed if `.gz`, `.zst`, `.xz`, `.bz2` or `.lz4` follows.
    pub fn of_name(path: &Path) -> Self {
        let ending = |path: &Path| {
            let ending = path.extension().unwrap_or_default();
            ending.to_string_lossy().to_ascii_lowercase()
        };
        let compression = match ending(path).as_str() {
            "gz" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "xz" => Compression::Xz,
            "bz2" => Compression::Bzip2,
            "lz4" => Compression::Lz4,
            _ => Compression::None,
        };
        let inner = match compression {
            Compression::None => path.to_path_buf(),
            _ => path.with_extension(""),
        };
        let container = match ending(&inner).as_str() {
            "pcap" | "cap" | "dmp" | "dump" => CaptureFormat::Pcap,
            _ => CaptureFormat::Pcapng,
        };
        Self {
            container,
            compression,
        }
    }
}

/// Why a packet could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A pcap file has one link type.
    #[error(
        "the packets have several link types ({} and {}), and pcap holds one; give the output a name that ends in .pcapng",
        name(*.0), name(*.1)
    )]
    LinkTypes(LinkType, LinkType),
    /// A pcap file has times from 1970 to 2106.
    #[error(
        "a packet's time, {0} ns since 1970, is out of the range of pcap; give the output a name that ends in .pcapng"
    )]
    Time(i64),
}

fn name(link: LinkType) -> String {
    link.name()
        .map_or_else(|| link.0.to_string(), str::to_owned)
}

/// What was written, and what could not be kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// Packets.
    pub packets: u64,
    /// Packets whose comments or other options had no place in pcap.
    pub without_options: u64,
}

/// Writes packets of one or more captures.
pub struct CaptureWriter<W: Write + Send + 'static> {
    container: Container,
    out: Behind<W>,
    written: Written,
}

enum Container {
    Pcap(PcapWriter),
    Pcapng(PcapngWriter),
}

impl<W: Write + Send + 'static> CaptureWriter<W> {
    /// A writer to `out`. pcap has nanoseconds, except where all packets come from one pcap file with
    /// microseconds, as `single_input` lets it: then records stay as they are.
    ///
    /// # Errors
    /// There is no thread to be had, or the compressor cannot be set up.
    pub fn new(out: W, format: WriteFormat, single_input: bool) -> io::Result<Self> {
        Ok(Self {
            container: match format.container {
                CaptureFormat::Pcap => Container::Pcap(PcapWriter::new(single_input)),
                CaptureFormat::Pcapng => Container::Pcapng(PcapngWriter::default()),
            },
            out: Behind::new(out, format.compression)?,
            written: Written::default(),
        })
    }

    /// Writes packets `from..to` of a batch of the input with this number. Interfaces that are new are
    /// written even if the range is empty.
    ///
    /// # Errors
    /// [`WriteError`]; the output is then of no use.
    pub fn write(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
    ) -> Result<(), WriteError> {
        match &mut self.container {
            Container::Pcap(writer) => {
                self.written.without_options += writer.write(batch, from, to, &mut self.out)?;
            }
            Container::Pcapng(writer) => writer.write(input, batch, from, to, &mut self.out)?,
        }
        self.written.packets += (to - from) as u64;
        Ok(())
    }

    /// Writes what is still to be written, and gives back where it went.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self) -> Result<(W, Written), WriteError> {
        match &mut self.container {
            Container::Pcap(writer) => writer.finish(&mut self.out)?,
            Container::Pcapng(writer) => writer.finish(&mut self.out)?,
        }
        Ok((self.out.finish()?, self.written))
    }
}

impl<W: Write + Send + 'static> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter")
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
