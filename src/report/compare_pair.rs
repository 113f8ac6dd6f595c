//! Two structures beside each other: the columns of a line about them, and the sentence that
//! answers which of them was nearer to the truth.

use super::cell::Decimal;
use super::column::Columns;
use super::compare_words::{bare, short_percent};
use super::number::{grouped, size};
use crate::comparison::{
    Comparison, Contender, CountErrors, CountKind, NoPair, PairResult, PairSide,
};

/// Two structures at one memory, on one capture or on several together.
#[derive(Clone, Debug)]
pub(super) struct PairRow {
    /// The capture; `None` for all of the run together.
    pub(super) capture: Option<String>,
    /// How many captures are judged.
    pub(super) captures: u64,
    /// Captures in which each had the smaller mean error.
    pub(super) captures_nearer: [u64; 2],
    pub(super) pair: [Contender; 2],
    pub(super) memory: u64,
    pub(super) probes: [Option<u32>; 2],
    pub(super) result: Result<PairResult, NoPair>,
}

impl PairRow {
    /// What a comparison says of two structures in a memory.
    pub(super) fn new(comparison: &Comparison, pair: [Contender; 2], memory: u64) -> Self {
        let result = comparison.pair(pair, memory);
        let mut row = Self {
            capture: None,
            captures: u64::from(result.is_ok()),
            captures_nearer: [0; 2],
            pair,
            memory,
            probes: pair.map(|contender| comparison.entry(contender, memory)?.probes),
            result,
        };
        if let Ok(result) = &row.result {
            let [a, b] = result.sides.each_ref().map(|side| side.errors.mean);
            row.captures_nearer = [u64::from(a < b), u64::from(b < a)];
        }
        row
    }

    /// Captures together, as if their slices were those of one; a capture that is not judged adds
    /// nothing.
    pub(super) fn together(rows: &[&Self]) -> Option<Self> {
        let mut judged = rows.iter().filter(|row| row.result.is_ok());
        let mut all = (*judged.next().or_else(|| rows.iter().next())?).clone();
        all.capture = None;
        for row in judged {
            all.add(row);
        }
        Some(all)
    }

    fn add(&mut self, other: &Self) {
        let (Ok(all), Ok(more)) = (&mut self.result, &other.result) else {
            return;
        };
        let weights = (all.slices as f64, more.slices as f64);
        for (side, more) in all.sides.iter_mut().zip(&more.sides) {
            side.nearer += more.nearer;
            side.memory_bytes = side.memory_bytes.max(more.memory_bytes);
            side.errors = joined(side.errors, more.errors, weights);
            let estimates = side.estimate.zip(more.estimate);
            side.estimate = estimates.map(|(a, b)| joined(a, b, weights));
        }
        all.slices += more.slices;
        all.exact += more.exact;
        all.equal += more.equal;
        self.captures += other.captures;
        for (own, more) in self.captures_nearer.iter_mut().zip(other.captures_nearer) {
            *own += more;
        }
        for (own, other) in self.probes.iter_mut().zip(other.probes) {
            *own = own.filter(|_| *own == other);
        }
    }

    fn side(&self, number: usize) -> Option<&PairSide> {
        Some(&self.result.as_ref().ok()?.sides[number])
    }

    /// Why there is no answer.
    pub(super) fn note(&self) -> Option<String> {
        match self.result.as_ref().err()? {
            NoPair::Unfit { contender, why } => Some(format!("{}: {why}", contender.name())),
            NoPair::Missing(contender) => Some(format!("{} takes no part", contender.name())),
            NoPair::NoSlice => Some("no slice is judged and has elements".to_owned()),
        }
    }
}

/// Errors over the slices of two traces. The slice with the worst error and the 95th percentile are
/// those of the one with the larger ones: nothing shows them of several captures.
fn joined(a: CountErrors, b: CountErrors, (of_a, of_b): (f64, f64)) -> CountErrors {
    let mean = |a: f64, b: f64| (a * of_a + b * of_b) / (of_a + of_b);
    let larger = if b.worst > a.worst { b } else { a };
    CountErrors { mean: mean(a.mean, b.mean), bias: mean(a.bias, b.bias), ..larger }
}

/// One of the two in a row.
#[derive(Clone, Debug)]
pub(super) struct SideRow {
    contender: Contender,
    probes: Option<u32>,
    captures_nearer: u64,
    side: Option<PairSide>,
}

