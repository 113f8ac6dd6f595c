//! Recognizes display filters, which look like capture filters, and translates their first
//! comparison.

use super::error::Problem;
use super::names;

/// Fields of display filters and the capture filters that compare them; `{}` is the value.
const FIELDS: &[(&str, &str)] = &[
    ("ip.addr ip.host ipv6.addr", "host {}"),
    ("ip.src ip.src_host ipv6.src", "src host {}"),
    ("ip.dst ip.dst_host ipv6.dst", "dst host {}"),
    ("arp.src.proto_ipv4", "arp src host {}"),
    ("arp.dst.proto_ipv4", "arp dst host {}"),
    ("eth.addr", "ether host {}"),
    ("eth.src", "ether src {}"),
    ("eth.dst", "ether dst {}"),
    ("eth.type", "ether proto {}"),
    ("vlan.id", "vlan {}"),
    ("mpls.label", "mpls {}"),
    ("tcp.port", "tcp port {}"),
    ("tcp.srcport", "tcp src port {}"),
    ("tcp.dstport", "tcp dst port {}"),
    ("udp.port", "udp port {}"),
    ("udp.srcport", "udp src port {}"),
    ("udp.dstport", "udp dst port {}"),
    ("sctp.port", "sctp port {}"),
    ("sctp.srcport", "sctp src port {}"),
    ("sctp.dstport", "sctp dst port {}"),
    ("ip.proto", "ip proto {}"),
    ("ipv6.nxt", "ip6 proto {}"),
    ("dns.qry.name", "dns name {}"),
    ("dns.qry.type", "dns qtype {}"),
    ("dns.flags.rcode", "dns rcode {}"),
];

/// Fields of display filters and the same numbers in capture filters.
const NUMBERS: &[(&str, &str)] = &[
    ("frame.len frame.cap_len", "len"),
    ("ip.ttl", "ip[8]"),
    ("ip.len", "ip[2:2]"),
    ("ip.id", "ip[4:2]"),
    ("ip.tos", "ip[1]"),
    ("ip.version", "ip[0] >> 4"),
    ("ip.hdr_len", "(ip[0] & 15) * 4"),
    ("ip.frag_offset", "(ip[6:2] & 0x1fff) * 8"),
    ("ipv6.hlim", "ip6[7]"),
    ("ipv6.plen", "ip6[4:2]"),
    ("tcp.seq_raw", "tcp[4:4]"),
    ("tcp.ack_raw", "tcp[8:4]"),
    ("tcp.flags", "tcp[tcpflags]"),
    ("tcp.window_size_value", "tcp[14:2]"),
    ("udp.length", "udp[4:2]"),
    ("icmp.type", "icmp[icmptype]"),
    ("icmp.code", "icmp[icmpcode]"),
    ("icmpv6.type", "icmp6[icmp6type]"),
    ("icmpv6.code", "icmp6[icmp6code]"),
    ("arp.opcode", "arp[6:2]"),
    ("dns.id", "udp port 53 and udp[8:2]"),
];

/// Flags of display filters, and the same bits in capture filters.
const FLAGS: &[(&str, &str)] = &[
    ("tcp.flags.fin", "tcp[tcpflags] & tcp-fin"),
    ("tcp.flags.syn", "tcp[tcpflags] & tcp-syn"),
    ("tcp.flags.reset", "tcp[tcpflags] & tcp-rst"),
    ("tcp.flags.push", "tcp[tcpflags] & tcp-push"),
    ("tcp.flags.ack", "tcp[tcpflags] & tcp-ack"),
    ("tcp.flags.urg", "tcp[tcpflags] & tcp-urg"),
    ("tcp.flags.ece", "tcp[tcpflags] & tcp-ece"),
    ("tcp.flags.cwr", "tcp[tcpflags] & tcp-cwr"),
    ("ip.flags.df", "ip[6] & 0x40"),
    ("ip.flags.mf", "ip[6] & 0x20"),
];

/// Protocols that have a name in display filters only, and their ports.
const TCP_PORTS: &str = "\
    http=80 http2=443 tls=443 ssl=443 ssh=22 ftp=21 telnet=23 smtp=25 pop=110 imap=143 bgp=179 \
    ldap=389 smb=445 smb2=445 rdp=3389";
const UDP_PORTS: &str = "\
    mdns=5353 quic=443 ntp=123 snmp=161 radius=1812 syslog=514 tftp=69 nbns=137 llmnr=5355 \
    ssdp=1900 vxlan=4789 gtp=2152 geneve=6081";

/// Further protocols, with their capture filters.
const PROTOCOLS: &[(&str, &str)] = &[
    ("dhcp bootp", "udp port 67 or udp port 68"),
    ("dhcpv6", "udp port 546 or udp port 547"),
    ("sip", "port 5060"),
    ("lldp", "ether proto 0x88cc"),
    ("pppoe", "pppoes"),
    ("gre", "proto 47"),
    ("ospf", "ip proto 89"),
];

