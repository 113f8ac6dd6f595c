//! Inserted elements are contained, however they were inserted and queried.

use crate::elements::{ByArity, answers, arity, insert_all, state, stream};
use crate::saved::{saved, sharded};
use crate::specs::specs;
use flowsieve_filters::{CmdbfSpec, FilterSpec, MdbfSpec, ScalableSpec, Sighting, Structure};
use std::collections::HashSet;

#[test]
fn what_was_inserted_is_contained() {
    let elements = ByArity::new(|arity| stream(arity, 1, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        for (i, element) in elements.iter().enumerate() {
            filter.insert(element);
            assert!(filter.contains(element), "{spec:?} {i}");
        }
        assert!(!answers(&*filter, elements).contains(&false), "{spec:?}");
    }
}

#[test]
fn an_insertion_answers_like_a_query_before_it() {
    let elements = ByArity::new(|arity| stream(arity, 2, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        for (i, element) in elements.iter().enumerate() {
            let before = filter.contains(element);
            let sighting = filter.insert(element);
            assert_eq!(sighting != Sighting::First, before, "{spec:?} {i}");
        }
    }
}

#[test]
fn a_batch_is_its_elements_one_by_one() {
    let elements = ByArity::new(|arity| stream(arity, 3, 2000, 3000));
    let others = ByArity::new(|arity| stream(arity, 4, 2000, 3000));
    for spec in specs() {
        let (elements, others) = (elements.of(arity(&spec)), others.of(arity(&spec)));
        let mut one_by_one = spec.build();
        let mut batched = spec.build();
        let sightings = insert_all(&mut *one_by_one, elements);
        let mut appended = vec![Sighting::First];
        batched.insert_batch(elements.columns(), &mut appended);
        assert_eq!(appended[1..], sightings, "{spec:?}");
        for asked in [elements, others] {
            let mut answers = vec![true];
            batched.contains_batch(asked.columns(), &mut answers);
            let expected: Vec<bool> = asked.iter().map(|e| one_by_one.contains(e)).collect();
            assert_eq!(answers[1..], expected, "{spec:?}");
        }
        assert_eq!(state(&*batched, others), state(&*one_by_one, others), "{spec:?}");
        let [batched, one_by_one] = [batched, one_by_one].map(|filter| {
            let filter = filter.as_multi_attribute()?;
            let masks = 1..1_u32 << arity(&spec);
            let counts = masks.map(|mask| (filter.distinct_of(mask), filter.first_of(mask)));
            Some(counts.collect::<Vec<_>>())
        });
        assert_eq!(batched, one_by_one, "{spec:?}");
    }
}

/// Structures that ignore repeats are equal with and without them.
#[test]
fn repeats_change_nothing_if_the_structure_ignores_them() {
    let elements = ByArity::new(|arity| stream(arity, 6, 2000, 3000));
    let firsts = elements.map(|elements| {
        let mut known = HashSet::new();
        elements.only(|element| known.insert(element.whole))
    });
    for spec in specs() {
        let (all, first) = (elements.of(arity(&spec)), firsts.of(arity(&spec)));
        assert!(first.whole.len() < all.whole.len());
        let [all, first] = [all, first].map(|elements| saved(&sharded(&spec, elements)));
        if Structure::Filter(spec.kind()).ignores_repeats() {
            assert_eq!(all, first, "{spec:?}");
        }
    }
}

#[test]
fn a_cleared_filter_is_a_new_one() {
    let elements = ByArity::new(|arity| stream(arity, 5, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        let fresh = state(&*filter, elements);
        assert!(!fresh.0.contains(&true), "{spec:?}");
        assert_eq!(fresh.2.is_some(), spec.counts_distinct(), "{spec:?}");
        let sightings = insert_all(&mut *filter, elements);
        let full = state(&*filter, elements);
        if let Some(removable) = filter.as_removable() {
            elements.iter().take(100).for_each(|e| removable.remove(e));
        }
        filter.clear();
        assert_eq!(state(&*filter, elements), fresh, "{spec:?}");
        assert_eq!(insert_all(&mut *filter, elements), sightings, "{spec:?}");
        assert_eq!(state(&*filter, elements), full, "{spec:?}");
    }
}

#[test]
fn memory_is_that_of_the_spec() {
    for spec in specs() {
        let built = spec.build().stats().memory_bytes;
        let most = match spec {
            FilterSpec::Scalable(ScalableSpec { most_links, .. }) => built * u64::from(most_links),
            _ => built,
        };
        // The spec rounds all arrays up to bytes together.
        let arrays = match spec {
            FilterSpec::Mdbf(MdbfSpec { attributes, .. }) => attributes,
            FilterSpec::Cmdbf(CmdbfSpec { attributes, .. }) => attributes + 1,
            _ => 1,
        };
        let rounded = most.abs_diff(spec.memory_bytes());
        assert!(rounded < 8 * arrays as u64, "{spec:?}");
    }
}
