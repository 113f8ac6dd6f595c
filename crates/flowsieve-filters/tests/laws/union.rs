//! The union of two filters.

use crate::elements::{ByArity, Elements, arity};
use crate::saved::{loaded, saved, saved_answers, sharded};
use crate::specs::specs;
use flowsieve_filters::FilterSpec;
use flowsieve_filters::saved::{SavedFilter, UnionError};

/// Elements of two overlapping inputs, of both together, and others.
struct Inputs {
    first: Elements,
    second: Elements,
    both: Elements,
    others: Elements,
}

fn inputs() -> ByArity<Inputs> {
    ByArity::new(|arity| {
        let of = |numbers: &mut dyn Iterator<Item = u32>| Elements::sharing(arity, 21, 97, numbers);
        Inputs {
            first: of(&mut (0..500)),
            second: of(&mut (300..900)),
            both: of(&mut (0..500).chain(300..900)),
            others: of(&mut (0..3000)),
        }
    })
}

const fn is_chain(spec: &FilterSpec) -> bool {
    matches!(spec, FilterSpec::Scalable(_))
}

/// Returns the union, or `None` if its chains have too many links; the filter must be unchanged
/// then.
fn united(spec: &FilterSpec, inputs: &Inputs) -> Option<SavedFilter> {
    let (mut union, with) = (sharded(spec, &inputs.first), sharded(spec, &inputs.second));
    let before = saved(&union);
    match union.unite(&with) {
        Ok(()) => Some(union),
        Err(UnionError::Links { links, most }) if is_chain(spec) => {
            assert!(links > most as usize, "{spec:?}");
            assert_eq!(saved(&union), before, "{spec:?}");
            None
        }
        Err(error) => panic!("{spec:?}: {error}"),
    }
}

/// Returns whether the filter has room for its elements: a d-left filter that gave up buckets has
/// no count any more.
fn has_room(spec: &FilterSpec, filter: &SavedFilter) -> bool {
    let given_up = filter.stats().counters.map(|counters| counters.given_up);
    !matches!(spec, FilterSpec::Dleft(_)) || given_up == Some(0)
}

#[test]
fn a_union_is_the_filter_of_both_inputs() {
    let inputs = inputs();
    let (mut chains, mut refused, mut merged) = (0, 0, 0);
    for spec in specs() {
        let inputs = inputs.of(arity(&spec));
        let Some(mut union) = united(&spec, inputs) else {
            refused += 1;
            continue;
        };
        let contained = saved_answers(&union, &inputs.both);
        assert!(contained.iter().all(|(whole, _)| *whole), "{spec:?}");
        let whole = sharded(&spec, &inputs.both);
        // Chains and cells depend on the order of insertions. But each H is stored once, in any
        // cell, and links that took all elements of their shard are a single array of counters.
        let dleft = matches!(spec, FilterSpec::Dleft(_));
        let one_link = union.stats().memory_bytes == 3 * spec.build().stats().memory_bytes
            && union.stats().memory_bytes == whole.stats().memory_bytes;
        chains += u32::from(is_chain(&spec));
        merged += u32::from(is_chain(&spec) && one_link);
        // A crowded halving filter keeps the elements that it saw in each stage.
        let halved =
            matches!(&spec, FilterSpec::Subset(spec) if spec.halving && spec.shape.lines < 128);
        if !dleft && !halved && (!is_chain(&spec) || one_link) {
            assert_eq!(union.stats(), whole.stats(), "{spec:?}");
        }
        let exact = if dleft {
            has_room(&spec, &union) && has_room(&spec, &whole)
        } else {
            (!is_chain(&spec) || one_link) && !halved
        };
        if exact {
            assert_eq!(
                saved_answers(&union, &inputs.others),
                saved_answers(&whole, &inputs.others),
                "{spec:?}"
            );
        }
        // State that does not depend on the order of insertions is bit for bit the same.
        let (bytes, whole_bytes) = (saved(&union), saved(&whole));
        if matches!(spec, FilterSpec::Mdbf(_)) {
            assert_eq!(bytes, whole_bytes, "{spec:?}");
        }
        let mut again = loaded(&bytes);
        assert_eq!(saved(&again), bytes, "{spec:?}");
        assert_eq!(again.distinct(), union.distinct(), "{spec:?}");
        if let (Some(estimate), Some(watched)) = (union.distinct(), whole.distinct()) {
            if estimate.point().is_none() || watched.is_full() {
                // Without a count the bounds must hold.
                assert!(estimate.lower() <= 900, "{spec:?} {estimate:?}");
                assert!(estimate.upper().is_none_or(|upper| upper >= 900), "{spec:?} {estimate:?}");
                continue;
            }
            let error = estimate.distinct - 900.0;
            let allowed = 5.0 * estimate.std_error() + 5.0 * watched.std_error() + 9.0;
            // A nearly full filter counts badly, and states a large error.
            if whole.stats().fill_ratio < 0.9 {
                assert!(error.abs() < allowed, "{spec:?} {estimate:?}");
            }
        }
        // The union and the loaded union go on alike.
        for element in inputs.others.iter().skip(2000) {
            union.insert(element);
            again.insert(element);
            assert!(union.contains(element), "{spec:?}");
        }
        assert_eq!(saved(&again), saved(&union), "{spec:?}");
    }
    println!("of chains {chains} united, {merged} of them in one link; {refused} refused");
    assert!(chains >= 40 && merged >= 10 && refused >= 10);
}

