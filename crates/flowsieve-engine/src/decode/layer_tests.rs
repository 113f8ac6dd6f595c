//! Every link layer, also cut at every byte.

use super::test_packets::{V4, V6, ethernet, join, udp, v4, v6};
use super::{Addresses, Decoder, IpPacket, Skip, Tunnel};
use crate::trace::LinkType;

fn outer(link: u16, frame: &[u8]) -> Result<IpPacket<'_>, Skip> {
    Decoder::new(Tunnel::Outer).decode(LinkType(link), frame)
}

/// Checks that a header leads to the packet behind it, also when cut short anywhere.
#[track_caller]
fn check(link: u16, header: &[u8], packet: &[u8], addresses: Addresses) {
    let frame = join(&[header, packet]);
    let whole = outer(link, &frame).unwrap_or_else(|skip| panic!("{link} {header:x?}: {skip:?}"));
    assert_eq!(whole.addresses, addresses);
    assert_eq!((whole.protocol, whole.ports()), (17, Some((1000, 2000))));
    let ip_header = if matches!(addresses, Addresses::V4 { .. }) { 20 } else { 40 };
    for cut in 0..frame.len() {
        let part = outer(link, &frame[..cut]);
        if cut < header.len() + ip_header {
            assert!(!part.expect_err("no header is there").has_ip());
        } else {
            let part = part.expect("the header is there");
            assert_eq!((part.addresses, part.protocol), (addresses, 17));
            assert!(whole.transport.starts_with(part.transport));
            assert_eq!(part.ports().is_some(), cut >= header.len() + ip_header + 4);
        }
    }
}

#[track_caller]
fn check_v4(link: u16, header: &[u8]) {
    check(link, header, &v4(17, &udp(1000, 2000, b"payload")), V4);
}

#[track_caller]
fn check_v6(link: u16, header: &[u8]) {
    check(link, header, &v6(17, &udp(1000, 2000, b"payload")), V6);
}

#[track_caller]
fn check_skip(link: u16, frame: &[u8], skip: Skip) {
    assert_eq!(outer(link, frame).map(|p| p.addresses), Err(skip));
}

/// An Ethernet header, with what may stand behind its addresses.
fn behind_addresses(bytes: &[u8]) -> Vec<u8> {
    join(&[&[2; 12], bytes])
}

#[test]
fn bare_ip() {
    for link in [12, 14, 101] {
        check_v4(link, &[]);
        check_v6(link, &[]);
    }
    check_v4(228, &[]);
    check_v6(229, &[]);
    check_skip(228, &v6(17, &[]), Skip::BadIpHeader);
    check_skip(229, &v4(17, &[]), Skip::BadIpHeader);
    check_skip(101, &[0x50; 40], Skip::BadIpHeader);
}

