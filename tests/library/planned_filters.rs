//! Plans can be built: the filter of a row has the row's parameters and its bytes.

#![expect(clippy::float_cmp, reason = "whole numbers are exact")]

use flowsieve::elements::ElementKind;
use flowsieve::filters::{
    BloomSpec, CartesianSpec, CmdbfSpec, CountingSpec, DleftSpec, FilterSpec, MatrixSpec, MdbfSpec,
    PlannedCombination, ScalableSpec, Shape, SplitCountingSpec, SubsetSpec,
};
use flowsieve::planner::{Elements, Goal, Origin, PlanRequest, PlanRow, Structure, Wanted, plan};
use proptest::prelude::*;

/// Compares a row with its filter, field by field.
fn check_row(row: &PlanRow, attributes: usize) -> Result<(), TestCaseError> {
    let Structure::Filter(kind) = row.structure else {
        prop_assert_eq!(row.spec().cloned(), None);
        return Ok(());
    };
    if !row.fits {
        prop_assert_eq!(row.spec().cloned(), None);
        prop_assert!(!row.notes.is_empty() || row.elements == Some(0), "{:?}", row);
        return Ok(());
    }
    let design = &row.shape().unwrap();
    let spec = row.spec().cloned();
    prop_assert!(spec.is_some(), "{row:?}");
    let spec = spec.unwrap();
    prop_assert_eq!(spec.check(), Ok(()));
    prop_assert_eq!(spec.memory_bytes() as f64, row.memory_bytes.unwrap());
    check_parameters(&spec, design, attributes)?;
    prop_assert_eq!(spec.attributes().unwrap_or(attributes), attributes);
    // Small ones are built, and have room in proportion: words are whole.
    if spec.memory_bytes() < 1 << 20 {
        let built = spec.build().stats().memory_bytes;
        let words = 8 * u64::from(design.arrays.unwrap_or(1));
        let chain = matches!(kind, flowsieve::filters::FilterKind::Scalable);
        prop_assert!(chain || built.abs_diff(spec.memory_bytes()) < words, "{row:?}: {built}");
    }
    Ok(())
}

/// The filter's parameters are those of the row.
fn check_parameters(
    spec: &FilterSpec,
    design: &Shape,
    attributes: usize,
) -> Result<(), TestCaseError> {
    if let Some(probes) = design.probes {
        prop_assert_eq!(spec.probes(), probes);
    }
    let counters = (design.size, design.arrays, design.counter_bits);
    match *spec {
        FilterSpec::Bloom(BloomSpec { bits, .. }) => {
            prop_assert_eq!((Some(bits), None), (design.size, design.arrays));
        }
        FilterSpec::Mdbf(MdbfSpec { attributes, bits, .. }) => {
            prop_assert_eq!(design.size, Some(bits));
            prop_assert_eq!(design.arrays.unwrap_or(1), attributes as u32);
        }
        FilterSpec::Cmdbf(CmdbfSpec { attributes, bits, .. }) => {
            prop_assert_eq!(design.size, Some(bits));
            prop_assert_eq!(design.arrays, Some(attributes as u32 + 1));
        }
        FilterSpec::Subset(SubsetSpec { shape, ref combinations, .. }) => {
            prop_assert_eq!(design.size, Some(shape.lines));
            let stored: Vec<(u32, u32)> = combinations
                .iter()
                .map(|&PlannedCombination { mask, probes }| (mask, probes))
                .collect();
            prop_assert_eq!(&stored, &design.stored);
        }
        FilterSpec::Counting(CountingSpec { counters: count, counter_bits, .. }) => {
            prop_assert_eq!((Some(count), None, Some(counter_bits)), counters);
        }
        FilterSpec::SplitCounting(SplitCountingSpec { part, probes, counter_bits }) => {
            prop_assert_eq!((Some(part), Some(probes), Some(counter_bits)), counters);
        }
        FilterSpec::Scalable(ScalableSpec { part, most_links, counter_bits, .. }) => {
            prop_assert_eq!((Some(part), Some(most_links), Some(counter_bits)), counters);
        }
        FilterSpec::Dleft(DleftSpec { buckets, remainder_bits, counter_bits, .. }) => {
            prop_assert_eq!((Some(buckets), Some(4), Some(counter_bits)), counters);
            prop_assert_eq!(design.remainder_bits, Some(remainder_bits));
        }
        FilterSpec::Cartesian(CartesianSpec { size, .. }) => {
            prop_assert_eq!(design.size, Some(size));
        }
        FilterSpec::Matrix(MatrixSpec { ref sizes, ref cuts, .. }) => {
            let equal = design.size.map(|size| vec![size; attributes]);
            prop_assert_eq!(sizes, equal.as_ref().unwrap_or(&design.sizes));
            prop_assert_eq!(cuts, &design.cuts);
            prop_assert_eq!(spec.memory_bytes() as f64, (design.cells.unwrap() / 8.0).ceil());
        }
        // A structure without parameters of its kind alone.
        _ => prop_assert!(design.size.is_some()),
    }
    Ok(())
}

