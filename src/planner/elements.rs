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
            return Err(PlannerError::new(format!(
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
        let mut is_known = vec![false; masks];
        for &(mask, n, origin) in known {
            let at = mask as usize;
            (numbers[at], origins[at], is_known[at]) = (n as f64, origin, true);
        }
        let mut bounds = Bounds { numbers, origins, is_known, name };
        bounds.bound_by_parts(caps)?;
        bounds.check_whole()?;
        bounds.bound_by_larger()?;
        Ok(Self { numbers: bounds.numbers, origins: bounds.origins, caps: caps.to_vec() })
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
}

/// The numbers of all combinations while they are bounded.
struct Bounds<F> {
    /// By mask.
    numbers: Vec<f64>,
    origins: Vec<Origin>,
    is_known: Vec<bool>,
    name: F,
}

impl<F: Fn(u32) -> String> Bounds<F> {
    /// Bounds each combination by the product of its parts, the smaller combinations first.
    fn bound_by_parts(&mut self, caps: &[Option<u64>]) -> Result<(), PlannerError> {
        let known = (0..self.numbers.len()).filter(|&mask| self.is_known[mask]);
        let mut parts: Vec<(usize, f64)> = known.map(|mask| (mask, self.numbers[mask])).collect();
        let caps = caps.iter().enumerate();
        parts.extend(caps.filter_map(|(attribute, cap)| Some((1 << attribute, (*cap)? as f64))));
        for set in 1..self.numbers.len() {
            let is_known = self.is_known[set];
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
                return Err(self.more_than_parts(set, bound));
            }
            (self.numbers[set], self.origins[set]) = (bound, Origin::Bound);
        }
        Ok(())
    }

    fn more_than_parts(&self, set: usize, bound: f64) -> PlannerError {
        let name = (self.name)(set as u32);
        PlannerError::new(format!(
            "{name} has at most {bound} values, as many as its attributes have multiplied, not {}; --expect {name}={bound} works",
            self.numbers[set],
        ))
    }

    fn check_whole(&self) -> Result<(), PlannerError> {
        let full = self.numbers.len() - 1;
        if self.numbers[full].is_finite() {
            return Ok(());
        }
        Err(PlannerError::new(format!(
            "sizes depend on the number of distinct elements, and that of {} is not known; --expect 100k or --sample CAPTURE works",
            (self.name)(full as u32)
        )))
    }

    /// Bounds each combination by those with one attribute more, the larger combinations first.
    fn bound_by_larger(&mut self) -> Result<(), PlannerError> {
        let attributes = self.numbers.len().trailing_zeros();
        for set in (1..self.numbers.len() - 1).rev() {
            for larger in (0..attributes).map(|attribute| set | 1 << attribute) {
                if self.numbers[larger] >= self.numbers[set] {
                    continue;
                }
                if self.is_known[set] {
                    return Err(self.more_than_larger(set, larger));
                }
                self.numbers[set] = self.numbers[larger];
            }
        }
        Ok(())
    }

    fn more_than_larger(&self, set: usize, larger: usize) -> PlannerError {
        let [smaller, name] = [set, larger].map(|mask| (self.name)(mask as u32));
        let [number, bound] = [set, larger].map(|mask| self.numbers[mask]);
        PlannerError::new(format!(
            "{smaller} has at most as many values as {name}, {bound}, not {number}; give the larger combination --expect {name}={number}"
        ))
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
