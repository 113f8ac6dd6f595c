//! Writing captures: packets that a reader [took down](super::Capture::keep_records), as they were.
//!
//! ```text
//!   record batches ─► pcap │ pcapng ─► blocks ─► (thread) compression ─► file, pipe
//! ```
//!
//! The container is fixed when the writer is made, its head when the first packet comes. What goes
//! on behind the blocks happens in another thread.

mod behind;
mod compress;
pub(super) mod options;
mod pcap;
mod pcapng;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use self::behind::WriteBehind;
use self::pcap::PcapWriter;
use self::pcapng::PcapngWriter;
use super::annotation::{Annotation, Lost};
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
    /// Returns the format of a file of this name: pcap if it ends in `.pcap`, `.cap`, `.dmp` or `.dump`,
    /// else pcapng; compressed if `.gz`, `.zst`, `.xz`, `.bz2` or `.lz4` follows.
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
        Self { container, compression }
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
        .0.words(), .1.words()
    )]
    LinkTypes(LinkType, LinkType),
    /// A pcap file has times from 1970 to 2106.
    #[error(
        "a packet's time, {0} ns since 1970, is out of the range of pcap; give the output a name that ends in .pcapng"
    )]
    Time(i64),
}

/// The snapshot length to be stated where an input states one, of which 0 is none, and packets may
/// be cut besides.
fn snap_length(stated: u32, limit: Option<u32>) -> u32 {
    match (stated, limit) {
        (stated, None) => stated,
        (0, Some(limit)) => limit,
        (stated, Some(limit)) => stated.min(limit),
    }
}

fn put_words(words: &[u32], out: &mut Vec<u8>) {
    for word in words {
        out.extend(word.to_le_bytes());
    }
}

/// The annotations before packets `from..to` of a batch, and those behind its last packet if that
/// is among them.
fn between<'a>(batch: &RecordBatch<'a>, from: usize, to: usize) -> &'a [Annotation] {
    let all = batch.annotations;
    let place = |packet: usize| all.partition_point(|one| (one.before as usize) < packet);
    match to {
        _ if from == to => &[],
        _ if to == batch.packets.len() => &all[place(from)..],
        _ => &all[place(from)..place(to)],
    }
}

/// Tallies of what was written, and of what could not be kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// Packets.
    pub packets: u64,
    /// Packets whose comments or other options had no place in pcap.
    pub without_options: u64,
    /// Annotations that are not in the file.
    #[doc(hidden)]
    pub lost: Lost,
}

/// Writes packets of one or more captures.
pub struct CaptureWriter<W: Write + Send + 'static> {
    container: Container,
    out: WriteBehind<W>,
    written: Written,
    /// Annotations are kept. Those of several inputs might contradict each other.
    annotates: bool,
}

enum Container {
    Pcap(PcapWriter),
    Pcapng(PcapngWriter),
}

impl<W: Write + Send + 'static> CaptureWriter<W> {
    /// A writer to `out`. pcap has nanoseconds, except where all packets come from one pcap file
    /// with microseconds, as `single_input` lets it: then records stay as they are.
    ///
    /// # Errors
    /// There is no thread to be had, or the compressor cannot be set up.
    pub fn new(out: W, format: WriteFormat, single_input: bool) -> io::Result<Self> {
        Ok(Self {
            container: match format.container {
                CaptureFormat::Pcap => Container::Pcap(PcapWriter::new(single_input)),
                CaptureFormat::Pcapng => Container::Pcapng(PcapngWriter::default()),
            },
            out: WriteBehind::new(out, format.compression)?,
            annotates: single_input && format.container == CaptureFormat::Pcapng,
            written: Written::default(),
        })
    }

    /// States that no captured length exceeds this; to be called before packets come. The packets
    /// are the caller's.
    #[doc(hidden)]
    pub fn limit_snap_length(&mut self, bytes: u32) {
        match &mut self.container {
            Container::Pcap(writer) => writer.snap_limit = Some(bytes),
            Container::Pcapng(writer) => writer.snap_limit = Some(bytes),
        }
    }

    /// Writes packets `from..to` of a batch of the input with this number. Interfaces that are new
    /// are written even if the range is empty.
    ///
    /// # Errors
    /// [`WriteError`]; the output is then of no use.
    #[doc(hidden)]
    pub fn write(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
    ) -> Result<(), WriteError> {
        let out = &mut self.out.block;
        match &mut self.container {
            Container::Pcap(writer) => {
                self.written.without_options += writer.write(batch, from, to, out)?;
            }
            Container::Pcapng(writer) => {
                let annotations = if self.annotates { batch.annotations } else { &[] };
                writer.write(input, &RecordBatch { annotations, ..*batch }, from, to, out);
            }
        }
        self.out.send_full()?;
        self.written.packets += (to - from) as u64;
        let annotations = between(batch, from, to);
        self.written.lost.add(annotations, !self.annotates);
        Ok(())
    }

    /// Passes over packets `from..to` of a batch, which are not written; what stands between them
    /// is.
    ///
    /// # Errors
    /// As [`Self::write`].
    #[doc(hidden)]
    pub fn pass_over(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
    ) -> Result<(), WriteError> {
        self.write(input, batch, from, from)?;
        self.annotate(between(batch, from, to))
    }

    /// Writes annotations.
    ///
    /// # Errors
    /// As [`Self::write`].
    #[doc(hidden)]
    pub fn annotate(&mut self, annotations: &[Annotation]) -> Result<(), WriteError> {
        if let (Container::Pcapng(writer), true) = (&mut self.container, self.annotates) {
            writer.annotate(annotations, &mut self.out.block);
        }
        self.out.send_full()?;
        self.written.lost.add(annotations, !self.annotates);
        Ok(())
    }

    /// Counts annotations that it will not get.
    #[doc(hidden)]
    pub fn lose(&mut self, annotations: &Lost) {
        self.written.lost.add_all(annotations);
    }

    /// Writes what is still to be written, and gives back where it went.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self) -> Result<(W, Written), WriteError> {
        match &mut self.container {
            Container::Pcap(writer) => writer.finish(&mut self.out.block),
            Container::Pcapng(writer) => writer.finish(&mut self.out.block),
        }
        Ok((self.out.finish()?, self.written))
    }
}

impl<W: Write + Send + 'static> std::fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter").field("written", &self.written).finish_non_exhaustive()
    }
}
