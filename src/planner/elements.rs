//! The numbers of distinct values of combinations of attributes.

use super::PlannerError;
use flowsieve_engine::named_enum;

named_enum! {
    /// The source of a number.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Origin {
        /// The user said so.
        Given = "given",
        /// Counted in a sample.
        Measured = "measured",
        /// An upper bound that follows from other combinations.
        Bound = "bound",
    }
}

/// The numbers of distinct values of all combinations of attributes: known, or bounded by those that
/// are known.
///
/// A combination has at most as many values as any larger one, and at most the product of the
/// numbers of its parts.
#[derive(Clone, Debug)]
pub struct Elements {
    /// By mask; the empty combination has one value.
    numbers: Vec<f64>,
    origins: Vec<Origin>,
    caps: Vec<Option<u64>>,
}

impl Elements {
    /// Bounds the numbers of all combinations.
    ///
    /// `known` are combinations with their numbers; `for_all` is a bound on every other one; `caps`
    /// are the numbers of values that a single attribute can have (256 protocols).
    ///
    /// # Errors
    ///
    /// A number contradicts another one, or nothing bounds the whole element. `name` returns the
    /// name of a combination.
    pub fn new(
        caps: &[Option<u64>],
        known: &[(u32, u64, Origin)],
        for_all: Option<u64>,
        name: impl Fn(u32) -> String,
    ) -> Result<Self, PlannerError> {
        if let Some(&(mask, ..)) = known.iter().find(|&&(_, n, _)| n == 0) {
            return Err(PlannerError(format!(
                "a combination has at least one value, but {} has 0; 1 works",
                name(mask)
            )));
        }
        let masks = 1 << caps.len();
        let mut numbers = vec![for_all.map_or(f64::INFINITY, |n| n as f64); masks];
        numbers[0] = 1.0;
        let mut origins = vec![Origin::Bound; masks];
        if for_all.is_some() {
            origins[masks - 1] = Origin::Given;
        }
        for &(mask, n, origin) in known {
            (numbers[mask as usize], origins[mask as usize]) = (n as f64, origin);
        }
        let known: Vec<usize> = known.iter().map(|&(mask, ..)| mask as usize).collect();
        let mut elements = Self { numbers, origins, caps: caps.to_vec() };
        elements.bound_by_parts(&known, &name)?;
        if elements.whole().is_infinite() {
            return Err(PlannerError(format!(
                "sizes depend on the number of distinct elements, and that of {} is not known; --expect 100k or --sample CAPTURE works",
                name(masks as u32 - 1)
            )));
        }
        elements.bound_by_larger(&known, &name)?;
        Ok(elements)
    }

    /// Returns the same number for every combination, as far as its attributes can have this many
    /// values.
    #[must_use]
    pub fn all(&self, elements: f64) -> Self {
        let mut numbers = vec![1.0; self.numbers.len()];
        for set in 1..numbers.len() {
            let attribute = set.trailing_zeros() as usize;
            let cap = self.caps[attribute].map_or(f64::INFINITY, |cap| cap as f64);
            numbers[set] = elements.min(cap * numbers[set & (set - 1)]);
        }
        Self { numbers, origins: vec![Origin::Bound; self.origins.len()], caps: self.caps.clone() }
    }

    /// Returns the distinct values of a combination.
    pub fn of(&self, mask: u32) -> f64 {
        self.numbers[mask as usize]
    }

    /// Returns the source of its number.
    pub fn origin(&self, mask: u32) -> Origin {
        self.origins[mask as usize]
    }

    /// Returns the number of distinct elements.
    pub fn whole(&self) -> f64 {
        self.numbers[self.numbers.len() - 1]
    }

