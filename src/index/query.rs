//! A query of an index: any of addresses, ports, a domain and a range of time.

use super::IndexError;
use super::elements::{self, Family, PortOf};
use super::lists::{Attribute, Wanted};
use super::record::{Ends, Record, reversed_labels};
use crate::decode::{NAME_MAX, labels_from_text};
use crate::hashing::Digest;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address, or a prefix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// Returns whether the address is one of them.
    #[doc(hidden)]
    pub fn contains(self, address: IpAddr) -> bool {
        // Families differ, and V4 comes before V6 in the order of `IpAddr`.
        self.first <= address && address <= self.last
    }

    fn exact(self) -> Option<IpAddr> {
        (self.first == self.last).then_some(self.first)
    }

    fn wanted(self) -> Wanted {
        let first = address_bytes(self.first);
        Wanted {
            attribute: Attribute::Address,
            length: Some(first.len()),
            first,
            last: address_bytes(self.last),
        }
    }
}

fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no address and no prefix; 192.0.2.1, 10.0.0.0/8 and 2001:db8::/32 work"
            )
        };
        let parts = text.split_once('/');
        let (address, length) = parts.map_or((text, None), |(address, of)| (address, Some(of)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |length: &str| length.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            None => Some(bits),
            Some(length) => length.parse().ok().filter(|&of| of <= bits && is_number(length)),
        };
        let length = length.ok_or_else(wrong)?;
        let [first, last] = match address {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(length).unwrap_or(0);
                let first = address.to_bits() & !host;
                [first, first | host].map(|bits| Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(length).unwrap_or(0);
                let first = address.to_bits() & !host;
                [first, first | host].map(|bits| Ipv6Addr::from_bits(bits).into())
            }
        };
        Ok(Self { first, last })
    }
}

/// A name, or all names below a domain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DomainRange {
    /// In wire form.
    name: Vec<u8>,
    /// Whether the names below it are meant, without the name itself.
    below: bool,
}

impl DomainRange {
    /// Returns whether a name in wire form is one of them.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        if !self.below {
            return name == self.name;
        }
        let (name, domain) = (reversed_labels(name), reversed_labels(&self.name));
        // Whole labels, since each begins with its length.
        name.len() > domain.len() && name.starts_with(&domain)
    }

    fn digest(&self) -> Digest {
        if self.below { elements::below(&self.name) } else { elements::domain(&self.name) }
    }

    fn wanted(&self) -> Wanted {
        let value = reversed_labels(&self.name);
        Wanted {
            length: (!self.below).then_some(value.len()),
            ..Wanted::value(Attribute::Domain, value)
        }
    }
}

impl FromStr for DomainRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let mut buffer = [0; NAME_MAX];
        // Elsewhere a star would be an ordinary character, which is never meant.
        let labels =
            (!name.contains('*')).then(|| labels_from_text(name.as_bytes(), &mut buffer)).flatten();
        match labels {
            Some(labels) if !(name.is_empty() || below && labels.is_empty()) => {
                Ok(Self { name: labels.to_vec(), below })
            }
            _ => Err(format!(
                "`{text}` is no domain name; www.example.com is one, and *.example.com is all below example.com"
            )),
        }
    }
}

/// A query. Conditions that are `None` match everything.
///
/// A flow matches if packets in either of its directions match and its time overlaps the range. With a
/// domain the answers are DNS records: `src` is the client, `dst` the server, and ports are those of
/// the server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IndexQuery {
    /// Sender.
    pub src: Option<AddressRange>,
    /// Receiver.
    pub dst: Option<AddressRange>,
    /// Either of them.
    pub host: Option<AddressRange>,
    /// Port of the receiver.
    pub dst_port: Option<u16>,
    /// Port of either.
    pub port: Option<u16>,
    /// Query name of DNS messages.
    pub domain: Option<DomainRange>,
    /// Earliest time, in nanoseconds since the epoch.
    pub from_ns: Option<i64>,
    /// Latest time (exclusive).
    pub to_ns: Option<i64>,
}

/// Values of an element; `None` matches any.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Route {
    pub(super) family: Family,
    pub(super) attributes: [Option<Digest>; 3],
}

