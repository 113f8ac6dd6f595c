//! A frame's IP packet as bytes, from its header to its end: for what compares packets as a whole.

use super::bytes::place_in;
use super::ethernet::{ETHERNET_HEADER, IPV4, IPV6, TAG, VLAN_IDENTIFIER, VLAN_TAGS, behind_tags};
use super::ip::{V4_HEADER, V6_HEADER};
use super::{Skip, Tunnel, common as frames, walk};
use crate::trace::LinkType;

/// An IP packet of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpBytes<'a> {
    /// Its captured bytes from the header on, without trailers of the link layer. The fixed header
    /// is complete, and its first four bits are 4 or 6.
    pub bytes: &'a [u8],
    /// Bytes that its header states; those missing were not captured.
    pub stated: usize,
    /// Its offset in the frame.
    pub offset: usize,
}

/// Finds the IP packet of a frame whose header counts.
#[inline]
pub(super) fn find(link: LinkType, frame: &[u8], tunnel: Tunnel) -> Result<IpBytes<'_>, Skip> {
    let short = common(link, frame);
    let bytes = match (tunnel, short) {
        (Tunnel::Outer, Some(bytes)) => bytes,
        (Tunnel::Outer, None) => walk::to_ip(link, frame)?,
        (Tunnel::Inner, Some(bytes)) if frames::decode_no_tunnel(frame).is_some() => bytes,
        (Tunnel::Inner, _) => walk::to_innermost_ip(link, frame)?,
    };
    let stated = match bytes {
        [first, _, high, low, ..] if first >> 4 == 4 => u16::from_be_bytes([*high, *low]).into(),
        [_, _, _, _, high, low, ..] => match u16::from_be_bytes([*high, *low]) {
            0 => 0,
            payload => V6_HEADER + usize::from(payload),
        },
        _ => return Err(Skip::CutShort),
    };
    // Nothing is stated by jumbograms and where segmentation is left to a network card.
    let stated = if stated == 0 { bytes.len() } else { stated };
    Ok(IpBytes { bytes: &bytes[..stated.min(bytes.len())], stated, offset: place_in(frame, bytes) })
}

/// IP in Ethernet with up to two VLAN tags, where the general walk would say the same.
#[inline]
fn common(link: LinkType, frame: &[u8]) -> Option<&[u8]> {
    let head: &[u8; ETHERNET_HEADER + 2 * TAG + V4_HEADER] = frame.first_chunk()?;
    if link != LinkType::ETHERNET {
        return None;
    }
    let (ether_type, start) = behind_tags(head);
    let bytes = &frame[start..];
    match (ether_type, bytes[0]) {
        (IPV4, 0x45..=0x4f) => {
            let header = u16::from(bytes[0] & 15) * 4;
            let stated = u16::from_be_bytes([bytes[2], bytes[3]]);
            (stated == 0 || stated >= header).then_some(bytes)
        }
        (IPV6, 0x60..=0x6f) if bytes.len() >= V6_HEADER => Some(bytes),
        _ => None,
    }
}

