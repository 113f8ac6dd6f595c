//! The mapping against published pairs and those of another implementation; frames against
//! checksums computed over all that they cover.

use super::crypto_pan::{AnonymizeKey, CryptoPan};
use super::frame::{Images, rewrite};
use super::mac::{MacMap, VendorPart};
use super::mapping::AddressMap;
use crate::decode::{Addresses, Decoder, Place, Tunnel, address_places};
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

/// Pairs of an implementation that was written for this, in Python, with a cipher of its own, and
/// that gives the published IPv4 pairs too.
#[test]
fn ipv6_is_mapped_as_by_another_implementation() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    for (address, image) in [
        ("::", "78ff:f001:9fc0:20df:8380:b1f1:704:ec"),
        ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
        ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
        ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ("2001:db8:1:2:3:4:5:6", "4401:2bc:603e:23c2:fffd:ff7:ff0a:c316"),
        ("fe80::1234:56ff:fe78:9abc", "cf7f:c0e:1fc3:da1c:1dab:2904:3da4:16bc"),
        ("ff02::1", "cef2:fc0c:1fff:dffe:ff8f:de7f:10f9:3f01"),
        ("::ffff:10.0.0.1", "78ff:f001:9fc0:20df:8380:7db:150b:1d01"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ce78:61ff:387e:8078:38c4:407:c3bf:f781"),
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

/// No two of any 2^16 neighbours have the same image, and the images are neighbours too.
#[test]
fn a_network_is_mapped_onto_a_network() {
    let pan = CryptoPan::new(&SAMPLE_KEY);
    let images: HashSet<[u8; 4]> =
        (0..=u16::MAX).map(|host| pan.v4((0xc0a8_0000 | u32::from(host)).to_be_bytes())).collect();
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

fn mac(address: [u8; 6]) -> [u8; 6] {
    MacMap::new(&SAMPLE_KEY, VendorPart::Replaced).image(address)
}

/// Pairs of an implementation that was written for this, in Python, with another library's cipher.
#[test]
fn mac_addresses_are_mapped_as_by_another_implementation() {
    let mut all = MacMap::new(&SAMPLE_KEY, VendorPart::Replaced);
    let mut interfaces = MacMap::new(&SAMPLE_KEY, VendorPart::Kept);
    let parse = |text: &str| -> [u8; 6] {
        let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().unwrap();
        bytes.try_into().unwrap()
    };
    for _ in 0..2 {
        for (address, image, with_vendor) in [
            ("00:00:00:00:00:00", "00:00:00:00:00:00", "00:00:00:00:00:00"),
            ("ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"),
            ("00:00:00:00:00:01", "68:1d:00:02:28:0a", "00:00:00:de:a3:cb"),
            ("00:1b:21:3c:4d:5e", "3c:d0:2e:cb:4f:4e", "00:1b:21:af:98:59"),
            ("00:1b:21:3c:4d:5f", "1c:4b:1e:7c:4a:21", "00:1b:21:41:10:ae"),
            ("02:42:ac:11:00:02", "aa:e0:bf:a6:ad:58", "aa:e0:bf:a6:ad:58"),
            ("01:00:5e:00:00:fb", "a9:4c:ff:43:b2:bb", "01:00:5e:3b:2e:4b"),
            ("33:33:ff:12:34:56", "db:f9:8b:f9:04:a6", "db:f9:8b:f9:04:a6"),
            ("fe:ff:ff:ff:ff:ff", "46:f6:83:34:b9:c3", "46:f6:83:34:b9:c3"),
        ] {
            assert_eq!(all.image(parse(address)), parse(image), "{address}");
            assert_eq!(interfaces.image(parse(address)), parse(with_vendor), "{address}");
        }
    }
}

/// No two of any 2^17 addresses, more than are remembered, have the same image; the bits that tell
/// the kind of an address stay.
#[test]
fn mac_addresses_are_mapped_one_to_one() {
    for (vendor, kept) in [(VendorPart::Replaced, [3, 0, 0]), (VendorPart::Kept, [255; 3])] {
        let mut map = MacMap::new(&SAMPLE_KEY, vendor);
        // Universal and a group's, with the address of zeros; local and a group's, with broadcast.
        for class in [0, 1 << 40, (1 << 48) - (1 << 17)] {
            let local = class >> 41 & 1 == 1;
            let mut images = HashSet::new();
            for number in 0..1_u64 << 17 {
                let [_, _, address @ ..] = (class + number).to_be_bytes();
                let image = map.image(address);
                assert!(images.insert(image), "{address:x?}");
                let kept = if local { [3, 0, 0] } else { kept };
                for ((old, new), bits) in address.iter().zip(image).zip(kept) {
                    assert_eq!(old & bits, new & bits);
                }
            }
        }
    }
    let same = |a: [u8; 6], b| assert_eq!(mac(a), b);
    same([0; 6], [0; 6]);
    same([255; 6], [255; 6]);
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

fn images() -> Images {
    Images::new(&SAMPLE_KEY, VendorPart::Replaced)
}

fn anonymized(frame: &[u8]) -> Vec<u8> {
    anonymized_of(LinkType::ETHERNET, frame)
}

fn anonymized_of(link: LinkType, frame: &[u8]) -> Vec<u8> {
    let mut new = frame.to_vec();
    let mut places = Vec::new();
    address_places(link, frame, &mut places);
    rewrite(&mut new, &places, &mut images());
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
    places.retain(|(_, place)| !matches!(place, Place::Hardware { .. }));
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
    thread_local!(static IMAGES: RefCell<Images> = RefCell::new(images()));
    let mut new = frame.to_vec();
    let mut places = Vec::new();
    address_places(LinkType::ETHERNET, frame, &mut places);
    IMAGES.with_borrow_mut(|images| rewrite(&mut new, &places, images));
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

/// A routing header has the last destination until it is reached, and a mobile node's option its
/// home address: the checksums of TCP, UDP and `ICMPv6` cover these in place of the addresses in
/// the IPv6 header.
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
        (vec![(routing_header, routing(4, 1, &[last, destination]))], None, Some(last)),
        (vec![(routing_header, routing(4, 2, &[last, destination, hop]))], None, Some(last)),
        (vec![(routing_header, routing(4, 0, &[destination, hop]))], None, None),
        (vec![(routing_header, routing(2, 1, &[last]))], None, Some(last)),
        (vec![(routing_header, routing(0, 1, &[hop, last]))], None, Some(last)),
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

/// The same of a source route in IPv4 options.
#[test]
fn checksums_over_the_end_of_a_source_route_stay_right() {
    let last = v4("203.0.113.9");
    // Loose and strict routes under way, one at its end, and a record of a route.
    for (kind, pointer, ahead) in [(131, 4, true), (137, 4, true), (131, 8, false), (7, 4, false)] {
        let option = [&[1, kind, 7, pointer], &last[..]].concat();
        let datagram = udp(9999, (&V4.0, if ahead { &last } else { &V4.1 }), b"words");
        let mut head = ipv4(17, &[&option[..], &datagram].concat())[..28].to_vec();
        head[0] = 0x47;
        head[10..12].fill(0);
        let packet = [with_checksum(head, 10, &[]), datagram].concat();
        let new = &anonymized(&ethernet(0x0800, &packet))[14..];
        assert_eq!(sum(&new[..28]), 0xffff);
        assert_eq!(new[20..28], option);
        let end = if ahead { &last[..] } else { &new[16..20] };
        let over = pseudo(&new[12..16], end, 17, new.len() - 28);
        assert_eq!(sum(&[&over, &new[28..]].concat()), 0xffff, "{kind}, {pointer}");
    }
}

/// VXLAN in UDP with a checksum, around IPv6 without one, around an odd header that shifts what is
/// inside.
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
        let l2tp =
            [&[0x02, 0x02, 0, 1, 0, 2, 0, 1, 0][..], &[0xff, 0x03, 0, 0x57], &packet].concat();
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
    for quoted in [ipv4(17, &udp(53, ends4(), b"question")), ipv4(6, &tcp(ends4(), b"")[..8])] {
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

    // A redirect of IPv6 quotes in one of its options.
    let options = [&[5, 1, 0, 0, 0, 0, 5, 0xdc, 4, 8, 0, 0, 0, 0, 0, 0], &quoted[..]].concat();
    let message = [&[137, 0, 0, 0, 0, 0, 0, 0], &source[..], &destination, &options].concat();
    let over = pseudo(&source, &destination, 58, message.len());
    let new = anonymized(&ethernet(0x86dd, &ipv6(58, &with_checksum(message, 2, &over))));
    check_sums(&new[14..]);
    let inside = &new[14 + 40 + 40 + 16..];
    check_sums(inside);
    assert_eq!(inside[8..24], map.v6(source));
    assert_eq!(inside[24..40], map.v6(destination));
}

/// Whatever an ICMP error quotes, and wherever it is cut: what follows the packet in its frame is
/// not taken for the rest.
#[test]
fn nothing_behind_the_packet_changes() {
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &HOST, &V4.0, &OTHER, &V4.1].concat();
    let bridged = ethernet(0x0806, &arp);
    let (source, destination) = v6_ends();
    let redirect = [&[137, 0, 0, 0, 0, 0, 0, 0], &source[..], &destination].concat();
    for quoted in [
        ipv4(47, &[&[0, 0, 0x65, 0x58], &bridged[..]].concat()),
        ipv4(47, &[&[0, 0, 8, 6], &arp[..]].concat()),
        ipv4(41, &ipv6(58, &redirect)),
    ] {
        for length in 0..=quoted.len() {
            let message = [&[3, 1, 0, 0, 0, 0, 0, 0], &quoted[..length]].concat();
            let packet = ipv4(1, &with_checksum(message, 2, &[]));
            let new = anonymized(&ethernet(0x0800, &[&packet[..], &[6; 44]].concat()));
            let (new, behind) = new[14..].split_at(packet.len());
            check_sums(new);
            assert_eq!(behind, [6; 44], "{length} bytes of {quoted:x?}");
        }
    }
}

#[test]
fn neighbours_redirects_and_address_resolution_are_mapped() {
    let mut map = AddressMap::new(&SAMPLE_KEY);
    let (source, destination) = v6_ends();
    let target = v6("fe80::7");
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0], &target[..]].concat();
    let over = pseudo(&source, &destination, 58, message.len());
    let new = anonymized(&ethernet(0x86dd, &ipv6(58, &with_checksum(message, 2, &over))));
    check_sums(&new[14..]);
    assert_eq!(new[14 + 40 + 8..], map.v6(target));

    let quoted = ipv4(17, &udp(53, ends4(), b""));
    let redirect = [&[5, 1, 0, 0, 10, 0, 0, 138], &quoted[..]].concat();
    let new = anonymized(&ethernet(0x0800, &ipv4(1, &with_checksum(redirect, 2, &[]))));
    check_sums(&new[14..]);
    assert_eq!(new[14 + 20 + 4..][..4], map.v4([10, 0, 0, 138]));

    // Groups of IGMP: queries, reports of versions 1 and 2, leaving; a report of version 3 stays.
    for (kind, is_mapped) in [(0x11, true), (0x12, true), (0x16, true), (0x17, true), (0x22, false)]
    {
        let group = [239, 1, 2, 3];
        let message = with_checksum([&[kind, 0, 0, 0], &group[..]].concat(), 2, &[]);
        let new = anonymized(&ethernet(0x0800, &ipv4(2, &message)));
        assert_eq!(sum(&new[14 + 20..]), 0xffff);
        assert_eq!(new[14 + 20 + 4..], if is_mapped { map.v4(group) } else { group });
    }

    let arp =
        [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 6], &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat();
    let new = anonymized(&ethernet(0x0806, &arp));
    assert_eq!(new[14 + 14..][..4], map.v4([10, 0, 0, 1]));
    assert_eq!(new[14 + 24..][..4], map.v4([10, 0, 0, 2]));
    assert_eq!(new[14 + 8..][..6], mac([2; 6]));
    assert_eq!(new[14 + 18..][..6], [0; 6], "no address yet");
}

#[test]
fn address_resolution_on_arcnet_is_mapped() {
    // One byte of hardware address; protocol addresses of IPv4.
    let message = [0, 7, 8, 0, 1, 4, 0, 1, 9, 192, 0, 2, 1, 0, 192, 0, 2, 2];
    for head in [&[1, 0, 213, 0, 0, 7][..], &[1, 0, 214, 0, 0, 7], &[1, 0, 241]] {
        let old = [head, &message].concat();
        let new = anonymized_of(LinkType(7), &old);
        for (at, address) in [(9, "192.0.2.1"), (14, "192.0.2.2")] {
            let at = head.len() + at;
            assert_eq!(new[at..at + 4], images().ip.v4(v4(address)), "{head:?}");
        }
    }
}

#[test]
fn the_channel_of_macsec_is_mapped_even_if_its_frame_is_encrypted() {
    for flags in [0x20, 0x2c] {
        let tag = [&[flags, 0, 0, 0, 0, 1][..], &HOST, &[0, 1, 8, 0], &[0; 40]].concat();
        let old = [&OTHER[..], &HOST, &[0x88, 0xe5], &tag].concat();
        let new = anonymized(&old);
        assert_eq!(new[6..12], new[20..26], "{flags:#x}");
        assert_ne!(new[20..26], HOST, "{flags:#x}");
    }
}

const HOST: [u8; 6] = [0, 0x1b, 0x21, 1, 2, 3];
const OTHER: [u8; 6] = [0, 0x1b, 0x21, 4, 5, 6];

/// Frames of several links around the same packet, each with the places of its addresses.
#[allow(clippy::too_many_lines, reason = "a test may tell a long story")]
fn frames_of_links() -> Vec<(u16, Vec<u8>, Vec<usize>)> {
    let packet = ipv4(17, &udp(9999, ends4(), b"inside"));
    let llc = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet[..]].concat();
    let ends = [HOST, OTHER].concat();
    let third = [2, 9, 9, 9, 9, 9];
    let both = [&ends[..], &third].concat();
    let ethernet = [&ends[..], &[8, 0], &packet].concat();
    let length = (8 + packet.len()) as u8;
    vec![
        (1, ethernet.clone(), vec![0, 6]),
        // Two tags.
        (1, [&ends[..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], &packet].concat(), vec![0, 6]),
        // Linux cooked captures.
        (113, [&[0, 0, 0, 1, 0, 6], &HOST[..], &[0, 0, 8, 0], &packet].concat(), vec![6]),
        (
            276,
            [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6], &HOST[..], &[0, 0], &packet].concat(),
            vec![12],
        ),
        // To the station; between access points, with quality; several packets in one frame.
        (105, [&[0x08, 0x02, 0, 0], &both[..], &[0, 0], &llc].concat(), vec![4, 10, 16]),
        (
            105,
            [&[0x88, 0x03, 0, 0], &both[..], &[0, 0], &HOST, &[0, 0], &llc].concat(),
            vec![4, 10, 16, 24],
        ),
        (
            105,
            [
                &[0x88, 0x01, 0, 0][..],
                &both,
                &[0, 0, 0x80, 0],
                &OTHER,
                &HOST,
                &[0, length],
                &llc,
                &vec![0; (14 + llc.len()).next_multiple_of(4) - 14 - llc.len()],
                &HOST,
                &OTHER,
                &[0, 3, 1, 2, 3],
            ]
            .concat(),
            vec![
                4,
                10,
                16,
                26,
                32,
                26 + (14 + llc.len()).next_multiple_of(4),
                32 + (14 + llc.len()).next_multiple_of(4),
            ],
        ),
        // Beacon, request to send, acknowledgement; encrypted data.
        (
            105,
            [&[0x80, 0, 0, 0], &both[..], &[0, 0, 7, 7, 7, 7, 7, 7, 7, 7]].concat(),
            vec![4, 10, 16],
        ),
        (105, [&[0xb4, 0, 0, 0], &ends[..]].concat(), vec![4, 10]),
        (105, [&[0xd4, 0, 0, 0], &HOST[..], &[7; 6]].concat(), vec![4]),
        (
            105,
            [&[0x08, 0x41, 0, 0], &both[..], &[0, 0, 7, 7, 7, 7, 7, 7]].concat(),
            vec![4, 10, 16],
        ),
        // A switch's tag behind the addresses; the log of a firewall, with address, link header and
        // packet.
        (284, [&ends[..], &[0, 0, 0, 1, 8, 0], &packet].concat(), vec![0, 6]),
        (
            239,
            [
                &[2, 0, 0, 0, 16, 0, 8, 0, 0, 6, 0, 0][..],
                &HOST,
                &[0, 0, 18, 0, 16, 0],
                &ends,
                &[8, 0, 0, 0, (4 + packet.len()) as u8, 0, 9, 0],
                &packet,
            ]
            .concat(),
            vec![12, 24, 30],
        ),
        // Inside VXLAN: those of the inner frame, too, and checksums outside.
        (
            1,
            [
                &ends[..],
                &[8, 0],
                &ipv4(
                    17,
                    &udp(4789, ends4(), &[&[8, 0, 0, 0, 0, 0, 7, 0], &ethernet[..]].concat()),
                ),
            ]
            .concat(),
            vec![0, 6, 50, 56],
        ),
    ]
}

