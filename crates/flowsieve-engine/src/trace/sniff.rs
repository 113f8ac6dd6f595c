//! Which container a stream is in, recognised by its content, never from its name.

use super::cdns;
use super::dnstap;
use super::erf;
use super::error::{Fault, TraceErrorKind};
use super::frame_streams;
use super::log_columns::{self, Rows};
use super::parquet;
use super::read_buffer::ReadBuffer;
use super::zeek;

/// How much of a stream is looked at when it has no magic number.
const SNIFF_BYTES: usize = 64 * 1024;

/// What a stream of packets or of records is written in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Container {
    Pcap,
    Pcapng,
    Erf,
    Tsh,
    Dnstap,
    Cdns,
    ZeekDnsTsv,
    ZeekDnsJson,
    ZeekConnTsv,
    ZeekConnJson,
    EveJson,
    DnsCsv,
    FlowCsv,
    NfdumpCsv,
    FlowParquet,
    DnsParquet,
}

impl Container {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::Erf => "erf",
            Self::Tsh => "tsh",
            Self::Dnstap => "dnstap",
            Self::Cdns => "cdns",
            Self::ZeekDnsTsv => "zeek-dns-tsv",
            Self::ZeekDnsJson => "zeek-dns-json",
            Self::ZeekConnTsv => "zeek-conn-tsv",
            Self::ZeekConnJson => "zeek-conn-json",
            Self::EveJson => "eve-json",
            Self::DnsCsv => "dns-csv",
            Self::FlowCsv => "flow-csv",
            Self::NfdumpCsv => "nfdump-csv",
            Self::FlowParquet => "flow-parquet",
            Self::DnsParquet => "dns-parquet",
        }
    }
}

/// Recognises the container at the start of `buffer`, without consuming anything.
pub(super) fn sniff(buffer: &mut ReadBuffer) -> Result<Container, Fault> {
    // Four bytes first: a live stream may take long to bring more.
    buffer.fill(4);
    match buffer.unread() {
        [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xcd, 0x34, ..]
        | [0x34, 0xcd, 0xb2, 0xa1, ..] => return Ok(Container::Pcap),
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => return Ok(Container::Pcapng),
        // What its rows are stands at its end.
        mark if mark.starts_with(parquet::MAGIC) => return Ok(Container::FlowParquet),
        _ => {}
    }
    if frame_streams::content_type(buffer) == Some(dnstap::CONTENT_TYPE) {
        return Ok(Container::Dnstap);
    }
    let may_be_cdns = matches!(buffer.unread(), [_, b'\x65', b'C', b'-', ..]);
    if may_be_cdns && buffer.fill(cdns::MARK_BYTES) > 0 && cdns::is_one(buffer.unread()) {
        return Ok(Container::Cdns);
    }
    buffer.fill(SNIFF_BYTES);
    let head = buffer.unread();
    let found = text_log(head)
        .or_else(|| erf::is_plausible(head, buffer.is_complete()).then_some(Container::Erf));
    if let Some(container) = found {
        return Ok(container);
    }
    let (empty, looks_like) = (head.is_empty(), looks_like(head));
    // A damaged compressed stream or a failing disk explains an unknown start better.
    buffer.raise_failure()?;
    let kind =
        if empty { TraceErrorKind::Empty } else { TraceErrorKind::NotACapture { looks_like } };
    Err(Fault::at(0, kind))
}

/// Logs that are text.
fn text_log(head: &[u8]) -> Option<Container> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.starts_with(b"#") {
        return Some(match zeek::kind(head)? {
            zeek::Kind::Queries => Container::ZeekDnsTsv,
            zeek::Kind::Connections => Container::ZeekConnTsv,
        });
    }
    if head.starts_with(b"{") {
        return match zeek::kind(head) {
            Some(zeek::Kind::Queries) => Some(Container::ZeekDnsJson),
            Some(zeek::Kind::Connections) => Some(Container::ZeekConnJson),
            None => contains(head, b"\"event_type\"").then_some(Container::EveJson),
        };
    }
    let line = head.split(|&byte| byte == b'\n').next()?;
    let names = log_columns::header(line.split(|&byte| byte == b','));
    Some(match log_columns::rows(&names)? {
        Rows::Queries => Container::DnsCsv,
        Rows::Flows => Container::FlowCsv,
        Rows::Nfdump => Container::NfdumpCsv,
    })
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

/// What a stream that cannot be read seems to be, and what to do with it.
fn looks_like(head: &[u8]) -> Option<&'static str> {
    // Formats that a converter reads.
    macro_rules! convertible {
        ($what:literal) => {
            concat!(
                "it is ",
                $what,
                " capture; convert it with `editcap in out.pcapng` of Wireshark"
            )
        };
    }
    const REMEDIES: &[(&[u8], &str)] = &[
        (b"snoop\0\0\0", convertible!("a snoop (RFC 1761)")),
        (b"\x1c\x00\x01\xac", convertible!("an Ixia")),
        (b"\xac\x01\x00\x1c", convertible!("an Ixia")),
        (b"RTSS", convertible!("a Microsoft Network Monitor 1")),
        (b"GMBU", convertible!("a Microsoft Network Monitor 2")),
        (b"XCP\0", convertible!("a NetXRay or Sniffer")),
        (b"TRSNIFF data", convertible!("a Sniffer")),
        (b"btsnoop\0", "it is a Bluetooth log, which holds no IP packets"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive; unpack it first"),
        (b"Rar!", "it is a rar archive; unpack it first"),
        (
            b"\x83\x68DNS-STAT",
            "it is a draft of C-DNS, from before RFC 8618; write the file again with a current version of the \
             program that made it",
        ),
        (b"LZIP", "it is compressed with lzip; unpack it first"),
        (b"\x1f\x9d", "it is compressed with compress; unpack it with `uncompress`"),
        (b"\x5d\x00\x00", "it is compressed with lzma; unpack it with `xz --format=lzma -d`"),
        (b"\x7fELF", "it is a program, not a capture"),
        (b"%PDF", "it is a PDF document, not a capture"),
    ];
    if let Some((_, remedy)) = REMEDIES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(remedy);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("it is a tar archive; unpack it first");
    }
    if head.starts_with(b"#separator") {
        return Some(
            "it is a Zeek log that lacks `ts`, an address, `query` or the fields of conn.log; of Zeek's logs \
             dns.log and conn.log can be read",
        );
    }
    if is_dag_legacy(head) {
        return Some(
            "it seems to be a legacy DAG trace; convert it with `traceconvert` of libtrace",
        );
    }
    let start = &head[..head.len().min(512)];
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    if !start.is_empty() && start.iter().all(is_text) && std::str::from_utf8(start).is_ok() {
        return Some(
            "it is text; of text, Zeek's dns.log and conn.log, Suricata's eve.json, nfdump's CSV, lists of \
             flows as CSV and CSV with the columns ts, src, dst and qname can be read",
        );
    }
    None
}

/// Fixed 64-byte records, each with a little-endian 32.32 time stamp, in order, from 1995 to 2010.
fn is_dag_legacy(head: &[u8]) -> bool {
    let seconds = |record: &[u8]| u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
    let mut records = head.chunks_exact(64).take(8).peekable();
    let first = records.peek().map(|record| seconds(record)).unwrap_or_default();
    (788_918_400..1_262_304_000).contains(&first)
        && records.len() >= 3
        && records.is_sorted_by_key(seconds)
        && head.chunks_exact(64).take(8).all(|record| seconds(record) - first < 7 * 86_400)
}
