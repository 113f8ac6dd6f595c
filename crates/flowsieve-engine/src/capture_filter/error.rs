//! Errors in an expression, and their places.

use std::fmt;
use std::ops::Range;

/// Why an expression is no capture filter. Displayed, it is a sentence, then the expression with
/// the place marked below it, then a hint if there is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FilterError {
    problem: String,
    expression: String,
    place: Range<usize>,
    hint: Option<String>,
}

impl FilterError {
    pub(super) fn new(expression: &str, problem: Problem) -> Self {
        Self {
            problem: problem.sentence,
            expression: expression.to_owned(),
            place: problem.place,
            hint: problem.hint,
        }
    }

    /// One sentence, without the expression.
    #[doc(hidden)]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The bytes of the expression that are wrong; empty at its end if something is missing there.
    #[doc(hidden)]
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// A correction, if one is known.
    #[doc(hidden)]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| -> String {
            let plain = |c: char| if c.is_control() { ' ' } else { c };
            text.chars().map(plain).collect()
        };
        let width = |text: Option<&str>| text.unwrap_or_default().chars().count();
        let before = width(self.expression.get(..self.place.start));
        let marked = width(self.expression.get(self.place.clone())).max(1);
        writeln!(f, "{}", self.problem)?;
        writeln!(f, "  {}", shown(&self.expression))?;
        write!(f, "  {:before$}{:^<marked$}", "", "")?;
        if let Some(hint) = &self.hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FilterError {}

/// A problem at a place, before the expression is added to it.
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
