//! Splits the text of an expression into words, numbers, addresses and signs.

use super::error::Problem;
use super::names::{self, hexadecimal, number};
use super::program::{Binary, Comparison};
use std::net::Ipv6Addr;
use std::ops::Range;

/// The kind of a token. Words are looked up by the parser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Word,
    /// A word behind a backslash, which is a name even if it is a keyword.
    Name,
    Number(u32),
    /// Two to four numbers with dots: the leading bytes of an IPv4 address.
    Dotted {
        address: u32,
        bits: u32,
    },
    V6(u128),
    Mac([u8; 6]),
    And,
    Or,
    Not,
    Sign(Sign),
    End,
}

/// Signs apart from those that are words too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sign {
    Open,
    Close,
    OpenIndex,
    CloseIndex,
    Colon,
    Operator(Binary),
    Comparison(Comparison),
}

impl Sign {
    /// Returns whether the sign joins two numbers.
    pub(super) const fn joins_numbers(self) -> bool {
        matches!(self, Self::Operator(_) | Self::Comparison(_))
    }
}

/// The sign before the mask of a network, which also divides.
pub(super) const DIVIDE: Kind = Kind::Sign(Sign::Operator(Binary::Divide));

/// A piece of the expression.
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
}

/// Signs by their text, longer ones first.
const SIGNS: &[(&str, Kind)] = &[
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("<<", Kind::Sign(Sign::Operator(Binary::ShiftLeft))),
    (">>", Kind::Sign(Sign::Operator(Binary::ShiftRight))),
    ("==", Kind::Sign(Sign::Comparison(Comparison::Equal))),
    ("!=", Kind::Sign(Sign::Comparison(Comparison::NotEqual))),
    ("<=", Kind::Sign(Sign::Comparison(Comparison::LessOrEqual))),
    (">=", Kind::Sign(Sign::Comparison(Comparison::GreaterOrEqual))),
    ("!", Kind::Not),
    ("=", Kind::Sign(Sign::Comparison(Comparison::Equal))),
    ("<", Kind::Sign(Sign::Comparison(Comparison::Less))),
    (">", Kind::Sign(Sign::Comparison(Comparison::Greater))),
    ("(", Kind::Sign(Sign::Open)),
    (")", Kind::Sign(Sign::Close)),
    ("[", Kind::Sign(Sign::OpenIndex)),
    ("]", Kind::Sign(Sign::CloseIndex)),
    (":", Kind::Sign(Sign::Colon)),
    ("+", Kind::Sign(Sign::Operator(Binary::Add))),
    ("-", Kind::Sign(Sign::Operator(Binary::Subtract))),
    ("*", Kind::Sign(Sign::Operator(Binary::Multiply))),
    ("/", Kind::Sign(Sign::Operator(Binary::Divide))),
    ("%", Kind::Sign(Sign::Operator(Binary::Modulo))),
    ("&", Kind::Sign(Sign::Operator(Binary::And))),
    ("|", Kind::Sign(Sign::Operator(Binary::Or))),
    ("^", Kind::Sign(Sign::Operator(Binary::Xor))),
];

/// Returns the tokens of an expression, with [`Kind::End`] as the last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let follows_dns_name = matches!(&tokens[..], [.., Token { place: dns, .. }, Token { place: name, .. }]
            if text[dns.clone()] == *"dns" && text[name.clone()] == *"name");
        let (kind, length) = if follows_dns_name && let Some(length) = dns_name_length(rest) {
            (Kind::Name, length)
        } else if first == '\\' {
            (Kind::Name, 1 + run(&rest[1..], is_word_byte))
        } else if let Some(length) = colons(rest) {
            (address(&rest[..length], at)?, length)
        } else if let Some(parent) = rest.strip_prefix("*.") {
            // Names below a domain.
            (Kind::Word, 2 + word_length(parent))
        } else if first == '.' && run(rest, is_word_byte) == 1 {
            // The root domain.
            (Kind::Word, 1)
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let length = word_length(rest);
            (word(&rest[..length], at)?, length)
        } else if let Some((sign, kind)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            (*kind, sign.len())
        } else {
            let place = at..at + first.len_utf8();
            let sentence = match first {
                '"' | '\'' => "A capture filter has no texts in quotes".to_owned(),
                _ => format!("\"{}\" means nothing here", first.escape_debug()),
            };
            return Err(Problem::new(place, sentence));
        };
        tokens.push(Token { kind, place: at..at + length });
        at += length;
    }
    tokens.push(Token { kind: Kind::End, place: text.len()..text.len() });
    Ok(tokens)
}