/// The MAC addresses of every link layer change into their images, and nothing besides them and
/// what the same frame without a link has changed.
#[test]
fn mac_addresses_of_link_layers_are_mapped() {
    for (link, old, at) in frames_of_links() {
        let new = anonymized_of(LinkType(link), &old);
        let mut rest = (old.clone(), new.clone());
        for &at in &at {
            let before: [u8; 6] = old[at..at + 6].try_into().unwrap();
            assert_eq!(new[at..at + 6], mac(before), "link type {link}, at {at}");
            rest.0[at..at + 6].fill(0);
            rest.1[at..at + 6].fill(0);
        }
        let has = |frame: &[u8], address: &[u8]| frame.windows(6).any(|part| part == address);
        assert!(has(&old, &HOST));
        assert!(!has(&new, &HOST) && !has(&new, &OTHER), "link type {link}");
        let of = |frame: &[u8]| {
            let decoded = Decoder::default().decode(LinkType(link), frame);
            decoded.map(|packet| (packet.protocol, packet.ports(), packet.bytes)).ok()
        };
        assert_eq!(of(&old), of(&new));
        if of(&old).is_none() {
            assert_eq!(rest.0, rest.1, "link type {link}");
        } else if link == 1 {
            let start = 14 + if old[12..14] == [8, 0] { 0 } else { 8 };
            check_sums(&new[start..]);
        }
    }
    // Token ring: the bit that says that a route follows is that of groups, and the first of its
    // byte.
    let packet = ipv4(17, &udp(9999, ends4(), b"inside"));
    let route = [&[0x90, 1, 2, 3, 4, 5][..], &[2, 0x30]].concat();
    let old =
        [&[0x10, 0x40][..], &[0xff; 6], &route, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet].concat();
    let new = anonymized_of(LinkType(6), &old);
    assert_eq!(new[2..8], [0xff; 6]);
    assert_eq!(new[8] & 0x80, 0x80);
    assert_ne!(new[8..14], old[8..14]);
    assert!(Decoder::default().decode(LinkType(6), &new).is_ok());
    // An address of another length in a cooked capture is perhaps that of a tunnel's end.
    let old = [&[0, 0, 3, 0, 0, 4, 10, 1, 2, 3, 0, 0, 0, 0, 8, 0], &packet[..]].concat();
    assert_eq!(anonymized_of(LinkType(113), &old)[6..14], [0; 8]);
}

