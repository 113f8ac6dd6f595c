//! The words of the course report, or made-up ones, and time and memory of a dictionary of them in a
//! Bloom filter and in a hash set.

use super::Settings;
use super::ratios::{Operation, Times, time_each};
use super::result::{ExperimentError, Measured};
use crate::filters::{BloomFilter, ElementDigests, MembershipFilter};
use crate::hashing::Digester;
use flowsieve_engine::internal::Shown;
use std::cell::RefCell;
use std::fs;
use std::hint::black_box;

/// A set of words.
pub(super) type WordSet<'a> = hashbrown::HashSet<&'a [u8], ahash::RandomState>;

/// Ratios of the times of a word.
pub(super) struct WordTimes {
    /// Time to add a word and to ask for it: the set's to the filter's.
    pub(super) set_per_filter: [Measured; 2],
    /// Time to ask to time to add: the filter's, the set's.
    pub(super) query_per_add: [Measured; 2],
}

/// Measures the time to add the words and to look each of them up, hashing included; the set grows
/// as it fills.
pub(super) fn times(words: &[Vec<u8>], bits: u64, probes: u32, rounds: usize) -> WordTimes {
    // A round of few words is repeated until it is long enough for the clock.
    let again = (2_000 / words.len().max(1)).max(1);
    let digester = Digester::new(1);
    let element = |word: &[u8]| ElementDigests { whole: digester.digest(word), attributes: &[] };
    let filter = RefCell::new(BloomFilter::new(bits, probes));
    let set: RefCell<WordSet<'_>> = RefCell::default();
    let operations: [Operation<'_>; 4] = [
        repeated(again, words, || {
            let mut filter = filter.borrow_mut();
            filter.clear();
            for word in words {
                _ = black_box(filter.insert(element(word)));
            }
        }),
        repeated(again, words, || {
            let mut set = set.borrow_mut();
            *set = WordSet::default();
            for word in words {
                _ = black_box(set.insert(word));
            }
        }),
        repeated(again, words, || {
            let filter = filter.borrow();
            for word in words {
                black_box(filter.contains(element(word)));
            }
        }),
        repeated(again, words, || {
            let set = set.borrow();
            for word in words {
                black_box(set.contains(word.as_slice()));
            }
        }),
    ];
    let times = Times::measure(rounds, operations);
    WordTimes {
        set_per_filter: [times.ratio(1, 0), times.ratio(3, 2)],
        query_per_add: [times.ratio(2, 0), times.ratio(3, 1)],
    }
}

/// Returns the operation that does something with all words several times.
fn repeated<'a>(
    times: usize,
    words: &'a [Vec<u8>],
    mut operation: impl FnMut() + 'a,
) -> Operation<'a> {
    let all = times * words.len();
    Box::new(move || time_each(all, || (0..times).for_each(|_| operation())))
}

/// Returns the most and mean bytes of a set while the words are added, its table and the text of
/// the words; where the table grows, the old one and the new one are there together.
pub(super) fn set_bytes(words: &[Vec<u8>]) -> (usize, f64) {
    let mut set = WordSet::default();
    let (mut text, mut most, mut sum) = (0, 0, 0.0);
    for word in words {
        let before = set.allocation_size();
        set.insert(word);
        text += word.len();
        let after = set.allocation_size();
        let both = if after > before { before + after } else { after };
        most = most.max(both + text);
        sum += (after + text) as f64;
    }
    (most, sum / words.len().max(1) as f64)
}

/// Words of the report's list.
pub(super) const WORDS: usize = 466_550;

/// Returns the distinct words of the list in the settings, and a sentence on where they come from;
/// without a list, as many generated words as the report has.
pub(super) fn words(settings: &Settings) -> Result<(Vec<Vec<u8>>, String), ExperimentError> {
    let most = settings.scale.pick(5_000, WORDS as u64, WORDS as u64) as usize;
    let Some(path) = &settings.words else {
        let words = (0..most).map(|number| format!("word-{number:06}").into_bytes());
        return Ok((
            words.collect(),
            format!(
                "No list of words was given (FLOWSIEVE_WORDS): these are {most} generated words, not the report's."
            ),
        ));
    };
    let text = fs::read(path).map_err(|error| {
        ExperimentError(format!(
            "{}: the list of words cannot be read ({error}); name a text file with one word a line in FLOWSIEVE_WORDS, or unset it",
            path.shown()
        ))
    })?;
    let mut seen = std::collections::HashSet::new();
    let words: Vec<Vec<u8>> = text
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|word| !word.is_empty() && seen.insert(*word))
        .take(most)
        .map(<[u8]>::to_vec)
        .collect();
    let from = format!("A list of words was given: {} distinct ones.", words.len());
    Ok((words, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_largest_while_it_grows() {
        let words: Vec<Vec<u8>> = (0..1_000_u32).map(|n| n.to_le_bytes().into()).collect();
        let (most, mean) = set_bytes(&words);
        let mut set = WordSet::default();
        set.extend(words.iter().map(Vec::as_slice));
        let end = set.allocation_size() + 4 * words.len();
        // The last growth came before the last word, when both the old and the new table exist.
        assert!(most > end && most < 2 * end, "{most} {end}");
        assert!(mean < end as f64 && mean > 0.3 * end as f64, "{mean} {end}");
        assert_eq!(set_bytes(&[]), (0, 0.0));
    }
}
