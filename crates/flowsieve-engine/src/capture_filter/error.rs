//! Errors in an expression, and their places.

use std::fmt;
use std::ops::Range;

/// Why an expression is no capture filter. Displayed, it is a sentence, then the expression with
/// the place marked below it, then a hint if there is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FilterError {
    pub(super) expression: String,
    pub(super) problem: Problem,
}

impl FilterError {
    /// One sentence, without the expression.
    #[doc(hidden)]
    pub fn problem(&self) -> &str {
        &self.problem.sentence
    }

    /// The bytes of the expression that are wrong; empty at its end if something is missing there.
    #[doc(hidden)]
    pub fn place(&self) -> Range<usize> {
        self.problem.place.clone()
    }

    /// A correction, if one is known.
    #[doc(hidden)]
    pub fn hint(&self) -> Option<&str> {
        self.problem.hint.as_deref()
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| -> String {
            let plain = |c: char| if c.is_control() { ' ' } else { c };
            text.chars().map(plain).collect()
        };
        let width = |text: Option<&str>| text.unwrap_or_default().chars().count();
        let Problem { sentence, place, hint } = &self.problem;
        let before = width(self.expression.get(..place.start));
        let marked = width(self.expression.get(place.clone())).max(1);
        writeln!(f, "{sentence}")?;
        writeln!(f, "  {}", shown(&self.expression))?;
        write!(f, "  {:before$}{:^<marked$}", "", "")?;
        if let Some(hint) = hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FilterError {}

/// A problem at a place of the expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    pub(super) sentence: String,
    pub(super) place: Range<usize>,
    pub(super) hint: Option<String>,
}

impl Problem {
    pub(super) fn new(place: Range<usize>, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), place, hint: None }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
