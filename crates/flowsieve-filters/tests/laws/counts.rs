//! Counts of distinct elements.

use crate::elements::{Elements, insert_all};
use crate::specs::{bloom, subset};
use crate::statistics::mean_and_errors;
use flowsieve_filters::hashing::Digester;
use flowsieve_filters::sizing::{
    blocked_count_variance, bloom_count_variance, halving_count_variance,
};
use flowsieve_filters::{
    CmdbfSpec, Combination, CountingSpec, DigestColumns, DleftSpec, ElementDigests, FilterSpec,
    Refill, ScalableSpec, Sighting, SplitCountingSpec, SubsetSpec,
};

/// Returns the estimates of many runs over `elements` distinct elements, each inserted twice, and
/// the variance that they state.
fn estimates(spec: &FilterSpec, elements: u32, runs: u64) -> (Vec<f64>, f64) {
    let mut stated = 0.0;
    let estimates = (0..runs)
        .map(|run| {
            let mut filter = spec.build();
            let (early, late) = (elements / 2, elements);
            // Elements share values, which must not bias the count.
            for numbers in [0..early, early / 2..late, 0..late] {
                insert_all(&mut *filter, &Elements::sharing(2, 1000 * run, 61, numbers));
            }
            let estimate = filter.distinct().expect("no removal has ended the count");
            stated += estimate.variance / runs as f64;
            estimate.distinct
        })
        .collect();
    (estimates, stated)
}

#[test]
fn counts_are_unbiased_and_state_their_error() {
    const ELEMENTS: u32 = 1500;
    const RUNS: u64 = 400;
    for spec in [
        bloom(6000, 3),
        subset(2, 14, 6, &[]),
        subset(2, 14, 8, &[]),
        FilterSpec::Cmdbf(CmdbfSpec {
            attributes: 2,
            bits: 4096,
            probes: 2,
            combination: Combination::Joint,
        }),
        FilterSpec::Counting(CountingSpec { counters: 6000, probes: 3, counter_bits: 4 }),
        FilterSpec::SplitCounting(SplitCountingSpec { part: 2000, probes: 3, counter_bits: 2 }),
        FilterSpec::Scalable(ScalableSpec {
            part: 300,
            probes: 4,
            counter_bits: 4,
            most_links: 20,
            refill: Refill::FirstNotFull,
        }),
        FilterSpec::Scalable(ScalableSpec {
            part: 300,
            probes: 4,
            counter_bits: 4,
            most_links: 2,
            refill: Refill::Newest,
        }),
        FilterSpec::Dleft(DleftSpec { buckets: 64, remainder_bits: 8, counter_bits: 2 }),
        FilterSpec::Dleft(DleftSpec { buckets: 64, remainder_bits: 5, counter_bits: 4 }),
    ] {
        let (estimates, stated) = estimates(&spec, ELEMENTS, RUNS);
        let (mean, error, sd) = mean_and_errors(&estimates);
        let n = f64::from(ELEMENTS);
        assert!((mean - n).abs() < 4.0 * error, "{spec:?}: {mean} ± {error}");
        // The relative error of a standard deviation of R normal numbers is 1 / √(2R).
        let tolerance = 4.0 / (2.0 * RUNS as f64).sqrt();
        assert!(
            (sd / stated.sqrt() - 1.0).abs() < tolerance,
            "{spec:?}: {sd}, stated {}",
            stated.sqrt()
        );
    }
}