#[test]
fn ethernet_and_its_tags() {
    let check_v4 = |bytes: &[u8]| check_v4(1, &behind_addresses(bytes));
    let check_v6 = |bytes: &[u8]| check_v6(1, &behind_addresses(bytes));
    check_v4(&[0x08, 0x00]);
    check_v6(&[0x86, 0xdd]);
    check_v6(&[0x08, 0x00]);
    check_v4(&[0x81, 0, 0, 1, 0x08, 0x00]);
    check_v6(&[0x88, 0xa8, 0, 1, 0x86, 0xdd]);
    check_v4(&[0x91, 0, 0, 1, 0x08, 0x00]);
    check_v4(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0x00]);
    check_v6(&[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd]);
    check_v4(&[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x08, 0x00]);
    // MPLS, one label and three; with a pseudowire's control word and without.
    check_v4(&[0x88, 0x47, 0, 1, 1, 64]);
    check_v6(&[0x88, 0x48, 0, 1, 0, 64, 0, 1, 0, 64, 0, 1, 1, 64]);
    let pseudowire = [0x88, 0x47, 0, 1, 1, 64];
    check_v4(&join(&[&pseudowire, &[0, 0, 0, 0], &behind_addresses(&[8, 0])]));
    check_v4(&join(&[&pseudowire, &[0, 0x1b, 0x21], &[2; 9], &[8, 0]]));
    // Bytes of an address that equal an EtherType.
    check_v4(&join(&[
        &pseudowire,
        &[0; 4],
        &[2; 8],
        &[8, 0, 2, 2],
        &[0x88, 0x64],
        &[0x11, 0, 0, 1, 0, 60, 0, 0x21],
    ]));
    // PPPoE session, with a short and a long PPP protocol number.
    check_v4(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0x00, 0x21]);
    check_v6(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0x57]);
    // VN-Tag, 802.1BR, Cisco metadata, 802.1CB, ring.
    check_v4(&[0x89, 0x26, 0, 0, 0, 0, 0x08, 0x00]);
    check_v4(&[0x89, 0x3f, 0, 0, 0, 0, 0, 0, 0x08, 0x00]);
    check_v4(&[0x89, 0x09, 1, 1, 0, 1, 0, 7, 0x08, 0x00]);
    check_v4(&[0xf1, 0xc1, 0, 0, 0, 7, 0x08, 0x00]);
    check_v4(&[0x89, 0x2f, 0, 60, 0, 7, 0x08, 0x00]);
    // Frames in frames: FabricPath, 802.1ah, TRILL with four bytes of options, bridging.
    let inner = behind_addresses(&[8, 0]);
    check_v4(&join(&[&[0x89, 0x03, 0, 64], &inner]));
    check_v4(&join(&[&[0x88, 0xe7, 0, 0, 0, 1], &inner]));
    check_v4(&join(&[&[0x22, 0xf3, 0, 0x40, 0, 1, 0, 2, 0, 0, 0, 0], &inner]));
    check_v4(&join(&[&[0x65, 0x58], &inner]));
    // MACsec for integrity only, with and without channel identifier.
    check_v4(&join(&[&[0x88, 0xe5, 0, 0, 0, 0, 0, 1], &[8, 0]]));
    check_v4(&join(&[&[0x88, 0xe5, 0x20, 0, 0, 0, 0, 1], &[0; 8], &[8, 0]]));
    // Service chains.
    check_v4(&[0x89, 0x4f, 0x0f, 0xc2, 2, 1, 0, 0, 0, 0]);
    check_v4(&join(&[&[0x89, 0x4f, 0x0f, 0xc2, 2, 3, 0, 0, 0, 0], &inner]));
    // LLC behind a length, behind a tag and a length.
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00];
    check_v4(&join(&[&[0, 60], &snap]));
    check_v4(&join(&[&[0x81, 0, 0, 1, 0, 60], &snap]));
    check_v4(&join(&[&[0x88, 0x70], &snap]));
    check_v4(&[0, 60, 6, 6, 3]);
    check_v4(&[0, 60, 0xfe, 0xfe, 3, 0xcc]);
    check_v4(&join(&[&[0, 90, 0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7], &inner]));
}

#[test]
fn frames_of_other_protocols() {
    let check = |bytes: &[u8], skip| check_skip(1, &behind_addresses(bytes), skip);
    let anything = [0x11; 60];
    check(&join(&[&[0x08, 0x06], &anything]), Skip::Arp);
    check(&join(&[&[0x88, 0xcc], &anything]), Skip::NotIpEthertype);
    check(&join(&[&[0x00, 0x26, 0x42, 0x42, 3], &anything]), Skip::NotIpLlc);
    check(&join(&[&[0x00, 0x26, 0xff, 0xff], &anything]), Skip::NotIpLlc);
    check(&join(&[&[0x05, 0xdd], &anything]), Skip::BadLinkHeader);
    check(&join(&[&[0x88, 0x64, 0x11, 9, 0, 1, 0, 60], &anything]), Skip::NotIpPpp);
    check(&join(&[&[0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0xc0, 0x21], &anything]), Skip::NotIpPpp);
    check(&join(&[&[0x88, 0xe5, 8, 0, 0, 0, 0, 1], &anything]), Skip::Encrypted);
    check(&join(&[&[0x08, 0x00], &anything]), Skip::BadIpHeader);
    check(&[0x08, 0x00, 0x44], Skip::BadIpHeader);
    check(&[0x08, 0x00, 0x45], Skip::CutShort);
    check_skip(147, &anything, Skip::UnsupportedLink(LinkType(147)));
    // Longer than any frame that means it.
    let tower = [[0x81, 0x00, 0, 1]; 1000].concat();
    check(&tower, Skip::TooDeep);
}

