//! Queries with some of the attributes.

use crate::elements::{ByArity, arity, ask, insert_all, stream};
use crate::specs::specs;
use flowsieve_filters::{PatternAnswer, PatternColumns};

#[test]
fn no_pattern_of_an_inserted_element_is_absent() {
    let elements = ByArity::new(|arity| stream(arity, 8, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        insert_all(&mut *filter, elements);
        let Some(filter) = filter.as_multi_attribute() else { continue };
        for element in elements.iter() {
            for mask in 0..1_u32 << arity(&spec) {
                let answer = ask(element, mask, |pattern| filter.contains_where(pattern));
                assert_ne!(answer, PatternAnswer::Absent, "{spec:?} {mask:#b}");
            }
        }
    }
}

#[test]
fn batches_of_patterns_equal_single_patterns() {
    let elements = ByArity::new(|arity| stream(arity, 9, 2000, 500));
    let others = ByArity::new(|arity| stream(arity, 10, 2000, 300));
    for spec in specs() {
        let arity = arity(&spec);
        let mut filter = spec.build();
        insert_all(&mut *filter, elements.of(arity));
        let Some(filter) = filter.as_multi_attribute() else { continue };
        for asked in [elements.of(arity), others.of(arity)] {
            for mask in 1..(1_u32 << arity) - 1 {
                let (mut attributes, mut expected) = (Vec::new(), Vec::new());
                for element in asked.iter() {
                    expected.push(ask(element, mask, |pattern| filter.contains_where(pattern)));
                    let given = element.attributes.iter().enumerate();
                    attributes.extend(given.filter(|(i, _)| mask >> i & 1 == 1).map(|(_, it)| *it));
                }
                let patterns = PatternColumns { arity, mask, attributes: &attributes };
                let mut answers = vec![PatternAnswer::Unknown];
                filter.contains_where_batch(patterns, &mut answers);
                assert_eq!(answers[1..], expected, "{spec:?} {mask:#b}");
            }
        }
    }
}
