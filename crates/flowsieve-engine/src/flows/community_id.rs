//! Community ID version 1: a short name for a flow on which tools agree.
//!
//! ```text
//!     "1:" base64(sha1( seed, 2 │ address │ address │ protocol │ 0 │ port, 2 │ port, 2 ))
//! ```
//!
//! The smaller (address, port) comes first, so both directions have the same identifier. Type and
//! code of an ICMP message take the place of the ports; where the type has a counterpart (an echo
//! and its reply), that takes the place of the code, and where it has none, the ends are not put in
//! order. Protocols without ports leave them out.
//!
//! Reference: Corelight, "Community ID Flow Hashing", version 1; seed 0, as is the default of all
//! tools.

use crate::decode::ip::ICMPV6;
use crate::decode::{Addresses, Aligned, IpPacket, push_start};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// Fields above IP that the Community ID needs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Upper {
    /// Source and destination port of TCP, UDP or SCTP.
    Ports(u16, u16),
    /// Type and code of an ICMP message.
    Icmp(u8, u8),
    /// A protocol without ports.
    Portless,
    /// A protocol with ports or types, but they were not captured: a later fragment, a cut packet.
    Unknown,
}

impl Upper {
    /// Reads them from this packet.
    #[inline]
    pub(crate) fn of(packet: &IpPacket<'_>) -> Self {
        match (packet.ports(), packet.icmp_type_and_code()) {
            (Some((source, destination)), _) => Self::Ports(source, destination),
            (_, Some([kind, code])) => Self::Icmp(kind, code),
            _ if packet.is_portless() => Self::Portless,
            _ => Self::Unknown,
        }
    }

    /// Returns the ports; 0 where there are none.
    #[inline]
    pub(super) fn ports(self) -> (u16, u16) {
        match self {
            Self::Ports(source, destination) => (source, destination),
            _ => (0, 0),
        }
    }
}

/// Returns the Community ID, or `None` if the fields that it needs are unknown.
pub fn community_id(addresses: Addresses, protocol: u8, upper: Upper) -> Option<String> {
    let mut text = String::with_capacity(30);
    push_community_id(addresses, protocol, upper, &mut text).then_some(text)
}

