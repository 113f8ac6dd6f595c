//! What holds for the sizes of all structures, and what the parameters tell of a structure.

use super::{FilterSpec, MAX_BYTES, SpecError};
use crate::bits::{CounterArray, Lines};
use crate::matrix_sizing::MAX_ATTRIBUTES;

impl FilterSpec {
    /// Whether all arrays have at least one bit, and fit into 2^40 bytes. The structure's own rules are
    /// checked elsewhere.
    pub(super) fn check_bounds(&self) -> Result<(), SpecError> {
        if let Self::Mdbf { attributes, .. } | Self::Cmdbf { attributes, .. } = *self
            && (attributes == 0 || attributes > MAX_ATTRIBUTES)
        {
            return Err(SpecError::new(format!(
                "a filter of this kind is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
            )));
        }
        let counters = |count: u128, width: u32| {
            count.div_ceil(CounterArray::per_word(width.clamp(1, 8)).into()) * 64
        };
        let bits = match *self {
            Self::Bloom { bits, .. } => u128::from(bits),
            Self::Mdbf {
                attributes, bits, ..
            } => u128::from(bits) * attributes as u128,
            Self::Cmdbf {
                attributes, bits, ..
            } => u128::from(bits) * (attributes as u128 + 1),
            Self::Subset { lines, .. } => u128::from(lines) * u128::from(Lines::LINE_BYTES) * 8,
            Self::Counting {
                counters: count,
                counter_bits,
                ..
            } => counters(count.into(), counter_bits),
            Self::SplitCounting {
                part,
                probes,
                counter_bits,
            } => counters(u128::from(part) * u128::from(probes), counter_bits),
            Self::Scalable {
                part,
                probes,
                counter_bits,
                most_links,
                ..
            } => {
                counters(u128::from(part) * u128::from(probes), counter_bits)
                    * u128::from(most_links)
            }
            // Their own rules have the same bounds.
            Self::Dleft { .. } | Self::Cartesian { .. } | Self::Matrix(_) => return Ok(()),
        };
        // That there is a counter is one of the structures' own rules.
        let counted = matches!(
            self,
            Self::Counting { .. } | Self::SplitCounting { .. } | Self::Scalable { .. }
        );
        if (bits == 0 && !counted) || bits > u128::from(MAX_BYTES) * 8 {
            return Err(SpecError::new(format!(
                "the arrays of a filter have from 1 to 2^43 bits together (1 TiB), not {bits}; 1000000 works"
            )));
        }
        Ok(())
    }

    /// Attributes that the structure looks at; `None` if it looks at the whole element only.
    pub fn attributes(&self) -> Option<usize> {
        match *self {
            _ if !self.needs_attributes() => None,
            Self::Mdbf { attributes, .. }
            | Self::Cmdbf { attributes, .. }
            | Self::Subset { attributes, .. }
            | Self::Cartesian { attributes, .. } => Some(attributes),
            Self::Matrix(ref matrix) => Some(matrix.sizes.len()),
            _ => None,
        }
    }

    /// The structure's name in the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bloom { .. } => "bloom",
            Self::Mdbf { .. } => "mdbf",
            Self::Cmdbf { .. } => "cmdbf",
            Self::Subset { .. } => "subset",
            Self::Counting { .. } => "counting",
            Self::SplitCounting { .. } => "split-counting",
            Self::Scalable { .. } => "scalable",
            Self::Dleft { .. } => "dleft",
            Self::Cartesian { .. } => "cartesian",
            Self::Matrix(matrix) if matrix.sizes.windows(2).any(|pair| pair[0] != pair[1]) => {
                "wcbfm"
            }
            Self::Matrix(matrix) if matrix.cuts.is_empty() => "bfm",
            Self::Matrix(_) => "cbfm",
        }
    }

    /// Bytes of the arrays as they are built: of a chain one link.
    pub(crate) fn built_bytes(&self) -> u64 {
        match *self {
            Self::Scalable {
                part,
                probes,
                counter_bits,
                ..
            } => CounterArray::bytes_of(part * u64::from(probes), counter_bits),
            _ => self.memory_bytes(),
        }
    }
}
