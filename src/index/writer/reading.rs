//! Reading a capture once: its regions and its digest.

use super::{Added, COMMIT_EVERY, IndexWriter, KnownCapture};
use crate::index::catalog::CaptureEntry;
use crate::index::disk::{Content, DigestedFile, content_inside, has_changed};
use crate::index::gather::{self, CaptureReading, REGION_BYTES};
use crate::index::layout::StoredFile;
use crate::index::region::{BuiltRegion, RegionKeys};
use crate::index::segment_builder::SegmentBuilder;
use crate::index::{IndexError, Record};
use crate::trace::{FileState, Source, TraceError, is_compressed};
use flowsieve_engine::internal::{OrderedWorkers, Shown, Watch, WorkerPanicked};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// Threads that build regions.
const THREADS: usize = 2;

/// Result of reading a capture, and the keys of each of its regions.
type BuiltRegions = (CaptureReading, Vec<RegionKeys>);

impl IndexWriter {
    /// Indexes a capture, whose content is `before` if it was read already, in place of `old`, which
    /// has the same content and stays if less of it can be read now. The file had this `state` before
    /// anything was read.
    pub(in crate::index) fn index_capture(
        &mut self,
        path: PathBuf,
        state: Option<FileState>,
        before: &Content,
        old: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Added, IndexError> {
        self.check_usable()?;
        let mut entry = CaptureEntry {
            id: self.catalog.take_number(),
            path: path.clone(),
            part: self.part(),
            ..CaptureEntry::default()
        };
        let (built, content) = self.read_capture(&mut entry, before, watch);
        let has_changed = state.is_some_and(|state| has_changed(state, &path))
            || (before.is_some()
                && content.as_ref().is_ok_and(|now| now.is_some() && now != before));
        let (gathered, keys) = built.inspect_err(|_| {
            // A full disk needs the room, and the next writer deletes what is left.
            let _ = self.delete_folders(entry.id);
        })?;
        if let Some(added) =
            self.left_out(&mut entry, &gathered, content, has_changed, old, watch)?
        {
            self.delete_folders(entry.id)?;
            return Ok(added);
        }
        let packed = self.packed_into(&path, watch);
        self.remove_where(|id, known| known.is_at(&path) || [old, packed].contains(&Some(id)))?;
        entry.packets = gathered.packets;
        entry.may_pass = gathered.error.as_ref().is_some_and(TraceError::may_pass);
        entry.damage = gathered.error.as_ref().map(ToString::to_string);
        if gathered.times_out_of_range > 0 {
            self.times_out_of_range.push((path, gathered.times_out_of_range));
        }
        let (packets, regions) = (entry.packets, entry.regions.len());
        let added = Added::Indexed { packets, regions, damage: entry.damage.clone() };
        self.known.insert(entry.id, KnownCapture::new(&entry));
        SegmentBuilder::add_to(&mut self.fresh, &self.catalog, entry, keys);
        self.pending = true;
        if self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(added)
    }

    /// Returns the capture that was compressed into this file and is gone: the file holds its bytes
    /// and has its name with an extension.
    fn packed_into(&self, path: &Path, watch: &dyn Watch) -> Option<u64> {
        let plain = path.with_extension("");
        let is_gone = is_compressed(path) && !plain.exists();
        let mut known = self.known.iter();
        let (&id, known) = known.find(|(_, known)| is_gone && known.is_at(&plain))?;
        let most = known.entry.bytes.saturating_add(1);
        let (digest, bytes) = content_inside(path, most, &watch.stop()).ok()??;
        let is_same = known.has(&digest) && bytes == known.entry.bytes;
        (is_same && known.entry.part == self.part()).then_some(id)
    }

    /// Returns why a capture that was read is not indexed, or `None` if it is; then its entry has its
    /// digest and length.
    fn left_out(
        &mut self,
        entry: &mut CaptureEntry,
        gathered: &CaptureReading,
        content: Result<Content, IndexError>,
        has_changed: bool,
        old: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Option<Added>, IndexError> {
        let path = &entry.path;
        let is_new = self.known.values().all(|known| !known.is_at(path));
        // A capture is known from now on, even if nothing precedes the damage.
        let has_entry = !entry.regions.is_empty() || (gathered.is_capture && is_new);
        Ok(match (content, &gathered.error) {
            (Ok(None), _) => Some(Added::Interrupted),
            (Ok(_), _) if has_changed && !gathered.interrupted => Some(Added::Unreadable(format!(
                "{}: this file changed while it was read, so it is not indexed; add it again when no program writes to it",
                path.shown()
            ))),
            // Another program wrote it meanwhile.
            (Ok(Some((digest, _))), _) if self.knows(&digest, path, old, watch)? => {
                Some(Added::Known)
            }
            (Err(error), _) => Some(Added::Unreadable(error.to_string())),
            (_, Some(damage)) if !has_entry => Some(Added::Unreadable(damage.to_string())),
            _ if gathered.interrupted => Some(Added::Interrupted),
            (Ok(Some((digest, bytes))), _) => {
                (entry.digest, entry.bytes) = (digest, bytes);
                let is_same = |id: u64| old == Some(id);
                let known = self.known.iter().map(|(&id, known)| (is_same(id), known));
                let mut leaving =
                    known.filter(|(is_same, known)| *is_same || known.is_at(&entry.path));
                let stays = |(is_same, known): (bool, &KnownCapture)| {
                    known.why_it_stays(entry, is_same, gathered)
                };
                leaving.find_map(stays).map(Added::Unreadable)
            }
        })
    }

    /// Builds the regions of a capture and digests what is read. Excludes bytes that are appended
    /// after the reading began, or after it had the content `before`: the regions may lack their
    /// packets, so the next writer must index the capture again.
    fn read_capture(
        &mut self,
        entry: &mut CaptureEntry,
        before: &Content,
        watch: &dyn Watch,
    ) -> (Result<BuiltRegions, IndexError>, Result<Content, IndexError>) {
        let path = entry.path.clone();
        let now = || fs::metadata(&path).map_or(u64::MAX, |data| data.len());
        match DigestedFile::open(&path, before.as_ref().map_or_else(now, |&(_, bytes)| bytes)) {
            Ok(file) => {
                let source = Source::reader(&path, file.clone());
                let built = self.build_regions(entry, source, watch);
                (built, file.content(&path, &watch.stop()))
            }
            Err(error) => (Ok(BuiltRegions::default()), Err(error)),
        }
    }

    /// Reads a capture and writes its regions, each to the node that holds the least.
    fn build_regions(
        &mut self,
        entry: &mut CaptureEntry,
        source: Source,
        watch: &dyn Watch,
    ) -> Result<BuiltRegions, IndexError> {
        let (mut stored, memory_bytes) = (self.stored(), self.memory_bytes);
        let Self { catalog, files, selection, .. } = self;
        let (mut keys, mut made_folders) = (Vec::new(), HashSet::new());
        let (id, path, regions) = (entry.id, &entry.path, &mut entry.regions);
        let mut write = |built: BuiltRegion| {
            let emptiest = (0..stored.len()).min_by_key(|&node| stored[node]);
            let node = emptiest.unwrap_or_default();
            let folder = catalog.capture_folder(node, id);
            files.name([StoredFile::Region { node, capture: id, region: regions.len() }])?;
            if made_folders.insert(node) {
                fs::create_dir(&folder).map_err(IndexError::io(&folder))?;
            }
            let (region, of_region) = built.write(&folder, node, regions.len(), files)?;
            stored[node] += region.stored();
            regions.push(region);
            keys.push(of_region);
            Ok(())
        };
        let settings = &catalog.settings;
        let build = move |records: Vec<Record>| BuiltRegion::new(path, settings, &records);
        // The system may refuse all threads: then regions are built here.
        let gathered = thread::scope(|scope| {
            let mut workers =
                OrderedWorkers::start_scoped(scope, "region", THREADS, REGION_BYTES, 1, || build);
            let take = |records: Vec<Record>| match &mut workers {
                Some(workers) => workers.push(records).map_or(Ok(()), |it| write(unwrapped(it)?)),
                None => write(build(records)?),
            };
            let gathered =
                gather::regions(source, settings, selection, (memory_bytes, THREADS), watch, take)?;
            workers.into_iter().flatten().try_for_each(|it| write(unwrapped(it)?))?;
            Ok::<_, IndexError>(gathered)
        })?;
        Ok((gathered, keys))
    }

    /// Returns the bytes of the regions of each node.
    fn stored(&self) -> Vec<u64> {
        let mut stored = vec![0; self.catalog.nodes.len()];
        for part in self.catalog.segments.iter().flat_map(|segment| &segment.parts) {
            stored[part.node] += part.bytes;
        }
        let fresh = self.fresh.iter().flat_map(|builder| &builder.captures);
        for region in fresh.flat_map(|entry| &entry.regions) {
            stored[region.node] += region.stored();
        }
        stored
    }

    /// Deletes the folders of a capture that the catalogue does not name.
    fn delete_folders(&mut self, id: u64) -> Result<(), IndexError> {
        let mut nodes = 0..self.catalog.nodes.len();
        nodes.try_for_each(|node| self.files.abandon(&self.catalog.capture_folder(node, id)))
    }
}

/// Returns the region that a worker built; this thread panics if the worker did.
fn unwrapped(
    built: Result<Result<BuiltRegion, IndexError>, WorkerPanicked>,
) -> Result<BuiltRegion, IndexError> {
    built.unwrap_or_else(|panicked| panicked.resume())
}
