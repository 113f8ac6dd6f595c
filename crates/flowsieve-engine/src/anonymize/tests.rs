//! The mapping against published pairs and those of another implementation; frames against checksums
//! computed over all that they cover.

use super::crypto_pan::{AnonymizeKey, CryptoPan};
use super::frame::rewrite;
use super::mapping::AddressMap;
use crate::decode::{Addresses, Decoder, Tunnel, address_places};
use crate::trace::LinkType;
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The key of the sample that comes with the authors' implementation.
const SAMPLE_KEY: AnonymizeKey = AnonymizeKey::new([
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
]);

fn v4(text: &str) -> [u8; 4] {
    text.parse::<Ipv4Addr>().unwrap().octets()
}

fn v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

#[test]
fn ipv4_is_mapped_as_published() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    for (address, image) in [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
        ("152.163.225.39", "151.140.114.167"),
        ("156.29.3.236", "147.225.12.42"),
        ("165.247.96.84", "162.9.99.234"),
        ("166.107.77.190", "160.132.178.185"),
        ("192.102.249.13", "252.138.62.131"),
        // These of the implementation below.
        ("0.0.0.0", "120.255.240.1"),
        ("255.255.255.255", "206.120.97.255"),
        ("10.0.0.1", "117.15.0.1"),
    ] {
        assert_eq!(pan.v4(v4(address)), v4(image), "{address}");
    }
}

/// Pairs of an implementation that was written for this, in Python, with a cipher of its own, and that
/// gives the published IPv4 pairs too.
#[test]
fn ipv6_is_mapped_as_by_another_implementation() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    for (address, image) in [
        ("::", "78ff:f001:9fc0:20df:8380:b1f1:704:ec"),
        ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
        ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        (
            "2001:db8:1:2:3:4:5:6",
            "4401:2bc:603e:23c2:fffd:ff7:ff0a:c316",
        ),
        (
            "fe80::1234:56ff:fe78:9abc",
            "cf7f:c0e:1fc3:da1c:1dab:2904:3da4:16bc",
        ),
        ("ff02::1", "cef2:fc0c:1fff:dffe:ff8f:de7f:10f9:3f01"),
        ("::ffff:10.0.0.1", "78ff:f001:9fc0:20df:8380:7db:150b:1d01"),
        (
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "ce78:61ff:387e:8078:38c4:407:c3bf:f781",
        ),
    ] {
        assert_eq!(pan.v6(v6(address)), v6(image), "{address}");
    }
}

proptest! {
    #[test]
    fn common_prefixes_stay_exactly_as_long(
        key in any::<[u8; 32]>(), a in any::<u128>(), noise in any::<u128>(), common in 0..128u32,
    ) {
        let pan = CryptoPan::new(&AnonymizeKey::new(key));
        // Equal for `common` bits, then different, then anything.
        let b = a ^ (1 << 127 >> common) ^ (noise & ((1 << 127 >> common) - 1));
        let image = |x: u128| u128::from_be_bytes(pan.v6(x.to_be_bytes()));
        prop_assert_eq!((image(a) ^ image(b)).leading_zeros(), common);
        if common < 32 {
            let image = |x: u128| u32::from_be_bytes(pan.v4(((x >> 96) as u32).to_be_bytes()));
            prop_assert_eq!((image(a) ^ image(b)).leading_zeros(), common);
        }
    }
}

/// Of any 2^16 neighbours no two have the same image, and the images are neighbours too.
#[test]
fn a_network_is_mapped_onto_a_network() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    let images: HashSet<[u8; 4]> = (0..=u16::MAX)
        .map(|host| pan.v4((0xc0a8_0000 | u32::from(host)).to_be_bytes()))
        .collect();
    assert_eq!(images.len(), 1 << 16);
    let networks: HashSet<&[u8]> = images.iter().map(|image| &image[..2]).collect();
    assert_eq!(networks.len(), 1);
}

/// More addresses than there is room for, each twice: memory changes nothing.
#[test]
fn what_is_remembered_is_what_would_be_computed() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    let mut map = AddressMap::new(&SAMPLE_KEY);
    for _ in 0..2 {
        for i in 0..100_000_u32 {
            let address = i.wrapping_mul(77_777).to_be_bytes();
            assert_eq!(map.v4(address), pan.v4(address));
        }
        for i in 0..20_000_u128 {
            let address = (i * (1 << 100 | 0x1234_5677)).to_be_bytes();
            assert_eq!(map.v6(address), pan.v6(address));
        }
    }
}

