//! Captures made to order, with their exact counts.
//!
//! [`generate`] writes a capture whose every byte follows from a [`GeneratePlan`]: the same plan
//! gives the same bytes on every machine. Beside it comes a [`GenerateSummary`] with the exact
//! distinct counts of what was written, kept by the generator and not by anything that reads
//! captures: ground truth that a reader can be compared with.
//!
//! Contents: Ethernet frames, some with a VLAN tag; IPv4 and IPv6; TCP, UDP and ICMP between host
//! pairs under Zipf's law, in trains; DNS queries with their answers; retransmitted frames; a scan,
//! on request. Not generated: fragments, tunnels, ARP, handshakes, jumbo frames. Transport
//! checksums are 0, IPv4 header checksums are right. All addresses are private, shared or for
//! documentation, all names reserved.

mod conversation;
mod counts;
mod dns;
mod frame;
pub(crate) mod random;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use conversation::Conversations;
use counts::Counts;
use dns::DnsTalk;
use frame::FRAME_ROOM;
use random::{Random, scale};

/// Smallest snaplen: a VLAN tag, an IPv6 header and the ports behind them fit.
pub const SNAPLEN_MIN: u32 = 64;
/// Time stamp of the beginning: a whole second, in November 2023.
const START_S: u64 = 1_700_000_000;
/// Frames that a repeat may be taken from.
const PAST: usize = 128;
/// Bytes that are collected before they are written.
const WRITE_AT: usize = 1 << 18;

/// The main content of a capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GenerateKind {
    /// Conversations of many kinds, DNS among them.
    Traffic,
    /// Only DNS messages.
    Dns,
}

/// A capture to generate. The shares are percent of all packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GeneratePlan {
    /// The main content.
    pub kind: GenerateKind,
    /// Number of packets.
    pub packets: u64,
    /// Number of host pairs that the conversations are drawn from under Zipf's law; of a capture
    /// of [`GenerateKind::Dns`], the number of clients. A short capture does not meet them all.
    pub pairs: u32,
    /// Number of DNS names that the queries are drawn from under Zipf's law.
    pub names: u32,
    /// Start of the random numbers.
    pub seed: u64,
    /// Bytes kept of each frame, at least [`SNAPLEN_MIN`].
    pub snaplen: u32,
    /// Time that the packets are spread over, in nanoseconds.
    pub duration_ns: u64,
    /// Whether time stamps have nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// Share of exact repeats of a frame shortly before.
    pub repeat_percent: u8,
    /// Share of packets from one host that scans the others ([`GenerateKind::Traffic`] only).
    pub scan_percent: u8,
    /// Share of DNS messages ([`GenerateKind::Traffic`] only).
    pub dns_percent: u8,
    /// Share of host pairs that talk in a VLAN.
    pub vlan_percent: u8,
    /// Share of host pairs that talk IPv6.
    pub ipv6_percent: u8,
}

impl GeneratePlan {
    /// The plan with everything in proportion to a number of packets.
    pub fn new(kind: GenerateKind, packets: u64) -> Self {
        let bounded = |number: u64| number.clamp(1, 1 << 24) as u32;
        let (pairs, snaplen) = match kind {
            GenerateKind::Traffic => (packets / 5 * 2, 96),
            GenerateKind::Dns => (packets / 200, 65_535),
        };
        Self {
            kind,
            packets,
            pairs: bounded(pairs),
            names: bounded(packets / 20),
            seed: 1,
            snaplen,
            duration_ns: 60_000_000_000,
            nanoseconds: false,
            repeat_percent: 5,
            scan_percent: 0,
            dns_percent: 2,
            vlan_percent: 10,
            ipv6_percent: 10,
        }
    }

    /// Returns the number of DNS clients: one for every twenty pairs if there is other traffic.
    fn dns_clients(&self) -> u32 {
        match self.kind {
            GenerateKind::Traffic => (self.pairs / 20).clamp(1, 1 << 24),
            GenerateKind::Dns => self.pairs,
        }
    }

