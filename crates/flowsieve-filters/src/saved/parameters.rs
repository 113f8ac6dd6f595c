//! Parameters as bytes: the structure's number, then its parameters in the order of [`FilterSpec`].

use super::LoadError;
use super::state::{StateReader, StateWriter};
use crate::{
    BloomLayout, Combination, FilterSpec, IndexMap, MatrixSpec, PlannedCombination, Refill,
};
use std::io;

/// Most cuts of a matrix in a file: there are not more different ones.
const MAX_CUTS: usize = 1 << 16;

/// Writes parameters that were checked.
#[expect(clippy::too_many_lines, reason = "a table of all structures")]
pub(super) fn save(spec: &FilterSpec, out: &mut StateWriter<'_>) -> io::Result<()> {
    match *spec {
        FilterSpec::Bloom {
            bits,
            probes,
            layout,
        } => {
            out.u8(1)?;
            out.u64(bits)?;
            out.u32(probes)?;
            out.u8(match layout {
                BloomLayout::Anywhere => 0,
                BloomLayout::Lines => 1,
            })
        }
        FilterSpec::Mdbf {
            attributes,
            bits,
            probes,
        } => {
            out.u8(2)?;
            out.u32(attributes as u32)?;
            out.u64(bits)?;
            out.u32(probes)
        }
        FilterSpec::Cmdbf {
            attributes,
            bits,
            probes,
            combination,
        } => {
            out.u8(3)?;
            out.u32(attributes as u32)?;
            out.u64(bits)?;
            out.u32(probes)?;
            out.u8(match combination {
                Combination::Joint => 0,
                Combination::XorIndependent => 1,
                Combination::XorSame => 2,
            })
        }
        FilterSpec::Subset {
            attributes,
            lines,
            probes,
            ref combinations,
        } => {
            out.u8(4)?;
            out.u32(attributes as u32)?;
            out.u64(lines)?;
            out.u32(probes)?;
            out.u32(combinations.len() as u32)?;
            for combination in combinations {
                out.u32(combination.mask)?;
                out.u32(combination.probes)?;
            }
            Ok(())
        }
        FilterSpec::Counting {
            counters,
            probes,
            counter_bits,
        } => {
            out.u8(5)?;
            out.u64(counters)?;
            out.u32(probes)?;
            out.u32(counter_bits)
        }
        FilterSpec::SplitCounting {
            part,
            probes,
            counter_bits,
        } => {
            out.u8(6)?;
            out.u64(part)?;
            out.u32(probes)?;
            out.u32(counter_bits)
        }
        FilterSpec::Scalable {
            part,
            probes,
            counter_bits,
            most_links,
            refill,
        } => {
            out.u8(7)?;
            out.u64(part)?;
            out.u32(probes)?;
            out.u32(counter_bits)?;
            out.u32(most_links)?;
            out.u8(match refill {
                Refill::FirstNotFull => 0,
                Refill::Newest => 1,
            })
        }
        FilterSpec::Dleft {
            bucket_bits,
            remainder_bits,
            counter_bits,
        } => {
            out.u8(8)?;
            out.u32(bucket_bits)?;
            out.u32(remainder_bits)?;
            out.u32(counter_bits)
        }
        FilterSpec::Cartesian {
            attributes,
            size,
            probes,
        } => {
            out.u8(9)?;
            out.u32(attributes as u32)?;
            out.u64(size)?;
            out.u32(probes)
        }
        FilterSpec::Matrix(ref matrix) => {
            out.u8(10)?;
            out.u32(matrix.sizes.len() as u32)?;
            out.words(&matrix.sizes)?;
            out.u32(matrix.cuts.len() as u32)?;
            for &cut in &matrix.cuts {
                out.u32(cut)?;
            }
            out.u32(matrix.probes)?;
            out.u8(match matrix.index_map {
                IndexMap::Offset => 0,
                IndexMap::Rank => 1,
            })
        }
    }
}

/// Reads parameters, which need not be such that a filter can have.
pub(super) fn load(input: &mut StateReader<'_>) -> Result<FilterSpec, LoadError> {
    Ok(match input.u8()? {
        1 => FilterSpec::Bloom {
            bits: input.u64()?,
            probes: input.u32()?,
            layout: match input.u8()? {
                0 => BloomLayout::Anywhere,
                1 => BloomLayout::Lines,
                _ => return Err(input.damaged("a Bloom filter of an unknown layout")),
            },
        },
        2 => FilterSpec::Mdbf {
            attributes: input.u32()? as usize,
            bits: input.u64()?,
            probes: input.u32()?,
        },
        3 => FilterSpec::Cmdbf {
            attributes: input.u32()? as usize,
            bits: input.u64()?,
            probes: input.u32()?,
            combination: match input.u8()? {
                0 => Combination::Joint,
                1 => Combination::XorIndependent,
                2 => Combination::XorSame,
                _ => return Err(input.damaged("a combination of addresses that is not known")),
            },
        },
        4 => FilterSpec::Subset {
            attributes: input.u32()? as usize,
            lines: input.u64()?,
            probes: input.u32()?,
            combinations: list(input, MAX_CUTS, |input| {
                Ok(PlannedCombination {
                    mask: input.u32()?,
                    probes: input.u32()?,
                })
            })?,
        },
        5 => FilterSpec::Counting {
            counters: input.u64()?,
            probes: input.u32()?,
            counter_bits: input.u32()?,
        },
        6 => FilterSpec::SplitCounting {
            part: input.u64()?,
            probes: input.u32()?,
            counter_bits: input.u32()?,
        },
        7 => FilterSpec::Scalable {
            part: input.u64()?,
            probes: input.u32()?,
            counter_bits: input.u32()?,
            most_links: input.u32()?,
            refill: match input.u8()? {
                0 => Refill::FirstNotFull,
                1 => Refill::Newest,
                _ => return Err(input.damaged("a chain of an unknown rule")),
            },
        },
        8 => FilterSpec::Dleft {
            bucket_bits: input.u32()?,
            remainder_bits: input.u32()?,
            counter_bits: input.u32()?,
        },
        9 => FilterSpec::Cartesian {
            attributes: input.u32()? as usize,
            size: input.u64()?,
            probes: input.u32()?,
        },
        10 => FilterSpec::Matrix(MatrixSpec {
            sizes: list(input, 64, size)?,
            cuts: list(input, MAX_CUTS, mask)?,
            probes: input.u32()?,
            index_map: match input.u8()? {
                0 => IndexMap::Offset,
                1 => IndexMap::Rank,
                _ => return Err(input.damaged("a numbering of cells that is not known")),
            },
        }),
        _ => return Err(input.damaged("a structure that is not known")),
    })
}

/// Whether the lists of these parameters are short enough to be read again.
pub(super) fn fit(spec: &FilterSpec) -> bool {
    !matches!(spec, FilterSpec::Matrix(matrix) if matrix.cuts.len() > MAX_CUTS)
}

fn size(input: &mut StateReader<'_>) -> Result<u64, LoadError> {
    input.u64()
}

fn mask(input: &mut StateReader<'_>) -> Result<u32, LoadError> {
    input.u32()
}

/// Their number, and so many entries; grows as they come.
fn list<T>(
    input: &mut StateReader<'_>,
    most: usize,
    entry: impl Fn(&mut StateReader<'_>) -> Result<T, LoadError>,
) -> Result<Vec<T>, LoadError> {
    let count = input.u32()? as usize;
    if count > most {
        return Err(input.damaged("a list of parameters is longer than any can be"));
    }
    (0..count).map(|_| entry(input)).collect()
}
