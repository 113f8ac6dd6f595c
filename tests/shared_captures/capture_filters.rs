//! Compares capture filters with tcpdump, the program of libpcap.
//!
//! The frames of many captures are gathered by link type, some of them are cut short, and those of
//! each link type are written to one file; the time of each frame is its number. For every
//! expression tcpdump writes the frames that it keeps, and flowsieve must keep the same ones. Where
//! flowsieve is meant to see more than libpcap does (after VLAN tags, labels and extension headers)
//! tcpdump gets the frame without these.

use flowsieve::capture_filter::CaptureFilter;
use flowsieve::decode::{Network, NetworkKind, Shim, Tunnel, network, shims, upper};
use flowsieve::trace::{Capture, InputFormat, LinkType, PacketRef, TraceBatch};
use libtest_mimic::Completion;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most captures whose frames are used, for each link type.
const CAPTURES_PER_LINK: usize = 40;
const FRAMES_PER_CAPTURE: usize = 60;
const RANDOM_EXPRESSIONS: usize = 300;

/// Link types that both decode in the same way.
const COMPARED: &[u16] =
    &[0, 1, 8, 9, 10, 12, 14, 50, 100, 101, 104, 105, 107, 108, 113, 127, 228, 229, 242, 276];

/// A frame as captured, and as given to tcpdump.
struct Frame {
    bytes: Vec<u8>,
    wire: u32,
    link: LinkType,
    /// The frame without the headers that tcpdump does not look behind, if it has any.
    plain: Option<Vec<u8>>,
    /// True if headers after the IP header were removed, too.
    without_extensions: bool,
    network: Network,
    /// Number of tags and labels between the link layer's header and IP.
    tags: usize,
}

/// An expression, and which form of the frames it is compared on.
struct Expression {
    text: String,
    /// True if it asks for headers before IP. Then frames with at most one tag are compared as they
    /// were captured.
    of_tags: bool,
}

impl Frame {
    fn new(link: LinkType, bytes: &[u8], wire: u32) -> Option<Self> {
        let found = network(link, bytes, Tunnel::Outer);
        let (mut tags, mut unusual) = (0, false);
        shims(link, bytes, |shim, _| match shim {
            Shim::Vlan | Shim::Mpls | Shim::PppOe => tags += 1,
            Shim::EtherType => {}
            Shim::Llc => unusual = true,
        });
        let own_header = match link.0 {
            1 => Some(14),
            0 | 9 | 50 | 104 | 108 => Some(4),
            12 | 14 | 101 | 228 | 229 => Some(0),
            113 => Some(16),
            276 => Some(20),
            _ => None,
        };
        let is_left_out = match (link.0, bytes) {
            // Other links, which some systems capture as BSD loopback.
            (0, &[_, a, b, ..]) => [a, b] != [0; 2],
            // PPP without address and control, and frames too short to decide that.
            (9 | 50, _) => !bytes.starts_with(&[0xff, 3]) || bytes.len() < 4,
            // Cisco's address resolution uses the number of another protocol.
            (104, &[_, _, a, b, ..]) => [a, b] == [0x80, 0x35],
            // Wireless frames that were cut short or are encrypted: libpcap decodes them anyway.
            (105 | 127, _) => !matches!(found.kind, NetworkKind::Ipv4 | NetworkKind::Ipv6),
            (12 | 14 | 101 | 228 | 229, _) => bytes.is_empty(),
            // Link types that libpcap or flowsieve does not decode, or only by a guess.
            _ => !COMPARED.contains(&link.0),
        };
        if is_left_out {
            return None;
        }
        // Cut short within tags: for libpcap this is not IP, since it does not look behind tags.
        if found.kind == NetworkKind::CutShort && own_header.is_some_and(|own| own <= bytes.len()) {
            return None;
        }
        let is_ip = matches!(found.kind, NetworkKind::Ipv4 | NetworkKind::Ipv6);
        let reached = !matches!(found.kind, NetworkKind::Other | NetworkKind::CutShort);
        let mut plain = None;
        let mut without_extensions = false;
        if is_ip {
            let mut extensions = 0;
            let upper = upper(bytes, found, |_| extensions += 1);
            if extensions > 0 {
                let upper = upper.filter(|upper| !upper.cut_short && !upper.later_fragment)?;
                let header = if found.kind == NetworkKind::Ipv4 { 20 } else { 40 };
                let mut ip = bytes.get(found.at..found.at + header)?.to_vec();
                if found.kind == NetworkKind::Ipv4 {
                    (ip[0], ip[9]) = (0x45, upper.protocol);
                } else {
                    ip[6] = upper.protocol;
                }
                ip.extend(bytes.get(upper.at..)?);
                plain = Some(ip);
                without_extensions = true;
            }
        }
        let elsewhere = own_header.is_some_and(|own| own != found.at);
        let marked =
            |number: [u8; 2]| link == LinkType::ETHERNET && bytes.get(12..14) != Some(&number);
        let other_number = match found.kind {
            NetworkKind::Ipv4 => marked([8, 0]),
            NetworkKind::Ipv6 => marked([0x86, 0xdd]),
            _ => false,
        };
        if reached && (elsewhere || unusual || other_number || plain.is_some()) {
            if link != LinkType::ETHERNET {
                return (own_header.is_none() && plain.is_none()).then(|| Self {
                    bytes: bytes.to_vec(),
                    wire,
                    link,
                    plain: None,
                    without_extensions,
                    network: found,
                    tags,
                });
            }
            let number: [u8; 2] = match found.kind {
                NetworkKind::Ipv4 => [8, 0],
                NetworkKind::Ipv6 => [0x86, 0xdd],
                NetworkKind::Arp => [8, 6],
                _ => [0x80, 0x35],
            };
            let rest = plain.unwrap_or_else(|| bytes[found.at..].to_vec());
            plain = Some([bytes.get(..12)?, &number, &rest].concat());
        }
        Some(Self {
            bytes: bytes.to_vec(),
            wire,
            link,
            plain,
            without_extensions,
            network: found,
            tags,
        })
    }

