//! The question of a ranking: its keys, and what is distinct about each.

use super::plan::RankBy;
use crate::elements::{Attribute, Field, all_decided, check_fields, names, plural};
use crate::pipeline::PlanError;

/// Asks, for each value of some fields, how many distinct values of others there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    by: Vec<Field>,
    distinct: Vec<Field>,
}

impl Default for Question {
    /// Asks which sources have the most distinct destinations.
    fn default() -> Self {
        Self {
            by: vec![Field::whole(Attribute::Source)],
            distinct: vec![Field::whole(Attribute::Destination)],
        }
    }
}

impl Question {
    /// A question with these keys, and what is distinct about them.
    ///
    /// # Errors
    ///
    /// Fields that are missing, stand twice, or decide each other.
    pub fn new(by: Vec<Field>, distinct: Vec<Field>) -> Result<Self, PlanError> {
        check_fields("--by", &by)?;
        check_fields("--distinct", &distinct)?;
        if all_decided(&distinct, &by) {
            let other = others(&by).next().map(|other| format!(", such as {}", other.name()));
            return Err(PlanError::new(format!(
                "each {} has one {}; ask for something else with --distinct{}",
                names(&by),
                names(&distinct),
                other.unwrap_or_default()
            )));
        }
        Ok(Self { by, distinct })
    }

    /// Whether any of the fields is such an attribute.
    pub(super) fn any(&self, is: impl Fn(Attribute) -> bool) -> bool {
        let mut fields = self.by.iter().chain(&self.distinct);
        fields.any(|field| is(field.attribute))
    }
}

/// For other crates of this program.
#[doc(hidden)]
impl Question {
    /// Returns what is counted for such keys unless the user says: an address, or where it only has to be
    /// something that every packet has, another attribute.
    pub fn usual_distinct(by: &[Field], rank_by: RankBy) -> Field {
        let is_usual = |other: &Attribute| {
            other.is_address() || (rank_by != RankBy::Distinct && !other.is_port())
        };
        Field::whole(others(by).find(is_usual).unwrap_or(Attribute::Destination))
    }

    /// The keys.
    pub fn by(&self) -> &[Field] {
        &self.by
    }

    /// Returns the fields whose distinct values are counted.
    pub fn distinct(&self) -> &[Field] {
        &self.distinct
    }

    /// Whether it is about DNS messages.
    pub fn is_about_dns(&self) -> bool {
        self.any(Attribute::is_name)
    }

    /// The names of the key's fields, as on the command line.
    pub fn by_names(&self) -> String {
        names(&self.by)
    }

    /// The names of the other fields.
    pub fn distinct_names(&self) -> String {
        names(&self.distinct)
    }

    /// Returns the plural of a key in texts.
    pub fn keys_plural(&self) -> String {
        plural(&self.by)
    }

    /// Returns the plural of the others in texts.
    pub fn others_plural(&self) -> String {
        plural(&self.distinct)
    }
}

/// Returns attributes that do not follow from such keys, the usual ones first.
fn others(by: &[Field]) -> impl Iterator<Item = Attribute> {
    use Attribute::{Destination, DestinationPort, Protocol, Source, Vlan};
    let others = [Destination, Source, DestinationPort, Vlan, Protocol].into_iter();
    others.filter(|&other| !all_decided(&[Field::whole(other)], by))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn fields(text: &str) -> Result<Vec<Field>, PlanError> {
        text.split(',').map(str::parse).collect()
    }

    fn question(by: &str, distinct: &str) -> Result<Question, PlanError> {
        Question::new(fields(by)?, fields(distinct)?)
    }

    #[test]
    fn questions_that_answer_themselves_are_refused() {
        for (by, distinct) in [
            ("src", "dst"),
            ("src/24", "src"),
            ("src/24", "src/25"),
            ("domain2", "domain"),
            ("src,dst", "dst-port"),
            ("src", "src,dst"),
            ("domain2", "src"),
        ] {
            assert!(question(by, distinct).is_ok(), "{by} {distinct}");
        }
        for (by, distinct) in [
            ("src", "src"),
            ("src", "src/24"),
            ("src/24", "src/24"),
            ("src/24", "src/16"),
            ("domain", "domain2"),
            ("src,src/24", "dst"),
            ("src", "domain,domain2"),
            ("src,dst", "dst"),
        ] {
            assert!(question(by, distinct).is_err(), "{by} {distinct}");
        }
    }
}