/// The one's complement sum of bytes; 0xffff if a checksum among them is right.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0_u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum
}

fn with_checksum(mut bytes: Vec<u8>, at: usize, pseudo: &[u8]) -> Vec<u8> {
    let all = [pseudo, &bytes].concat();
    let checksum = !(sum(&all) as u16);
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn pseudo(source: &[u8], destination: &[u8], protocol: u8, length: usize) -> Vec<u8> {
    let length = (length as u32).to_be_bytes();
    [source, destination, &length, &[0, 0, 0, protocol]].concat()
}

const V4: ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [198, 51, 100, 2]);

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut head = vec![0x45, 0, (length >> 8) as u8, length as u8];
    head.extend([1, 2, 0, 0, 64, protocol, 0, 0]);
    head.extend(V4.0);
    head.extend(V4.1);
    let mut packet = with_checksum(head, 10, &[]);
    packet.extend(payload);
    packet
}

fn v6_ends() -> ([u8; 16], [u8; 16]) {
    (v6("2001:db8::1"), v6("2001:db8:5::99"))
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = v6_ends();
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

/// A UDP datagram with a checksum for these addresses.
fn udp(port: u16, ends: (&[u8], &[u8]), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for number in [40_000, port, 8 + payload.len() as u16, 0] {
        datagram.extend(number.to_be_bytes());
    }
    datagram.extend(payload);
    let pseudo = pseudo(ends.0, ends.1, 17, datagram.len());
    with_checksum(datagram, 6, &pseudo)
}

fn tcp(ends: (&[u8], &[u8]), payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 9, 9];
    segment.extend([0; 4]);
    segment.extend(payload);
    let pseudo = pseudo(ends.0, ends.1, 6, segment.len());
    with_checksum(segment, 16, &pseudo)
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), payload].concat()
}

fn anonymized(frame: &[u8]) -> Vec<u8> {
    let mut new = frame.to_vec();
    let mut places = Vec::new();
    address_places(LinkType::ETHERNET, frame, &mut places);
    rewrite(&mut new, &places, &mut AddressMap::new(&SAMPLE_KEY));
    assert_eq!(new.len(), frame.len());
    new
}

/// The addresses that decoding finds are the images of those before, inside of tunnels and outside.
fn check_addresses(old: &[u8], new: &[u8]) {
    let mut map = AddressMap::new(&SAMPLE_KEY);
    for tunnel in [Tunnel::Outer, Tunnel::Inner] {
        let of = |frame| Decoder::new(tunnel).decode(LinkType::ETHERNET, frame);
        let (old, new) = (of(old).unwrap(), of(new).unwrap());
        assert_eq!(map.addresses(old.addresses), new.addresses);
        assert_eq!((old.protocol, old.ports()), (new.protocol, new.ports()));
    }
}

fn places(frame: &[u8]) -> usize {
    let mut places = Vec::new();
    address_places(LinkType::ETHERNET, frame, &mut places);
    places.len()
}

/// The checksums of an IPv4 or IPv6 packet that carries TCP, UDP or ICMP, computed over all of it.
fn check_sums(packet: &[u8]) {
    let (head, source, destination, protocol) = if packet[0] >> 4 == 4 {
        assert_eq!(sum(&packet[..20]), 0xffff, "IPv4 header");
        (20, &packet[12..16], &packet[16..20], packet[9])
    } else {
        (40, &packet[8..24], &packet[24..40], packet[6])
    };
    let upper = &packet[head..];
    let all = match protocol {
        1 => upper.to_vec(),
        47 if upper[0] & 0x80 != 0 => upper.to_vec(),
        6 | 17 | 58 => [&pseudo(source, destination, protocol, upper.len()), upper].concat(),
        _ => return,
    };
    assert_eq!(sum(&all), 0xffff, "protocol {protocol}");
}

fn ends4() -> (&'static [u8], &'static [u8]) {
    (&V4.0, &V4.1)
}

