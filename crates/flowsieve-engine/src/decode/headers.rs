//! The end of a frame's headers, for cutting packets off there.

use super::ethernet::{ARP, REVERSE_ARP};
use super::ieee80211;
use super::layer::Layer;
use super::walk::{STEPS_MAX, next_packet};
use super::{IpPacket, Tunnel, ip, tunnel};
use crate::trace::LinkType;

/// Returns how many bytes of a frame are headers: of the link, of IP with its extension headers,
/// and of the transport layer.
///
/// With [`Tunnel::Inner`] these are all headers up to the innermost IP packet that can be reached,
/// and of what that carries. A frame without IP keeps the headers that could be read before
/// whatever it carries, and an address resolution message as a whole. What cannot be read is no
/// header: if in doubt, it is payload.
pub fn headers_end(link: LinkType, frame: &[u8], tunnel: Tunnel) -> usize {
    let (mut at, mut steps) = ((Layer::Link(link), frame), 0..STEPS_MAX);
    let mut found = None;
    while let Ok(packet) = next_packet(&mut at, &mut steps) {
        let end = behind_ip(frame, at.1, &packet);
        if tunnel == Tunnel::Outer {
            return end;
        }
        found = Some(end);
        match tunnel::inside(&packet) {
            Some(next) => at = next,
            None => return end,
        }
    }
    let (layer, bytes) = at;
    // The layer behind the last IP packet cannot be read, so it is payload.
    found.unwrap_or_else(|| {
        let at = place(frame, bytes).unwrap_or(frame.len());
        at + without_ip(layer, bytes).min(bytes.len())
    })
}

/// Returns the offset of a piece of this frame, also of an empty one; `None` if it is of another.
fn place(frame: &[u8], piece: &[u8]) -> Option<usize> {
    let at = piece.as_ptr().addr().wrapping_sub(frame.as_ptr().addr());
    (at <= frame.len()).then_some(at)
}

/// Returns the end of the transport header of an IP packet.
fn behind_ip(frame: &[u8], bytes: &[u8], packet: &IpPacket<'_>) -> usize {
    let at = place(frame, bytes).unwrap_or(frame.len());
    match place(frame, packet.transport) {
        Some(transport) => transport + transport_bytes(packet).min(packet.transport.len()),
        // Its options or extension headers were cut off.
        None if packet.bytes as usize > bytes.len() => at + bytes.len(),
        None => at + contradiction(&bytes[..packet.bytes as usize]),
    }
}

/// Returns the offset at which an IP packet announces an extension header that does not fit into
/// it.
fn contradiction(packet: &[u8]) -> usize {
    let v6 = packet[0] >> 4 == 6;
    let (mut protocol, mut at) =
        if v6 { (packet[6], ip::V6_HEADER) } else { (packet[9], usize::from(packet[0] & 15) * 4) };
    while let Some(head) = packet.get(at..).and_then(<[u8]>::first_chunk::<4>)
        && ip::is_extension(protocol, v6)
    {
        let length = ip::extension(protocol, *head).0;
        if at + length > packet.len() {
            return at + head.len();
        }
        protocol = head[0];
        at += length;
    }
    at.min(packet.len())
}

/// Returns the length of the transport header of an IP packet, as far as it is known.
fn transport_bytes(packet: &IpPacket<'_>) -> usize {
    let words = |at: usize| packet.transport.get(at).copied().unwrap_or_default();
    match packet.protocol {
        _ if packet.later_fragment => 0,
        ip::TCP => usize::from(words(12) >> 4).max(5) * 4,
        ip::UDP | ip::UDP_LITE | ip::ICMP | ip::ICMPV6 | ip::ENCAPSULATED => 8,
        ip::SCTP => 12,
        ip::DCCP => usize::from(words(4)).max(3) * 4,
        _ => 0,
    }
}

