//! The parameters of a matrix, and their rules.

use crate::SpecError;
use crate::matrix_sizing::{MAX_ATTRIBUTES, cells, is_legal};
use crate::sizing::MAX_PROBES;

/// Most combinations that a matrix stores: an insert sets k cells of each.
pub const MAX_COMBINATIONS: usize = 4096;

/// Most cells: 2^40 bytes.
const MAX_CELLS: u128 = 1 << 43;

/// How the cells of a matrix are numbered; both ways are bijections onto `0..M`.
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
    /// How the cells are numbered.
    pub index_map: IndexMap,
}

impl MatrixSpec {
    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, and a value that works.
    pub fn check(&self) -> Result<(), SpecError> {
        let attributes = self.sizes.len();
        if attributes == 0 || attributes > MAX_ATTRIBUTES {
            return Err(SpecError::new(format!(
                "a matrix is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
            )));
        }
        if self.probes == 0 || self.probes > MAX_PROBES as u32 {
            return Err(SpecError::new(format!(
                "a matrix has 1 to {MAX_PROBES} hash functions, not {}; 4 works",
                self.probes
            )));
        }
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
        let combinations = (0..1_u32 << attributes)
            .filter(|&combination| is_legal(combination, &self.cuts))
            .count();
        if combinations > MAX_COMBINATIONS {
            return Err(SpecError::new(format!(
                "a matrix stores at most {MAX_COMBINATIONS} combinations of attributes, not {combinations}; cut more (cutting the pairs works)"
            )));
        }
        match cells(&self.sizes, &self.cuts) {
            Some(cells) if cells <= MAX_CELLS => Ok(()),
            cells => Err(SpecError::new(format!(
                "a matrix has at most 2^43 cells (1 TiB), not {}; ask for smaller sizes or cut more",
                cells.map_or("more than 2^128".into(), |cells| cells.to_string())
            ))),
        }
    }

    /// Cells of the matrix (M); `None` beyond 2^64, which [`MatrixSpec::check`] refuses.
    pub fn cells(&self) -> Option<u64> {
        cells(&self.sizes, &self.cuts)?.try_into().ok()
    }
}
