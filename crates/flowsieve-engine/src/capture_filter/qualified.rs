//! Parses primitives other than comparisons: a protocol, a direction, the type of a value, and the value.

use super::dns;
use super::error::Problem;
use super::lexer::{DIVIDE, Kind, Sign};
use super::parse::Parser;
use super::program::{Comparison, Direction, Header, Networks, Node, Step, Test};
use super::qualifiers::{Layer, Protocol, Qualifiers, What, protocol};
use crate::decode::Shim;
use crate::decode::ip::{SCTP, TCP, UDP};

/// Words of the language that are not supported.
const NOT_UNDERSTOOD: &str = "\
    action addr1 addr2 addr3 addr4 byte clnp dir direction esis fddi gateway geneve ifindex \
    ifname inbound ipx isis iso lane llc metac netbeui oam oamf4 on outbound ppp protochain ra \
    radio reason rnr rset ruleset rulenum slip srnr subrulenum subtype ta tr type vci vpi wlan";

impl Parser<'_> {
    /// Parses a test, or a value that takes over the qualifiers of the previous one.
    pub(super) fn primitive(&mut self) -> Result<(), Problem> {
        // Only a value passes qualifiers on.
        let inherited = self.inherited.take();
        match self.word() {
            Some("dns") => return self.dns(),
            Some("vlan") => return self.label(Shim::Vlan, 0xfff),
            Some("mpls") => return self.label(Shim::Mpls, 0xf_ffff),
            Some("pppoes") => return self.label(Shim::PppOe, 0xffff),
            Some("less") => return self.length(Comparison::LessOrEqual),
            Some("greater") => return self.length(Comparison::GreaterOrEqual),
            _ => {}
        }
        let start = self.place().start;
        let protocol = self.protocol();
        let direction = self.direction();
        let what = match (self.word(), direction) {
            (Some("proto"), Some(_)) => None,
            (Some("broadcast"), None) => return self.broadcast(protocol),
            (Some("multicast"), None) => return self.multicast(protocol),
            (word, _) => What::ALL.into_iter().find(|what| word == Some(what.name())),
        };
        if what.is_none() && direction.is_none() {
            return match protocol {
                Some(protocol) => self.abbreviation(protocol, start),
                None => self.inherited_value(inherited),
            };
        }
        if what.is_some() {
            self.skip();
        }
        let qualifiers = Qualifiers {
            protocol,
            direction: direction.unwrap_or_default(),
            what: what.unwrap_or(What::Host),
        };
        Self::check(&qualifiers, start)?;
        self.values(&qualifiers)
    }

    fn protocol(&mut self) -> Option<Protocol> {
        let protocol = protocol(self.word()?)?;
        self.skip();
        Some(protocol)
    }

    /// Parses `src`, `dst`, or both with `or` or `and` in between.
    fn direction(&mut self) -> Option<Direction> {
        let (one, other) = match self.word()? {
            "src" => (Direction::Source, "dst"),
            "dst" => (Direction::Destination, "src"),
            _ => return None,
        };
        self.skip();
        let both = match self.kind() {
            Kind::Or => Direction::Either,
            Kind::And => Direction::Both,
            _ => return Some(one),
        };
        // "src or dst" may also be two terms, but then the first lacks its value.
        if self.word_after(1) != Some(other) {
            return Some(one);
        }
        self.skip();
        self.skip();
        Some(both)
    }

    /// Parses the test of a label, perhaps with a number.
    fn label(&mut self, label: Shim, most: u32) -> Result<(), Problem> {
        let name = self.token_text().to_owned();
        self.skip();
        let number = match self.kind() {
            Kind::Number(number) if number > most => {
                let sentence = format!("The largest number of \"{name}\" is {most}");
                return Err(self.problem(sentence));
            }
            Kind::Number(number) => {
                self.skip();
                Some(number)
            }
            _ => None,
        };
        self.push(Test::Label(label, number));
        Ok(())
    }

    /// Parses `less` and `greater`, which include the number.
    fn length(&mut self, comparison: Comparison) -> Result<(), Problem> {
        self.skip();
        let Kind::Number(number) = self.kind() else {
            return Err(self.problem("A number of bytes is missing here"));
        };
        self.skip();
        let begin = self.begin_relation();
        self.steps.extend([Step::Length, Step::Constant(number)]);
        self.push_relation(begin, comparison);
        Ok(())
    }

    /// Parses a protocol without a value.
    fn abbreviation(&mut self, protocol: Protocol, start: usize) -> Result<(), Problem> {
        let name = protocol.name;
        let place = start..start + name.len();
        let test = match protocol.layer {
            Layer::Link => {
                let sentence = format!("\"{name}\" needs something behind it");
                return Err(Problem::new(place, sentence).with_hint(
                    "For example: ether host 02:00:00:00:00:01, ether proto 0x88cc, ether multicast.",
                ));
            }
            Layer::Network(networks) => Test::Network(networks),
            Layer::Upper { networks, number } => Test::Protocol { networks, number: number.into() },
            Layer::EtherType(number) => Test::EtherType(number),
        };
        let text = self.token_text();
        let missing = match self.kind() {
            Kind::Number(_) => Some("port"),
            Kind::Dotted { .. } | Kind::V6(_) => Some("host"),
            _ => None,
        };
        if let Some(missing) = missing {
            let sentence = format!("\"{text}\" does not say what it is");
            let hint = match (protocol.layer, missing) {
                (Layer::Network(_), "port") => format!("For example: {name} and port {text}."),
                (Layer::Upper { .. }, "host") => format!("For example: {name} and host {text}."),
                _ => format!("For example: {name} {missing} {text}."),
            };
            return Err(self.problem(sentence).with_hint(hint));
        }
        self.push(test);
        Ok(())
    }

    fn broadcast(&mut self, protocol: Option<Protocol>) -> Result<(), Problem> {
        match protocol.map(|protocol| protocol.layer) {
            None | Some(Layer::Link) => self.push(Test::Broadcast),
            Some(Layer::Network(Networks::IPV4)) => {
                for address in [0, u32::MAX] {
                    self.push(Test::Address4 {
                        networks: Networks::IPV4,
                        direction: Direction::Destination,
                        network: address,
                        mask: u32::MAX,
                    });
                }
                self.nodes.push(Node::Or);
            }
            _ => {
                let sentence = "There is \"ether broadcast\" and \"ip broadcast\" only";
                return Err(self.problem(sentence));
            }
        }
        self.skip();
        Ok(())
    }

    fn multicast(&mut self, protocol: Option<Protocol>) -> Result<(), Problem> {
        match protocol.map(|protocol| protocol.layer) {
            None | Some(Layer::Link) => self.push(Test::Multicast),
            Some(Layer::Network(networks @ Networks::IPV4)) => {
                self.push_byte(networks, 16, Comparison::GreaterOrEqual, 224);
            }
            Some(Layer::Network(networks @ Networks::IPV6)) => {
                self.push_byte(networks, 24, Comparison::Equal, 0xff);
            }
            _ => {
                let sentence =
                    "There is \"ether multicast\", \"ip multicast\" and \"ip6 multicast\" only";
                return Err(self.problem(sentence));
            }
        }
        self.skip();
        Ok(())
    }

    /// Adds the comparison of a byte of a network layer.
    fn push_byte(&mut self, networks: Networks, at: u32, comparison: Comparison, number: u32) {
        let begin = self.begin_relation();
        let header = Header::Network(networks);
        self.headers.push(header);
        let load = Step::Load { header, size: 1 };
        self.steps.extend([Step::Constant(at), load, Step::Constant(number)]);
        self.push_relation(begin, comparison);
    }

    /// Checks that the qualifiers go together.
    fn check(qualifiers: &Qualifiers, start: usize) -> Result<(), Problem> {
        let Some(Protocol { name, layer }) = qualifiers.protocol else { return Ok(()) };
        let (fits, wanted) = match qualifiers.what {
            What::Host | What::Net => (
                !matches!(layer, Layer::Upper { .. } | Layer::EtherType(_)),
                "has no addresses of its own",
            ),
            What::Port | What::PortRange => (
                matches!(layer, Layer::Upper { number: TCP | UDP | SCTP, .. }),
                "has no ports of its own",
            ),
            What::Protocol => (
                matches!(layer, Layer::Link | Layer::Network(Networks::IPV4 | Networks::IPV6)),
                "carries no protocol by number",
            ),
        };
        if fits {
            return Ok(());
        }
        let rest = Qualifiers { protocol: None, ..*qualifiers };
        let problem = Problem::new(start..start + name.len(), format!("\"{name}\" {wanted}"));
        Err(problem.with_hint(format!("Write: {name} and {} ….", rest.words())))
    }

    /// Parses a value without qualifiers.
    fn inherited_value(&mut self, inherited: Option<Qualifiers>) -> Result<(), Problem> {
        let text = self.token_text();
        let is_known = |word: &str| NOT_UNDERSTOOD.split(' ').any(|known| known == word);
        let kind = self.kind();
        match (kind, inherited) {
            (Kind::End, _) if self.nodes.is_empty() => {
                Err(self.problem("The expression is not finished"))
            }
            (Kind::End, _) => Err(self.problem("A term is missing here")),
            (Kind::Word, _) if is_known(text) => {
                Err(self.problem(format!("\"{text}\" is not understood by flowsieve")))
            }
            (Kind::Sign(_) | Kind::And | Kind::Or | Kind::Not, _) => {
                Err(self.problem(format!("\"{text}\" stands where a term should begin")))
            }
            (_, Some(qualifiers)) => self.values(&qualifiers),
            (Kind::Word | Kind::Name, None) => {
                let sentence = format!("\"{text}\" is no word of capture filters");
                Err(Problem { hint: dns::hint(text, self.text), ..self.problem(sentence) })
            }
            (_, None) => {
                let widest = if text.contains(':') { 128 } else { 32 };
                let example = match (kind, self.kind_after(1), self.kind_after(2)) {
                    (Kind::Mac(_), ..) => format!("ether host {text}"),
                    (_, DIVIDE, Kind::Number(bits)) if bits <= widest => {
                        format!("net {text}/{bits}")
                    }
                    (Kind::Number(_), ..) => format!("port {text}"),
                    _ => format!("host {text}"),
                };
                let sentence = format!("\"{text}\" does not say what it is");
                let hint = format!("For example: {example}.");
                Err(self.problem(sentence).with_hint(hint))
            }
        }
    }

    /// Parses a value, perhaps negated, or several in parentheses.
    fn values(&mut self, qualifiers: &Qualifiers) -> Result<(), Problem> {
        self.inherited = Some(*qualifiers);
        let negated = self.nots();
        if self.kind() == Kind::Sign(Sign::Open) {
            self.parentheses(|parser| {
                parser.values(qualifiers)?;
                while let Some(join) = parser.join() {
                    parser.values(qualifiers)?;
                    parser.nodes.push(join);
                }
                Ok(())
            })?;
        } else {
            let test = self.value(qualifiers)?;
            self.push(test);
        }
        if negated {
            self.nodes.push(Node::Not);
        }
        Ok(())
    }
}
