//! DNS over UDP: a query, then its answer, in wire format (RFC 1035).
//!
//! All names lie under the names that RFC 2606 reserves.

use super::GeneratePlan;
use super::conversation::{client_address, ephemeral_port};
use super::counts::Counts;
use super::frame::{Segment, Tuple, UDP, ipv6_address, network_headers, transport_header, write};
use super::random::{Random, Zipf, mix, scale};

const SERVICES: [&str; 4] = ["www", "api", "mail", "cdn"];
const ZONES: [&[&str]; 4] =
    [&["example", "com"], &["example", "net"], &["example", "org"], &["test"]];
const SYLLABLES: [&str; 32] = [
    "ba", "be", "bi", "bo", "da", "de", "di", "do", "ka", "ke", "ki", "ko", "la", "le", "li", "lo",
    "ma", "me", "mi", "mo", "na", "ne", "ni", "no", "ra", "re", "ri", "ro", "sa", "se", "si", "so",
];

const TYPE_A: u16 = 1;
const TYPE_TXT: u16 = 16;
const TYPE_AAAA: u16 = 28;

/// Resolvers 192.0.2.53 and following.
const RESOLVER: u32 = 0xc000_0235;
const RESOLVERS: u32 = 8;

/// A query that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// As the client sends it.
    tuple: Tuple,
    vlan: Option<u16>,
    id: u16,
    name: u32,
    kind: u16,
    /// Whether the first letters are capitals: the same name for every reader.
    capitals: bool,
}

/// Generates DNS messages: queries and answers in turn.
pub(super) struct DnsTalk {
    key: u64,
    plan: GeneratePlan,
    clients: Zipf,
    names: Zipf,
    open: Option<Question>,
}

impl DnsTalk {
    pub(super) fn new(plan: &GeneratePlan, random: &mut Random) -> Self {
        Self {
            key: random.next(),
            plan: plan.clone(),
            clients: Zipf::new(plan.dns_clients()),
            names: Zipf::new(plan.names),
            open: None,
        }
    }

    /// Builds the next message into `bytes` and returns its length on the wire.
    pub(super) fn packet(
        &mut self,
        bytes: &mut [u8],
        number: u64,
        random: &mut Random,
        counts: &mut Counts,
    ) -> usize {
        let (question, answer) = match self.open.take() {
            Some(question) => (question, true),
            None => (*self.open.insert(self.ask(random)), false),
        };
        let tuple = if answer { question.tuple.reversed() } else { question.tuple };
        counts.packet(tuple);
        let network = tuple.network_length(question.vlan);
        let message = network + 8;
        let (question_end, end) = write_message(bytes, message, question, answer);
        network_headers(bytes, tuple, question.vlan, number as u16, end - network);
        let segment = Segment { sequence: 0, is_syn: false, reply: false, payload: end - message };
        transport_header(bytes, network, tuple, segment);
        // If the snaplen cuts the question off, the triple cannot be read.
        if question_end <= self.plan.snaplen as usize {
            counts.dns_message(tuple, question.name, !answer);
        }
        end
    }

    fn ask(&self, random: &mut Random) -> Question {
        let client = self.clients.draw(random) as u32;
        let name = self.names.draw(random) as u32;
        let host = mix(self.key ^ u64::from(client));
        let bits = random.next();
        Question {
            tuple: Tuple {
                ipv6: self.plan.is_ipv6(host),
                protocol: UDP,
                source: client_address(client),
                destination: RESOLVER + scale(host << 32, RESOLVERS),
                source_port: ephemeral_port(bits),
                destination_port: 53,
            },
            vlan: self.plan.is_in_vlan(host << 16).then_some(200 + (host & 3) as u16),
            id: (bits >> 16) as u16,
            name,
            kind: match scale(bits << 32, 100) {
                0..70 => TYPE_A,
                70..95 => TYPE_AAAA,
                _ => TYPE_TXT,
            },
            capitals: bits.is_multiple_of(16),
        }
    }
}

/// Writes the message at `at`; returns where its question ends and where all of it ends.
fn write_message(bytes: &mut [u8], at: usize, question: Question, answer: bool) -> (usize, usize) {
    // One name in sixteen does not exist; no name has texts.
    let missing = mix(u64::from(question.name)).is_multiple_of(16);
    let answered = answer && !missing && question.kind != TYPE_TXT;
    let flags = match (answer, missing) {
        (false, _) => 0x0100,
        (true, false) => 0x8180,
        (true, true) => 0x8183,
    };
    let at = write_words(bytes, at, &[question.id, flags, 1, u16::from(answered), 0, 0]);
    let at = write_name(bytes, at, question.name, question.capitals);
    let question_end = write_words(bytes, at, &[question.kind, 1]);
    if !answered {
        return (question_end, question_end);
    }
    let data: &[u8] = if question.kind == TYPE_A {
        &[203, 0, 113, question.name as u8]
    } else {
        &ipv6_address(question.name)
    };
    // The name of the question, its type and class, and how many seconds the answer holds.
    let head = [0xc00c, question.kind, 1, 0, 300, data.len() as u16];
    let at = write_words(bytes, question_end, &head);
    (question_end, write(bytes, at, data))
}

/// Writes numbers in network byte order at `at` and returns their end.
fn write_words(bytes: &mut [u8], at: usize, words: &[u16]) -> usize {
    words.iter().fold(at, |at, word| write(bytes, at, &word.to_be_bytes()))
}

/// Writes the name with this number and returns where it ends: a service, the number in
/// syllables (base 32, so that no two names are equal), a reserved zone.
fn write_name(bytes: &mut [u8], at: usize, name: u32, capitals: bool) -> usize {
    let bits = mix(u64::from(name));
    let mut at = write_label(bytes, at, SERVICES[(bits >> 8 & 3) as usize], capitals);
    let start = at;
    at += 1;
    let mut rest = name;
    loop {
        at = write(bytes, at, SYLLABLES[(rest & 31) as usize].as_bytes());
        rest >>= 5;
        if rest == 0 {
            break;
        }
    }
    bytes[start] = (at - start - 1) as u8;
    if capitals {
        bytes[start + 1].make_ascii_uppercase();
    }
    for label in ZONES[(bits >> 16 & 3) as usize] {
        at = write_label(bytes, at, label, capitals);
    }
    bytes[at] = 0;
    at + 1
}

fn write_label(bytes: &mut [u8], at: usize, label: &str, capitals: bool) -> usize {
    bytes[at] = label.len() as u8;
    let end = write(bytes, at + 1, label.as_bytes());
    if capitals {
        bytes[at + 1].make_ascii_uppercase();
    }
    end
}