/// Compares raw and unbiased counts of a Bloom filter with an independent computation: bits an
/// element, k, relative bias of the raw count, relative standard error of the unbiased one, at n =
/// 10 000.
#[test]
fn raw_and_unbiased_counts_of_the_bloom_filter() {
    const ELEMENTS: u32 = 10_000;
    const RUNS: u64 = 200;
    for (bits, probes, bias, sd) in [
        (1_u32, 1, -0.367_88, 0.008_475),
        (2, 1, -0.213_06, 0.005_454),
        (2, 2, -0.168_09, 0.004_813),
        (4, 3, -0.045_61, 0.002_240),
        (6, 4, -0.013_93, 0.001_200),
        (8, 2, -0.017_34, 0.001_337),
        (8, 6, -0.004_07, 0.000_642),
        (10, 7, -0.001_34, 0.000_367),
        (16, 4, -0.000_52, 0.000_228),
    ] {
        let n = f64::from(ELEMENTS);
        let spec = bloom(u64::from(bits * ELEMENTS), probes);
        let (raw, unbiased): (Vec<f64>, Vec<f64>) = (0..RUNS)
            .map(|run| {
                let mut filter = spec.build();
                let digester = Digester::new(run);
                let first = (0..ELEMENTS)
                    .filter(|i| {
                        let element = ElementDigests {
                            whole: digester.digest(&i.to_le_bytes()),
                            attributes: &[],
                        };
                        filter.insert(element) == Sighting::First
                    })
                    .count();
                (first as f64, filter.distinct().expect("no removal has ended the count").distinct)
            })
            .unzip();
        let (mean, error, _) = mean_and_errors(&raw);
        // The bias is rounded to 0.001 %.
        assert!(
            (mean / n - 1.0 - bias).abs() < 4.0 * error / n + 6e-6,
            "{bits} {probes}: raw {mean} ± {error}"
        );
        let (mean, error, spread) = mean_and_errors(&unbiased);
        assert!((mean - n).abs() < 4.0 * error, "{bits} {probes}: {mean} ± {error}");
        let tolerance = 4.0 / (2.0 * RUNS as f64).sqrt();
        assert!((spread / n / sd - 1.0).abs() < tolerance, "{bits} {probes}: {spread}");
        let formula = (bloom_count_variance(f64::from(bits) * n, probes, n) / n).sqrt();
        assert!((formula - sd).abs() < 0.6e-6);
    }
}

/// Compares the root mean squared error of a count with the predicted standard error, at loads from
/// 4 bits an element to 1, and for a halving filter to 0.02.
#[test]
fn errors_are_those_predicted() {
    const BITS: u64 = 512 * 16;
    for bits_an_element in [4.0, 2.0, 1.2, 1.0, 0.5, 0.1, 0.02] {
        let elements = (BITS as f64 / bits_an_element) as u32;
        let n = f64::from(elements);
        let halving = SubsetSpec::counting(1, 4 * BITS / 512, 4);
        for (spec, variance) in [
            (halving.into(), halving_count_variance((4 * BITS / 512).into(), 4, 4.0 * n)),
            (
                subset(1, BITS / 512, 4, &[]),
                blocked_count_variance((BITS / 512).into(), 4, &[(n, 4)], n),
            ),
            (bloom(BITS, 3), bloom_count_variance(BITS as f64, 3, n)),
        ] {
            let is_halving = matches!(&spec, FilterSpec::Subset(spec) if spec.halving);
            if bits_an_element < if is_halving { 0.0 } else { 1.1 } {
                continue;
            }
            let (elements, n) = if is_halving { (4 * elements, 4.0 * n) } else { (elements, n) };
            let runs = (60_000_000 / elements).clamp(100, 1_000);
            let squares = (0..runs).map(|run| {
                let mut filter = spec.build();
                let digester = Digester::new(run.into());
                let digests: Vec<_> =
                    (0..elements).map(|i| digester.digest(&i.to_le_bytes())).collect();
                let columns = DigestColumns { whole: &digests, attributes: &[] };
                filter.insert_batch(columns, &mut Vec::new());
                let count = filter.distinct().expect("a stream is counted");
                (count.distinct / n - 1.0).powi(2)
            });
            let measured = (squares.sum::<f64>() / f64::from(runs)).sqrt();
            let ratio = measured / (variance / n).sqrt();
            // The standard error of the root is 2.2 % for 1000 runs, and 7 % for 100.
            assert!(
                (ratio - 1.0).abs() < if runs < 1_000 { 0.25 } else { 0.1 },
                "{spec:?}, {bits_an_element} bits an element: {measured}, {ratio} of what was predicted"
            );
        }
    }
}
