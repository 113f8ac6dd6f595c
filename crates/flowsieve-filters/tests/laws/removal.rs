//! Removals.

use crate::elements::{Elements, answers, insert_all, stream};
use crate::specs::specs;
use flowsieve_filters::hashing::Digester;
use flowsieve_filters::{ElementDigests, FilterSpec, MembershipFilter, Refill, ScalableSpec};

#[test]
fn a_removal_undoes_an_insertion() {
    // The second elements contain some of the first, so that these are inserted twice.
    let first = stream(2, 6, 400, 400);
    let second = Elements::sharing(2, 6, 97, (300..700).rev());
    let others = stream(2, 7, 4000, 4000);
    let (mut undone, mut undone_refilled) = (0, 0);
    for spec in specs() {
        let mut filter = spec.build();
        let refills =
            matches!(spec, FilterSpec::Scalable(ScalableSpec { refill: Refill::FirstNotFull, .. }));
        if filter.as_removable().is_none() {
            continue;
        }
        insert_all(&mut *filter, &first);
        let before = (answers(&*filter, &others), filter.stats());
        insert_all(&mut *filter, &second);
        let counters = filter.stats().counters.unwrap();
        let exact = counters.saturated == 0 && counters.given_up == 0;
        let removable = filter.as_removable().unwrap();
        second.iter().for_each(|e| removable.remove(e));
        assert_eq!(filter.distinct(), None, "{spec:?}");
        assert!(!answers(&*filter, &first).contains(&false), "{spec:?}");
        // Saturated counters and buckets given up stay, and so do elements that several links
        // claim, which only happens under the published rule of a chain.
        let ambiguous =
            |filter: &dyn MembershipFilter| filter.stats().counters.unwrap().ambiguous_removals;
        assert!(refills || ambiguous(&*filter) == 0, "{spec:?}");
        if !exact || ambiguous(&*filter) != 0 {
            continue;
        }
        undone += 1;
        undone_refilled += u32::from(refills);
        assert_eq!((answers(&*filter, &others), filter.stats()), before, "{spec:?}");
        let removable = filter.as_removable().unwrap();
        first.iter().for_each(|e| removable.remove(e));
        if refills && ambiguous(&*filter) != 0 {
            continue;
        }
        assert_eq!(filter.stats(), spec.build().stats(), "{spec:?}");
        assert!(!answers(&*filter, &first).contains(&true), "{spec:?}");
        // The removal of an absent element does nothing.
        let removable = filter.as_removable().unwrap();
        first.iter().for_each(|e| removable.remove(e));
        assert_eq!(filter.stats(), spec.build().stats(), "{spec:?}");
    }
    assert!(undone >= 60, "only {undone} filters were exact");
    assert!(undone_refilled >= 6, "only {undone_refilled} chains");
}

/// Elements are inserted and removed at random, some of them several times; each removal undoes an
/// insertion.
#[test]
fn justified_removals_keep_other_elements() {
    const DISTINCT: u32 = 700;
    let elements = Elements::sharing(2, 9, 97, 0..DISTINCT);
    let columns: Vec<ElementDigests<'_>> = elements.iter().collect();
    let digester = Digester::new(10);
    for spec in specs() {
        let mut filter = spec.build();
        if filter.as_removable().is_none() {
            continue;
        }
        let mut there = [0_u32; DISTINCT as usize];
        for step in 0..6000_u32 {
            let random = digester.digest(&step.to_le_bytes()).value();
            let which = (random % u64::from(DISTINCT)) as usize;
            // Fills up in the first half, empties in the second.
            let insert = (random >> 32) % 100 < if step < 3000 { 60 } else { 40 };
            if insert {
                filter.insert(columns[which]);
                there[which] += 1;
            } else if there[which] > 0 {
                let removable = filter.as_removable().expect("it is one");
                removable.remove(columns[which]);
                there[which] -= 1;
            }
            if step % 500 == 499 {
                for (&element, &count) in columns.iter().zip(&there) {
                    assert!(count == 0 || filter.contains(element), "{spec:?} {step}");
                }
            }
        }
    }
}
