//! From a question as text to the digests of an element, or of some of its attributes.

use super::headers::HeaderFields;
use super::key::{NO_VLAN, NO_VLAN_TEXT, prefix_v4, prefix_v6};
use super::{Attribute, ElementColumns, ElementKind, ElementRule, Extractor, Field};
use crate::decode::{Headers, NAME_MAX, addresses_of, labels_from_text};
use crate::hashing::{Digest, Digester};
use crate::trace::protocol_number;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// Digest of the whole element, if all attributes are given.
    pub whole: Option<Digest>,
    /// Digest of each attribute that is given.
    pub attributes: Vec<Option<Digest>>,
}

/// Error of a question, as one sentence.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

/// The values of a question, by field of the key.
struct Values {
    kind: ElementKind,
    given: Vec<Option<Value>>,
}

/// The value of a field.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Value {
    Address(IpAddr),
    Number(u16),
    /// Labels.
    Name(Vec<u8>),
}

impl ElementQuery {
    /// Reads a question for elements of this rule, whose digests have this seed.
    ///
    /// # Errors
    ///
    /// Too few or too many values, a value that is none, addresses of two families.
    pub fn parse(text: &str, rule: &ElementRule, digester: Digester) -> Result<Self, QueryError> {
        let values = Values::parse(text, rule.kind)?;
        let extractor = |undirected| {
            let rule = ElementRule { undirected, ..rule.clone() };
            // Attributes and no bytes.
            Extractor::new(rule, &Headers::default(), digester, true, false)
        };
        if values.given.iter().all(Option::is_some) || !rule.undirected {
            return Ok(Self { patterns: vec![values.pattern(&extractor(rule.undirected))] });
        }
        // Not all is given: the ends are put in order here, or asked for in both orders.
        let reversed = values.reversed();
        let ends = [Attribute::Source, Attribute::Destination].map(|end| values.address(end));
        let orders = match ends {
            [Some(a), Some(b)] if a < b => vec![values],
            [Some(a), Some(b)] if a > b => vec![reversed],
            _ => vec![values, reversed],
        };
        let extractor = extractor(false);
        let patterns = orders.iter().map(|values| values.pattern(&extractor)).collect();
        Ok(Self { patterns })
    }
}

impl Values {
    fn parse(text: &str, kind: ElementKind) -> Result<Self, QueryError> {
        let fields = kind.fields();
        let texts = texts(text, fields).ok_or_else(|| {
            QueryError(format!(
                "`{text}` has {} of the values {} that make one of the {}; separate them by commas, with * for any",
                text.split(',').count(),
                kind.attributes().join(","),
                kind.plural()
            ))
        })?;
        let value = |(field, text): (&Field, &str)| match text.trim() {
            "*" => Ok(None),
            text => value(*field, text).map(Some),
        };
        let given = fields.iter().zip(texts).map(value).collect::<Result<_, _>>()?;
        let values = Self { kind, given };
        match [Attribute::Source, Attribute::Destination].map(|end| values.address(end)) {
            [Some(a), Some(b)] if a.is_ipv4() != b.is_ipv4() => Err(QueryError(format!(
                "{a} and {b} are of different families, so no packet has both; ask for two IPv4 or two IPv6 addresses"
            ))),
            _ => Ok(values),
        }
    }

    /// Returns the value of an attribute, if the key has it and it is given.
    fn get(&self, attribute: Attribute) -> Option<&Value> {
        let mut fields = self.kind.fields().iter();
        let number = fields.position(|field| field.attribute == attribute)?;
        self.given[number].as_ref()
    }

    fn address(&self, attribute: Attribute) -> Option<IpAddr> {
        match self.get(attribute)? {
            Value::Address(address) => Some(*address),
            _ => None,
        }
    }

