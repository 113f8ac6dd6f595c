//! IP headers, also against another decoder; the common path against the general; any bytes.

use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket, PacketBuilder};
use proptest::prelude::*;

use super::link::DECODED;
use super::test_packets::{V4, V6, join, udp, v4, v6};
use super::{Addresses, Decoder, IpPacket, Skip, Tunnel, common, walk};
use crate::trace::LinkType;

fn outer(link: u16, frame: &[u8]) -> Result<IpPacket<'_>, Skip> {
    Decoder::new(Tunnel::Outer).decode(LinkType(link), frame)
}

#[test]
fn ip_version_4_header() {
    let mut packet = v4(17, &udp(1000, 2000, b""));
    // Segmentation offload: length 0.
    packet[2..4].fill(0);
    assert_eq!(outer(228, &packet).unwrap().ports(), Some((1000, 2000)));
    packet[3] = 19;
    assert_eq!(outer(228, &packet), Err(Skip::BadIpHeader));
    packet[3] = 23;
    assert_eq!(outer(228, &packet).unwrap().ports(), None);
    packet[3] = 200;
    assert_eq!(outer(228, &packet).unwrap().ports(), Some((1000, 2000)));
    // Options, cut short: the addresses count.
    packet[0] = 0x4f;
    let cut = outer(228, &packet).unwrap();
    assert_eq!((cut.addresses, cut.protocol, cut.transport), (V4, 17, &[][..]));
    packet[0] = 0x44;
    assert_eq!(outer(228, &packet), Err(Skip::BadIpHeader));
    // Fragments: the first has ports, later ones have none.
    packet[0] = 0x45;
    packet[6] = 0x20;
    assert_eq!(outer(228, &packet).unwrap().ports(), Some((1000, 2000)));
    packet[7] = 1;
    let later = outer(228, &packet).unwrap();
    assert!(later.later_fragment && later.ports().is_none());
    // Authentication header: length in words, minus two.
    let header = join(&[&[17, 4, 0, 0], &[0; 20], &udp(1000, 2000, b"")]);
    let packet = v4(51, &header);
    let authenticated = outer(228, &packet).unwrap();
    assert_eq!((authenticated.protocol, authenticated.ports()), (17, Some((1000, 2000))));
}

#[test]
fn ip_version_6_extension_headers() {
    let check = |next: u8, headers: &[u8], protocol, ports: Option<(u16, u16)>| {
        let packet = v6(next, &join(&[headers, &udp(1000, 2000, b"")]));
        let found = outer(229, &packet).unwrap();
        assert_eq!((found.protocol, found.ports()), (protocol, ports), "{next} {headers:?}");
    };
    let ports = Some((1000, 2000));
    for next in [0, 43, 60, 140] {
        check(next, &[17, 0, 0, 0, 0, 0, 0, 0], 17, ports);
        check(next, &join(&[&[17, 1], &[0; 14]]), 17, ports);
        // Longer than the packet: what follows is known, but not there.
        check(next, &[17, 200, 0, 0, 0, 0, 0, 0], 17, None);
    }
    check(51, &join(&[&[17, 4], &[0; 22]]), 17, ports);
    check(44, &[17, 0, 0, 1, 0, 0, 0, 0], 17, ports);
    check(0, &join(&[&[60, 0], &[0; 6], &[44, 0], &[0; 6], &[17, 0, 0, 1, 0, 0, 0, 0]]), 17, ports);
    check(59, &[], 59, None);
    check(135, &[59, 0, 0, 0], 135, None);
    let packet = v6(44, &join(&[&[60, 0, 0, 8, 0, 0, 0, 0], &[1; 30]]));
    let later = outer(229, &packet).unwrap();
    assert!(later.later_fragment && later.protocol == 60 && later.transport == [1; 30]);
    // A header of which not even the beginning was captured is all that is known.
    let packet = v6(0, &[17, 0, 0]);
    assert_eq!(outer(229, &packet).unwrap().protocol, 0);
    // Jumbograms and segmentation offload: length 0.
    let mut packet = v6(17, &udp(1000, 2000, b""));
    packet[4..6].fill(0);
    assert_eq!(outer(229, &packet).unwrap().ports(), ports);
}