/// A goal, and the memory for the most elements, if their number is maximized.
fn goals() -> impl Strategy<Value = (Goal, Option<u64>)> {
    let bytes = || (6_u32..31, 0_u64..1000).prop_map(|(log2, more)| (1_u64 << log2) + more);
    let fpr = || (1e-6_f64..0.5).prop_map(|fpr| fpr * fpr);
    prop_oneof![
        4 => bytes().prop_map(|bytes| (Goal::Memory { bytes }, None)),
        2 => fpr().prop_map(|fpr| (Goal::Rate { fpr }, None)),
        1 => (1e-5_f64..0.5).prop_map(|fpr| (Goal::AttributeRate { fpr }, None)),
        1 => (bytes(), fpr()).prop_map(|(bytes, fpr)| (Goal::Rate { fpr }, Some(bytes))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_row_that_fits_is_a_filter_with_its_parameters(
        kind in prop::sample::select(ElementKind::ALL.to_vec()),
        wants in prop::collection::btree_map(1_u32..32, 0.01_f64..5.0, 1..4),
        elements in 1_u64..1_000_000,
        first in 1_u64..10_000,
        known in 0.0_f64..=1.0,
        (goal, most_elements_in) in goals(),
    ) {
        let mut wanted: Vec<Wanted> = Vec::new();
        for (mask, weight) in wants {
            let mask = match mask & kind.all() {
                0 => kind.all(),
                mask => mask,
            };
            if wanted.iter().all(|wanted| wanted.mask != mask) {
                wanted.push(Wanted { mask, weight });
            }
        }
        let attributes: Vec<String> = kind.attributes().into_iter().map(str::to_owned).collect();
        // The search for a WCBFM's weights takes seconds among the cuts of five attributes, or for
        // the most elements; what it finds has the shape of any other one.
        let cuts = (attributes.len() > 3).then(|| vec![0b00110, 0b11001]);
        let structures = Structure::all().filter(|structure| {
            most_elements_in.is_none() || structure.name() != "wcbfm"
        });
        let fewer = (1, first.min(elements), Origin::Given);
        let request = PlanRequest {
            elements: Elements::new(
                &kind.most_values(),
                if kind.arity() > 1 { std::slice::from_ref(&fewer) } else { &[] },
                Some(elements),
                |mask| mask.to_string(),
            ).unwrap(),
            structures: structures.collect(),
            attributes,
            wanted,
            goal,
            most_elements_in,
            known,
            cuts,
            weights: None,
            skewed: false,
            key_bytes: 16,
        };
        let plan = plan(&request).unwrap();
        for row in &plan.rows {
            check_row(row, request.attributes.len())?;
        }
    }
}
