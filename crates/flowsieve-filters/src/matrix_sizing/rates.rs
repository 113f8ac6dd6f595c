//! False-positive rates of matrices and of filters with an array for each attribute.

use super::{maximal_legal_subsets, members};
use crate::Query;
use crate::sizing::{bloom_bits, bloom_fpr};

/// Returns the attribute size for a rate ε by the rule of the paper's tables: m = n log2(e)
/// log2(1/ε), the bits of a standard filter for one attribute. The tables round it down.
pub fn attribute_size(fpr: f64, elements: f64) -> f64 {
    bloom_bits(fpr, elements)
}

/// Returns the number of hash functions in the paper's tables: floor(-log2 ε).
pub fn table_probes(fpr: f64) -> u32 {
    (-fpr.log2()).floor() as u32
}

/// Returns α + (1-α) x: a value is known with probability α, else it is a false positive with x.
pub(crate) fn known_or(known: f64, fpr: f64) -> f64 {
    known + (1.0 - known) * fpr
}

/// Returns the false-positive rate of an MDBF with `bits` an attribute for a query with `queried`
/// attributes, each of which occurs in the set with probability `known` (α).
pub fn mdbf_fpr(bits: f64, probes: u32, elements: f64, known: f64, queried: u32) -> f64 {
    known_or(known, bloom_fpr(bits, probes, elements)).powi(queried as i32)
}

/// Returns the false-positive rate of a CMDBF with `bits` in each of its d + 1 filters for a query
/// with all `attributes`. With fewer attributes it is that of the attribute stage, [`mdbf_fpr`].
pub fn cmdbf_fpr(bits: f64, probes: u32, elements: f64, known: f64, attributes: u32) -> f64 {
    mdbf_fpr(bits, probes, elements, known, attributes) * bloom_fpr(bits, probes, elements)
}

/// Returns the false-positive rate of a Cartesian join, or of a BFM, of size m for a query with
/// `queried` attributes.
pub fn uncut_fpr(size: f64, probes: u32, elements: f64, queried: u32) -> f64 {
    bloom_fpr(size.powi(queried as i32), probes, elements)
}

/// Returns the false-positive rate of a matrix with these sizes and cuts for a query with the
/// attributes in `query`, none of whose combinations of two or more attributes occurs in the set.
pub fn matrix_fpr(
    sizes: &[u64],
    cuts: &[u32],
    probes: u32,
    elements: f64,
    known: f64,
    query: u32,
) -> f64 {
    rate_of_subsets(&maximal_legal_subsets(query, cuts), sizes, probes, elements, known)
}

pub(super) fn rate_of_subsets(
    subsets: &[u32],
    sizes: &[u64],
    probes: u32,
    elements: f64,
    known: f64,
) -> f64 {
    subsets
        .iter()
        .map(|&subset| {
            let cells: f64 = members(subset).map(|i| sizes[i] as f64).product();
            let fpr = bloom_fpr(cells, probes, elements);
            match subset.count_ones() {
                0 => 1.0,
                1 => known_or(known, fpr),
                _ => fpr,
            }
        })
        .product()
}

/// Returns the false-positive rate of a query to a matrix with these sizes and cuts: the product
/// over the stored parts that answer it. The values of a part occur all or none, though not
/// together.
pub fn rate_of_query(sizes: &[f64], cuts: &[u32], probes: u32, query: &Query<'_>) -> f64 {
    let of = |part: u32| {
        let known = query.known.of(part);
        let load = PartLoad::new(sizes, part, known > 0.0, query.values);
        load.rate(probes, known)
    };
    maximal_legal_subsets(query.mask, cuts).into_iter().map(of).product()
}

/// Load of a stored combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartLoad {
    cells: f64,
    elements: f64,
    /// [`load_of_rows`]; `None` for a single attribute.
    of_rows: Option<f64>,
}

impl PartLoad {
    /// Computes the load of a combination of attributes of these sizes. The load of its rows only
    /// counts if its values may occur.
    pub fn new(
        sizes: &[f64],
        part: u32,
        may_occur: bool,
        elements_of: impl Fn(u32) -> f64,
    ) -> Self {
        let rows = || {
            if may_occur { load_of_rows(sizes, part, &elements_of) } else { 0.0 }
        };
        Self {
            cells: members(part).map(|member| sizes[member]).product(),
            elements: elements_of(part),
            of_rows: (!part.is_power_of_two()).then(rows),
        }
    }

    /// Returns the false-positive rate of values that are new together. With the probability
    /// `known` all of them occur, else none.
    pub fn rate(&self, probes: u32, known: f64) -> f64 {
        let anywhere = || bloom_fpr(self.cells, probes, self.elements);
        let where_known = || match self.of_rows {
            Some(of_rows) => {
                let load = f64::from(probes) * self.elements / self.cells;
                (-(-load - of_rows).exp_m1()).powi(probes as i32)
            }
            None => 1.0,
        };
        if known <= 0.0 {
            anywhere()
        } else if known >= 1.0 {
            where_known()
        } else {
            known * where_known() + (1.0 - known) * anywhere()
        }
    }
}

/// Returns the load of the cells that the values of a query share with other values, if all of them
/// occur, though not together.
///
/// A value that occurs with D others has filled 1 - e^(-D/c) of the c cells that it shares with
/// them, in addition to the share ρ that is set everywhere; so the rate is (1 - (1-ρ) Π
/// e^(-D/c))^k. D is assumed to be the same for all values: n of the combination over n of the
/// attribute. The load is the sum of D/c over the attributes.
fn load_of_rows(sizes: &[f64], subset: u32, elements_of: impl Fn(u32) -> f64) -> f64 {
    let elements = elements_of(subset);
    let cells: f64 = members(subset).map(|member| sizes[member]).product();
    members(subset).map(|member| elements / elements_of(1 << member) * sizes[member] / cells).sum()
}