/// Shim6 is an extension header with a length like the others (RFC 5533, section 5; RFC 7045,
/// section 4), so what counts is what stands behind it, also if of that not even the beginning was
/// captured.
#[test]
fn shim6_before_a_header_that_was_cut_short() {
    for (length, header) in [
        (0, &[0, 0, 0x80, 0, 0, 0, 0, 1][..]),
        (1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        for cut in 0..=3 {
            let rest = &[17, 0, 0][..cut];
            let packet = v6(140, &join(&[header, rest]));
            let found = outer(229, &packet).unwrap();
            assert_eq!((found.protocol, found.transport), (0, rest), "{length}");
        }
        let whole = v6(140, &join(&[header, &[17, 0, 0, 0, 0, 0, 0, 0], &udp(1000, 2000, b"")]));
        assert_eq!(outer(229, &whole).unwrap().ports(), Some((1000, 2000)));
    }
    // In IPv4 the number means a protocol like any other.
    let packet = v4(140, &[17, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(outer(228, &packet).unwrap().protocol, 140);
}

/// A frame that is nearly one of those that the common path knows.
fn nearly_common() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)];
    let tags = prop::collection::vec(tag, 0..4);
    let protocol = prop_oneof![Just(1u8), Just(6), Just(17), Just(58), Just(44), any::<u8>()];
    let payload = prop::collection::vec(any::<u8>(), 0..80);
    let touched = prop::collection::vec((0..70usize, any::<u8>()), 0..4);
    (any::<bool>(), tags, protocol, payload, touched, 0..200usize).prop_map(
        |(six, tags, protocol, payload, touched, cut)| {
            let mut frame = vec![2; 12];
            for tag in tags {
                frame.extend(tag.to_be_bytes());
                frame.extend([0, 1]);
            }
            if six {
                frame.extend([0x86, 0xdd]);
                frame.extend(v6(protocol, &payload));
            } else {
                frame.extend([0x08, 0x00]);
                frame.extend(v4(protocol, &payload));
            }
            for (at, byte) in touched {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame.truncate(cut);
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn anything_is_survived_and_outer_headers_are_found_by_both(
        frame in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for &link in DECODED {
            let link = LinkType(link);
            let outside = Decoder::new(Tunnel::Outer).decode(link, &frame);
            let inside = Decoder::new(Tunnel::Inner).decode(link, &frame);
            prop_assert_eq!(outside.is_ok(), inside.is_ok());
            prop_assert!(outside.is_ok_and(|p| p.transport.len() <= frame.len()) || outside.is_err());
        }
    }

    #[test]
    fn the_common_path_agrees_with_the_general(frame in nearly_common()) {
        if let Some(packet) = common::decode(&frame) {
            let general = walk::walk(LinkType(1), &frame, Tunnel::Outer);
            prop_assert_eq!(Ok(packet), general);
        }
        let inside = Decoder::new(Tunnel::Inner).decode(LinkType(1), &frame);
        prop_assert_eq!(inside, walk::walk(LinkType(1), &frame, Tunnel::Inner));
    }

    #[test]
    fn etherparse_finds_the_same(frame in nearly_common()) {
        let Ok(theirs) = LaxSlicedPacket::from_ethernet(&frame) else { return Ok(()) };
        if theirs.stop_err.is_some() {
            return Ok(());
        }
        let (addresses, payload) = match theirs.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let (source, destination) = (header.source(), header.destination());
                (Addresses::V4 { source, destination }, ip.payload().clone())
            }
            // They do not look behind Shim6, which RFC 7045 lists as an extension header.
            Some(LaxNetSlice::Ipv6(ip)) if ip.payload().ip_number == IpNumber::SHIM6 => {
                return Ok(());
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let (source, destination) = (header.source(), header.destination());
                (Addresses::V6 { source, destination }, ip.payload().clone())
            }
            _ => return Ok(()),
        };
        let ours = match outer(1, &frame) {
            Ok(ours) => ours,
            // They take IPv4 behind the EtherType of IPv6, and a stated length that is less than
            // the header's.
            Err(Skip::BadIpHeader) => return Ok(()),
            Err(other) => panic!("{other:?}"),
        };
        prop_assert_eq!(ours.addresses, addresses);
        // They look for extension headers in later fragments, too, and name an extension header
        // that was cut short rather than what it says follows.
        let cut_extension = ours.protocol != payload.ip_number.0 && ours.transport.is_empty();
        if !ours.later_fragment && !cut_extension {
            prop_assert_eq!(ours.protocol, payload.ip_number.0);
            prop_assert_eq!(ours.transport, payload.payload);
        }
    }
}

#[test]
fn frames_of_another_builder() {
    let v4 = ([192, 0, 2, 1], [198, 51, 100, 2]);
    let Addresses::V6 { source, destination } = V6 else { unreachable!() };
    let build = || PacketBuilder::ethernet2([2; 6], [4; 6]);
    let mut frames = [const { Vec::new() }; 4];
    let [a, b, c, d] = &mut frames;
    build().ipv4(v4.0, v4.1, 64).udp(1000, 2000).write(a, b"x").unwrap();
    build()
        .single_vlan(7.try_into().unwrap())
        .ipv4(v4.0, v4.1, 64)
        .tcp(1000, 2000, 0, 0)
        .write(b, b"x")
        .unwrap();
    build()
        .double_vlan(7.try_into().unwrap(), 8.try_into().unwrap())
        .ipv6(source, destination, 64)
        .udp(1000, 2000)
        .write(c, b"x")
        .unwrap();
    build().ipv6(source, destination, 64).tcp(1000, 2000, 0, 0).write(d, b"x").unwrap();
    for (frame, addresses) in frames.iter().zip([V4, V4, V6, V6]) {
        let packet = common::decode(frame).expect("a common frame");
        assert_eq!((packet.addresses, packet.ports()), (addresses, Some((1000, 2000))));
        assert_eq!(outer(1, frame), Ok(packet));
    }
}
