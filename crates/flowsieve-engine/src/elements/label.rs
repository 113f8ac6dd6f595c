//! Which elements a saved filter holds, as text.

use super::{ElementKind, ElementRule};
use crate::decode::{Headers, Tunnel};
use crate::selection::SelectedPart;
use std::fmt;

/// The rule by which elements were taken from packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElementLabel {
    /// Kind and rule.
    pub rule: ElementRule,
    /// Where addresses and DNS messages were looked for.
    pub headers: Headers,
    /// Which packets took part.
    pub part: SelectedPart,
    /// All inputs were read to their ends. Otherwise elements are missing.
    pub is_complete: bool,
}

/// Beginning of a label: name and version.
const SCHEMA: &str = "flowsieve.elements/1";

impl ElementLabel {
    /// The label of this rule. Leaves out what makes no difference to the kind, and sorts
    /// ports, so that equal rules have equal labels.
    pub fn new(rule: &ElementRule, headers: &Headers) -> Self {
        let (mut rule, mut headers) = (rule.clone(), headers.clone());
        if rule.kind.has_name() {
            headers.dns_ports.sort_unstable();
            headers.dns_ports.dedup();
        } else {
            rule.queries_only = false;
            headers.dns_ports.clear();
        }
        Self { rule, headers, part: SelectedPart::default(), is_complete: true }
    }

    /// The label of the union of elements labelled so and those labelled as `other`; `None` if the
    /// elements are of different kinds. Only ranges of time may differ: the union's begins with the
    /// earlier and ends with the later; and it is complete if both are.
    pub fn united(&self, other: &Self) -> Option<Self> {
        let part = self.part.united(&other.part)?;
        let is_complete = self.is_complete && other.is_complete;
        let united = |label: &Self| Self { part: part.clone(), is_complete, ..label.clone() };
        Some(united(self)).filter(|label| *label == united(other))
    }

    /// Reads a label; `None` if it is not exactly one that is written here.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.strip_prefix(SCHEMA)?.split_ascii_whitespace();
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let kind: ElementKind = field("element")?.parse().ok()?;
        let undirected = field("undirected")? == "yes";
        let tunnel = match field("tunnel")? {
            "inner" => Tunnel::Inner,
            _ => Tunnel::Outer,
        };
        let mut headers = Headers { tunnel, ..Headers::default() };
        let mut rule = ElementRule { kind, undirected, ..ElementRule::default() };
        if kind.has_name() {
            rule.queries_only = field("queries_only")? == "yes";
            let ports = field("dns_ports")?.split(',').filter(|port| !port.is_empty());
            headers.dns_ports = ports.map(|port| port.parse().ok()).collect::<Option<_>>()?;
        }
        let mut label = Self::new(&rule, &headers);
        for field in fields {
            let (name, value) = field.split_once('=')?;
            match name {
                "where" => label.part.expression = Some(unescaped(value)?),
                "from" => label.part.from_ns = Some(value.parse().ok()?),
                "to" => label.part.to_ns = Some(value.parse().ok()?),
                "complete" => label.is_complete = value != "no",
                _ => return None,
            }
        }
        (label.to_string() == text).then_some(label)
    }
}

/// The text in printable ASCII without spaces: other bytes as `%20`.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        0x21..=0x24 | 0x26..=0x7e => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    text.bytes().map(escape).collect()
}

/// Reverses [`escaped`].
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for ElementLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is| if is { "yes" } else { "no" };
        let rule = &self.rule;
        let tunnel = self.headers.tunnel.name();
        write!(
            f,
            "{SCHEMA} element={} undirected={} tunnel={tunnel}",
            rule.kind.name(),
            yes(rule.undirected)
        )?;
        if rule.kind.has_name() {
            let ports = self.headers.dns_ports.iter();
            let ports: Vec<String> = ports.map(ToString::to_string).collect();
            let queries = yes(rule.queries_only);
            write!(f, " queries_only={queries} dns_ports={}", ports.join(","))?;
        }
        if let Some(expression) = &self.part.expression {
            write!(f, " where={}", escaped(expression))?;
        }
        for (name, time) in [("from", self.part.from_ns), ("to", self.part.to_ns)] {
            if let Some(time) = time {
                write!(f, " {name}={time}")?;
            }
        }
        f.write_str(if self.is_complete { "" } else { " complete=no" })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn unions_have_one_label_if_only_their_times_differ() {
        let label = |expression: &str, from_ns, to_ns| ElementLabel {
            part: SelectedPart { expression: Some(expression.to_owned()), from_ns, to_ns },
            ..ElementLabel::new(&ElementRule::default(), &Headers::default())
        };
        let (first, second) = (label("tcp", Some(1), Some(2)), label("tcp", Some(2), Some(5)));
        assert_eq!(first.united(&second), Some(label("tcp", Some(1), Some(5))));
        assert_eq!(second.united(&first), Some(label("tcp", Some(1), Some(5))));
        assert_eq!(first.united(&first), Some(first.clone()));
        let unbounded = label("tcp", None, Some(3));
        assert_eq!(second.united(&unbounded), Some(label("tcp", None, Some(5))));
        assert_eq!(first.united(&label("udp", Some(1), Some(2))), None);
        let headers = Headers { tunnel: Tunnel::Inner, ..Headers::default() };
        let inner = ElementLabel { headers, ..first.clone() };
        assert_eq!(first.united(&inner), None);
        let incomplete = ElementLabel { is_complete: false, ..first.clone() };
        assert_eq!(first.united(&incomplete), Some(incomplete.clone()));
        assert_eq!(incomplete.united(&first), Some(incomplete));
    }

    #[test]
    fn labels_are_read_as_they_are_written() {
        let keys = ["src/24,dst-port", "domain2,vlan"].map(|key| key.parse().unwrap());
        for kind in ElementKind::ALL.into_iter().chain(keys) {
            for (undirected, queries_only, dns_ports) in [
                (false, false, vec![]),
                (true, true, vec![5353]),
                (false, true, vec![5353, 53, 53]),
            ] {
                let rule = ElementRule { kind, undirected, queries_only };
                for tunnel in [Tunnel::Outer, Tunnel::Inner] {
                    let headers = Headers { tunnel, dns_ports: dns_ports.clone() };
                    let mut label = ElementLabel::new(&rule, &headers);
                    if undirected {
                        label.part = SelectedPart {
                            expression: Some("host ::1 and ip[8] & 0x80 != 0 or  port 5%3".into()),
                            from_ns: Some(-5),
                            to_ns: (!queries_only).then_some(i64::MAX),
                        };
                    }
                    label.is_complete = !undirected;
                    let text = label.to_string();
                    assert_eq!(ElementLabel::parse(text.as_bytes()), Some(label));
                    for end in 0..text.len() {
                        let part = ElementLabel::parse(&text.as_bytes()[..end]);
                        assert!(part.is_none_or(|part| part.to_string() == text[..end]));
                    }
                }
            }
        }
        for wrong in [
            &b""[..],
            b"pairs",
            b"flowsieve.elements/2 element=src undirected=no tunnel=outer",
            b"flowsieve.elements/1 element=src undirected=maybe tunnel=outer",
            b"flowsieve.elements/1 element=src undirected=no tunnel=outer ",
            b"flowsieve.elements/1 element=src undirected=no tunnel=outer more=1",
            b"flowsieve.elements/1 element=src undirected=no tunnel=outer complete=yes",
            b"flowsieve.elements/1 element=src,dst undirected=no tunnel=outer",
            b"\xff",
        ] {
            assert_eq!(ElementLabel::parse(wrong), None);
        }
    }
}
