//! Joins the pieces of all inputs: which of them count, and in which order their packets stand.

use super::wire::WireFormat;
use super::{InputPart, Piece, PieceError, PiecePlan, SlicePart};
use crate::inputs::InputResult;
use crate::pipeline::{CountSummary, Totals};
use crate::trace::{RangeStart, Source, TraceError, TraceErrorKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Which pieces count, and the order of their packets. It is small and the same for all shards;
/// every process that counts shards needs it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct InputTable {
    /// The pieces that count, by input.
    inputs: Vec<Vec<Accepted>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Accepted {
    /// Offset at which the piece was entered; `None` if it could not be read.
    entered: Option<u64>,
    /// Latest time in the pieces before it.
    earlier_ns: i64,
}

/// Result of joining the parts of inputs.
#[derive(Debug)]
pub enum Joined {
    /// The table, and all results but those of the slices.
    Whole(InputTable, Box<CountSummary>),
    /// These pieces have to be read again: their beginning was guessed wrong, or they are damaged
    /// and the number of packets before them was not known.
    Again(Vec<Piece>),
}

impl InputTable {
    /// Joins the outcomes of the pieces. If a piece was read again, its earlier results may still be
    /// among the parts.
    ///
    /// # Errors
    ///
    /// Results of a piece are missing, or a file changed between two readings.
    pub fn join(
        plan: &impl PiecePlan,
        pieces: &[Piece],
        parts: &[InputPart],
    ) -> Result<Joined, PieceError> {
        let mut by_piece = PartsByPiece::new();
        for part in parts {
            by_piece.entry((part.input, part.range)).or_default().push(part);
        }
        let mut pieces: Vec<&Piece> = pieces.iter().collect();
        pieces.sort_unstable_by_key(|piece| (piece.input, piece.range));
        let mut joining = Joining::default();
        for (input, path) in (0..).zip(plan.outline().trace.inputs.iter().map(Source::path)) {
            let first = pieces.partition_point(|piece| piece.input < input);
            let end = pieces.partition_point(|piece| piece.input <= input);
            joining.input(path, &pieces[first..end], &by_piece)?;
        }
        Ok(joining.finish())
    }

    /// Returns the latest time before the piece of a part, or `None` if the piece does not count.
    pub(super) fn place(&self, part: &SlicePart) -> Option<i64> {
        let input = self.inputs.get(part.input as usize)?;
        let accepted = input.get(part.range as usize)?;
        (accepted.entered == Some(part.entered)).then_some(accepted.earlier_ns)
    }
}

/// The results by the numbers of their input and their piece.
type PartsByPiece<'a> = BTreeMap<(u32, u32), Vec<&'a InputPart>>;

/// The inputs that are joined so far.
#[derive(Default)]
struct Joining {
    table: InputTable,
    results: Vec<InputResult>,
    totals: Totals,
    again: Vec<Piece>,
}

impl Joining {
    /// Joins the pieces of the next input, which are in order.
    fn input(
        &mut self,
        path: &Path,
        pieces: &[&Piece],
        parts: &PartsByPiece<'_>,
    ) -> Result<(), PieceError> {
        let mut result = InputResult { path: path.to_path_buf(), ..InputResult::default() };
        let mut accepted = Vec::new();
        let (mut left, mut earlier_ns) = (None, i64::MIN);
        for &piece in pieces {
            let candidates =
                parts.get(&(piece.input, piece.range)).ok_or_else(|| missing(piece))?;
            let before = result.packets.saturating_add(result.left_out);
            let fitting = candidates.iter().filter(|part| fits(part, left, before));
            // Prefer an attempt that could read the file.
            let fitting = fitting.min_by_key(|part| part.is_unread);
            let Some((part, entered)) = fitting.and_then(|part| Some((*part, part.entered?)))
            else {
                // Read where the piece before it ended, it fits.
                if candidates.len() > 1 {
                    return Err(PieceError::Changed(path.to_path_buf()));
                }
                let start = left.map(|offset| RangeStart { offset, packets: before });
                self.again.push(Piece { start, ..piece.clone() });
                break;
            };
            let entered = Some(entered).filter(|_| !part.is_unread);
            accepted.push(Accepted { entered, earlier_ns });
            self.add(part);
            add_to_result(&mut result, part);
            earlier_ns = earlier_ns.max(part.latest_ns.unwrap_or(i64::MIN));
            left = Some(part.left);
            if result.error.is_some() {
                // A single run does not read behind damage either.
                break;
            }
        }
        self.table.inputs.push(accepted);
        self.results.push(result);
        Ok(())
    }

    fn add(&mut self, part: &InputPart) {
        let totals = &mut self.totals;
        add(&mut totals.packets, part.packets);
        add(&mut totals.elements, part.elements);
        for (&skip, &count) in &part.skipped {
            add(totals.skipped.entry(skip).or_default(), count);
        }
    }

    fn finish(self) -> Joined {
        let Self { table, results: inputs, mut totals, again } = self;
        if !again.is_empty() {
            return Joined::Again(again);
        }
        let without_ip = totals.skipped.iter().filter(|(skip, _)| !skip.has_ip());
        let without_ip = without_ip.fold(0, |sum: u64, (_, &count)| sum.saturating_add(count));
        totals.ip_packets = totals.packets.saturating_sub(without_ip);
        Joined::Whole(table, Box::new(CountSummary { inputs, totals, filter: None }))
    }
}

/// Whether a piece was entered where the one before it ended. The text of an error has the number
/// of a packet, so the packets before must have been known.
fn fits(part: &InputPart, left: Option<u64>, packets_before: u64) -> bool {
    part.entered.is_some()
        && (left.is_none() || part.entered == left)
        && (part.error.is_none() || part.packets_before == packets_before)
}

fn add_to_result(result: &mut InputResult, part: &InputPart) {
    add(&mut result.packets, part.packets);
    add(&mut result.left_out, part.left_out);
    add(&mut result.unread_bytes, part.unread_bytes);
    add(&mut result.times_out_of_range, part.times_out_of_range);
    if part.container.is_some() {
        result.container.clone_from(&part.container);
        result.is_log = part.is_log;
    }
    result.error = part.error.clone().map(|sentence| TraceError {
        path: result.path.clone(),
        offset: None,
        kind: TraceErrorKind::Reported { sentence },
    });
}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

impl WireFormat for InputTable {
    const LETTER: u8 = b'J';
    const NAME: &'static str = "table of inputs";
}

fn missing(piece: &Piece) -> PieceError {
    let Piece { input, range, .. } = piece;
    PieceError::Mismatch(format!("nothing came of piece {range} of input {input}"))
}
