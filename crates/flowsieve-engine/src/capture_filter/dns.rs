//! Parses tests of DNS messages, which pcap-filter's language does not have.

use super::dns_test::DnsTest;
use super::error::Problem;
use super::lexer::Kind;
use super::parse::Parser;
use super::program::Test;
use crate::decode::{NAME_MAX, labels_from_text, rcode_number, type_number};

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

/// Returns the hint for a word that needs `dns` before it. The names of types are words of other kinds, too
/// (`a`, `any`, `https`), so they are known where the expression is about DNS.
pub(super) fn hint(word: &str, expression: &str) -> Option<String> {
    let upper = word.to_ascii_uppercase();
    let terms = match word {
        "qtype" => "dns qtype AAAA".to_owned(),
        "rcode" => "dns rcode NXDOMAIN".to_owned(),
        "domain" | "qname" => "dns name example.com".to_owned(),
        _ if !expression.contains("dns ") || word.starts_with(|c: char| c.is_ascii_digit()) => {
            return None;
        }
        _ if type_number(&upper).is_some() => format!("dns qtype {upper}"),
        _ if rcode_number(&upper).is_some() => format!("dns rcode {upper}"),
        _ => return None,
    };
    Some(format!("For example: {terms}."))
}

fn name_test(text: &str) -> Option<DnsTest> {
    let (text, below) = match text.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (text, false),
    };
    let mut buffer = [0; NAME_MAX];
    let name = labels_from_text(text.as_bytes(), &mut buffer)?.to_vec();
    Some(DnsTest::Name { name, below })
}
