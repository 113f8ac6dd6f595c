//! The results of a ranking as plain data.

use super::plan::{Question, RankBy};
use crate::inputs::InputResult;
use crate::pipeline::Totals;
use crate::sorted::Item;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Numbers of a key in a bounded summary.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// The key's bytes.
    pub key: Vec<u8>,
    /// Unbiased estimate of its distinct others.
    pub estimate: f64,
    /// Standard error of the estimate.
    pub std_error: f64,
    /// Sum of the weights of its first sightings since it is held: what the estimate rests on.
    pub weight: f64,
    /// Others that were certainly different.
    pub firsts: u64,
    /// Lower bound: with the upper one it holds in 95 of 100 cases or more.
    pub lower: u64,
    /// Upper bound.
    pub upper: u64,
    /// Packets since the key is held.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// The most packets or bytes that it can have, if keys are ranked by them.
    pub at_most: Option<u64>,
    /// The key was held all the time, so that nothing of it was lost.
    pub held_since_start: bool,
}

impl Spread {
    /// Returns whether the key most likely has this many others: by its estimate, of which at least
    /// half was seen while it was held, so that no other key's loss stands for it.
    pub(super) fn likely_has(&self, least: u64) -> bool {
        let number = least as f64;
        let is_likely = self.estimate >= number && self.weight >= number / 2.0;
        self.firsts >= least || (is_likely && self.firsts >= least.min(2))
    }

    /// Returns whether the numbers, which may come from another process, do not contradict each
    /// other.
    pub(crate) fn is_consistent(&self) -> bool {
        [self.estimate, self.std_error, self.weight].into_iter().all(is_count)
            && self.lower <= self.upper
    }

    /// Returns the number that it is ranked by: the estimate, or packets or bytes since it is held.
    pub(super) fn ranked(&self, by: RankBy) -> f64 {
        by.of(self.estimate, self.packets as f64, self.bytes as f64)
    }
}

fn is_count(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

/// Exact numbers of a key.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Exact {
    /// Distinct others.
    pub distinct: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets from their IP headers on.
    pub bytes: u64,
}

impl Exact {
    /// Returns the number that it is ranked by.
    pub(super) fn ranked(&self, by: RankBy) -> u64 {
        by.of(self.distinct, self.packets, self.bytes)
    }
}

/// Orders keys by their numbers, the largest first, then by themselves.
pub(crate) fn order_of_keys(one: (&[u8], &Exact), other: (&[u8], &Exact), by: RankBy) -> Ordering {
    other.1.ranked(by).cmp(&one.1.ranked(by)).then_with(|| one.0.cmp(other.0))
}

named_enum! {
    /// Certainty that a key has as many others as were asked for.
    #[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
    pub enum Certainty {
        /// It has: by the exact count, or by others that were certainly different.
        Certain = "certain",
        /// Its estimate says so.
        Likely = "likely",
        /// Its upper bound allows it.
        Possible = "possible",
    }
}

/// A key of a slice.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TopKey {
    /// Its place, from 1 on.
    pub rank: u64,
    /// The key's bytes: they decide the order of equal keys.
    pub(super) id: Vec<u8>,
    /// The key as text, with commas between its fields.
    pub key: String,
    /// Numbers of the summary; `None` if it does not hold the key, or keys are ranked by the exact
    /// packets or bytes.
    pub spread: Option<Spread>,
    /// The exact answer, if it is known.
    pub exact: Option<Exact>,
    /// The number that it is ranked by: exact, else the estimate, or what came since it is held.
    pub number: f64,
    /// Its share of these numbers of all keys.
    pub share: Option<f64>,
    /// Certainty that the key belongs here.
    pub certainty: Certainty,
}

impl TopKey {
    /// Its distinct others: exact, else the estimate.
    pub fn best(&self) -> f64 {
        match (&self.exact, &self.spread) {
            (Some(exact), _) => exact.distinct as f64,
            (None, Some(spread)) => spread.estimate,
            (None, None) => 0.0,
        }
    }

    /// Packets: all of them by the exact count, else those since the key is held.
    pub fn packets(&self) -> u64 {
        let held = self.spread.as_ref().map(|spread| spread.packets);
        let exact = self.exact.as_ref().map(|exact| exact.packets);
        exact.or(held).unwrap_or(0)
    }

    /// Returns the bytes of these packets.
    pub fn bytes(&self) -> u64 {
        let held = self.spread.as_ref().map(|spread| spread.bytes);
        let exact = self.exact.as_ref().map(|exact| exact.bytes);
        exact.or(held).unwrap_or(0)
    }
}