#[test]
fn transport_checksums_stay_right() {
    let (source, destination) = v6_ends();
    let ends6 = (&source[..], &destination[..]);
    for payload in [&b""[..], b"x", b"some words", &[0xff; 333]] {
        let packets = [
            (0x0800, ipv4(6, &tcp(ends4(), payload))),
            (0x0800, ipv4(17, &udp(9999, ends4(), payload))),
            (0x86dd, ipv6(6, &tcp(ends6, payload))),
            (0x86dd, ipv6(17, &udp(9999, ends6, payload))),
        ];
        for (kind, packet) in packets {
            check_sums(&packet);
            let old = ethernet(kind, &packet);
            let new = anonymized(&old);
            check_addresses(&old, &new);
            check_sums(&new[14..]);
            assert_eq!(new[new.len() - payload.len()..], *payload);
        }
    }
}

#[test]
fn a_datagram_without_a_checksum_gets_none() {
    let mut datagram = udp(9999, ends4(), b"words");
    datagram[6..8].fill(0);
    let new = anonymized(&ethernet(0x0800, &ipv4(17, &datagram)));
    assert_eq!(new[14 + 20 + 6..][..2], [0, 0]);
}

/// Whatever the payload, never a zero where that would mean that there is none.
#[test]
fn a_checksum_never_becomes_none() {
    let mut ones = 0;
    for word in 0..=u16::MAX {
        let datagram = udp(9999, ends4(), &word.to_be_bytes());
        if datagram[6..8] == [0, 0] {
            continue;
        }
        let new = anonymized_quickly(&ethernet(0x0800, &ipv4(17, &datagram)));
        let checksum = &new[14 + 20 + 6..][..2];
        assert_ne!(checksum, [0, 0]);
        ones += u32::from(checksum == [0xff, 0xff]);
        check_sums(&new[14..]);
    }
    assert!(ones > 0);
}

fn anonymized_quickly(frame: &[u8]) -> Vec<u8> {
    use std::cell::RefCell;
    thread_local!(static MAP: RefCell<AddressMap> = RefCell::new(AddressMap::new(&SAMPLE_KEY)));
    let mut new = frame.to_vec();
    let mut places = Vec::new();
    address_places(LinkType::ETHERNET, frame, &mut places);
    MAP.with_borrow_mut(|map| rewrite(&mut new, &places, map));
    new
}

/// The sum of nothing but zeros is zero, and its checksum 0xffff: no other zero is right.
#[test]
fn a_message_of_zeros_keeps_its_checksum() {
    let message = with_checksum(vec![0; 8], 2, &[]);
    assert_eq!(message[2..4], [0xff, 0xff]);
    let new = anonymized(&ethernet(0x0800, &ipv4(1, &message)));
    check_sums(&new[14..]);
    assert_eq!(new[34..], message);
}

/// A routing header has the last destination until it is reached, and a mobile node's option its home address: the
/// checksums of TCP, UDP and `ICMPv6` cover these in place of the addresses in the IPv6 header.
#[test]
fn checksums_over_addresses_in_extension_headers_stay_right() {
    let (source, destination) = v6_ends();
    let (last, home) = (v6("2001:db8:9::77"), v6("2001:db8:aa::1"));
    let routing = |kind: u8, left: u8, addresses: &[[u8; 16]]| {
        let mut header = vec![0, 2 * addresses.len() as u8, kind, left, 0, 0, 0, 0];
        header.extend(addresses.concat());
        header
    };
    // Padding, and the home address.
    let mobile = [&[0, 2, 1, 2, 0, 0, 201, 16][..], &home].concat();
    let (routing_header, options) = (43, 60);
    let hop = v6("2001:db8:7::7");
    // Extension headers, and the ends that checksums cover; none for those of the IPv6 header.
    let cases = [
        (
            vec![(routing_header, routing(4, 1, &[last, destination]))],
            None,
            Some(last),
        ),
        (
            vec![(routing_header, routing(4, 2, &[last, destination, hop]))],
            None,
            Some(last),
        ),
        (
            vec![(routing_header, routing(4, 0, &[destination, hop]))],
            None,
            None,
        ),
        (
            vec![(routing_header, routing(2, 1, &[last]))],
            None,
            Some(last),
        ),
        (
            vec![(routing_header, routing(0, 1, &[hop, last]))],
            None,
            Some(last),
        ),
        (vec![(options, mobile.clone())], Some(home), None),
        (
            vec![
                (0, vec![0, 0, 1, 4, 0, 0, 0, 0]),
                (routing_header, routing(4, 1, &[last, destination])),
                (options, mobile),
            ],
            Some(home),
            Some(last),
        ),
    ];
    for (headers, from, to) in cases {
        let ends = (from.unwrap_or(source), to.unwrap_or(destination));
        let ends = (&ends.0[..], &ends.1[..]);
        let echo = [&[128, 0, 0, 0][..], b"echo"].concat();
        let over = pseudo(ends.0, ends.1, 58, echo.len());
        for (protocol, upper) in [
            (17, udp(9999, ends, b"words")),
            (6, tcp(ends, b"words")),
            (58, with_checksum(echo, 2, &over)),
        ] {
            // From the innermost outwards: each header names the next one.
            let (mut kind, mut bytes) = (protocol, upper.clone());
            for (number, header) in headers.iter().rev() {
                let mut header = header.clone();
                header[0] = kind;
                (kind, bytes) = (*number, [header, bytes].concat());
            }
            let old = ethernet(0x86dd, &ipv6(kind, &bytes));
            let new = anonymized(&old);
            check_addresses(&old, &new);
            let upper = &new[new.len() - upper.len()..];
            let source = from.unwrap_or(new[14 + 8..][..16].try_into().unwrap());
            let destination = to.unwrap_or(new[14 + 24..][..16].try_into().unwrap());
            let over = pseudo(&source, &destination, protocol, upper.len());
            let all = [&over, upper].concat();
            assert_eq!(sum(&all), 0xffff, "protocol {protocol} behind {headers:?}");
        }
    }
}

