//! Community ID version 1: a short name for a flow on which tools agree.
//!
//! ```text
//!     "1:" base64(sha1( seed, 2 │ address │ address │ protocol │ 0 │ port, 2 │ port, 2 ))
//! ```
//!
//! The smaller (address, port) comes first, so both directions have the same identifier. Type and code
//! of an ICMP message take the place of the ports; where the type has a counterpart (an echo and its
//! reply), that takes the place of the code, and where it has none, the ends are not put in order.
//! Protocols without ports leave them out.
//!
//! Reference: Corelight, "Community ID Flow Hashing", version 1; seed 0, as is the default of all
//! tools.

use crate::decode::Addresses;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// What a packet says above IP, as far as the Community ID needs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

/// The Community ID, or none if what it is made of is unknown.
pub fn community_id(addresses: Addresses, protocol: u8, upper: Upper) -> Option<String> {
    let (ports, one_way) = match upper {
        Upper::Ports(source, destination) => (Some((source, destination)), false),
        Upper::Icmp(kind, code) => {
            let counterpart = counterpart(protocol, kind);
            let second = counterpart.unwrap_or(code);
            let ports = (u16::from(kind), u16::from(second));
            (Some(ports), counterpart.is_none())
        }
        Upper::Portless => (None, false),
        Upper::Unknown => return None,
    };
    let mut message = [0; 2 + 32 + 2 + 4];
    let mut end = 2;
    let mut put = |bytes: &[u8]| {
        message[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    };
    let (first, second): (&[u8], &[u8]) = match &addresses {
        Addresses::V4 {
            source,
            destination,
        } => (source, destination),
        Addresses::V6 {
            source,
            destination,
        } => (source, destination),
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
    let mut text = String::with_capacity(30);
    text.push_str("1:");
    STANDARD.encode_string(digest, &mut text);
    Some(text)
}

/// The type of the message that answers this one, or that this one answers.
const fn counterpart(protocol: u8, kind: u8) -> Option<u8> {
    const ICMPV6: u8 = 58;
    Some(match (protocol, kind) {
        // Echo, router discovery, time stamp, information, address mask.
        (ICMPV6, _) => return counterpart_v6(kind),
        (_, 8) => 0,
        (_, 0) => 8,
        (_, 9) => 10,
        (_, 10) => 9,
        (_, 13) => 14,
        (_, 14) => 13,
        (_, 15) => 16,
        (_, 16) => 15,
        (_, 17) => 18,
        (_, 18) => 17,
        _ => return None,
    })
}

const fn counterpart_v6(kind: u8) -> Option<u8> {
    Some(match kind {
        // Echo, multicast listeners, router and neighbour discovery, node information, home agents.
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}
