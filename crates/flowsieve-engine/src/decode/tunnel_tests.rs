//! Every tunnel: the inside is found, cut short anywhere, and only where it is asked for.

use proptest::prelude::*;

use super::test_packets::{V4, V6, ethernet, join, udp, v4, v6};
use super::{Addresses, Decoder, Tunnel, udp_tunnel};
use crate::trace::LinkType;

const IP: LinkType = LinkType(101);

fn addresses(tunnel: Tunnel, packet: &[u8]) -> Option<Addresses> {
    Some(Decoder::new(tunnel).decode(IP, packet).ok()?.addresses)
}

/// Checks that the headers in an IPv6 packet lead to an inner IPv4 packet.
#[track_caller]
fn check(protocol: u8, headers: &[u8]) {
    check_in(|inside| v6(protocol, inside), headers);
}

/// The same in a UDP datagram to or from a port.
#[track_caller]
fn check_udp(port: u16, headers: &[u8]) {
    check_in(|inside| v6(17, &udp(50_000, port, inside)), headers);
    check_in(|inside| v6(17, &udp(port, 1000, inside)), headers);
}

#[track_caller]
fn check_in(outside: impl Fn(&[u8]) -> Vec<u8>, headers: &[u8]) {
    let inner = v4(6, &[7; 30]);
    let packet = outside(&join(&[headers, &inner]));
    assert_eq!(addresses(Tunnel::Outer, &packet), Some(V6));
    assert_eq!(addresses(Tunnel::Inner, &packet), Some(V4), "{headers:x?}");
    // Where the inner header is not all there the outer one counts.
    let inner_header = packet.len() - 30;
    for cut in 0..packet.len() {
        let expected = match cut {
            ..40 => None,
            _ if cut < inner_header => Some(V6),
            _ => Some(V4),
        };
        assert_eq!(addresses(Tunnel::Inner, &packet[..cut]), expected);
    }
    // Nor an inner header that is not IP.
    let damaged = outside(&join(&[headers, &[0xf5; 40]]));
    assert_eq!(addresses(Tunnel::Inner, &damaged), Some(V6));
    let mut later = v4(4, &packet);
    later[7] = 1;
    assert_eq!(addresses(Tunnel::Inner, &later), Some(V4));
}

#[test]
fn ip_in_ip() {
    check(4, &[]);
    let six_in_four = v4(41, &v6(6, &[]));
    assert_eq!(addresses(Tunnel::Outer, &six_in_four), Some(V4));
    assert_eq!(addresses(Tunnel::Inner, &six_in_four), Some(V6));
    check(137, &[0, 1, 1, 64]);
    check(97, &join(&[&[0x30, 0], &ethernet(0x0800, &[])]));
    check(143, &ethernet(0x0800, &[]));
    check(103, &[0x21, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn gre() {
    check(47, &[0, 0, 8, 0]);
    check(47, &[0x80, 0, 8, 0, 0, 0, 0, 0]);
    check(47, &[0, 0, 0x89, 0x09, 8, 0, 1, 1, 0, 1, 0, 7]);
    check(47, &[0x20, 0, 8, 0, 0, 0, 0, 7]);
    check(47, &[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1]);
    check(47, &[0x40, 0, 8, 0, 0, 0, 0, 0, 8, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 0]);
    check(47, &join(&[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], &ethernet(0x0800, &[])]));
    check(47, &[0, 0, 0x88, 0x47, 0, 1, 1, 64]);
    check(47, &[0, 0, 0x88, 0x3e]);
    check(47, &[0, 0, 0x88, 0x3e, 0, 0, 0, 0]);
    // Version 1, with and without acknowledgement.
    check(47, &[0x30, 0x01, 0x88, 0x0b, 0, 0, 0, 7, 0, 0, 0, 1, 0xff, 3, 0, 0x21]);
    check(47, &[0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0x21]);
    // Mirrored frames: types I, II, III, III with its second header.
    let frame = ethernet(0x0800, &[]);
    check(47, &join(&[&[0, 0, 0x88, 0xbe], &frame]));
    check(47, &join(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0x10; 8], &frame]));
    let three = |last: u8| join(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[0x20; 10], &[0, last]]);
    check(47, &join(&[&three(0), &frame]));
    check(47, &join(&[&three(1), &[0; 8], &frame]));
    check(47, &join(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[0x20; 10], &[8, 0]]));
    let wireless = join(&[&[0x08, 1], &[0; 22], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]]);
    check(47, &join(&[&[0, 0, 0x82, 0x40], &wireless]));
}

