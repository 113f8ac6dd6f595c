//! Decodes every capture of a collection and compares the distinct counts with a manifest of them
//! that other tools (mostly tshark 4.0) made.
//!
//! The collection is the folder that `FLOWSIEVE_TRACES` names; it holds `MANIFEST.tsv`, whose
//! comment lines define the figures. Every difference has to stand in [`DIFFERENCES`], with the
//! figure that is right here and the reason.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::{env, fs};

use flowsieve::decode::{Addresses, DNS_PORT, Decoder, Skip, Tunnel, dns_messages};
use flowsieve::trace::LinkType;

/// The figures that are compared, by their names in the manifest.
const FIGURES: [&str; 6] = [
    "ip_packets",
    "pairs_outer",
    "pairs_inner",
    "tuples5_outer",
    "dns_triples",
    "dns_query_triples",
];

/// Ports other than 53 at which a capture's DNS servers listen.
const DNS_PORTS: &[(&str, &[u16])] = &[
    (
        "campus/ndpi-dnscrypt-v1-and-resolver-pings.pcap",
        &[443, 465, 553, 1053, 1443, 2053, 4343, 8443],
    ),
    (
        "malformed/suricata-dns__dns-incomplete__input.pcap",
        &[5353],
    ),
];

/// A figure that differs from the manifest's: file, figure, what the manifest says, what is
/// counted here, and why that is right.
type Difference = (&'static str, &'static str, u64, u64, &'static str);

const FABRIC_PATH: &str = "tshark takes the last four bytes of the frame inside FabricPath for a \
    checksum, and so misses the end of IPv6 and SCTP headers that stand there whole; it finds \
    addresses in 128 packets, as here";
const LONG_NAME: &str =
    "a name of more than 255 bytes is no name; tshark shows it as <Name too long>";
const BAR_IN_NAME: &str = "14 triples (7 queries) of the manifest come from splitting names at the \
    vertical bar that they contain, 1 from names of more than 255 bytes; tshark's own output has \
    20176 triples, the name too long included";
const TWO_QUESTIONS: &str = "the first question counts; a message here has more of them";
const SWITCH_TAG: &str = "tshark does not know the link type; behind the switch's tag are ordinary \
    ARP and IPv4 packets";
const BEYOND_THE_END: &str = "the ports of the second packet stand beyond the end that its IPv6 \
    header states";
const DECRYPTED: &str = "tshark decrypts WireGuard with keys in the capture file";
const VERSION_6: &str = "packet 238 has IPv6 behind the EtherType of IPv4; tshark reads it, too, \
    and so finds 329 packets, 59 pairs";
const OTHER_RECORDS: &str = "a damaged record makes tshark take the file for one with longer \
    record headers; read by its magic number it has these packets";
const OPTIONS_CUT: &str = "packets 417 and 427 end within their IPv4 options: tshark, looking for \
    a source route, finds no destination; the header's own is there";

const DIFFERENCES: &[Difference] = &[
    (
        "campus/zeek-cisco-fabric-path.pcap",
        "ip_packets",
        120,
        128,
        FABRIC_PATH,
    ),
    (
        "campus/zeek-cisco-fabric-path.pcap",
        "tuples5_outer",
        80,
        64,
        FABRIC_PATH,
    ),
    (
        "dns/nsd-live-ignored.pcap.xz",
        "dns_triples",
        1,
        0,
        LONG_NAME,
    ),
    (
        "dns/nsd-live-ignored.pcap.xz",
        "dns_query_triples",
        1,
        0,
        LONG_NAME,
    ),
    (
        "dns/nsd-live-ns.pcap.xz",
        "dns_triples",
        20190,
        20175,
        BAR_IN_NAME,
    ),
    (
        "dns/nsd-live-ns.pcap.xz",
        "dns_query_triples",
        10096,
        10088,
        BAR_IN_NAME,
    ),
    (
        "dns/pcapplusplus-DnsEdit.pcap",
        "dns_triples",
        7,
        6,
        TWO_QUESTIONS,
    ),
    (
        "dns/pcapplusplus-DnsEdit.pcap",
        "dns_query_triples",
        6,
        5,
        TWO_QUESTIONS,
    ),
    ("encap/tcpdump-edsa.pcap", "ip_packets", 0, 6, SWITCH_TAG),
    ("encap/tcpdump-edsa.pcap", "pairs_outer", 0, 2, SWITCH_TAG),
    ("encap/tcpdump-edsa.pcap", "pairs_inner", 0, 2, SWITCH_TAG),
    ("encap/tcpdump-edsa.pcap", "tuples5_outer", 0, 2, SWITCH_TAG),
    (
        "encap/zeek-ipv6-mobility-dst-opts.pcap",
        "tuples5_outer",
        1,
        2,
        BEYOND_THE_END,
    ),
    (
        "formats/wireshark-wireguard-ping-tcp-dsb.pcapng",
        "pairs_inner",
        8,
        2,
        DECRYPTED,
    ),
    (
        "formats/wireshark-wireguard-ping-tcp-dsb.pcapng",
        "dns_triples",
        2,
        0,
        DECRYPTED,
    ),
    (
        "formats/wireshark-wireguard-ping-tcp-dsb.pcapng",
        "dns_query_triples",
        1,
        0,
        DECRYPTED,
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        "ip_packets",
        328,
        329,
        VERSION_6,
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        "pairs_outer",
        58,
        59,
        VERSION_6,
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        "pairs_inner",
        58,
        59,
        VERSION_6,
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        "tuples5_outer",
        89,
        90,
        VERSION_6,
    ),
    (
        "malformed/ndpi-malformed_dns.pcap",
        "dns_triples",
        2,
        1,
        TWO_QUESTIONS,
    ),
    (
        "malformed/pcapplusplus-clusterfuzz-testcase-FuzzTarget-5188876846235648",
        "dns_triples",
        2,
        1,
        TWO_QUESTIONS,
    ),
    (
        "malformed/pcapplusplus-crash-exception-cast-constructed-record",
        "ip_packets",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/pcapplusplus-crash-exception-cast-constructed-record",
        "pairs_outer",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/pcapplusplus-crash-exception-cast-constructed-record",
        "pairs_inner",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/pcapplusplus-crash-exception-cast-constructed-record",
        "tuples5_outer",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/suricata-bug-6875-01__fuzz.pcap",
        "ip_packets",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/suricata-bug-6875-01__fuzz.pcap",
        "pairs_outer",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/suricata-bug-6875-01__fuzz.pcap",
        "pairs_inner",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/suricata-bug-6875-01__fuzz.pcap",
        "tuples5_outer",
        0,
        1,
        OTHER_RECORDS,
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        "ip_packets",
        1783,
        1785,
        OPTIONS_CUT,
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        "pairs_outer",
        447,
        448,
        OPTIONS_CUT,
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        "pairs_inner",
        447,
        448,
        OPTIONS_CUT,
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        "tuples5_outer",
        447,
        448,
        OPTIONS_CUT,
    ),
];

#[test]
fn counts_agree_with_the_manifest() {
    let Ok(folder) = env::var("FLOWSIEVE_TRACES") else {
        println!("SKIPPED: FLOWSIEVE_TRACES is not set");
        return;
    };
    let folder = Path::new(&folder);
    let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut rows = manifest.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = rows.next().unwrap().split('\t').collect();
    let column = |name: &str| columns.iter().position(|c| *c == name).unwrap();

    let mut captures = 0;
    let mut problems = Vec::new();
    let mut used = HashSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        let file = cells[column("file")];
        let Some(packets) = reader::read(&folder.join(file)) else {
            problems.push(format!("{file}: not read"));
            continue;
        };
        captures += 1;
        let (counted, skips) = count(file, &packets);
        for (figure, counted) in FIGURES.into_iter().zip(counted) {
            let stated: u64 = cells[column(figure)].parse().unwrap();
            let known = DIFFERENCES.iter().find(|d| (d.0, d.1) == (file, figure));
            if let Some(known) = known {
                used.insert((known.0, known.1));
                if (known.2, known.3) == (stated, counted) {
                    continue;
                }
            } else if stated == counted {
                continue;
            }
            problems.push(format!(
                "{file}: {figure}: manifest {stated}, counted {counted}; skipped: {skips:?}"
            ));
        }
    }
    for difference in DIFFERENCES {
        if !used.contains(&(difference.0, difference.1)) {
            problems.push(format!("{difference:?}: no such row in the manifest"));
        }
    }
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
    println!("{captures} captures agree");
}