    fn number(&self, attribute: Attribute) -> Option<u16> {
        match self.get(attribute)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The same with source and destination exchanged.
    fn reversed(&self) -> Self {
        let other = |attribute| match attribute {
            Attribute::Source => Attribute::Destination,
            Attribute::Destination => Attribute::Source,
            Attribute::SourcePort => Attribute::DestinationPort,
            Attribute::DestinationPort => Attribute::SourcePort,
            attribute => attribute,
        };
        let fields = self.kind.fields().iter();
        let given = fields.map(|field| self.get(other(field.attribute)).cloned()).collect();
        Self { given, ..*self }
    }

    /// Returns the digests of an element with these values, and zeros where any will do, as far as
    /// its attributes are given.
    fn pattern(&self, extractor: &Extractor) -> QueryPattern {
        let ends = [Attribute::Source, Attribute::Destination].map(|end| self.address(end));
        let is_v6 = ends.iter().flatten().any(IpAddr::is_ipv6);
        let any: IpAddr =
            if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let addresses = addresses_of(ends[0].unwrap_or(any), ends[1].unwrap_or(any));
        let addresses = addresses.expect("both are of one family");
        let number = |attribute| self.number(attribute).unwrap_or_default();
        let name = self.given.iter().flatten().find_map(|value| match value {
            Value::Name(labels) => Some(labels.as_slice()),
            _ => None,
        });
        let mut columns = ElementColumns::default();
        let headers = HeaderFields {
            protocol: number(Attribute::Protocol) as u8,
            ports: (number(Attribute::SourcePort), number(Attribute::DestinationPort)),
            vlan: self.number(Attribute::Vlan),
            name: name.unwrap_or_default(),
            ..HeaderFields::between(addresses)
        };
        extractor.push(&headers, &mut columns);
        let attributes = columns.attributes.iter().zip(&self.given);
        QueryPattern {
            whole: self.given.iter().all(Option::is_some).then(|| columns.digests[0]),
            attributes: attributes
                .map(|(&digest, given)| given.is_some().then_some(digest))
                .collect(),
        }
    }
}

/// Splits off the text of each field; a name may have commas.
fn texts<'a>(text: &'a str, fields: &[Field]) -> Option<Vec<&'a str>> {
    let name = fields.iter().position(|field| field.attribute.is_name());
    let Some(name) = name else {
        let texts: Vec<&str> = text.split(',').collect();
        return (texts.len() == fields.len()).then_some(texts);
    };
    let behind = fields.len() - name - 1;
    let mut texts: Vec<&str> = text.splitn(name + 1, ',').collect();
    let mut rest: Vec<&str> = texts.pop()?.rsplitn(behind + 1, ',').collect();
    rest.reverse();
    texts.append(&mut rest);
    (texts.len() == fields.len()).then_some(texts)
}

fn value(field: Field, text: &str) -> Result<Value, QueryError> {
    Ok(match field.attribute {
        Attribute::Source | Attribute::Destination => Value::Address(address(text, field.prefix)?),
        Attribute::Protocol => {
            let one = "protocol from 0 to 255, nor * for any; 6 and tcp are the same one";
            Value::Number(protocol_number(text, false).ok_or_else(|| no(text, one))?.into())
        }
        Attribute::SourcePort | Attribute::DestinationPort => {
            let one = "port from 0 to 65535, nor * for any; 443 is one";
            Value::Number(text.parse().map_err(|_| no(text, one))?)
        }
        Attribute::Vlan if text == NO_VLAN_TEXT => Value::Number(NO_VLAN),
        Attribute::Vlan => {
            let one = "VLAN from 0 to 4095, none or * for any; 100 is one";
            let vlan = text.parse().ok().filter(|&vlan| vlan < 1 << 12);
            Value::Number(vlan.ok_or_else(|| no(text, one))?)
        }
        Attribute::Domain | Attribute::RegisteredDomain if text.starts_with("*.") => {
            return Err(QueryError(format!(
                "`{text}` stands for many names, and a filter knows each as a whole only; ask for one of them, or for \\{} if the name itself begins with an asterisk",
                text.replacen('*', "042", 1)
            )));
        }
        Attribute::Domain | Attribute::RegisteredDomain => {
            let mut buffer = [0; NAME_MAX];
            let labels = labels_from_text(text.as_bytes(), &mut buffer);
            let one = "domain name, nor * for any; www.example.com is one";
            Value::Name(labels.ok_or_else(|| no(text, one))?.to_vec())
        }
    })
}

/// Parses an address, which the length of a prefix may follow.
fn address(text: &str, prefix: Option<u8>) -> Result<IpAddr, QueryError> {
    let (address, bits) = match (prefix, text.split_once('/')) {
        (Some(_), Some((address, bits))) => (address, Some(bits)),
        _ => (text, None),
    };
    let two = "IP address, nor * for any; 192.0.2.1 and 2001:db8::1 are addresses";
    let address: IpAddr = address.parse().map_err(|_| no(text, two))?;
    let expected = prefix.map(|prefix| u16::from(prefix) * if address.is_ipv4() { 1 } else { 2 });
    match bits.map(|bits| bits.parse().ok()) {
        Some(given) if given != expected => Err(QueryError(format!(
            "`{text}` is no prefix of {} bits, by which elements were counted",
            expected.unwrap_or_default()
        ))),
        _ => Ok(match address {
            IpAddr::V4(address) => prefix_v4(address.octets(), prefix).into(),
            IpAddr::V6(address) => prefix_v6(address.octets(), prefix).into(),
        }),
    }
}

