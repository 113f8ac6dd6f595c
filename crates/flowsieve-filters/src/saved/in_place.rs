//! Saved filters asked where they lie, without building them: the few bytes that an answer depends
//! on are looked at, and the rest is not touched. For who asks a thousand filters one question
//! each.

use super::{LoadError, StateReader, read_head};
use crate::bits::{CounterArray, Lines};
use crate::hashing::Digest;
use crate::scalable::SavedLinks;
use crate::subset::{self, PlannedCombination};
use crate::{FilterSpec, Pattern, PatternAnswer, ScalableSpec, SubsetSpec, lines, scalable};

/// Bytes behind the last state: the checksum.
const TAIL: u64 = 8;

/// A saved filter of one shard in memory: lines with planned combinations, or a scalable chain.
#[derive(Debug)]
pub struct FilterInPlace<'a> {
    /// Bits of the whole element, and of each combination.
    probes: u32,
    combinations: Vec<PlannedCombination>,
    contents: Contents<'a>,
}

#[derive(Debug)]
enum Contents<'a> {
    /// The lines, and the checksum behind them.
    Lines(&'a [u8]),
    Chain {
        part: u64,
        counter_bits: u32,
        /// The function set of each link and its counters.
        links: Vec<(u64, &'a [u8])>,
    },
}

impl<'a> FilterInPlace<'a> {
    /// The filter that `bytes` are; none if its structure can only be asked when it is loaded. The
    /// head is checked as [`SavedFilter::read`](super::SavedFilter::read) does it; that the rest is
    /// what was written is for the caller to know.
    ///
    /// # Errors
    ///
    /// It is no filter of a known version, or shorter than its head says.
    pub fn open(bytes: &'a [u8]) -> Result<Option<Self>, LoadError> {
        let mut source = bytes;
        let mut input = StateReader::new(&mut source, bytes.len() as u64);
        let head = read_head(&mut input, bytes.len() as u64)?;
        let spec = FilterSpec::load(&mut input)?;
        super::check_checksum(&mut input)?;
        spec.check()?;
        if head.shards != 1 {
            return Ok(None);
        }
        let short = input.damaged("its contents are shorter than its parameters say");
        match spec {
            FilterSpec::Subset(SubsetSpec { halving: true, .. }) => Ok(None),
            FilterSpec::Subset(SubsetSpec { lines, probes, combinations, .. }) => {
                // The counts, which are not asked for.
                for _ in 0..=combinations.len() {
                    input.lasting_distinct()?;
                }
                let contents = &bytes[input.offset() as usize..];
                if contents.len() as u64 != lines * Lines::LINE_BYTES + TAIL {
                    return Err(short);
                }
                Ok(Some(Self { probes, combinations, contents: Contents::Lines(contents) }))
            }
            FilterSpec::Scalable(ScalableSpec { part, probes, counter_bits, .. }) => {
                let mut saved = SavedLinks::load(&mut input)?;
                let of_link = CounterArray::bytes_of(part * u64::from(probes), counter_bits);
                let mut rest = &bytes[input.offset() as usize..];
                let mut links = Vec::new();
                for _ in 0..saved.count {
                    // The function set, the lost increments, the counters.
                    let link = rest.split_at_checked(16 + of_link as usize);
                    let Some((link, behind)) = link.filter(|_| of_link < rest.len() as u64) else {
                        return Err(short);
                    };
                    rest = behind;
                    let function_set = u64::from_le_bytes(link[..8].as_chunks().0[0]);
                    saved.take(function_set, &input)?;
                    links.push((function_set, &link[16..]));
                }
                if rest.len() as u64 != TAIL {
                    return Err(short);
                }
                Ok(Some(Self {
                    probes,
                    combinations: Vec::new(),
                    contents: Contents::Chain { part, counter_bits, links },
                }))
            }
            _ => Ok(None),
        }
    }

    /// Whether the element with this digest was inserted.
    pub fn contains(&self, whole: Digest) -> bool {
        match &self.contents {
            Contents::Lines(lines) => lines::bytes_contain(lines, self.probes, whole),
            Contents::Chain { part, counter_bits, links } => {
                links.iter().any(|&(function_set, counters)| {
                    scalable::positions(whole, function_set, self.probes, *part)
                        .all(|position| is_counted(counters, position, *counter_bits))
                })
            }
        }
    }

    /// Whether an element was inserted whose attributes are those of the pattern, as
    /// [`SavedFilter::contains_where`](super::SavedFilter::contains_where).
    pub fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        if let Some(whole) = pattern.whole {
            return subset::of_bits(self.contains(whole));
        }
        let Contents::Lines(lines) = self.contents else {
            return PatternAnswer::Unknown;
        };
        let parts = self.combinations.iter();
        let parts = parts.map(|part| (part.mask, part.probes));
        subset::answer(pattern, parts, |probes, digest| lines::bytes_contain(lines, probes, digest))
    }
}

