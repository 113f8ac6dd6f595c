//! Reads a piece and emits the distinct elements of its slices.

use super::part::FirstSighting;
use super::plan::{Form, Outline};
use super::wire::append;
use super::{InputPart, OpenPiece, Piece, PieceError, PiecePlan, SlicePart};
use crate::elements::{Cursor, ElementBatch};
use crate::hashing::{Digest, shard_of};
use crate::inputs::{BatchBuilder, read_batch};
use crate::pipeline::{ExactSet, SliceGrid};
use crate::top::Record;
use crate::trace::{Capture, TraceError, TraceErrorKind};
use ahash::RandomState;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::Ordering;

/// Bytes that the budget is charged for the sums of a key, in addition to the key.
const BYTES_A_KEY: usize = 64;

/// Bytes that the budget is charged for a shard of a slice, in addition to its elements.
const BYTES_A_SHARD: usize = 256;

/// Yields the parts of a piece, in an order that depends only on its packets and the budget.
///
/// Call [`Self::finish`] after the last part: only it reports whether the bytes could be read.
pub struct PieceReader {
    capture: Option<Capture>,
    builder: Box<dyn BatchBuilder<Batch = ElementBatch>>,
    grid: SliceGrid,
    shards: u32,
    form: Form,
    budget: usize,
    used: usize,
    batch: ElementBatch,
    open: BTreeMap<i64, Vec<OpenShard>>,
    /// Cleared sets, whose memory is used again.
    spare: Vec<ExactSet>,
    ready: VecDeque<SlicePart>,
    next_part: u32,
    input: InputPart,
    unreadable: Option<TraceError>,
}

/// A shard of a slice that is not emitted yet.
struct OpenShard {
    packets: u64,
    elements: u64,
    times_ns: Option<(i64, i64)>,
    firsts: Vec<u8>,
    last_ns: i64,
    seen: ExactSet,
    /// Packets and bytes of each key, except those of first sightings.
    repeats: HashMap<Box<[u8]>, (u64, u64), RandomState>,
}

impl PieceReader {
    /// Reads a piece of an input that is a file. Up to `budget` bytes of elements are kept before
    /// they are emitted.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself, or the file could not be read.
    pub fn open(
        plan: &impl PiecePlan,
        grid: SliceGrid,
        piece: &Piece,
        budget: usize,
    ) -> Result<Self, PieceError> {
        Self::begin(plan.outline(), grid, piece, OpenPiece::open(plan, piece), budget)
    }

    /// Reads a piece that the caller opened, or tried to open: damage is noted with the input.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    #[doc(hidden)]
    pub fn begin(
        plan: Outline<'_>,
        grid: SliceGrid,
        piece: &Piece,
        opened: Result<OpenPiece, PieceError>,
        budget: usize,
    ) -> Result<Self, PieceError> {
        let (mut capture, mut input) = match opened {
            Ok(open) => {
                let input = InputPart {
                    input: piece.input,
                    range: piece.range,
                    entered: open.entered,
                    packets_before: open.packets_before,
                    unread_bytes: open.unread_bytes,
                    is_log: open.capture.is_log(),
                    container: Some(open.capture.description()),
                    ..InputPart::default()
                };
                (Some(open.capture), input)
            }
            Err(PieceError::Unreadable(error)) if !is_refusal(&error) => {
                (None, InputPart::unread(piece, &error))
            }
            Err(error) => return Err(error),
        };
        if let (Some(capture), Some(select)) = (&mut capture, plan.trace.selection.select()) {
            capture.select(select);
            input.error = capture.unanswered().map(|error| error.to_string());
        }
        Ok(Self {
            capture,
            builder: plan.builder(),
            grid,
            shards: plan.shards.max(1),
            form: plan.form(),
            budget,
            used: 0,
            batch: ElementBatch::default(),
            open: BTreeMap::new(),
            spare: Vec::new(),
            ready: VecDeque::new(),
            next_part: 0,
            input,
            unreadable: None,
        })
    }

    /// Reads the rest, and returns the input's outcome.
    ///
    /// # Errors
    ///
    /// The system did not deliver all bytes: what was emitted before does not count.
    pub fn finish(mut self) -> Result<InputPart, PieceError> {
        while self.next().is_some() {}
        match self.unreadable {
            Some(error) => Err(error.into()),
            None => Ok(self.input),
        }
    }