/// Returns how many bytes are headers in a frame in which the walk ended here.
fn without_ip(layer: Layer, bytes: &[u8]) -> usize {
    match layer {
        // Addresses of hardware and protocol, of sender and target.
        Layer::EtherType(ARP | REVERSE_ARP) => match bytes {
            [_, _, _, _, 6, 4, ..] => 28,
            _ => 8,
        },
        Layer::Ieee80211(form) => ieee80211::header_bytes(bytes, form),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_packets::{ethernet, tcp, udp, v4, v6};
    use super::super::{Decoder, address_places};
    use super::*;
    use proptest::prelude::*;

    const PAYLOAD: &[u8] = b"what applications write";

    fn outer(frame: &[u8]) -> usize {
        headers_end(LinkType::ETHERNET, frame, Tunnel::Outer)
    }

    /// A frame of which this many bytes are headers, behind Ethernet and perhaps tags.
    #[track_caller]
    fn check(bytes: usize, ether_type: u16, packet: &[u8]) {
        let frame = ethernet(ether_type, packet);
        let tags = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2];
        let tagged = [&frame[..12], &tags, &frame[12..]].concat();
        assert_eq!(outer(&frame), 14 + bytes);
        assert_eq!(outer(&tagged), 22 + bytes);
        // Padding is no header, and what was cut off is not there.
        let padded = [&frame[..], &[0; 30]].concat();
        assert_eq!(outer(&padded), 14 + bytes);
        assert_eq!(outer(&frame[..14 + bytes]), 14 + bytes);
    }

    #[test]
    fn headers_end_behind_the_transport() {
        let long = |mut segment: Vec<u8>| {
            segment[12] = 0x80;
            segment.splice(20..20, [1; 12]);
            segment
        };
        let mut dccp = [&[0; 20], PAYLOAD].concat();
        dccp[4] = 5;
        let message = [&[8, 0, 0, 0, 0, 0, 0, 0], PAYLOAD].concat();
        for (bytes, protocol, transport) in [
            (20, 6, tcp(1, 2, PAYLOAD)),
            (20, 6, tcp(1, 2, b"")),
            (32, 6, long(tcp(1, 2, PAYLOAD))),
            (8, 17, udp(1, 2, PAYLOAD)),
            (8, 17, udp(1, 2, b"")),
            (8, 136, udp(1, 2, PAYLOAD)),
            (12, 132, [&[0; 12], PAYLOAD].concat()),
            (20, 33, dccp),
            (8, 1, message.clone()),
            (8, 58, message),
            // Nothing is known of its header.
            (0, 99, PAYLOAD.to_vec()),
            (0, 99, vec![]),
        ] {
            check(20 + bytes, 0x0800, &v4(protocol, &transport));
            check(40 + bytes, 0x86dd, &v6(protocol, &transport));
            let options = [&[protocol, 1][..], &[0; 14], &transport].concat();
            check(40 + 16 + bytes, 0x86dd, &v6(60, &options));
            // A later fragment has no transport header.
            let fragment = [&[protocol, 0, 0, 8, 0, 0, 0, 1], &transport[..]].concat();
            check(48, 0x86dd, &v6(44, &fragment));
            let mut fragment = v4(protocol, &transport);
            fragment[7] = 1;
            check(20, 0x0800, &fragment);
        }
        let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat();
        check(28, 0x0806, &arp);
        check(0, 0x88cc, PAYLOAD);
    }

    #[test]
    fn what_is_cut_off_or_contradicts_itself_is_no_payload_in_disguise() {
        let packet = ethernet(0x86dd, &v6(60, &[&[6, 200][..], &[7; 46]].concat()));
        assert_eq!(outer(&packet), 58, "its options do not fit into it");
        let mut cut = packet.clone();
        cut[18] = 9;
        assert_eq!(outer(&cut), cut.len(), "its options were cut off");
        let bad = ethernet(0x0800, &[&[0x41], PAYLOAD].concat());
        assert_eq!(outer(&bad), 14);
        assert_eq!(headers_end(LinkType(9999), &packet, Tunnel::Outer), 0);
    }

    #[test]
    fn a_label_stays_when_all_behind_it_is_cut_off() {
        let frame = [0, 1, 1, 64, 0x45];
        for bytes in [&frame[..], &frame[..4]] {
            assert_eq!(headers_end(LinkType(219), bytes, Tunnel::Outer), 4);
        }
    }

    #[test]
    fn headers_of_wireless_frames_are_their_addresses() {
        let end = |bytes: &[u8]| headers_end(LinkType(105), bytes, Tunnel::Outer);
        let frame = |control: u8, flags: u8| [&[control, flags][..], &[7; 60]].concat();
        for (control, flags, bytes) in [
            (0x80, 0, 24),
            (0x08, 0x41, 24),
            (0x08, 0x43, 30),
            (0xb4, 0, 16),
            (0xd4, 0, 10),
            (0x03, 0, 0),
        ] {
            assert_eq!(end(&frame(control, flags)), bytes);
        }
        assert_eq!(end(&frame(0x80, 0)[..20]), 20);
    }

    #[test]
    fn inside_tunnels_the_innermost_headers_end() {
        let inside = ethernet(0x0800, &v4(6, &tcp(1, 2, PAYLOAD)));
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0], &inside[..]].concat();
        let frame = ethernet(0x0800, &v4(17, &udp(9, 4789, &vxlan)));
        assert_eq!(outer(&frame), 42);
        let inner = |frame: &[u8]| headers_end(LinkType::ETHERNET, frame, Tunnel::Inner);
        assert_eq!(inner(&frame), frame.len() - PAYLOAD.len());
        // Unreadable bytes are payload.
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0], PAYLOAD].concat();
        assert_eq!(inner(&ethernet(0x0800, &v4(17, &udp(9, 4789, &vxlan)))), 42);
    }

    proptest! {
        /// Any bytes: the end is in the frame, and what is cut there is decoded as before.
        #[test]
        fn what_is_cut_behind_its_headers_reads_the_same(
            link in prop_oneof![Just(1_u16), Just(101), Just(113), Just(105), Just(276), any::<u16>()],
            protocol in prop_oneof![Just(6u8), Just(17), Just(4), Just(47), Just(60), any::<u8>()],
            kind in 0..4usize,
            noise in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let frame = match kind {
                0 => noise,
                1 => ethernet(0x0800, &v4(protocol, &noise)),
                2 => ethernet(0x86dd, &v6(protocol, &noise)),
                _ => v4(17, &udp(9, 2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 0], &v4(protocol, &noise)[..]].concat())),
            };
            let link = LinkType(if kind == 3 { 101 } else { link });
            for tunnel in [Tunnel::Outer, Tunnel::Inner] {
                let end = headers_end(link, &frame, tunnel);
                prop_assert!(end <= frame.len());
                let of = |frame| {
                    let packet = Decoder::new(tunnel).decode(link, frame).ok()?;
                    Some((packet.addresses, packet.protocol, packet.ports(), packet.tcp_flags(), packet.icmp_type_and_code()))
                };
                if let Some(old) = of(&frame[..]) {
                    prop_assert_eq!(Some(old), of(&frame[..end]));
                }
                // Cut twice is cut once.
                prop_assert_eq!(headers_end(link, &frame[..end], tunnel), end);
            }
            let mut places = Vec::new();
            address_places(link, &frame[..headers_end(link, &frame, Tunnel::Inner)], &mut places);
        }
    }
}
