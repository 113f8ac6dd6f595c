//! Tests of records of logs: they have addresses, perhaps ports and a DNS question, and no bytes.

use super::dns_test::{DnsTest, KnownMessage};
use super::evaluate::{Subject, ends};
use super::program::{Header, Networks, Test};
use crate::decode::{NAME_MAX, dns_message, labels_from_text};
use crate::trace::{self, LogBatch, LogContent, LogQuestion};
use std::net::IpAddr;

/// A record.
pub(super) struct LogEntry<'a> {
    pub(super) log: LogBatch<'a>,
    pub(super) entry: &'a trace::LogEntry,
}

impl LogEntry<'_> {
    fn is_one_of(&self, networks: Networks) -> bool {
        let is = |address: IpAddr| {
            networks.has(if address.is_ipv4() { Networks::IPV4 } else { Networks::IPV6 })
        };
        let known = [self.entry.source, self.entry.destination];
        let mut known = known.into_iter().flatten().peekable();
        known.peek().is_some() && known.all(is)
    }

    /// Whether the record is a DNS message that meets a test.
    fn dns(&self, test: &DnsTest) -> Option<bool> {
        let LogContent::Dns { question, is_response } = &self.entry.content else {
            return Some(false);
        };
        let unknown =
            KnownMessage { is_response: *is_response, question_type: None, code: None, name: None };
        match question {
            LogQuestion::None => test.is(unknown),
            LogQuestion::Name(name) => {
                let mut buffer = [0; NAME_MAX];
                let name = labels_from_text(self.log.at(name), &mut buffer);
                test.is(KnownMessage { name, ..unknown })
            }
            LogQuestion::Message(message) | LogQuestion::Other(message) => {
                let is_own = matches!(question, LogQuestion::Message(_));
                let mut answer = None;
                let read = dns_message(self.log.at(message), |message| {
                    let name = KnownMessage { name: Some(message.name), ..unknown };
                    let all = KnownMessage { is_response: *is_response, ..message.into() };
                    answer = test.is(if is_own { all } else { name });
                });
                if read.is_ok() { answer } else { test.is(unknown) }
            }
        }
    }
}

impl Subject for LogEntry<'_> {
    fn test(&mut self, test: &Test) -> Option<bool> {
        let trace::LogEntry { source, destination, transport, .. } = *self.entry;
        match *test {
            Test::Dns(ref test) => self.dns(test),
            Test::Network(networks) => Some(self.is_one_of(networks)),
            Test::Protocol { networks, number } => {
                let (protocol, _, _) = transport?;
                Some(self.is_one_of(networks) && u32::from(protocol) == number)
            }
            Test::Address4 { networks, direction, network, mask } => {
                let end = |address: Option<IpAddr>| match address? {
                    IpAddr::V4(address) => {
                        Some(networks.has(Networks::IPV4) && address.to_bits() & mask == network)
                    }
                    IpAddr::V6(_) => Some(false),
                };
                ends(direction, || end(source), || end(destination))
            }
            Test::Address6 { direction, network, mask } => {
                let end = |address: Option<IpAddr>| match address? {
                    IpAddr::V6(address) => Some(address.to_bits() & mask == network),
                    IpAddr::V4(_) => Some(false),
                };
                ends(direction, || end(source), || end(destination))
            }
            Test::Port { protocols, direction, first, last } => {
                let (protocol, source, destination) = transport?;
                let end = |port| Some(first <= port && port <= last);
                let ports = ends(direction, || end(source), || end(destination))?;
                Some(protocols.has(protocol) && ports)
            }
            // It has no bytes.
            _ => None,
        }
    }

    fn length(&self) -> Option<u32> {
        None
    }

    fn has(&mut self, _: Header) -> Option<bool> {
        None
    }

    fn load(&mut self, _: Header, _: u32, _: u8) -> Option<u32> {
        None
    }
}
