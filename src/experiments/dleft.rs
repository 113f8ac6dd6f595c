//! d-left report: the loads of the subtables, the error rate, and times against other filters.

use super::ratios::{HOW, Operation, Times, time_each};
use super::result::Measured;
use super::runs::{element, false_positives, in_parallel};
use super::statistics::{deviation, mean_of};
use super::{Experiment, Found, Settings};
use crate::filters::sizing::{best_probes, bloom_bits, bloom_fpr, dleft_fpr};
use crate::filters::{
    BloomSpec, Bucket32, CountingSpec, DleftFilter, DleftSpec, ElementDigests, FilterSpec,
    MembershipFilter,
};
use crate::hashing::{Digest, Digester};
use std::cell::RefCell;
use std::hint::black_box;

const ELEMENTS: u64 = 500_000;
const BUCKET_BITS: u32 = 15;
const PRINTED: [f64; 4] = [135_203.0, 128_226.0, 122_795.0, 113_776.0];

/// Standard deviations of one run, from 20 runs of an independent computation: the error of a
/// single printed run.
const DEVIATIONS: [f64; 4] = [47.3, 52.8, 67.4, 57.1];

/// Levels of a bucket that the fluid limit looks at.
const LEVELS: usize = 12;

pub(super) fn loads(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 100) as usize;
    let loads = in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        let mut filter = DleftFilter::<Bucket32>::new(1 << BUCKET_BITS, 24, 2);
        for number in 0..ELEMENTS {
            filter.insert(element(digester, number));
        }
        filter.loads()
    });
    let limit = fluid_limit(ELEMENTS as f64 / f64::from(1 << BUCKET_BITS));
    let mut found = Experiment::new([
        format!("{ELEMENTS} elements, 4 subtables of 2^15 buckets of 8 cells, r = 24, least loaded bucket, ties to the left; {runs} runs. The report does not print the number of buckets; its loads, which sum to 500,000, are those of 2^15 and of no other power of two."),
        "The formula is the fluid limit: the differential equations of the shares of buckets with at least j elements, integrated numerically.".into(),
    ]);
    for table in 0..4 {
        let runs: Vec<f64> = loads.iter().map(|loads| loads[table] as f64).collect();
        let mut measured = mean_of(&runs);
        measured.std_error = measured.std_error.max(DEVIATIONS[table] / (runs.len() as f64).sqrt());
        found
            .cell(format!("subtable {}", table + 1))
            .printed(PRINTED[table], 0.0)
            .simulated(DEVIATIONS[table])
            .formula(limit[table] * f64::from(1 << BUCKET_BITS))
            .measured(measured)
            .because(format!("one run has a standard deviation of {:.0}", deviation(&runs)));
    }
    Ok(found)
}

/// Returns the mean number of elements in a bucket of each subtable, after `load` elements for each
/// bucket of one subtable.
///
/// With `x[i][j]` the share of buckets of subtable i that hold at least j, an element raises a
/// bucket of subtable i from j to j + 1 with probability `x[i][j] - x[i][j+1]`, times `x[l][j+1]`
/// for each subtable l to the left, whose bucket must hold more, and `x[l][j]` for each to the
/// right.
fn fluid_limit(load: f64) -> [f64; 4] {
    type Shares = [[f64; LEVELS + 1]; 4];
    const STEPS: u32 = 4000;
    let slope = |shares: &Shares| -> Shares {
        let mut slope = [[0.0; LEVELS + 1]; 4];
        for table in 0..4 {
            for level in 0..LEVELS {
                let left = shares[..table].iter().map(|of| of[level + 1]);
                let right = shares[table + 1..].iter().map(|of| of[level]);
                let others: f64 = left.chain(right).product();
                let exactly = shares[table][level] - shares[table][level + 1];
                slope[table][level + 1] = exactly * others;
            }
        }
        slope
    };
    let along = |shares: &Shares, slope: &Shares, step: f64| -> Shares {
        std::array::from_fn(|i| std::array::from_fn(|j| shares[i][j] + step * slope[i][j]))
    };
    let mut shares: Shares = [[0.0; LEVELS + 1]; 4];
    for of in &mut shares {
        of[0] = 1.0;
    }
    let step = load / f64::from(STEPS);
    for _ in 0..STEPS {
        // Runge and Kutta's classical rule.
        let start = slope(&shares);
        let middle = slope(&along(&shares, &start, step / 2.0));
        let again = slope(&along(&shares, &middle, step / 2.0));
        let end = slope(&along(&shares, &again, step));
        for (slope, weight) in [(start, 1.0), (middle, 2.0), (again, 2.0), (end, 1.0)] {
            shares = along(&shares, &slope, step * weight / 6.0);
        }
    }
    shares.map(|of| of[1..].iter().sum())
}