/// Wherever a frame is cut, none of its MAC addresses is left in part.
#[test]
fn mac_addresses_that_were_cut_off_are_blanked() {
    for (link, whole, at) in frames_of_links() {
        for &at in at.iter().filter(|&&at| at < 32) {
            for length in at + 1..at + 6 {
                let new = anonymized_of(LinkType(link), &whole[..length]);
                assert!(new[at..].iter().all(|&byte| byte == 0), "link type {link}, {length}");
            }
        }
    }
}

/// Neighbour discovery and DHCP hand MAC addresses on; checksums over them stay right.
#[test]
fn mac_addresses_in_messages_are_mapped() {
    let (source, destination) = v6_ends();
    let target = v6("fe80::7");
    let option = |kind: u8| [&[kind, 1], &HOST[..]].concat();
    for (kind, header) in [(133, 8), (134, 16), (135, 24), (136, 24), (137, 40), (141, 8), (142, 8)]
    {
        let mut message = [&[kind, 0, 0, 0, 0, 0, 0, 0], &target[..], &target].concat();
        message.truncate(header);
        // An option of another kind before it.
        message.extend([5, 1, 0, 0, 0, 0, 5, 0xdc]);
        message.extend(option(1));
        message.extend(option(2));
        // One of a longer address.
        message.extend([&[1, 2][..], &[7; 14]].concat());
        let over = pseudo(&source, &destination, 58, message.len());
        let old = ethernet(0x86dd, &ipv6(58, &with_checksum(message, 2, &over)));
        let new = anonymized(&old);
        check_sums(&new[14..]);
        let options = 14 + 40 + header;
        assert_eq!(new[options..][..10], old[options..][..10]);
        assert_eq!(new[options + 10..][..6], mac(HOST));
        assert_eq!(new[options + 18..][..6], mac(HOST));
        assert_eq!(new[options + 24..][..2], [1, 2]);
        assert_eq!(new[options + 26..], [0; 14]);
    }
    // An echo has no options.
    let echo = [&[128, 0, 0, 0, 0, 0, 0, 0], &option(1)[..]].concat();
    let over = pseudo(&source, &destination, 58, echo.len());
    let old = ethernet(0x86dd, &ipv6(58, &with_checksum(echo, 2, &over)));
    assert_eq!(anonymized(&old)[14 + 40 + 8..], option(1));

    let dhcp = |identifier: &[u8]| {
        let mut message = vec![0; 240];
        message[..3].copy_from_slice(&[1, 1, 6]);
        message[28..34].copy_from_slice(&HOST);
        message[40] = 7;
        message[236..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
        message.extend([53, 1, 1, 0, 61, identifier.len() as u8]);
        message.extend(identifier);
        message.extend([12, 2, b'p', b'c', 255]);
        message
    };
    for (identifier, new_identifier) in [
        ([&[1], &HOST[..]].concat(), [&[1], &mac(HOST)[..]].concat()),
        // Made of a part of the address, and a DUID with the whole.
        ([&[255, 0x21, 1, 2, 3, 0, 3, 0, 1], &HOST[..]].concat(), [&[255][..], &[0; 14]].concat()),
        (vec![], vec![]),
    ] {
        let old = ethernet(0x0800, &ipv4(17, &udp(67, ends4(), &dhcp(&identifier))));
        let new = anonymized(&old);
        check_sums(&new[14..]);
        let message = &new[14 + 20 + 8..];
        assert_eq!(message[28..34], mac(HOST));
        assert_eq!(message[34..44], [0; 10]);
        assert_eq!(message[44..246], dhcp(&identifier)[44..246]);
        assert_eq!(message[246..], dhcp(&new_identifier)[246..]);
    }
    // Other messages than DHCP, and one that was cut off.
    let old = ethernet(0x0800, &ipv4(17, &udp(9999, ends4(), &dhcp(&[1]))));
    assert_eq!(anonymized(&old)[14 + 20 + 8..], dhcp(&[1]));
    let old = ethernet(0x0800, &ipv4(17, &udp(67, ends4(), &dhcp(&[&[1], &HOST[..]].concat()))));
    for length in [14 + 20 + 8 + 28 + 3, old.len() - 8] {
        let new = anonymized(&old[..length]);
        assert_eq!(new[length - 3..], [0; 3]);
    }
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
    // A header of no known version, as a packet and in one.
    let mut unknown = ipv4(17, &[7; 40]);
    unknown[0] = 0x55;
    for (frame, at) in
        [(ethernet(0x0800, &unknown), 14), (ethernet(0x0800, &ipv4(4, &unknown)), 34)]
    {
        let new = anonymized(&frame);
        assert_eq!(new[at..at + 8], frame[at..at + 8]);
        assert_eq!(new[at + 8..at + 40], [0; 32]);
        assert_eq!(new[at + 40..], frame[at + 40..]);
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
        link in prop_oneof![Just(1_u16), Just(101), Just(113), Just(276), Just(239), Just(105), Just(0), any::<u16>()],
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        start in prop_oneof![Just(&b""[..]), Just(&b"\x45"[..]), Just(&b"\x60"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\0\x45\0\0\x90\0\0\0\0\x40\x11"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x86\xdd\x60\0\0\0\0\x80\x3a\x40"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\x06\0\x01\x08\0\xff\x04"[..]), Just(&b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\0\x45\0\0\x90\0\0\0\0\x40\x11\0\0\x01\x02\x03\x04\x01\x02\x03\x05\0\x44\0\x43\0\x7c\0\0\x01\x01\x06"[..])],
    ) {
        let count = start.len().min(frame.len());
        frame[..count].copy_from_slice(&start[..count]);
        let mut places = Vec::new();
        address_places(LinkType(link), &frame, &mut places);
        let mut new = frame.clone();
        let mut images = images();
        rewrite(&mut new, &places, &mut images);
        let map = &mut images.ip;
        // Everything that was found before is found after, in the same places, and its addresses are the
        // images.
        let of = |frame: &[u8]| Decoder::default().decode(LinkType(link), frame).ok().map(|p| p.addresses);
        if let Some(old) = of(&frame) {
            prop_assert_eq!(of(&new), Some::<Addresses>(map.addresses(old)));
        }
    }
}
