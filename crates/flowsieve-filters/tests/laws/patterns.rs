//! Questions with attributes left open.

use crate::elements::{ByArity, arity, ask, insert_all, stream};
use crate::specs::specs;
use flowsieve_filters::PatternAnswer;

#[test]
fn no_pattern_of_an_inserted_element_is_absent() {
    let elements = ByArity::new(|arity| stream(arity, 8, 2000, 3000));
    for spec in specs() {
        let elements = elements.of(arity(&spec));
        let mut filter = spec.build();
        insert_all(&mut *filter, elements);
        let Some(filter) = filter.as_multi_attribute() else {
            continue;
        };
        for element in elements.iter() {
            for mask in 0..1_u32 << arity(&spec) {
                let answer = ask(element, mask, |pattern| filter.contains_where(pattern));
                assert_ne!(answer, PatternAnswer::Absent, "{spec:?} {mask:#b}");
            }
        }
    }
}