/// Bits of the bucket number and of the remainder, elements, and the rate that is claimed.
const RATES: [(u32, u32, u64, Option<f64>); 6] = [
    (13, 8, 24 << 13, None),
    (13, 10, 24 << 13, None),
    (13, 11, 24 << 13, None),
    (13, 12, 24 << 13, None),
    (13, 14, 24 << 13, None),
    (15, 24, 500_000, Some(1e-6)),
];

pub(super) fn rate(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 500_000, 5_000_000);
    let mut found = Experiment::new([
        format!("A false positive has the hash of an element, b + r bits: 1 - (1 - 2^-(b+r))^n, which is 24 · 2^-r to first order where 24 elements share four buckets. {runs} filters, {queries} queries each."),
        "The report's \"one in a million\" needs r = 24 with its 2^15 buckets, and only then do its loads sum to 500,000. It says that a Bloom filter errs only for elements of the set; the opposite is true.".into(),
    ]);
    claims_about_others(settings, &mut found);
    for (bucket_bits, remainder_bits, elements, printed) in RATES {
        let spec = dleft(bucket_bits, remainder_bits);
        let hits = false_positives(settings, (runs, elements, queries), || spec.build());
        let formula = dleft_fpr(bucket_bits + remainder_bits, elements as f64);
        let label = format!("B = 2^{bucket_bits}, r = {remainder_bits}, n = {elements}");
        let cell = found.rate(&*label, formula, hits, queries);
        if let Some(printed) = printed {
            cell.printed_to(printed, 1);
            continue;
        }
        // Counters of 4 bits, and cells of a remainder and a count of 2 bits.
        let counters = 4.0 * bloom_bits(formula, elements as f64);
        let cells = f64::from((32 << bucket_bits) * (remainder_bits + 2));
        found
            .cell(format!("{label}: memory of a counting filter of this rate / d-left"))
            .claimed(2.0, 2.0, f64::INFINITY)
            .formula(counters / cells)
            .because("the paper says a factor of two or more");
    }
    Ok(found)
}

/// Claims of the report about Bloom and counting filters.
fn claims_about_others(settings: &Settings, found: &mut Experiment) {
    let names = settings.scale.pick(1_000, 100_000, 1_000_000);
    let hits = false_positives(settings, (10, names, names), || {
        FilterSpec::from(BloomSpec { bits: names, probes: 1 }).build()
    });
    found
        .cell("1G/80 for 10^8 names of 10 bytes; formula: for a rate of 1 %")
        .unit("MB")
        .printed(12.5, 0.0)
        .formula(bloom_bits(0.01, 1e8) / 8e6)
        .because("1/80 is 1 bit a name");
    let label = "rate of a Bloom filter with 1 bit a name, the best k (1)";
    found.rate(label, bloom_fpr(1.0, 1, 1.0), hits, names);
    let [_, (_, counting), _] = structures(1e6, 7);
    let bits = counting.memory_bytes() as f64 * 8.0;
    found
        .cell("memory of a counting filter / Bloom filter")
        .printed(5.0, 0.0)
        .formula(4.0)
        .measured(Measured::exactly(bits / 1e6))
        .because("a counter of 4 bits in place of a bit");
}

const REMAINDER_BITS: u32 = 24;

/// The operations, in the order in which a round does them.
const OPERATIONS: [&str; 4] = ["insert", "contains, inserted", "contains, not inserted", "remove"];

/// Returns the rate of the d-left filter, and the counters and functions of a filter with that
/// rate.
fn alike() -> (f64, f64, u32) {
    let rate = dleft_fpr(BUCKET_BITS + REMAINDER_BITS, ELEMENTS as f64);
    let bits = bloom_bits(rate, ELEMENTS as f64).ceil();
    (rate, bits, best_probes(bits, ELEMENTS as f64, 32))
}

