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
use flowsieve::trace::{Capture, InputFormat, LinkType, TraceBatch, TraceError};

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
    let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).expect("a manifest");
    let mut rows = manifest.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = rows.next().expect("a line of titles").split('\t').collect();
    let column = |name: &str| columns.iter().position(|c| *c == name).expect(name);

    let mut captures = 0;
    let mut problems = Vec::new();
    let mut used = HashSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        let file = cells[column("file")];
        let mut count = Count::new(file);
        // A capture that is damaged counts as far as it can be read.
        let damage = read(&folder.join(file), |link, frame| count.see(link, frame)).err();
        captures += 1;
        let counted = count.figures();
        let skips = &count.skips;
        for (figure, counted) in FIGURES.into_iter().zip(counted) {
            let stated: u64 = cells[column(figure)].parse().expect("a number");
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
                "{file}: {figure}: manifest {stated}, counted {counted}; skipped: {skips:?}; {damage:?}"
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

/// What is counted of one capture.
struct Count {
    dns_ports: Vec<u16>,
    ip_packets: u64,
    pairs_outer: HashSet<Addresses>,
    pairs_inner: HashSet<Addresses>,
    tuples: HashSet<(Addresses, u8, (u16, u16))>,
    triples: HashSet<(Addresses, Vec<u8>)>,
    query_triples: HashSet<(Addresses, Vec<u8>)>,
    skips: BTreeMap<String, u64>,
}

impl Count {
    fn new(file: &str) -> Self {
        let mut dns_ports = vec![DNS_PORT];
        if let Some((_, more)) = DNS_PORTS.iter().find(|(name, _)| *name == file) {
            dns_ports.extend_from_slice(more);
        }
        Self {
            dns_ports,
            ip_packets: 0,
            pairs_outer: HashSet::new(),
            pairs_inner: HashSet::new(),
            tuples: HashSet::new(),
            triples: HashSet::new(),
            query_triples: HashSet::new(),
            skips: BTreeMap::new(),
        }
    }

    fn see(&mut self, link: LinkType, frame: &[u8]) {
        let outside = Decoder::new(Tunnel::Outer).decode(link, frame);
        let inside = Decoder::new(Tunnel::Inner).decode(link, frame);
        if link == LinkType::ETHERNET {
            // The same frame behind a capture card's four bytes takes the general path.
            let behind = [&[0; 4], frame].concat();
            for (tunnel, direct) in [(Tunnel::Outer, outside), (Tunnel::Inner, inside)] {
                let general = Decoder::new(tunnel).decode(LinkType(240), &behind);
                assert_eq!(direct, general, "{frame:x?}");
            }
        }
        let (outside, inside) = match (outside, inside) {
            (Ok(outside), Ok(inside)) => (outside, inside),
            (outside, inside) => {
                assert_eq!(outside, inside, "{frame:x?}");
                self.skip(outside.expect_err("one of them is"));
                return;
            }
        };
        self.ip_packets += 1;
        self.pairs_outer.insert(outside.addresses);
        self.pairs_inner.insert(inside.addresses);
        let ports = outside.ports().unwrap_or_default();
        self.tuples
            .insert((outside.addresses, outside.protocol, ports));
        let found = dns_messages(&inside, &self.dns_ports, |message| {
            let triple = (outside.addresses, message.name.to_vec());
            if !message.is_response {
                self.query_triples.insert(triple.clone());
            }
            self.triples.insert(triple);
        });
        if let Err(skip) = found {
            self.skip(skip);
        }
    }

    fn skip(&mut self, skip: Skip) {
        *self.skips.entry(skip.name().into_owned()).or_default() += 1;
    }

    /// In the order of [`FIGURES`].
    fn figures(&self) -> [u64; 6] {
        [
            self.ip_packets,
            self.pairs_outer.len() as u64,
            self.pairs_inner.len() as u64,
            self.tuples.len() as u64,
            self.triples.len() as u64,
            self.query_triples.len() as u64,
        ]
    }
}

/// Calls `see` for every packet that can be read of a capture.
fn read(path: &Path, mut see: impl FnMut(LinkType, &[u8])) -> Result<(), TraceError> {
    let format = match path.extension() {
        Some(extension) if extension == "tsh" => InputFormat::Tsh,
        _ => InputFormat::Auto,
    };
    let mut capture = Capture::open(path, format)?;
    while let Some(batch) = capture.next_batch()? {
        let TraceBatch::Packets { bytes, packets } = batch else {
            panic!("{} is no log", path.display());
        };
        for packet in packets {
            let start = packet.start as usize;
            see(packet.link, &bytes[start..start + packet.captured as usize]);
        }
    }
    Ok(())
}
