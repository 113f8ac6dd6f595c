//! Parts of an element's encoding: the bytes of some of its attributes.

use super::ElementKind;

/// Bytes of an address, by the family at the head of an encoding.
const fn address(family: u8) -> usize {
    if family == 4 { 4 } else { 16 }
}

impl ElementKind {
    /// Appends the bytes of the attributes in `mask` (bit i for attribute i) of an element encoded
    /// as `key` to `out`. Two elements agree in these attributes exactly if the bytes are equal.
    ///
    /// The family is there if an address is, so that no two encodings of different lengths are one;
    /// protocols, ports and names are the same in both families.
    #[doc(hidden)]
    pub fn part(self, key: &[u8], mask: u32, out: &mut Vec<u8>) {
        let Some(&family) = key.first() else {
            return;
        };
        if mask & self.addresses() != 0 {
            out.push(family);
        }
        for (attribute, bytes) in self.values(key, self.all()) {
            if mask >> attribute & 1 == 1 {
                out.extend_from_slice(bytes);
            }
        }
    }

    /// The attributes in `mask`, each with its bytes, of an element of which `part` has the bytes
    /// that [`ElementKind::part`] appends for this mask; an element's encoding is the part of all.
    #[doc(hidden)]
    pub fn values(self, part: &[u8], mask: u32) -> impl Iterator<Item = (usize, &[u8])> {
        let (mut rest, address) = match part.split_first() {
            Some((&family, rest)) if mask & self.addresses() != 0 || mask == self.all() => {
                (rest, address(family))
            }
            _ => (part, 0),
        };
        // Lengths of the attributes but for the last, which takes what is left.
        let lengths = match self {
            Self::HostPair => [Some(address), None, None, None, None],
            Self::Flow => [Some(address), Some(address), Some(1), Some(2), None],
            Self::Dns => [Some(address), Some(address), None, None, None],
            Self::Source | Self::Destination => [None; 5],
        };
        (0..self.attributes().len()).filter(move |attribute| mask >> attribute & 1 == 1).map(
            move |attribute| {
                let length = lengths[attribute].unwrap_or(rest.len()).min(rest.len());
                let (bytes, behind) = rest.split_at(length);
                rest = behind;
                (attribute, bytes)
            },
        )
    }

    /// All attributes.
    #[doc(hidden)]
    pub const fn all(self) -> u32 {
        (1 << self.attributes().len()) - 1
    }

    /// The attributes that are addresses.
    #[doc(hidden)]
    pub const fn addresses(self) -> u32 {
        match self {
            Self::HostPair | Self::Flow | Self::Dns => 0b11,
            Self::Source | Self::Destination => 0b1,
        }
    }

    /// How many values each attribute can have at all, where that is few.
    #[doc(hidden)]
    pub const fn most_values(self) -> &'static [Option<u64>] {
        match self {
            Self::HostPair => &[None, None],
            Self::Flow => &[None, None, Some(256), Some(65_536), Some(65_536)],
            Self::Dns => &[None, None, None],
            Self::Source | Self::Destination => &[None],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: ElementKind, key: &[u8], mask: u32) -> Vec<u8> {
        let mut out = Vec::new();
        kind.part(key, mask, &mut out);
        out
    }

    #[test]
    fn parts_are_cut_where_the_attributes_end() {
        let pair = [4, 10, 0, 0, 1, 10, 0, 0, 2];
        assert_eq!(part(ElementKind::HostPair, &pair, 0b11), pair);
        assert_eq!(part(ElementKind::HostPair, &pair, 0b01), [4, 10, 0, 0, 1]);
        assert_eq!(part(ElementKind::HostPair, &pair, 0b10), [4, 10, 0, 0, 2]);
        let flow = [4, 10, 0, 0, 1, 10, 0, 0, 2, 17, 0, 53, 1, 2];
        assert_eq!(part(ElementKind::Flow, &flow, 0b0_0100), [17]);
        assert_eq!(part(ElementKind::Flow, &flow, 0b1_1000), [0, 53, 1, 2]);
        assert_eq!(part(ElementKind::Flow, &flow, 0b1_0010), [4, 10, 0, 0, 2, 1, 2]);
        let mut six = vec![6];
        six.extend(1..=32);
        six.extend([1, b'a']);
        assert_eq!(part(ElementKind::Dns, &six, 0b100), [1, b'a']);
        assert_eq!(part(ElementKind::Dns, &six, 0b010)[..3], [6, 17, 18]);
        assert_eq!(part(ElementKind::Dns, &six, 0b111), six);
        assert_eq!(part(ElementKind::Source, &pair[..5], 1), pair[..5]);
        for mask in 1..0b10_0000 {
            let some = part(ElementKind::Flow, &flow, mask);
            let values: Vec<(usize, &[u8])> = ElementKind::Flow.values(&some, mask).collect();
            let expected: Vec<(usize, &[u8])> =
                [&[10, 0, 0, 1][..], &[10, 0, 0, 2], &[17], &[0, 53], &[1, 2]]
                    .into_iter()
                    .enumerate()
                    .filter(|(attribute, _)| mask >> attribute & 1 == 1)
                    .collect();
            assert_eq!(values, expected);
        }
        for kind in [ElementKind::HostPair, ElementKind::Flow, ElementKind::Dns] {
            assert_eq!(kind.most_values().len(), kind.attributes().len());
        }
    }
}
