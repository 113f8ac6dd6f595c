//! What became of all inputs: which pieces count, and in which order their packets stand.

use super::bytes::{Exchanged, Reader, Writer};
use super::{InputPart, Piece, PieceError, PiecePlan, SlicePart};
use crate::inputs::InputResult;
use crate::pipeline::{CountSummary, Totals};
use crate::trace::{RangeStart, Source, TraceError, TraceErrorKind};
use std::collections::BTreeMap;

/// Small and the same for all shards: it goes to whoever counts them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InputTable {
    /// For each input the pieces that count.
    inputs: Vec<Vec<Accepted>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Accepted {
    /// Offset at which the piece was entered.
    entered: u64,
    /// Latest time in the pieces before it.
    earlier_ns: i64,
}

/// What came of joining parts of inputs.
#[derive(Debug)]
pub enum Joined {
    /// The table, and all results but those of the slices.
    Whole(InputTable, Box<CountSummary>),
    /// These pieces have to be read again: where they begin was guessed wrong, or they are damaged
    /// and packets before them were not known.
    Again(Vec<Piece>),
}

impl InputTable {
    /// Joins what became of the pieces. Of a piece that was read again the earlier results may be
    /// there still.
    ///
    /// # Errors
    ///
    /// Results of a piece are missing, or a file changed between two readings.
    pub fn join(
        plan: &impl PiecePlan,
        pieces: &[Piece],
        parts: &[InputPart],
    ) -> Result<Joined, PieceError> {
        let plan = plan.outline();
        let mut by_piece: BTreeMap<(u32, u32), Vec<&InputPart>> = BTreeMap::new();
        for part in parts {
            let place = (part.input, part.range);
            by_piece.entry(place).or_default().push(part);
        }
        let mut pieces: Vec<&Piece> = pieces.iter().collect();
        pieces.sort_by_key(|piece| (piece.input, piece.range));
        let mut table = Self { inputs: vec![Vec::new(); plan.trace.inputs.len()] };
        let (mut again, mut totals) = (Vec::new(), Totals::default());
        let mut inputs = Vec::new();
        for (number, path) in (0..).zip(plan.trace.inputs.iter().map(Source::path)) {
            let mut result = InputResult {
                path: path.to_path_buf(),
                container: None,
                packets: 0,
                left_out: 0,
                unread_bytes: 0,
                times_out_of_range: 0,
                error: None,
                remarks: Vec::new(),
                is_log: false,
            };
            let (mut place, mut earlier_ns) = (None, i64::MIN);
            for piece in pieces.iter().filter(|piece| piece.input == number) {
                let key = (number, piece.range);
                let candidates = by_piece.get(&key).ok_or_else(|| missing(piece))?;
                let fits = |part: &&&InputPart| {
                    part.entered.is_some()
                        && (place.is_none() || part.entered == place)
                        && (part.error.is_none()
                            || part.packets_before
                                == result.packets.saturating_add(result.left_out))
                };
                let Some((part, entered)) =
                    candidates.iter().find(fits).and_then(|part| Some((*part, part.entered?)))
                else {
                    // Read where the piece before it ended, it fits.
                    if candidates.len() > 1 {
                        return Err(PieceError::Changed(path.to_path_buf()));
                    }
                    again.push(Piece {
                        start: place.map(|offset| RangeStart {
                            offset,
                            packets: result.packets.saturating_add(result.left_out),
                        }),
                        ..(*piece).clone()
                    });
                    break;
                };
                table.inputs[number as usize].push(Accepted { entered, earlier_ns });
                totals.packets = totals.packets.saturating_add(part.packets);
                totals.elements = totals.elements.saturating_add(part.elements);
                for (&skip, &count) in &part.skipped {
                    let sum = totals.skipped.entry(skip).or_default();
                    *sum = sum.saturating_add(count);
                }
                result.packets = result.packets.saturating_add(part.packets);
                result.unread_bytes = result.unread_bytes.saturating_add(part.unread_bytes);
                result.left_out = result.left_out.saturating_add(part.left_out);
                result.times_out_of_range =
                    result.times_out_of_range.saturating_add(part.times_out_of_range);
                if part.container.is_some() {
                    result.container.clone_from(&part.container);
                    result.is_log = part.is_log;
                }
                earlier_ns = earlier_ns.max(part.latest_ns.unwrap_or(i64::MIN));
                place = Some(part.left);
                if let Some(sentence) = &part.error {
                    result.error = Some(TraceError {
                        path: path.to_path_buf(),
                        offset: None,
                        kind: TraceErrorKind::Reported { sentence: sentence.clone() },
                    });
                    // What lies behind damage is not read on one machine either.
                    break;
                }
            }
            inputs.push(result);
        }
        if !again.is_empty() {
            return Ok(Joined::Again(again));
        }
        let without_ip = totals.skipped.iter().filter(|(skip, _)| !skip.has_ip());
        let without_ip = without_ip.fold(0, |sum: u64, (_, &count)| sum.saturating_add(count));
        totals.ip_packets = totals.packets.saturating_sub(without_ip);
        let summary = CountSummary { inputs, totals, filter: None };
        Ok(Joined::Whole(table, Box::new(summary)))
    }

    /// Where a part stands: the latest time before its piece. None if the piece does not count.
    pub(super) fn place(&self, part: &SlicePart) -> Option<i64> {
        let input = self.inputs.get(part.input as usize)?;
        let accepted = input.get(part.range as usize)?;
        (accepted.entered == part.entered).then_some(accepted.earlier_ns)
    }
}

impl Exchanged for InputTable {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(TABLE);
        out.number(self.inputs.len() as u64);
        for pieces in &self.inputs {
            out.number(pieces.len() as u64);
            for piece in pieces {
                out.number(piece.entered);
                out.signed(piece.earlier_ns);
            }
        }
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, TABLE, "table of inputs")?;
        let inputs = from.many(|from| {
            from.many(|from| Ok(Accepted { entered: from.number()?, earlier_ns: from.signed()? }))
        })?;
        from.end()?;
        Ok(Self { inputs })
    }
}

const TABLE: u8 = b'J';

fn missing(piece: &Piece) -> PieceError {
    let Piece { input, range, .. } = piece;
    PieceError::Mismatch(format!("nothing came of piece {range} of input {input}"))
}