    /// Returns true if tcpdump and flowsieve should agree on this frame.
    fn is_compared(&self, expression: &Expression) -> bool {
        let asks = |words: &[&str]| words.iter().any(|word| expression.text.contains(word));
        if expression.of_tags {
            // In flowsieve "ether proto" sees every number before IP, and all others see tags of
            // any depth.
            let one_tag = self.tags == 1 && self.network.at <= 22 && !asks(&["ether proto", "stp"]);
            return self.plain.is_none() && self.tags == 0 || one_tag && !self.without_extensions;
        }
        if self.plain.is_some() && asks(&["ether["]) {
            return false;
        }
        if self.without_extensions && asks(&["proto", "ip6[", "ip[", "ah", "esp"]) {
            return false;
        }
        // flowsieve knows Ethernet addresses on Ethernet only.
        if self.link != LinkType::ETHERNET && asks(&["ether", "link[", "cast"]) {
            return false;
        }
        // libpcap has no bytes of transport headers over IPv6.
        if self.network.kind == NetworkKind::Ipv6 && asks(&["tcp[", "udp[", "sctp["]) {
            return false;
        }
        true
    }
}

/// Pseudorandom numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// Returns frames of many captures, by link type.
fn frames(traces: &Path) -> BTreeMap<u16, Vec<Frame>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for group in fs::read_dir(traces).unwrap() {
        let group = group.unwrap().path();
        if group.is_dir() {
            paths.extend(fs::read_dir(group).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    paths.sort();
    let mut numbers = Numbers(1);
    // Shuffles the captures, since those of one kind are in one folder.
    for last in (1..paths.len()).rev() {
        paths.swap(last, numbers.below(last + 1));
    }
    let mut captures: BTreeMap<u16, usize> = BTreeMap::new();
    let mut frames: BTreeMap<u16, Vec<Frame>> = BTreeMap::new();
    for path in paths {
        let Ok(mut capture) = Capture::open(&path, InputFormat::Auto) else { continue };
        // Tunnels and tags are rare in other folders.
        let most = if path.parent() == Some(&traces.join("encap")) {
            usize::MAX
        } else {
            CAPTURES_PER_LINK
        };
        let mut taken = 0;
        while taken < FRAMES_PER_CAPTURE
            && let Ok(Some(TraceBatch::Packets { bytes, packets })) = capture.next_batch()
        {
            for packet in packets.iter().take(FRAMES_PER_CAPTURE - taken) {
                let links = captures.entry(packet.link.0).or_default();
                if taken == 0 && *links >= most {
                    break;
                }
                *links += usize::from(taken == 0);
                taken += 1;
                let mut frame = &bytes[packet.start as usize..][..packet.captured as usize];
                if numbers.below(8) == 0 {
                    frame = &frame[..numbers.below(frame.len().min(90) + 1)];
                }
                // tcpdump does not read larger ones.
                if frame.len() < 60_000
                    && let Some(frame) = Frame::new(packet.link, frame, packet.wire)
                {
                    frames.entry(packet.link.0).or_default().push(frame);
                }
            }
            if taken == 0 {
                break;
            }
        }
    }
    eprintln!("{} captures", captures.values().sum::<usize>());
    frames
}

/// Writes a pcap file of these frames. The time of a frame is its number in seconds.
fn write_pcap<'a>(path: &Path, link: u16, frames: impl Iterator<Item = (&'a [u8], u32)>) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, u32::from(link)] {
        file.extend(word.to_le_bytes());
    }
    for (number, (bytes, wire)) in frames.enumerate() {
        let captured = bytes.len() as u32;
        for word in [number as u32, 0, captured, wire.max(captured)] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    fs::write(path, file).unwrap();
}