impl Route {
    /// Returns whether filters can be asked for it.
    pub(super) fn knows_something(&self) -> bool {
        self.attributes.iter().any(Option::is_some)
    }
}

impl IndexQuery {
    /// Checks the query.
    ///
    /// # Errors
    ///
    /// No attribute is given, or the range of time is empty.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        let addresses = [self.src, self.dst, self.host].iter().any(Option::is_some);
        let ports = self.dst_port.is_some() || self.port.is_some();
        if !addresses && !ports && self.domain.is_none() {
            return Err(IndexError::Plan(
                "a search needs something to look for: --src, --dst, --host, --dst-port, --port or --domain, such as --host 10.1.2.3".into(),
            ));
        }
        if let (Some(from), Some(to)) = (self.from_ns, self.to_ns)
            && from >= to
        {
            return Err(IndexError::Plan(
                "--to is the end of the time searched and must be later than --from".into(),
            ));
        }
        Ok(())
    }

    /// Returns whether the record is an answer.
    pub(crate) fn takes(&self, record: &Record) -> bool {
        let domain = match (&self.domain, record.domain.as_deref()) {
            (None, None) => true,
            (Some(domain), Some(name)) => domain.contains(name),
            _ => false,
        };
        domain
            && self.takes_times(record.start_ns, record.end_ns)
            && record.directions().any(|ends| self.takes_ends(ends))
    }

    /// Returns whether the ends of a packet or DNS message match.
    pub(super) fn takes_ends(&self, ends: Ends) -> bool {
        let contains = |range: Option<AddressRange>, address| {
            range.is_none_or(|range| range.contains(address))
        };
        // A DNS record has only the server's port.
        let sender_port = self.domain.is_none().then_some(ends.src_port);
        contains(self.src, ends.src)
            && contains(self.dst, ends.dst)
            && (contains(self.host, ends.src) || contains(self.host, ends.dst))
            && self.dst_port.is_none_or(|port| port == ends.dst_port)
            && self.port.is_none_or(|port| port == ends.dst_port || Some(port) == sender_port)
    }

    /// Returns whether the time from `start_ns` to `end_ns`, both inclusive, overlaps the range.
    pub(super) fn takes_times(&self, start_ns: i64, end_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| end_ns >= from) && self.to_ns.is_none_or(|to| start_ns < to)
    }

    /// Returns what filters are asked: an answer has an element of one of these routes.
    pub(super) fn routes(&self) -> Vec<Route> {
        let exact = |range: Option<AddressRange>| range.and_then(AddressRange::exact);
        let ends = (exact(self.src), exact(self.dst));
        let ends = match exact(self.host) {
            None => vec![ends],
            Some(host) => {
                vec![(Some(ends.0.unwrap_or(host)), ends.1), (ends.0, Some(ends.1.unwrap_or(host)))]
            }
        };
        let port = |of| move |port| elements::port(of, port);
        let received = self.dst_port.or(self.port).map(port(PortOf::Receiver));
        let sent = self.port.filter(|_| self.dst_port.is_none()).map(port(PortOf::Sender));
        let mut routes = Vec::new();
        for (src, dst) in ends {
            let (src, dst) = (src.map(elements::address), dst.map(elements::address));
            let mut route = |family, attributes| routes.push(Route { family, attributes });
            if let Some(domain) = &self.domain {
                route(Family::Dns, [src, dst, Some(domain.digest())]);
                continue;
            }
            route(Family::Flow, [src, dst, received]);
            if sent.is_some() {
                // A sender's port is the receiver's in the reverse direction, if there was one.
                route(Family::Flow, [dst, src, received]);
                route(Family::Flow, [src, dst, sent]);
            }
        }
        routes
    }

    /// Returns the inverted lists that all contain an answer.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let addresses = [self.src, self.dst, self.host].into_iter().flatten();
        let ports = [self.dst_port, self.port].into_iter().flatten();
        let port = |port: u16| Wanted::value(Attribute::Port, port.to_be_bytes().to_vec());
        addresses
            .map(AddressRange::wanted)
            .chain(ports.map(port))
            .chain(self.domain.as_ref().map(DomainRange::wanted))
            .collect()
    }
}
