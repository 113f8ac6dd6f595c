//! Who sends packets to whom, by prefixes of addresses: an origin-destination matrix.
//!
//! Counted exactly, in the order of the trace, in a table of bounded size; packets of pairs that
//! find it full are counted together, and the result says so.

use super::slice_pipeline::Observer;
use crate::decode::Addresses;
use crate::elements::{ElementBatch, prefixes};
use crate::memory::{MEMORY_REFUSED, can_allocate};
use ahash::RandomState;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::net::IpAddr;
use std::ops::Range;

/// Pairs of prefixes that the table holds: about 100 MiB.
const MOST_PAIRS: usize = 1 << 20;

/// Additional memory per pair, in bytes, to sort, anonymize or draw the table.
const LISTED_BYTES: usize = 160;

/// Packets from each origin to each destination.
#[derive(Debug)]
pub struct Traffic {
    /// Leading bits of an IPv4 address that make its prefix.
    prefix: u8,
    limit: usize,
    pairs: HashMap<Addresses, u64, RandomState>,
    beyond: u64,
}

/// Packets from one origin to one destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrafficPair {
    /// First addresses of both prefixes; `None` for the sum of all pairs beyond the table's limit.
    pub addresses: Option<Addresses>,
    /// Leading bits of an IPv4 address that make a prefix.
    pub bits: u8,
    /// Packets.
    pub packets: u64,
}

impl TrafficPair {
    /// Returns the names of origin and destination, such as `10.0.1.0/24`.
    pub fn names(&self) -> [String; 2] {
        let name = |address: IpAddr| prefix_name(address, self.bits);
        let ends = self.addresses.map(Addresses::ends);
        ends.map_or_else(|| ["other", "other"].map(str::to_owned), |(a, b)| [name(a), name(b)])
    }
}

/// Formats a prefix such as `10.0.1.0/24`. It has `bits` bits for IPv4 and twice as many for IPv6.
pub fn prefix_name(address: IpAddr, bits: u8) -> String {
    match (address, bits) {
        (IpAddr::V4(_), 32) => address.to_string(),
        (IpAddr::V4(_), bits) => format!("{address}/{bits}"),
        (IpAddr::V6(_), bits) => format!("{address}/{}", 2 * bits),
    }
}

impl Traffic {
    /// Returns an empty matrix of prefixes of this many bits, 1 to 32, for IPv4; those for IPv6
    /// have twice as many, as a site's network is usually a /24 there and a /48 here.
    pub fn new(prefix: u8) -> Self {
        Self::with_limit(prefix, MOST_PAIRS)
    }

    fn with_limit(prefix: u8, limit: usize) -> Self {
        Self { prefix: prefix.clamp(1, 32), limit, pairs: HashMap::default(), beyond: 0 }
    }

    /// Adds packets; those without addresses are left out.
    fn add(&mut self, packets: &[Option<Addresses>]) {
        for addresses in packets.iter().flatten() {
            let pair = prefixes(*addresses, Some(self.prefix));
            if let Some(packets) = self.pairs.get_mut(&pair) {
                *packets += 1;
            } else if self.pairs.len() < self.limit && self.pairs.try_reserve(1).is_ok() {
                self.pairs.insert(pair, 1);
            } else {
                self.beyond += 1;
            }
        }
    }

    /// Leading bits of IPv4 and of IPv6 addresses that make a prefix.
    pub fn bits(&self) -> (u8, u8) {
        (self.prefix, 2 * self.prefix)
    }

    /// Packets of pairs for which there was no room.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns all pairs, those with most packets first; equal ones by their addresses.
    ///
    /// # Panics
    ///
    /// The system refuses the memory.
    pub fn pairs(&self) -> Vec<TrafficPair> {
        self.check_memory();
        let pair = |(&addresses, &packets): (&Addresses, &u64)| TrafficPair {
            addresses: Some(addresses),
            bits: self.prefix,
            packets,
        };
        let mut pairs: Vec<TrafficPair> = self.pairs.iter().map(pair).collect();
        pairs.sort_unstable_by_key(|pair| (Reverse(pair.packets), pair.addresses));
        let beyond = TrafficPair { addresses: None, bits: self.prefix, packets: self.beyond };
        pairs.extend((self.beyond > 0).then_some(beyond));
        pairs
    }

