//! Queries for elements that are absent from a slice, drawn from the traffic itself.
//!
//! - *apart*: every attribute's value from a different distinct element, drawn evenly from those
//!   of the slice; so a value comes as often as it has elements. Draws that give a combination that
//!   does occur, or addresses of two families, are thrown away. Combinations of one attribute have
//!   none of these.
//! - *next*: distinct values of the combination in the following slice that are not in this one.
//!
//! Draws follow from the seed, the slice and the combination only.

use super::results::Negatives;
use super::truth::{Counted, SliceSets, Values};
use crate::hashing::{Digest, Digester, mix, reduce};

/// Most queries for a slice, a combination and a kind of negatives; never more than a slice has
/// distinct elements, so that the questions cost no more than the elements, but [`LEAST_QUERIES`].
const MOST_QUERIES: u64 = 20_000;

/// Queries that are drawn of the smallest slices too.
const LEAST_QUERIES: u64 = 256;

/// Draws for a query, on average, before it is given up.
const DRAWS_A_QUERY: u64 = 4;

/// The questions.
pub(super) struct Asking {
    pub(super) counted: Counted,
    /// Combinations, all attributes first.
    pub(super) asked: Vec<u32>,
    pub(super) digester: Digester,
}

/// The questions about a slice that closes, and the truth about its sizes.
#[derive(Default)]
pub(super) struct Questions {
    /// `None` if the truth passed its limit; then there are no queries.
    pub(super) values: Option<Values>,
    /// For every combination that is asked for and every kind of negatives, in this order.
    pub(super) sets: Vec<QuestionSet>,
}

/// Queries for one combination, as digests.
pub(super) struct QuestionSet {
    pub(super) mask: u32,
    pub(super) queries: u64,
    /// Digests of the whole elements; empty unless all attributes are asked for.
    pub(super) whole: Vec<Digest>,
    /// Digests of the attributes, one query after the other.
    pub(super) attributes: Vec<Digest>,
    /// How many queries have known values: those whose attributes in the mask occur in the slice.
    pub(super) known: Vec<(u32, u64)>,
}

impl Questions {
    /// Bytes that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let digests = self.sets.iter().map(|set| set.whole.capacity() + set.attributes.capacity());
        digests.sum::<usize>() * size_of::<Digest>()
    }
}

impl QuestionSet {
    pub(super) fn new(mask: u32) -> Self {
        Self { mask, queries: 0, whole: Vec::new(), attributes: Vec::new(), known: Vec::new() }
    }

    /// Adds a query for the combination with these bytes.
    fn add(&mut self, asking: &Asking, part: &[u8], known: u32) {
        let kind = asking.counted.kind;
        self.queries += 1;
        if self.mask == kind.all() {
            self.whole.push(asking.digester.digest(part));
        }
        let values = kind.values(part, self.mask);
        self.attributes.extend(values.map(|(_, value)| asking.digester.digest(value)));
        match self.known.iter_mut().find(|(mask, _)| *mask == known) {
            Some((_, queries)) => *queries += 1,
            None => self.known.push((known, 1)),
        }
    }
}

impl Asking {
    /// The questions about the slice number `index`, which `next` follows if a slice does.
    pub(super) fn questions(
        &self,
        this: &SliceSets,
        next: Option<&SliceSets>,
        index: i64,
    ) -> Questions {
        let counts = this.counts();
        let sets = self.asked.iter().flat_map(|&mask| {
            Negatives::ALL.map(|negatives| {
                let mut set = QuestionSet::new(mask);
                let stream = u64::from(mask) << 1 | u64::from(negatives == Negatives::Next);
                let start = Digest::from_value(self.digester.seed() ^ index as u64);
                let mut draws = Draws(mix(start, stream));
                match negatives {
                    Negatives::Apart => self.apart(this, &mut draws, &mut set),
                    Negatives::Next => self.next(this, next, &mut draws, &mut set),
                };
                set
            })
        });
        Questions {
            sets: sets.collect(),
            values: counts.map(|counts| Values::new(self.counted.clone(), counts)),
        }
    }

    /// `None` if there is no truth.
    fn apart(&self, this: &SliceSets, draws: &mut Draws, set: &mut QuestionSet) -> Option<()> {
        let kind = self.counted.kind;
        let (mask, whole) = (set.mask, this.of(0)?);
        let of_mask = this.of(self.counted.place(mask)?)?;
        if mask.is_power_of_two() || whole.len() < 2 {
            return Some(());
        }
        let most = most_queries(whole.len());
        let mut part = Vec::new();
        for _ in 0..most * DRAWS_A_QUERY {
            part.clear();
            let mut family = None;
            let mut mixed = false;
            for attribute in (0..kind.arity()).filter(|one| mask >> one & 1 == 1) {
                let element = whole.get(draws.below(whole.len()));
                if kind.addresses() >> attribute & 1 == 1 {
                    part.extend(family.is_none().then_some(element[0]));
                    mixed |= family.is_some_and(|family| family != element[0]);
                    family = Some(element[0]);
                }
                let value = kind.values(element, kind.all()).nth(attribute);
                part.extend_from_slice(value.map_or(&[], |(_, bytes)| bytes));
            }
            if !mixed && !of_mask.contains(&part) {
                set.add(self, &part, mask);
            }
            if set.queries == most {
                break;
            }
        }
        Some(())
    }

