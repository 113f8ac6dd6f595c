//! The first layer of each link type.

use super::bytes::{be16, from};
use super::layer::{Layer, Step};
use super::{Skip, cooked, ieee80211, meta, ppp};
use crate::trace::LinkType;

/// Reads what the link type puts before the first header that others share.
pub(super) fn begin(link: LinkType, frame: &[u8]) -> Step<'_> {
    match link.0 {
        1 => Ok((Layer::Ethernet, frame)),
        // Raw IP; headers that carry a link type carry it as BSD systems number it, too.
        12 | 14 | 101 => Ok((Layer::Ip, frame)),
        228 => Ok((Layer::Ipv4, frame)),
        229 => Ok((Layer::Ipv6, frame)),
        // Loopback, Linux cooked captures, packet filters, an encrypting interface.
        0 | 108 => cooked::loopback(frame),
        113 => cooked::linux_protocol(be16(frame, 14)?, from(frame, 16)?),
        276 => cooked::linux_protocol(be16(frame, 0)?, from(frame, 20)?),
        109 => cooked::encrypting_interface(frame),
        117 => cooked::packet_filter_log(frame),
        239 => meta::nflog(frame),
        // PPP: perhaps in HDLC framing of either kind, over Ethernet, with a byte of direction in
        // the place of the address field or before it; SLIP.
        9 | 50 => Ok((Layer::Hdlc, frame)),
        51 => Ok((Layer::PppOe, frame)),
        166 if frame.get(1) == Some(&3) => Ok((Layer::Ppp, &frame[2..])),
        166 => Ok((Layer::Ppp, frame)),
        204 => Ok((Layer::Ppp, from(frame, 1)?)),
        // Sixteen bytes of direction and compressed header.
        8 => Ok((Layer::Ip, from(frame, 16)?)),
        // Cisco HDLC and Frame Relay, plain and behind a byte of direction; MPLS.
        104 => Ok((Layer::CiscoHdlc, frame)),
        205 => Ok((Layer::CiscoHdlc, from(frame, 1)?)),
        107 => ppp::frame_relay(frame),
        206 => ppp::frame_relay(from(frame, 1)?),
        219 => Ok((Layer::Mpls, frame)),
        // 802.11: bare, and behind the headers of radiotap, Prism, AVS.
        105 => Ok((Layer::Ieee80211(ieee80211::Form::Plain), frame)),
        127 => ieee80211::radiotap(frame),
        119 => ieee80211::prism(frame),
        163 => ieee80211::avs(frame),
        // Headers that name the link type of what follows.
        192 => meta::ppi(frame),
        149 | 258 => meta::pktap(frame),
        // Token ring, FDDI, ARCNET, ATM, Fibre Channel, FireWire, InfiniBand.
        6 => cooked::token_ring(frame),
        10 => cooked::fddi(frame),
        7 => cooked::arcnet(frame, false),
        129 => cooked::arcnet(frame, true),
        100 => cooked::atm(frame),
        123 => Ok((Layer::Llc, from(frame, 4)?)),
        122 => Ok((Layer::Llc, from(frame, 16)?)),
        138 => Ok((Layer::EtherType(be16(frame, 16)?), from(frame, 18)?)),
        // A global routing header, then an EtherType and two reserved bytes.
        242 => Ok((Layer::EtherType(be16(frame, 40)?), from(frame, 44)?)),
        // Ethernet behind a header of fixed length: a card's own, preambles, a switch's tag.
        240 | 282 => Ok((Layer::Ethernet, from(frame, 4)?)),
        241 => Ok((Layer::Ethernet, from(frame, 12)?)),
        274 => Ok((Layer::Ethernet, from(frame, 8)?)),
        // Ethernet with a switch's tag between addresses and EtherType.
        281 | 284 => cooked::switch_tag(frame, 4),
        285 => cooked::switch_tag(frame, 8),
        _ => Err(Skip::UnsupportedLink(link)),
    }
}

/// Link types that are decoded, for the tests that go through all of them.
#[cfg(test)]
pub(super) const DECODED: &[u16] = &[
    0, 1, 6, 7, 8, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 107, 108, 109, 113, 117, 119, 122,
    123, 127, 129, 138, 149, 163, 166, 192, 204, 205, 206, 219, 228, 229, 239, 240, 241, 242, 258,
    274, 276, 281, 282, 284, 285,
];