#[test]
fn lengths_bound_what_follows() {
    // Padding of a short Ethernet frame is not the packet's.
    let frame = ethernet(0x0800, &join(&[&v4(17, &udp(1, 2, b"")), &[0xee; 18]]));
    assert_eq!(outer(1, &frame).unwrap().transport, udp(1, 2, b""));
    // Nor is what follows an 802.3 length or a PPPoE length.
    let packet = v4(17, &udp(1, 2, b"pay"));
    let llc = join(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet, &[0xee; 9]]);
    let frame = ethernet(8 + 28, &llc);
    assert_eq!(outer(1, &frame).unwrap().transport, &udp(1, 2, b"pay")[..8]);
}

#[test]
fn serial_lines() {
    for address in [&[0xff, 0x03][..], &[]] {
        check_v4(9, &join(&[address, &[0x00, 0x21]]));
        check_v6(9, &join(&[address, &[0x57]]));
        check_v6(9, &join(&[address, &[0x02, 0x81, 0, 1, 1, 64]]));
    }
    check_v4(9, &[0x0f, 0x00, 0x08, 0x00]);
    check_v6(9, &[0x8f, 0x00, 0x86, 0xdd]);
    check_v4(50, &[0xff, 0x03, 0x00, 0x21]);
    check_v4(50, &[0x0f, 0x00, 0x08, 0x00]);
    check_v4(51, &[0x11, 0, 0, 1, 0, 60, 0x00, 0x21]);
    check_v4(166, &[0x01, 0x03, 0x00, 0x21]);
    check_v4(204, &[1, 0xff, 0x03, 0x00, 0x21]);
    check_v4(104, &[0x0f, 0, 0x08, 0x00]);
    check_v6(104, &[0x8f, 0, 0x86, 0xdd]);
    check_v4(205, &[0, 0x0f, 0, 0x08, 0x00]);
    check_v4(107, &[0x18, 0x41, 0x03, 0xcc]);
    check_v6(107, &[0x18, 0x41, 0x03, 0x00, 0x8e]);
    check_v4(107, &[0x18, 0x40, 0x01, 0x03, 0x80, 0, 0, 0, 0x08, 0x00]);
    check_v4(206, &[0, 0x18, 0x41, 0x08, 0x00]);
    check_v4(8, &[0; 16]);
    check_skip(104, &[0x8f, 0, 0x80, 0x35, 0, 0], Skip::Arp);
    check_skip(9, &[0xff, 3, 0xc0, 0x21, 1], Skip::NotIpPpp);
    check_skip(107, &[0; 20], Skip::BadLinkHeader);
}

#[test]
fn headers_of_operating_systems() {
    check_v4(0, &[2, 0, 0, 0]);
    check_v4(0, &[0, 0, 0, 2]);
    for family in [10, 24, 28, 30] {
        check_v6(0, &[family, 0, 0, 0]);
        check_v6(108, &[0, 0, 0, family]);
    }
    check_v4(0, &[0x0f, 0, 0x08, 0x00]);
    check_v4(0, &[0xff, 0x03, 0x00, 0x21]);
    check_skip(0, &[7, 0, 0, 0, 0x45], Skip::NotIp);
    check_v4(113, &join(&[&[0; 14], &[0x08, 0x00]]));
    check_v6(113, &join(&[&[0; 14], &[0x86, 0xdd]]));
    check_v4(113, &join(&[&[0; 14], &[0, 4, 6, 6, 3]]));
    check_v4(276, &join(&[&[0x08, 0x00], &[0; 18]]));
    check_skip(113, &join(&[&[0; 14], &[0, 1], &v4(6, &[])]), Skip::NotIp);
    check_v4(109, &join(&[&[2, 0, 0, 0], &[0; 8]]));
    check_v6(117, &join(&[&[61, 24], &[0; 62]]));
    check_v4(239, &[2, 0, 0, 0, 6, 0, 10, 0, 1, 2, 0, 0, 255, 0, 9, 0]);
    check_v4(239, &[2, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 255, 0, 9]);
    check_skip(239, &[2, 0, 0, 0, 8, 0, 10, 0, 1, 2, 0, 0], Skip::NotIp);
    check_skip(239, &[2, 0, 0, 0, 0, 0, 10, 0, 1, 2, 0, 0], Skip::NotIp);
    let ethernet = behind_addresses(&[8, 0]);
    check_v4(192, &join(&[&[0, 0, 12, 0, 1, 0, 0, 0, 7, 7, 7, 7], &ethernet]));
    check_v4(258, &join(&[&[14, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 9], &ethernet]));
    check_skip(192, &[0, 0, 8, 0, 192, 0, 0, 0, 0x45], Skip::BadLinkHeader);
}