/// Returns the VLAN identifiers of an Ethernet frame's tags, from the outside in; none for other
/// links.
pub fn vlan_ids(link: LinkType, frame: &[u8]) -> impl Iterator<Item = u16> {
    let mut at = if link == LinkType::ETHERNET { ETHERNET_HEADER - 2 } else { frame.len() };
    std::iter::from_fn(move || {
        let &[a, b, c, d] = frame.get(at..)?.first_chunk()?;
        at += TAG;
        let is_tag = VLAN_TAGS.contains(&u16::from_be_bytes([a, b]));
        is_tag.then(|| u16::from_be_bytes([c, d]) & VLAN_IDENTIFIER)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip_bytes(link: LinkType, frame: &[u8]) -> Result<IpBytes<'_>, Skip> {
        find(link, frame, Tunnel::Outer)
    }

    fn frame(tags: &[u16], packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend([0x81, 0, (tag >> 8) as u8 | 0xe0, *tag as u8]);
        }
        frame.extend([8, 0]);
        frame.extend_from_slice(packet);
        frame
    }

    #[test]
    fn padding_is_no_part_of_a_packet_and_what_was_cut_is_known() {
        let mut packet = vec![0x45, 0, 0, 30, 1, 2, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        packet.extend([9; 10]);
        for tags in [&[][..], &[5], &[5, 6], &[5, 6, 7]] {
            let mut padded = frame(tags, &packet);
            padded.extend([0; 20]);
            let found = ip_bytes(LinkType::ETHERNET, &padded).unwrap();
            assert_eq!((found.bytes, found.stated), (&packet[..], 30));
            assert_eq!(found.offset, 14 + 4 * tags.len());
            assert!(vlan_ids(LinkType::ETHERNET, &padded).eq(tags.iter().copied()));
            let cut = ip_bytes(LinkType::ETHERNET, &padded[..found.offset + 25]).unwrap();
            assert_eq!((cut.bytes, cut.stated), (&packet[..25], 30));
        }
        assert_eq!(ip_bytes(LinkType::ETHERNET, &frame(&[], &packet[..19])), Err(Skip::CutShort));
    }

    #[test]
    fn a_packet_begins_where_it_does_in_a_frame_that_states_its_length() {
        let mut packet = vec![0x45, 0, 0, 30, 1, 2, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        packet.extend([9; 10]);
        // 802.3: a length, LLC and SNAP, the packet, padding.
        let mut frame = vec![2; 12];
        frame.extend([0, 38, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        frame.extend_from_slice(&packet);
        frame.extend([0; 8]);
        let found = ip_bytes(LinkType::ETHERNET, &frame).unwrap();
        assert_eq!((found.bytes, found.offset), (&packet[..], 22));
    }

    proptest! {
        #[test]
        fn the_innermost_packet_is_the_one_that_is_decoded(
            tags in 0..3usize,
            port in prop_oneof![Just(4789u16), Just(2152), Just(80)],
            protocol in prop_oneof![Just(17u8), Just(4), Just(47), Just(6)],
            payload in proptest::collection::vec(any::<u8>(), 0..20),
            inner in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            use super::super::{Decoder, test_packets as packets};
            let inner = packets::ethernet(0x0800, &packets::v4(6, &inner));
            let inside = match protocol {
                17 => packets::udp(9, port, &[&[8, 0, 0, 0, 0, 0, 0, 0][..], &inner].concat()),
                4 => inner[14..].to_vec(),
                47 => [&[0, 0, 8, 0], &inner[14..]].concat(),
                _ => payload,
            };
            let frame = frame(&[1, 2][..tags.min(2)], &packets::v4(protocol, &inside));
            let decoder = Decoder::new(Tunnel::Inner);
            let decoded = decoder.decode(LinkType::ETHERNET, &frame).unwrap();
            let found = decoder.ip_bytes(LinkType::ETHERNET, &frame).unwrap();
            prop_assert_eq!(found.bytes.len(), decoded.bytes as usize);
            prop_assert!(found.bytes.ends_with(decoded.transport));
            let inside_too = protocol == 4 || protocol == 47 || (protocol == 17 && port == 4789);
            prop_assert_eq!(found.offset > 14 + 4 * tags.min(2), inside_too);
        }

        #[test]
        fn the_short_way_and_the_walk_agree(
            tags in 0..3usize,
            kind in 0..3usize,
            packet in proptest::collection::vec(any::<u8>(), 0..90),
            first in prop_oneof![Just(0x45u8), Just(0x60), Just(0x46), any::<u8>()],
        ) {
            let mut packet = packet;
            if let Some(byte) = packet.first_mut() { *byte = first; }
            let mut frame = frame(&[1, 2][..tags.min(2)], &packet);
            let at = 12 + 4 * tags.min(2);
            frame[at..at + 2].copy_from_slice(&[[8, 0], [0x86, 0xdd], [8, 6]][kind]);
            if let Some(bytes) = common(LinkType::ETHERNET, &frame) {
                prop_assert_eq!(walk::to_ip(LinkType::ETHERNET, &frame), Ok(bytes));
            }
            // Exactly the packets that are decoded as IP elsewhere are IP here.
            let decoded = super::super::Decoder::default().decode(LinkType::ETHERNET, &frame);
            prop_assert_eq!(decoded.map(|_| ()), ip_bytes(LinkType::ETHERNET, &frame).map(|_| ()));
        }
    }
}
