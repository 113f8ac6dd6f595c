//! Ordinary traffic and a scan: TCP, UDP and ICMP between skewed host pairs, in trains.

use super::GeneratePlan;
use super::counts::Counts;
use super::frame::{
    FRAME_MAX, ICMP, ICMPV6, Segment, TCP, Tuple, UDP, network_headers, transport_header,
};
use super::random::{Random, Zipf, mix, scale, scatter, skewed};

/// Conversations that a train may continue: those of the last few thousand packets.
const RECENT: usize = 4096;
/// Share of the packets that continue a recent conversation.
const TRAIN_PERCENT: u32 = 35;
/// Payload comes from one block of noise, at changing offsets.
const NOISE: usize = 1 << 16;
/// Smallest payload: the packet's number, so that no two packets are equal by chance.
const PAYLOAD_MIN: usize = 6;

/// Services with their share in 256ths. No port that is read as DNS or as a tunnel is among them.
const SERVICES: [(u16, u32); 8] =
    [(443, 140), (80, 44), (22, 20), (993, 14), (123, 12), (8080, 10), (25, 8), (5222, 8)];
/// First of the 28,232 ports that clients choose from (the usual range of a Linux host).
const EPHEMERAL: u16 = 32_768;
const EPHEMERAL_PORTS: u32 = 28_232;

/// The scanning host: an address for documentation, so that it is easily found.
const SCANNER: u32 = 0xc000_0242;
/// Ports that are probed on each host.
const SCANNED_PORTS: [u16; 4] = [22, 23, 445, 3389];

#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// Rank of the pair, times 16, plus which of its connections; 0 while empty.
    conversation: u64,
    /// Whether the forward and the backward direction have been counted already.
    counted: [bool; 2],
}

/// Generates all packets that are neither DNS nor repeats.
pub(super) struct Conversations {
    key: u64,
    plan: GeneratePlan,
    clients: u32,
    servers: u32,
    ranks: Zipf,
    recent: Vec<Recent>,
    noise: Vec<u8>,
    probes: u32,
}

