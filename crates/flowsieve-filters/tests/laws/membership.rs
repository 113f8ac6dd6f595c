//! Inserted is contained, whatever the way.

use crate::elements::{ByArity, answers, arity, insert_all, state, stream};
use crate::specs::specs;
use flowsieve_filters::{CmdbfSpec, FilterSpec, MdbfSpec, ScalableSpec, Sighting};

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
fn an_insert_says_what_contains_would_have_said() {
    let elements = ByArity::new(|arity| stream(arity, 2, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        for (i, element) in elements.iter().enumerate() {
            let before = filter.contains(element);
            let sighting = filter.insert(element);
            assert_eq!(sighting == Sighting::Repeat, before, "{spec:?} {i}");
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
        assert_eq!(
            state(&*batched, others),
            state(&*one_by_one, others),
            "{spec:?}"
        );
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
fn memory_is_what_the_spec_says() {
    for spec in specs() {
        let built = spec.build().stats().memory_bytes;
        let most = match spec {
            FilterSpec::Scalable(ScalableSpec { most_links, .. }) => built * u64::from(most_links),
            _ => built,
        };
        // Each array of bits is rounded up to words.
        let arrays = match spec {
            FilterSpec::Mdbf(MdbfSpec { attributes, .. }) => attributes,
            FilterSpec::Cmdbf(CmdbfSpec { attributes, .. }) => attributes + 1,
            _ => 1,
        };
        let rounded = most.abs_diff(spec.memory_bytes());
        assert!(rounded < 8 * arrays as u64, "{spec:?}");
    }
}
