//! Bytes of a frame replaced where they stand, with the sum of all changes.

use super::mac::MacMap;
use crate::decode::Hardware;
use etherparse::checksum::Sum16BitWords;

/// A frame that is being rewritten.
pub(super) struct Rewrite<'a> {
    pub(super) frame: &'a mut [u8],
    /// The end of what is rewritten: what follows belongs to something else.
    pub(super) end: usize,
    /// Sum of the new bytes and of the complements of the old ones, in words at even offsets.
    pub(super) change: Sum16BitWords,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(frame: &'a mut [u8]) -> Self {
        Self { end: frame.len(), frame, change: Sum16BitWords::new() }
    }

    /// A link-layer address: a MAC address is replaced, anything else becomes zeros.
    pub(super) fn hardware(&mut self, at: usize, kind: Hardware, macs: &mut MacMap) {
        let reverse = |address: [u8; 6]| address.map(u8::reverse_bits);
        match (kind, self.array(at)) {
            (Hardware::Mac, Some(old)) => self.put(at, &macs.image(old)),
            (Hardware::ReversedMac, Some(old)) => {
                self.put(at, &reverse(macs.image(reverse(old))));
            }
            (Hardware::Mac | Hardware::ReversedMac, None) => self.blank(at, 6),
            (Hardware::Other(length), _) => self.blank(at, length.into()),
        }
    }

    pub(super) fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.frame.get(at..self.end)?.first_chunk().copied()
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        for (place, &new) in (at..).zip(bytes) {
            let old = !std::mem::replace(&mut self.frame[place], new);
            let change = std::mem::take(&mut self.change);
            self.change = if place.is_multiple_of(2) {
                change.add_2bytes([new, 0]).add_2bytes([old, u8::MAX])
            } else {
                change.add_2bytes([0, new]).add_2bytes([u8::MAX, old])
            };
        }
    }

    /// Writes zeros where an address was cut off or cannot be distinguished from others.
    pub(super) fn blank(&mut self, at: usize, length: usize) {
        for place in at..(at + length).min(self.end) {
            self.put(place, &[0]);
        }
    }
}