    /// Reads the next batch; emits everything at the end.
    fn read(&mut self) {
        let Some(capture) = &mut self.capture else { return };
        self.batch.clear();
        let before = self.input.packets_before + self.input.packets;
        let read = read_batch(capture, &*self.builder, &mut self.batch, before);
        if self.input.range == 0 {
            // The input joins the others here, whether its first packet is wanted or not.
            self.input.latest_ns = self.input.latest_ns.max(capture.begins_ns);
        }
        match read {
            Ok(true) => return self.take(),
            Ok(false) => {}
            Err(error) if is_refusal(&error) => self.unreadable = Some(error),
            Err(error) => self.input.error = Some(error.to_string()),
        }
        self.input.left = capture.offset();
        self.input.left_out = capture.left_out().load(Ordering::Relaxed);
        self.input.times_out_of_range = capture.times_out_of_range().load(Ordering::Relaxed);
        self.capture = None;
        self.emit();
    }

    fn take(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let before = self.input.packets;
        self.input.packets += batch.times_ns.len() as u64;
        self.input.elements += batch.elements.len() as u64;
        let mut cursor = Cursor::default();
        while cursor.packet < batch.times_ns.len() {
            self.take_run(&batch, &mut cursor, before);
            if self.used >= self.budget {
                self.emit();
            }
        }
        self.batch = batch;
    }

    /// Takes packets until one is of another slice, or the budget is used up. Packet 0 of the batch
    /// has the number `before` in the piece.
    fn take_run(&mut self, batch: &ElementBatch, cursor: &mut Cursor, before: u64) {
        let columns = &batch.elements;
        let slice = self.grid.index(batch.times_ns[cursor.packet]);
        let (start_ns, end_ns) = self.grid.bounds(slice);
        let (shards, used, spare) = (self.shards, &mut self.used, &mut self.spare);
        let slice = self.open.entry(slice).or_insert_with(|| {
            *used += shards as usize * BYTES_A_SHARD;
            (0..shards).map(|_| OpenShard::with_set(spare.pop())).collect()
        });
        let mut packed = Vec::new();
        for (number, &time_ns) in (before..).zip(&batch.times_ns).skip(cursor.packet) {
            let elements = cursor.pass(batch, cursor.packet + 1, |skip| {
                *self.input.skipped.entry(skip).or_default() += 1;
            });
            let latest = self.input.latest_ns.map_or(time_ns, |t| t.max(time_ns));
            self.input.latest_ns = Some(latest);
            slice[0].packet(time_ns);
            for element in elements {
                let digest = columns.digests[element];
                let bytes = digest.value().to_le_bytes();
                let shard = shard_of(digest, shards.into());
                self.used += match self.form {
                    Form::Digest => slice[shard].element(latest, &bytes, &bytes),
                    Form::Bytes => {
                        let key = columns.keys.get(element);
                        slice[shard].element(latest, key, key)
                    }
                    Form::Record => {
                        let key = columns.attributes[element];
                        record(slice, key, latest, columns.keys.get(element))
                    }
                    Form::EveryRecord => slice[shard].keep(latest, columns.keys.get(element)),
                    Form::Packet => {
                        packed.clear();
                        append(&mut packed, &(latest.abs_diff(time_ns), number));
                        packed.extend_from_slice(columns.keys.get(element));
                        slice[shard].keep(latest, &packed)
                    }
                };
            }
            let next_ns = batch.times_ns.get(cursor.packet);
            if self.used >= self.budget || !next_ns.is_some_and(|t| (start_ns..end_ns).contains(t))
            {
                return;
            }
        }
    }

    /// Makes parts of all open shards.
    fn emit(&mut self) {
        self.used = 0;
        let part = self.next_part;
        self.next_part += 1;
        let input = &self.input;
        let mut room = self.budget as u64;
        self.spare.clear();
        for (slice, mut shards) in std::mem::take(&mut self.open) {
            if let [summary, exact @ ..] = &mut shards[..]
                && self.form == Form::Record
            {
                let repeats = exact.iter().flat_map(|shard| shard.repeats.clone());
                summary.repeats.extend(repeats);
            }
            let used = (0..).zip(shards);
            for (number, shard) in used.filter(|(_, shard)| shard.packets + shard.elements > 0) {
                self.ready.push_back(SlicePart {
                    slice,
                    shard: number,
                    input: input.input,
                    range: input.range,
                    entered: input.entered.unwrap_or(0),
                    part,
                    packets: shard.packets,
                    elements: shard.elements,
                    times_ns: shard.times_ns,
                    repeats: shard.repeats(),
                    firsts: shard.firsts,
                });
                let mut seen = shard.seen;
                seen.clear();
                if let Some(left) = room.checked_sub(seen.memory_bytes()) {
                    room = left;
                    self.spare.push(seen);
                }
            }
        }
    }
}

