//! Elements of one to five attributes, and queries for them.

use flowsieve_filters::hashing::{Digest, Digester};
use flowsieve_filters::{
    DigestColumns, ElementDigests, Estimate, FilterSpec, FilterStats, MembershipFilter, Pattern,
    Sighting,
};

/// Most attributes of the structures in [`specs`](crate::specs).
const MOST_ATTRIBUTES: usize = 5;

/// Odd multiplier, so that an attribute has a different value for every number.
const MULTIPLIERS: [u32; MOST_ATTRIBUTES] =
    [1, 2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263];

/// Returns the number of attributes of the elements for a structure: two if it looks at none.
pub(crate) fn arity(spec: &FilterSpec) -> usize {
    spec.attributes().unwrap_or(2)
}

/// One value for each number of attributes.
pub(crate) struct ByArity<T>([T; MOST_ATTRIBUTES]);

impl<T> ByArity<T> {
    /// Calls `make` with each number of attributes.
    pub(crate) fn new(make: impl Fn(usize) -> T) -> Self {
        Self(std::array::from_fn(|before| make(before + 1)))
    }

    /// Maps each value.
    pub(crate) fn map<U>(&self, make: impl FnMut(&T) -> U) -> ByArity<U> {
        ByArity(self.0.each_ref().map(make))
    }

    /// Returns the value for the elements of a structure.
    pub(crate) const fn of(&self, arity: usize) -> &T {
        &self.0[arity - 1]
    }
}

/// Elements by column.
pub(crate) struct Elements {
    pub(crate) whole: Vec<Digest>,
    pub(crate) attributes: Vec<Digest>,
}

impl Elements {
    /// Creates elements of `arity` attributes with these numbers, whose attributes have `values`
    /// values each, which elements share. Elements of one attribute do not share it.
    pub(crate) fn sharing(
        arity: usize,
        seed: u64,
        values: u32,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Self {
        let values = if arity == 1 { u32::MAX } else { values };
        let mut elements = Self::none();
        for number in numbers {
            let value = |multiplier: &u32| number.wrapping_mul(*multiplier) % values;
            let tuple = MULTIPLIERS[..arity].iter().map(value);
            elements.push(seed, &number.to_le_bytes(), tuple);
        }
        elements
    }

    /// Creates elements with these numbers that share no values.
    pub(crate) fn apart(arity: usize, seed: u64, numbers: impl IntoIterator<Item = u32>) -> Self {
        Self::sharing(arity, seed, u32::MAX, numbers)
    }

    /// Creates elements with these values of their attributes.
    pub(crate) fn of<const ARITY: usize>(
        seed: u64,
        tuples: impl IntoIterator<Item = [u32; ARITY]>,
    ) -> Self {
        let mut elements = Self::none();
        for tuple in tuples {
            elements.push(seed, &tuple.map(u32::to_le_bytes).concat(), tuple.into_iter());
        }
        elements
    }

    const fn none() -> Self {
        Self { whole: Vec::new(), attributes: Vec::new() }
    }

    fn push(&mut self, seed: u64, whole: &[u8], tuple: impl Iterator<Item = u32>) {
        self.whole.push(Digester::new(seed).digest(whole));
        for (place, value) in tuple.enumerate() {
            let digester = Digester::new(seed + 1 + place as u64);
            self.attributes.push(digester.digest(&value.to_le_bytes()));
        }
    }

    /// Returns the elements that are `wanted`, in order.
    pub(crate) fn only(&self, mut wanted: impl FnMut(ElementDigests<'_>) -> bool) -> Self {
        let mut some = Self::none();
        for element in self.iter().filter(|&element| wanted(element)) {
            some.whole.push(element.whole);
            some.attributes.extend_from_slice(element.attributes);
        }
        some
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ElementDigests<'_>> {
        self.columns().iter()
    }

    pub(crate) fn columns(&self) -> DigestColumns<'_> {
        DigestColumns { whole: &self.whole, attributes: &self.attributes }
    }
}

/// Returns a stream of `length` elements with numbers below `distinct`, most of which occur several
/// times.
pub(crate) fn stream(arity: usize, seed: u64, distinct: u32, length: u32) -> Elements {
    let digester = Digester::new(seed ^ 0x5eed);
    Elements::sharing(
        arity,
        seed,
        97,
        (0..length).map(|i| {
            let random = digester.digest(&i.to_le_bytes()).value();
            (random % u64::from(distinct)) as u32
        }),
    )
}

/// Queries the attributes of the element in `mask`.
pub(crate) fn ask<T>(
    element: ElementDigests<'_>,
    mask: u32,
    answer: impl FnOnce(Pattern<'_>) -> T,
) -> T {
    let full = (1_u32 << element.attributes.len()) - 1;
    let attributes: Vec<Option<Digest>> = (element.attributes.iter().enumerate())
        .map(|(i, &digest)| (mask >> i & 1 == 1).then_some(digest))
        .collect();
    let pattern =
        Pattern { whole: (mask == full).then_some(element.whole), attributes: &attributes };
    assert_eq!(pattern.mask(), mask);
    answer(pattern)
}

pub(crate) fn answers(filter: &dyn MembershipFilter, elements: &Elements) -> Vec<bool> {
    elements.iter().map(|e| filter.contains(e)).collect()
}

pub(crate) fn insert_all(filter: &mut dyn MembershipFilter, elements: &Elements) -> Vec<Sighting> {
    elements.iter().map(|e| filter.insert(e)).collect()
}

/// Returns everything that can be observed of a filter.
pub(crate) fn state(
    filter: &dyn MembershipFilter,
    probes: &Elements,
) -> (Vec<bool>, FilterStats, Option<Estimate>) {
    (answers(filter, probes), filter.stats(), filter.distinct())
}