    /// Panics if the system refuses the memory to process the pairs.
    fn check_memory(&self) {
        let bytes = self.pairs.len() * LISTED_BYTES;
        assert!(can_allocate(bytes as u64), "{MEMORY_REFUSED}");
    }

    /// Puts other addresses in the place of those that are there. `replace` must keep prefixes,
    /// equal ones and different ones: then pairs stay pairs.
    pub fn replace_addresses(&mut self, mut replace: impl FnMut(Addresses) -> Addresses) {
        self.check_memory();
        let pairs = std::mem::take(&mut self.pairs);
        for (addresses, packets) in pairs {
            let pair = prefixes(replace(addresses), Some(self.prefix));
            *self.pairs.entry(pair).or_default() += packets;
        }
    }
}

impl Observer for Traffic {
    fn observe(&mut self, batch: &ElementBatch, packets: Range<usize>, _elements: Range<usize>) {
        self.add(&batch.addresses[packets]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn v4(source: [u8; 4], destination: [u8; 4]) -> Addresses {
        Addresses::V4 { source, destination }
    }

    fn pairs(traffic: &Traffic) -> Vec<(String, String, u64)> {
        let pairs = traffic.pairs().into_iter();
        let names = |pair: TrafficPair| {
            let [origin, destination] = pair.names();
            (origin, destination, pair.packets)
        };
        pairs.map(names).collect()
    }

    #[test]
    fn addresses_are_grouped_by_prefix() {
        let mut traffic = Traffic::new(24);
        let six = Some(Addresses::V6 {
            source: "2001:db8:1:2::3".parse::<Ipv6Addr>().unwrap().octets(),
            destination: "2001:db8:ffff:8000::".parse::<Ipv6Addr>().unwrap().octets(),
        });
        traffic.add(&[
            Some(v4([10, 0, 0, 1], [10, 0, 1, 1])),
            None,
            Some(v4([10, 0, 0, 255], [10, 0, 1, 9])),
            Some(v4([10, 0, 1, 1], [10, 0, 0, 1])),
            six,
        ]);
        let pair = |a: &str, b: &str, n| (a.to_owned(), b.to_owned(), n);
        assert_eq!(
            pairs(&traffic),
            [
                pair("10.0.0.0/24", "10.0.1.0/24", 2),
                pair("10.0.1.0/24", "10.0.0.0/24", 1),
                pair("2001:db8:1::/48", "2001:db8:ffff::/48", 1),
            ]
        );
        assert_eq!(traffic.beyond(), 0);
    }

    #[test]
    fn whole_addresses_and_single_bits_are_prefixes() {
        let packet = [Some(v4([200, 0, 0, 1], [10, 0, 0, 2]))];
        let name = |bits| {
            let mut traffic = Traffic::new(bits);
            traffic.add(&packet);
            pairs(&traffic).remove(0)
        };
        assert_eq!(name(32), ("200.0.0.1".into(), "10.0.0.2".into(), 1));
        assert_eq!(name(1), ("128.0.0.0/1".into(), "0.0.0.0/1".into(), 1));
    }

    #[test]
    fn a_full_table_says_what_it_left_out() {
        let mut traffic = Traffic::with_limit(32, 2);
        for i in [1, 2, 3, 3, 1, 4] {
            traffic.add(&[Some(v4([10, 0, 0, i], [10, 0, 0, 0]))]);
        }
        assert_eq!(traffic.beyond(), 3);
        let pairs = pairs(&traffic);
        assert_eq!(pairs.iter().map(|pair| pair.2).sum::<u64>(), 6);
        assert_eq!(pairs.last(), Some(&("other".to_owned(), "other".to_owned(), 3)));
    }
}
