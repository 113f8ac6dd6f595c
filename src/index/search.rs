//! Searching: from the segments to the regions to the records, with an account of what each level
//! ruled out.

use super::catalog::{CaptureEntry, Catalog, Region, Segment, SegmentPart, lists_file};
use super::draft::filters_in;
use super::elements::Family;
use super::lists::Lists;
use super::query::Route;
use super::region::read_records;
use super::{IndexError, IndexQuery, Record, disk, global, region_filter};
use crate::trace::StopFlag;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::slice;

/// Times that a catalogue is read anew because a writer replaced what it names.
const MOST_TRIES: u32 = 100;

/// A record that is an answer, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    /// Its capture.
    pub capture: &'a CaptureEntry,
    /// Its region.
    pub region: &'a Region,
    /// The region's number in the capture.
    pub number: usize,
    /// The record.
    pub record: &'a Record,
}

/// Takes answers.
pub trait HitSink {
    /// Takes one; those of a region come together, regions in the order of their start.
    ///
    /// # Errors
    ///
    /// It cannot be kept or written; the search ends.
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()>;
}

/// What each level of the index ruled out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explained {
    /// Nodes.
    pub nodes: u64,
    /// Nodes whose global filters have nothing of what is asked.
    pub nodes_ruled_out: u64,
    /// Nodes that were not ruled out and have no answer.
    pub nodes_in_vain: u64,
    /// Segments in the index.
    pub segments: u64,
    /// Segments ruled out by their time, or by their global filters.
    pub segments_ruled_out: u64,
    /// Captures in the index.
    pub captures: u64,
    /// Regions in the index.
    pub regions: u64,
    /// Regions ruled out by a global filter.
    pub regions_by_node: u64,
    /// Regions ruled out by their time, or since they have no records of the kind asked for.
    pub regions_by_time: u64,
    /// Regions ruled out by their filter.
    pub regions_by_filter: u64,
    /// Captures of which not all packets were indexed.
    pub captures_in_part: u64,
    /// Regions whose lists were opened.
    pub regions_opened: u64,
    /// Those of them without an answer.
    pub regions_in_vain: u64,
    /// Records of the regions opened.
    pub records: u64,
    /// Those that stand in all lists of what is asked.
    pub records_listed: u64,
    /// Answers.
    pub hits: u64,
    /// Whether filters could be asked: they know values, but no prefixes.
    pub filters_asked: bool,
    /// The search was ended before it was done: there may be more answers.
    pub interrupted: bool,
    /// Files that could not be read, a sentence each.
    pub problems: Vec<String>,
}

impl Explained {
    /// Regions opened in vain, of those without an answer that the filters were asked about.
    #[doc(hidden)]
    pub fn region_fpr(&self) -> Option<f64> {
        self.rate(self.regions_in_vain, self.regions_by_filter)
    }

    /// Nodes not ruled out though they have no answer, of all such nodes whose filter was asked.
    #[doc(hidden)]
    pub fn node_fpr(&self) -> Option<f64> {
        self.rate(self.nodes_in_vain, self.nodes_ruled_out)
    }

    fn rate(&self, wrong: u64, right: u64) -> Option<f64> {
        (self.filters_asked && wrong + right > 0).then(|| wrong as f64 / (wrong + right) as f64)
    }
}

/// A region that may have an answer.
struct Candidate {
    capture: Rc<CaptureEntry>,
    number: usize,
}

impl Candidate {
    fn region(&self) -> &Region {
        &self.capture.regions[self.number]
    }
}

/// Searches an index until it is done or `stop` is set. What is damaged is named among the
/// problems, and the rest is searched.
///
/// # Errors
///
/// There is no index, its catalogue cannot be used, the question has no attribute, the sink failed.
pub fn search(
    archive: &Path,
    query: &IndexQuery,
    stop: &StopFlag,
    sink: &mut dyn HitSink,
) -> Result<Explained, IndexError> {
    query.check()?;
    let routes = query.routes();
    let mut tries = 0;
    loop {
        tries += 1;
        let catalog = Catalog::load(archive)?;
        let search = Search {
            archive,
            catalog: &catalog,
            query,
            routes: &routes,
            stop,
            may_be_stale: tries < MOST_TRIES,
        };
        let mut explained = Explained {
            filters_asked: routes.iter().all(Route::knows_something),
            ..Explained::default()
        };
        let Some(candidates) = search.candidates(&mut explained)? else {
            continue;
        };
        search.hand_on(&candidates, &mut explained, sink)?;
        return Ok(explained);
    }
}

struct Search<'a> {
    archive: &'a Path,
    catalog: &'a Catalog,
    query: &'a IndexQuery,
    routes: &'a [Route],
    stop: &'a StopFlag,
    /// If a file is gone, the catalogue may have been replaced since it was read.
    may_be_stale: bool,
}

