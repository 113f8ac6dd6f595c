//! The parameters of a matrix and their rules.

use super::MatrixFilter;
use crate::MembershipFilter;
use crate::matrix_sizing::{
    MAX_ATTRIBUTES, all_of, best_plan, cells as cells_of, is_legal, least_plan, legal_combinations,
    rate_of_query,
};
use crate::saved::{MAX_LIST, saved};
use crate::sizing::{DEFAULT_PROBES, MAX_PROBES};
use crate::spec::{
    FilterKind, FilterSpec, Parameters, Query, Shape, Sizing, SpecError, array_bits, check_range,
};

/// Most combinations that a matrix stores: an insert sets k cells of each.
pub const MAX_COMBINATIONS: usize = 4096;

/// Most cells: 2^40 bytes.
const MAX_CELLS: u128 = 1 << 43;

/// Numbering of the cells of a matrix; both variants are bijections onto `0..M`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IndexMap {
    /// Combination after combination, in the order of their masks; within one, attribute 1 fastest.
    #[default]
    Offset,
    /// The paper's: the rank of the tuple among the legal ones when they are sorted by attribute d,
    /// then d - 1, …, then 1, null first.
    Rank,
}

/// Parameters of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSpec {
    /// Size of each attribute (mᵢ), without its flag position.
    pub sizes: Vec<u64>,
    /// The cuts, as masks; they may overlap. A cut removes its supersets too.
    pub cuts: Vec<u32>,
    /// Hash functions (k).
    pub probes: u32,
    /// Numbering of the cells.
    pub index_map: IndexMap,
}

/// Returns the number of elements for which a matrix is sized: by default those for which
/// [`DEFAULT_PROBES`] is the best k.
pub(crate) fn usual_elements(cells: u64, expected: Option<u64>) -> f64 {
    let usual = cells as f64 * std::f64::consts::LN_2 / f64::from(DEFAULT_PROBES);
    expected.map_or(usual, |n| n.max(1) as f64)
}

/// Returns the matrix of a kind with the best of these families of cuts: the largest that fits the
/// memory, or the smallest that reaches the rate.
pub(crate) fn matrix_of(
    kind: FilterKind,
    families: fn(usize) -> Vec<Vec<u32>>,
    attributes: usize,
    sizing: Sizing,
) -> Result<FilterSpec, SpecError> {
    array_bits(kind, 1, sizing)?;
    check_attributes(attributes)?;
    let families = families(attributes);
    let plan = match sizing {
        Sizing::Memory { bytes, expected } => {
            let cells = bytes * 8;
            let elements = usual_elements(cells, expected);
            best_plan(&families, attributes, cells.into(), elements).ok_or_else(|| {
                let smallest = families
                    .iter()
                    .filter_map(|cuts| cells_of(&vec![1; attributes], cuts));
                let least = smallest.min().unwrap_or_default().div_ceil(8);
                let least = u64::try_from(least).unwrap_or(u64::MAX);
                SpecError::TooLittleMemory { kind, least, bytes }
            })?
        }
        Sizing::Rate { fpr, expected } => {
            least_plan(&families, attributes, fpr, expected as f64).ok_or_else(|| {
                SpecError::new(format!(
                    "no {} filter has a false-positive rate of {fpr} with {expected} elements; ask for a higher rate",
                    kind.name()
                ))
            })?
        }
    };
    Ok(MatrixSpec::cbfm(attributes, plan.size, &plan.cuts, plan.probes).into())
}

/// Checks the number of attributes of a matrix.
pub(crate) fn check_attributes(attributes: usize) -> Result<(), SpecError> {
    check_range("a matrix is for", 1..=MAX_ATTRIBUTES as u64, "attributes", attributes as u64, 3)
}

impl MatrixSpec {
    /// Returns the cells of the matrix (M); `None` beyond 2^64, which [`FilterSpec::check`]
    /// rejects.
    pub fn cells(&self) -> Option<u64> {
        cells_of(&self.sizes, &self.cuts)?.try_into().ok()
    }

    fn is_weighted(&self) -> bool {
        self.sizes.windows(2).any(|pair| pair[0] != pair[1])
    }
}