/// The frames that tcpdump keeps with its optimiser and without. With it, tcpdump does not read
/// bytes that do not matter and may not have been captured. Both results are right.
struct Kept {
    optimised: Vec<usize>,
    plainly: Vec<usize>,
}

impl Kept {
    fn allows(&self, number: usize, kept: bool) -> bool {
        [&self.optimised, &self.plainly]
            .iter()
            .any(|numbers| numbers.binary_search(&number).is_ok() == kept)
    }
}

fn kept_by_tcpdump(path: &Path, expression: &str) -> Result<Kept, String> {
    let plainly = run_tcpdump(path, &["-O"], expression)?;
    let optimised = match run_tcpdump(path, &[], expression) {
        Err(text) if text.contains("expression rejects all packets") => Vec::new(),
        result => result?,
    };
    Ok(Kept { optimised, plainly })
}

/// Returns the numbers of the frames that tcpdump keeps, or its error message.
fn run_tcpdump(path: &Path, options: &[&str], expression: &str) -> Result<Vec<usize>, String> {
    let output = Command::new("tcpdump")
        .args(options)
        .args(["-w", "-", "-r"])
        .arg(path)
        .args(["--", expression])
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut kept = Vec::new();
    let mut rest = output.stdout.get(24..).unwrap_or_default();
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        kept.push(word(0));
        rest = &tail[word(8)..];
    }
    Ok(kept)
}

/// Handwritten expressions.
const WRITTEN: &str = include_str!("capture_filters.txt");

fn written() -> Vec<Expression> {
    let lines = WRITTEN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| Expression {
            text: line.to_owned(),
            of_tags: ["vlan", "mpls", "pppoe", "ether proto", "stp"]
                .iter()
                .any(|word| line.contains(word)),
        })
        .collect()
}

/// Values that occur in the frames, so that expressions match some of them.
#[derive(Default)]
struct Values {
    v4: Vec<[u8; 4]>,
    v6: Vec<[u8; 16]>,
    ports: Vec<u16>,
    ether: Vec<[u8; 6]>,
}

impl Values {
    fn of(frames: &BTreeMap<u16, Vec<Frame>>) -> Self {
        let mut values = Self::default();
        for frame in frames.values().flatten().step_by(7) {
            let Network { kind, at } = frame.network;
            let header = frame.bytes.get(at..).unwrap_or_default();
            if let (NetworkKind::Ipv4, Some(head)) = (kind, header.first_chunk::<24>()) {
                values.v4.push(head[12..16].try_into().unwrap());
                values.v4.push(head[16..20].try_into().unwrap());
                values.ports.push(u16::from_be_bytes([head[20], head[21]]));
                values.ports.push(u16::from_be_bytes([head[22], head[23]]));
            }
            if let (NetworkKind::Ipv6, Some(head)) = (kind, header.first_chunk::<40>()) {
                values.v6.push(head[8..24].try_into().unwrap());
                values.v6.push(head[24..40].try_into().unwrap());
            }
            if frame.link == LinkType::ETHERNET
                && let Some(address) = frame.bytes.first_chunk()
            {
                values.ether.push(*address);
            }
        }
        values
    }

    fn expression(&self, numbers: &mut Numbers, depth: u32) -> String {
        if depth == 0 || numbers.below(3) == 0 {
            return self.primitive(numbers);
        }
        let one = self.expression(numbers, depth - 1);
        match numbers.below(7) {
            0 => format!("not {one}"),
            1 => format!("({one})"),
            2 => format!("! ({one})"),
            3 | 4 => format!("{one} and {}", self.expression(numbers, depth - 1)),
            _ => format!("{one} or {}", self.expression(numbers, depth - 1)),
        }
    }

