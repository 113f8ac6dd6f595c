//! CBFM, the cutted Bloom filter matrix: a BFM without the combinations that are not needed.
//!
//! # Memory
//!
//! ```text
//!     three attributes, cut {1,2}
//!
//!     stored: ∅ {1} {2} {3} {1,3} {2,3}          not stored: {1,2} {1,2,3}
//!              1  m   m   m   m²    m²                          m²    m³
//! ```
//!
//! A cut removes the combination and all supersets of it, since a superset would bring its cells
//! back. Cuts may overlap.
//!
//! # Operations
//!
//! - insert: set the cells of all stored combinations.
//! - query: look at the maximal stored subsets of its attributes. In the drawing {1,3} and {2,3}
//!   together answer a query of all three.
//!
//! ([`super::matrix`])
//!
//! # Formulas
//!
//! Cells M and rates are in [`super::matrix_sizing`]. Memory for three attributes if each alone has
//! the rate ε with n = 1000 elements, cuts {1,2} and {1,3}, M = (m+1)² + m:
//!
//! | ε | m | memory | BFM |
//! |---|---|---|---|
//! | 0.1 | 4 792 | 2.74 MB | 13 126 MB |
//! | 0.01 | 9 585 | 10.96 MB | 105 008 MB |
//! | 0.001 | 14 377 | 24.65 MB | 354 328 MB |
//!
//! With M = 2^27, k = 6 and n = 5 million evenly spread elements a full query is a false positive
//! with 4.8·10⁻⁶ with one cut, against 6.7·10⁻⁵ for the BFM and 6.5·10⁻⁵ for a standard filter. But
//! if all of its uncut pairs occur in the set, in any elements, the answer is always yes: a cut
//! brings back the combination error of an MDBF.
//!
//! # Distinct elements and limits
//!
//! As in every matrix ([`super::matrix`]).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MatrixFilter, MatrixSpec, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let flow = |parts: [&str; 3]| parts.map(|part| hasher.digest(part.as_bytes()));
//! // The first and the third attribute are not stored together.
//! let mut filter = MatrixFilter::new(&MatrixSpec::cbfm(3, 60, &[0b101], 3))?;
//! filter.insert(ElementDigests::of_attributes(&flow(["a", "b", "53"])));
//! let [a, b, port] = flow(["a", "b", "53"]);
//! // Both values occur, but it is not known whether they occur in the same element.
//! let pattern = Pattern { whole: None, attributes: &[Some(a), None, Some(port)] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::PresentApart);
//! # let _ = b;
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, section 4, algorithms 1 to 3.

use super::matrix::{IndexMap, MatrixSpec, matrix_of};
use super::matrix_sizing::cut_families;
use super::spec::{Descriptor, FilterKind, Reach};

pub(crate) const CBFM: Descriptor = Descriptor {
    name: "cbfm",
    summary: "Cutted Bloom filter matrix (Wang et al. 2016)",
    reach: Reach::Matrix { cuts: true, weights: false },
    ignores_repeats: true,
    size: |attributes, sizing| matrix_of(FilterKind::Cbfm, cut_families, attributes, sizing),
    search: None,
};

