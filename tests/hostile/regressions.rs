//! One test for each fault that hostile input has found.

use super::chain::read;
use super::samples::{all, compress};
use flowsieve::decode::{Decoder, Skip, Tunnel};
use flowsieve::filters::saved::SavedFilter;
use flowsieve::filters::{
    CountingSpec, ElementDigests, FilterSpec, IndexMap, MatrixSpec, Refill, ScalableSpec,
};
use flowsieve::hashing::{Checksum, Digest};
use flowsieve::trace::LinkType;

/// ERF was recognised by ten records, and damage in the type or length of any of them hid the
/// packets before it.
#[test]
fn erf_whose_fourth_record_is_damaged_is_read_up_to_there() {
    let mut sample = all().into_iter().find(|sample| sample.name == "erf").unwrap();
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

/// The xz decoder got 128 KiB at once, and lost the output of all of them when it found damage.
#[test]
fn packets_before_damage_in_xz_are_read() {
    let sample = all().into_iter().find(|sample| sample.name == "pcap-dns").unwrap();
    let mut inner = sample.bytes[..24].to_vec();
    while inner.len() < 200_000 {
        // Times differ, so that the records do not compress too well.
        for record in sample.ends.windows(2) {
            let at = inner.len();
            inner.extend_from_slice(&sample.bytes[record[0]..record[1]]);
            let noise = (at as u32).wrapping_mul(2_654_435_761).to_be_bytes();
            inner[at + 2..at + 4].copy_from_slice(&noise[..2]);
        }
    }
    let whole = compress("xz", &inner);
    // The content of the last 64 compressed bytes before damage is lost.
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
        assert!(cut > 300 && outcome.packets + piece >= cut, "{} of {cut}", outcome.packets);
    }
}

/// A frame of 802.3 states its length, and a trailer may follow. The place of the packet was
/// computed from the end of the frame, and wrong by the length of the trailer.
#[test]
fn a_packet_in_a_frame_with_a_trailer_is_where_it_is_said_to_be() {
    // Length 59, LLC with a control field of two bytes, a packet of 55 bytes, and one byte after
    // it.
    let mut frame = vec![0x98, 0xff, 0xff, 0xf7, 0xff, 0xff, 0, 0x23, 0, 0, 0, 0];
    frame.extend([0, 59, 6, 0x40, 0x45, 0x45]);
    frame.extend([0x45; 55]);
    frame.push(2);
    let found = Decoder::new(Tunnel::Outer).ip_bytes(LinkType::ETHERNET, &frame).unwrap();
    assert_eq!((found.offset, found.bytes.len()), (18, 55));
    assert_eq!(&frame[found.offset..][..found.bytes.len()], found.bytes);
    assert_eq!(
        Decoder::new(Tunnel::Outer).ip_bytes(LinkType::ETHERNET, &frame[..18]),
        Err(Skip::CutShort)
    );
}

/// A filter was saved with one lost increment more than the reader allows, if it was read with the
/// highest number that is allowed.
#[test]
fn a_count_at_its_bound_is_written_so_that_it_is_read() {
    let spec = FilterSpec::Counting(CountingSpec { counters: 64, probes: 1, counter_bits: 1 });
    let element = ElementDigests { whole: Digest::from_value(7), attributes: &[] };
    let mut filter = SavedFilter::empty(spec, 0, Vec::new(), 1).unwrap();
    filter.insert(element);
    let saved = |filter: &SavedFilter| {
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        bytes
    };
    let mut bytes = saved(&filter);
    // At the end: the count, one word of counters, the checksum.
    let end = bytes.len();
    put(&mut bytes, end - 24, 1 << 62);
    let read = |bytes: &[u8]| SavedFilter::read(&mut &*bytes, bytes.len() as u64);
    let mut filter = read(&bytes).unwrap();
    let overflows = |filter: &SavedFilter| filter.stats().counters.unwrap().overflows;
    assert_eq!(overflows(&filter), 1 << 62);
    filter.insert(element);
    assert_eq!(overflows(&filter), (1 << 62) + 1);
    assert_eq!(overflows(&read(&saved(&filter)).unwrap()), 1 << 62);
}

/// Writes a number into a saved filter, and its checksum.
fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    let end = bytes.len() - 8;
    let mut checksum = Checksum::new();
    checksum.update(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.value().to_le_bytes());
}

#[test]
fn a_matrix_cannot_have_had_more_elements_than_can_be_counted() {
    let spec = FilterSpec::Matrix(MatrixSpec {
        sizes: vec![63],
        cuts: Vec::new(),
        probes: 1,
        index_map: IndexMap::Offset,
    });
    let filter = SavedFilter::empty(spec, 0, Vec::new(), 1).unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    // At the end: the first sights of the attribute, one word of cells, the checksum.
    let at = bytes.len() - 8 - 8 - 8;
    let read = |bytes: &[u8]| SavedFilter::read(&mut &*bytes, bytes.len() as u64);
    put(&mut bytes, at, u64::MAX);
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.contains("larger than any can be"), "{error}");
    put(&mut bytes, at, 1 << 62);
    let mut filter = read(&bytes).unwrap();
    let attributes = [Digest::from_value(7)];
    filter.insert(ElementDigests { whole: attributes[0], attributes: &attributes });
    // The number stays at its upper limit, so that the file can be read back.
    let mut again = Vec::new();
    filter.save(&mut again).unwrap();
    assert_eq!(again[at..at + 8], (1_u64 << 62).to_le_bytes());
    read(&again).unwrap();
}

#[test]
fn the_links_of_a_chain_have_numbers_that_ascend_and_end() {
    let spec = FilterSpec::Scalable(ScalableSpec {
        part: 64,
        probes: 1,
        counter_bits: 1,
        most_links: 4,
        refill: Refill::Newest,
    });
    let element = |number: u64| ElementDigests {
        whole: Digest::from_value(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        attributes: &[],
    };
    let filter = SavedFilter::empty(spec, 0, Vec::new(), 1).unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    // At the end: the link's number, its lost increments, one word of counters, the checksum.
    let at = bytes.len() - 8 - 8 - 8 - 8;
    let read = |bytes: &[u8]| SavedFilter::read(&mut &*bytes, bytes.len() as u64);
    for wrong in [0, (1 << 48) + 1, u64::MAX] {
        put(&mut bytes, at, wrong);
        let error = read(&bytes).unwrap_err();
        assert!(error.to_string().contains("do not ascend"), "{error}");
    }
    // After the last number there is no further link, however full the chain is.
    put(&mut bytes, at, 1 << 48);
    let mut filter = read(&bytes).unwrap();
    for number in 0..200 {
        filter.insert(element(number));
    }
    let mut again = Vec::new();
    filter.save(&mut again).unwrap();
    let filter = read(&again).unwrap();
    for number in 0..200 {
        assert!(filter.contains(element(number)));
    }
}
