//! The byte encoding of keys.
//!
//! ```text
//!     family (4 or 6) │ field │ field │ …
//! ```
//!
//! A key is encoded as its fields one after the other: addresses of 4 or 16 bytes (of a prefix with
//! the other bits cleared), ports and VLANs of 2, protocols of 1, names as lower-cased labels, all
//! in network byte order. The family comes first if one of the fields is an address. A packet
//! without a VLAN tag has [`NO_VLAN`].

#![expect(
    clippy::inline_always,
    reason = "a key that goes through memory between two functions costs 5 ns a packet, measured"
)]

use super::field::{Attribute, Field};
use super::headers::HeaderFields;
use super::kind::{ElementKind, MOST_FIELDS};
use crate::decode::{Addresses, NAME_MAX, dotted};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The VLAN of a packet without a tag.
pub(crate) const NO_VLAN: u16 = u16::MAX;

/// Text for [`NO_VLAN`].
pub(super) const NO_VLAN_TEXT: &str = "none";

/// Longest encoding of a key: family, two IPv6 addresses, ports, protocol, VLAN and a name.
pub(crate) const LONGEST_KEY: usize = LONGEST_NAMELESS_KEY + NAME_MAX;

/// Longest encoding of a key without a name.
pub(crate) const LONGEST_NAMELESS_KEY: usize = 1 + 32 + 4 + 1 + 2;

/// A key of at most 16 bytes.
///
/// It is put together in a register and not in memory: a digest reads it back in words that
/// straddle the parts, and a load that straddles two recent stores costs more than all the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShortKey {
    value: u128,
    bits: u32,
}

impl ShortKey {
    /// A key that begins with the family of IPv4.
    pub(crate) const V4: Self = Self { value: 4, bits: 8 };

    #[inline(always)]
    fn push(&mut self, value: u32, bits: u32) {
        self.value |= u128::from(value) << self.bits;
        self.bits += bits;
    }

    #[inline(always)]
    pub(crate) fn address(mut self, address: [u8; 4]) -> Self {
        self.push(u32::from_le_bytes(address), 32);
        self
    }

    #[inline(always)]
    pub(crate) fn byte(mut self, byte: u8) -> Self {
        self.push(byte.into(), 8);
        self
    }

    /// Appends two bytes in network byte order.
    #[inline(always)]
    pub(crate) fn number(mut self, number: u16) -> Self {
        self.push(number.to_be().into(), 16);
        self
    }

    /// Returns the number of bytes.
    #[inline(always)]
    pub(crate) const fn len(self) -> usize {
        self.bits as usize / 8
    }

    /// Its bytes, and zeros.
    #[inline(always)]
    pub(crate) const fn padded(self) -> u128 {
        self.value
    }

    /// Appends fields of a packet between these addresses; the family is there already.
    #[inline]
    pub(crate) fn fields(
        mut self,
        fields: &[Field],
        headers: &HeaderFields<'_>,
        addresses: [[u8; 4]; 2],
    ) -> Self {
        for &Field { attribute, prefix } in fields {
            self = match attribute {
                Attribute::Source => self.address(prefix_v4(addresses[0], prefix)),
                Attribute::Destination => self.address(prefix_v4(addresses[1], prefix)),
                Attribute::Protocol => self.byte(headers.protocol),
                Attribute::SourcePort => self.number(headers.ports.0),
                Attribute::DestinationPort => self.number(headers.ports.1),
                Attribute::Vlan => self.number(headers.vlan.unwrap_or(NO_VLAN)),
                Attribute::Domain | Attribute::RegisteredDomain => self,
            };
        }
        self
    }
}

/// Returns whether keys of IPv4 packets that have these fields are short.
pub(crate) fn is_short<'a>(fields: impl Iterator<Item = &'a Field>) -> bool {
    let bytes = fields.map(|field| fixed_length(field.attribute, 4).unwrap_or(size_of::<u128>()));
    // With the family.
    bytes.sum::<usize>() < size_of::<u128>()
}

/// Returns whether a field is an address.
pub(crate) fn has_address(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.attribute.is_address())
}