impl Conversations {
    pub(super) fn new(plan: &GeneratePlan, random: &mut Random) -> Self {
        let noise = (0..NOISE / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        Self {
            key: random.next(),
            plan: plan.clone(),
            clients: (plan.pairs / 10).clamp(1, 1 << 24),
            servers: (plan.pairs / 2).clamp(1, 1 << 22),
            ranks: Zipf::new(plan.pairs),
            recent: vec![Recent::default(); RECENT],
            noise,
            probes: 0,
        }
    }

    /// Builds one packet of a conversation into `bytes` and returns its length on the wire.
    pub(super) fn packet(
        &mut self,
        bytes: &mut [u8],
        number: u64,
        random: &mut Random,
        counts: &mut Counts,
    ) -> usize {
        let choice = random.next();
        let slot = (choice & (RECENT as u64 - 1)) as usize;
        let train = scale(choice, 100) < TRAIN_PERCENT && self.recent[slot].conversation != 0;
        if !train {
            let connection = u64::from((random.next() | 1 << 30).trailing_zeros() / 2);
            let conversation = self.ranks.draw(random) << 4 | connection;
            self.recent[slot] = Recent { conversation, counted: [false; 2] };
        }
        let shape = random.next();
        let backward = scale(shape, 100) < 45;
        let conversation = self.recent[slot].conversation;
        let (forward, vlan) = self.conversation(conversation);
        let tuple = if backward { forward.reversed() } else { forward };
        let counted = &mut self.recent[slot].counted[usize::from(backward)];
        if !*counted {
            *counted = true;
            counts.packet(tuple);
        }

        let network = tuple.network_length(vlan);
        let headers = network + tuple.transport_length();
        let length = frame_length(shape).max(headers + PAYLOAD_MIN);
        network_headers(bytes, tuple, vlan, number as u16, length - network);
        let segment = Segment {
            sequence: (number as u32).wrapping_mul(1460),
            is_syn: false,
            reply: backward,
            payload: length - headers,
        };
        transport_header(bytes, network, tuple, segment);
        let end = length.min(self.plan.snaplen as usize);
        if headers < end {
            let from = (shape & 0x7fff) as usize;
            bytes[headers..end].copy_from_slice(&self.noise[from..from + end - headers]);
            let mark = &number.to_be_bytes()[8 - PAYLOAD_MIN..];
            let marked = PAYLOAD_MIN.min(end - headers);
            bytes[headers..headers + marked].copy_from_slice(&mark[PAYLOAD_MIN - marked..]);
        }
        length
    }

    /// Returns the tuple from the client's side, and the VLAN of the pair; the same for the same number.
    fn conversation(&self, conversation: u64) -> (Tuple, Option<u16>) {
        let pair = mix(self.key ^ (conversation >> 4));
        let own = mix(pair ^ (conversation & 15));
        let ipv6 = self.plan.is_ipv6(pair << 32);
        let vlan = self.plan.is_in_vlan(pair << 16).then_some(100 + (pair & 3) as u16);
        let protocol = match (scale(own, 100), ipv6) {
            (0..75, _) => TCP,
            (75..98, _) => UDP,
            (_, false) => ICMP,
            (_, true) => ICMPV6,
        };
        let tuple = Tuple {
            ipv6,
            protocol,
            source: client_address(skewed(mix(pair + 1), self.clients)),
            destination: server_address(skewed(mix(pair + 2), self.servers)),
            source_port: ephemeral_port(own << 32),
            destination_port: service_port(pair, own),
        };
        (tuple, vlan)
    }

    /// Builds the next packet of the scan: SYN after SYN, four ports a host, host after host.
    pub(super) fn probe(
        &mut self,
        bytes: &mut [u8],
        number: u64,
        random: &mut Random,
        counts: &mut Counts,
    ) -> usize {
        let target = self.probes / SCANNED_PORTS.len() as u32 % (1 << 22);
        let tuple = Tuple {
            ipv6: false,
            protocol: TCP,
            source: SCANNER,
            destination: server_address(target),
            source_port: ephemeral_port(random.next()),
            destination_port: SCANNED_PORTS[self.probes as usize % SCANNED_PORTS.len()],
        };
        self.probes = self.probes.wrapping_add(1);
        counts.packet(tuple);
        let at = network_headers(bytes, tuple, None, number as u16, 20);
        let segment =
            Segment { sequence: random.next() as u32, is_syn: true, reply: false, payload: 0 };
        transport_header(bytes, at, tuple, segment);
        // Ethernet fills a short frame up with zeros; the IP header says that they do not count.
        bytes[at + 20..60].fill(0);
        60
    }
}

/// Returns the length of a frame: half are full, a third short, the rest between.
fn frame_length(bits: u64) -> usize {
    match scale(bits << 32, 100) {
        0..50 => FRAME_MAX,
        50..85 => 60 + (bits >> 16 & 31) as usize,
        _ => 100 + (bits >> 16 & 1023) as usize,
    }
}

/// Returns an address in 10.0.0.0/8: blocks of 64 neighbours, scattered over the range.
pub(super) fn client_address(host: u32) -> u32 {
    0x0a00_0000 | scatter(host >> 6, 18) << 6 | host & 63
}

/// Returns an address in 100.64.0.0/10, in blocks as above.
fn server_address(host: u32) -> u32 {
    0x6440_0000 | scatter(host >> 6, 16) << 6 | host & 63
}

pub(super) fn ephemeral_port(bits: u64) -> u16 {
    EPHEMERAL + scale(bits, EPHEMERAL_PORTS) as u16
}

/// Seven pairs out of eight talk to a well-known service, the others from high port to high port.
fn service_port(pair: u64, own: u64) -> u16 {
    if (pair >> 4).is_multiple_of(8) {
        return ephemeral_port(own << 16);
    }
    let mut share = (pair >> 8 & 255) as u32;
    for (port, weight) in SERVICES {
        if share < weight {
            return port;
        }
        share -= weight;
    }
    unreachable!("the shares of the services add up to 256")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_services_are_complete() {
        assert_eq!(SERVICES.iter().map(|(_, weight)| weight).sum::<u32>(), 256);
    }
}
