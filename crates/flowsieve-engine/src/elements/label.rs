//! Which elements a saved filter holds, as text.

use super::{ElementKind, ElementRule};
use crate::decode::Tunnel;
use std::fmt;

/// The rule by which elements were taken from packets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElementLabel {
    /// Kind and rule.
    pub rule: ElementRule,
    /// Which IP header counts.
    pub tunnel: Tunnel,
}

/// Beginning of a label: name and version.
const SCHEMA: &str = "flowsieve.elements/1";

impl ElementLabel {
    /// The label of this rule. What makes no difference to the kind is left out, and ports are
    /// sorted, so that equal rules have equal labels.
    pub fn new(rule: &ElementRule, tunnel: Tunnel) -> Self {
        let mut rule = rule.clone();
        if rule.kind == ElementKind::Dns {
            rule.dns_ports.sort_unstable();
            rule.dns_ports.dedup();
        } else {
            rule.queries_only = false;
            rule.dns_ports.clear();
        }
        Self { rule, tunnel }
    }

    /// Reads a label; `None` if it is not exactly one that is written here.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.strip_prefix(SCHEMA)?.split_ascii_whitespace();
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let kind = ElementKind::ALL
            .into_iter()
            .find(|kind| field_is(kind.name(), text))?;
        field("element")?;
        let undirected = field("undirected")? == "yes";
        let tunnel = match field("tunnel")? {
            "inner" => Tunnel::Inner,
            _ => Tunnel::Outer,
        };
        let mut rule = ElementRule {
            kind,
            undirected,
            ..ElementRule::default()
        };
        if kind == ElementKind::Dns {
            rule.queries_only = field("queries_only")? == "yes";
            let ports = field("dns_ports")?
                .split(',')
                .filter(|port| !port.is_empty());
            rule.dns_ports = ports.map(|port| port.parse().ok()).collect::<Option<_>>()?;
        }
        let label = Self::new(&rule, tunnel);
        (label.to_string() == text).then_some(label)
    }
}

/// Whether this is the kind that the text names.
fn field_is(kind: &str, text: &str) -> bool {
    text.split_ascii_whitespace().nth(1) == Some(&format!("element={kind}"))
}

impl fmt::Display for ElementLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is| if is { "yes" } else { "no" };
        let rule = &self.rule;
        let tunnel = match self.tunnel {
            Tunnel::Outer => "outer",
            Tunnel::Inner => "inner",
        };
        write!(
            f,
            "{SCHEMA} element={} undirected={} tunnel={tunnel}",
            rule.kind.name(),
            yes(rule.undirected)
        )?;
        if rule.kind == ElementKind::Dns {
            let ports: Vec<String> = rule.dns_ports.iter().map(ToString::to_string).collect();
            let queries = yes(rule.queries_only);
            write!(f, " queries_only={queries} dns_ports={}", ports.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        for kind in ElementKind::ALL {
            for (undirected, queries_only, dns_ports) in [
                (false, false, vec![]),
                (true, true, vec![5353]),
                (false, true, vec![5353, 53, 53]),
            ] {
                let rule = ElementRule {
                    kind,
                    undirected,
                    queries_only,
                    dns_ports,
                };
                for tunnel in [Tunnel::Outer, Tunnel::Inner] {
                    let label = ElementLabel::new(&rule, tunnel);
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
            b"\xff",
        ] {
            assert_eq!(ElementLabel::parse(wrong), None);
        }
    }
}