/// Returns the number of bytes of an attribute; `None` for names.
const fn fixed_length(attribute: Attribute, family: u8) -> Option<usize> {
    match attribute {
        Attribute::Source | Attribute::Destination if family == 4 => Some(4),
        Attribute::Source | Attribute::Destination => Some(16),
        Attribute::Protocol => Some(1),
        Attribute::SourcePort | Attribute::DestinationPort | Attribute::Vlan => Some(2),
        Attribute::Domain | Attribute::RegisteredDomain => None,
    }
}

/// Writes fields to `out` from place `at` on, the family first if `has_family` is false and one of
/// them is an address. Returns the place behind them, and whether the family is there.
#[inline]
pub(crate) fn write(
    fields: &[Field],
    headers: &HeaderFields<'_>,
    has_family: bool,
    mut at: usize,
    out: &mut [u8],
) -> (usize, bool) {
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let has_address = has_address(fields);
    if has_address && !has_family {
        put(&[match headers.addresses {
            Addresses::V4 { .. } => 4,
            Addresses::V6 { .. } => 6,
        }]);
    }
    for &Field { attribute, prefix } in fields {
        match (attribute, headers.addresses) {
            (Attribute::Source, Addresses::V4 { source, .. }) => put(&prefix_v4(source, prefix)),
            (Attribute::Source, Addresses::V6 { source, .. }) => put(&prefix_v6(source, prefix)),
            (Attribute::Destination, Addresses::V4 { destination, .. }) => {
                put(&prefix_v4(destination, prefix));
            }
            (Attribute::Destination, Addresses::V6 { destination, .. }) => {
                put(&prefix_v6(destination, prefix));
            }
            (Attribute::Protocol, _) => put(&[headers.protocol]),
            (Attribute::SourcePort, _) => put(&headers.ports.0.to_be_bytes()),
            (Attribute::DestinationPort, _) => put(&headers.ports.1.to_be_bytes()),
            (Attribute::Vlan, _) => put(&headers.vlan.unwrap_or(NO_VLAN).to_be_bytes()),
            (Attribute::Domain, _) => put(headers.name),
            (Attribute::RegisteredDomain, _) => put(registered(headers.name)),
        }
    }
    (at, has_family || has_address)
}

/// Returns the leading bits of an IPv4 address.
#[inline]
pub(crate) fn prefix_v4(address: [u8; 4], prefix: Option<u8>) -> [u8; 4] {
    let Some(bits) = prefix else { return address };
    let mask = u32::MAX << (32 - u32::from(bits.clamp(1, 32)));
    (u32::from_be_bytes(address) & mask).to_be_bytes()
}

/// Returns the leading bits of an IPv6 address: twice as many as of an IPv4 address.
#[inline]
pub(crate) fn prefix_v6(address: [u8; 16], prefix: Option<u8>) -> [u8; 16] {
    let Some(bits) = prefix else { return address };
    let mask = u128::MAX << (128 - 2 * u32::from(bits.clamp(1, 32)));
    (u128::from_be_bytes(address) & mask).to_be_bytes()
}

/// Returns the prefixes of both addresses, with all other bits cleared; those of IPv6 have twice as
/// many bits.
#[inline]
pub(crate) fn prefixes(addresses: Addresses, prefix: Option<u8>) -> Addresses {
    match addresses {
        Addresses::V4 { source, destination } => Addresses::V4 {
            source: prefix_v4(source, prefix),
            destination: prefix_v4(destination, prefix),
        },
        Addresses::V6 { source, destination } => Addresses::V6 {
            source: prefix_v6(source, prefix),
            destination: prefix_v6(destination, prefix),
        },
    }
}

/// Returns the labels of the registered domain that a name lies in: its public suffix and one more
/// label, by the Public Suffix List. The whole name if it has none, as public suffixes themselves.
pub(crate) fn registered(labels: &[u8]) -> &[u8] {
    // As text in the same places: a label's length byte becomes the dot ahead of it.
    let mut text = [0; NAME_MAX];
    let mut starts = [0_u8; NAME_MAX / 2 + 1];
    let (mut at, mut count) = (0, 0);
    while let Some(&length) = labels.get(at)
        && length > 0
        && let Some(label) = labels.get(at + 1..=at + usize::from(length))
        && let Some(start) = starts.get_mut(count)
    {
        *start = at as u8;
        text[at] = b'.';
        for (place, &byte) in text[at + 1..].iter_mut().zip(label) {
            // A dot inside a label ends none.
            *place = if byte == b'.' { b'_' } else { byte };
        }
        at += label.len() + 1;
        count += 1;
    }
    if count == 0 {
        return labels;
    }
    let Some(domain) = flowsieve_domains::registered(&text[1..at]) else { return labels };
    let kept = domain.split(|&byte| byte == b'.').count();
    let first = starts[count - kept.min(count)];
    &labels[usize::from(first)..]
}

