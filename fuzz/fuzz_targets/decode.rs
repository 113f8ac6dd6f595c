//! Decodes a frame of any link type. The input is two bytes of type, then the frame.
#![no_main]

use flowsieve::decode::{Decoder, Tunnel, vlan_ids};
use flowsieve::trace::LinkType;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[low, high], frame)) = bytes.split_first_chunk() else { return };
    let link = LinkType(u16::from_le_bytes([low, high]) % 310);
    let outer = Decoder::new(Tunnel::Outer).decode(link, frame);
    let inner = Decoder::new(Tunnel::Inner).decode(link, frame);
    assert!(outer.is_ok() || inner.is_err(), "an inner header without an outer one");
    if let Ok(ip) = outer {
        assert!(ip.transport.len() <= frame.len());
        let _ = (ip.ports(), ip.tcp_flags(), ip.icmp_type_and_code());
    }
    let innermost = Decoder::new(Tunnel::Inner).ip_bytes(link, frame);
    assert_eq!(innermost.map(|_| ()), inner.map(|_| ()));
    for ip in [Decoder::new(Tunnel::Outer).ip_bytes(link, frame), innermost].into_iter().flatten() {
        assert_eq!(&frame[ip.offset..][..ip.bytes.len()], ip.bytes);
    }
    assert!(vlan_ids(link, frame).count() <= frame.len() / 4);
});
