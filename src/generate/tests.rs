//! The generator against a small reader that shares nothing with it.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::*;

type Ports = (u16, u16);

/// Counts that the naive reader finds in a capture.
#[derive(Debug, Default)]
struct Recount {
    packets: u64,
    pairs: HashSet<(Vec<u8>, Vec<u8>)>,
    flows: HashSet<(Vec<u8>, Vec<u8>, u8, Ports)>,
    triples: HashSet<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    query_triples: HashSet<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    vlan: u64,
    ipv6: u64,
    frames: Vec<Vec<u8>>,
    times_ns: Vec<u64>,
}

fn word16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The lower-cased labels of the name at the start of `bytes`, if name, type and class are there.
fn question(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut at, mut name) = (0, Vec::new());
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        assert!(length < 64);
        name.extend(bytes.get(at..at + length)?.to_ascii_lowercase());
        name.push(b'.');
        at += length;
    }
    bytes.get(at..at + 4).map(|_| name)
}

fn recount(capture: &[u8], snaplen: usize) -> Recount {
    let tick_ns = match word32(capture, 0) {
        0xa1b2_c3d4 => 1000,
        0xa1b2_3c4d => 1,
        other => panic!("magic {other:x}"),
    };
    assert_eq!(word32(capture, 16) as usize, snaplen);
    let mut found = Recount::default();
    let mut rest = &capture[24..];
    while !rest.is_empty() {
        let captured = word32(rest, 8) as usize;
        assert_eq!(captured, snaplen.min(word32(rest, 12) as usize));
        let time =
            u64::from(word32(rest, 0)) * 1_000_000_000 + u64::from(word32(rest, 4)) * tick_ns;
        found.times_ns.push(time);
        found.frame(&rest[16..16 + captured], word32(rest, 12) as usize);
        rest = &rest[16 + captured..];
    }
    found
}

impl Recount {
    fn frame(&mut self, frame: &[u8], wire: usize) {
        self.packets += 1;
        self.frames.push(frame.to_vec());
        let mut at = 12;
        if word16(frame, at) == 0x8100 {
            self.vlan += 1;
            at += 4;
        }
        let ip = &frame[at + 2..];
        let (source, destination, protocol, above, stated) = match word16(frame, at) {
            0x0800 => {
                assert_eq!(ip[0], 0x45);
                let sum: u32 = (0..20).step_by(2).map(|at| u32::from(word16(ip, at))).sum();
                assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "IPv4 header checksum");
                (&ip[12..16], &ip[16..20], ip[9], &ip[20..], usize::from(word16(ip, 2)))
            }
            0x86dd => {
                self.ipv6 += 1;
                (&ip[8..24], &ip[24..40], ip[6], &ip[40..], 40 + usize::from(word16(ip, 4)))
            }
            other => panic!("ether type {other:x}"),
        };
        assert!(wire == at + 2 + stated || wire == 60 && at + 2 + stated == 54);
        let (source, destination) = (source.to_vec(), destination.to_vec());
        let ports = if matches!(protocol, 6 | 17) {
            (word16(above, 0), word16(above, 2))
        } else {
            assert!(matches!(protocol, 1 | 58));
            (0, 0)
        };
        if ports.0 == 53 || ports.1 == 53 {
            assert_eq!(protocol, 17);
            let stated = if source.len() == 4 { stated - 20 } else { stated - 40 };
            assert_eq!(usize::from(word16(above, 4)), stated);
            if let Some(name) = above.get(20..).and_then(question) {
                let triple = (source.clone(), destination.clone(), name);
                if above[10] & 0x80 == 0 {
                    self.query_triples.insert(triple.clone());
                }
                self.triples.insert(triple);
            }
        }
        self.pairs.insert((source.clone(), destination.clone()));
        self.flows.insert((source, destination, protocol, ports));
    }
}

fn plans() -> Vec<GeneratePlan> {
    let traffic = GeneratePlan::new(GenerateKind::Traffic, 20_000);
    let dns = GeneratePlan::new(GenerateKind::Dns, 20_000);
    vec![
        traffic.clone(),
        GeneratePlan { snaplen: 65_535, dns_percent: 20, scan_percent: 30, ..traffic.clone() },
        GeneratePlan { snaplen: 64, ipv6_percent: 100, vlan_percent: 100, ..traffic.clone() },
        GeneratePlan { pairs: 1, names: 1, repeat_percent: 100, dns_percent: 0, ..traffic.clone() },
        GeneratePlan { scan_percent: 95, dns_percent: 0, nanoseconds: true, ..traffic },
        dns.clone(),
        GeneratePlan { snaplen: 90, pairs: 1000, ipv6_percent: 50, seed: 9, ..dns },
    ]
}

#[test]
fn counts_equal_a_naive_recount() {
    for plan in plans() {
        let mut capture = Vec::new();
        let summary = generate(&plan, &mut capture).expect("a good plan");
        let found = recount(&capture, plan.snaplen as usize);
        assert_eq!(
            summary,
            GenerateSummary {
                packets: found.packets,
                bytes: capture.len() as u64,
                pairs: found.pairs.len() as u64,
                flows: found.flows.len() as u64,
                dns_triples: found.triples.len() as u64,
                dns_query_triples: found.query_triples.len() as u64,
            },
            "{plan:?}"
        );
        assert_eq!(summary.packets, plan.packets);
    }
}

