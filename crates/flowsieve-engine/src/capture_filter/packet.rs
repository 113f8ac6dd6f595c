//! Tests of packets.

use super::dns_test::DnsTest;
use super::evaluate::{Subject, ends};
use super::program::{Direction, Header, Networks, Protocols, Test};
use crate::decode::ip::AUTHENTICATION;
use crate::decode::{
    Decoder, Network, NetworkKind, Shim, Skip, Tunnel, Upper, dns_messages, network, shims, upper,
};
use crate::trace::LinkType;

/// The captured bytes end before the answer is known.
#[derive(Clone, Copy, Debug)]
struct CutShort;

/// A captured frame. Its network and transport layers are located once, when they are first needed.
pub(super) struct Packet<'a> {
    link: LinkType,
    frame: &'a [u8],
    wire: u32,
    tunnel: Tunnel,
    dns_ports: &'a [u16],
    network: Option<Network>,
    upper: Option<Result<Upper, CutShort>>,
}

impl<'a> Packet<'a> {
    #[inline]
    pub(super) fn new(
        link: LinkType,
        frame: &'a [u8],
        wire: u32,
        tunnel: Tunnel,
        dns_ports: &'a [u16],
    ) -> Self {
        Self { link, frame, wire, tunnel, dns_ports, network: None, upper: None }
    }

    #[inline]
    fn network(&mut self) -> Network {
        if let Some(network) = self.network {
            return network;
        }
        let found = network(self.link, self.frame, self.tunnel);
        self.network = Some(found);
        found
    }

    /// Returns whether the network layer is one of these.
    #[inline]
    pub(super) fn is_one_of(&mut self, networks: Networks) -> Option<bool> {
        match self.network().kind {
            NetworkKind::Ipv4 => Some(networks.has(Networks::IPV4)),
            NetworkKind::Ipv6 => Some(networks.has(Networks::IPV6)),
            NetworkKind::Arp => Some(networks.has(Networks::ARP)),
            NetworkKind::ReverseArp => Some(networks.has(Networks::REVERSE_ARP)),
            NetworkKind::Other => Some(false),
            NetworkKind::CutShort => None,
        }
    }

    #[inline]
    fn bytes_at<const N: usize>(&self, at: usize) -> Option<&[u8; N]> {
        self.frame.get(at..)?.first_chunk()
    }

