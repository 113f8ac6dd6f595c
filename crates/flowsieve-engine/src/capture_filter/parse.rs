//! The grammar of expressions: terms joined by `and`, `or`, `not` and parentheses.

use super::dns;
use super::error::Problem;
use super::lexer::{Kind, Sign, Token, tokens};
use super::program::{Header, Node, Program, Step, Test};
use super::qualifiers::Qualifiers;
use std::ops::Range;

/// Longest expression that is accepted.
const LENGTH_MAX: usize = 1 << 16;
/// Largest depth of nested parentheses and brackets.
const DEPTH_MAX: u32 = 100;

/// The state of a parser within an expression, and its output so far.
#[derive(Default)]
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    /// The qualifiers of the previous value, which a value without any takes over.
    pub(super) inherited: Option<Qualifiers>,
    pub(super) nodes: Vec<Node>,
    pub(super) headers: Vec<Header>,
    pub(super) steps: Vec<Step>,
}

/// Compiles an expression. One without tokens matches every packet.
pub(super) fn parse(text: &str) -> Result<Program, Problem> {
    if text.len() > LENGTH_MAX {
        let sentence = format!("The expression is longer than {LENGTH_MAX} bytes");
        return Err(Problem::new(0..0, sentence));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, ..Parser::default() };
    if parser.kind() != Kind::End {
        parser.expression()?;
        parser.nothing_more()?;
    }
    Ok(Program::new(parser.nodes, parser.headers, parser.steps))
}

impl Parser<'_> {
    /// Returns the kind of the next token.
    pub(super) fn kind(&self) -> Kind {
        self.kind_after(0)
    }

    /// Returns the kind of a later token.
    pub(super) fn kind_after(&self, tokens: usize) -> Kind {
        let token = self.tokens.get(self.at + tokens);
        token.map_or(Kind::End, |token| token.kind)
    }

    /// Returns the place of the next token.
    pub(super) fn place(&self) -> Range<usize> {
        let end = self.text.len()..self.text.len();
        let token = self.tokens.get(self.at);
        token.map_or(end, |token| token.place.clone())
    }

    /// Returns the end of the previous token.
    pub(super) fn end_before(&self) -> usize {
        let token = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        token.map_or(0, |token| token.place.end)
    }

    /// Returns the text of a later token if it is a word.
    pub(super) fn word_after(&self, tokens: usize) -> Option<&str> {
        let token = self.tokens.get(self.at + tokens)?;
        match token.kind {
            Kind::Word => self.text.get(token.place.clone()),
            _ => None,
        }
    }

    /// Returns the text of the next token if it is a word.
    pub(super) fn word(&self) -> Option<&str> {
        self.word_after(0)
    }

    /// Returns the text of the next token.
    pub(super) fn token_text(&self) -> &str {
        self.text.get(self.place()).unwrap_or_default()
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    pub(super) fn skip_if(&mut self, kind: Kind) -> bool {
        let is = self.kind() == kind;
        self.at += usize::from(is);
        is
    }

    pub(super) fn skip_word(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        self.at += usize::from(is);
        is
    }

    /// Returns a problem with the next token.
    pub(super) fn problem(&self, sentence: impl Into<String>) -> Problem {
        Problem::new(self.place(), sentence)
    }

    pub(super) fn push(&mut self, test: Test) {
        self.nodes.push(Node::Test(test));
    }

    /// Parses terms from left to right; `and` and `or` have the same precedence.
    fn expression(&mut self) -> Result<(), Problem> {
        self.term()?;
        while let Some(join) = self.join() {
            self.term()?;
            self.nodes.push(join);
        }
        Ok(())
    }

    /// Skips an `and` or `or`.
    pub(super) fn join(&mut self) -> Option<Node> {
        let join = match self.kind() {
            Kind::And => Node::And,
            Kind::Or => Node::Or,
            _ => return None,
        };
        self.skip();
        Some(join)
    }

    /// Skips every `not`; returns whether their number is odd.
    pub(super) fn nots(&mut self) -> bool {
        let mut negated = false;
        while self.skip_if(Kind::Not) {
            negated = !negated;
        }
        negated
    }

    fn term(&mut self) -> Result<(), Problem> {
        let negated = self.nots();
        if self.is_arithmetic()? {
            self.relation()?;
        } else if self.kind() == Kind::Sign(Sign::Open) {
            self.parentheses(Self::expression)?;
        } else {
            self.primitive()?;
        }
        if negated {
            self.nodes.push(Node::Not);
        }
        Ok(())
    }

    /// Parses the contents of parentheses.
    pub(super) fn parentheses<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let open = self.place();
        self.skip();
        let result = self.nested(inside)?;
        if self.kind() == Kind::End {
            return Err(Problem::new(open, "This parenthesis is not closed"));
        }
        if !self.skip_if(Kind::Sign(Sign::Close)) {
            return Err(self.unexpected());
        }
        Ok(result)
    }

    /// Parses the contents of parentheses or brackets, up to the largest depth.
    pub(super) fn nested<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.depth == DEPTH_MAX {
            let sentence = format!("This stands in more than {DEPTH_MAX} parentheses or brackets");
            return Err(self.problem(sentence));
        }
        self.depth += 1;
        let result = inside(self)?;
        self.depth -= 1;
        Ok(result)
    }

    fn nothing_more(&self) -> Result<(), Problem> {
        match self.kind() {
            Kind::End => Ok(()),
            Kind::Sign(Sign::Close) => Err(self.problem("No parenthesis is open here")),
            _ => Err(self.unexpected()),
        }
    }

    /// Returns the problem that the next token cannot follow a term.
    fn unexpected(&self) -> Problem {
        let text = self.token_text();
        match self.kind() {
            Kind::Sign(_) => self.problem(format!("\"{text}\" means nothing here")),
            _ => self.problem(format!("\"{text}\" does not join what stands before it")).with_hint(
                dns::hint(text, self.text)
                    .unwrap_or_else(|| "Terms are joined by \"and\" or \"or\".".to_owned()),
            ),
        }
    }

    /// Returns whether a comparison begins here. If a parenthesis opens, the token behind the
    /// closing one decides.
    fn is_arithmetic(&self) -> Result<bool, Problem> {
        if self.kind() != Kind::Sign(Sign::Open) {
            return Ok(self.is_operand());
        }
        let mut open = 0_usize;
        for token in &self.tokens[self.at..] {
            match token.kind {
                Kind::Sign(Sign::Open) => open += 1,
                Kind::Sign(Sign::Close) if open > 0 => open -= 1,
                Kind::Sign(sign) if open == 0 => return Ok(sign.joins_numbers()),
                _ if open == 0 => return Ok(false),
                _ => {}
            }
        }
        match open {
            0 => Ok(false),
            _ => Err(self.problem("This parenthesis is not closed")),
        }
    }
}