type Skips = BTreeMap<String, u64>;

/// Counts a capture's figures, in the order of [`FIGURES`], and its skips.
fn count(file: &str, packets: &[(LinkType, Vec<u8>)]) -> ([u64; 6], Skips) {
    let mut ports = vec![DNS_PORT];
    for (name, more) in DNS_PORTS {
        if *name == file {
            ports.extend_from_slice(more);
        }
    }
    let outer = Decoder::new(Tunnel::Outer);
    let inner = Decoder::new(Tunnel::Inner);
    let mut ip_packets = 0;
    let mut pairs_outer = HashSet::new();
    let mut pairs_inner = HashSet::new();
    let mut tuples = HashSet::new();
    let mut triples = HashSet::new();
    let mut query_triples = HashSet::new();
    let mut skips = Skips::new();
    let mut skip = |skip: Skip| *skips.entry(skip.name().into_owned()).or_default() += 1;
    for (link, frame) in packets {
        if *link == LinkType(1) {
            // The same frame behind a capture card's four bytes takes the general path.
            let behind = [&[0; 4], &frame[..]].concat();
            for decoder in [outer, inner] {
                let general = decoder.decode(LinkType(240), &behind);
                assert_eq!(decoder.decode(*link, frame), general, "{file}");
            }
        }
        let outside = match outer.decode(*link, frame) {
            Ok(packet) => packet,
            Err(reason) => {
                skip(reason);
                continue;
            }
        };
        let inside = inner
            .decode(*link, frame)
            .expect("an outer header is an inner one, too");
        ip_packets += 1;
        pairs_outer.insert(outside.addresses);
        pairs_inner.insert(inside.addresses);
        tuples.insert((
            outside.addresses,
            outside.protocol,
            outside.ports().unwrap_or_default(),
        ));
        let found = dns_messages(&inside, &ports, |message| {
            let triple: (Addresses, Vec<u8>) = (outside.addresses, message.name.to_vec());
            if !message.is_response {
                query_triples.insert(triple.clone());
            }
            triples.insert(triple);
        });
        if let Err(reason) = found {
            skip(reason);
        }
    }
    let counted = [
        ip_packets,
        pairs_outer.len() as u64,
        pairs_inner.len() as u64,
        tuples.len() as u64,
        triples.len() as u64,
        query_triples.len() as u64,
    ];
    (counted, skips)
}

