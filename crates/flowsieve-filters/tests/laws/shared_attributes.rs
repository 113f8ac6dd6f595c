//! Parts of a query that share an attribute.

use crate::elements::{Elements, insert_all};
use crate::specs::matrix;
use crate::statistics::Count;
use flowsieve_filters::FilterSpec;
use flowsieve_filters::matrix_sizing::matrix_fpr;

/// Returns how often all three attributes of an absent element are found. Each filter gets few
/// queries, since small filters of the same parameters differ much.
fn observed(spec: &FilterSpec, elements: u32, runs: u64, questions: u32) -> Count {
    let mut count = Count::default();
    for run in 0..runs {
        let mut filter = spec.build();
        insert_all(&mut *filter, &Elements::apart(3, 1000 * run, 0..elements));
        let strangers = Elements::apart(3, 1000 * run, elements..elements + questions);
        for element in strangers.iter() {
            count.record(filter.contains(element));
        }
    }
    count
}

/// With the cut {1,2}, the cells of {1,3} and of {2,3} are in the row of the same address of
/// attribute 3, and a full row is full for both. So the rate of the full query is above the
/// product, by a term of 1/m in `matrix_sizing` that shows if m is small.
#[test]
fn rates_of_small_matrices_exceed_the_product_by_the_shared_row() {
    let (sizes, n) = ([12, 15, 10], 90_u32);
    let spec = matrix(&sizes, &[0b011], 1);
    let count = observed(&spec, n, 6000, 10);
    let n = f64::from(n);
    let cells = |of: &[usize]| of.iter().map(|&at| sizes[at] as f64).product::<f64>();
    let (u, v) = (n / cells(&[0, 2]), n / cells(&[1, 2]));
    let product = matrix_fpr(&sizes, &[0b011], 1, n, 0.0, 0b111);
    let with_row = product + (-u - v).exp() * (n / cells(&[0, 1, 2])).exp_m1();
    count.assert_near(with_row, "a shared row");
    assert!(count.errors_from(product) > 4.0, "{count:?} {product}");
}

/// Each two of three pairs share an attribute: to first order the three terms add up.
#[test]
fn three_pairs_share_three_rows() {
    let (size, n) = (60_u64, 2500_u32);
    let spec = matrix(&[size; 3], &[0b111], 1);
    let count = observed(&spec, n, 400, 250);
    let (n, m) = (f64::from(n), size as f64);
    let u = n / m.powi(2);
    let set = -(-u).exp_m1();
    let product = matrix_fpr(&[size; 3], &[0b111], 1, n, 0.0, 0b111);
    let term = (-2.0 * u).exp() * (n / m.powi(3)).exp_m1() / set.powi(2);
    count.assert_near(product * (1.0 + 3.0 * term), "three shared rows");
    assert!(count.errors_from(product) > 2.0, "{count:?} {product}");
}
