//! Rows by column: what goes to a writer.

use crate::decode::{Addresses, DnsMessage, push_dotted};
use crate::flows::{Upper, push_community_id};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::net::IpAddr;

/// Rows by column. A row is a packet, or an element of a slice with the packets that it had there.
///
/// A column that the rows do not have is empty.
#[derive(Debug, Default)]
pub struct ExportRows {
    /// Time of the packet, or of the element's earliest one, in nanoseconds since the epoch.
    pub start_ns: Vec<i64>,
    /// Source address.
    pub src: Texts,
    /// Destination address.
    pub dst: Texts,
    /// Source port; 0 if there is none.
    pub src_port: Vec<u16>,
    /// Destination port.
    pub dst_port: Vec<u16>,
    /// Upper-layer protocol number.
    pub proto: Vec<u8>,
    /// Packets; empty if each row is one.
    pub packets: Vec<u64>,
    /// Bytes from the IP header on.
    pub bytes: Vec<u64>,
    /// Union of the TCP flags; `None` for other protocols.
    pub tcp_flags: Vec<Option<u8>>,
    /// Identifier of the outermost VLAN tag of the (first) packet.
    pub vlan: Vec<Option<u16>>,
    /// Query name of the first DNS message.
    pub domain: Texts,
    /// Type of its question.
    pub dns_type: Vec<Option<u16>>,
    /// Its response code, if it is a response.
    pub dns_rcode: Vec<Option<u8>>,
    /// Community ID.
    pub community_id: Texts,
    /// Why elements left their slice's table; empty if each row is a packet.
    pub left: Vec<Left>,
}

/// Why an element left its slice's table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Left {
    /// Its slice was closed: it has all packets.
    Slice,
    /// The memory was full: another row of the element may follow.
    Memory,
    /// A packet that came after its slice was closed: a separate row.
    Late,
}

impl Left {
    /// The name in results.
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slice => "slice",
            Self::Memory => "memory",
            Self::Late => "late",
        }
    }
}

/// Texts, one after the other; some may be missing.
#[derive(Debug, Default)]
pub struct Texts {
    text: String,
    ends: Vec<u32>,
    missing: Vec<bool>,
}

impl Texts {
    /// Returns the text of a row, or `None` if it is missing.
    pub fn get(&self, index: usize) -> Option<&str> {
        (!self.missing[index]).then(|| &self.text[self.start(index)..self.ends[index] as usize])
    }

    /// All texts as one, in which those from here on begin at [`Self::start`].
    #[doc(hidden)]
    pub fn as_one(&self) -> &str {
        &self.text
    }

    /// Where a text begins.
    #[doc(hidden)]
    pub fn start(&self, index: usize) -> usize {
        let before = index.checked_sub(1);
        before.map_or(0, |before| self.ends[before] as usize)
    }

    /// Where each text ends.
    #[doc(hidden)]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Whether each text is missing.
    #[doc(hidden)]
    pub fn missing(&self) -> &[bool] {
        &self.missing
    }

    /// Appends the text that `write` appends; it is missing if `write` returns false.
    #[inline]
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut String) -> bool) {
        let is_there = write(&mut self.text);
        self.ends.push(self.text.len() as u32);
        self.missing.push(!is_there);
    }

    /// Appends an address, or the prefix with this many bits of an IPv4 address.
    pub(super) fn push_address(&mut self, address: IpAddr, prefix: Option<u8>) {
        self.push_with(|text| {
            match address {
                IpAddr::V4(address) => push_v4(address.octets(), text),
                IpAddr::V6(_) => push(text, format_args!("{address}")),
            }
            if let Some(bits) = prefix {
                let times = if address.is_ipv4() { 1 } else { 2 };
                push(text, format_args!("/{}", times * u16::from(bits)));
            }
            true
        });
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.missing.clear();
    }
}

/// Type and response code of a packet's first DNS message.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Question {
    pub(super) kind: u16,
    /// Of a response.
    pub(super) response_code: Option<u8>,
}

impl Question {
    #[inline]
    pub(super) fn of(message: &DnsMessage<'_>) -> Self {
        Self {
            kind: message.question_type,
            response_code: message.is_response.then_some(message.response_code),
        }
    }
}

impl ExportRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    pub(super) fn push_community_id(&mut self, addresses: Addresses, protocol: u8, upper: Upper) {
        self.community_id.push_with(|text| push_community_id(addresses, protocol, upper, text));
    }

    /// Appends a DNS message or its absence; the name is in wire form.
    pub(super) fn push_question(&mut self, question: Option<(Question, &[u8])>) {
        self.dns_type.push(question.map(|(question, _)| question.kind));
        self.dns_rcode.push(question.and_then(|(question, _)| question.response_code));
        self.domain.push_with(|text| question.map(|(_, name)| push_dotted(name, text)).is_some());
    }

    /// Removes all and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.start_ns.clear();
        self.src.clear();
        self.dst.clear();
        self.src_port.clear();
        self.dst_port.clear();
        self.proto.clear();
        self.packets.clear();
        self.bytes.clear();
        self.tcp_flags.clear();
        self.vlan.clear();
        self.domain.clear();
        self.dns_type.clear();
        self.dns_rcode.clear();
        self.community_id.clear();
        self.left.clear();
    }
}

/// The decimal digits of every byte, and how many they are.
static DIGITS: [([u8; 3], u8); 256] = {
    let mut table = [([0; 3], 0); 256];
    let mut byte = 0;
    while byte < 256 {
        let (a, b, c) = (byte / 100, byte / 10 % 10, byte % 10);
        table[byte] = match (a, b) {
            (0, 0) => ([b'0' + c as u8, 0, 0], 1),
            (0, _) => ([b'0' + b as u8, b'0' + c as u8, 0], 2),
            _ => ([b'0' + a as u8, b'0' + b as u8, b'0' + c as u8], 3),
        };
        byte += 1;
    }
    table
};

/// Appends an IPv4 address. It is written for every packet, so it does without formatting.
fn push_v4(address: [u8; 4], text: &mut String) {
    let mut buffer = [b'.'; 16];
    let mut end = 0;
    for byte in address {
        let (digits, length) = DIGITS[usize::from(byte)];
        buffer[end..end + 3].copy_from_slice(&digits);
        end += usize::from(length);
        buffer[end] = b'.';
        end += 1;
    }
    text.push_str(str::from_utf8(&buffer[..end - 1]).expect("digits and dots"));
}

fn push(text: &mut String, words: fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a String takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    proptest! {
        #[test]
        fn addresses_are_written_as_everywhere(address: [u8; 4]) {
            let mut text = String::new();
            push_v4(address, &mut text);
            prop_assert_eq!(text, Ipv4Addr::from(address).to_string());
        }
    }

    #[test]
    fn what_is_missing_is_not_what_is_empty() {
        let mut rows = ExportRows::default();
        let question = Question { kind: 1, response_code: None };
        rows.push_question(Some((question, b"\x01a\x02bc")));
        rows.push_question(None);
        rows.push_question(Some((question, b"")));
        let names = (0..3).map(|row| rows.domain.get(row));
        assert_eq!(names.collect::<Vec<_>>(), [Some("a.bc"), None, Some(".")]);
        assert_eq!(rows.dns_type, [Some(1), None, Some(1)]);
    }
}