/// The answer of the summary alone, compared with the exact one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Recall {
    /// Keys of the exact answer.
    pub keys: u64,
    /// Those that the summary alone ranks among as many, equal numbers of others counting as found.
    pub found: u64,
    /// The largest keys of the exact answer that it does not, as text.
    pub missed: Vec<String>,
}

/// The answer for one slice.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says another thing of the slice")]
pub struct TopSlice {
    /// Number of the slice.
    pub(super) index: i64,
    /// Number of earlier counts of the slice; the last count holds.
    pub(super) revision: u64,
    /// First nanosecond of the slice (of the first packet, if there is one slice).
    pub start_ns: i64,
    /// First nanosecond behind it (time of the last packet, if there is one slice).
    pub end_ns: i64,
    /// Packets.
    pub packets: u64,
    /// Elements seen, repeats included.
    pub elements: u64,
    /// Estimate of the distinct elements of all keys.
    pub distinct: f64,
    /// Distinct elements by the exact set; `None` if it is off or passed its limit.
    pub exact: Option<u64>,
    /// Keys of the slice, if the exact set knows them.
    pub exact_keys: Option<u64>,
    /// The exact set was on and passed its limit.
    pub exact_over_limit: bool,
    /// Keys that the summary holds.
    pub held: u64,
    /// The most others that a key can have which the summary does not hold, as far as it was seen, or
    /// packets or bytes, if keys are ranked by them; `None` if it holds all.
    pub most_unheld: Option<u64>,
    /// Share of new elements that the filter noticed in the end.
    pub seen_share: f64,
    /// The numbers that keys are ranked by, over all keys.
    pub sum: f64,
    /// The largest keys, the largest first.
    pub keys: Vec<TopKey>,
    /// The answer of the summary alone, where the exact one is known.
    pub recall: Option<Recall>,
    /// The trace covers the slice only in part, or is not known to cover all of it: it is the first
    /// or the last one.
    #[serde(skip)]
    pub partial: bool,
    /// This slice was emitted before, and packets came for it afterwards: this replaces it.
    #[serde(skip)]
    pub revised: bool,
    /// The sink has it.
    pub(super) is_shown: bool,
}

impl TopSlice {
    /// Returns the number of the slice in the grid.
    pub(crate) const fn index(&self) -> i64 {
        self.index
    }

    /// Returns whether the numbers, which may come from another process, do not contradict each
    /// other.
    pub(crate) fn is_consistent(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        self.start_ns <= self.end_ns
            && is_count(self.distinct)
            && is_count(self.sum)
            && is_share(self.seen_share)
            && self.exact.is_none_or(|exact| exact <= self.elements)
            && self.recall.iter().all(|it| it.found <= it.keys)
            && self.keys.iter().zip(1..).all(|(key, rank)| {
                key.rank == rank
                    && is_count(key.number)
                    && key.share.is_none_or(is_share)
                    && key.spread.iter().all(Spread::is_consistent)
            })
    }

    /// Distinct elements of all keys: exact, else the estimate.
    pub fn best(&self) -> f64 {
        self.exact.map_or(self.distinct, |n| n as f64)
    }
}

impl Item for TopSlice {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.index, self.revision)
    }

    fn further_bytes(&self) -> usize {
        let of_key = |key: &TopKey| {
            let spread = key.spread.as_ref();
            size_of::<TopKey>()
                + key.key.len()
                + key.id.len()
                + spread.map_or(0, |spread| spread.key.len())
        };
        let missed = self.recall.iter().flat_map(|recall| &recall.missed);
        let missed: usize = missed.map(|key| key.len() + size_of::<String>()).sum();
        self.keys.iter().map(of_key).sum::<usize>() + missed
    }
}

/// The result of a run, but for its slices.
#[derive(Debug, Default)]
pub struct TopSummary {
    /// Question.
    pub question: Question,
    /// The outcome of each input.
    pub inputs: Vec<InputResult>,
    /// Packets, and why some had no element.
    pub totals: Totals,
    /// Slices with packets.
    pub slices: u64,
    /// Slices in which the exact set passed its limit.
    pub over_limit: u64,
    /// Slices in which the filter missed more than half of the new elements in the end.
    pub crowded: u64,
    /// Keys listed, over all slices.
    pub listed: u64,
    /// Recall over all slices where the exact answer is known, with the first keys that were
    /// missed.
    pub recall: Option<Recall>,
}