#[test]
fn a_union_with_an_empty_filter_changes_nothing() {
    let inputs = inputs();
    for spec in specs() {
        let some = sharded(&spec, &inputs.of(arity(&spec)).second);
        let empty = || sharded(&spec, &Elements::sharing(2, 21, 97, []));
        // The estimate of the stream is kept.
        let mut none = empty();
        none.unite(&some).unwrap();
        assert_eq!(saved(&none), saved(&some), "{spec:?}");
        none.unite(&empty()).unwrap();
        assert_eq!(saved(&none), saved(&some), "{spec:?}");
    }
}

/// After removals of the elements of one input a union contains those of the other.
#[test]
fn the_elements_of_one_input_can_be_removed() {
    let inputs = inputs();
    let (mut undone, mut of_chains, mut of_cells) = (0, 0, 0);
    for spec in specs() {
        let Inputs { first, second, others, .. } = inputs.of(arity(&spec));
        if spec.build().as_removable().is_none() {
            continue;
        }
        let Some(mut union) = united(&spec, inputs.of(arity(&spec))) else { continue };
        let counters = |filter: &SavedFilter| filter.stats().counters.expect("it has some");
        let saturated = counters(&union).saturated != 0;
        let room = has_room(&spec, &union);
        second.iter().for_each(|element| {
            assert!(union.remove(element));
        });
        assert_eq!(union.distinct(), None, "{spec:?}");
        let left = first.iter().filter(|&element| !union.contains(element));
        assert_eq!(left.count(), 0, "{spec:?}");
        let ambiguous = counters(&union).ambiguous_removals;
        assert!(is_chain(&spec) || ambiguous == 0, "{spec:?}");
        if saturated || !room || ambiguous != 0 {
            continue;
        }
        undone += 1;
        of_chains += u32::from(is_chain(&spec));
        of_cells += u32::from(matches!(spec, FilterSpec::Dleft(_)));
        assert_eq!(
            saved_answers(&union, others),
            saved_answers(&sharded(&spec, first), others),
            "{spec:?}"
        );
        first.iter().for_each(|element| {
            assert!(union.remove(element));
        });
        let stays = others.iter().filter(|&element| union.contains(element));
        assert_eq!(stays.count(), 0, "{spec:?}");
    }
    println!("{undone} exact, {of_chains} of them chains, {of_cells} of cells");
    assert!(undone >= 30 && of_chains >= 5 && of_cells >= 5);
}

/// Some elements of either input are removed; the others stay contained.
#[test]
fn justified_removals_from_a_union_keep_other_elements() {
    let inputs = inputs();
    for spec in specs() {
        let inputs = inputs.of(arity(&spec));
        if spec.build().as_removable().is_none() {
            continue;
        }
        let Some(mut union) = united(&spec, inputs) else { continue };
        // The elements from 300 to 499 were inserted twice, and are removed once.
        let numbers = (0..500).filter(|number| number % 3 != 0);
        let gone: Vec<u32> = numbers.chain(600..800).collect();
        let all: Vec<_> = inputs.others.iter().collect();
        for &number in &gone {
            union.remove(all[number as usize]);
        }
        for (number, &element) in all.iter().enumerate().take(900) {
            let twice = (300..500).contains(&number);
            if twice || !gone.contains(&(number as u32)) {
                assert!(union.contains(element), "{spec:?} {number}");
            }
        }
    }
}