/// Returns the values of the fields in `mask` (bit i for field i), each with its number, of bytes
/// that hold these fields one after the other, and the family first if one of them is an address.
fn values<'a>(
    fields: &[Field],
    part: &'a [u8],
    mask: u32,
) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
    let count = fields.len();
    let is_wanted = move |number: usize| mask >> number & 1 == 1;
    let wanted = || fields.iter().enumerate().filter(|&(number, _)| is_wanted(number));
    let (family, mut rest) = match part.split_first() {
        Some((&family, rest)) if wanted().any(|(_, field)| field.attribute.is_address()) => {
            (family, rest)
        }
        _ => (0, part),
    };
    let mut lengths = [None; MOST_FIELDS];
    for (number, field) in wanted() {
        lengths[number] = fixed_length(field.attribute, family);
    }
    // There is at most one name, and it has what the others leave.
    let name = rest.len().saturating_sub(lengths.iter().flatten().sum());
    (0..count).filter(move |&number| is_wanted(number)).map(move |number| {
        let length = lengths[number].unwrap_or(name).min(rest.len());
        let (value, behind) = rest.split_at(length);
        rest = behind;
        (number, value)
    })
}

/// Returns a key as text: its fields, separated by commas.
pub(crate) fn key_text(fields: &[Field], key: &[u8]) -> String {
    let values = values(fields, key, (1 << fields.len()) - 1);
    let texts: Vec<String> =
        values.map(|(number, value)| value_text(fields[number], value)).collect();
    texts.join(",")
}

fn value_text(field: Field, value: &[u8]) -> String {
    let address: Option<(IpAddr, u8)> = match (field.attribute.is_address(), value) {
        (true, &[a, b, c, d]) => Some((Ipv4Addr::new(a, b, c, d).into(), 1)),
        (true, _) => {
            let octets: Option<[u8; 16]> = value.try_into().ok();
            octets.map(|octets| (Ipv6Addr::from(octets).into(), 2))
        }
        (false, _) => None,
    };
    match (address, field.prefix, value) {
        (Some((address, times)), Some(bits), _) => format!("{address}/{}", times * bits),
        (Some((address, _)), None, _) => address.to_string(),
        (None, _, &[high, low]) if !field.attribute.is_name() => {
            match (field.attribute, u16::from_be_bytes([high, low])) {
                (Attribute::Vlan, NO_VLAN) => NO_VLAN_TEXT.to_owned(),
                (_, number) => number.to_string(),
            }
        }
        (None, _, &[protocol]) if !field.attribute.is_name() => protocol.to_string(),
        _ => dotted(value),
    }
}