/// The files of region filters of a segment, by node and number; without those that cannot be read.
type FilterFiles = HashMap<(usize, u64), Vec<u8>>;

/// A writer replaced the catalogue meanwhile.
struct Stale;

impl Search<'_> {
    /// The regions that no filter rules out, in the order of their start; nothing if a writer
    /// replaced the catalogue meanwhile.
    fn candidates(&self, explained: &mut Explained) -> Result<Option<Vec<Candidate>>, IndexError> {
        let mut may_have = vec![false; self.catalog.nodes.len()];
        let mut candidates = Vec::new();
        let of_nodes = self.catalog.nodes.iter().filter_map(|node| node.problem.clone());
        explained.problems.extend(of_nodes);
        for segment in &self.catalog.segments {
            explained.segments += 1;
            explained.captures += segment.captures;
            explained.captures_in_part += segment.captures_in_part;
            explained.regions += segment.regions();
            if self.stop.is_set() {
                continue;
            }
            if !self.query.takes_times(segment.start_ns, segment.end_ns) {
                explained.segments_ruled_out += 1;
                explained.regions_by_time += segment.regions();
                // Whether the node has it was not asked.
                for part in &segment.parts {
                    may_have[part.node] = true;
                }
                continue;
            }
            let Ok(nodes) = self.nodes_of(segment, explained)? else {
                return Ok(None);
            };
            if nodes.is_empty() {
                explained.segments_ruled_out += 1;
                continue;
            }
            for &node in &nodes {
                may_have[node] = true;
            }
            let found = self.candidates_in(segment, &nodes, explained)?;
            let Ok(found) = found else { return Ok(None) };
            candidates.extend(found);
        }
        explained.nodes = may_have.len() as u64;
        explained.nodes_ruled_out = may_have.iter().filter(|may_have| !**may_have).count() as u64;
        explained.interrupted = self.stop.is_set();
        candidates.sort_by_key(|candidate| {
            let start_ns = candidate.region().start_ns;
            (start_ns, candidate.capture.id, candidate.number)
        });
        Ok(Some(candidates))
    }

    /// The nodes in which a segment's global filter may have what is asked.
    fn nodes_of(
        &self,
        segment: &Segment,
        explained: &mut Explained,
    ) -> Result<Result<Vec<usize>, Stale>, IndexError> {
        let mut nodes = Vec::new();
        let is_own = |part: &&SegmentPart| self.catalog.nodes[part.node].problem.is_none();
        for part in segment.parts.iter().filter(is_own) {
            let (number, mark) = part.filter;
            let path = self.catalog.filter_file(self.archive, part.node, number);
            let kind = self.catalog.settings.global;
            match global::may_have(kind, &path, mark, self.routes) {
                Ok(true) => nodes.push(part.node),
                Ok(false) => explained.regions_by_node += part.regions,
                Err(error) if self.is_stale(&error)? => return Ok(Err(Stale)),
                // Without it the regions' filters are asked.
                Err(error) => {
                    explained.problems.push(self.of_segment(&error, segment));
                    nodes.push(part.node);
                }
            }
        }
        Ok(Ok(nodes))
    }

    /// The regions of a segment in these nodes that no filter rules out.
    fn candidates_in(
        &self,
        segment: &Segment,
        nodes: &[usize],
        explained: &mut Explained,
    ) -> Result<Result<Vec<Candidate>, Stale>, IndexError> {
        let mut files = FilterFiles::new();
        for part in segment.parts.iter().filter(|part| nodes.contains(&part.node)) {
            for &(number, mark) in &part.region_filters {
                let path = self.catalog.region_filters_file(self.archive, part.node, number);
                match disk::read_checked(&path, mark) {
                    Ok(bytes) => drop(files.insert((part.node, number), bytes)),
                    Err(error) if self.is_stale(&error)? => return Ok(Err(Stale)),
                    Err(error) => explained.problems.push(self.of_segment(&error, segment)),
                }
            }
        }
        let captures = match segment.captures(self.archive) {
            Ok(captures) => captures,
            Err(error) if self.is_stale(&error)? => return Ok(Err(Stale)),
            Err(error) => {
                explained.problems.push(error.to_string());
                return Ok(Ok(Vec::new()));
            }
        };
        let mut candidates = Vec::new();
        for capture in &captures {
            let mut shared: Option<Rc<CaptureEntry>> = None;
            for (number, region) in capture.regions.iter().enumerate() {
                if !nodes.contains(&region.node) {
                    continue;
                }
                if !self.query.may_be_in(region) {
                    explained.regions_by_time += 1;
                    continue;
                }
                let file = files.get(&(region.node, region.filters.file));
                let bytes = file.and_then(|bytes| filters_in(bytes, region));
                // Without its filters a region is opened.
                if bytes.is_none_or(|bytes| self.region_may_have(bytes, region)) {
                    let capture = shared.get_or_insert_with(|| Rc::new(capture.clone()));
                    candidates.push(Candidate { capture: Rc::clone(capture), number });
                } else {
                    explained.regions_by_filter += 1;
                }
            }
        }
        Ok(Ok(candidates))
    }

    /// The sentence about a damaged file of a segment's filters.
    fn of_segment(&self, error: &IndexError, segment: &Segment) -> String {
        error.of_captures(self.archive, &segment.captures(self.archive).unwrap_or_default())
    }

    /// Whether a file is gone since a writer replaced the catalogue.
    fn is_stale(&self, error: &IndexError) -> Result<bool, IndexError> {
        Ok(self.may_be_stale
            && error.is_missing_file()
            && Catalog::load(self.archive)?.generation != self.catalog.generation)
    }

    /// Hands the answers in the candidates to the sink.
    fn hand_on(
        &self,
        candidates: &[Candidate],
        explained: &mut Explained,
        sink: &mut dyn HitSink,
    ) -> Result<(), IndexError> {
        let mut nodes_hit = vec![false; self.catalog.nodes.len()];
        for candidate in candidates {
            if self.stop.is_set() {
                explained.interrupted = true;
                break;
            }
            let before = explained.hits;
            explained.regions_opened += 1;
            let region = candidate.region();
            explained.records += region.flows + region.dns;
            for record in self.answers(candidate, explained) {
                explained.hits += 1;
                let hit = Hit {
                    capture: &candidate.capture,
                    region,
                    number: candidate.number,
                    record: &record,
                };
                sink.hit(hit).map_err(IndexError::Sink)?;
            }
            if explained.hits == before {
                explained.regions_in_vain += 1;
            } else {
                nodes_hit[region.node] = true;
            }
        }
        let hit = nodes_hit.iter().filter(|hit| **hit).count() as u64;
        explained.nodes_in_vain = explained.nodes - explained.nodes_ruled_out - hit;
        Ok(())
    }

    /// Whether a region's filters may have an answer; it has records of the kind asked for.
    fn region_may_have(&self, bytes: &[u8], region: &Region) -> bool {
        let (flows, dns) = bytes.split_at(region.filters.bytes[0] as usize);
        let bytes = match self.routes[0].family {
            Family::Flow => flows,
            Family::Dns => dns,
        };
        let questions = self.routes.iter().map(|route| &route.attributes);
        region_filter::may_have_any(bytes, questions)
    }

    /// The answers in a region.
    fn answers(&self, candidate: &Candidate, explained: &mut Explained) -> Vec<Record> {
        let (capture, number) = (&*candidate.capture, candidate.number);
        let region = candidate.region();
        let folder = self.catalog.capture_folder(self.archive, region.node, capture.id);
        let path = lists_file(&folder, number);
        let listed = self.read(capture, explained, || {
            let bytes = disk::read_checked(&path, region.lists)?;
            let damaged = |error| IndexError::damaged(&path, error);
            let lists = Lists::open(bytes).map_err(damaged)?;
            let mut found: Option<Vec<i32>> = None;
            for wanted in self.query.wanted() {
                let numbers = lists.find(&wanted).map_err(damaged)?;
                found = Some(match found {
                    None => numbers,
                    Some(found) => both(&found, &numbers),
                });
            }
            Ok(found.unwrap_or_default())
        });
        if listed.as_ref().is_some_and(Vec::is_empty) {
            return Vec::new();
        }
        let records = self.read(capture, explained, || read_records(&folder, number, region));
        let records = records.unwrap_or_default();
        // Without lists all records are looked at.
        let listed = listed.unwrap_or_else(|| (0..records.len() as i32).collect());
        explained.records_listed += listed.len() as u64;
        let records = listed.iter().filter_map(|&at| records.get(at as usize));
        let answers = records.filter(|record| self.query.takes(record));
        answers.cloned().collect()
    }

    /// Reads a file of a capture. A failure is a problem, unless the capture was dropped meanwhile.
    fn read<T>(
        &self,
        capture: &CaptureEntry,
        explained: &mut Explained,
        read: impl FnOnce() -> Result<T, IndexError>,
    ) -> Option<T> {
        let error = match read() {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let dropped = error.is_missing_file()
            && Catalog::load(self.archive)
                .and_then(|now| now.captures(self.archive))
                .is_ok_and(|now| now.iter().all(|entry| entry.id != capture.id));
        if !dropped {
            explained.problems.push(error.of_captures(self.archive, slice::from_ref(capture)));
        }
        None
    }
}

/// What two ascending lists have in common.
fn both(a: &[i32], b: &[i32]) -> Vec<i32> {
    let found = |number: &&i32| b.binary_search(number).is_ok();
    a.iter().filter(found).copied().collect()
}
