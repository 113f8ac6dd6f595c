//! Parts of an element's encoding: the bytes of some of its attributes.

use super::ElementKind;

/// Bytes of an address, by the family at the head of an encoding.
const fn address(family: u8) -> usize {
    if family == 4 { 4 } else { 16 }
}

impl ElementKind {
    /// Appends the bytes of the attributes in `mask` (bit i for attribute i) of an element encoded as
    /// `key` to `out`. Two elements agree in these attributes exactly if the bytes are equal.
    ///
    /// The family is there if an address is, so that no two encodings of different lengths are one;
    /// protocols, ports and names are the same in both families.
    pub fn part(self, key: &[u8], mask: u32, out: &mut Vec<u8>) {
        let Some(&family) = key.first() else {
            return;
        };
        let address = address(family);
        // Lengths of the attributes but for the last, which takes what is left.
        let (lengths, addresses): (&[usize], u32) = match self {
            Self::HostPair => (&[address], 0b11),
            Self::Flow => (&[address, address, 1, 2], 0b11),
            Self::Dns => (&[address, address], 0b11),
            Self::Source | Self::Destination => (&[], 0b1),
        };
        if mask & addresses != 0 {
            out.push(family);
        }
        let mut rest = &key[1..];
        for attribute in 0..=lengths.len() {
            let length = lengths.get(attribute).copied().unwrap_or(rest.len());
            let (bytes, behind) = rest.split_at(length.min(rest.len()));
            if mask >> attribute & 1 == 1 {
                out.extend_from_slice(bytes);
            }
            rest = behind;
        }
    }

    /// How many values each attribute can have at all, where that is few.
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
        assert_eq!(
            part(ElementKind::Flow, &flow, 0b1_0010),
            [4, 10, 0, 0, 2, 1, 2]
        );
        let mut six = vec![6];
        six.extend(1..=32);
        six.extend([1, b'a']);
        assert_eq!(part(ElementKind::Dns, &six, 0b100), [1, b'a']);
        assert_eq!(part(ElementKind::Dns, &six, 0b010)[..3], [6, 17, 18]);
        assert_eq!(part(ElementKind::Dns, &six, 0b111), six);
        assert_eq!(part(ElementKind::Source, &pair[..5], 1), pair[..5]);
        for kind in [ElementKind::HostPair, ElementKind::Flow, ElementKind::Dns] {
            assert_eq!(kind.most_values().len(), kind.attributes().len());
        }
    }
}