/// The columns of a pair in a memory.
pub(super) fn pair_columns() -> Columns<PairRow> {
    let judged =
        |value: fn(&PairResult) -> u64| move |row: &PairRow| row.result.as_ref().ok().map(value);
    Columns::default()
        .field("memory_asked_bytes", |row: &PairRow| row.memory)
        .doc("memory that each of the two was given for a slice")
        .inlined("slices", judged(|result| result.slices))
        .doc("slices that are judged and have elements; null if there is no answer, as `note` says")
        .inlined("exact", judged(|result| result.exact))
        .doc("distinct elements of these slices, added up")
        .inlined("equal", judged(|result| result.equal))
        .doc("slices in which both were equally far from the truth")
        .object("a", side_columns(), |row| Some(row.side_row(0)))
        .doc("the first of the two")
        .object("b", side_columns(), |row| Some(row.side_row(1)))
        .doc("the second")
        .field("note", PairRow::note)
        .doc("why there is no answer; else null")
}

/// The columns of one of the two.
pub(super) fn side_columns() -> Columns<SideRow> {
    let of = |value: fn(&PairSide) -> f64| {
        move |row: &SideRow| row.side.as_ref().map(|side| Decimal(value(side)))
    };
    let estimate = |value: fn(&CountErrors) -> f64| {
        move |row: &SideRow| row.side.as_ref()?.estimate.as_ref().map(value).map(Decimal)
    };
    Columns::default()
        .field("filter", |row: &SideRow| row.contender.name())
        .doc("the structure")
        .field("probes", |row| row.probes)
        .doc("its hash functions (k); null if it has none, or not the same in all captures")
        .field("memory_bytes", |row| row.side.as_ref()?.memory_bytes)
        .doc("most memory that it used in a slice")
        .field("count", |row| row.side.as_ref().map(|side| side.count.name()))
        .doc("which of its counts is compared with the truth: `raw`, or `estimate` if it has no raw count")
        .field("nearer", |row| row.side.as_ref().map(|side| side.nearer))
        .doc("slices in which it was nearer to the truth than the other one")
        .field("captures_nearer", |row| row.captures_nearer)
        .doc("captures in which it had the smaller mean error")
        .inlined("mean", of(|side| side.errors.mean))
        .doc("mean of the absolute errors of that count")
        .unit("share")
        .inlined("worst", of(|side| side.errors.worst))
        .doc("the largest absolute error of that count")
        .unit("share")
        .inlined("bias", of(|side| side.errors.bias))
        .doc("mean of the signed errors of that count")
        .unit("share")
        .inlined("estimate_mean", estimate(|errors| errors.mean))
        .doc("mean of the absolute errors of its unbiased estimate; null if it has none")
        .unit("share")
        .inlined("estimate_worst", estimate(|errors| errors.worst))
        .doc("the largest absolute error of its estimate")
        .unit("share")
}

/// Slices in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceWords {
    /// One of them: `second` or `slice`.
    one: &'static str,
    /// There is one slice of everything.
    whole: bool,
}

impl SliceWords {
    pub(super) fn of(width_ns: Option<i64>) -> Self {
        Self {
            one: match width_ns {
                Some(1_000_000_000) => "second",
                _ => "slice",
            },
            whole: width_ns.is_none(),
        }
    }

    pub(super) const fn one(self) -> &'static str {
        self.one
    }
}

/// Whose count it is: `mdbf's raw count`.
fn count_of(side: &PairSide) -> String {
    let name = side.contender.name();
    match side.count {
        CountKind::Raw => format!("{name}'s raw count"),
        CountKind::Estimate => format!("{name}'s estimate"),
    }
}

/// The other count after `than`: `mdbf's`, and which count where they are not of the same kind.
fn possessive(near: &PairSide, far: &PairSide) -> String {
    if near.count == far.count { format!("{}'s", far.contender.name()) } else { count_of(far) }
}

impl PairRow {
    fn side_row(&self, number: usize) -> SideRow {
        SideRow {
            contender: self.pair[number],
            probes: self.probes[number],
            captures_nearer: self.captures_nearer[number],
            side: self.side(number).cloned(),
        }
    }

    /// The two with the one first that was nearer in more slices; of equals the one with the
    /// smaller mean error.
    fn ordered(result: &PairResult) -> [&PairSide; 2] {
        let [a, b] = &result.sides;
        let by_mean = a.errors.mean.total_cmp(&b.errors.mean);
        match b.nearer.cmp(&a.nearer).then(by_mean) {
            std::cmp::Ordering::Greater => [b, a],
            _ => [a, b],
        }
    }

