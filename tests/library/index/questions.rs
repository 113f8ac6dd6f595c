//! Questions, and what they mean, without any code of the index.

use super::scan::Packet;
use flowsieve::decode::dotted;
use flowsieve::index::{Ends, IndexQuery};
use std::net::IpAddr;

/// A question in the words of the command line, evaluated without any code of the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) src: Option<String>,
    pub(crate) dst: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) dst_port: Option<u16>,
    pub(crate) port: Option<u16>,
    pub(crate) domain: Option<String>,
    pub(crate) from_ns: Option<i64>,
    pub(crate) to_ns: Option<i64>,
}

/// Whether an address is in a range such as `10.0.0.0/8`; without a range every address is.
fn within(range: Option<&String>) -> impl Fn(IpAddr) -> bool + use<> {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (4, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (6, address.to_bits()),
    };
    let range = range.map(|range| {
        let (network, length) = range.split_once('/').unwrap_or((range, "128"));
        let length: u32 = length.parse().unwrap();
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let (version, network) = bits(network.parse().unwrap());
        (mask, version, network & mask)
    });
    move |address| {
        let (version, address) = bits(address);
        range.is_none_or(|(mask, of_range, network)| {
            version == of_range && address & mask == network
        })
    }
}

impl Question {
    pub(crate) fn query(&self) -> IndexQuery {
        let address = |text: &Option<String>| text.as_ref().map(|text| text.parse().unwrap());
        IndexQuery {
            src: address(&self.src),
            dst: address(&self.dst),
            host: address(&self.host),
            dst_port: self.dst_port,
            port: self.port,
            domain: self.domain.as_ref().map(|name| name.parse().unwrap()),
            from_ns: self.from_ns,
            to_ns: self.to_ns,
        }
    }

    fn takes_ends(&self) -> impl Fn(Ends) -> bool {
        let src = within(self.src.as_ref());
        let dst = within(self.dst.as_ref());
        let host = within(self.host.as_ref());
        let client_port_counts = self.domain.is_none();
        move |ends| {
            src(ends.src)
                && dst(ends.dst)
                && (host(ends.src) || host(ends.dst))
                && self.dst_port.is_none_or(|port| ends.dst_port == port)
                && self.port.is_none_or(|port| {
                    ends.dst_port == port || (client_port_counts && ends.src_port == port)
                })
        }
    }

    fn takes_name(&self, name: &[u8]) -> bool {
        let Some(asked) = &self.domain else { return false };
        let name = dotted(name);
        match asked.strip_prefix('*') {
            Some(below) => name.ends_with(below) && name.len() > below.len(),
            None => name == *asked,
        }
    }

    pub(crate) fn in_time(&self, time_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| time_ns >= from) && self.to_ns.is_none_or(|to| time_ns < to)
    }

    /// Who sent to whom in the parts of a packet that are asked for, whatever its time.
    pub(crate) fn matches(&self) -> impl Fn(&Packet) -> Vec<Ends> {
        let takes_ends = self.takes_ends();
        move |packet| {
            if self.domain.is_none() {
                return Some(packet.ends).filter(|ends| takes_ends(*ends)).into_iter().collect();
            }
            let questions = packet.questions.iter();
            questions
                .filter(|(ends, name)| takes_ends(*ends) && self.takes_name(name))
                .map(|(ends, _)| *ends)
                .collect()
        }
    }
}

/// Questions about what is in the packets, about what is in them apart, and about what is not.
pub(crate) fn questions(packets: &[&Packet], every: usize) -> Vec<Question> {
    let mut questions = questions_of_ends(packets, every);
    questions.extend(questions_of_names(packets));
    questions
}

fn questions_of_ends(packets: &[&Packet], every: usize) -> Vec<Question> {
    let mut questions = Vec::new();
    let text = |address: IpAddr| Some(address.to_string());
    let sample: Vec<&&Packet> = packets.iter().step_by(every).collect();
    for (number, packet) in sample.iter().enumerate() {
        let ends = packet.ends;
        let other = sample[(number * 7 + 3) % sample.len()];
        let src = text(ends.src);
        let short = if ends.src.is_ipv4() { 20 } else { 44 };
        let network = Some(format!("{}/{short}", ends.src));
        let base = Question::default();
        questions.extend([
            Question { src: src.clone(), ..base.clone() },
            Question { dst: src.clone(), ..base.clone() },
            Question { host: src.clone(), port: Some(other.ends.dst_port), ..base.clone() },
            Question { src: src.clone(), dst: text(ends.dst), ..base.clone() },
            Question { src: src.clone(), dst: text(other.ends.dst), ..base.clone() },
            Question { src: src.clone(), dst_port: Some(ends.dst_port), ..base.clone() },
            Question { dst: text(ends.dst), dst_port: Some(other.ends.dst_port), ..base.clone() },
            Question { port: Some(ends.src_port), ..base.clone() },
            Question { src: src.clone(), port: Some(ends.src_port), ..base.clone() },
            Question { host: network.clone(), dst_port: Some(ends.dst_port), ..base.clone() },
            Question { src: network.clone(), dst: src.clone(), ..base.clone() },
            Question { dst: network.clone(), ..base.clone() },
            Question {
                host: src.clone(),
                from_ns: Some(packet.time_ns),
                to_ns: Some(packet.time_ns + 1),
                ..base.clone()
            },
            Question { src: src.clone(), from_ns: Some(other.time_ns), ..base.clone() },
            Question { host: Some("198.51.100.251".into()), ..base.clone() },
        ]);
    }
    questions
}

/// The same about names.
fn questions_of_names(packets: &[&Packet]) -> Vec<Question> {
    let mut questions = Vec::new();
    let text = |address: IpAddr| Some(address.to_string());
    let named = packets.iter().flat_map(|packet| &packet.questions);
    let named: Vec<&(Ends, Vec<u8>)> = named.collect();
    for (number, (ends, name)) in named.iter().step_by(1 + named.len() / 60).enumerate() {
        let name = dotted(name);
        let other = &named[(number * 31 + 5) % named.len()].0;
        let base = Question { domain: Some(name.clone()), ..Question::default() };
        questions.extend([
            base.clone(),
            Question { src: text(ends.src), ..base.clone() },
            Question { src: text(other.src), ..base.clone() },
            Question { dst: text(ends.dst), dst_port: Some(53), ..base.clone() },
            Question { host: text(ends.src), port: Some(53), ..base.clone() },
            Question { port: Some(ends.src_port), ..base.clone() },
        ]);
        // A dot behind a backslash does not end a label.
        let mut rest = name.as_str();
        while let Some((_, above)) = rest.split_once('.').filter(|_| !name.contains('\\')) {
            if !above.is_empty() {
                let domain = Some(format!("*.{above}"));
                questions.push(Question { domain: domain.clone(), ..Question::default() });
                questions.push(Question { domain, src: text(other.src), ..Question::default() });
            }
            rest = above;
        }
    }
    questions
}