/// VXLAN in UDP with a checksum, around IPv6 without one, around an odd header that shifts what is inside.
#[test]
fn tunnels_are_mended_outside_too() {
    let (source, destination) = v6_ends();
    let inner = ipv6(17, &udp(9999, (&source, &destination), b"inside"));
    let vxlan = |frame: &[u8]| [&[8, 0, 0, 0, 0, 0, 7, 0], frame].concat();
    let no_upper = ipv6(132, b"no checksum that knows addresses");
    for packet in [inner, no_upper] {
        let outer = ipv4(17, &udp(4789, ends4(), &vxlan(&ethernet(0x86dd, &packet))));
        let old = ethernet(0x0800, &outer);
        assert_eq!(places(&old), 2);
        let new = anonymized(&old);
        check_addresses(&old, &new);
        check_sums(&new[14..]);
        check_sums(&new[14 + 20 + 8 + 8 + 14..]);
        // GRE with a checksum of its own.
        let gre = [&[0x80, 0, 0x86, 0xdd, 0, 0, 0, 0], &packet[..]].concat();
        let gre = with_checksum(gre, 4, &[]);
        let old = ethernet(0x0800, &ipv4(47, &gre));
        assert_eq!(places(&old), 2);
        let new = anonymized(&old);
        check_addresses(&old, &new);
        check_sums(&new[14..]);
        // L2TP with an odd offset before PPP: the inside stands at odd offsets of the datagram.
        let l2tp = [
            &[0x02, 0x02, 0, 1, 0, 2, 0, 1, 0][..],
            &[0xff, 0x03, 0, 0x57],
            &packet,
        ]
        .concat();
        let old = ethernet(0x0800, &ipv4(17, &udp(1701, ends4(), &l2tp)));
        assert_eq!(places(&old), 2);
        let new = anonymized(&old);
        check_addresses(&old, &new);
        check_sums(&new[14..]);
    }
}