    /// Which of the two was nearer to the truth, and by how much.
    pub(super) fn sentence(&self, words: SliceWords) -> String {
        let result = match &self.result {
            Ok(result) => result,
            Err(NoPair::NoSlice) => {
                let [a, b] = self.pair.map(Contender::name);
                return format!(
                    "{a} and {b} cannot be held against the truth: no {} is judged and has elements.",
                    words.one
                );
            }
            Err(_) => {
                let [a, b] = self.pair.map(Contender::name);
                return format!(
                    "{a} and {b} cannot be compared at {}; {}.",
                    size(self.memory),
                    self.note().unwrap_or_default()
                );
            }
        };
        let [near, far] = Self::ordered(result);
        let each = self.each(result);
        if result.slices == 1 {
            return only(near, far, words, &each);
        }
        let of_all = |slices: u64| {
            let all = grouped(result.slices);
            if slices == result.slices {
                format!("in all {all} {}s", words.one)
            } else {
                format!("in {} of {all} {}s", grouped(slices), words.one)
            }
        };
        let means = format!(
            "mean error {} against {}; worst {} {} against {}",
            short_percent(near.errors.mean),
            short_percent(far.errors.mean),
            words.one,
            short_percent(near.errors.worst),
            short_percent(far.errors.worst)
        );
        if near.nearer == 0 {
            return format!(
                "{} and {} were equally near to the truth {} ({means}), {each}.",
                count_of(near),
                count_of(far),
                of_all(result.equal)
            );
        }
        let mut rest = Vec::new();
        if far.nearer > 0 {
            rest.push(format!("farther off in {}", grouped(far.nearer)));
        }
        if result.equal > 0 {
            rest.push(format!("equally near in {}", grouped(result.equal)));
        }
        let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
        let more = if near.nearer == far.nearer {
            "as often nearer to the truth as"
        } else {
            "nearer to the truth than"
        };
        let difference = far.errors.mean - near.errors.mean;
        let by = if difference > 0.0 {
            format!(", by {} points on average ({means})", bare(difference))
        } else if difference < 0.0 {
            format!(", but on average {} points farther off ({means})", bare(-difference))
        } else {
            format!(", and on average as far off ({means})")
        };
        format!(
            "{} was {more} {} {}{rest}{by}, {each}.",
            count_of(near),
            possessive(near, far),
            of_all(near.nearer)
        )
    }

    /// The same in a few words; nothing if there is no answer.
    pub(super) fn in_short(&self, words: SliceWords) -> Option<String> {
        let result = self.result.as_ref().ok()?;
        let [near, far] = Self::ordered(result);
        let name = match near.nearer {
            0 => "neither",
            _ => near.contender.name(),
        };
        Some(format!(
            "{name} in {} of {} {}s at {} (mean error {} against {})",
            grouped(if near.nearer == 0 { result.equal } else { near.nearer }),
            grouped(result.slices),
            words.one,
            size(self.memory),
            short_percent(near.errors.mean),
            short_percent(far.errors.mean)
        ))
    }

    /// What memory they had.
    fn each(&self, result: &PairResult) -> String {
        let used = result.sides.iter().filter_map(|side| {
            let used = side.memory_bytes.filter(|&used| used != self.memory)?;
            let more = if used > self.memory { ", more than asked for" } else { "" };
            Some(format!("{} uses {}{more}", side.contender.name(), size(used)))
        });
        let used: Vec<String> = used.collect();
        if used.is_empty() {
            format!("at {} each", size(self.memory))
        } else {
            format!("at {} each ({})", size(self.memory), used.join(", "))
        }
    }
}

/// The sentence about a single slice.
fn only(near: &PairSide, far: &PairSide, words: SliceWords, each: &str) -> String {
    let when = if words.whole {
        "over the whole trace".to_owned()
    } else {
        format!("in the only {}", words.one)
    };
    let [own, other] = [near, far].map(|side| side.errors.worst);
    if near.nearer == 0 {
        return format!(
            "{} and {} were equally near to the truth {when}: both {} off, {each}.",
            count_of(near),
            count_of(far),
            short_percent(own)
        );
    }
    format!(
        "{} was nearer to the truth than {} {when}, by {} points: {} off against {}, {each}.",
        count_of(near),
        possessive(near, far),
        bare(other - own),
        short_percent(own),
        short_percent(other)
    )
}