    #[inline]
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.frame.get(at..)?.first_chunk().copied()
    }

    fn protocol(&mut self, networks: Networks, number: u32) -> Option<bool> {
        if !self.is_one_of(networks)? {
            return Some(false);
        }
        let mut passed = false;
        let upper = upper(self.frame, self.network(), |extension| {
            passed |= u32::from(extension) == number;
        })?;
        if passed || u32::from(upper.protocol) == number {
            return Some(true);
        }
        // The next layer was not captured.
        (!upper.cut_short).then_some(false)
    }

    #[inline]
    pub(super) fn address4(
        &mut self,
        networks: Networks,
        direction: Direction,
        wanted: u32,
        mask: u32,
    ) -> Option<bool> {
        if !self.is_one_of(networks)? {
            return Some(false);
        }
        let Network { kind, at } = self.network();
        let is = |address: [u8; 4]| u32::from_be_bytes(address) & mask == wanted;
        let offsets = match kind {
            NetworkKind::Ipv4 => {
                if let Some(&[a, b, c, d, e, f, g, h]) = self.bytes_at(at + 12) {
                    return Some(both_there(direction, is([a, b, c, d]), is([e, f, g, h])));
                }
                (12, 16)
            }
            _ => (14, 24),
        };
        let end = |offset| self.bytes(at + offset).map(is);
        ends(direction, || end(offsets.0), || end(offsets.1))
    }

    #[inline]
    pub(super) fn address6(
        &mut self,
        direction: Direction,
        network: u128,
        mask: u128,
    ) -> Option<bool> {
        if !self.is_one_of(Networks::IPV6)? {
            return Some(false);
        }
        let at = self.network().at;
        let end = |offset: usize| match self.bytes(at + offset) {
            Some(address) => Some(u128::from_be_bytes(address) & mask == network),
            None => self.address6_cut_short(at + offset, network, mask),
        };
        ends(direction, || end(8), || end(24))
    }

    /// Captured words that differ decide, even if others were not captured.
    #[cold]
    fn address6_cut_short(&self, at: usize, network: u128, mask: u128) -> Option<bool> {
        for word in 0..4 {
            let of = |number: u128| (number >> (96 - 32 * word)) as u32;
            let (network, mask) = (of(network), of(mask));
            if mask == 0 {
                continue;
            }
            let there = u32::from_be_bytes(self.bytes(at + 4 * word as usize)?);
            if there & mask != network {
                return Some(false);
            }
        }
        Some(true)
    }

    #[inline]
    pub(super) fn port(
        &mut self,
        protocols: Protocols,
        direction: Direction,
        first: u16,
        last: u16,
    ) -> Option<bool> {
        let is = |port: [u8; 2]| u16::from_be_bytes(port).wrapping_sub(first) <= last - first;
        let network = self.network();
        if network.kind == NetworkKind::Ipv4
            && let Some(head) = self.bytes_at::<10>(network.at)
            && head[9] != AUTHENTICATION
            && let Some(&[a, b, c, d]) = self.bytes_at(network.at + usize::from(head[0] & 15) * 4)
        {
            let fragment_offset = u16::from_be_bytes([head[6], head[7]]) & 0x1fff;
            // Computed without a branch on the protocol, which is random in traffic.
            let has_ports = u16::from(!protocols.has(head[9])) | fragment_offset == 0;
            return Some(has_ports & both_there(direction, is([a, b]), is([c, d])));
        }
        let at = self.transport(Networks::IP, |number| protocols.has(number)).ok()?;
        let Some(at) = at else { return Some(false) };
        let end = |at| self.bytes(at).map(is);
        ends(direction, || end(at), || end(at + 2))
    }

    /// Returns the position of the transport header, if the packet has a wanted one.
    #[inline(never)]
    fn transport(
        &mut self,
        networks: Networks,
        is_wanted: impl Fn(u8) -> bool,
    ) -> Result<Option<usize>, CutShort> {
        let Some(upper) = self.upper(networks)? else { return Ok(None) };
        if upper.cut_short {
            return Err(CutShort);
        }
        let found = is_wanted(upper.protocol) && !upper.later_fragment;
        Ok(found.then_some(upper.at))
    }

    /// Returns the position of the addresses of an Ethernet frame.
    #[inline]
    fn ether(&self) -> Option<usize> {
        match self.link.0 {
            // Switch tags follow the addresses, other additions precede them.
            1 | 281 | 284 | 285 => Some(0),
            240 | 282 => Some(4),
            274 => Some(8),
            241 => Some(12),
            _ => None,
        }
    }

    fn ether_address(&self, direction: Direction, address: [u8; 6]) -> Option<bool> {
        let Some(at) = self.ether() else { return Some(false) };
        let end = |at| self.bytes(at).map(|there: [u8; 6]| there == address);
        ends(direction, || end(at + 6), || end(at))
    }

    /// Returns whether a header before the network layer has a wanted number.
    fn any_shim(&self, mut is_wanted: impl FnMut(Shim, u32) -> bool) -> Option<bool> {
        let mut found = false;
        let see = |shim, number| found |= is_wanted(shim, number);
        let whole = shims(self.link, self.frame, see);
        // The wanted header might be among the bytes that were not captured.
        (found || whole).then_some(found)
    }

    fn ether_type(&mut self, number: u32) -> Option<bool> {
        let mut any = false;
        let found = self.any_shim(|shim, there| {
            any |= shim == Shim::EtherType;
            matches!(shim, Shim::EtherType | Shim::Llc) && there == number
        })?;
        match number {
            // Links that carry only IP have no such number.
            0x0800 if !any => self.is_one_of(Networks::IPV4),
            0x86dd if !any => self.is_one_of(Networks::IPV6),
            _ => Some(found),
        }
    }

    /// Returns whether any DNS message that begins in the packet, or in the innermost one of a
    /// tunnel, meets a test: the messages whose names are elements.
    fn dns(&self, test: &DnsTest) -> Option<bool> {
        let packet = match Decoder::new(Tunnel::Inner).decode(self.link, self.frame) {
            Ok(packet) => packet,
            Err(Skip::CutShort) => return None,
            Err(_) => return Some(false),
        };
        let mut found = false;
        let read = dns_messages(&packet, self.dns_ports, |message| {
            found |= test.is(message.into()) == Some(true);
        });
        let is_cut = match read {
            Err(Skip::DnsCutShort) => packet.missing > 0,
            Err(Skip::NotDns) => packet.is_cut_before_ports(),
            _ => false,
        };
        (found || !is_cut).then_some(found)
    }

    fn upper(&mut self, networks: Networks) -> Result<Option<Upper>, CutShort> {
        if !self.is_one_of(networks).ok_or(CutShort)? {
            return Ok(None);
        }
        let (frame, network) = (self.frame, self.network());
        let find = || upper(frame, network, |_| {}).ok_or(CutShort);
        (*self.upper.get_or_insert_with(find)).map(Some)
    }
}

