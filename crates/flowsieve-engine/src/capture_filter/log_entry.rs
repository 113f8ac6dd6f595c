//! Tests of records of logs: they have addresses and perhaps ports, and no bytes.

use super::evaluate::{Subject, ends};
use super::program::{Header, Networks, Test};
use crate::trace;
use std::net::IpAddr;

/// A record.
#[derive(Debug)]
pub(super) struct LogEntry<'a>(pub(super) &'a trace::LogEntry);

impl LogEntry<'_> {
    fn is_one_of(&self, networks: Networks) -> bool {
        let is = |address: IpAddr| {
            networks.has(if address.is_ipv4() { Networks::IPV4 } else { Networks::IPV6 })
        };
        let known = [self.0.source, self.0.destination];
        let mut known = known.into_iter().flatten().peekable();
        known.peek().is_some() && known.all(is)
    }
}

impl Subject for LogEntry<'_> {
    fn test(&mut self, test: &Test) -> Option<bool> {
        let trace::LogEntry { source, destination, transport, .. } = *self.0;
        match *test {
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
