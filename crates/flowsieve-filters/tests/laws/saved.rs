//! Filters on disk.

use crate::elements::{ByArity, Elements, arity, ask, stream};
use crate::specs::specs;
use flowsieve_filters::saved::SavedFilter;
use flowsieve_filters::{ElementDigests, FilterSpec, PatternAnswer};

/// Returns the bytes of a filter.
pub(crate) fn saved(filter: &SavedFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).expect("a vector takes everything");
    bytes
}

pub(crate) fn loaded(bytes: &[u8]) -> SavedFilter {
    SavedFilter::read(&mut &*bytes, bytes.len() as u64).expect("what was saved is loaded")
}

/// Returns a filter in three shards with these elements.
pub(crate) fn sharded(spec: &FilterSpec, elements: &Elements) -> SavedFilter {
    let mut filter = SavedFilter::empty(spec.clone(), 0, b"pairs".to_vec(), 3)
        .expect("the table has filters that can be");
    elements.iter().for_each(|element| filter.insert(element));
    filter
}

/// Returns the answers for each element and each combination of its attributes.
pub(crate) fn saved_answers(
    filter: &SavedFilter,
    elements: &Elements,
) -> Vec<(bool, Vec<PatternAnswer>)> {
    let ask = |element: ElementDigests<'_>| {
        let patterns = (0..1_u32 << element.attributes.len())
            .map(|mask| ask(element, mask, |pattern| filter.contains_where(pattern)));
        (filter.contains(element), patterns.collect())
    };
    elements.iter().map(ask).collect()
}

#[test]
fn a_loaded_filter_is_the_one_that_was_saved() {
    let elements = ByArity::new(|arity| stream(arity, 20, 700, 1000));
    let more = ByArity::new(|arity| stream(arity, 20, 1500, 500));
    for spec in specs() {
        let (elements, more) = (elements.of(arity(&spec)), more.of(arity(&spec)));
        let mut filter = sharded(&spec, elements);
        let bytes = saved(&filter);
        let mut again = loaded(&bytes);
        assert_eq!(saved(&again), bytes, "{spec:?}");
        assert_eq!(again.spec(), &spec);
        // Further insertions have the same results.
        for _ in 0..2 {
            assert_eq!(again.stats(), filter.stats(), "{spec:?}");
            assert_eq!(again.distinct(), filter.distinct(), "{spec:?}");
            assert_eq!(saved_answers(&again, more), saved_answers(&filter, more), "{spec:?}");
            more.iter().for_each(|element| again.insert(element));
            more.iter().for_each(|element| filter.insert(element));
        }
        assert_eq!(saved(&again), saved(&filter), "{spec:?}");
    }
}