/// Adds a record to a slice of a ranking; returns the bytes that were kept for it. If there are
/// several shards, the first has all records, and the others those of their keys.
fn record(slice: &mut [OpenShard], key: Digest, latest_ns: i64, record: &[u8]) -> usize {
    let [summary, exact @ ..] = slice else { return 0 };
    if exact.is_empty() {
        return summary.record(latest_ns, record);
    }
    let shard = &mut exact[shard_of(key, exact.len() as u64)];
    let firsts = shard.firsts.len();
    let kept = shard.record(latest_ns, record);
    if shard.firsts.len() > firsts {
        return kept + summary.keep(latest_ns, record);
    }
    summary.elements += 1;
    kept
}

/// Returns whether the system refused to read; otherwise the capture is damaged.
pub(super) fn is_refusal(error: &TraceError) -> bool {
    matches!(error.kind, TraceErrorKind::Io(_))
}

impl std::fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PieceReader").finish_non_exhaustive()
    }
}

impl Iterator for PieceReader {
    type Item = SlicePart;

    fn next(&mut self) -> Option<SlicePart> {
        while self.ready.is_empty() && self.capture.is_some() {
            self.read();
        }
        self.ready.pop_front()
    }
}

impl InputPart {
    /// Returns the result of a piece that could not be read at all.
    #[doc(hidden)]
    pub fn unread(piece: &Piece, error: &TraceError) -> Self {
        Self {
            input: piece.input,
            range: piece.range,
            // The first range begins where the file does, so reading it again changes nothing.
            entered: piece.start.map(|start| start.offset).or((piece.range == 0).then_some(0)),
            packets_before: piece.start.map_or(0, |start| start.packets),
            is_unread: true,
            error: Some(error.to_string()),
            ..Self::default()
        }
    }
}

impl OpenShard {
    fn with_set(seen: Option<ExactSet>) -> Self {
        Self {
            packets: 0,
            elements: 0,
            times_ns: None,
            firsts: Vec::new(),
            last_ns: i64::MIN,
            seen: seen.unwrap_or_else(|| ExactSet::new(u64::MAX)),
            repeats: HashMap::default(),
        }
    }

    /// Adds a record; returns the bytes that were kept for it.
    fn record(&mut self, latest_ns: i64, record: &[u8]) -> usize {
        let parts = Record::read(record);
        let kept = self.element(latest_ns, parts.element, record);
        if kept > 0 {
            return kept;
        }
        let bytes = u64::from(parts.bytes);
        if let Some(sums) = self.repeats.get_mut(parts.key) {
            sums.0 += 1;
            sums.1 += bytes;
            return 0;
        }
        self.repeats.insert(parts.key.into(), (1, bytes));
        parts.key.len() + BYTES_A_KEY
    }

    /// Returns the packets and bytes of each key, except those of first sightings, ordered by key.
    fn repeats(&self) -> Vec<u8> {
        let mut repeats: Vec<_> = self.repeats.iter().collect();
        repeats.sort_unstable();
        let mut out = Vec::new();
        for (key, (packets, bytes)) in repeats {
            append(&mut out, &(key, packets, bytes));
        }
        out
    }

    fn packet(&mut self, time_ns: i64) {
        self.packets += 1;
        let (first, last) = self.times_ns.unwrap_or((time_ns, time_ns));
        self.times_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    /// Adds an element that is identified by `key` and emitted as `bytes`; returns the bytes that
    /// were kept for it.
    fn element(&mut self, latest_ns: i64, key: &[u8], bytes: &[u8]) -> usize {
        if !self.seen.insert(key) {
            self.elements += 1;
            return 0;
        }
        self.keep(latest_ns, bytes)
    }

    /// Keeps the bytes of an element to be emitted; returns how many.
    fn keep(&mut self, latest_ns: i64, bytes: &[u8]) -> usize {
        self.elements += 1;
        let before = self.firsts.len();
        let since_ns = latest_ns.abs_diff(self.last_ns);
        append(&mut self.firsts, &FirstSighting { since_ns, bytes });
        self.last_ns = latest_ns;
        self.firsts.len() - before
    }
}
