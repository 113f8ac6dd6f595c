//! From what a person writes to the digests of an element, or of some of its attributes.

use super::{ElementColumns, ElementKind, ElementRule, Extractor};
use crate::decode::{Addresses, Headers, NAME_MAX, labels_from_text};
use crate::hashing::{Digest, Digester};
use std::net::IpAddr;

/// A question for an element: values separated by commas, `*` for any.
///
/// ```text
///     10.0.0.1,10.0.0.2                      host pair
///     10.0.0.1,10.0.0.2,6,1234,80            flow
///     192.0.2.1,192.0.2.53,www.example.com   DNS triple
///     10.0.0.1,*                             a source with any destination
/// ```
///
/// The digests come from the code that makes those of packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElementQuery {
    /// An element is asked for if it has one of these patterns: one, or both directions where
    /// direction does not count and the order of the ends is not known.
    pub patterns: Vec<QueryPattern>,
}

/// Digests of the values given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueryPattern {
    /// Of the whole element, if all attributes are given.
    pub whole: Option<Digest>,
    /// Of each attribute that is given.
    pub attributes: Vec<Option<Digest>>,
}

/// What is wrong with a question; one sentence.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

/// The values of a question.
#[derive(Clone, Debug, Default)]
struct Values {
    ends: [Option<IpAddr>; 2],
    protocol: Option<u8>,
    ports: [Option<u16>; 2],
    name: Option<Vec<u8>>,
}

impl ElementQuery {
    /// Reads a question for elements of this rule, whose digests have this seed.
    ///
    /// # Errors
    ///
    /// Too few or too many values, a value that is none, addresses of two families.
    pub fn parse(text: &str, rule: &ElementRule, digester: Digester) -> Result<Self, QueryError> {
        let values = Values::parse(text, rule.kind)?;
        // Attributes and no bytes.
        let extractor = Extractor::new(rule.clone(), &Headers::default(), digester, true, false);
        let given = values.given(rule.kind);
        if given.iter().all(|&is| is) || !rule.undirected {
            return Ok(Self { patterns: vec![values.pattern(rule, &extractor, &given)] });
        }
        // Not all is given: the ends are put in order here, or asked for in both orders.
        let directed = ElementRule { undirected: false, ..rule.clone() };
        let extractor =
            Extractor::new(directed.clone(), &Headers::default(), digester, true, false);
        let turned = values.turned();
        let orders = match values.ends {
            [Some(a), Some(b)] if a < b => vec![values],
            [Some(a), Some(b)] if a > b => vec![turned],
            _ => vec![values, turned],
        };
        let patterns = orders
            .iter()
            .map(|values| values.pattern(&directed, &extractor, &values.given(rule.kind)))
            .collect();
        Ok(Self { patterns })
    }
}

impl Values {
    fn parse(text: &str, kind: ElementKind) -> Result<Self, QueryError> {
        let names = kind.attributes();
        let fields: Vec<&str> = match kind {
            // A name may have commas.
            ElementKind::Dns => text.splitn(names.len(), ',').collect(),
            _ => text.split(',').collect(),
        };
        if fields.len() != names.len() {
            return Err(QueryError(format!(
                "`{text}` has {} of the values {} that make one of the {}; separate them by commas, with * for any",
                fields.len(),
                names.join(","),
                kind.plural()
            )));
        }
        let mut values = Self::default();
        for (&name, field) in names.iter().zip(fields) {
            let field = field.trim();
            if field == "*" {
                continue;
            }
            match name {
                "src" => values.ends[0] = Some(address(field)?),
                "dst" => values.ends[1] = Some(address(field)?),
                "proto" => values.protocol = Some(protocol(field)?),
                "src_port" => values.ports[0] = Some(port(field)?),
                "dst_port" => values.ports[1] = Some(port(field)?),
                _ => {
                    let mut buffer = [0; NAME_MAX];
                    let labels =
                        labels_from_text(field.as_bytes(), &mut buffer).ok_or_else(|| {
                            QueryError(format!(
                                "`{field}` is no domain name, nor * for any; www.example.com is one"
                            ))
                        })?;
                    values.name = Some(labels.to_vec());
                }
            }
        }
        match values.ends {
            [Some(a), Some(b)] if a.is_ipv4() != b.is_ipv4() => Err(QueryError(format!(
                "{a} and {b} are of different families, so no packet has both; ask for two IPv4 or two IPv6 addresses"
            ))),
            _ => Ok(values),
        }
    }

    /// The same with source and destination exchanged.
    fn turned(&self) -> Self {
        let ([a, b], [p, q]) = (self.ends, self.ports);
        Self { ends: [b, a], ports: [q, p], ..self.clone() }
    }

    /// Which attributes are given, in the kind's order.
    fn given(&self, kind: ElementKind) -> Vec<bool> {
        let is_given = |name: &&str| match *name {
            "src" => self.ends[0].is_some(),
            "dst" => self.ends[1].is_some(),
            "proto" => self.protocol.is_some(),
            "src_port" => self.ports[0].is_some(),
            "dst_port" => self.ports[1].is_some(),
            _ => self.name.is_some(),
        };
        kind.attributes().iter().map(is_given).collect()
    }