    fn direction(numbers: &mut Numbers) -> &'static str {
        numbers.one_of(&["", "", "src ", "dst ", "src or dst ", "src and dst ", "dst or src "])
    }

    fn primitive(&self, numbers: &mut Numbers) -> String {
        let direction = Self::direction(numbers);
        let transport = numbers.one_of(&["", "", "tcp ", "udp ", "sctp "]);
        let port = |numbers: &mut Numbers| self.ports[numbers.below(self.ports.len())];
        let v4 = self.v4[numbers.below(self.v4.len())];
        let [a, b, c, d] = v4;
        let v6 = std::net::Ipv6Addr::from(self.v6[numbers.below(self.v6.len())]);
        match numbers.below(17) {
            0 => format!(
                "{}{direction}host {a}.{b}.{c}.{d}",
                numbers.one_of(&["", "ip ", "arp ", "rarp "])
            ),
            1 => format!("{direction}net {a}.{b}.{c}"),
            2 => {
                let bits = 1 + numbers.below(32) as u32;
                let address = u32::from_be_bytes(v4) & (u32::MAX << (32 - bits));
                format!("{direction}net {}/{bits}", std::net::Ipv4Addr::from(address))
            }
            3 => format!("{direction}net {a}.{b}.0.0 mask 255.255.0.0"),
            4 => format!("{direction}host {v6}"),
            5 => {
                let bits = 1 + numbers.below(128) as u32;
                let address = v6.to_bits() & (u128::MAX << (128 - bits));
                format!("ip6 {direction}net {}/{bits}", std::net::Ipv6Addr::from(address))
            }
            6 => format!("{transport}{direction}port {}", port(numbers)),
            7 => format!(
                "{transport}{direction}port {} or {} or not {}",
                port(numbers),
                port(numbers),
                port(numbers)
            ),
            8 => format!("{transport}{direction}portrange {}-{}", port(numbers), port(numbers)),
            9 => numbers
                .one_of(&[
                    "ip", "ip6", "tcp", "udp", "icmp", "icmp6", "sctp", "arp", "rarp", "igmp",
                    "pim", "esp", "ah", "vrrp", "igrp",
                ])
                .to_owned(),
            10 => format!(
                "{}proto {}",
                numbers.one_of(&["", "ip ", "ip6 "]),
                numbers.one_of(&["\\tcp", "\\udp", "17", "1", "58", "0x2f", "132", "6"])
            ),
            11 => format!("{} {}", numbers.one_of(&["less", "greater"]), 40 + numbers.below(300)),
            12 | 13 => Self::relation(numbers),
            14 => {
                let parts =
                    self.ether[numbers.below(self.ether.len())].map(|byte| format!("{byte:02x}"));
                let word = numbers.one_of(&["ether host", "ether src", "ether dst"]);
                format!("{word} {}", parts.join(":"))
            }
            15 => numbers
                .one_of(&[
                    "broadcast",
                    "multicast",
                    "ip multicast",
                    "ip6 multicast",
                    "ip broadcast",
                    "ether multicast",
                ])
                .to_owned(),
            _ => format!(
                "len {} {}",
                numbers.one_of(&["<", ">=", "=", "!="]),
                60 + numbers.below(200)
            ),
        }
    }

    fn relation(numbers: &mut Numbers) -> String {
        // One header per side: libpcap checks the protocol of an operator's first operand only.
        let headers = ["ip", "ip", "ip6", "tcp", "tcp", "udp", "icmp", "icmp6", "arp", "ether"];
        let header = numbers.one_of(&headers);
        let mut text = Self::number(numbers, 2, header);
        let comparison = numbers.one_of(&["=", "==", "!=", "<", "<=", ">", ">="]);
        let right = match numbers.below(3) {
            0 => Self::number(numbers, 1, header),
            _ => numbers.below(256).to_string(),
        };
        write!(text, " {comparison} {right}").unwrap();
        text
    }

    fn number(numbers: &mut Numbers, depth: u32, header: &str) -> String {
        let size = numbers.one_of(&["", ":1", ":2", ":4"]);
        let load = format!("{header}[{}{size}]", numbers.below(40));
        if depth == 0 {
            return load;
        }
        match numbers.below(8) {
            0 => format!("{load} & {:#x}", numbers.below(256)),
            1 => format!("{load} + {}", numbers.below(100)),
            2 => format!("{load} >> {}", numbers.below(8)),
            3 => format!("({load} - {}) * 4", Self::number(numbers, depth - 1, header)),
            4 => format!("{load} / ({} + 1)", Self::number(numbers, depth - 1, header)),
            5 => format!("tcp[(tcp[12] & 0xf0) >> 2{size}]"),
            6 => "ip[(ip[0] & 0xf) << 2]".to_owned(),
            _ => load,
        }
    }
}

