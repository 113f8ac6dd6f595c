//! The truth about a slice: sets of the elements' bytes, and of the bytes of their parts. It
//! knows neither digests nor filters.

use crate::elements::{ElementKind, Keys};
use crate::interner::Interner;
use crate::pipeline::ExactSet;

/// Which combinations are counted: all attributes first.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) kind: ElementKind,
    pub(super) masks: Vec<u32>,
    /// Elements are also counted as a XOR of addresses sees them.
    pub(super) xored: bool,
    /// Values are drawn from the sets.
    pub(super) listed: bool,
}

impl Counted {
    /// Counts the combinations of `asked` (all attributes first), and every single attribute.
    pub(super) fn new(kind: ElementKind, asked: &[u32]) -> Self {
        let mut masks = asked.to_vec();
        let singles = (0..kind.arity()).map(|attribute| 1 << attribute);
        masks.extend(singles.filter(|single| !asked.contains(single)));
        Self { kind, masks, xored: false, listed: true }
    }

    /// Where a combination stands.
    pub(super) fn place(&self, mask: u32) -> Option<usize> {
        self.masks.iter().position(|&counted| counted == mask)
    }
}

/// The distinct elements of a slice and the distinct values of combinations of their attributes.
pub(super) struct SliceSets {
    /// One for each combination that is counted.
    sets: Vec<Distinct>,
    limit: u64,
    /// There is no truth about the slice.
    pub(super) over_limit: bool,
    part: Vec<u8>,
    pub(super) floors: Floors,
    /// Elements as a combined array of addresses joined by XOR sees them; `None` if nothing asks for it.
    xored: Option<Distinct>,
}

/// Distinct byte strings.
enum Distinct {
    /// The faster one.
    Set(ExactSet),
    /// Strings can be drawn by their number. With the bytes that it may take.
    List(Interner, u64),
}

impl Distinct {
    fn new(counted: &Counted, limit: u64) -> Self {
        if counted.listed {
            Self::List(Interner::default(), limit)
        } else {
            Self::Set(ExactSet::new(limit))
        }
    }

    /// Whether the string is new; `None` if the limit is passed.
    #[inline]
    fn insert(&mut self, string: &[u8]) -> Option<bool> {
        match self {
            Self::Set(set) => {
                let is_new = set.insert(string);
                (is_new || set.distinct().is_some()).then_some(is_new)
            }
            Self::List(list, limit) => list.intern(string, 0, *limit).map(|(_, is_new)| is_new),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Set(set) => set.distinct().unwrap_or(0),
            Self::List(list, _) => list.len(),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Set(set) => set.clear(),
            Self::List(list, _) => list.clear(),
        }
    }
}

/// Elements of a slice that structures call new whatever their memory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Floors {
    /// Those with a value that did not occur before: an array for each attribute sees no more.
    pub new_values: u64,
    /// Those with such a value, and those whose values make up another set than before:
    /// addresses joined by XOR see no more. `None` if no structure has such addresses.
    pub new_sets: Option<u64>,
}

impl SliceSets {
    /// Sets that take at most `limit` bytes together.
    pub(super) fn new(counted: &Counted, limit: u64) -> Self {
        let sets = counted.masks.len() + usize::from(counted.xored);
        let set = || Distinct::new(counted, limit / sets as u64);
        Self {
            sets: counted.masks.iter().map(|_| set()).collect(),
            limit,
            over_limit: false,
            part: Vec::new(),
            floors: Floors { new_values: 0, new_sets: counted.xored.then_some(0) },
            xored: counted.xored.then(set),
        }
    }

    /// Takes elements, and appends the numbers of those that were not there before to `new`.
    pub(super) fn add(&mut self, counted: &Counted, keys: &Keys, new: &mut Vec<u32>) {
        if self.over_limit {
            return;
        }
        for (number, key) in (0..).zip(keys.iter()) {
            // No part of a known element is new.
            let is_new = self.sets[0].insert(key);
            if is_new == Some(false) {
                continue;
            }
            new.push(number);
            if is_new.is_none() || self.add_parts(counted, key).is_none() {
                return self.give_up(counted);
            }
        }
    }

    /// Gives the memory back; there is no answer for the rest of the slice.
    pub(super) fn give_up(&mut self, counted: &Counted) {
        *self = Self { over_limit: true, ..Self::new(counted, self.limit) };
    }

    fn add_parts(&mut self, counted: &Counted, key: &[u8]) -> Option<()> {
        // An element of one attribute is its value, which is new.
        let mut has_new_value = counted.kind.arity() < 2;
        for (&mask, set) in counted.masks.iter().zip(&mut self.sets).skip(1) {
            self.part.clear();
            counted.kind.part(key, mask, &mut self.part);
            let is_new = set.insert(&self.part)?;
            has_new_value |= is_new && mask.is_power_of_two();
        }
        self.floors.new_values += u64::from(has_new_value);
        if let (Some(xored), Some(new_sets)) = (&mut self.xored, &mut self.floors.new_sets) {
            // Equal values have equal addresses, which cancel; what is left has no order.
            let mut values: Vec<&[u8]> = Vec::new();
            for (_, value) in counted.kind.values(key, counted.kind.all()) {
                match values.iter().position(|other| *other == value) {
                    Some(place) => drop(values.swap_remove(place)),
                    None => values.push(value),
                }
            }
            values.sort_unstable();
            self.part.clear();
            for value in values {
                self.part.push(value.len() as u8);
                self.part.extend_from_slice(value);
            }
            let is_new = xored.insert(&self.part)?;
            *new_sets += u64::from(has_new_value || is_new);
        }
        Some(())
    }

    /// The values of the combination at this place of the list; `None` if the limit was passed.
    pub(super) fn of(&self, place: usize) -> Option<&Interner> {
        match &self.sets[place] {
            Distinct::List(list, _) if !self.over_limit => Some(list),
            _ => None,
        }
    }

    /// Distinct values of each combination; `None` if the limit was passed.
    pub(super) fn counts(&self) -> Option<Vec<u64>> {
        (!self.over_limit).then(|| self.sets.iter().map(Distinct::len).collect())
    }

    pub(super) fn clear(&mut self) {
        self.sets.iter_mut().chain(&mut self.xored).for_each(Distinct::clear);
        self.floors.new_values = 0;
        self.floors.new_sets = self.floors.new_sets.map(|_| 0);
        self.over_limit = false;
    }
}

/// How many distinct values each combination has in a slice.
pub(super) struct Values {
    counted: Counted,
    counts: Vec<u64>,
}

impl Values {
    pub(super) fn new(counted: Counted, counts: Vec<u64>) -> Self {
        Self { counted, counts }
    }

    /// Distinct values of a combination; of one that is not counted the least upper bound that
    /// follows from larger ones and from the single attributes.
    pub(super) fn of(&self, mask: u32) -> f64 {
        if let Some(place) = self.counted.place(mask) {
            return self.counts[place] as f64;
        }
        let both = || self.counted.masks.iter().zip(&self.counts);
        let singles: f64 = both()
            .filter(|(counted, _)| counted.is_power_of_two() && *counted & mask != 0)
            .map(|(_, &count)| count as f64)
            .product();
        both()
            .filter(|(counted, _)| *counted & mask == mask)
            .map(|(_, &count)| count as f64)
            .fold(singles, f64::min)
    }
}