#[test]
fn what_icmp_errors_quote_is_mapped() {
    let mut map = AddressMap::new(&SAMPLE_KEY);
    for quoted in [
        ipv4(17, &udp(53, ends4(), b"question")),
        ipv4(6, &tcp(ends4(), b"")[..8]),
    ] {
        let message = with_checksum([&[3, 1, 0, 0, 0, 0, 0, 0], &quoted[..]].concat(), 2, &[]);
        let new = anonymized(&ethernet(0x0800, &ipv4(1, &message)));
        check_sums(&new[14..]);
        let inside = &new[14 + 20 + 8..];
        assert_eq!(sum(&inside[..20]), 0xffff);
        assert_eq!(inside[12..16], map.v4(V4.0));
        assert_eq!(inside[16..20], map.v4(V4.1));
    }
    let (source, destination) = v6_ends();
    let quoted = ipv6(17, &udp(53, (&source, &destination), b"question"));
    let message = [&[1, 4, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
    let over = pseudo(&source, &destination, 58, message.len());
    let message = with_checksum(message, 2, &over);
    let new = anonymized(&ethernet(0x86dd, &ipv6(58, &message)));
    check_sums(&new[14..]);
    check_sums(&new[14 + 40 + 8..]);
    assert_eq!(new[14 + 40 + 8 + 8..][..16], map.v6(source));
}

#[test]
fn neighbours_redirects_and_address_resolution_are_mapped() {
    let mut map = AddressMap::new(&SAMPLE_KEY);
    let (source, destination) = v6_ends();
    let target = v6("fe80::7");
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0], &target[..]].concat();
    let over = pseudo(&source, &destination, 58, message.len());
    let new = anonymized(&ethernet(
        0x86dd,
        &ipv6(58, &with_checksum(message, 2, &over)),
    ));
    check_sums(&new[14..]);
    assert_eq!(new[14 + 40 + 8..], map.v6(target));

    let quoted = ipv4(17, &udp(53, ends4(), b""));
    let redirect = [&[5, 1, 0, 0, 10, 0, 0, 138], &quoted[..]].concat();
    let new = anonymized(&ethernet(
        0x0800,
        &ipv4(1, &with_checksum(redirect, 2, &[])),
    ));
    check_sums(&new[14..]);
    assert_eq!(new[14 + 20 + 4..][..4], map.v4([10, 0, 0, 138]));

    let arp = [
        &[0, 1, 8, 0, 6, 4, 0, 1][..],
        &[2; 6],
        &[10, 0, 0, 1],
        &[0; 6],
        &[10, 0, 0, 2],
    ]
    .concat();
    let new = anonymized(&ethernet(0x0806, &arp));
    assert_eq!(new[14 + 14..][..4], map.v4([10, 0, 0, 1]));
    assert_eq!(new[14 + 24..][..4], map.v4([10, 0, 0, 2]));
    assert_eq!(new[14 + 8..][..6], [2; 6]);
}

/// Wherever a packet is cut, no byte of an address is left as it was: mapped or zero.
#[test]
fn addresses_that_were_cut_off_are_blanked() {
    let whole = ethernet(0x0800, &ipv4(17, &udp(9999, ends4(), b"words")));
    for length in 14 + 12..whole.len() {
        let new = anonymized(&whole[..length]);
        if length < 14 + 20 {
            assert!(new[14 + 12..].iter().all(|&byte| byte == 0), "{length}");
        } else {
            check_addresses(&whole[..length], &new);
            assert_eq!(sum(&new[14..34]), 0xffff);
        }
    }
    let whole = ethernet(0x86dd, &ipv6(17, b"12345678"));
    for length in 14 + 8..14 + 40 {
        let new = anonymized(&whole[..length]);
        assert!(new[14 + 8..].iter().all(|&byte| byte == 0), "{length}");
    }
}

proptest! {
    /// Any bytes: nothing panics, nothing but addresses and checksums changes length or place.
    #[test]
    fn any_frame_can_be_rewritten(
        link in prop_oneof![Just(1_u16), Just(101), Just(113), Just(105), Just(0), any::<u16>()],
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        start in prop_oneof![Just(&b""[..]), Just(&b"\x45"[..]), Just(&b"\x60"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\0\x45\0\0\x90\0\0\0\0\x40\x11"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x86\xdd\x60\0\0\0\0\x80\x3a\x40"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\x06\0\x01\x08\0\xff\x04"[..])],
    ) {
        let count = start.len().min(frame.len());
        frame[..count].copy_from_slice(&start[..count]);
        let mut places = Vec::new();
        address_places(LinkType(link), &frame, &mut places);
        let mut new = frame.clone();
        let mut map = AddressMap::new(&SAMPLE_KEY);
        rewrite(&mut new, &places, &mut map);
        // What was found before is found after, in the same places, and its addresses are the images.
        let of = |frame: &[u8]| Decoder::default().decode(LinkType(link), frame).ok().map(|p| p.addresses);
        if let Some(old) = of(&frame) {
            prop_assert_eq!(of(&new), Some::<Addresses>(map.addresses(old)));
        }
    }
}
