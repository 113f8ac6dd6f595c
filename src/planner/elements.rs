//! How many distinct values each combination of attributes has.

use super::PlannerError;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The user said so.
    Given,
    /// Counted in a sample.
    Measured,
    /// An upper bound that follows from what is known of other combinations.
    Bound,
}

impl Origin {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Bound => "bound",
        }
    }
}

/// Distinct values of every combination of attributes: known, or bounded by what is known.
///
/// A combination has at most as many values as any larger one, and at most as many as its parts
/// have together, multiplied.
#[derive(Clone, Debug)]
pub struct Elements {
    /// By mask; of the empty combination there is one.
    numbers: Vec<f64>,
    origins: Vec<Origin>,
    caps: Vec<Option<u64>>,
}

impl Elements {
    /// Numbers for all combinations.
    ///
    /// `known` are combinations with their numbers; `for_all` is a bound on every other one; `caps`
    /// are values that a single attribute can have at all (256 protocols).
    ///
    /// # Errors
    ///
    /// A number that contradicts another one, or nothing that bounds the whole element. `name` says
    /// what combinations are called.
    pub fn new(
        caps: &[Option<u64>],
        known: &[(u32, u64, Origin)],
        for_all: Option<u64>,
        name: impl Fn(u32) -> String,
    ) -> Result<Self, PlannerError> {
        let attributes = caps.len();
        let of_all = for_all.map_or(f64::INFINITY, |n| n as f64);
        let mut numbers = vec![of_all; 1 << attributes];
        numbers[0] = 1.0;
        let mut origins = vec![Origin::Bound; 1 << attributes];
        let full = numbers.len() - 1;
        if for_all.is_some() {
            origins[full] = Origin::Given;
        }
        // Parts of which larger combinations can be made.
        let mut parts: Vec<(u32, f64)> =
            known.iter().map(|&(mask, n, _)| (mask, n as f64)).collect();
        for (attribute, cap) in caps.iter().enumerate() {
            if let Some(cap) = *cap {
                parts.push((1 << attribute, cap as f64));
            }
        }
        for &(mask, n, origin) in known {
            if n == 0 {
                return Err(PlannerError::new(format!(
                    "a combination has at least one value, but {} has 0; 1 works",
                    name(mask)
                )));
            }
            numbers[mask as usize] = n as f64;
            origins[mask as usize] = origin;
        }
        for set in 1..=full as u32 {
            let is_known = known.iter().any(|&(mask, ..)| mask == set);
            let mut bound = if is_known { f64::INFINITY } else { numbers[set as usize] };
            for &(part, n) in &parts {
                if part & !set == 0 && (part != set || !is_known) {
                    bound = bound.min(n * numbers[(set & !part) as usize]);
                }
            }
            if is_known && numbers[set as usize] > bound {
                return Err(PlannerError::new(format!(
                    "{} has at most {bound} values, as many as its attributes have multiplied, not {}; --expect {}={bound} works",
                    name(set),
                    numbers[set as usize],
                    name(set),
                )));
            }
            if !is_known {
                if bound < numbers[set as usize] {
                    origins[set as usize] = Origin::Bound;
                }
                numbers[set as usize] = bound;
            }
        }
        if !numbers[full].is_finite() {
            return Err(PlannerError::new(format!(
                "sizes depend on the number of distinct elements, and that of {} is not known; --expect 100k or --sample CAPTURE works",
                name(full as u32)
            )));
        }
        for set in (1..full).rev() {
            for attribute in 0..attributes {
                let larger = set | 1 << attribute;
                if numbers[larger] < numbers[set] {
                    if known.iter().any(|&(mask, ..)| mask as usize == set) {
                        return Err(PlannerError::new(format!(
                            "{} has at most as many values as {}, {}, not {}; give the larger combination --expect {}={}",
                            name(set as u32),
                            name(larger as u32),
                            numbers[larger],
                            numbers[set],
                            name(larger as u32),
                            numbers[set],
                        )));
                    }
                    numbers[set] = numbers[larger];
                }
            }
        }
        Ok(Self { numbers, origins, caps: caps.to_vec() })
    }

    /// The same number for every combination, as far as its attributes can have this many values.
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

    /// Distinct values of a combination.
    pub fn of(&self, mask: u32) -> f64 {
        self.numbers[mask as usize]
    }

    /// Where its number comes from.
    pub fn origin(&self, mask: u32) -> Origin {
        self.origins[mask as usize]
    }

    /// Distinct elements.
    pub fn whole(&self) -> f64 {
        self.numbers[self.numbers.len() - 1]
    }

    /// The most values that a single attribute has.
    pub(super) fn largest_single(&self) -> f64 {
        let singles = (0..self.caps.len()).map(|attribute| self.of(1 << attribute));
        singles.fold(1.0, f64::max)
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
        // What a larger combination allows.
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
