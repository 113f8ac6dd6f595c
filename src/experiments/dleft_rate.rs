//! d-left report: the error rate, by the bits of the remainder.

use super::numbers::false_positives;
use super::statistics::rate_of;
use super::{Findings, Found, Settings};
use crate::filters::sizing::dleft_fpr;
use crate::filters::{DleftSpec, FilterSpec};

/// Bits of the bucket number and of the remainder, elements, and the rate that is claimed.
const SETTINGS: [(u32, u32, u64, Option<f64>); 6] = [
    (13, 8, 24 << 13, None),
    (13, 10, 24 << 13, None),
    (13, 11, 24 << 13, None),
    (13, 12, 24 << 13, None),
    (13, 14, 24 << 13, None),
    (15, 24, 500_000, Some(1e-6)),
];

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 500_000, 5_000_000);
    let mut found = Findings::new([
        format!("A false positive has the hash of an element, b + r bits: 1 - (1 - 2^-(b+r))^n, which is 24 · 2^-r to first order where 24 elements share four buckets. {runs} filters, {queries} queries each."),
        "The report's \"one in a million\" needs r = 24 with its 2^15 buckets, and only then do its loads sum to 500,000. It says that a Bloom filter errs only for elements of the set; the opposite is true.".into(),
    ]);
    for (bucket_bits, remainder_bits, elements, printed) in SETTINGS {
        let spec = FilterSpec::Dleft(DleftSpec {
            buckets: 1 << bucket_bits,
            remainder_bits,
            counter_bits: 2,
        });
        let hits = false_positives(settings, (runs, elements, queries), || spec.build());
        let formula = dleft_fpr(bucket_bits + remainder_bits, elements as f64);
        let label = format!("B = 2^{bucket_bits}, r = {remainder_bits}, n = {elements}");
        let measured = rate_of(&hits, queries, Some(formula));
        let cell = found.cell(label).formula(formula).measured(measured);
        if let Some(printed) = printed {
            cell.printed_to(printed, 1);
        }
    }
    Ok(found)
}