/// Combines the answers of both ends without a branch.
#[inline]
fn both_there(direction: Direction, source: bool, destination: bool) -> bool {
    match direction {
        Direction::Source => source,
        Direction::Destination => destination,
        Direction::Either => source | destination,
        Direction::Both => source & destination,
    }
}

impl Subject for Packet<'_> {
    #[inline]
    fn test(&mut self, test: &Test) -> Option<bool> {
        match *test {
            Test::Network(networks) => self.is_one_of(networks),
            Test::Protocol { networks, number } => self.protocol(networks, number),
            Test::Address4 { networks, direction, network, mask } => {
                self.address4(networks, direction, network, mask)
            }
            Test::Address6 { direction, network, mask } => self.address6(direction, network, mask),
            Test::Port { protocols, direction, first, last } => {
                self.port(protocols, direction, first, last)
            }
            Test::Ether { direction, address } => self.ether_address(direction, address),
            Test::Broadcast => self.ether_address(Direction::Destination, [0xff; 6]),
            Test::Multicast => match self.ether() {
                Some(at) => self.bytes(at).map(|[first]| first & 1 != 0),
                None => Some(false),
            },
            Test::EtherType(number) => self.ether_type(number),
            Test::Label(label, wanted) => self.any_shim(|shim, there| {
                shim == label && wanted.is_none_or(|wanted| wanted == there)
            }),
            Test::Dns(ref test) => self.dns(test),
            Test::Relation(_) => None,
        }
    }

    fn length(&self) -> Option<u32> {
        Some(self.wire)
    }

    fn has(&mut self, header: Header) -> Option<bool> {
        match header {
            Header::Frame => Some(true),
            Header::Network(networks) => self.is_one_of(networks),
            Header::Upper { networks, protocol } => {
                Some(self.transport(networks, |number| number == protocol).ok()?.is_some())
            }
        }
    }

    fn load(&mut self, header: Header, offset: u32, size: u8) -> Option<u32> {
        let start = match header {
            Header::Frame => 0,
            Header::Network(_) => self.network().at,
            Header::Upper { networks, .. } => self.upper(networks).ok()??.at,
        };
        let at = start.checked_add(offset as usize)?;
        match size {
            1 => self.bytes(at).map(|[byte]| u32::from(byte)),
            2 => self.bytes(at).map(|two| u16::from_be_bytes(two).into()),
            _ => self.bytes(at).map(u32::from_be_bytes),
        }
    }
}
