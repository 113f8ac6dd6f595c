//! Compares the decoder's fast path for common frames with its general path, on every frame of real
//! captures.

use flowsieve::decode::{Decoder, Tunnel};
use flowsieve::trace::{Capture, InputFormat, LinkType, TraceBatch};
use std::fs;
use std::path::Path;

/// Ethernet after a header of four bytes: a link type that takes the general path.
const BEHIND_FOUR_BYTES: LinkType = LinkType(240);

#[test]
fn the_short_way_gives_the_answer_of_the_general_way() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let frames = compare_all_below(&own);
    assert!(frames > 9_000, "{frames} frames of the repository's captures");
}

/// Returns the number of Ethernet frames compared.
pub(crate) fn compare_all_below(folder: &Path) -> u64 {
    let mut frames = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            frames += compare_all_below(&path);
        } else if let Ok(capture) = Capture::open(&path, InputFormat::Auto) {
            frames += compare(capture);
        }
    }
    frames
}

fn compare(mut capture: Capture) -> u64 {
    let mut frames = 0;
    // A damaged capture is compared as far as it can be read.
    while let Ok(Some(TraceBatch::Packets { bytes, packets })) = capture.next_batch() {
        for packet in packets.iter().filter(|packet| packet.link == LinkType::ETHERNET) {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let behind = [&[0; 4], frame].concat();
            for tunnel in [Tunnel::Outer, Tunnel::Inner] {
                let decoder = Decoder::new(tunnel);
                let short = decoder.decode(packet.link, frame);
                let general = decoder.decode(BEHIND_FOUR_BYTES, &behind);
                assert_eq!(short, general, "{frame:x?}");
            }
            frames += 1;
        }
    }
    frames
}