    /// Returns whether a host pair with these random bits talks IPv6.
    fn is_ipv6(&self, bits: u64) -> bool {
        scale(bits, 100) < u32::from(self.ipv6_percent)
    }

    /// Returns whether a host pair with these random bits talks in a VLAN.
    fn is_in_vlan(&self, bits: u64) -> bool {
        scale(bits, 100) < u32::from(self.vlan_percent)
    }

    fn check(&self) -> io::Result<()> {
        let refuse = |rule: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
        if self.snaplen < SNAPLEN_MIN {
            return refuse("the snaplen must be at least 64 bytes, so that ports are captured");
        }
        if !(1..=1 << 24).contains(&self.pairs) || !(1..=1 << 24).contains(&self.names) {
            return refuse("the numbers of pairs and of names must lie between 1 and 16,777,216");
        }
        // With `--kind dns`, all packets but repeats are DNS.
        let dns_percent =
            if self.kind == GenerateKind::Dns { 0 } else { u32::from(self.dns_percent) };
        if [self.repeat_percent, self.vlan_percent, self.ipv6_percent].iter().any(|&p| p > 100)
            || u32::from(self.repeat_percent) + u32::from(self.scan_percent) + dns_percent > 100
        {
            return refuse(
                "a share must be at most 100 percent, and so must repeats, scan and DNS together",
            );
        }
        if self.duration_ns / 1_000_000_000 > u64::from(u32::MAX) - START_S - 1 {
            return refuse("the duration must be at most 80 years, as far as time stamps reach");
        }
        Ok(())
    }
}

impl Default for GeneratePlan {
    fn default() -> Self {
        Self::new(GenerateKind::Traffic, 10_000_000)
    }
}

/// Totals of a generated capture, with exact distinct counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GenerateSummary {
    /// Packets; each has a readable IP header.
    pub packets: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Ordered (source, destination) address pairs.
    pub pairs: u64,
    /// Directed five-tuples; the ports of ICMP are 0.
    pub flows: u64,
    /// (Source, destination, name) of all DNS messages whose question is captured whole.
    pub dns_triples: u64,
    /// Distinct triples of queries only.
    pub dns_query_triples: u64,
}

/// The kind of the next packet.
#[derive(Clone, Copy, Debug)]
enum Source {
    Repeat,
    Scan,
    Dns,
    Conversation,
}

/// Writes the capture that `plan` describes: classic pcap, little endian, Ethernet.
///
/// # Errors
///
/// The plan breaks one of its rules (`InvalidInput`), or `out` fails.
///
/// # Examples
///
/// ```
/// use flowsieve::generate::{GenerateKind, GeneratePlan, generate};
///
/// let mut capture = Vec::new();
/// let summary = generate(&GeneratePlan::new(GenerateKind::Traffic, 1000), &mut capture)?;
/// assert_eq!(summary.packets, 1000);
/// assert_eq!(summary.bytes, capture.len() as u64);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn generate(plan: &GeneratePlan, out: &mut dyn Write) -> io::Result<GenerateSummary> {
    plan.check()?;
    let mut random = Random::new(plan.seed);
    let mut conversations = Conversations::new(plan, &mut random);
    let mut dns = DnsTalk::new(plan, &mut random);
    let mut counts = Counts::default();
    let mut past = Past::new();
    let mut capture = Capture::new(plan, out);
    for number in 0..plan.packets {
        let length = match source(plan, number, &mut random) {
            Source::Repeat => past.repeat(number, &mut random),
            Source::Scan => conversations.probe(past.put(number), number, &mut random, &mut counts),
            Source::Dns => dns.packet(past.put(number), number, &mut random, &mut counts),
            Source::Conversation => {
                conversations.packet(past.put(number), number, &mut random, &mut counts)
            }
        };
        past.lengths[slot(number)] = length;
        capture.packet(number, random.next(), past.frame(number))?;
    }
    Ok(counts.finish(plan.packets, capture.finish()?))
}