pub(crate) fn keep_what_tcpdump_keeps(traces: &Path) -> Completion {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return Completion::ignored_with("there is no tcpdump (Debian: tcpdump)");
    }
    let frames = frames(traces);
    let values = Values::of(&frames);
    let mut numbers = Numbers(2);
    let mut expressions = written();
    expressions.extend((0..RANDOM_EXPRESSIONS).map(|number| Expression {
        text: values.expression(&mut numbers, number as u32 % 4),
        of_tags: false,
    }));
    let folder = tempfile::tempdir().unwrap();
    let mut outcome = Outcome::default();
    for (&link, frames) in &frames {
        compare(link, frames, &expressions, folder.path(), &mut outcome);
    }
    let Outcome { compared, kept, differences, wrong } = outcome;
    let all = || frames.values().flatten();
    let without = all().filter(|frame| frame.plain.is_some()).count();
    let cut = all().filter(|frame| (frame.bytes.len() as u32) < frame.wire).count();
    assert!(
        without > 100 && cut > 100,
        "{without} frames behind tags and the like, {cut} cut short"
    );
    let counts: Vec<(u16, usize)> =
        frames.iter().map(|(&link, frames)| (link, frames.len())).collect();
    eprintln!(
        "{} expressions, frames by link type {counts:?}, {compared} comparisons, {kept} kept",
        expressions.len()
    );
    assert!(wrong.is_empty(), "{differences} differences\n{wrong}");
    assert!(kept > 0 && compared > kept, "{compared} comparisons, {kept} kept");
    Completion::Completed
}

/// The result of all comparisons.
#[derive(Default)]
struct Outcome {
    compared: u64,
    kept: u64,
    differences: u64,
    wrong: String,
}

/// Compares the frames of one link type.
fn compare(
    link: u16,
    frames: &[Frame],
    expressions: &[Expression],
    folder: &Path,
    outcome: &mut Outcome,
) {
    let (captured, plain) = (folder.join("captured"), folder.join("plain"));
    write_pcap(&captured, link, frames.iter().map(|frame| (&*frame.bytes, frame.wire)));
    let without = |frame: &'_ Frame| frame.plain.clone().unwrap_or_else(|| frame.bytes.clone());
    let stripped: Vec<(Vec<u8>, u32)> =
        frames.iter().map(|frame| (without(frame), frame.wire)).collect();
    write_pcap(&plain, link, stripped.iter().map(|(bytes, wire)| (&**bytes, *wire)));
    // Most of the traffic is Ethernet. On other links every fifth expression is tried, and not the
    // same ones on each.
    let every = if link == 1 { 1 } else { 5 };
    for expression in expressions.iter().skip(usize::from(link) % every).step_by(every) {
        let path = if expression.of_tags { &captured } else { &plain };
        let theirs = kept_by_tcpdump(path, &expression.text);
        let ours = CaptureFilter::parse(&expression.text, Tunnel::Outer);
        let (theirs, ours) = match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (Err(_), Err(_)) => continue,
            // libpcap mistakes the offset in ip[0] for the divisor.
            (Err(error), Ok(_)) if error.contains("division by zero") => continue,
            // libpcap refuses expressions that cannot match on some link types.
            (Err(_), Ok(_)) if link != 1 => continue,
            (Err(error), Ok(_)) => {
                writeln!(outcome.wrong, "tcpdump refuses {}: {error}", expression.text).unwrap();
                continue;
            }
            (Ok(_), Err(error)) => {
                writeln!(outcome.wrong, "flowsieve refuses {}: {error}", expression.text).unwrap();
                continue;
            }
        };
        let mut shown = 0;
        for (number, frame) in frames.iter().enumerate() {
            if !frame.is_compared(expression) {
                continue;
            }
            let wire = frame.wire.max(frame.bytes.len() as u32);
            let kept = ours.matches(frame.link, &frame.bytes, wire);
            let packet = PacketRef {
                time_ns: 0,
                start: 0,
                captured: frame.bytes.len() as u32,
                wire,
                link: frame.link,
            };
            let mut chosen = [true];
            ours.choose(&frame.bytes, &[packet], &mut chosen);
            assert_eq!(chosen, [kept], "{}", ours.text());
            outcome.compared += 1;
            outcome.kept += u64::from(kept);
            if !theirs.allows(number, kept) {
                outcome.differences += 1;
                shown += 1;
                if shown < 3 {
                    let head = &frame.bytes[..frame.bytes.len().min(90)];
                    let Expression { text, .. } = expression;
                    writeln!(
                        outcome.wrong,
                        "{text}: link {link}, kept: {kept}, {:?}, {head:02x?}",
                        frame.network
                    )
                    .unwrap();
                }
            }
        }
    }
}