/// Returns the length of a name of DNS, written as flowsieve prints it, if the text begins with one
/// that is no keyword. It ends at white space, `)`, `&&` or `||`; behind a backslash these belong to it.
fn dns_name_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.char_indices().find(|&(at, letter)| {
        let is_sign = [")", "&&", "||"].iter().any(|sign| text[at..].starts_with(sign));
        let ends = !is_escaped && (letter.is_ascii_whitespace() || is_sign);
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    let name = &text[..end.map_or(text.len(), |(at, _)| at)];
    // Other signs there are mistakes, unless they are escaped: quotes, or a comma of a list.
    let begins =
        name.starts_with(|first: char| first.is_alphanumeric() || "_-.*\\".contains(first));
    let is_name = begins && !name.ends_with(',') && !matches!(name, "and" | "or" | "not");
    is_name.then_some(name.len())
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Returns the number of leading bytes of a kind.
fn run(text: &str, is_of_kind: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&byte| is_of_kind(byte)).count()
}

/// Returns the length of a word, which does not end with a dash or a dot: these are signs, or
/// mistakes. The final dot of a domain name belongs to it.
fn word_length(text: &str) -> usize {
    let longest = run(text, is_word_byte);
    let word = text[..longest].trim_end_matches(['-', '.']);
    let is_absolute = text[word.len()..longest] == *"." && word.contains(char::is_alphabetic);
    word.len() + usize::from(is_absolute)
}

/// Returns the length of an address with colons, if the text begins with one. A single colon
/// belongs to an index.
fn colons(text: &str) -> Option<usize> {
    let length = run(text, |byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let colons = text[..length].bytes().filter(|&byte| byte == b':').count();
    (colons >= 2).then_some(length)
}

fn address(text: &str, at: usize) -> Result<Kind, Problem> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Kind::V6(address.to_bits()));
    }
    mac(text.split(':')).map(Kind::Mac).ok_or_else(|| {
        let sentence = format!("\"{text}\" is neither an IPv6 nor an Ethernet address");
        Problem::new(at..at + text.len(), sentence)
    })
}

/// Parses an Ethernet address of six parts.
fn mac<'a>(parts: impl Iterator<Item = &'a str>) -> Option<[u8; 6]> {
    let mut bytes = Vec::with_capacity(6);
    for part in parts.take(7) {
        if part.len() > 2 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(part, 16).ok()?);
    }
    bytes.try_into().ok()
}

/// Parses an Ethernet address of three parts, or of one.
fn mac_of_digits(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split('.');
    let digits: String = match text.len() {
        12 => text.to_owned(),
        14 if parts.all(|part| part.len() == 4) => text.replace('.', ""),
        _ => return None,
    };
    if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(&digits, 16).ok()?;
    number.to_be_bytes()[2..].try_into().ok()
}

fn word(text: &str, at: usize) -> Result<Kind, Problem> {
    let place = at..at + text.len();
    match text {
        "and" => return Ok(Kind::And),
        "or" => return Ok(Kind::Or),
        "not" => return Ok(Kind::Not),
        _ => {}
    }
    if let Some(bytes) = mac(text.split('-')).or_else(|| mac_of_digits(text)) {
        return Ok(Kind::Mac(bytes));
    }
    if is_number(text) {
        return number(text).map(Kind::Number).ok_or_else(|| {
            let sentence = format!("{text} is no number that a capture filter can hold");
            Problem::new(place, sentence)
                .with_hint("Numbers have 32 bits; those that begin with 0 are octal.")
        });
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return dotted(text).ok_or_else(|| {
            let sentence = format!("\"{text}\" is no IPv4 address");
            Problem::new(place, sentence)
        });
    }
    Ok(names::find(names::CONSTANTS, text).map_or(Kind::Word, Kind::Number))
}

fn is_number(text: &str) -> bool {
    match hexadecimal(text) {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Parses the leading bytes of an IPv4 address.
fn dotted(text: &str) -> Option<Kind> {
    let (mut address, mut bits) = (0_u32, 0);
    for part in text.split('.') {
        let byte: u8 = part.parse().ok()?;
        if bits == 32 {
            return None;
        }
        bits += 8;
        address |= u32::from(byte) << (32 - bits);
    }
    Some(Kind::Dotted { address, bits })
}
