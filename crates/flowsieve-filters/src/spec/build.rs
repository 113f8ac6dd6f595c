//! From parameters to a filter.

use super::FilterSpec;
use crate::bits::Lines;
use crate::{
    BloomFilter, BloomLayout, BloomLineFilter, Bucket, Bucket16, Bucket32, CartesianFilter, Cmdbf,
    CountingFilter, DleftFilter, MatrixFilter, Mdbf, MembershipFilter, ScalableFilter,
    SplitCountingFilter, SubsetFilter,
};

impl FilterSpec {
    /// An empty filter with these parameters.
    ///
    /// # Panics
    ///
    /// If [`FilterSpec::check`] finds an error.
    pub fn build(&self) -> Box<dyn MembershipFilter> {
        match *self {
            Self::Bloom {
                bits,
                probes,
                layout,
            } => match layout {
                BloomLayout::Anywhere => Box::new(BloomFilter::new(bits, probes)),
                BloomLayout::Lines => {
                    Box::new(BloomLineFilter::new(bits / (Lines::LINE_BYTES * 8), probes))
                }
            },
            Self::Mdbf {
                attributes,
                bits,
                probes,
            } => Box::new(Mdbf::new(attributes, bits, probes)),
            Self::Cmdbf {
                attributes,
                bits,
                probes,
                combination,
            } => Box::new(Cmdbf::new(attributes, bits, probes, combination)),
            Self::Counting {
                counters,
                probes,
                counter_bits,
            } => Box::new(CountingFilter::new(counters, probes, counter_bits)),
            Self::SplitCounting {
                part,
                probes,
                counter_bits,
            } => Box::new(SplitCountingFilter::new(part, probes, counter_bits)),
            Self::Scalable {
                part,
                probes,
                counter_bits,
                most_links,
                refill,
            } => Box::new(ScalableFilter::new(
                part,
                probes,
                counter_bits,
                most_links,
                refill,
            )),
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => {
                if remainder_bits + counter_bits <= Bucket16::CELL_BITS {
                    Box::new(DleftFilter::<Bucket16>::new(
                        bucket_bits,
                        remainder_bits,
                        counter_bits,
                    ))
                } else {
                    Box::new(DleftFilter::<Bucket32>::new(
                        bucket_bits,
                        remainder_bits,
                        counter_bits,
                    ))
                }
            }
            Self::Subset {
                attributes,
                lines,
                probes,
                ref combinations,
            } => Box::new(
                SubsetFilter::with_combinations(attributes, lines, probes, combinations)
                    .expect("the parameters were checked"),
            ),
            Self::Cartesian {
                attributes,
                size,
                probes,
            } => Box::new(CartesianFilter::new(attributes, size, probes)),
            Self::Matrix(ref matrix) => {
                Box::new(MatrixFilter::new(matrix).expect("the parameters were checked"))
            }
        }
    }
}