/// Reads captures of the formats in the collection, just well enough for this test.
mod reader {
    use std::fs;
    use std::io::Read;
    use std::path::Path;

    use flowsieve::trace::LinkType;

    type Packets = Vec<(LinkType, Vec<u8>)>;

    pub(super) fn read(path: &Path) -> Option<Packets> {
        let bytes = unpack(fs::read(path).ok()?);
        match *bytes.first_chunk::<4>()? {
            [0x0a, 0x0d, 0x0d, 0x0a] => Some(pcapng(&bytes)),
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(pcap(&bytes, true, 16)),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(pcap(&bytes, false, 16)),
            [0x34, 0xcd, 0xb2, 0xa1] => Some(pcap(&bytes, true, 24)),
            [b's', b'n', b'o', b'o'] => Some(snoop(&bytes)),
            _ if path.to_str()?.contains(".erf") => Some(erf(&bytes)),
            _ => None,
        }
    }

    fn unpack(bytes: Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        // What can be unpacked counts, though the end be damaged.
        let _ = match bytes[..] {
            [0x1f, 0x8b, ..] => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut out),
            [b'B', b'Z', b'h', ..] => bzip2::read::BzDecoder::new(&bytes[..]).read_to_end(&mut out),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => {
                lzma_rust2::XzReader::new(&bytes[..], true).read_to_end(&mut out)
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => ruzstd::decoding::StreamingDecoder::new(&bytes[..])
                .unwrap()
                .read_to_end(&mut out),
            [0x04, 0x22, 0x4d, 0x18, ..] => {
                lz4_flex::frame::FrameDecoder::new(&bytes[..]).read_to_end(&mut out)
            }
            _ => return bytes,
        };
        out
    }