fn source(plan: &GeneratePlan, number: u64, random: &mut Random) -> Source {
    let percent = random.below(100);
    let repeats = u32::from(plan.repeat_percent);
    let scans = repeats + u32::from(plan.scan_percent);
    let dns = scans + u32::from(plan.dns_percent);
    if percent < repeats && number >= PAST as u64 {
        Source::Repeat
    } else if plan.kind == GenerateKind::Dns {
        Source::Dns
    } else if (repeats..scans).contains(&percent) {
        Source::Scan
    } else if (scans..dns).contains(&percent) {
        Source::Dns
    } else {
        Source::Conversation
    }
}

/// The last frames, in a ring.
#[derive(Debug)]
struct Past {
    bytes: Vec<u8>,
    /// Lengths on the wire.
    lengths: [usize; PAST],
}

impl Past {
    fn new() -> Self {
        Self { bytes: vec![0; PAST * FRAME_ROOM], lengths: [0; PAST] }
    }

    /// Returns the room of a frame.
    fn put(&mut self, number: u64) -> &mut [u8] {
        &mut self.bytes[slot(number) * FRAME_ROOM..][..FRAME_ROOM]
    }

    /// Repeats one of the last packets: four of five repeats follow within four packets, the others
    /// within a hundred. Returns its length on the wire.
    fn repeat(&mut self, number: u64, random: &mut Random) -> usize {
        let reach = if random.below(5) == 0 { 100 } else { 4 };
        let from = slot(number - 1 - u64::from(random.below(reach)));
        let (start, length) = (from * FRAME_ROOM, self.lengths[from]);
        self.bytes.copy_within(start..start + length, slot(number) * FRAME_ROOM);
        length
    }

    /// Returns the frame in its whole length; bytes beyond the snaplen are arbitrary.
    fn frame(&self, number: u64) -> &[u8] {
        let slot = slot(number);
        let start = slot * FRAME_ROOM;
        &self.bytes[start..start + self.lengths[slot]]
    }
}

fn slot(number: u64) -> usize {
    (number % PAST as u64) as usize
}

/// A classic pcap file that is being written.
struct Capture<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    written: u64,
    snaplen: usize,
    nanoseconds: bool,
    /// Nanoseconds between two packets, with 32 fractional bits.
    step: u128,
}

impl<'a> Capture<'a> {
    fn new(plan: &GeneratePlan, out: &'a mut dyn Write) -> Self {
        let mut buffer = Vec::with_capacity(WRITE_AT + FRAME_ROOM + 16);
        let magic: u32 = if plan.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let version = 2_u32 | 4 << 16;
        for word in [magic, version, 0, 0, plan.snaplen, 1] {
            buffer.extend_from_slice(&word.to_le_bytes());
        }
        Self {
            out,
            buffer,
            written: 0,
            snaplen: plan.snaplen as usize,
            nanoseconds: plan.nanoseconds,
            step: (u128::from(plan.duration_ns) << 32) / u128::from(plan.packets.max(1)),
        }
    }

    /// Writes a packet with a random time within its equal part of the duration, so that times are
    /// in order.
    fn packet(&mut self, number: u64, bits: u64, frame: &[u8]) -> io::Result<()> {
        let moment = u128::from(number) << 32 | u128::from(bits >> 32);
        let time_ns = ((moment * self.step) >> 64) as u64;
        let (seconds, fraction) = (time_ns / 1_000_000_000, (time_ns % 1_000_000_000) as u32);
        let fraction = if self.nanoseconds { fraction } else { fraction / 1000 };
        let captured = frame.len().min(self.snaplen);
        let lengths = [captured, frame.len()].map(|length| length as u32);
        for word in [(START_S + seconds) as u32, fraction].into_iter().chain(lengths) {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        self.buffer.extend_from_slice(&frame[..captured]);
        if self.buffer.len() >= WRITE_AT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.written)
    }
}