/// Creates the error for a text that is not a value of this kind.
fn no(text: &str, what: &str) -> QueryError {
    QueryError(format!("`{text}` is no {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: ElementKind, undirected: bool, text: &str) -> Result<ElementQuery, String> {
        let rule = ElementRule { kind, undirected, ..ElementRule::default() };
        ElementQuery::parse(text, &rule, Digester::new(3)).map_err(|error| error.to_string())
    }

    /// The encodings of the head of `key.rs`, written out.
    #[test]
    fn digests_are_those_of_the_published_encoding() {
        let digest = |bytes: &[u8]| Digester::new(3).digest(bytes);
        let query = parse(ElementKind::HOST_PAIR, false, "10.0.0.1, 10.0.0.2").unwrap();
        let expected = QueryPattern {
            whole: Some(digest(&[4, 10, 0, 0, 1, 10, 0, 0, 2])),
            attributes: vec![Some(digest(&[10, 0, 0, 1])), Some(digest(&[10, 0, 0, 2]))],
        };
        assert_eq!(query.patterns, [expected]);
        let query = parse(ElementKind::FLOW, false, "*,::1,udp,*,53").unwrap();
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
        let query = parse(ElementKind::DNS, false, "1.2.3.4,*,WWW.example").unwrap();
        assert_eq!(query.patterns[0].attributes[2], Some(digest(b"\x03www\x07example")));
        let query = parse(ElementKind::DESTINATION, false, "1.2.3.4").unwrap();
        assert_eq!(query.patterns[0].whole, Some(digest(&[4, 1, 2, 3, 4])));
    }

    #[test]
    fn protocols_have_numbers_and_the_names_that_logs_give_them() {
        let of = |protocol: &str| parse(ElementKind::FLOW, false, &format!("*,*,{protocol},*,*"));
        for (name, number) in [("tcp", "6"), ("SCTP", "132"), ("icmp6", "58"), ("icmp", "1")] {
            assert_eq!(of(name), of(number));
        }
        assert!(of("tpc").is_err() && of("256").is_err());
    }

    #[test]
    fn without_direction_both_orders_are_one() {
        for (a, b) in [
            ("1.1.1.1,2.2.2.2,6,9,8", "2.2.2.2,1.1.1.1,6,8,9"),
            ("1.1.1.1,2.2.2.2,*,9,8", "2.2.2.2,1.1.1.1,*,8,9"),
        ] {
            let kind = ElementKind::FLOW;
            assert_eq!(parse(kind, true, a), parse(kind, true, b));
            assert_ne!(parse(kind, false, a), parse(kind, false, b));
        }
        let query = parse(ElementKind::HOST_PAIR, true, "1.1.1.1,*").unwrap();
        let turned = parse(ElementKind::HOST_PAIR, false, "*,1.1.1.1").unwrap();
        let straight = parse(ElementKind::HOST_PAIR, false, "1.1.1.1,*").unwrap();
        assert_eq!(query.patterns, [straight.patterns, turned.patterns].concat());
    }

    #[test]
    fn errors_are_sentences_that_show_the_way() {
        for (kind, text, words) in [
            (ElementKind::HOST_PAIR, "1.1.1.1", "src,dst"),
            (ElementKind::HOST_PAIR, "1.1.1.1,2.2.2.2,3.3.3.3", "3 of"),
            (ElementKind::HOST_PAIR, "1.1.1.1,", "`` is no IP address"),
            (ElementKind::HOST_PAIR, "1.1.1.1,x", "192.0.2.1"),
            (ElementKind::HOST_PAIR, "1.1.1.1,::1", "families"),
            (ElementKind::FLOW, "*,*,tpc,*,*", "protocol"),
            (ElementKind::FLOW, "*,*,*,*,65536", "443"),
            (ElementKind::DNS, "*,*,a..b", "www.example.com"),
            (ElementKind::DNS, "*,*,*.example.test", r"\042.example.test"),
        ] {
            let error = parse(kind, false, text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn keys_are_asked_for_by_their_fields() {
        let digest = |bytes: &[u8]| Digester::new(3).digest(bytes);
        let kind: ElementKind = "src/24,dst-port".parse().unwrap();
        for text in ["10.0.0.0/24,443", "10.0.0.9,443"] {
            let query = parse(kind, false, text).unwrap();
            assert_eq!(query.patterns[0].whole, Some(digest(&[4, 10, 0, 0, 0, 1, 187])), "{text}");
        }
        assert!(parse(kind, false, "10.0.0.0/16,443").unwrap_err().contains("24 bits"));
        let kind: ElementKind = "domain2,vlan".parse().unwrap();
        let query = parse(kind, false, "www.example.org,none").unwrap();
        let key = [&b"\x07example\x03org"[..], &[0xff, 0xff]].concat();
        assert_eq!(query.patterns[0].whole, Some(digest(&key)));
        assert!(parse(kind, false, "a.b,4096").unwrap_err().contains("VLAN"));
    }
}