#[test]
fn time_runs_forward_within_the_duration() {
    for plan in plans() {
        let mut capture = Vec::new();
        generate(&plan, &mut capture).expect("a good plan");
        let times = recount(&capture, plan.snaplen as usize).times_ns;
        assert!(times.is_sorted());
        let end = START_S * 1_000_000_000 + plan.duration_ns;
        assert!(times[0] >= START_S * 1_000_000_000 && *times.last().expect("packets") < end);
    }
}

#[test]
fn shares_are_about_what_was_asked_for() {
    let plan = GeneratePlan {
        packets: 100_000,
        snaplen: 200,
        scan_percent: 20,
        dns_percent: 10,
        ..GeneratePlan::default()
    };
    let mut capture = Vec::new();
    generate(&plan, &mut capture).expect("a good plan");
    let found = recount(&capture, 200);
    let scanner: &[u8] = &[192, 0, 2, 66];
    let probes = found.frames.iter().filter(|frame| &frame[26..30] == scanner).count();
    assert!((18_500..22_500).contains(&probes), "scan {probes}");
    assert!((5_000..9_000).contains(&found.vlan), "VLAN {}", found.vlan);
    assert!((5_500..9_500).contains(&found.ipv6), "IPv6 {}", found.ipv6);
    let mut past = HashSet::new();
    let repeats = found.frames.iter().filter(|frame| !past.insert(&frame[..])).count();
    assert!((4_700..5_300).contains(&repeats), "repeats {repeats}");
}

/// The bytes are part of the promise: whoever changes them changes every published figure.
#[test]
fn bytes_are_the_same_on_every_machine() {
    let digest = |plan: &GeneratePlan| {
        let mut capture = Vec::new();
        generate(plan, &mut capture).expect("a good plan");
        xxh3_64(&capture)
    };
    let digests: Vec<u64> = plans().iter().map(digest).collect();
    assert_eq!(digests, DIGESTS, "{digests:#018x?}");
    let other = GeneratePlan { seed: 2, ..plans()[0].clone() };
    assert_ne!(digest(&other), DIGESTS[0]);
}

const DIGESTS: [u64; 7] = [
    0x580c_29ab_9263_3d03,
    0x8705_bf8f_e482_0be6,
    0x4eee_2e8e_39ec_7cc6,
    0xbe0c_b384_dea7_9553,
    0x2784_8fa7_4eb7_4e87,
    0x33c0_03f8_65ea_8f4f,
    0x1688_0505_f4b7_d4fe,
];

#[test]
fn an_empty_plan_writes_an_empty_capture() {
    let mut capture = Vec::new();
    let plan = GeneratePlan::new(GenerateKind::Traffic, 0);
    assert_eq!(generate(&plan, &mut capture).expect("a good plan").bytes, 24);
    assert_eq!(recount(&capture, 96).packets, 0);
}

#[test]
fn broken_plans_are_refused_with_the_rule() {
    let plan = GeneratePlan::default();
    for (plan, rule) in [
        (GeneratePlan { snaplen: 63, ..plan.clone() }, "snaplen"),
        (GeneratePlan { pairs: 0, ..plan.clone() }, "pairs"),
        (GeneratePlan { names: 1 << 25, ..plan.clone() }, "names"),
        (GeneratePlan { vlan_percent: 101, ..plan.clone() }, "100 percent"),
        (GeneratePlan { scan_percent: 60, dns_percent: 50, ..plan.clone() }, "together"),
        (GeneratePlan { duration_ns: u64::MAX, ..plan.clone() }, "duration"),
    ] {
        let mut capture = Vec::new();
        let error = generate(&plan, &mut capture).expect_err("a broken plan");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
        assert!(capture.is_empty());
    }
}

/// The counts in traces/README.md.
#[test]
fn the_committed_capture_is_what_its_command_writes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/");
    let plan = GeneratePlan {
        duration_ns: 8_000_000_000,
        snaplen: 128,
        dns_percent: 15,
        scan_percent: 5,
        ..GeneratePlan::new(GenerateKind::Traffic, 8000)
    };
    let mut capture = Vec::new();
    let summary = generate(&plan, &mut capture).expect("a good plan");
    let committed = std::fs::read(format!("{folder}generated.pcap")).expect("the capture");
    assert!(capture == committed, "the plan no longer gives traces/generated.pcap");
    let GenerateSummary { packets, pairs, flows, dns_triples, dns_query_triples, .. } = summary;
    let line = format!(
        "generated.pcap\t{packets}\t{packets}\t{pairs}\t{flows}\t{dns_triples}\t{dns_query_triples}"
    );
    let counts = std::fs::read_to_string(format!("{folder}COUNTS.tsv")).expect("the counts");
    assert!(counts.lines().any(|other| other == line), "{line}");
}
