//! The rules of the structures.

use super::counters::{DEFAULT_LINKS, MAX_LINKS, check_counters, check_dleft};
use super::matrices::check_attributes;
use super::{FilterSpec, MAX_BYTES, SpecError};
use crate::bits::Lines;
use crate::dleft::SUBTABLES;
use crate::sizing::{DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES};
use crate::{BloomLayout, Combination, PlannedCombination};

impl FilterSpec {
    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        let (probes, most) = match *self {
            Self::Subset { probes, .. }
            | Self::Bloom {
                probes,
                layout: BloomLayout::Lines,
                ..
            } => (probes, MAX_LINE_PROBES),
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Counting { probes, .. }
            | Self::SplitCounting { probes, .. }
            | Self::Scalable { probes, .. }
            | Self::Cartesian { probes, .. } => (probes, MAX_PROBES as u32),
            Self::Matrix(ref matrix) => return matrix.check(),
            Self::Dleft { .. } => (SUBTABLES as u32, SUBTABLES as u32),
        };
        if probes == 0 || probes > most {
            return Err(SpecError::Rule(format!(
                "a filter of this kind has 1 to {most} hash functions, not {probes}; {DEFAULT_PROBES} works"
            )));
        }
        self.check_bounds()?;
        match *self {
            Self::Cmdbf {
                bits, combination, ..
            } if combination != Combination::Joint && !bits.is_power_of_two() => {
                Err(SpecError::Rule(format!(
                    "XORed addresses need arrays of a power of two of bits, not {bits}; {} works",
                    bits.next_power_of_two()
                )))
            }
            Self::Bloom {
                bits,
                layout: BloomLayout::Lines,
                ..
            } if bits == 0 || bits % (Lines::LINE_BYTES * 8) != 0 => Err(SpecError::Rule(format!(
                "a filter in cache lines has a multiple of 512 bits, not {bits}; {} works",
                bits.max(1).next_multiple_of(Lines::LINE_BYTES * 8)
            ))),
            Self::Counting {
                counters,
                counter_bits,
                ..
            } => check_counters(counters, counter_bits),
            Self::SplitCounting {
                part, counter_bits, ..
            } => check_counters(part, counter_bits),
            Self::Scalable {
                part,
                counter_bits,
                most_links,
                ..
            } => {
                if most_links == 0 || most_links > MAX_LINKS {
                    return Err(SpecError::Rule(format!(
                        "a chain has 1 to {MAX_LINKS} links, not {most_links}; {DEFAULT_LINKS} works"
                    )));
                }
                check_counters(part, counter_bits)
            }
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => check_dleft(bucket_bits, remainder_bits, counter_bits),
            Self::Subset {
                attributes,
                ref combinations,
                ..
            } => PlannedCombination::check_all(combinations, attributes),
            Self::Cartesian {
                attributes, size, ..
            } => {
                check_attributes(attributes)?;
                let cells = size.checked_pow(attributes as u32);
                if cells.is_none_or(|cells| cells == 0 || cells > MAX_BYTES * 8) {
                    return Err(SpecError::Rule(format!(
                        "a Cartesian join has from 1 to 2^43 cells (m^d), which {size} addresses for each of {attributes} attributes do not make; 2 works"
                    )));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
