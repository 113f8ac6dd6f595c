//! Tests of DNS messages, which pcap-filter's language does not have.

use super::error::Problem;
use super::lexer::Kind;
use super::parse::Parser;
use super::program::Test;
use crate::decode::{DnsMessage, NAME_MAX, labels_from_text, rcode_number, type_number};

/// A test of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DnsTest {
    /// There is a message.
    Any,
    Query,
    Response,
    /// The type of the first question.
    Type(u16),
    /// The code of a response.
    Code(u8),
    /// The name of the first question in wire form, or with `below` any name below it.
    Name {
        name: Vec<u8>,
        below: bool,
    },
}

/// The known parts of a message: a log may lack some.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownMessage<'a> {
    pub(super) is_response: bool,
    pub(super) question_type: Option<u16>,
    pub(super) code: Option<u8>,
    pub(super) name: Option<&'a [u8]>,
}

impl<'a> From<DnsMessage<'a>> for KnownMessage<'a> {
    fn from(message: DnsMessage<'a>) -> Self {
        Self {
            is_response: message.is_response,
            question_type: Some(message.question_type),
            code: Some(message.response_code),
            name: Some(message.name),
        }
    }
}

impl DnsTest {
    /// Whether a message meets the test; `None` if that is not known.
    pub(super) fn is(&self, message: KnownMessage<'_>) -> Option<bool> {
        Some(match self {
            Self::Any => true,
            Self::Query => !message.is_response,
            Self::Response => message.is_response,
            Self::Type(wanted) => message.question_type? == *wanted,
            Self::Code(_) if !message.is_response => false,
            Self::Code(wanted) => message.code? == *wanted,
            Self::Name { name, below: false } => message.name? == name.as_slice(),
            Self::Name { name, below: true } => is_below(message.name?, name),
        })
    }
}

/// Whether a name in wire form has labels before those of another.
fn is_below(mut name: &[u8], parent: &[u8]) -> bool {
    while name.len() > parent.len() {
        let label = usize::from(name[0]);
        name = name.get(1 + label..).unwrap_or_default();
        if name == parent {
            return true;
        }
    }
    false
}

impl Parser<'_> {
    /// Parses a test of DNS messages behind the word `dns`.
    pub(super) fn dns(&mut self) -> Result<(), Problem> {
        self.skip();
        let test = match self.word() {
            Some("query") => DnsTest::Query,
            Some("response") => DnsTest::Response,
            Some("qtype") => {
                let what = "a type, such as AAAA, ANY or TYPE65";
                DnsTest::Type(self.dns_value(what, |text| type_number(&text.to_ascii_uppercase()))?)
            }
            Some("rcode") => {
                let what = "a response code, such as NXDOMAIN or SERVFAIL";
                DnsTest::Code(
                    self.dns_value(what, |text| rcode_number(&text.to_ascii_uppercase()))?,
                )
            }
            Some("name") => {
                let what = "a name, such as example.org, or *.example.org for those below it";
                self.dns_value(what, name_test)?
            }
            _ => {
                self.push(Test::Dns(DnsTest::Any));
                return Ok(());
            }
        };
        self.skip();
        self.push(Test::Dns(test));
        Ok(())
    }

    /// Moves to the value behind a word, and reads it.
    fn dns_value<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        self.skip();
        let is_text =
            !matches!(self.kind(), Kind::And | Kind::Or | Kind::Not | Kind::Sign(_) | Kind::End);
        let read = read(self.token_text()).filter(|_| is_text);
        read.ok_or_else(|| self.problem(format!("Here belongs {what}")))
    }
}

fn name_test(text: &str) -> Option<DnsTest> {
    let text = text.strip_prefix('\\').unwrap_or(text);
    let (text, below) = match text.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (text, false),
    };
    let mut buffer = [0; NAME_MAX];
    let name = labels_from_text(text.as_bytes(), &mut buffer)?.to_vec();
    Some(DnsTest::Name { name, below })
}
