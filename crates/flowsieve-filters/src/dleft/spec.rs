//! Parameters of a d-left filter.

use super::bucket::{Bucket, Bucket16, Bucket24, Bucket32};
use super::rate::{dleft_given_up, dleft_overfull_fpr, overflow};
use super::{CELLS, DleftFilter, STASH_ENTRY, SUBTABLES};
use crate::MembershipFilter;
use crate::saved::{LoadError, Saved, StateReader, StateWriter};
use crate::spec::{
    Descriptor, FilterKind, Parameters, Query, Reach, Shape, Sizing, SpecError, Workload,
    check_memory, check_range,
};
use std::io;

/// Default bits of the count in a cell.
const DEFAULT_COUNT_BITS: u32 = 2;

/// Elements that fill three quarters of the cells of four buckets, one of each subtable.
const ELEMENTS_A_ROW: u64 = (SUBTABLES * CELLS * 3 / 4) as u64;

/// Most buckets of a subtable: 2^40 bytes of 32-byte buckets in all.
const MAX_BUCKETS: u64 = 1 << 33;

/// Saved in place of the binary logarithm of B if B is no power of two; B then follows the other
/// numbers.
const ANY_NUMBER: u32 = 64;

/// Parameters of a [`DleftFilter`]. Cells take 16 bits, 24 (unless B is a power of two) or 32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DleftSpec {
    /// Buckets of each subtable (B).
    pub buckets: u64,
    /// Bits of a remainder (r).
    pub remainder_bits: u32,
    /// Bits of a cell's count (c).
    pub counter_bits: u32,
}

pub(crate) const DLEFT: Descriptor = Descriptor {
    name: "dleft",
    summary: "d-left counting Bloom filter (Bonomi et al. 2006)",
    reach: Reach::Whole,
    ignores_repeats: false,
    size: |_, sizing| {
        Ok(match sizing {
            Sizing::Memory { bytes, expected } => {
                check_memory(FilterKind::Dleft, bytes, of_cells(WIDTHS[0], 1).memory_bytes())?;
                in_memory(bytes, expected)
            }
            Sizing::Rate { fpr, expected } => for_rate(fpr, expected)?,
        }
        .into())
    },
    search: None,
};

/// The possible widths of a cell, in bits.
const WIDTHS: [u32; 3] = [Bucket16::CELL_BITS, Bucket24::CELL_BITS, Bucket32::CELL_BITS];

/// Returns the filter whose remainders and counts fill cells of this width.
const fn of_cells(width: u32, buckets: u64) -> DleftSpec {
    DleftSpec {
        buckets,
        remainder_bits: width - DEFAULT_COUNT_BITS,
        counter_bits: DEFAULT_COUNT_BITS,
    }
}

/// Returns the filter with the lowest rate of those that keep to this memory with their stash, if any
/// does: narrow cells hold more elements, and wide ones distinguish more. If the number of elements
/// is not known, returns the most cells.
fn in_memory(bytes: u64, expected: Option<u64>) -> DleftSpec {
    let in_width = |width: u32| {
        let buckets = bytes / (SUBTABLES as u64 * u64::from(width));
        let spec = of_cells(width, buckets);
        // If B is a power of two, there are no cells of 24 bits: take one bucket less.
        of_cells(width, buckets - u64::from(buckets > 0 && spec.width() != width))
    };
    let Some(expected) = expected else { return in_width(WIDTHS[0]) };
    let all = WIDTHS.map(in_width).into_iter();
    let best = all.filter(|spec| spec.buckets > 0).min_by(|a, b| {
        let key = |spec: &DleftSpec| {
            let more = spec.additional_bytes(expected as f64);
            (spec.memory_bytes() + more > bytes, spec.rate_at(expected as f64))
        };
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    best.unwrap_or(in_width(WIDTHS[0]))
}

/// Returns the smallest filter with this rate that is at most three quarters full.
fn for_rate(fpr: f64, expected: u64) -> Result<DleftSpec, SpecError> {
    // Solves 1 - (1 - 1/hashes)^n = fpr.
    let hashes = -((-fpr).ln_1p() / expected as f64).exp_m1().recip();
    let least = expected.div_ceil(ELEMENTS_A_ROW).max(1);
    let of_width = |width: u32| {
        let remainders = f64::from(of_cells(width, 1).remainder_bits).exp2();
        // Conversion saturates.
        let buckets = least.max((hashes / remainders).ceil() as u64);
        let spec = of_cells(width, buckets);
        // If B is a power of two, there are no cells of 24 bits: take one bucket more.
        of_cells(width, buckets.saturating_add(u64::from(spec.width() != width)))
    };
    let possible = WIDTHS.map(of_width).into_iter();
    let possible = possible.filter(|spec| spec.buckets <= MAX_BUCKETS);
    let smallest = possible.min_by_key(Parameters::memory_bytes);
    smallest.ok_or_else(|| {
        let largest = of_cells(WIDTHS[2], MAX_BUCKETS);
        SpecError::new(format!(
            "a d-left filter reaches rates down to {:.1e} with {expected} elements, not {fpr:e}; a Bloom filter reaches it",
            largest.rate_at(expected as f64)
        ))
    })
}

impl Saved for DleftSpec {
    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        let is_power = self.buckets.is_power_of_two();
        out.u32(if is_power { self.buckets.trailing_zeros() } else { ANY_NUMBER })?;
        out.u32(self.remainder_bits)?;
        out.u32(self.counter_bits)?;
        if is_power { Ok(()) } else { out.u64(self.buckets) }
    }

    fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        let bucket_bits = input.u32()?;
        let (remainder_bits, counter_bits) = (input.u32()?, input.u32()?);
        let buckets = match bucket_bits {
            ANY_NUMBER => input.u64()?,
            bits => 1_u64.checked_shl(bits).unwrap_or(u64::MAX),
        };
        if bucket_bits == ANY_NUMBER && buckets.is_power_of_two() {
            return Err(input.damaged("a d-left filter whose buckets are written as none are"));
        }
        Ok(Self { buckets, remainder_bits, counter_bits })
    }
}

