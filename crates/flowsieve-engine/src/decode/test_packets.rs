//! Packets and wrappings that the tests of this layer are built of.

use super::{Addresses, ip};

/// Addresses of [`v4`] packets.
pub(super) const V4: Addresses =
    Addresses::V4 { source: [192, 0, 2, 1], destination: [198, 51, 100, 2] };

/// Addresses of [`v6`] packets.
pub(super) const V6: Addresses = Addresses::V6 {
    source: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    destination: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
};

/// An IPv4 packet without options.
pub(super) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (ip::V4_HEADER + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    packet.extend(payload);
    packet
}

/// An IPv6 packet; the next header may be an extension header that begins the payload.
pub(super) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let Addresses::V6 { source, destination } = V6 else { unreachable!() };
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

/// A UDP datagram.
pub(super) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for number in [source, destination, 8 + payload.len() as u16, 0] {
        datagram.extend(number.to_be_bytes());
    }
    datagram.extend(payload);
    datagram
}

/// A TCP segment with its acknowledgement flag set.
pub(super) fn tcp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..2].copy_from_slice(&source.to_be_bytes());
    segment[2..4].copy_from_slice(&destination.to_be_bytes());
    segment[12] = 0x50;
    segment[13] = 0x10;
    segment.extend(payload);
    segment
}

/// An Ethernet frame.
pub(super) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), payload].concat()
}

/// One after the other.
pub(super) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
