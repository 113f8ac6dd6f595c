//! Filters of numbers: elements that never repeat, distinguished by their digests alone.

use super::Settings;
use super::parallel::in_parallel;
use crate::filters::{ElementDigests, MembershipFilter};
use crate::hashing::Digester;

/// Returns the number as an element.
pub(super) fn element(digester: Digester, number: u64) -> ElementDigests<'static> {
    ElementDigests { whole: digester.digest(&number.to_le_bytes()), attributes: &[] }
}

/// Returns, for each of `runs` filters with the first `elements` numbers, how many of `queries`
/// other numbers it takes for elements.
pub(super) fn false_positives(
    settings: &Settings,
    (runs, elements, queries): (usize, u64, u64),
    build: impl Fn() -> Box<dyn MembershipFilter> + Sync,
) -> Vec<u64> {
    in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        let mut filter = build();
        for number in 0..elements {
            filter.insert(element(digester, number));
        }
        (elements..elements + queries)
            .filter(|&number| filter.contains(element(digester, number)))
            .count() as u64
    })
}
