//! Decodes every capture of a collection and compares the distinct counts with a manifest of them
//! that other tools (mostly tshark 4.0) made.
//!
//! The collection is the folder that `FLOWSIEVE_TRACES` names; it holds `MANIFEST.tsv`, whose
//! comment lines define the figures. Every difference has to stand in [`DIFFERENCES`], with what
//! is counted here and the reason.

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

/// Captures in formats that are refused.
const REFUSED: [&str; 3] = [
    "formats/libtrace-legacy-atm.gz",
    "formats/libtrace-legacy-eth.gz",
    "formats/tcptrace-all.snoop.gz",
];

/// Figures that differ from the manifest's: file; figure, what the manifest says, what is counted
/// here; why that is right.
type Difference = (
    &'static str,
    &'static [(&'static str, u64, u64)],
    &'static str,
);

const DIFFERENCES: &[Difference] = &[
    (
        "campus/zeek-cisco-fabric-path.pcap",
        &[("ip_packets", 120, 128), ("tuples5_outer", 80, 64)],
        "tshark takes the last four bytes of the frame inside FabricPath for a checksum, and so \
         misses the end of IPv6 and SCTP headers that stand there whole; it finds addresses in 128 \
         packets, as here",
    ),
    (
        "dns/nsd-live-ignored.pcap.xz",
        &[("dns_triples", 1, 0), ("dns_query_triples", 1, 0)],
        "what has more than 255 bytes is no name; tshark shows it as <Name too long>",
    ),
    (
        "dns/nsd-live-ns.pcap.xz",
        &[
            ("dns_triples", 20190, 20175),
            ("dns_query_triples", 10096, 10088),
        ],
        "14 triples (7 of queries) of the manifest come from splitting names at the vertical bar \
         that they contain, and 1 from what has more than 255 bytes; tshark's own output has 20176 \
         triples, the name that is too long among them",
    ),
    (
        "dns/pcapplusplus-DnsEdit.pcap",
        &[("dns_triples", 7, 6), ("dns_query_triples", 6, 5)],
        "the first question counts; the first message has two",
    ),
    (
        "encap/tcpdump-edsa.pcap",
        &[
            ("ip_packets", 0, 6),
            ("pairs_outer", 0, 2),
            ("pairs_inner", 0, 2),
            ("tuples5_outer", 0, 2),
        ],
        "tshark 4.0 does not know the link type; behind the switch's tag are ordinary ARP and IPv4 \
         packets",
    ),
    (
        "encap/zeek-ipv6-mobility-dst-opts.pcap",
        &[("tuples5_outer", 1, 2)],
        "the ports of the second packet stand beyond the end that its IPv6 header states; tshark \
         shows none",
    ),
    (
        "formats/wireshark-wireguard-ping-tcp-dsb.pcapng",
        &[
            ("pairs_inner", 8, 2),
            ("dns_triples", 2, 0),
            ("dns_query_triples", 1, 0),
        ],
        "tshark decrypts WireGuard with keys that the capture file brings along",
    ),
    (
        "malformed/ndpi-fuzz-2020-02-16-11740.pcap",
        &[
            ("ip_packets", 328, 329),
            ("pairs_outer", 58, 59),
            ("pairs_inner", 58, 59),
            ("tuples5_outer", 89, 90),
        ],
        "packet 238 has IPv6 behind the EtherType of IPv4; tshark reads it, too, and so finds 329 \
         packets and 59 pairs",
    ),
    (
        "malformed/ndpi-malformed_dns.pcap",
        &[("dns_triples", 2, 1)],
        "the first question counts; the second, in the responses, has a name that is too long",
    ),
    (
        "malformed/pcapplusplus-clusterfuzz-testcase-FuzzTarget-5188876846235648",
        &[("dns_triples", 2, 1)],
        "the first question counts; the names of the others go round in circles",
    ),
    (
        "malformed/zeek-trunc__mpls-6in6-broken.pcap.gz",
        &[
            ("ip_packets", 1783, 1785),
            ("pairs_outer", 447, 448),
            ("pairs_inner", 447, 448),
            ("tuples5_outer", 447, 448),
        ],
        "packets 417 and 427 end within their IPv4 options: tshark, looking for a source route, \
         finds no destination; the header's own is there",
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
    let mut known = HashSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        let file = cells[column("file")];
        let mut count = Count::new(file);
        // A capture that is damaged counts as far as it can be read.
        let damage = read(&folder.join(file), |link, frame| count.see(link, frame)).err();
        captures += 1;
        if REFUSED.contains(&file) {
            assert!(damage.is_some(), "{file}");
            continue;
        }
        let differences = DIFFERENCES.iter().find(|(name, ..)| *name == file);
        known.extend(differences.map(|(name, ..)| *name));
        for (figure, counted) in FIGURES.into_iter().zip(count.figures()) {
            let stated: u64 = cells[column(figure)].parse().expect("a number");
            let difference = differences
                .and_then(|(_, figures, _)| figures.iter().find(|(name, ..)| *name == figure));
            let expected = difference.map_or((stated, stated), |d| (d.1, d.2));
            if (stated, counted) != expected {
                problems.push(format!(
                    "{file}: {figure}: manifest {stated}, counted {counted}; skipped: {:?}; {}",
                    count.skips,
                    damage
                        .as_ref()
                        .map_or_else(String::new, ToString::to_string),
                ));
            }
        }
    }
    for (file, ..) in DIFFERENCES {
        assert!(known.contains(file), "{file} is not in the manifest");
    }
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
    println!(
        "{captures} captures, {} with known differences",
        known.len()
    );
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