    /// `None` if there is no truth.
    fn next(
        &self,
        this: &SliceSets,
        next: Option<&SliceSets>,
        draws: &mut Draws,
        set: &mut QuestionSet,
    ) -> Option<()> {
        let place = self.counted.place(set.mask)?;
        let (there, here) = (next?.of(place)?, this.of(place)?);
        let most = most_queries(this.of(0)?.len());
        // Few are all asked for; of many, some are drawn.
        let all = there.len() <= most;
        let tries = if all { there.len() } else { most * DRAWS_A_QUERY };
        for number in 0..tries {
            let number = if all { number } else { draws.below(there.len()) };
            let part = there.get(number);
            if !here.contains(part) {
                set.add(self, part, self.known(this, set.mask, part)?);
            }
            if set.queries == most {
                break;
            }
        }
        Some(())
    }

    /// The attributes of a combination whose values occur in the slice.
    fn known(&self, this: &SliceSets, mask: u32, part: &[u8]) -> Option<u32> {
        let kind = self.counted.kind;
        let mut known = 0;
        let mut single = Vec::new();
        for (attribute, value) in kind.values(part, mask) {
            single.clear();
            if kind.addresses() >> attribute & 1 == 1 {
                single.push(part[0]);
            }
            single.extend_from_slice(value);
            let place = self.counted.place(1 << attribute)?;
            if this.of(place)?.contains(&single) {
                known |= 1 << attribute;
            }
        }
        Some(known)
    }
}

pub(super) fn most_queries(elements: u64) -> u64 {
    elements.clamp(LEAST_QUERIES, MOST_QUERIES)
}

/// Random numbers that follow from where they start.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    /// From 0 to `n - 1`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        reduce(mix(Digest::from_value(self.0), DRAWS), n)
    }

    /// The digest of a value that does not occur.
    pub(super) fn digest(&mut self) -> Digest {
        self.0 = self.0.wrapping_add(1);
        Digest::from_value(mix(Digest::from_value(self.0), DRAWS))
    }
}

/// Stream of [`mix`] that draws.
const DRAWS: u64 = 0x51;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elements::{ElementColumns, ElementKind};
    use std::collections::HashSet;

    /// Pairs of few hosts, so that many pairs of known hosts do not occur; two families.
    fn pairs(slice: u8) -> Vec<Vec<u8>> {
        let pair = |n: u8| match n % 5 {
            0 => [&[6][..], &[n % 7; 16], &[n % 11 + slice; 16]].concat(),
            _ => vec![4, 10, 0, 0, n % 13, 10, 0, slice, n % 17],
        };
        (0..100).map(pair).collect()
    }

    #[test]
    fn questions_are_about_what_is_not_there() {
        let digester = Digester::new(3);
        let asking = Asking {
            counted: Counted::new(ElementKind::HOST_PAIR, &[0b11, 0b01, 0b10]),
            asked: vec![0b11, 0b01, 0b10],
            digester,
        };
        let slices = [pairs(1), pairs(2)];
        let sets = slices.each_ref().map(|pairs| {
            let mut columns = ElementColumns::default();
            for pair in pairs {
                columns.keys.push(pair);
            }
            let mut sets = SliceSets::new(&asking.counted, 1 << 20);
            sets.add(&asking.counted, &columns.keys, &mut Vec::new());
            sets
        });
        let questions = asking.questions(&sets[0], Some(&sets[1]), 7);
        let digests = slices.each_ref().map(|pairs| -> HashSet<Digest> {
            pairs.iter().map(|pair| digester.digest(pair)).collect()
        });
        let values = slices.each_ref().map(|pairs| -> [HashSet<Digest>; 2] {
            [0, 1].map(|attribute| {
                let of = |pair: &Vec<u8>| {
                    let value = ElementKind::HOST_PAIR.values(pair, 0b11).nth(attribute);
                    digester.digest(value.unwrap().1)
                };
                pairs.iter().map(of).collect()
            })
        });
        let [apart, next, none, source, also_none, destination] = &questions.sets[..] else {
            panic!("three combinations, two kinds each");
        };
        assert_eq!(apart.queries, 256);
        assert_eq!(apart.known, [(0b11, 256)]);
        assert!(apart.whole.iter().all(|whole| !digests[0].contains(whole)));
        for query in apart.attributes.chunks_exact(2) {
            assert!(values[0][0].contains(&query[0]) && values[0][1].contains(&query[1]));
        }
        let expected = digests[1].difference(&digests[0]).count();
        let asked: HashSet<Digest> = next.whole.iter().copied().collect();
        assert_eq!((next.queries as usize, asked.len()), (expected, expected));
        assert!(asked.is_subset(&digests[1]) && asked.is_disjoint(&digests[0]));
        // Sources are the same in both slices, and destinations differ.
        assert_eq!((none.queries, also_none.queries), (0, 0));
        assert_eq!(source.queries, 0);
        let expected: HashSet<Digest> = values[1][1].difference(&values[0][1]).copied().collect();
        let asked: HashSet<Digest> = destination.attributes.iter().copied().collect();
        assert_eq!(asked, expected);
        assert!(destination.known.iter().all(|(known, _)| *known == 0));
        // The same questions every time.
        let again = asking.questions(&sets[0], Some(&sets[1]), 7);
        assert_eq!(again.sets[0].whole, apart.whole);
        let other = asking.questions(&sets[0], Some(&sets[1]), 8);
        assert_ne!(other.sets[0].whole, apart.whole);
    }
}