impl MatrixSpec {
    /// Returns a matrix with these cuts: `size` (m) positions for each attribute, `probes` (k)
    /// functions.
    pub fn cbfm(attributes: usize, size: u64, cuts: &[u32], probes: u32) -> Self {
        Self {
            sizes: vec![size; attributes],
            cuts: cuts.to_vec(),
            probes,
            index_map: IndexMap::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Digest, Digester};
    use crate::matrix_sizing::{cmdbf_fpr, matrix_fpr, mdbf_fpr, uncut_fpr};
    use crate::sizing::bloom_fpr;
    use crate::{
        BloomFilter, CartesianFilter, Cmdbf, Combination, ElementDigests, MatrixFilter, Mdbf,
        MembershipFilter, Pattern, PatternAnswer,
    };

    #[test]
    fn worked_sizes() {
        for (size, megabytes) in [(4_792, "2.74"), (9_585, "10.96"), (14_377, "24.65")] {
            let spec = MatrixSpec::cbfm(3, size, &[0b011, 0b101], 3);
            let bits = spec.cells().unwrap() as f64;
            assert_eq!(format!("{:.2}", bits / 8_388_608.0), megabytes);
        }
    }

    /// If the uncut pairs of a query occur, the answer is that they may occur in different
    /// elements.
    #[test]
    fn cutting_brings_combination_errors_back() {
        let mut filter = MatrixFilter::new(&MatrixSpec::cbfm(3, 1000, &[0b011], 4)).unwrap();
        let value = |n: u64| Digester::new(0).digest(&n.to_le_bytes());
        for element in [[1, 9, 3], [9, 2, 3]] {
            filter.insert(ElementDigests { whole: value(0), attributes: &element.map(value) });
        }
        let query = [1, 2, 3].map(|n| Some(value(n)));
        let ask = |attributes: &[Option<Digest>]| {
            filter.as_multi_attribute().unwrap().contains_where(Pattern { whole: None, attributes })
        };
        assert_eq!(ask(&query), PatternAnswer::PresentApart);
        assert_eq!(ask(&[query[0], query[1], None]), PatternAnswer::PresentApart);
        assert_eq!(ask(&[query[0], None, query[2]]), PatternAnswer::Present);
        assert_eq!(ask(&[Some(value(4)), None, query[2]]), PatternAnswer::Absent);
    }

    const MEMBERS: u64 = 78_125;
    const CELLS: u64 = 1 << 21;
    const PROBES: u32 = 6;

    /// Returns inserted element `number`: three values that no other element has.
    fn member(number: u64) -> [Digest; 3] {
        [0, 1, 2].map(|i| Digester::new(i).digest(&number.to_le_bytes()))
    }

    fn whole(attributes: &[Digest; 3]) -> Digest {
        Digest::join(0b111, attributes.iter().copied())
    }

    /// Returns a query for an absent element, each of whose values occurs with probability α.
    fn negative(number: u64, known: f64) -> [Digest; 3] {
        std::array::from_fn(|i| {
            let draw = Digester::new(77 + i as u64).digest(&number.to_le_bytes()).value();
            if (draw >> 11) as f64 / (1_u64 << 53) as f64 >= known {
                member(MEMBERS + 3 * number + i as u64)[i]
            } else {
                // Three different members, so that the query is absent.
                member(draw % (MEMBERS / 3) * 3 + i as u64)[i]
            }
        })
    }

    /// Fig. 7 at 1/64 of its scale, which keeps every ratio: M = 2^21, n = 78 125, k = 6.
    #[test]
    #[allow(clippy::too_many_lines, reason = "a test may tell a long story")]
    fn figure_7_at_a_64th() {
        let bits = CELLS as f64;
        let n = MEMBERS as f64;
        let two_cuts: &[u32] = &[0b011, 0b101];
        let mut filters: Vec<(&str, Box<dyn MembershipFilter>)> = vec![
            ("SBF", Box::new(BloomFilter::new(CELLS, PROBES))),
            ("MDBF", Box::new(Mdbf::new(3, CELLS / 3, PROBES))),
            ("CMDBF", Box::new(Cmdbf::new(3, CELLS / 4, PROBES, Combination::Joint))),
            ("Cartesian", Box::new(CartesianFilter::new(3, 128, PROBES))),
            ("BFM", Box::new(MatrixFilter::new(&MatrixSpec::bfm(3, 127, PROBES)).unwrap())),
            (
                "CBFM1",
                Box::new(MatrixFilter::new(&MatrixSpec::cbfm(3, 1023, &[0b011], PROBES)).unwrap()),
            ),
            (
                "CBFM2",
                Box::new(MatrixFilter::new(&MatrixSpec::cbfm(3, 1446, two_cuts, PROBES)).unwrap()),
            ),
        ];
        for number in 0..MEMBERS {
            let attributes = member(number);
            let element = ElementDigests { whole: whole(&attributes), attributes: &attributes };
            for (_, filter) in &mut filters {
                filter.insert(element);
            }
        }
        let predicted = |name: &str, known: f64, query: u32| -> Option<f64> {
            let q = query.count_ones();
            let rate = match name {
                "SBF" if q == 3 => bloom_fpr(bits, PROBES, n),
                "MDBF" => mdbf_fpr((CELLS / 3) as f64, PROBES, n, known, q),
                "CMDBF" if q == 3 => cmdbf_fpr(bits / 4.0, PROBES, n, known, 3),
                "CMDBF" => mdbf_fpr(bits / 4.0, PROBES, n, known, q),
                "Cartesian" if q == 3 => uncut_fpr(128.0, PROBES, n, 3),
                "BFM" => matrix_fpr(&[127; 3], &[], PROBES, n, known, query),
                "CBFM1" => matrix_fpr(&[1023; 3], &[0b011], PROBES, n, known, query),
                "CBFM2" => matrix_fpr(&[1446; 3], two_cuts, PROBES, n, known, query),
                _ => return None,
            };
            Some(rate)
        };
        let mut off = Vec::new();
        for (known, full_queries, pair_queries) in
            [(0.25, 150_000_u64, 60_000_u64), (1.0, 400_000, 60_000)]
        {
            for (name, filter) in &filters {
                let found = |queries: u64, ask: &dyn Fn(&[Digest; 3]) -> bool| {
                    let yes = (0..queries).filter(|&number| ask(&negative(number, known))).count();
                    yes as f64 / queries as f64
                };
                let full = found(full_queries, &|attributes| {
                    filter.contains(ElementDigests { whole: whole(attributes), attributes })
                });
                let mut points = vec![(0b111, full_queries, full)];
                if let Some(multi) = filter.as_multi_attribute().filter(|_| *name != "Cartesian") {
                    let pair = found(pair_queries, &|attributes| {
                        let open = [None, Some(attributes[1]), Some(attributes[2])];
                        multi.contains_where(Pattern { whole: None, attributes: &open })
                            != PatternAnswer::Absent
                    });
                    points.push((0b110, pair_queries, pair));
                }
                for (query, queries, rate) in points {
                    let expected = predicted(name, known, query).unwrap();
                    let error = (expected * (1.0 - expected) / queries as f64).sqrt().max(1e-9);
                    println!("α {known} {name} {query:03b}: {rate:.3e}, predicted {expected:.3e}");
                    if (rate - expected).abs() > 4.0 * error + 0.02 * expected.min(1.0 - expected) {
                        off.push(format!(
                            "α {known} {name} {query:03b}: {rate} {expected} ± {error}"
                        ));
                    }
                }
            }
        }
        assert!(off.is_empty(), "{off:#?}");
    }
}