    /// Bounds each combination by the product of its parts, the smaller combinations first.
    fn bound_by_parts(
        &mut self,
        known: &[usize],
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), PlannerError> {
        let counted = known.iter().map(|&mask| (mask, self.numbers[mask]));
        let caps = self.caps.iter().enumerate();
        let caps = caps.filter_map(|(attribute, cap)| Some((1 << attribute, (*cap)? as f64)));
        let parts: Vec<(usize, f64)> = counted.chain(caps).collect();
        for set in 1..self.numbers.len() {
            let is_known = known.contains(&set);
            let usable = parts.iter().filter(|(part, _)| part & !set == 0);
            // The number of a known combination is no bound on itself.
            let products = usable
                .filter(|(part, _)| *part != set || !is_known)
                .map(|(part, n)| n * self.numbers[set & !part]);
            let bound = products.fold(f64::INFINITY, f64::min);
            if bound >= self.numbers[set] {
                continue;
            }
            if is_known {
                let (name, number) = (name(set as u32), self.numbers[set]);
                return Err(PlannerError(format!(
                    "{name} has at most {bound} values, as many as its attributes have multiplied, not {number}; --expect {name}={bound} works"
                )));
            }
            (self.numbers[set], self.origins[set]) = (bound, Origin::Bound);
        }
        Ok(())
    }

    /// Bounds each combination by those with one attribute more, the larger combinations first.
    fn bound_by_larger(
        &mut self,
        known: &[usize],
        name: &dyn Fn(u32) -> String,
    ) -> Result<(), PlannerError> {
        for set in (1..self.numbers.len() - 1).rev() {
            for larger in (0..self.caps.len()).map(|attribute| set | 1 << attribute) {
                let (number, bound) = (self.numbers[set], self.numbers[larger]);
                if bound >= number {
                    continue;
                }
                if known.contains(&set) {
                    let [smaller, name] = [set, larger].map(|mask| name(mask as u32));
                    return Err(PlannerError(format!(
                        "{smaller} has at most as many values as {name}, {bound}, not {number}; give the larger combination --expect {name}={number}"
                    )));
                }
                self.numbers[set] = bound;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "whole numbers are exact")]
mod tests {
    use super::*;

    fn elements(
        caps: &[Option<u64>],
        known: &[(u32, u64)],
        for_all: Option<u64>,
    ) -> Result<Elements, String> {
        let known: Vec<_> = known.iter().map(|&(m, n)| (m, n, Origin::Given)).collect();
        Elements::new(caps, &known, for_all, |mask| format!("{mask:b}")).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_known_is_bounded() {
        let two = [None, None];
        let given = elements(&two, &[(1, 50)], Some(1000)).unwrap();
        assert_eq!([1, 2, 3].map(|mask| given.of(mask)), [50.0, 1000.0, 1000.0]);
        assert_eq!(given.origin(1), Origin::Given);
        assert_eq!(given.origin(2), Origin::Bound);
        // Parts multiply.
        let parts = elements(&two, &[(1, 50), (2, 7)], None).unwrap();
        assert_eq!(parts.whole(), 350.0);
        let capped = elements(&[None, Some(256)], &[(1, 2)], Some(10_000)).unwrap();
        assert_eq!([1, 2, 3].map(|mask| capped.of(mask)), [2.0, 256.0, 512.0]);
        // Bounds from a larger combination.
        let whole = elements(&[None; 3], &[(7, 90), (3, 40)], None).unwrap();
        assert_eq!([1, 2, 4, 5].map(|m| whole.of(m)), [40.0, 40.0, 90.0, 90.0]);
        assert_eq!(capped.all(1e9).whole(), 1e9);
        assert_eq!(capped.all(1e9).of(2), 256.0);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let refused = |known: &[(u32, u64)], all| elements(&[None, None], known, all).unwrap_err();
        assert!(refused(&[(1, 50), (3, 20)], None).contains("at most as many"));
        assert!(refused(&[(1, 5), (2, 2), (3, 20)], None).contains("--expect 11=10 works"));
        assert!(refused(&[(1, 5)], None).contains("--expect 100k"));
        assert!(refused(&[(1, 0)], Some(5)).contains("1 works"));
        assert!(refused(&[(1, 50)], Some(20)).contains("at most as many"));
    }
}
