//! Decodes a DNS message in a datagram (if the first byte is even) or in a TCP segment.
#![no_main]

use flowsieve::decode::{Addresses, IpPacket, NAME_MAX, dns_messages, dotted, labels_from_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, message)) = bytes.split_first() else { return };
    let udp = choice & 1 == 0;
    let mut transport = vec![0, 53, 0x13, 0x88];
    if udp {
        transport.extend(((8 + message.len()) as u16).to_be_bytes());
        transport.extend([0, 0]);
    } else {
        transport.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    }
    transport.extend_from_slice(message);
    let packet = IpPacket {
        addresses: Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] },
        protocol: if udp { 17 } else { 6 },
        later_fragment: false,
        transport: &transport,
        bytes: 0,
        missing: 0,
        vlan: None,
    };
    let mut found = 0;
    let _ = dns_messages(&packet, &[53], |message| {
        found += 1;
        assert!(message.name.len() < NAME_MAX);
        let mut buffer = [0; NAME_MAX];
        let text = dotted(message.name);
        let again = labels_from_text(text.as_bytes(), &mut buffer);
        assert_eq!(again, Some(message.name), "{text}");
    });
    assert!(found <= 1 + message.len() / 12);
});
