//! `flowsieve help TOPIC`: texts about several commands.

use super::options::{elements, formats, structures};
use super::units::VALUES;
use clap::builder::TypedValueParser;

/// A topic: its name, and its text.
type Topic = (&'static str, fn() -> String);

const TOPICS: [Topic; 7] = [
    ("capture-filters", || CAPTURE_FILTERS.to_owned()),
    ("elements", || {
        let keys = "Keys of fields also do, such as src/24,dst-port: src, dst, src-port, dst-port, proto,\nvlan, domain, domain2, and prefixes of addresses";
        format!("{}\n\n{keys}", listed("What is counted (--element)", &elements()))
    }),
    ("environment", || ENVIRONMENT.to_owned()),
    ("exit-codes", || EXIT_CODES.to_owned()),
    ("formats", || listed("How results are written (--format)", &formats())),
    ("structures", || {
        let own = "In compare also plan: what the command plan recommends for the same queries";
        format!("{}\n\n{own}", listed("Structures (--filter)", &structures()))
    }),
    ("values", || VALUES.to_owned()),
];

/// The meaning of the exit codes.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, but something could not be read or written, and standard error says what;
     or `index search` found nothing
  2  the command line is wrong
  129, 130, 143  interrupted by SIGHUP, SIGINT, SIGTERM: what was read until then is the result, and
     is marked; a second signal ends the program at once";

const ENVIRONMENT: &str = "\
Environment:
  NO_COLOR          set: no bold face and no colours, unless --color says otherwise
  CLICOLOR_FORCE    set: bold face and colours in pipes, too
  TERM              dumb: no bold face and no colours
  FLOWSIEVE_TRACES  directory of captures for `reproduce`
  FLOWSIEVE_WORDS   file with one word a line for `reproduce`
  TMPDIR            directory of temporary files";

const CAPTURE_FILTERS: &str = "\
Capture filters (--where) choose packets, in the language of pcap-filter(7):
  host 10.1.2.3             packets from or to an address
  src net 10.0.0.0/8        packets from a network
  tcp dst port https        packets to a port, by its number or name
  dns qtype AAAA            DNS messages of a type; also dns rcode NXDOMAIN, dns query, dns response
  dns name *.example.com    DNS messages about names below this one
  greater 1000              packets of so many bytes or more
  tcp[tcpflags] & tcp-syn != 0
                            packets in which this arithmetic holds
  not arp and (vlan 5 or ip6)
                            and, or, not and brackets combine them";

/// Returns the values of an option with their help.
fn listed(title: &str, parser: &impl TypedValueParser) -> String {
    let values =
        parser.possible_values().into_iter().flatten().filter(|value| !value.is_hide_set());
    let values: Vec<_> = values.collect();
    let width = values.iter().map(|value| value.get_name().chars().count()).max().unwrap_or(0);
    let rows = values.iter().map(|value| {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        format!("\n  {:<width$}  {help}", value.get_name())
    });
    format!("{title}:{}", rows.collect::<String>())
}

/// Returns the names of the topics, for `flowsieve --help`.
pub(super) fn names() -> String {
    let names = TOPICS.map(|(name, _)| name);
    format!("Topics (flowsieve help TOPIC):\n  {}", names.join(", "))
}

/// Returns the text for the words `flowsieve help TOPIC`, or `None` for other words.
pub(super) fn asked(words: &[String]) -> Option<String> {
    let [_, help, name] = words else { return None };
    let topic = TOPICS.iter().find(|(topic, _)| topic == name);
    topic.filter(|_| help == "help").map(|(_, text)| text())
}
