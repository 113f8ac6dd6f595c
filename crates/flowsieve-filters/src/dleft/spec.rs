//! Parameters of a d-left filter.

use super::bucket::{Bucket, Bucket16, Bucket32};
use super::rate::{dleft_given_up, dleft_overfull_fpr};
use super::{CELLS, DleftFilter, SUBTABLES};
use crate::MembershipFilter;
use crate::saved::{LoadError, StateReader, StateWriter};
use crate::sizing::dleft_fpr;
use crate::spec::{
    Descriptor, FilterKind, Parameters, Query, Reach, Shape, Sizing, SpecError, Workload,
    check_memory, check_rate,
};
use std::io;

/// Bits of the count in a cell when nothing else is asked for.
const DEFAULT_COUNT_BITS: u32 = 2;

/// Elements to the four buckets of one number that fill three quarters of their cells.
const ELEMENTS_A_ROW: u64 = (SUBTABLES * CELLS * 3 / 4) as u64;

/// Binary logarithm of the most buckets of a subtable: 2^40 bytes of 32-byte buckets in all.
const MAX_BUCKET_BITS: u32 = 33;

/// Parameters of a [`DleftFilter`]. Cells of up to 16 bits take 16, others 32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DleftSpec {
    /// Binary logarithm of the buckets of each subtable (b).
    pub bucket_bits: u32,
    /// Bits of a remainder (r).
    pub remainder_bits: u32,
    /// Bits of a cell's count (c).
    pub counter_bits: u32,
}

pub(crate) const DLEFT: Descriptor = Descriptor {
    name: "dleft",
    summary: "d-left counting Bloom filter (Bonomi et al. 2006)",
    reach: Reach::Whole,
    size: |_, sizing| {
        let (bucket_bits, remainder_bits) = match sizing {
            Sizing::Memory { bytes, .. } => {
                let row = SUBTABLES as u64 * size_of::<Bucket16>() as u64;
                check_memory(FilterKind::Dleft, bytes, row)?;
                (
                    (bytes / row).ilog2(),
                    Bucket16::CELL_BITS - DEFAULT_COUNT_BITS,
                )
            }
            Sizing::Rate { fpr, expected } => {
                check_rate(fpr)?;
                let buckets = expected.div_ceil(ELEMENTS_A_ROW).max(1);
                let least = buckets.next_power_of_two().ilog2();
                let cells = [Bucket16::CELL_BITS, Bucket32::CELL_BITS];
                let mut remainders = cells.into_iter().map(|cell| cell - DEFAULT_COUNT_BITS);
                let remainder = remainders
                    .find(|r| dleft_fpr(least + r, expected as f64) <= fpr)
                    .ok_or_else(|| {
                        SpecError::new(format!(
                            "a d-left filter reaches rates down to {:.1e} with {expected} elements, not {fpr:e}; a Bloom filter reaches it",
                            dleft_fpr(least + 30, expected as f64)
                        ))
                    })?;
                (least, remainder)
            }
        };
        let spec = DleftSpec {
            bucket_bits,
            remainder_bits,
            counter_bits: DEFAULT_COUNT_BITS,
        };
        check_memory(FilterKind::Dleft, spec.memory_bytes(), 64)?;
        Ok(spec.into())
    },
    search: None,
};

impl DleftSpec {
    pub(crate) const NUMBER: u8 = 8;

    pub(crate) fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            bucket_bits: input.u32()?,
            remainder_bits: input.u32()?,
            counter_bits: input.u32()?,
        })
    }

    const fn is_narrow(self) -> bool {
        self.remainder_bits + self.counter_bits <= Bucket16::CELL_BITS
    }
}

impl Parameters for DleftSpec {
    fn kind(&self) -> FilterKind {
        FilterKind::Dleft
    }

    fn check(&self) -> Result<(), SpecError> {
        let Self {
            bucket_bits,
            remainder_bits,
            counter_bits,
        } = *self;
        if counter_bits != 2 && counter_bits != 4 {
            return Err(SpecError::new(format!(
                "the count of a d-left cell has 2 or 4 bits, not {counter_bits}; {DEFAULT_COUNT_BITS} works"
            )));
        }
        let most = Bucket32::CELL_BITS - counter_bits;
        if remainder_bits == 0 || remainder_bits > most {
            return Err(SpecError::new(format!(
                "the remainder of a d-left cell has 1 to {most} bits, not {remainder_bits}; {} works",
                Bucket16::CELL_BITS - counter_bits
            )));
        }
        if bucket_bits > MAX_BUCKET_BITS {
            return Err(SpecError::new(format!(
                "a d-left subtable has at most 2^{MAX_BUCKET_BITS} buckets, not 2^{bucket_bits}; 20 works"
            )));
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let bucket = if self.is_narrow() {
            size_of::<Bucket16>()
        } else {
            size_of::<Bucket32>()
        };
        ((SUBTABLES * bucket) as u64) << self.bucket_bits
    }

    fn probes(&self) -> u32 {
        SUBTABLES as u32
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        let Self {
            bucket_bits: b,
            remainder_bits: r,
            counter_bits: c,
        } = *self;
        if self.is_narrow() {
            Box::new(DleftFilter::<Bucket16>::new(b, r, c))
        } else {
            Box::new(DleftFilter::<Bucket32>::new(b, r, c))
        }
    }

    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        out.u32(self.bucket_bits)?;
        out.u32(self.remainder_bits)?;
        out.u32(self.counter_bits)
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| dleft_overfull_fpr(self.bucket_bits, self.remainder_bits, n))
    }

    fn remarks(&self, workload: &Workload<'_>) -> Vec<String> {
        let elements = (workload.values)(workload.full());
        let given_up = dleft_given_up(self.bucket_bits, self.remainder_bits, elements);
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
            size: Some(1 << self.bucket_bits),
            unit: "buckets",
            arrays: Some(SUBTABLES as u32),
            remainder_bits: Some(self.remainder_bits),
            counter_bits: Some(self.counter_bits),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        format!(
            "d = {SUBTABLES} subtables of 2^{} buckets, remainders of {} and counts of {} bits",
            self.bucket_bits, self.remainder_bits, self.counter_bits
        )
    }
}