/// Appends the Community ID; false if what it is made of is unknown.
pub(crate) fn push_community_id(
    addresses: Addresses,
    protocol: u8,
    upper: Upper,
    text: &mut String,
) -> bool {
    let (ports, one_way) = match upper {
        Upper::Ports(source, destination) => (Some((source, destination)), false),
        Upper::Icmp(kind, code) => {
            let counterpart = counterpart(protocol, kind);
            let second = counterpart.unwrap_or(code);
            let ports = (u16::from(kind), u16::from(second));
            (Some(ports), counterpart.is_none())
        }
        Upper::Portless => (None, false),
        Upper::Unknown => return false,
    };
    let mut message = [0; 2 + 32 + 2 + 4];
    let mut end = 2;
    let mut put = |bytes: &[u8]| {
        message[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    };
    let (first, second): (&[u8], &[u8]) = match &addresses {
        Addresses::V4 { source, destination } => (source, destination),
        Addresses::V6 { source, destination } => (source, destination),
    };
    let (source, destination) = ports.unwrap_or_default();
    let in_order = one_way || (first, source) <= (second, destination);
    let ends = if in_order {
        [(first, source), (second, destination)]
    } else {
        [(second, destination), (first, source)]
    };
    put(ends[0].0);
    put(ends[1].0);
    put(&[protocol, 0]);
    if ports.is_some() {
        put(&ends[0].1.to_be_bytes());
        put(&ends[1].1.to_be_bytes());
    }
    let digest = Sha1::digest(&message[..end]);
    let mut letters = Aligned([0; 32]);
    letters.0[..2].copy_from_slice(b"1:");
    let length = STANDARD.encode_slice(digest, &mut letters.0[2..]);
    let length = length.expect("20 bytes make 28 letters");
    push_start(&letters, 2 + length, text);
    true
}

/// Types of ICMP messages that answer each other: echo, router discovery, time stamp, information,
/// address mask.
const PAIRS: &[(u8, u8)] = &[(8, 0), (9, 10), (13, 14), (15, 16), (17, 18)];

/// Those of `ICMPv6`: echo, multicast listeners, router and neighbour discovery, node information, home
/// agents.
const PAIRS_V6: &[(u8, u8)] =
    &[(128, 129), (130, 131), (133, 134), (135, 136), (139, 140), (144, 145)];

/// Returns the type of the message that answers this one, or that this one answers.
fn counterpart(protocol: u8, kind: u8) -> Option<u8> {
    let pairs = if protocol == ICMPV6 { PAIRS_V6 } else { PAIRS };
    pairs.iter().find_map(|&(one, other)| match kind {
        _ if kind == one => Some(other),
        _ if kind == other => Some(one),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use Upper::{Icmp, Portless, Ports};
    use std::net::IpAddr;

    type Vector = (u8, &'static str, &'static str, Upper, &'static str);

    /// The baseline that is published with the definition.
    #[rustfmt::skip]
    const PUBLISHED: [Vector; 23] = [
        (58, "fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea", Icmp(135, 136), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY="),
        (58, "fe80::260:97ff:fe07:69ea", "fe80::200:86ff:fe05:80da", Icmp(136, 135), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY="),
        (58, "fe80::260:97ff:fe07:69ea", "fe80::200:86ff:fe05:80da", Icmp(135, 136), "1:zavyT/cezQr1fmImYCwYnMXbgck="),
        (58, "fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea", Icmp(136, 135), "1:zavyT/cezQr1fmImYCwYnMXbgck="),
        (58, "3ffe:501:1800:2345::2", "3ffe:507:0:1:200:86ff:fe05:80da", Icmp(3, 0), "1:2ObVBgIn28oZvibYZhZMBgh7WdQ="),
        (58, "3ffe:501:410:0:2c0:dfff:fe47:33e", "3ffe:507:0:1:200:86ff:fe05:80da", Icmp(1, 4), "1:hLZd0XGWojozrvxqE0dWB1iM6R0="),
        (58, "3ffe:507:0:1:200:86ff:fe05:80da", "3ffe:501:0:1001::2", Icmp(128, 129), "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
        (58, "3ffe:501:0:1001::2", "3ffe:507:0:1:200:86ff:fe05:80da", Icmp(129, 128), "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
        (58, "fe80::200:86ff:fe05:80da", "ff02::2", Icmp(133, 134), "1:hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
        (58, "fe80::260:97ff:fe07:69ea", "ff02::1", Icmp(134, 133), "1:pkvHqCL88/tg1k4cPigmZXUtL00="),
        (1, "192.168.0.89", "192.168.0.1", Icmp(8, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
        (1, "192.168.0.1", "192.168.0.89", Icmp(0, 8), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
        (1, "10.0.0.1", "10.0.0.2", Icmp(11, 0), "1:YHxtAirCG//0OzkcVAukqKQN9xM="),
        (6, "2001:470:e5bf:dead:4957:2174:e82c:4887", "2607:f8b0:400c:c03::1a", Ports(63943, 25), "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4="),
        (6, "2607:f8b0:400c:c03::1a", "2001:470:e5bf:dead:4957:2174:e82c:4887", Ports(25, 63943), "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4="),
        (132, "192.168.170.8", "192.168.170.56", Ports(7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
        (132, "192.168.170.56", "192.168.170.8", Ports(7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
        (6, "128.232.110.120", "66.35.250.204", Ports(34855, 80), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
        (6, "66.35.250.204", "128.232.110.120", Ports(80, 34855), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
        (17, "192.168.1.52", "8.8.8.8", Ports(54585, 53), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
        (17, "8.8.8.8", "192.168.1.52", Ports(53, 54585), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
        (46, "10.1.12.1", "10.1.12.2", Portless, "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
        (46, "10.1.12.2", "10.1.12.1", Portless, "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
    ];

    /// Computed from the definition by a separate program (Python's hashlib), which also gives all
    /// published values.
    #[rustfmt::skip]
    const COMPUTED: [Vector; 33] = [
        (17, "10.0.0.1", "10.0.0.1", Ports(5, 4), "1:PbXEucXIxDu5UoupZ1rj7ybZ6vc="),
        (17, "10.0.0.1", "10.0.0.1", Ports(4, 5), "1:PbXEucXIxDu5UoupZ1rj7ybZ6vc="),
        (6, "9.0.0.1", "10.0.0.1", Ports(80, 443), "1:+G0PdIC4bGj91h2JPjJKi2GrRAo="),
        (132, "2001:db8::2", "2001:db8::1", Ports(36412, 36413), "1:agDZGx58O9dwOJwwsW6BV87ZSMU="),
        (47, "198.51.100.1", "192.0.2.1", Portless, "1:I8wO2aQInH1H6WTXx7bwq7F/m20="),
        (50, "2001:db8::2", "2001:db8::1", Portless, "1:JIAyWiD7dl1e74CJAdetAUPF/To="),
        (1, "198.51.100.1", "192.0.2.1", Icmp(3, 1), "1:FYcGLQoe1FFIdDE1b63AA/5n7ak="),
        (1, "192.0.2.1", "198.51.100.1", Icmp(3, 1), "1:IPX66iSpZSaMVlGFFDCIwIRmLIY="),
        (1, "192.0.2.1", "192.0.2.1", Icmp(8, 0), "1:VvzjLzIppyRTdjrTPqO6X5e/Sj8="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(0, 7), "1:RfuHnhtnLwWr71nBAg4OP8rBsr8="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(8, 7), "1:4mMdwYjCIuP5Ed475nV2s/i0hdQ="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(9, 7), "1:pTBSPJOCPjva1d869bBRqZtfTO4="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(10, 7), "1:2rocgvla6EKFgFlfIvdvfovsEaI="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(13, 7), "1:3JRaEyAgcqFmgz48393dx0Ay0rY="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(14, 7), "1:3IhceMdsTHrBdAPiQs+LXzbM/3g="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(15, 7), "1:b2P2dHbcC3SoWHbsJixsMjj7rWs="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(16, 7), "1:QXuVkCNywTpoCoVIQZPqBMgy5pI="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(17, 7), "1:s2a0aU+xR2EAmOgrbGA2x70Xxl4="),
        (1, "192.0.2.9", "192.0.2.1", Icmp(18, 7), "1:7MdKp9/EA38+8fuHBAwjgnV8JLI="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(128, 7), "1:hQiq3bYCRxwGBxMh6mQ6xHiSIzk="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(129, 7), "1:NteG24ou2TlOJg0yHyCyA9tvzvY="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(130, 7), "1:oieVDz/KM2SgdU/yvRYXy7Pcrbk="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(131, 7), "1:rVsu7JoT9Pt2RCdcVDO991E8CGM="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(133, 7), "1:8PDF7BtqIf4YvVWOeOMGgwDoOWs="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(134, 7), "1:j86bt9dHSy8iHNPhb5ISI/HvLro="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(135, 7), "1:MLdGZ7oa6ucabfowNWt0YlIuos0="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(136, 7), "1:x3igDJ3UP02yk51v0SqOpwT3yBo="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(139, 7), "1:D2f1G5sETEMjFdgVrQJFUDwSJE8="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(140, 7), "1:Ovwj5YWOsKMoFYnwojzvbX0pyy0="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(144, 7), "1:VjTxqGEWGxeaFDCvsS54E6GBqMI="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(145, 7), "1:d9IHUJ5MWwHoF4O4qpIkSiNvjCk="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(1, 7), "1:O4c4hExBYGb7Zg5fhxs93xj2UqE="),
        (58, "2001:db8::9", "2001:db8::1", Icmp(137, 7), "1:ayTMMPxXahC+MLrK+VjwB7Hoj4Y="),
    ];

    #[test]
    fn identifiers_are_those_of_the_published_baseline() {
        for (protocol, source, destination, upper, expected) in
            PUBLISHED.into_iter().chain(COMPUTED)
        {
            let addresses = match (source.parse().unwrap(), destination.parse().unwrap()) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => {
                    Addresses::V4 { source: source.octets(), destination: destination.octets() }
                }
                (IpAddr::V6(source), IpAddr::V6(destination)) => {
                    Addresses::V6 { source: source.octets(), destination: destination.octets() }
                }
                _ => panic!("two families"),
            };
            assert_eq!(
                community_id(addresses, protocol, upper).as_deref(),
                Some(expected),
                "{protocol} {source} {destination} {upper:?}"
            );
            assert_eq!(community_id(addresses, protocol, Upper::Unknown), None);
        }
    }
}
