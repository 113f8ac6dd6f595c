//! The plan of a ranking: validated choices, no behaviour.

use crate::elements::{Attribute, Field, all_decided, check_fields, names, plural};
use crate::memory::can_allocate;
use crate::pipeline::{PlanError, RunError, Slicing};
use crate::plan::TracePlan;

/// Everything that a ranking depends on.
#[derive(Clone, Debug)]
pub struct TopPlan {
    /// Inputs.
    pub trace: TracePlan,
    /// Question.
    pub question: Question,
    /// Count DNS queries only.
    pub queries_only: bool,
    /// Time slices.
    pub slicing: Slicing,
    /// Keys that are listed at most; `None` lists all from `least` on, also those that may have as
    /// many, up to [`TopPlan::MOST_LISTED`].
    pub most: Option<usize>,
    /// Distinct others of a key that is listed.
    pub least: u64,
    /// Number that keys are ranked by.
    pub rank_by: RankBy,
    /// Bytes of filter and summary of one slice, half of them each.
    pub memory_bytes: u64,
    /// Bytes that the exact sets may take together; `None` switches them off.
    pub exact_limit_bytes: Option<u64>,
    /// Seed of the digests.
    pub seed: u64,
}

named_enum! {
    /// Number that keys are ranked by.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub enum RankBy {
        /// Distinct others.
        #[default]
        Distinct = "distinct",
        /// Packets.
        Packets = "packets",
        /// Bytes of these packets from their IP headers on.
        Bytes = "bytes",
    }
}

impl RankBy {
    /// Returns the one of a key's numbers that it is ranked by.
    pub(super) fn of<T>(self, distinct: T, packets: T, bytes: T) -> T {
        match self {
            Self::Distinct => distinct,
            Self::Packets => packets,
            Self::Bytes => bytes,
        }
    }
}

/// Least memory of a summary.
pub(super) const LEAST_SUMMARY_BYTES: u64 = 4096;

/// Most memory, as in a count.
const MOST_BYTES: u64 = 1 << 40;

impl TopPlan {
    /// Default memory of filter and summary.
    #[doc(hidden)]
    pub const USUAL_BYTES: u64 = 1 << 20;

    /// Least memory of filter and summary.
    pub(crate) const LEAST_BYTES: u64 = 2 * LEAST_SUMMARY_BYTES;

    /// Bits that an element sets in the filter.
    pub(crate) const PROBES: u32 = 4;

    /// Keys of a slice that are listed at all.
    #[doc(hidden)]
    pub const MOST_LISTED: usize = 1 << 20;

    /// Checks what the types cannot say.
    ///
    /// # Errors
    ///
    /// A width of 0 or less, too little or too much memory, or nothing to be listed.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), PlanError> {
        self.slicing.check()?;
        if !(Self::LEAST_BYTES..=MOST_BYTES).contains(&self.memory_bytes) {
            return Err(PlanError::new(format!(
                "filter and summary have from {} bytes to 1 TiB together, not {}; 1MiB works",
                Self::LEAST_BYTES,
                self.memory_bytes
            )));
        }
        PlanError::unless(
            self.most != Some(0) && self.least > 0,
            "at least one key is listed, with at least one other; 20 keys and 2 others are usual",
        )
    }

    /// Asks the system whether it would give the memory of all open slices, before anything is
    /// read.
    ///
    /// # Errors
    ///
    /// It would not.
    #[doc(hidden)]
    pub fn check_memory(&self) -> Result<(), RunError> {
        let slices = self.open_slices() as u64;
        let bytes = self.memory_bytes.saturating_mul(slices);
        if can_allocate(bytes) {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "filters and summaries of up to {slices} open slices take {bytes} bytes, which this machine does not give; ask for less with --memory"
        )))
    }

    /// Returns how many slices are open at the same time, as in a count.
    #[doc(hidden)]
    pub fn open_slices(&self) -> usize {
        self.slicing.open_slices(self.memory_bytes)
    }

    /// Keys of a slice that are listed.
    pub(crate) fn most_listed(&self) -> usize {
        self.most.map_or(Self::MOST_LISTED, |most| most.min(Self::MOST_LISTED))
    }

    /// Returns the bytes of the filter of a slice.
    pub(super) fn filter_bytes(&self) -> u64 {
        self.memory_bytes / 2
    }

    /// Returns the bytes of the summary of a slice.
    pub(super) fn summary_bytes(&self) -> u64 {
        self.memory_bytes - self.memory_bytes / 2
    }

    /// Returns the bytes of a usual key.
    pub(super) fn usual_key_bytes(&self) -> usize {
        let by = self.question.by().iter();
        let bytes = by.map(|field| match field.attribute {
            attribute if attribute.is_address() => 8,
            attribute if attribute.is_name() => 32,
            _ => 2,
        });
        bytes.sum()
    }

    /// Bytes that the exact sets of one slice may take.
    pub(crate) fn exact_limit(&self) -> Option<u64> {
        let slices = self.open_slices() as u64;
        self.exact_limit_bytes.map(|limit| limit / slices)
    }
}

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
