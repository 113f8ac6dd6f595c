//! Searching for the smallest number with a property.

use crate::filters::sizing::last;

/// Returns the smallest number from `low` to `high` for which `holds`, if it does from there on;
/// `None` if it does not hold for `high`.
pub(super) fn least(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if holds(low) {
        return Some(low);
    }
    if !holds(high) {
        return None;
    }
    last(low, high, |number| !holds(number)).map(|number| number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_is_found_wherever_it_is() {
        for border in 0..40 {
            assert_eq!(last(3, 30, |n| n < border), (border > 3).then(|| (border - 1).min(30)));
            assert_eq!(least(3, 30, |n| n >= border), (border <= 30).then(|| border.max(3)));
        }
        assert_eq!(last(0, u64::MAX - 1, |_| true), Some(u64::MAX - 1));
    }
}
