//! Comparisons of numbers: bytes of headers, the length, constants, and results of arithmetic.

use super::error::Problem;
use super::lexer::{DIVIDE, Kind, Sign};
use super::parse::Parser;
use super::program::{Binary, Comparison, Header, Relation, STACK_MAX, Step, Test};
use super::qualifiers::{Layer, protocol};
use crate::decode::ip::{AUTHENTICATION, ENCAPSULATED};

/// Returns the header of this name whose bytes can be read.
fn header(name: &str) -> Option<Header> {
    match protocol(name)?.layer {
        Layer::Link => Some(Header::Frame),
        Layer::Network(networks) => Some(Header::Network(networks)),
        Layer::Upper { number: ENCAPSULATED | AUTHENTICATION, .. } | Layer::EtherType(_) => None,
        Layer::Upper { networks, number } => Some(Header::Upper { networks, protocol: number }),
    }
}

/// Returns the precedence of an operator; a higher one binds more tightly.
const fn precedence(operator: Binary) -> u8 {
    match operator {
        Binary::Or => 1,
        Binary::Xor => 2,
        Binary::And => 3,
        Binary::ShiftLeft | Binary::ShiftRight => 4,
        Binary::Add | Binary::Subtract => 5,
        Binary::Multiply | Binary::Divide | Binary::Modulo => 6,
    }
}

const MINUS: Kind = Kind::Sign(Sign::Operator(Binary::Subtract));

impl Parser<'_> {
    /// Returns whether an operand of a comparison begins here, outside of parentheses.
    pub(super) fn is_operand(&self) -> bool {
        match (self.kind(), self.kind_after(1)) {
            (MINUS, _) => true,
            // 10/8 is a network.
            (Kind::Number(_), DIVIDE) => self.inherited.is_none(),
            (Kind::Number(_), Kind::Sign(sign)) => sign.joins_numbers(),
            (Kind::Word, next) => match self.word() {
                Some("len" | "length") => true,
                _ => next == Kind::Sign(Sign::OpenIndex),
            },
            _ => false,
        }
    }

    /// Parses two numbers and their comparison.
    pub(super) fn relation(&mut self) -> Result<(), Problem> {
        let place = self.place();
        let begin = self.begin_relation();
        self.number(0, 0)?;
        let Kind::Sign(Sign::Comparison(comparison)) = self.kind() else {
            return Err(self.problem("A comparison is missing here: =, !=, <, <=, > or >="));
        };
        self.skip();
        self.number(0, 1)?;
        if let Kind::Sign(Sign::Comparison(_)) = self.kind() {
            let sentence = "A comparison has two sides, not three";
            return Err(Problem::new(place.start..self.place().end, sentence));
        }
        self.inherited = None;
        self.push_relation(begin, comparison);
        Ok(())
    }

    /// Returns where the headers and the steps of a comparison begin.
    pub(super) fn begin_relation(&self) -> [u32; 2] {
        [self.headers.len(), self.steps.len()].map(|length| length as u32)
    }

    /// Adds the comparison whose headers and steps begin here.
    pub(super) fn push_relation(&mut self, [headers, steps]: [u32; 2], comparison: Comparison) {
        let [headers_end, steps_end] = self.begin_relation();
        let (headers, steps) = (headers..headers_end, steps..steps_end);
        self.push(Test::Relation(Relation { comparison, headers, steps }));
    }

    /// Parses a number of operators with a higher precedence than `floor`, with `waiting` values on
    /// the stack.
    fn number(&mut self, floor: u8, waiting: usize) -> Result<(), Problem> {
        if waiting >= STACK_MAX {
            return Err(self.problem("The arithmetic is nested too deeply here"));
        }
        self.operand(waiting)?;
        while let Kind::Sign(Sign::Operator(binary)) = self.kind()
            && precedence(binary) > floor
        {
            self.skip();
            let (place, start) = (self.place(), self.steps.len());
            self.number(precedence(binary), waiting + 1)?;
            if let &[Step::Constant(constant)] = &self.steps[start..] {
                let sentence = match binary {
                    Binary::Divide | Binary::Modulo if constant == 0 => "This divides by zero",
                    Binary::ShiftLeft | Binary::ShiftRight if constant > 31 => {
                        "Numbers have 32 bits and cannot be shifted by more than 31"
                    }
                    _ => "",
                };
                if !sentence.is_empty() {
                    return Err(Problem::new(place, sentence));
                }
            }
            self.push_binary(binary);
        }
        Ok(())
    }

    fn operand(&mut self, waiting: usize) -> Result<(), Problem> {
        let mut negations = 0_u32;
        while self.skip_if(MINUS) {
            negations ^= 1;
        }
        match self.kind() {
            Kind::Number(number) => {
                self.skip();
                self.steps.push(Step::Constant(number));
            }
            Kind::Sign(Sign::Open) => {
                self.parentheses(|parser| parser.number(0, waiting))?;
            }
            _ if self.skip_word("len") || self.skip_word("length") => {
                self.steps.push(Step::Length);
            }
            Kind::Word if self.kind_after(1) == Kind::Sign(Sign::OpenIndex) => {
                self.bytes(waiting)?;
            }
            Kind::End => return Err(self.problem("A number is missing here")),
            _ => {
                let text = self.token_text();
                let mut problem = self.problem(format!("\"{text}\" is no number"));
                if text.contains('-') {
                    problem = problem.with_hint("A minus sign needs a space before it.");
                }
                return Err(problem);
            }
        }
        match self.steps.last_mut() {
            _ if negations == 0 => {}
            Some(Step::Constant(number)) => *number = number.wrapping_neg(),
            _ => self.steps.push(Step::Negate),
        }
        Ok(())
    }

    /// Joins two values; constants are folded.
    fn push_binary(&mut self, binary: Binary) {
        if let [.., Step::Constant(left), Step::Constant(right)] = self.steps[..]
            && let Some(result) = binary.apply(left, right)
        {
            self.steps.truncate(self.steps.len() - 2);
            self.steps.push(Step::Constant(result));
        } else {
            self.steps.push(Step::Binary(binary));
        }
    }

    /// Parses bytes of a header: `tcp[13]`, `ip[2:2]`.
    fn bytes(&mut self, waiting: usize) -> Result<(), Problem> {
        let name = self.token_text();
        let Some(header) = header(name) else {
            let sentence = format!("Bytes of \"{name}\" cannot be asked for");
            return Err(self.problem(sentence).with_hint(
                "There are: ether, ip, ip6, arp, rarp, tcp, udp, sctp, icmp, icmp6, igmp, igrp, pim, vrrp.",
            ));
        };
        self.skip();
        let open = self.place();
        self.skip();
        // The offset may contain bytes at other offsets, up to a limit of nesting.
        self.nested(|parser| parser.number(0, waiting))?;
        let mut size = 1;
        if self.skip_if(Kind::Sign(Sign::Colon)) {
            size = match self.kind() {
                Kind::Number(size @ (1 | 2 | 4)) => size as u8,
                _ => return Err(self.problem("A number of bytes is 1, 2 or 4")),
            };
            self.skip();
        }
        if !self.skip_if(Kind::Sign(Sign::CloseIndex)) {
            return Err(match self.kind() {
                Kind::End => Problem::new(open, "This bracket is not closed"),
                _ => self.problem("A closing bracket belongs here"),
            });
        }
        self.headers.push(header);
        self.steps.push(Step::Load { header, size });
        Ok(())
    }
}
