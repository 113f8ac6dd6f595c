//! What the formulas say of a filter, given how many distinct values there were.
//!
//! Values are taken to be evenly spread, as the formulas do. Of a query it matters which of its values
//! occur (`known`): an array of a single attribute says yes to them.

use super::truth::Values;
use crate::filters::matrix_sizing::{maximal_legal_subsets, rate_in_rows};
use crate::filters::sizing::{
    blocked_fpr, bloom_fpr, dleft_overfull_fpr, scalable_fpr, shared_blocked_fpr, split_fpr,
};
use crate::filters::{BloomLayout, FilterSpec};

/// Rate of a query for the combination `mask`, whose attributes in `known` have values that occur; all
/// attributes are `full`. `None` where the structure has no answer.
pub(super) fn rate(
    spec: &FilterSpec,
    values: &Values,
    full: u32,
    mask: u32,
    known: u32,
) -> Option<f64> {
    let n = values.whole();
    let whole = |rate: f64| (mask == full).then_some(rate);
    match *spec {
        FilterSpec::Bloom {
            bits,
            probes,
            layout: BloomLayout::Anywhere,
        } => whole(bloom_fpr(bits as f64, probes, n)),
        FilterSpec::Bloom {
            bits,
            probes,
            layout: BloomLayout::Lines,
        } => whole(blocked_fpr((bits / 512) as f64, probes, n)),
        FilterSpec::Counting {
            counters, probes, ..
        } => whole(bloom_fpr(counters as f64, probes, n)),
        FilterSpec::SplitCounting { part, probes, .. } => whole(split_fpr(part as f64, probes, n)),
        FilterSpec::Scalable {
            part,
            probes,
            most_links,
            ..
        } => whole(chain_fpr(part as f64, probes, most_links, n)),
        FilterSpec::Dleft {
            bucket_bits,
            remainder_bits,
            ..
        } => whole(dleft_overfull_fpr(bucket_bits, remainder_bits, n)),
        FilterSpec::Mdbf { bits, probes, .. } => {
            Some(of_attributes(bits, probes, values, mask & !known))
        }
        FilterSpec::Cmdbf { bits, probes, .. } => {
            let stage = of_attributes(bits, probes, values, mask & !known);
            Some(if mask == full {
                stage * bloom_fpr(bits as f64, probes, n)
            } else {
                stage
            })
        }
        FilterSpec::Subset {
            lines,
            probes,
            ref combinations,
            ..
        } => {
            let mut written = vec![(n, probes)];
            written.extend(
                combinations
                    .iter()
                    .map(|part| (values.of(part.mask), part.probes)),
            );
            let stored = combinations.iter().find(|part| part.mask == mask);
            let probes = match stored {
                Some(part) => part.probes,
                None if mask == full => probes,
                None => return None,
            };
            Some(shared_blocked_fpr(lines as f64, probes, &written))
        }
        FilterSpec::Cartesian {
            attributes,
            size,
            probes,
        } => {
            let sizes = vec![size as f64; attributes];
            Some(of_matrix(&sizes, &[], probes, values, mask, known))
        }
        FilterSpec::Matrix(ref matrix) => {
            let sizes: Vec<f64> = matrix.sizes.iter().map(|&size| size as f64).collect();
            let (cuts, probes) = (&matrix.cuts, matrix.probes);
            Some(of_matrix(&sizes, cuts, probes, values, mask, known))
        }
    }
}

/// The attributes' own filters of `bits` each, of those whose values do not occur.
fn of_attributes(bits: u64, probes: u32, values: &Values, unknown: u32) -> f64 {
    let rate = |attribute: u32| bloom_fpr(bits as f64, probes, values.of(attribute));
    singles(unknown).map(rate).product()
}

/// A chain whose links are half full, one after the other: full links, and the one that is being filled.
fn chain_fpr(part: f64, probes: u32, most_links: u32, elements: f64) -> f64 {
    let capacity = (part * std::f64::consts::LN_2).max(1.0);
    let full = (elements / capacity).floor().min(f64::from(most_links - 1));
    let last = split_fpr(part, probes, elements - full * capacity);
    let others = scalable_fpr(split_fpr(part, probes, capacity), full as u32);
    1.0 - (1.0 - last) * (1.0 - others)
}

fn of_matrix(
    sizes: &[f64],
    cuts: &[u32],
    probes: u32,
    values: &Values,
    mask: u32,
    known: u32,
) -> f64 {
    let of = |subset: u32| {
        let all_known = subset & !known == 0;
        if subset.is_power_of_two() {
            if all_known {
                return 1.0;
            }
        } else if all_known {
            return rate_in_rows(sizes, subset, probes, |part| values.of(part));
        }
        let members = (0..sizes.len()).filter(|member| subset >> member & 1 == 1);
        let cells: f64 = members.map(|member| sizes[member]).product();
        bloom_fpr(cells, probes, values.of(subset))
    };
    maximal_legal_subsets(mask, cuts)
        .into_iter()
        .map(of)
        .product()
}

fn singles(mask: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS)
        .map(|one| 1 << one)
        .filter(move |one| mask & one != 0)
}
