//! Rows by column: what goes to a writer.

use crate::decode::{Addresses, DnsMessage, push_address, push_dotted};
use crate::flows::{Upper, push_community_id};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::Range;

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

named_enum! {
    /// Why an element left its slice's table.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Left {
        /// Its slice was closed: it has all packets.
        Slice = "slice",
        /// The memory was full: another row of the element may follow.
        Memory = "memory",
        /// A packet that came after its slice was closed: a separate row.
        Late = "late",
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
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (!self.missing[index]).then(|| &self.text[start..self.ends[index] as usize])
    }

    /// Returns the end of each text.
    #[doc(hidden)]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the texts of these rows one after the other, where each of them ends there, and
    /// whether it is missing.
    #[doc(hidden)]
    pub fn part(&self, rows: Range<usize>) -> (&str, impl Iterator<Item = u32>, &[bool]) {
        let end_before = |row: usize| row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let (start, end) = (end_before(rows.start), end_before(rows.end));
        let ends = self.ends[rows.clone()].iter().map(move |end| end - start);
        (&self.text[start as usize..end as usize], ends, &self.missing[rows])
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
            push_address(address, text);
            if let Some(bits) = prefix {
                let times = if address.is_ipv4() { 1 } else { 2 };
                let bits = times * u16::from(bits);
                write!(text, "/{bits}").expect("a String takes everything");
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
    /// Response code, if it is a response.
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
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Returns whether it is empty.
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

#[cfg(test)]
mod tests {
    use super::*;

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
