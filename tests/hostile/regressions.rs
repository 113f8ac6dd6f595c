//! What hostile input once did, one test each.

use super::chain::read;
use super::samples::{all, compress};

/// Ten records were looked at to recognise ERF, and damage in the type or length of any of them hid the
/// packets before it.
#[test]
fn erf_whose_fourth_record_is_damaged_is_read_up_to_there() {
    let mut sample = all()
        .into_iter()
        .find(|sample| sample.name == "erf")
        .unwrap();
    for (byte, value) in [(8, 0x7f), (10, 0)] {
        let mut bytes = sample.bytes.clone();
        bytes[sample.ends[2] + byte] = value;
        bytes[sample.ends[2] + 11] &= 0x0f;
        let outcome = read(&bytes, sample.format, 0);
        assert_eq!(outcome.container, "erf");
        assert!(outcome.packets >= 3, "{}", outcome.packets);
    }
    sample.bytes.truncate(sample.ends[3] - 1);
    assert_eq!(read(&sample.bytes, sample.format, 0).packets, 3);
}

/// The xz decoder was given 128 KiB at once, and kept back all that it had made of them when it came
/// upon damage.
#[test]
fn packets_before_damage_in_xz_are_read() {
    let sample = all()
        .into_iter()
        .find(|sample| sample.name == "pcap-dns")
        .unwrap();
    let mut inner = sample.bytes[..24].to_vec();
    while inner.len() < 200_000 {
        // Times differ, so that it does not compress to nothing.
        for record in sample.ends.windows(2) {
            let at = inner.len();
            inner.extend_from_slice(&sample.bytes[record[0]..record[1]]);
            let noise = (at as u32).wrapping_mul(2_654_435_761).to_be_bytes();
            inner[at + 2..at + 4].copy_from_slice(&noise[..2]);
        }
    }
    let whole = compress("xz", &inner);
    // What the last 64 compressed bytes hold is kept back.
    let piece = 80;
    for share in [3, 4] {
        let mut bytes = whole.clone();
        let at = bytes.len() * share / 5;
        for byte in &mut bytes[at..at + 40] {
            *byte ^= 0xa5;
        }
        let outcome = read(&bytes, sample.format, 0);
        let error = outcome.error.unwrap().to_string();
        assert!(error.contains("xz data is damaged"), "{error}");
        let cut = read(&whole[..at], sample.format, 0).packets;
        assert!(
            cut > 300 && outcome.packets + piece >= cut,
            "{} of {cut}",
            outcome.packets
        );
    }
}