impl DleftSpec {
    /// Returns the bits that a cell takes. Filters whose B is a power of two have no cells of 24
    /// bits, so that older saved filters keep their layout.
    const fn width(self) -> u32 {
        let bits = self.remainder_bits + self.counter_bits;
        match bits.div_ceil(8) {
            0..=2 => Bucket16::CELL_BITS,
            3 if !self.buckets.is_power_of_two() => Bucket24::CELL_BITS,
            _ => Bucket32::CELL_BITS,
        }
    }

    fn rate_at(&self, elements: f64) -> f64 {
        dleft_overfull_fpr(self.buckets, self.remainder_bits, elements)
    }
}

impl Parameters for DleftSpec {
    fn check(&self) -> Result<(), SpecError> {
        let Self { buckets, remainder_bits, counter_bits } = *self;
        if counter_bits != 2 && counter_bits != 4 {
            return Err(SpecError::new(format!(
                "the count of a d-left cell has 2 or 4 bits, not {counter_bits}; {DEFAULT_COUNT_BITS} works"
            )));
        }
        let [works, most] =
            [Bucket16::CELL_BITS, Bucket32::CELL_BITS].map(|cell| u64::from(cell - counter_bits));
        let has = "the remainder of a d-left cell has";
        check_range(has, 1..=most, "bits", remainder_bits.into(), works)?;
        check_range("a d-left subtable has", 1..=MAX_BUCKETS, "buckets", buckets, 1 << 20)
    }

    fn memory_bytes(&self) -> u64 {
        // A bucket of eight cells has as many bytes as a cell has bits.
        SUBTABLES as u64 * self.buckets * u64::from(self.width())
    }

    fn additional_bytes(&self, elements: f64) -> u64 {
        let (given_up, stashed) = overflow(self.buckets, self.remainder_bits, elements);
        let buckets = self.buckets as f64;
        let counted =
            if given_up * buckets < 1.0 { 0 } else { 4 * self.buckets + self.buckets / 8 };
        stashed as u64 * STASH_ENTRY as u64 + counted
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        let Self { buckets: b, remainder_bits: r, counter_bits: c } = *self;
        match self.width() {
            Bucket16::CELL_BITS => Box::new(DleftFilter::<Bucket16>::new(b, r, c)),
            Bucket24::CELL_BITS => Box::new(DleftFilter::<Bucket24>::new(b, r, c)),
            _ => Box::new(DleftFilter::<Bucket32>::new(b, r, c)),
        }
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| self.rate_at(n))
    }

    fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        let elements = (workload.values)(workload.full());
        let given_up = dleft_given_up(self.buckets, self.remainder_bits, elements);
        if given_up <= 0.0 {
            return Vec::new();
        }
        vec![format!(
            "too few cells for the elements; about {:.0} % of its buckets answer yes to everything",
            given_up * 100.0
        )]
    }

    fn shape(&self) -> Shape {
        Shape {
            size: Some(self.buckets),
            unit: "buckets",
            arrays: Some(SUBTABLES as u32),
            remainder_bits: Some(self.remainder_bits),
            counter_bits: Some(self.counter_bits),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        let buckets = match self.buckets {
            power if power.is_power_of_two() => format!("2^{}", power.ilog2()),
            other => other.to_string(),
        };
        format!(
            "d = {SUBTABLES} subtables of {buckets} buckets, remainders of {} and counts of {} bits",
            self.remainder_bits, self.counter_bits
        )
    }
}