/// Returns the problem that replaces `other` if the expression is a display filter.
pub(super) fn problem(text: &str, other: &Problem) -> Option<Problem> {
    let words = words(text);
    let is_display = |(_, word): &(usize, &str)| {
        let protocol = word.split('.').next().unwrap_or_default();
        let dotted = word.contains('.') && !word.starts_with(|c: char| c.is_ascii_digit());
        (dotted && is_protocol(protocol)) || matches!(*word, "contains" | "matches")
    };
    // The name of a protocol counts only where it was not understood: ports and hosts may have the
    // same names.
    let not_understood =
        |(at, word): &(usize, &str)| *at == other.place.start && filter_of(word).is_some();
    let is_name = |number: usize| {
        let before = number.checked_sub(1).map(|before| words[before].1);
        matches!(before, Some("host" | "net" | "src" | "dst"))
    };
    let number = (0..words.len())
        .find(|&number| is_display(&words[number]) && !is_name(number))
        .or_else(|| words.iter().position(not_understood))?;
    let (at, word) = words[number];
    let place = at..at + word.len();
    let sentence = format!("\"{word}\" belongs to display filters, and this is a capture filter");
    let problem = Problem::new(place.clone(), sentence);
    let is_part = words.iter().filter(|word| is_display(word)).count() > 1;
    Some(match hint(word, &text[place.end..]) {
        Some(hint) if is_part => problem.with_hint(hint.replacen("for this", "for this part", 1)),
        Some(hint) => problem.with_hint(hint),
        None => problem
            .with_hint("See `flowsieve help capture-filters` for what capture filters can say."),
    })
}

/// Returns the runs of letters, digits, dots and underscores, and their positions.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let words = text.split(|c| !is_inside(c)).filter(|word| !word.is_empty());
    words.map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word)).collect()
}

/// Whether the first part of a field is a protocol.
fn is_protocol(name: &str) -> bool {
    const OTHERS: &[&str] = &["frame", "data", "wlan", "_ws", "igmp", "esp", "ah", "gre"];
    let begins = |field: &str| field.split('.').next() == Some(name);
    let has =
        |table: &[(&str, &str)]| table.iter().any(|(fields, _)| fields.split(' ').any(begins));
    OTHERS.contains(&name)
        || [FIELDS, NUMBERS, FLAGS].into_iter().any(has)
        || filter_of(name).is_some()
}

/// Returns the capture filter for a protocol that has a name in display filters only.
fn filter_of(protocol: &str) -> Option<String> {
    let with_port = |transport, ports| {
        names::find(ports, protocol).map(|port| format!("{transport} port {port}"))
    };
    let found = with_port("tcp", TCP_PORTS).or_else(|| with_port("udp", UDP_PORTS));
    found.or_else(|| find(PROTOCOLS, protocol).map(str::to_owned))
}

fn find(table: &'static [(&str, &str)], name: &str) -> Option<&'static str> {
    let row = table.iter().find(|(known, _)| known.split(' ').any(|known| known == name));
    row.map(|&(_, filter)| filter)
}

/// Translates a field of display filters, and the comparison that follows it, to a capture filter.
fn hint(field: &str, rest: &str) -> Option<String> {
    if matches!(field, "contains" | "matches") {
        return Some(
            "Capture filters compare bytes at fixed places: tcp[20:4] = 0x47455420 is \"GET \"."
                .to_owned(),
        );
    }
    let (operator, value) = compared(rest).unwrap_or(("", ""));
    let shown = if value.is_empty() { "…" } else { value };
    if let Some(filter) = find(FIELDS, field) {
        return comparison_with_field(field, filter, operator, shown).map(|filter| say(&filter));
    }
    if let Some(number) = find(NUMBERS, field) {
        return Some(say(&format!("{number} {} {shown}", numeric(operator))));
    }
    let is_off = matches!(value, "0" | "false" | "False") != is_unequal(operator);
    if field == "dns.flags.response" {
        return Some(say(if is_off { "dns query" } else { "dns response" }));
    }
    if let Some(flag) = find(FLAGS, field) {
        let comparison = if is_off { "=" } else { "!=" };
        return Some(say(&format!("{flag} {comparison} 0")));
    }
    let protocol = field.split('.').next().unwrap_or_default();
    let filter = filter_of(protocol)?;
    if protocol == field {
        return Some(say(&filter));
    }
    Some(format!("Capture filters do not look into {protocol}; its packets are: {filter}"))
}

fn comparison_with_field(field: &str, filter: &str, operator: &str, value: &str) -> Option<String> {
    let pattern =
        if value.contains('/') { filter.replace("host {}", "net {}") } else { filter.to_owned() };
    let filter = pattern.replace("{}", value);
    if matches!(operator, "" | "==" | "=" | "===" | "eq" | "~=") {
        return Some(filter);
    }
    if is_unequal(operator) {
        return Some(format!("not {filter}"));
    }
    if !field.ends_with("port") {
        return None;
    }
    let (from, to) = match operator {
        ">" | ">=" | "gt" | "ge" => (value, "65535"),
        _ => ("0", value),
    };
    let range = filter.replace("port", "portrange");
    Some(range.replace(value, &format!("{from}-{to}")))
}

fn is_unequal(operator: &str) -> bool {
    matches!(operator, "!=" | "ne" | "!==")
}

/// Returns the operator of capture filters for one of display filters.
fn numeric(operator: &str) -> &str {
    match operator {
        "" | "eq" | "==" | "===" => "=",
        "ne" | "!==" => "!=",
        "gt" => ">",
        "lt" => "<",
        "ge" => ">=",
        "le" => "<=",
        other => other,
    }
}

fn say(filter: &str) -> String {
    format!("The capture filter for this is: {filter}")
}

/// Splits the operator and the value off the text behind a field.
fn compared(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.trim_start();
    let length =
        rest.find(|c: char| !matches!(c, '=' | '!' | '<' | '>' | '~')).unwrap_or(rest.len());
    let length = match length {
        0 => ["eq", "ne", "gt", "lt", "ge", "le"]
            .iter()
            .find(|word| rest.starts_with(**word) && rest[2..].starts_with(' '))
            .map(|word| word.len())?,
        length => length,
    };
    let (operator, value) = rest.split_at(length);
    let value = value.trim_start().trim_start_matches('"');
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '/' | '-' | '_');
    let end = value.find(|c| !is_inside(c)).unwrap_or(value.len());
    Some((operator, &value[..end]))
}