#[test]
fn other_networks() {
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00];
    check_v4(6, &join(&[&[0x10, 0x40], &[2; 12], &snap]));
    check_v4(6, &join(&[&[0x10, 0x40], &[2; 6], &[0x82; 6], &[6, 0, 0, 0, 0, 0], &snap]));
    check_v4(10, &join(&[&[0x50], &[2; 12], &snap]));
    check_v4(7, &[1, 2, 212, 0, 0, 7]);
    check_v4(7, &[1, 2, 240]);
    check_v4(129, &[1, 2, 0, 0, 212, 1, 0, 7]);
    check_v6(129, &[1, 2, 0, 0, 196, 0xff, 0, 7, 0xff, 0, 0, 7]);
    check_skip(129, &[1, 2, 0, 0, 212, 2, 0, 7, 0x45], Skip::LinkFragment);
    check_skip(129, &[1, 2, 0, 0, 213, 0, 0, 7], Skip::Arp);
    check_v4(100, &snap);
    check_v4(100, &[]);
    check_v4(123, &join(&[&[0, 1, 0, 2], &snap]));
    check_v4(122, &join(&[&[0; 16], &snap]));
    check_v4(138, &join(&[&[0; 16], &[8, 0]]));
    check_v4(219, &[0, 1, 1, 64]);
    check_v4(242, &join(&[&[0; 40], &[8, 0, 0, 0]]));
    let ethernet = behind_addresses(&[8, 0]);
    check_v4(240, &join(&[&[0; 4], &ethernet]));
    check_v4(241, &join(&[&[0; 12], &ethernet]));
    check_v4(274, &join(&[&[0x55; 8], &ethernet]));
    check_v4(282, &join(&[&[0; 4], &ethernet]));
    check_v4(281, &behind_addresses(&[0, 0, 0, 1, 8, 0]));
    check_v4(285, &behind_addresses(&[0xda, 0xda, 0, 0, 0, 0, 0, 1, 8, 0]));
}

#[test]
fn wireless() {
    let llc = [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00];
    let data = join(&[&[0x08, 0x01], &[0; 22], &llc]);
    check_v4(105, &data);
    // Between access points, with quality of service, with both and a control field.
    check_v4(105, &join(&[&[0x08, 0x03], &[0; 28], &llc]));
    check_v4(105, &join(&[&[0x88, 0x01], &[0; 24], &llc]));
    check_v4(105, &join(&[&[0x88, 0x83], &[0; 34], &llc]));
    // An aggregate of several packets.
    check_v4(105, &join(&[&[0x88, 0x01], &[0; 22], &[0x80, 0], &[0; 14], &llc]));
    check_v4(127, &join(&[&[0, 0, 8, 0, 0, 0, 0, 0], &data]));
    // Flags behind two more bitmaps and a timer: the header is padded.
    let radiotap = join(&[
        &[0, 0, 33, 0, 3, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0],
        &[0; 8],
        &[0x20],
        &[0; 8],
    ]);
    check_v4(127, &join(&[&radiotap, &[0x88, 0x01], &[0; 26], &llc]));
    check_v4(119, &join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136], &data]));
    let avs = join(&[&[0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64], &[0; 56], &data]);
    check_v4(163, &avs);
    check_v4(119, &avs);
    check_skip(105, &join(&[&[0x80, 0], &[0; 60]]), Skip::WlanNoData);
    check_skip(105, &join(&[&[0x48, 1], &[0; 60]]), Skip::WlanNoData);
    check_skip(105, &join(&[&[0x08, 0x41], &[0; 60]]), Skip::Encrypted);
    check_skip(105, &join(&[&[0x08, 1], &[0; 20], &[1, 0], &llc]), Skip::LinkFragment);
    check_skip(105, &join(&[&[0x09, 1], &[0; 60]]), Skip::BadLinkHeader);
    check_skip(127, &[0, 0, 6, 0, 0, 0, 0, 0], Skip::BadLinkHeader);
}