/// Whether a counter of an array in words, as they are saved, is above zero.
fn is_counted(words: &[u8], position: u64, width: u32) -> bool {
    let per_word = CounterArray::per_word(width);
    let words = words.as_chunks::<8>().0;
    let word = u64::from_le_bytes(words[(position / per_word) as usize]);
    word >> (position % per_word * u64::from(width)) & ((1 << width) - 1) != 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::MdbfSpec;
    use crate::hashing::Digester;
    use crate::saved::SavedFilter;
    use crate::{ElementDigests, Refill};

    fn digest(of: u64, number: u64) -> Digest {
        Digester::new(of).digest(&number.to_le_bytes())
    }

    fn saved(spec: FilterSpec, count: u64) -> (SavedFilter, Vec<u8>) {
        let mut filter = SavedFilter::empty(spec, 0, b"test".to_vec(), 1).unwrap();
        for number in 0..count {
            let attributes = [digest(1, number % 7), digest(2, number % 50), digest(3, number)];
            filter.insert(ElementDigests {
                whole: Digest::join(0b111, attributes),
                attributes: &attributes,
            });
        }
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        (filter, bytes)
    }

    fn subset() -> FilterSpec {
        FilterSpec::Subset(SubsetSpec {
            attributes: 3,
            halving: false,
            lines: 60,
            probes: 5,
            combinations: [(0b001, 3), (0b010, 4), (0b011, 6)]
                .map(|(mask, probes)| PlannedCombination { mask, probes })
                .to_vec(),
        })
    }

    /// With bits in several lines.
    fn roomy() -> FilterSpec {
        FilterSpec::Subset(SubsetSpec {
            attributes: 3,
            halving: false,
            lines: 30,
            probes: 13,
            combinations: [(0b010, 25), (0b011, 9)]
                .map(|(mask, probes)| PlannedCombination { mask, probes })
                .to_vec(),
        })
    }

    fn chain(counter_bits: u32) -> FilterSpec {
        FilterSpec::Scalable(ScalableSpec {
            part: 101,
            probes: 7,
            counter_bits,
            most_links: 9,
            refill: Refill::Newest,
        })
    }

    fn answers_of_combinations(spec: FilterSpec) {
        let (filter, bytes) = saved(spec, 500);
        let in_place = FilterInPlace::open(&bytes).unwrap().unwrap();
        let (mut present, mut absent) = (0, 0);
        for number in 0..4000 {
            let all = [digest(1, number % 11), digest(2, number % 77), digest(3, number)];
            for given in 1..8_u32 {
                let attributes: Vec<Option<Digest>> =
                    (0..3).map(|at| (given >> at & 1 == 1).then_some(all[at])).collect();
                let pattern = Pattern {
                    whole: (given == 7).then(|| Digest::join(0b111, all)),
                    attributes: &attributes,
                };
                let expected = filter.contains_where(pattern);
                assert_eq!(in_place.contains_where(pattern), expected, "{given:#b}");
                present += u32::from(expected == PatternAnswer::Present);
                absent += u32::from(expected == PatternAnswer::Absent);
            }
        }
        assert!(present > 1000 && absent > 1000, "{present} {absent}");
    }

    #[test]
    fn answers_are_those_of_the_loaded_filter() {
        for spec in [subset(), roomy()] {
            answers_of_combinations(spec);
        }
        for bits in [1, 3, 4, 8] {
            let (filter, bytes) = saved(chain(bits), 300);
            let in_place = FilterInPlace::open(&bytes).unwrap().unwrap();
            let mut present = 0;
            for number in 0..3000 {
                let attributes = [digest(1, number % 7), digest(2, number % 50), digest(3, number)];
                let whole = Digest::join(0b111, attributes);
                let expected = filter.contains(ElementDigests { whole, attributes: &[] });
                assert_eq!(in_place.contains(whole), expected);
                present += u32::from(expected);
            }
            assert!((300..600).contains(&present), "{present}");
        }
    }

    #[test]
    fn what_is_cut_short_is_an_error_and_never_a_panic() {
        for spec in [subset(), chain(4)] {
            let (_, bytes) = saved(spec, 300);
            for length in 0..bytes.len() {
                assert!(FilterInPlace::open(&bytes[..length]).is_err());
                // With a head that says this length.
                let mut changed = bytes[..length].to_vec();
                if length >= 24 {
                    changed[16..24].copy_from_slice(&(length as u64).to_le_bytes());
                    assert!(FilterInPlace::open(&changed).is_err());
                }
            }
        }
        let (_, bytes) =
            saved(FilterSpec::Mdbf(MdbfSpec { attributes: 3, bits: 512, probes: 3 }), 10);
        assert!(FilterInPlace::open(&bytes).unwrap().is_none());
    }
}
