//! Values: addresses, networks, ports, protocols.

use super::error::Problem;
use super::lexer::{DIVIDE, Kind};
use super::names;
use super::parse::Parser;
use super::program::{Networks, Protocols, Test};
use super::qualifiers::{Layer, Qualifiers, What};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

impl Parser<'_> {
    /// Parses one value and adds its test.
    pub(super) fn value(&mut self, qualifiers: &Qualifiers) -> Result<Test, Problem> {
        if self.kind() == Kind::End {
            let wanted = match qualifiers.what {
                What::Host => "An address",
                What::Net => "A network",
                What::Port => "A port",
                What::PortRange => "A range of ports",
                What::Protocol => "A protocol",
            };
            return Err(self.problem(format!("{wanted} is missing here")));
        }
        match qualifiers.what {
            What::Host | What::Net => self.address(qualifiers),
            What::Port | What::PortRange => self.port(qualifiers),
            What::Protocol => self.protocol_number(qualifiers),
        }
    }

    fn address(&mut self, qualifiers: &Qualifiers) -> Result<Test, Problem> {
        let kind = self.kind();
        let layer = qualifiers.protocol.map(|protocol| protocol.layer);
        let is_net = qualifiers.what == What::Net;
        match (kind, layer) {
            (Kind::Mac(address), Some(Layer::Link)) if !is_net => {
                self.skip();
                let direction = qualifiers.direction;
                Ok(Test::Ether { direction, address })
            }
            (Kind::Mac(_), _) => {
                let hint = format!("For example: ether host {}.", self.token_text());
                let sentence = "This is an Ethernet address";
                Err(self.problem(sentence).with_hint(hint))
            }
            (_, Some(Layer::Link)) => {
                let sentence = "Only Ethernet addresses can stand behind \"ether\"";
                Err(self.problem(sentence))
            }
            (Kind::Dotted { address, bits }, _) => self.v4(qualifiers, address, bits),
            (Kind::Number(number), _) => {
                let (address, bits) = self.short_address(number, is_net)?;
                self.v4(qualifiers, address, bits)
            }
            (Kind::V6(address), _) => self.v6(qualifiers, address),
            _ => Err(self.no_address(is_net)),
        }
    }

    /// Interprets a number without dots: an address, or the leading bytes of a network.
    fn short_address(&self, number: u32, is_net: bool) -> Result<(u32, u32), Problem> {
        let with_mask = self.kind_after(1) == DIVIDE || self.word_after(1) == Some("mask");
        if !is_net || number == 0 && !with_mask {
            return Ok((number, 32));
        }
        if with_mask && number > 0xff {
            return Err(self.problem("The first number of an IPv4 address is 255 at most"));
        }
        let shift = if with_mask {
            24
        } else {
            // Whole bytes.
            number.leading_zeros() & !7
        };
        Ok((number << shift, 32 - shift))
    }

    fn no_address(&self, is_net: bool) -> Problem {
        let text = self.token_text();
        let wanted = if is_net { "a network" } else { "an address" };
        let problem = self.problem(format!("\"{text}\" is not {wanted}"));
        match self.kind() {
            Kind::Word | Kind::Name => problem
                .with_hint("Names of hosts and networks are not looked up: write their addresses."),
            _ => problem,
        }
    }

    fn v4(
        &mut self,
        qualifiers: &Qualifiers,
        address: u32,
        mut bits: u32,
    ) -> Result<Test, Problem> {
        let networks = match qualifiers.protocol.map(|protocol| protocol.layer) {
            None => Networks::WITH_IPV4_ADDRESSES,
            Some(Layer::Network(networks)) if networks != Networks::IPV6 => networks,
            _ => return Err(self.problem("This is an IPv4 address")),
        };
        let place = self.place();
        self.skip();
        let mut mask = None;
        if self.kind() == DIVIDE {
            self.only_of_networks(qualifiers)?;
            bits = self.prefix(32)?;
        } else if self.word() == Some("mask") {
            self.only_of_networks(qualifiers)?;
            self.skip();
            mask = Some(match self.kind() {
                Kind::Dotted { address, .. } | Kind::Number(address) => address,
                _ => return Err(self.problem("A mask is missing here, like 255.255.0.0")),
            });
            self.skip();
        }
        let mask = mask.unwrap_or_else(|| u32::MAX.checked_shl(32 - bits).unwrap_or(0));
        if address & !mask != 0 {
            return Err(self.outside_mask(place, Ipv4Addr::from_bits(address & mask).into()));
        }
        Ok(Test::Address4 { networks, direction: qualifiers.direction, network: address, mask })
    }

    fn v6(&mut self, qualifiers: &Qualifiers, address: u128) -> Result<Test, Problem> {
        match qualifiers.protocol.map(|protocol| protocol.layer) {
            None | Some(Layer::Network(Networks::IPV6)) => {}
            _ => return Err(self.problem("This is an IPv6 address")),
        }
        let place = self.place();
        self.skip();
        let mut bits = 128;
        if self.kind() == DIVIDE {
            self.only_of_networks(qualifiers)?;
            bits = self.prefix(128)?;
        }
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        if address & !mask != 0 {
            return Err(self.outside_mask(place, Ipv6Addr::from_bits(address & mask).into()));
        }
        Ok(Test::Address6 { direction: qualifiers.direction, network: address, mask })
    }

    fn only_of_networks(&self, qualifiers: &Qualifiers) -> Result<(), Problem> {
        if qualifiers.what == What::Net {
            return Ok(());
        }
        let sentence = "Only networks have masks";
        Err(self.problem(sentence).with_hint("Write \"net\" instead of \"host\"."))
    }

    /// Parses a slash and the number of leading bits.
    fn prefix(&mut self, most: u32) -> Result<u32, Problem> {
        self.skip();
        let Kind::Number(bits) = self.kind() else {
            return Err(self.problem("A number of bits is missing here"));
        };
        if bits > most {
            let sentence = format!("The address has {most} bits");
            return Err(self.problem(sentence));
        }
        self.skip();
        Ok(bits)
    }

    fn outside_mask(&self, place: Range<usize>, network: IpAddr) -> Problem {
        let whole = place.start..self.end_before();
        Problem::new(whole, "The address has bits that are not the network's")
            .with_hint(format!("The network's address is {network}."))
    }

    fn port(&mut self, qualifiers: &Qualifiers) -> Result<Test, Problem> {
        let protocols = match qualifiers.protocol.map(|protocol| protocol.layer) {
            Some(Layer::Upper { number, .. }) => Protocols::only(number),
            _ => Protocols::ALL,
        };
        let text = self.token_text().trim_start_matches('\\');
        let (first, last) = match self.kind() {
            Kind::Number(number) => match u16::try_from(number) {
                Ok(port) => (port, port),
                Err(_) => return Err(self.problem("The largest port is 65535")),
            },
            Kind::Word | Kind::Name => match (names::port(text), port_range(text)) {
                (Some(port), _) => (port, port),
                (None, Some(range)) if qualifiers.what == What::PortRange => range,
                (None, Some(_)) => {
                    let hint = format!("For example: portrange {text}.");
                    return Err(self.problem("This is a range of ports").with_hint(hint));
                }
                (None, None) => {
                    let sentence = format!("\"{text}\" is no port whose name is known");
                    return Err(self.problem(sentence).with_hint("Write its number."));
                }
            },
            _ => return Err(self.problem(format!("\"{text}\" is no port"))),
        };
        self.skip();
        Ok(Test::Port {
            protocols,
            direction: qualifiers.direction,
            first: first.min(last),
            last: last.max(first),
        })
    }

    fn protocol_number(&mut self, qualifiers: &Qualifiers) -> Result<Test, Problem> {
        let text = self.token_text().trim_start_matches('\\');
        let layer = qualifiers.protocol.map(|protocol| protocol.layer);
        let of_ether = layer == Some(Layer::Link);
        let number = match self.kind() {
            Kind::Number(number) => Some(number),
            Kind::Word | Kind::Name => {
                let table = if of_ether { names::ETHER_TYPES } else { names::PROTOCOLS };
                names::find(table, text)
            }
            _ => None,
        };
        let Some(number) = number else {
            let sentence = format!("\"{text}\" is no protocol whose number is known");
            return Err(self.problem(sentence).with_hint("Write its number."));
        };
        self.skip();
        Ok(match layer {
            _ if of_ether => Test::EtherType(number),
            Some(Layer::Network(networks)) => Test::Protocol { networks, number },
            _ => Test::Protocol { networks: Networks::IP, number },
        })
    }
}

/// Parses two ports, by number or name, with a dash in between.
fn port_range(text: &str) -> Option<(u16, u16)> {
    let port = |text: &str| names::port(text).or_else(|| text.parse().ok());
    text.match_indices('-').find_map(|(at, _)| {
        let (first, last) = (&text[..at], &text[at + 1..]);
        Some((port(first)?, port(last)?))
    })
}