/// Returns the structures by name.
fn structures(bits: f64, probes: u32) -> [(&'static str, FilterSpec); 3] {
    [
        ("Bloom", FilterSpec::from(BloomSpec { bits: bits as u64, probes })),
        (
            "counting",
            FilterSpec::Counting(CountingSpec { counters: bits as u64, probes, counter_bits: 4 }),
        ),
        ("d-left", dleft(BUCKET_BITS, REMAINDER_BITS)),
    ]
}

/// Returns a d-left filter with 2^`bucket_bits` buckets in each subtable.
fn dleft(bucket_bits: u32, remainder_bits: u32) -> FilterSpec {
    let buckets = 1 << bucket_bits;
    FilterSpec::Dleft(DleftSpec { buckets, remainder_bits, counter_bits: 2 })
}

pub(super) fn times(settings: &Settings) -> Found {
    let elements = settings.scale.pick(2_000, ELEMENTS, ELEMENTS);
    let rounds = settings.scale.pick(3, 15, 31) as usize;
    let digester = Digester::new(settings.seed);
    let digests: Vec<Digest> =
        (0..2 * elements).map(|number: u64| digester.digest(&number.to_le_bytes())).collect();
    let (inside, outside) = digests.split_at(elements as usize);
    let (rate, bits, probes) = alike();
    let filters: Vec<(&str, RefCell<Box<dyn MembershipFilter>>)> = structures(bits, probes)
        .into_iter()
        .map(|(name, spec)| (name, RefCell::new(spec.build())))
        .collect();
    let mut operations: Vec<Operation<'_>> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for operation in OPERATIONS {
        for (name, filter) in &filters {
            if operation == "remove" && filter.borrow_mut().as_removable().is_none() {
                continue;
            }
            names.push((name, operation));
            operations.push(Box::new(move || {
                time_operation(&mut **filter.borrow_mut(), operation, inside, outside)
            }));
        }
    }
    let times = Times::measure(rounds, operations);
    let mut found = Experiment::new([
        format!(
            "{elements} elements. d-left: 2^15 buckets a subtable, r = 24, 4 MiB. Bloom and counting filters are made for its rate at {ELEMENTS} elements, {rate:.1e}: k = {probes} and {:.1} and {:.1} MiB. One thread, one element at a time, {rounds} rounds; digests are computed before.",
            bits / 8.0 / 1_048_576.0,
            bits / 2.0 / 1_048_576.0
        ),
        HOW.into(),
        "The report prints 0.2 to 0.3 ms, 0.1 ms and 0.3 to 0.4 ms, of a program in Java on another machine: 1, 0.4 and 1.4 times the first. Here an operation takes tens of nanoseconds, so these times are not those of the filter itself.".into(),
    ]);
    for (place, (name, operation)) in names.iter().enumerate() {
        found.cell(format!("{name}: {operation}")).time(times.time(place));
    }
    let place = |operation| names.iter().position(|&at| at == operation);
    let mut ratio = |label: String, operation, other| {
        if let (Some(own), Some(other)) = (place(("d-left", operation)), place(other)) {
            found.cell(label).ratio(times.ratio(own, other));
        }
    };
    for operation in OPERATIONS {
        for other in ["Bloom", "counting"] {
            ratio(format!("d-left / {other}: {operation}"), operation, (other, operation));
        }
    }
    for operation in OPERATIONS.into_iter().skip(1) {
        ratio(format!("d-left: {operation} / insert"), operation, ("d-left", "insert"));
    }
    Ok(found)
}

/// Does an operation with all elements; returns the nanoseconds an element.
fn time_operation(
    filter: &mut dyn MembershipFilter,
    operation: &str,
    inside: &[Digest],
    outside: &[Digest],
) -> f64 {
    match operation {
        "insert" => {
            filter.clear();
            time(inside, |element| _ = black_box(filter.insert(element)))
        }
        "remove" => {
            let removable = filter.as_removable();
            let removable = removable.expect("a filter without removal is not asked for it");
            time(inside, |element| removable.remove(element))
        }
        "contains, inserted" => time(inside, |element| _ = black_box(filter.contains(element))),
        _ => time(outside, |element| _ = black_box(filter.contains(element))),
    }
}

fn time(digests: &[Digest], mut operation: impl FnMut(ElementDigests<'_>)) -> f64 {
    time_each(digests.len(), || {
        for &whole in digests {
            operation(ElementDigests { whole, attributes: &[] });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit as an independent computation has it.
    #[test]
    fn the_fluid_limit() {
        for (load, buckets, expected) in [
            (500_000.0 / 32_768.0, 32_768.0, [135_252.945, 128_221.204, 122_847.879, 113_677.972]),
            (500_000.0 / 20_833.0, 20_833.0, [132_893.036, 126_167.486, 122_400.247, 118_539.230]),
        ] {
            for (ours, expected) in fluid_limit(load).into_iter().zip(expected) {
                assert!((ours * buckets - expected).abs() < 0.5, "{} {expected}", ours * buckets);
            }
        }
    }
}
