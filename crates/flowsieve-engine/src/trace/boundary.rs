//! Guesses where a record begins in the middle of a pcap file, from a run of plausible record
//! headers.

use super::pcap::{MAX_PACKET_BYTES, Pcap, RECORDS_TO_TRY};
use super::time::NANOS_PER_SECOND;

/// Plausible records in a row that mark a boundary between records.
const RECORDS_TO_SEE: usize = 16;

/// Largest difference of their times, in seconds.
const SECONDS_APART: u32 = 86_400;

impl Pcap {
    /// Returns the first place in `bytes` where a run of plausible records begins.
    pub(super) fn guess_boundary(&self, bytes: &[u8]) -> Option<usize> {
        (0..bytes.len()).find(|&at| self.looks_like_records(&bytes[at..]))
    }

    fn looks_like_records(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let mut time = None;
        for seen in 0..RECORDS_TO_SEE {
            let Some(header) = rest.first_chunk() else { return seen >= RECORDS_TO_TRY };
            let (seconds, fraction, captured, wire) = self.header_fields(header);
            let plausible = i64::from(fraction) * self.fraction < NANOS_PER_SECOND
                && captured > 0
                && captured <= wire
                && wire <= MAX_PACKET_BYTES
                && seconds.abs_diff(*time.get_or_insert(seconds)) <= SECONDS_APART;
            if !plausible {
                return false;
            }
            rest = rest.get(16 + captured as usize..).unwrap_or_default();
        }
        true
    }
}
