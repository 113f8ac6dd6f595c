//! The error of this layer: the file, the place in it, what is wrong and what to do.

use crate::untrusted::Shown;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::compression::Compression;

/// A capture could not be opened, or could not be read to its end.
///
/// Displays as one sentence that names the file, the place, what was wrong and what to do next.
#[derive(Debug)]
pub struct TraceError {
    /// The file, or `-` for standard input.
    pub path: PathBuf,
    /// Byte offset of the damage, if it is known: in the decompressed stream, except for
    /// [`TraceErrorKind::DamagedCompression`], where it counts bytes of the compressed file.
    pub offset: Option<u64>,
    /// The problem.
    pub kind: TraceErrorKind,
}

/// Kind of a [`TraceError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// The operating system refused.
    Io(io::Error),
    /// The content is in no format that can be read.
    NotACapture {
        /// The format that it seems to have, and the remedy.
        reason: String,
    },
    /// The file (or what it decompresses to) has no bytes at all.
    Empty,
    /// The stream ends inside the file header.
    CutInHeader {
        /// Name of the container.
        container: &'static str,
        /// Bytes that the header takes.
        needed: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// The container is known, its version is not.
    UnsupportedVersion {
        /// Name of the container.
        container: &'static str,
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The file header contradicts its format.
    CorruptHeader {
        /// Name of the container.
        container: &'static str,
        /// The contradiction.
        reason: String,
    },
    /// The stream ends inside a record.
    CutInRecord {
        /// Number of the packet, from 1, that the record holds or would come next.
        packet: u64,
        /// Bytes that the record takes, header included, as far as that is known.
        promised: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// A record or block claims more bytes than its format allows.
    RecordTooLong {
        /// Number of the packet, from 1, that the record holds or would come next.
        packet: u64,
        /// Claimed length in bytes.
        length: u64,
        /// Largest legal length in bytes.
        limit: u64,
    },
    /// A record or block contradicts its format.
    CorruptBlock {
        /// Number of the packet, from 1, that the block holds or would come next.
        packet: u64,
        /// The contradiction.
        reason: String,
    },
    /// The compressed stream is cut or damaged; everything decompressed before it was delivered.
    DamagedCompression {
        /// The codec.
        codec: Compression,
        /// The file ends too early, rather than being damaged in itself.
        cut: bool,
        /// Message of the decompressor.
        reason: String,
    },
    /// The compressed stream is sound, as far as it was read, but cannot be decompressed here.
    UnsupportedCompression {
        /// The codec.
        codec: Compression,
        /// The requirement that is not met.
        reason: String,
    },
    /// Decoding a packet panicked, which is a mistake in flowsieve.
    Undecodable {
        /// Number of the packet, from 1, or of the first of those among which it is.
        packet: u64,
        /// Number of the first packet that is not counted for this.
        lost_from: u64,
        /// Message of the decoder.
        reason: String,
    },
    /// An error that another process reported.
    Reported {
        /// Its whole sentence, with the file and the place.
        sentence: String,
    },
    /// A line of a log is not as its header promises.
    MalformedLine {
        /// Line number, from 1.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// The file was read twice, and had changed in between.
    Changed,
    /// Lines of a log were not records and were skipped; all others were read.
    LinesSkipped {
        /// Number of the first of them, from 1.
        line: u64,
        /// The problem.
        reason: String,
        /// How many followed.
        others: u64,
    },
    /// Records of a log in binary form could not be used and were skipped; all others were read.
    RecordsSkipped {
        /// Number of the first of them, from 1.
        record: u64,
        /// The problem.
        reason: String,
        /// How many followed.
        others: u64,
    },
}

impl TraceErrorKind {
    /// Creates the error of a file, at no place in it.
    pub(crate) fn in_file(self, path: &Path) -> TraceError {
        TraceError { path: path.to_path_buf(), offset: None, kind: self }
    }

    #[cold]
    pub(super) fn too_long(packet: u64, length: impl Into<u64>, limit: impl Into<u64>) -> Self {
        Self::RecordTooLong { packet, length: length.into(), limit: limit.into() }
    }
}

/// An error that does not know its file yet.
#[derive(Debug)]
pub(super) struct ReadError {
    pub(super) offset: Option<u64>,
    pub(super) kind: TraceErrorKind,
}

impl ReadError {
    pub(super) fn at(offset: u64, kind: TraceErrorKind) -> Self {
        Self { offset: Some(offset), kind }
    }

    /// Creates the error of a file that ends inside its header.
    pub(super) fn cut_in_header(container: &'static str, needed: usize, present: usize) -> Self {
        let (needed, present) = (needed as u64, present as u64);
        let kind = TraceErrorKind::CutInHeader { container, needed, present };
        Self::at(0, kind)
    }

    /// Creates the error of a stream that ends inside a record.
    pub(super) fn cut(offset: u64, packet: u64, promised: u64, present: u64) -> Self {
        let kind = TraceErrorKind::CutInRecord { packet, promised, present };
        Self::at(offset, kind)
    }

    pub(super) fn line(offset: u64, line: u64, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::at(offset, TraceErrorKind::MalformedLine { line, reason })
    }

    /// Creates the error of a record of a binary log that cannot be used.
    pub(super) fn record(offset: u64, record: u64, reason: impl Into<String>) -> Self {
        let (reason, others) = (reason.into(), 0);
        let kind = TraceErrorKind::RecordsSkipped { record, reason, others };
        Self::at(offset, kind)
    }

    /// Adds one to the number of further lines or records that were skipped.
    pub(super) fn count_other(&mut self) {
        if let TraceErrorKind::LinesSkipped { others, .. }
        | TraceErrorKind::RecordsSkipped { others, .. } = &mut self.kind
        {
            *others += 1;
        }
    }

    /// Adds packets that stand before the numbered ones.
    pub(super) fn behind(mut self, packets: u64) -> Self {
        if let TraceErrorKind::CutInRecord { packet, .. }
        | TraceErrorKind::RecordTooLong { packet, .. }
        | TraceErrorKind::CorruptBlock { packet, .. } = &mut self.kind
        {
            *packet += packets;
        }
        self
    }

    pub(super) fn in_file(self, path: &Path) -> TraceError {
        TraceError { path: path.to_path_buf(), offset: self.offset, kind: self.kind }
    }
}

/// Damage of a compressed stream, on its way through `std::io::Read` up to the buffer.
#[derive(Debug, thiserror::Error)]
#[error("{} stream at offset {offset}: {reason}", .codec.name())]
pub(super) struct CodecDamage {
    pub(super) codec: Compression,
    pub(super) offset: u64,
    pub(super) fault: Fault,
    pub(super) reason: String,
}

/// Why a codec cannot continue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// The stream ends too early.
    Cut,
    Damaged,
    /// It is no damage, but not supported.
    Unsupported,
    /// The system did not give the memory: the bytes may be sound.
    Refused,
}

impl ReadError {
    /// Creates the error of a failed `read` at `offset`: the damage of a compressed stream, or a
    /// refusal of the operating system.
    pub(super) fn from_io(error: io::Error, offset: u64) -> Self {
        match error.downcast::<CodecDamage>() {
            Ok(CodecDamage { codec, offset, fault: Fault::Unsupported, reason }) => {
                Self::at(offset, TraceErrorKind::UnsupportedCompression { codec, reason })
            }
            Ok(CodecDamage { codec, offset, fault, reason }) => {
                let cut = fault == Fault::Cut;
                Self::at(offset, TraceErrorKind::DamagedCompression { codec, cut, reason })
            }
            Err(error) => Self::at(offset, TraceErrorKind::Io(error)),
        }
    }
}

/// "1 byte", "2 bytes".
fn bytes(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let TraceErrorKind::Reported { sentence } = &self.kind {
            return f.write_str(sentence);
        }
        if self.path.as_os_str() == "-" {
            write!(f, "standard input: ")?;
        } else {
            write!(f, "{}: ", self.path.shown())?;
        }
        let offset = self.offset.unwrap_or(0);
        match &self.kind {
            TraceErrorKind::Io(error) => self.write_io(f, error),
            TraceErrorKind::NotACapture { reason } => {
                write!(f, "not a capture that can be read: {reason}")
            }
            TraceErrorKind::Empty => {
                f.write_str("it is empty; perhaps its writer has not begun yet, or its copy failed")
            }
            TraceErrorKind::Changed => f.write_str(
                "it was read twice and changed in between: results may be wrong or incomplete; run this \
                 again when nothing writes to the file",
            ),
            TraceErrorKind::CutInHeader { container, needed, present } => write!(
                f,
                "the file ends inside its {container} header: {} were expected, {}; copy the file again",
                bytes(*needed),
                there(*present)
            ),
            TraceErrorKind::UnsupportedVersion { container: "cdns", major: 0, minor } => write!(
                f,
                "cdns version 0.{minor} is a draft from before RFC 8618; write the file again with a current \
                 version of the program that made it"
            ),
            TraceErrorKind::UnsupportedVersion { container, major, minor } => write!(
                f,
                "{container} version {major}.{minor} is not known; rewrite the file with a current tool, \
                 or check whether its header is damaged"
            ),
            TraceErrorKind::CorruptHeader { container, reason } => write!(
                f,
                "the {container} header is damaged at offset {offset}: {reason}; nothing can be read, copy \
                 the file again"
            ),
            TraceErrorKind::DamagedCompression { codec, cut: true, .. } => write!(
                f,
                "the {} data ends too early, at offset {offset} of the compressed file; everything before \
                 was read, copy the file again for the rest",
                codec.name()
            ),
            TraceErrorKind::DamagedCompression { codec, cut: false, reason } => write!(
                f,
                "the {} data is damaged near offset {offset} of the compressed file ({reason}); everything \
                 before was read, copy the file again for the rest",
                codec.name()
            ),
            TraceErrorKind::UnsupportedCompression { codec, reason } => {
                write!(f, "the {} data cannot be decompressed: {reason}", codec.name())
            }
            _ => self.write_record(f),
        }
    }
}

const UNTIL_HERE: &str = "everything before it was read, copy the file again for the rest";

impl TraceError {
    /// Whether another reading of the same bytes may succeed: the system refused something.
    #[doc(hidden)]
    pub fn may_pass(&self) -> bool {
        // `Other` is what a panic of a decompressor becomes.
        matches!(&self.kind, TraceErrorKind::Io(error) if error.kind() != io::ErrorKind::Other)
    }

    /// Writes what is wrong with a record.
    fn write_record(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset.unwrap_or(0);
        match &self.kind {
            TraceErrorKind::CutInRecord { packet, promised, present } => write!(
                f,
                "the file ends inside the record of packet {packet}, at offset {offset}: {} were promised, \
                 {}; {UNTIL_HERE}",
                bytes(*promised),
                there(*present)
            ),
            TraceErrorKind::RecordTooLong { packet, length, limit } => write!(
                f,
                "the record of packet {packet}, at offset {offset}, claims {}, more than the {limit} that \
                 are legal; {UNTIL_HERE}",
                bytes(*length)
            ),
            TraceErrorKind::CorruptBlock { packet, reason } => write!(
                f,
                "the record of packet {packet}, at offset {offset}, is damaged: {reason}; {UNTIL_HERE}"
            ),
            TraceErrorKind::Undecodable { packet, lost_from, reason } => write!(
                f,
                "packet {packet} could not be decoded ({reason}), and packets from number {lost_from} on are \
                 not counted; this is a mistake in flowsieve, please report it with the packet"
            ),
            TraceErrorKind::MalformedLine { line, reason } => write!(
                f,
                "line {line}, at offset {offset}, is not a record of its log: {reason}; everything \
                 before it was read, fix the line to read the rest"
            ),
            TraceErrorKind::LinesSkipped { line, reason, others } => {
                let remedy = ["fix the line to have it", "fix the lines to have them"];
                let skipped = skipped(*others, remedy, "counted");
                write!(
                    f,
                    "line {line}, at offset {offset}, is not a record of its log: {reason}; {skipped}"
                )
            }
            TraceErrorKind::RecordsSkipped { record, reason, others } => {
                let remedy = ["copy the file again if it", "copy the file again if they"];
                let skipped = skipped(*others, remedy, "should be there");
                write!(
                    f,
                    "record {record}, at offset {offset}, cannot be used: {reason}; {skipped}"
                )
            }
            _ => Ok(()),
        }
    }

    fn write_io(&self, f: &mut fmt::Formatter<'_>, error: &io::Error) -> fmt::Result {
        match error.kind() {
            io::ErrorKind::NotFound if begins_filter(&self.path) => write!(
                f,
                "no such file; a capture filter goes after --where, such as --where 'port 53'"
            ),
            io::ErrorKind::NotFound => write!(f, "no such file; check the path"),
            io::ErrorKind::PermissionDenied => f.write_str(
                "permission denied; make the file readable or run as a user that may read it",
            ),
            io::ErrorKind::OutOfMemory => {
                write!(f, "{error}; allow the program more (ulimit -v) and try again")
            }
            io::ErrorKind::IsADirectory => {
                write!(f, "is a directory; name the captures in it")
            }
            io::ErrorKind::NotADirectory => {
                write!(f, "a file is named like a directory here; leave out the / after its name")
            }
            _ if error.raw_os_error().is_some_and(is_out_of_files) => write!(
                f,
                "{error}; captures that overlap in time are open together, raise the limit with \
                 `ulimit -n` or name fewer of them"
            ),
            _ => {
                write!(f, "cannot be read")?;
                if let Some(offset) = self.offset {
                    write!(f, " at offset {offset}")?;
                }
                write!(f, ": {error}")?;
                // Readers of this program and of others say what to do themselves.
                if error.raw_os_error().is_none() {
                    return Ok(());
                }
                write!(f, "; check the disk or the network share and try again")
            }
        }
    }
}

/// Whether a path is a word that begins a capture filter.
fn begins_filter(path: &Path) -> bool {
    const WORDS: &[&str] = &[
        "port", "host", "tcp", "udp", "net", "src", "dst", "ip", "ip6", "icmp", "arp", "vlan",
        "ether", "dns", "not",
    ];
    path.to_str().is_some_and(|path| WORDS.contains(&path))
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            TraceErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns whether too many files are open: in this process (EMFILE) or in all of them (ENFILE).
fn is_out_of_files(code: i32) -> bool {
    cfg!(unix) && matches!(code, 23 | 24)
}

/// Says that a record was skipped, and `others` like it, with the remedy for one and for several.
fn skipped(others: u64, [one, several]: [&str; 2], end: &str) -> String {
    match others {
        0 => format!("it was skipped, {one} {end}"),
        1 => format!("it was skipped, and so was one more; {several} {end}"),
        _ => format!("it was skipped, and so were {others} more; {several} {end}"),
    }
}

/// Returns in words how many bytes are there instead.
fn there(present: u64) -> String {
    if present == 1 { "1 is there".to_owned() } else { format!("{present} are there") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_record_is_one_sentence_with_place_and_figures() {
        let kind = TraceErrorKind::CutInRecord { packet: 12, promised: 96, present: 40 };
        let error = ReadError::at(3312, kind).in_file(Path::new("x.pcap"));
        assert_eq!(
            error.to_string(),
            "x.pcap: the file ends inside the record of packet 12, at offset 3312: 96 bytes were promised, \
             40 are there; everything before it was read, copy the file again for the rest"
        );
    }

    #[test]
    fn io_errors_have_a_remedy_and_a_source() {
        let error = ReadError::from_io(io::ErrorKind::PermissionDenied.into(), 0);
        let error = error.in_file(Path::new("-"));
        assert!(error.to_string().starts_with("standard input: permission denied; "));
        assert!(std::error::Error::source(&error).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn too_many_open_files_have_a_remedy_of_their_own() {
        let error = ReadError::from_io(io::Error::from_raw_os_error(24), 0);
        let sentence = error.in_file(Path::new("x.pcap")).to_string();
        assert!(sentence.contains("ulimit -n"), "{sentence}");
    }

    #[test]
    fn codec_damage_survives_the_way_through_io() {
        let damage = CodecDamage {
            codec: Compression::Gzip,
            offset: 7,
            fault: Fault::Cut,
            reason: String::new(),
        };
        let error = ReadError::from_io(io::Error::other(damage), 99);
        assert_eq!(error.offset, Some(7));
        assert!(matches!(error.kind, TraceErrorKind::DamagedCompression { cut: true, .. }));
    }
}