    /// The digests of an element with these values, and zeros where any will do, as far as its
    /// attributes are given.
    fn pattern(&self, rule: &ElementRule, extractor: &Extractor, given: &[bool]) -> QueryPattern {
        let addresses = match self.ends {
            [Some(IpAddr::V6(a)), b] => v6(Some(IpAddr::V6(a)), b),
            [a, Some(IpAddr::V6(b))] => v6(a, Some(IpAddr::V6(b))),
            [a, b] => {
                let octets = |end| match end {
                    Some(IpAddr::V4(address)) => address.octets(),
                    _ => [0; 4],
                };
                Addresses::V4 { source: octets(a), destination: octets(b) }
            }
        };
        let mut columns = ElementColumns::default();
        match rule.kind {
            ElementKind::HostPair => extractor.push_pair(addresses, &mut columns),
            ElementKind::Source | ElementKind::Destination => {
                extractor.push_host(addresses, &mut columns);
            }
            ElementKind::Flow => {
                let ports = self.ports.map(Option::unwrap_or_default);
                let protocol = self.protocol.unwrap_or_default();
                extractor.push_flow(addresses, protocol, (ports[0], ports[1]), &mut columns);
            }
            ElementKind::Dns => {
                let name = self.name.as_deref().unwrap_or_default();
                extractor.push_dns(addresses, name, &mut columns);
            }
        }
        let attributes = columns.attributes.iter().zip(given);
        QueryPattern {
            whole: given.iter().all(|&is| is).then(|| columns.digests[0]),
            attributes: attributes.map(|(&digest, &is)| is.then_some(digest)).collect(),
        }
    }
}

fn v6(source: Option<IpAddr>, destination: Option<IpAddr>) -> Addresses {
    let octets = |end| match end {
        Some(IpAddr::V6(address)) => address.octets(),
        _ => [0; 16],
    };
    Addresses::V6 { source: octets(source), destination: octets(destination) }
}

fn address(text: &str) -> Result<IpAddr, QueryError> {
    text.parse().map_err(|_| {
        QueryError(format!(
            "`{text}` is no IP address, nor * for any; 192.0.2.1 and 2001:db8::1 are addresses"
        ))
    })
}

fn port(text: &str) -> Result<u16, QueryError> {
    text.parse().map_err(|_| {
        QueryError(format!("`{text}` is no port from 0 to 65535, nor * for any; 443 is one"))
    })
}

fn protocol(text: &str) -> Result<u8, QueryError> {
    match text {
        "icmp" => Ok(1),
        "tcp" => Ok(6),
        "udp" => Ok(17),
        _ => text.parse().map_err(|_| {
            QueryError(format!(
                "`{text}` is no protocol from 0 to 255, nor * for any; 6 and tcp are the same one"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: ElementKind, undirected: bool, text: &str) -> Result<ElementQuery, String> {
        let rule = ElementRule { kind, undirected, ..ElementRule::default() };
        ElementQuery::parse(text, &rule, Digester::new(3)).map_err(|error| error.to_string())
    }

    /// The encodings of the head of `extract.rs`, written out.
    #[test]
    fn digests_are_those_of_the_published_encoding() {
        let digest = |bytes: &[u8]| Digester::new(3).digest(bytes);
        let query = parse(ElementKind::HostPair, false, "10.0.0.1, 10.0.0.2").unwrap();
        let expected = QueryPattern {
            whole: Some(digest(&[4, 10, 0, 0, 1, 10, 0, 0, 2])),
            attributes: vec![Some(digest(&[10, 0, 0, 1])), Some(digest(&[10, 0, 0, 2]))],
        };
        assert_eq!(query.patterns, [expected]);
        let query = parse(ElementKind::Flow, false, "*,::1,udp,*,53").unwrap();
        let mut loopback = [0; 16];
        loopback[15] = 1;
        let expected = QueryPattern {
            whole: None,
            attributes: vec![
                None,
                Some(digest(&loopback)),
                Some(digest(&[17])),
                None,
                Some(digest(&[0, 53])),
            ],
        };
        assert_eq!(query.patterns, [expected]);
        let query = parse(ElementKind::Dns, false, "1.2.3.4,*,WWW.example").unwrap();
        assert_eq!(query.patterns[0].attributes[2], Some(digest(b"\x03www\x07example")));
        let query = parse(ElementKind::Destination, false, "1.2.3.4").unwrap();
        assert_eq!(query.patterns[0].whole, Some(digest(&[4, 1, 2, 3, 4])));
    }

    #[test]
    fn without_direction_both_orders_are_one() {
        for (a, b) in [
            ("1.1.1.1,2.2.2.2,6,9,8", "2.2.2.2,1.1.1.1,6,8,9"),
            ("1.1.1.1,2.2.2.2,*,9,8", "2.2.2.2,1.1.1.1,*,8,9"),
        ] {
            let kind = ElementKind::Flow;
            assert_eq!(parse(kind, true, a), parse(kind, true, b));
            assert_ne!(parse(kind, false, a), parse(kind, false, b));
        }
        let query = parse(ElementKind::HostPair, true, "1.1.1.1,*").unwrap();
        let turned = parse(ElementKind::HostPair, false, "*,1.1.1.1").unwrap();
        let straight = parse(ElementKind::HostPair, false, "1.1.1.1,*").unwrap();
        assert_eq!(query.patterns, [straight.patterns, turned.patterns].concat());
    }

    #[test]
    fn errors_are_sentences_that_show_the_way() {
        for (kind, text, words) in [
            (ElementKind::HostPair, "1.1.1.1", "src,dst"),
            (ElementKind::HostPair, "1.1.1.1,2.2.2.2,3.3.3.3", "3 of"),
            (ElementKind::HostPair, "1.1.1.1,", "`` is no IP address"),
            (ElementKind::HostPair, "1.1.1.1,x", "192.0.2.1"),
            (ElementKind::HostPair, "1.1.1.1,::1", "families"),
            (ElementKind::Flow, "*,*,tpc,*,*", "protocol"),
            (ElementKind::Flow, "*,*,*,*,65536", "443"),
            (ElementKind::Dns, "*,*,a..b", "www.example.com"),
        ] {
            let error = parse(kind, false, text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