    fn word(bytes: &[u8], at: usize, little: bool) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if little {
            u32::from_le_bytes(word)
        } else {
            u32::from_be_bytes(word)
        })
    }

    fn half(bytes: &[u8], at: usize, little: bool) -> Option<u16> {
        let half = *bytes.get(at..)?.first_chunk()?;
        Some(if little {
            u16::from_le_bytes(half)
        } else {
            u16::from_be_bytes(half)
        })
    }

    fn pcap(bytes: &[u8], little: bool, header: usize) -> Packets {
        let mut packets = Packets::new();
        let Some(link) = word(bytes, 20, little) else {
            return packets;
        };
        let Ok(link) = u16::try_from(link & 0x03ff_ffff) else {
            return packets;
        };
        let swapped = half(bytes, 6, little) < Some(3);
        let mut at = 24;
        while let Some(length) = word(bytes, at + if swapped { 12 } else { 8 }, little) {
            let start = at + header;
            let Some(frame) = bytes.get(start..start + length as usize) else {
                break;
            };
            packets.push((LinkType(link), frame.to_vec()));
            at = start + length as usize;
        }
        packets
    }

    fn pcapng(bytes: &[u8]) -> Packets {
        let mut packets = Packets::new();
        let mut links = Vec::new();
        let mut little = true;
        let mut at = 0;
        while let Some(mut kind) = word(bytes, at, little) {
            if kind == 0x0a0d_0d0a {
                little = word(bytes, at + 8, true) == Some(0x1a2b_3c4d);
                links.clear();
                kind = 0;
            }
            let Some(length) = word(bytes, at + 4, little).map(|l| l as usize) else {
                break;
            };
            let Some(block) = bytes.get(at..at + length).filter(|_| length >= 12) else {
                break;
            };
            let packet = match kind {
                1 => {
                    links.push(half(block, 8, little).unwrap());
                    None
                }
                6 => Some((
                    word(block, 8, little).unwrap() as usize,
                    28,
                    word(block, 20, little),
                )),
                2 => Some((
                    half(block, 8, little).unwrap().into(),
                    28,
                    word(block, 20, little),
                )),
                3 => Some((0, 12, Some(length as u32 - 16))),
                _ => None,
            };
            if let Some((interface, start, Some(captured))) = packet {
                let end = (start + captured as usize).min(length - 4);
                if let (Some(link), Some(frame)) = (links.get(interface), block.get(start..end)) {
                    packets.push((LinkType(*link), frame.to_vec()));
                }
            }
            at += length;
        }
        packets
    }

    fn erf(bytes: &[u8]) -> Packets {
        let mut packets = Packets::new();
        let mut at = 0;
        while let Some(length) = half(bytes, at + 10, false).map(usize::from) {
            let Some(record) = bytes.get(at..at + length).filter(|_| length >= 16) else {
                break;
            };
            packets.push((LinkType(197), record.to_vec()));
            at += length;
        }
        packets
    }

    fn snoop(bytes: &[u8]) -> Packets {
        let mut packets = Packets::new();
        let mut at = 16;
        while let (Some(captured), Some(length)) =
            (word(bytes, at + 4, false), word(bytes, at + 8, false))
        {
            let Some(frame) = bytes.get(at + 24..at + 24 + captured as usize) else {
                break;
            };
            packets.push((LinkType(1), frame.to_vec()));
            at += length as usize;
        }
        packets
    }
}
