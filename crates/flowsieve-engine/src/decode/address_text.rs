//! Addresses as text: written for every packet or flow, so without the generality of formatting.

use std::fmt::Write as _;
use std::net::IpAddr;

/// Each octet with a point behind it, and how many letters that is.
static OCTETS: [([u8; 4], usize); 256] = {
    let mut octets = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let [a, b, c] = [b'0' + digits[0] as u8, b'0' + digits[1] as u8, b'0' + digits[2] as u8];
        octets[octet] = match octet {
            0..10 => ([c, b'.', 0, 0], 2),
            10..100 => ([b, c, b'.', 0], 3),
            _ => ([a, b, c, b'.'], 4),
        };
        octet += 1;
    }
    octets
};

/// Letters of ASCII in a place where they are checked a word at a time.
#[repr(align(8))]
pub(crate) struct Aligned<const N: usize>(pub(crate) [u8; N]);

/// Appends the first `length` letters. Copies all of them and truncates: a copy of known length
/// compiles to moves without a call.
#[inline]
pub(crate) fn push_start<const N: usize>(letters: &Aligned<N>, length: usize, text: &mut String) {
    let end = text.len() + length;
    text.push_str(str::from_utf8(&letters.0).expect("letters are ASCII"));
    text.truncate(end);
}

/// Appends an address.
#[inline]
pub fn push_address(address: IpAddr, text: &mut String) {
    match address {
        IpAddr::V4(address) => {
            let mut letters = Aligned([0; 16]);
            let mut end = 0;
            for octet in address.octets() {
                let (octet, length) = &OCTETS[usize::from(octet)];
                letters.0[end..end + octet.len()].copy_from_slice(octet);
                end += length;
            }
            // The last point is none of its letters.
            push_start(&letters, end - 1, text);
        }
        IpAddr::V6(address) => write!(text, "{address}").expect("a String takes everything"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn addresses_are_written_as_they_are_displayed(v4: [u8; 4], v6: [u8; 16]) {
            for address in [IpAddr::from(v4), IpAddr::from(v6)] {
                let mut text = String::new();
                push_address(address, &mut text);
                prop_assert_eq!(text, address.to_string());
            }
        }
    }
}
