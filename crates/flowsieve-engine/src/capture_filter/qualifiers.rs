//! Qualifiers of a value: its protocol, its direction and its type.

use super::names;
use super::program::{Direction, Networks};
use crate::decode::ip::{
    AUTHENTICATION, ENCAPSULATED, ICMP, ICMPV6, IGMP, IGRP, PIM, SCTP, TCP, UDP, VRRP,
};

/// The qualifiers of a value, which following values without any take over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Qualifiers {
    pub(super) protocol: Option<Protocol>,
    pub(super) direction: Direction,
    pub(super) what: What,
}

named_enum! {
    /// The type of a value, with its word.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(super) enum What {
        Host = "host",
        Net = "net",
        Port = "port",
        PortRange = "portrange",
        Protocol = "proto",
    }
}

/// The name of a protocol, and its meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) layer: Layer,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layer {
    Link,
    Network(Networks),
    Upper { networks: Networks, number: u8 },
    EtherType(u32),
}

const fn upper(name: &'static str, networks: Networks, number: u8) -> Protocol {
    Protocol { name, layer: Layer::Upper { networks, number } }
}

const fn network(name: &'static str, networks: Networks) -> Protocol {
    Protocol { name, layer: Layer::Network(networks) }
}

const PROTOCOLS: &[Protocol] = &[
    Protocol { name: "ether", layer: Layer::Link },
    Protocol { name: "link", layer: Layer::Link },
    network("ip", Networks::IPV4),
    network("ip6", Networks::IPV6),
    network("ipv6", Networks::IPV6),
    network("arp", Networks::ARP),
    network("rarp", Networks::REVERSE_ARP),
    upper("tcp", Networks::IP, TCP),
    upper("udp", Networks::IP, UDP),
    upper("sctp", Networks::IP, SCTP),
    upper("icmp", Networks::IPV4, ICMP),
    upper("icmp6", Networks::IPV6, ICMPV6),
    upper("icmpv6", Networks::IPV6, ICMPV6),
    upper("igmp", Networks::IPV4, IGMP),
    upper("igrp", Networks::IPV4, IGRP),
    upper("pim", Networks::IP, PIM),
    upper("vrrp", Networks::IPV4, VRRP),
    upper("carp", Networks::IPV4, VRRP),
    upper("ah", Networks::IP, AUTHENTICATION),
    upper("esp", Networks::IP, ENCAPSULATED),
];

/// Protocols of Ethernet that are words of the language.
const OF_ETHERNET: [&str; 9] =
    ["atalk", "aarp", "decnet", "lat", "sca", "moprc", "mopdl", "pppoed", "stp"];

/// Returns the protocol of this name.
pub(super) fn protocol(name: &str) -> Option<Protocol> {
    let known = PROTOCOLS.iter().find(|protocol| protocol.name == name).copied();
    known.or_else(|| {
        let name = OF_ETHERNET.into_iter().find(|&known| known == name)?;
        Some(Protocol { name, layer: Layer::EtherType(names::find(names::ETHER_TYPES, name)?) })
    })
}

impl Qualifiers {
    /// Returns the words of these qualifiers.
    pub(super) fn words(&self) -> String {
        let protocol = self.protocol.map(|protocol| protocol.name);
        let direction = match self.direction {
            Direction::Source => Some("src"),
            Direction::Destination => Some("dst"),
            Direction::Either => None,
            Direction::Both => Some("src and dst"),
        };
        let words = [protocol, direction, Some(self.what.name())];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}