saved!(MatrixSpec { sizes, cuts, probes, index_map });
saved!(IndexMap { Offset = 0, Rank = 1; else "a numbering of cells that is not known" });

impl Parameters for MatrixSpec {
    fn variety(&self) -> usize {
        // As in the registry: BFM, CBFM, WCBFM.
        if self.is_weighted() { 2 } else { usize::from(!self.cuts.is_empty()) }
    }

    fn check(&self) -> Result<(), SpecError> {
        let attributes = self.sizes.len();
        check_attributes(attributes)?;
        let most = MAX_PROBES as u64;
        check_range("a matrix has", 1..=most, "hash functions", self.probes.into(), 4)?;
        if self.sizes.contains(&0) {
            return Err(SpecError::new(
                "every attribute of a matrix has a size of at least 1, not 0; 1 works",
            ));
        }
        for &cut in &self.cuts {
            if cut.count_ones() < 2 {
                return Err(SpecError::new(format!(
                    "a cut is a set of at least two attributes, since no query could ask for an attribute that is cut alone, not {cut:#b}; 0b11 works"
                )));
            }
            if u64::from(cut) >> attributes != 0 {
                return Err(SpecError::new(format!(
                    "a cut is a set of the {attributes} attributes, not {cut:#b}; 0b11 works"
                )));
            }
        }
        let combinations = legal_combinations(attributes, &self.cuts).len();
        if combinations > MAX_COMBINATIONS {
            return Err(SpecError::new(format!(
                "a matrix stores at most {MAX_COMBINATIONS} combinations of attributes, not {combinations}; cut more (cutting the pairs works)"
            )));
        }
        match cells_of(&self.sizes, &self.cuts) {
            Some(cells) if cells <= MAX_CELLS => Ok(()),
            cells => Err(SpecError::new(format!(
                "a matrix has at most 2^43 cells (1 TiB), not {}; ask for smaller sizes or cut more",
                cells.map_or("more than 2^128".into(), |cells| cells.to_string())
            ))),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.cells().unwrap_or(u64::MAX).div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        let spec = self.clone();
        Some(Self { probes, ..spec }.into())
    }

    fn attributes(&self) -> Option<usize> {
        Some(self.sizes.len())
    }

    fn counts_distinct(&self) -> bool {
        self.sizes.len() == 1
    }

    fn stored(&self) -> Vec<u32> {
        let full = all_of(self.sizes.len());
        let mut stored = legal_combinations(self.sizes.len(), &self.cuts);
        stored.retain(|&mask| mask != 0 && mask != full);
        stored
    }

    fn counts_distinct_of(&self, mask: u32) -> bool {
        mask.is_power_of_two() && (mask.trailing_zeros() as usize) < self.sizes.len()
    }

    fn counts_first_of(&self, mask: u32) -> bool {
        u64::from(mask) >> self.sizes.len() == 0 && is_legal(mask, &self.cuts)
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(MatrixFilter::new(self).expect("the parameters were checked"))
    }

    fn can_be_saved(&self) -> Result<(), SpecError> {
        if self.cuts.len() > MAX_LIST {
            return Err(SpecError::new(
                "a matrix with more than 65536 cuts cannot be saved; leave out those that are there twice",
            ));
        }
        Ok(())
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        let sizes: Vec<f64> = self.sizes.iter().map(|&size| size as f64).collect();
        Some(rate_of_query(&sizes, &self.cuts, self.probes, query))
    }

    fn shape(&self) -> Shape {
        Shape {
            probes: Some(self.probes),
            size: self.sizes.first().copied().filter(|_| !self.is_weighted()),
            unit: "values",
            sizes: self.sizes.clone(),
            cells: cells_of(&self.sizes, &self.cuts).map(|cells| cells as f64),
            cuts: self.cuts.clone(),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(ToString::to_string).collect();
        let cuts: Vec<String> = self.cuts.iter().map(|cut| format!("{cut:#b}")).collect();
        let cuts = if cuts.is_empty() {
            "no cuts".to_owned()
        } else {
            format!("cuts {}", cuts.join(", "))
        };
        format!("sizes {}, {cuts}, k = {}", sizes.join(" x "), self.probes)
    }
}
