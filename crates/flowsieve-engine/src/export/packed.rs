//! Sightings in compact form, for distributed exports.
//!
//! ```text
//!   number among those of the packet │ sighting │ name
//! ```

use super::plan::{ExportPlan, ExportWhat};
use super::rows::{ExportRows, Left};
use super::sightings::{Sighting, SightingBatch, SightingBatchBuilder, element_hash};
use super::table::SliceTable;
use crate::decode::NAME_MAX;
use crate::elements::{ElementBatch, ElementKind};
use crate::flows::Taken;
use crate::hashing::{Digest, Digester};
use crate::inputs::BatchBuilder;
use crate::memory::can_allocate;
use crate::trace::TraceBatch;
use std::io;
use std::ops::Range;

/// Makes what packets show: digests are those of the elements, or of the packets if each is a row,
/// and bytes the compact form.
pub(crate) struct PackedSightingBuilder {
    builder: SightingBatchBuilder,
    form: PackedForm,
}

/// Which rows are made, and how they are shared out.
#[derive(Clone, Copy, Debug)]
struct PackedForm {
    /// The kind of element; `None` if each packet is a row.
    kind: Option<ElementKind>,
    digester: Digester,
}

impl PackedForm {
    fn of(plan: &ExportPlan, digester: Digester) -> Self {
        let kind = match plan.what {
            ExportWhat::Elements { kind, .. } => Some(kind),
            ExportWhat::Packets => None,
        };
        Self { kind, digester }
    }

    /// An element is in one shard. Packets of one flow are not: it may be nearly all of the trace.
    fn digest(self, time_ns: i64, sighting: &Sighting, name: Option<&[u8]>) -> Digest {
        let mut bytes = sighting.key.to_bytes().to_vec();
        match self.kind {
            Some(kind) if kind.has_name() => bytes.extend_from_slice(name.unwrap_or_default()),
            Some(_) => {}
            None => bytes.extend(time_ns.to_le_bytes()),
        }
        self.digester.digest(&bytes)
    }
}

impl PackedSightingBuilder {
    pub(crate) fn of(plan: &ExportPlan, digester: Digester) -> Self {
        Self { builder: SightingBatchBuilder::new(plan), form: PackedForm::of(plan, digester) }
    }
}

impl BatchBuilder for PackedSightingBuilder {
    type Batch = ElementBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        let mut made = SightingBatch::default();
        self.builder.append(batch, &mut made);
        let first = out.append_packets(&made.times_ns, &made.skipped);
        let mut last = None;
        let mut number = 0;
        for sighting in &made.rows.all {
            let packet = sighting.packet;
            number = if last == Some(packet) { number + 1 } else { 0 };
            last = Some(packet);
            if number > 0 {
                out.further.push(first + packet);
            }
            let name = sighting.question.map(|(_, name)| made.rows.names.get(name as usize));
            let time_ns = made.times_ns[packet as usize];
            let digest = self.form.digest(time_ns, sighting, name);
            out.elements.digests.push(digest);
            out.elements.keys.push(&pack(number, sighting, name));
        }
    }
}

fn pack(number: u64, sighting: &Sighting, name: Option<&[u8]>) -> Vec<u8> {
    let compact = Sighting {
        packet: 0,
        hash: 0,
        question: sighting.question.map(|(question, _)| (question, 0)),
        ..*sighting
    };
    let packed = postcard::to_extend(&(number, compact), Vec::new());
    let mut packed = packed.expect("a Vec takes all that is written");
    packed.extend_from_slice(name.unwrap_or_default());
    packed
}

/// Reads number, sighting and name from the compact form; `None` if the bytes are invalid.
fn unpack(bytes: &[u8]) -> Option<(u64, Sighting, Option<&[u8]>)> {
    let ((number, sighting), name) = postcard::take_from_bytes::<(u64, Sighting)>(bytes).ok()?;
    let has_name = sighting.question.is_some();
    let fits = name.len() <= NAME_MAX && (has_name || name.is_empty());
    fits.then_some((number, sighting, has_name.then_some(name)))
}

/// Rows of one shard of a slice, filled from sightings in compact form.
pub(crate) struct PackedRows {
    form: PackedForm,
    hasher: ahash::RandomState,
    table: SliceTable,
    /// Sightings, and their bytes from the IP header on.
    pub(crate) sightings: u64,
    pub(crate) bytes: u64,
}

impl PackedRows {
    pub(crate) fn new(plan: &ExportPlan, digester: Digester) -> Self {
        Self {
            form: PackedForm::of(plan, digester),
            hasher: ahash::RandomState::new(),
            table: SliceTable::default(),
            sightings: 0,
            bytes: 0,
        }
    }

    /// Takes a sighting whose digest is wanted. What begins has the number that it has among those of
    /// its packet.
    pub(crate) fn take(
        &mut self,
        time_ns: i64,
        bytes: &[u8],
        is_wanted: impl FnOnce(Digest) -> bool,
    ) -> io::Result<Taken> {
        let unpacked = unpack(bytes)
            .filter(|(_, sighting, name)| is_wanted(self.form.digest(time_ns, sighting, *name)));
        let Some((number, mut sighting, name)) = unpacked else { return Ok(Taken::Refused) };
        self.sightings += 1;
        self.bytes = self.bytes.saturating_add(sighting.bytes.into());
        let named = self.form.kind.is_some_and(|kind| kind.has_name());
        if self.form.kind.is_none() {
            // Rows are not looked for again; they only must not all be in one place.
            sighting.hash = self.hasher.hash_one(self.sightings);
        } else {
            sighting.hash = element_hash(&self.hasher, sighting.key, name.filter(|_| named));
            if self.table.add(time_ns, &sighting, name, named) {
                if let (false, Some((question, _)), Some(name)) = (named, sighting.question, name)
                    && let Some(at) = self.table.lacks_question(&sighting)
                {
                    self.check_room(name.len())?;
                    self.table.set_question(at, question, name);
                }
                return Ok(Taken::Added);
            }
        }
        self.check_room(name.map_or(0, <[u8]>::len))?;
        self.table.begin(time_ns, &sighting, name);
        Ok(Taken::Begun(number))
    }

    fn check_room(&self, name: usize) -> io::Result<()> {
        if self.table.has_numbers() && can_allocate(self.table.growth_bytes(name)) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            "the system does not give the memory of a slice's elements; shorter slices need less",
        ))
    }

    /// Whether rows change no more: each is a packet.
    pub(crate) fn are_final(&self) -> bool {
        self.form.kind.is_none()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Forgets the rows.
    pub(crate) fn clear(&mut self) {
        self.table = SliceTable::default();
    }

    /// Appends the rows with these numbers.
    pub(crate) fn write(&self, range: Range<usize>, rows: &mut ExportRows) {
        let kind = self.form.kind.unwrap_or(ElementKind::FLOW);
        self.table.write(range, kind, Left::Slice, rows);
        if self.form.kind.is_none() {
            rows.packets.clear();
            rows.left.clear();
        }
    }
}
