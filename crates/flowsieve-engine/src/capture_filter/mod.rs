//! Capture filters: expressions in the language of pcap-filter(7).
//!
//! ```
//! use flowsieve_engine::capture_filter::CaptureFilter;
//! use flowsieve_engine::decode::Tunnel;
//!
//! let filter = CaptureFilter::parse("tcp dst port (80 or 443) and not net 10.0.0.0/8", Tunnel::Outer)?;
//! assert_eq!(filter.text(), "tcp dst port (80 or 443) and not net 10.0.0.0/8");
//!
//! let error = CaptureFilter::parse("tcp.port == 80", Tunnel::Outer).unwrap_err();
//! assert_eq!(error.hint(), Some("The capture filter for this is: tcp port 80"));
//! # Ok::<(), flowsieve_engine::capture_filter::FilterError>(())
//! ```
//!
//! An expression is compiled to a flat list of tests, each of which names the next test for either
//! answer; evaluating it allocates nothing. A test that needs a byte that was not captured ends the
//! evaluation: the packet does not match, whatever the other tests say. `docs/capture-filters.md`
//! describes the language.
//!
//! | file | what it does |
//! |---|---|
//! | `lexer`, `names` | words, numbers, addresses; names that stand for numbers |
//! | `parse` | terms, `and`, `or`, `not`, parentheses |
//! | `qualifiers`, `qualified`, `value` | protocol, direction, kind of value; addresses, ports, protocols |
//! | `arithmetic` | comparisons of numbers |
//! | `dns`, `dns_test` | tests of DNS messages, which are ours |
//! | `program`, `evaluate` | the list of tests; running it |
//! | `packet`, `log_entry` | tests of a packet; tests of a record of a log |
//! | `error`, `display_hint` | what is wrong, and where; display filters as capture filters |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod arithmetic;
mod display_hint;
mod dns;
mod dns_test;
mod error;
mod evaluate;
mod lexer;
mod log_entry;
mod names;
mod packet;
mod parse;
mod program;
mod qualified;
mod qualifiers;
mod value;

#[cfg(test)]
mod tests;

pub use error::FilterError;
#[doc(hidden)]
pub use names::port as port_of_name;

use crate::decode::{DNS_PORT, Tunnel};
use crate::trace::{self, LinkType, LogBatch, PacketRef};
use dns_test::DnsTest;
use log_entry::LogEntry;
use packet::Packet;
use program::{ACCEPT, Program, Test};
use std::sync::Arc;

/// A compiled capture filter. A clone shares the program.
#[derive(Clone, Debug)]
pub struct CaptureFilter {
    program: Arc<Program>,
    text: Arc<str>,
    tunnel: Tunnel,
    /// Where DNS messages are looked for.
    dns_ports: Arc<[u16]>,
}

impl CaptureFilter {
    /// Compiles an expression; an empty one matches every packet. With [`Tunnel::Inner`] network
    /// and transport layer are those of the innermost IP header.
    ///
    /// # Errors
    ///
    /// The expression is invalid; the error shows where.
    pub fn parse(expression: &str, tunnel: Tunnel) -> Result<Self, FilterError> {
        let program = parse::parse(expression).map_err(|problem| {
            let problem = display_hint::problem(expression, &problem).unwrap_or(problem);
            FilterError { expression: expression.to_owned(), problem }
        })?;
        Ok(Self {
            program: Arc::new(program),
            text: expression.into(),
            tunnel,
            dns_ports: [DNS_PORT].into(),
        })
    }

    /// Looks for DNS messages on these ports besides 53.
    #[doc(hidden)]
    #[must_use]
    pub fn with_dns_ports(self, ports: &[u16]) -> Self {
        Self { dns_ports: [&[DNS_PORT], ports].concat().into(), ..self }
    }

    /// Returns the expression.
    #[doc(hidden)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a packet matches, given its captured bytes, which begin with the header of `link`,
    /// and its length on the wire.
    #[inline]
    #[doc(hidden)]
    pub fn matches(&self, link: LinkType, frame: &[u8], wire: u32) -> bool {
        self.program.run(&mut Packet::new(link, frame, wire, self.tunnel, &self.dns_ports))
    }

    /// Returns whether the filter tests types or response codes of DNS messages.
    pub(crate) fn asks_dns_codes(&self) -> bool {
        let asks = |test: &Test| matches!(test, Test::Dns(DnsTest::Type(_) | DnsTest::Code(_)));
        self.program.ops.iter().any(|op| asks(&op.test))
    }

    /// Whether a record of a log matches. It has addresses, perhaps ports and a DNS question; tests
    /// of bytes or of the length do not match.
    pub(crate) fn matches_entry(&self, log: LogBatch<'_>, entry: &trace::LogEntry) -> bool {
        self.program.run(&mut LogEntry { log, entry })
    }

    /// Deselects the packets of a batch that do not match; they point into `bytes`.
    #[doc(hidden)]
    pub fn choose(&self, bytes: &[u8], packets: &[PacketRef], chosen: &mut [bool]) {
        let program = &*self.program;
        // The test is looked up once for each batch, and not for each packet.
        let only = if let [op] = &program.ops[..] { Some(op) } else { None };
        let wanted = Some(only.is_some_and(|op| op.yes == ACCEPT));
        match only.map(|op| &op.test) {
            Some(&Test::Network(networks)) => {
                self.choose_if(bytes, packets, chosen, |packet| {
                    packet.is_one_of(networks) == wanted
                });
            }
            Some(&Test::Address4 { networks, direction, network, mask }) => {
                self.choose_if(bytes, packets, chosen, |packet| {
                    packet.address4(networks, direction, network, mask) == wanted
                });
            }
            Some(&Test::Address6 { direction, network, mask }) => {
                self.choose_if(bytes, packets, chosen, |packet| {
                    packet.address6(direction, network, mask) == wanted
                });
            }
            Some(&Test::Port { protocols, direction, first, last }) => {
                self.choose_if(bytes, packets, chosen, |packet| {
                    packet.port(protocols, direction, first, last) == wanted
                });
            }
            _ => self.choose_if(bytes, packets, chosen, |packet| program.run(packet)),
        }
    }

    /// Selects without a branch on bits that are random in traffic.
    #[inline]
    fn choose_if(
        &self,
        bytes: &[u8],
        packets: &[PacketRef],
        chosen: &mut [bool],
        matches: impl Fn(&mut Packet<'_>) -> bool,
    ) {
        for (packet, chosen) in packets.iter().zip(chosen) {
            let frame = &bytes[packet.start as usize..][..packet.captured as usize];
            let (link, wire) = (packet.link, packet.wire);
            let mut packet = Packet::new(link, frame, wire, self.tunnel, &self.dns_ports);
            *chosen &= matches(&mut packet);
        }
    }
}