#[test]
fn in_udp() {
    // An identity of 16 bytes and a signature of 20; then neither.
    check_udp(5072, &join(&[&[0x41, 0x52, 0x11, 4], &[0; 40]]));
    check_udp(5072, &[0x01, 0x02, 0x11, 4, 0, 0, 0, 0, 0]);
    let frame = ethernet(0x0800, &[]);
    let vxlan =
        |flags, protocol, inside: &[u8]| join(&[&[flags, 0, 0, protocol, 0, 0, 7, 0], inside]);
    check_udp(4789, &vxlan(8, 0, &frame));
    check_udp(8472, &vxlan(8, 0, &ethernet(0x8100, &[0, 1, 8, 0])));
    check_udp(4790, &vxlan(0x0c, 1, &[]));
    check_udp(4790, &vxlan(0x0c, 3, &frame));
    check_udp(4790, &vxlan(0x08, 0, &frame));
    check_udp(4790, &vxlan(0x0c, 4, &[0x0f, 0xc2, 2, 1, 0, 0, 0, 0]));
    check_udp(4790, &vxlan(0x0c, 5, &[0, 1, 1, 64]));
    check_udp(6081, &join(&[&[0, 0, 0x65, 0x58, 0, 0, 7, 0], &frame]));
    check_udp(6081, &[1, 0, 8, 0, 0, 0, 7, 0, 1, 2, 3, 0]);
    check_udp(2152, &[0x30, 255, 0, 0, 0, 0, 0, 1]);
    check_udp(2152, &[0x32, 255, 0, 0, 0, 0, 0, 1, 0, 7, 0, 0]);
    check_udp(2152, &[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0x40, 1, 0, 0, 0]);
    check_udp(2152, &[0x30, 255, 0, 0, 0, 0, 0, 1, 0xff, 3, 0, 0x21]);
    check_udp(4341, &[0; 8]);
    check_udp(4342, &[0x80, 0, 0, 0]);
    check_udp(4754, &[0, 0, 8, 0]);
    check_udp(6635, &[0, 1, 1, 64]);
    check_udp(1701, &[0x00, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21]);
    check_udp(1701, &[0x4a, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 9, 9, 0x21]);
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    check_udp(5247, &join(&[&[0, 0x10, 2, 0, 0, 0, 0, 0], &frame]));
    check_udp(5247, &join(&[&[0, 0x10, 3, 0, 0, 0, 0, 0, 0x08, 2], &[0; 22], &snap]));
    check_udp(5247, &join(&[&[0, 0x10, 3, 0, 0, 0, 0, 0, 0x02, 8], &[0; 20], &[1, 0], &snap]));
}

/// A resolver's client that chose a tunnel's port, with bytes that a tunnel could begin with.
#[test]
fn dns_is_no_tunnel_whichever_port_its_client_has() {
    for port in [2152_u16, 3544, 4789, 6081, 8472] {
        for ports in [[53, port], [port, 53]] {
            let mut datagram = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
            datagram.extend([0, 100, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
            datagram.resize(100, 0x45);
            assert!(udp_tunnel::inside(&datagram).is_err(), "{ports:?}");
        }
    }
}

#[test]
fn teredo() {
    let check = |headers: &[u8]| {
        let packet = v4(17, &udp(3544, 50_000, &join(&[headers, &v6(59, &[])])));
        assert_eq!(addresses(Tunnel::Outer, &packet), Some(V4));
        assert_eq!(addresses(Tunnel::Inner, &packet), Some(V6), "{headers:x?}");
    };
    check(&[]);
    check(&[0, 0, 1, 2, 3, 4, 5, 6]);
    check(&[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    check(&[0, 1, 2, 1, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn no_tunnels() {
    let inner = v4(6, &[7; 30]);
    let check = |packet: &[u8]| assert_eq!(addresses(Tunnel::Inner, packet), Some(V6));
    // Packets quoted by ICMP errors; other ports; control messages of tunnels.
    check(&v6(58, &join(&[&[1, 0, 0, 0, 0, 0, 0, 0], &inner])));
    check(&v6(1, &join(&[&[3, 0, 0, 0, 0, 0, 0, 0], &inner])));
    check(&v6(17, &udp(53, 1000, &inner)));
    check(&v6(17, &udp(53, 2152, &join(&[&[0x30, 1, 0, 0, 0, 0, 0, 1], &inner]))));
    check(&v6(17, &udp(1701, 1701, &join(&[&[0xc8, 2, 0, 60, 0, 1, 0, 2], &inner]))));
    check(&v6(17, &udp(5247, 1000, &join(&[&[1, 0x10, 2, 0, 0, 0, 0, 0], &inner]))));
    check(&v6(47, &join(&[&[0x20, 1, 0x88, 0x0b, 0, 0, 0, 7], &inner])));
    check(&v6(103, &join(&[&[0x23, 0, 0, 0, 0, 0, 0, 0], &inner])));
    check(&v6(47, &join(&[&[0x40, 0, 8, 0, 0, 0, 0, 0], &[1; 20]])));
}

#[test]
fn the_innermost_of_many_counts() {
    let mut packet = v6(6, &[]);
    for _ in 0..20 {
        let frame = ethernet(0x0800, &packet);
        packet = v4(17, &udp(50_000, 4789, &join(&[&[8, 0, 0, 0, 0, 0, 7, 0], &frame])));
    }
    assert_eq!(addresses(Tunnel::Outer, &packet), Some(V4));
    assert_eq!(addresses(Tunnel::Inner, &packet), Some(V6));
    // Deeper than is followed: the last header that was reached counts.
    for _ in 0..400 {
        packet = v4(4, &packet);
    }
    assert_eq!(addresses(Tunnel::Inner, &packet), Some(V4));
}

proptest! {
    #[test]
    fn anything_inside_is_survived(
        protocol: u8,
        port in prop_oneof![
            Just(1701u16), Just(2152), Just(3544), Just(4341), Just(4342), Just(4754), Just(4789),
            Just(4790), Just(5247), Just(6081), Just(6635),
        ],
        inside in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        for protocol in [protocol, 47, 97, 103, 137] {
            prop_assert!(addresses(Tunnel::Inner, &v4(protocol, &inside)).is_some());
        }
        prop_assert!(addresses(Tunnel::Inner, &v4(17, &udp(port, 1000, &inside))).is_some());
    }
}
