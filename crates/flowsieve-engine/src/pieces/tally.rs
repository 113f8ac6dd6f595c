//! A shard's part of a slice's answer, to be sent to whoever adds them up.

use super::PieceError;
use super::bytes::{Exchanged, Reader, Writer};
use crate::filters::{Basis, CombinationCount, Estimate, Seen};
use crate::pipeline::{CombinationTally, ShardTally as Counts};

/// What was counted of one shard of one slice.
#[derive(Debug)]
pub struct ShardTally {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Packets of the slice; they are counted with shard 0.
    pub packets: u64,
    /// Elements of the shard, repeats included.
    pub elements: u64,
    /// Earliest and latest packet of the slice; only with shard 0.
    pub times_ns: Option<(i64, i64)>,
    pub(super) counts: Counts,
}

const TALLY: u8 = b'T';

impl Exchanged for ShardTally {
    fn to_bytes(&self) -> Vec<u8> {
        let counts = &self.counts;
        let mut out = Writer::begin(TALLY);
        out.signed(self.slice);
        out.number(self.shard.into());
        out.number(self.packets);
        out.number(self.elements);
        out.maybe(self.times_ns, |out, (first, last)| {
            out.signed(first);
            out.signed(last);
        });
        out.maybe(counts.first, Writer::number);
        out.maybe(counts.estimate, put_estimate);
        out.maybe(counts.exact, Writer::number);
        out.0.push(u8::from(counts.exact_over_limit));
        out.0.push(u8::from(counts.saturated));
        out.number(counts.false_repeats);
        out.number(counts.combinations.len() as u64);
        for CombinationTally { count, exact } in &counts.combinations {
            out.number(count.mask.into());
            out.maybe(count.first, Writer::number);
            out.maybe(count.distinct, put_estimate);
            out.maybe(*exact, Writer::number);
        }
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, TALLY, "tally of a shard")?;
        let read = Self {
            slice: from.signed()?,
            shard: from.small()?,
            packets: from.number()?,
            elements: from.number()?,
            times_ns: from.maybe(|from| Ok((from.signed()?, from.signed()?)))?,
            counts: Counts {
                first: from.maybe(Reader::number)?,
                estimate: from.maybe(estimate)?,
                exact: from.maybe(Reader::number)?,
                exact_over_limit: from.flag()?,
                saturated: from.flag()?,
                false_repeats: from.number()?,
                combinations: from.many(|from| {
                    Ok(CombinationTally {
                        count: CombinationCount {
                            mask: from.small()?,
                            first: from.maybe(Reader::number)?,
                            distinct: from.maybe(estimate)?,
                        },
                        exact: from.maybe(Reader::number)?,
                    })
                })?,
                filter: None,
                journal: None,
            },
        };
        let (counts, elements) = (&read.counts, read.elements);
        let most = [counts.first, counts.exact, Some(counts.false_repeats)];
        if most.into_iter().flatten().any(|count| count > elements) {
            return Err(from.wrong("more was counted than there was"));
        }
        from.end()?;
        Ok(read)
    }
}

fn put_estimate(out: &mut Writer, estimate: Estimate) {
    out.float(estimate.distinct);
    out.float(estimate.variance);
    match estimate.basis {
        Basis::Scatter => out.number(0),
        Basis::Stream(seen) => {
            out.number(1);
            out.number(seen.elements);
            out.float(seen.next_mean);
            out.float(seen.next_variance);
            out.number(seen.streams.into());
        }
        Basis::Bounds { lower, upper } => {
            out.number(2);
            out.number(lower);
            out.maybe(upper, Writer::number);
        }
    }
}

fn estimate(from: &mut Reader<'_>) -> Result<Estimate, PieceError> {
    Ok(Estimate {
        distinct: from.float()?,
        variance: from.float()?,
        basis: match from.number()? {
            0 => Basis::Scatter,
            1 => Basis::Stream(Seen {
                elements: from.number()?,
                next_mean: from.float()?,
                next_variance: from.float()?,
                streams: from.small()?,
            }),
            2 => Basis::Bounds { lower: from.number()?, upper: from.maybe(Reader::number)? },
            _ => return Err(from.wrong("an estimate rests on nothing that is known")),
        },
    })
}