#[doc(hidden)]
impl ElementKind {
    /// Appends the bytes of the attributes in `mask` (bit i for attribute i) of an element encoded
    /// as `key` to `out`. Two elements agree in these attributes exactly if the bytes are equal.
    ///
    /// The family is there if an address is, so that no two encodings of different lengths are one;
    /// protocols, ports, VLANs and names are the same in both families.
    pub fn part(self, key: &[u8], mask: u32, out: &mut Vec<u8>) {
        let Some(&family) = key.first() else { return };
        if mask & self.addresses() != 0 {
            out.push(family);
        }
        for (attribute, bytes) in self.values(key, self.all()) {
            if mask >> attribute & 1 == 1 {
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Returns the attributes in `mask`, each with its bytes, of an element of which `part` has the
    /// bytes that [`ElementKind::part`] appends for this mask; an element's encoding is the part of
    /// all.
    pub fn values(self, part: &[u8], mask: u32) -> impl Iterator<Item = (usize, &[u8])> {
        values(self.fields(), part, mask)
    }

    /// Returns the mask of all attributes.
    pub const fn all(self) -> u32 {
        (1 << self.arity()) - 1
    }

    /// Returns the mask of the attributes that are addresses.
    pub fn addresses(self) -> u32 {
        let fields = self.fields().iter().enumerate();
        let addresses = fields.filter(|(_, field)| field.attribute.is_address());
        addresses.fold(0, |mask, (number, _)| mask | 1 << number)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::labels_from_text;

    fn labels(name: &str) -> Vec<u8> {
        let mut buffer = [0; NAME_MAX];
        labels_from_text(name.as_bytes(), &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn registered_domains_follow_the_public_suffix_list() {
        for (name, domain) in [
            ("www.example.com", "example.com"),
            ("example.com", "example.com"),
            ("a.b.c.example.co.uk", "example.co.uk"),
            ("com", "com"),
            ("co.uk", "co.uk"),
            ("printer", "printer"),
            ("a.home.invalid-tld", "home.invalid-tld"),
            ("user.github.io", "user.github.io"),
            ("www.user.github.io", "user.github.io"),
        ] {
            assert_eq!(dotted(registered(&labels(name))), domain, "{name}");
        }
        assert_eq!(registered(&[]), &[] as &[u8]);
        // A dot inside a label.
        let odd = [&[3][..], b"a.b", &[3], b"com"].concat();
        assert_eq!(registered(&odd), odd);
        let longest = [&[63][..], &[b'x'; 63]].concat().repeat(3);
        assert_eq!(registered(&longest), &longest[64..]);
        assert_eq!(registered(&[1, b'a'].repeat(127)), [1, b'a', 1, b'a']);
    }

    fn part(kind: ElementKind, key: &[u8], mask: u32) -> Vec<u8> {
        let mut out = Vec::new();
        kind.part(key, mask, &mut out);
        out
    }

    #[test]
    fn parts_are_cut_where_the_attributes_end() {
        let pair = [4, 10, 0, 0, 1, 10, 0, 0, 2];
        assert_eq!(part(ElementKind::HOST_PAIR, &pair, 0b11), pair);
        assert_eq!(part(ElementKind::HOST_PAIR, &pair, 0b01), [4, 10, 0, 0, 1]);
        assert_eq!(part(ElementKind::HOST_PAIR, &pair, 0b10), [4, 10, 0, 0, 2]);
        let flow = [4, 10, 0, 0, 1, 10, 0, 0, 2, 17, 0, 53, 1, 2];
        assert_eq!(part(ElementKind::FLOW, &flow, 0b0_0100), [17]);
        assert_eq!(part(ElementKind::FLOW, &flow, 0b1_1000), [0, 53, 1, 2]);
        assert_eq!(part(ElementKind::FLOW, &flow, 0b1_0010), [4, 10, 0, 0, 2, 1, 2]);
        let mut six = vec![6];
        six.extend(1..=32);
        six.extend([1, b'a']);
        assert_eq!(part(ElementKind::DNS, &six, 0b100), [1, b'a']);
        assert_eq!(part(ElementKind::DNS, &six, 0b010)[..3], [6, 17, 18]);
        assert_eq!(part(ElementKind::DNS, &six, 0b111), six);
        assert_eq!(part(ElementKind::SOURCE, &pair[..5], 1), pair[..5]);
        for mask in 1..0b10_0000 {
            let some = part(ElementKind::FLOW, &flow, mask);
            let values: Vec<(usize, &[u8])> = ElementKind::FLOW.values(&some, mask).collect();
            let expected: Vec<(usize, &[u8])> =
                [&[10, 0, 0, 1][..], &[10, 0, 0, 2], &[17], &[0, 53], &[1, 2]]
                    .into_iter()
                    .enumerate()
                    .filter(|(attribute, _)| mask >> attribute & 1 == 1)
                    .collect();
            assert_eq!(values, expected);
        }
    }

    #[test]
    fn a_name_may_stand_among_other_fields() {
        let kind: ElementKind = "dst-port,domain,vlan".parse().unwrap();
        let key = [0, 53, 1, b'a', 2, b'b', b'c', 0xff, 0xff];
        let values: Vec<(usize, &[u8])> = kind.values(&key, 0b111).collect();
        assert_eq!(values, [(0, &key[..2]), (1, &key[2..7]), (2, &key[7..])]);
        assert_eq!(part(kind, &key, 0b110), key[2..]);
        assert_eq!(key_text(kind.fields(), &key), "53,a.bc,none");
        assert_eq!(kind.addresses(), 0);
    }
}
