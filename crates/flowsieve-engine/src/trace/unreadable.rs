//! Streams that cannot be read, but are known, each with its remedy.

/// Returns what a stream with this start seems to be, and what to do about it.
pub(super) fn looks_like(head: &[u8]) -> Option<&'static str> {
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
        (
            b"PAR1",
            "it is a Parquet file; write it as CSV, in DuckDB with COPY 'list.parquet' TO 'list.csv'",
        ),
        (b"PK\x03\x04", "it is a zip archive; unpack it first if it holds captures"),
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
        (b"\x89FSIEVE\n", "it is a saved filter; `flowsieve filter info` reads it"),
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
