//! Searching: from the segments to the regions to the records. Notes what each level ruled out.

use super::catalog::{CaptureEntry, Catalog, Region, Segment, SegmentPart};
use super::elements::Family;
use super::layout::lists_file;
use super::lists::Lists;
use super::problems::Problems;
use super::query::Route;
use super::region::read_records;
use super::segment_builder::FilterFiles;
use super::{IndexError, IndexQuery, Record, disk, global, region_filter};
use crate::trace::StopFlag;
use flowsieve_engine::internal::Shown;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::slice;

/// A record that matches, and where it is.
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
    /// Takes an answer. Those of a region come together, regions in the order of their start.
    ///
    /// # Errors
    ///
    /// It cannot be kept or written; the search ends.
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()>;
}

/// Numbers of what each level of the index ruled out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explained {
    /// Nodes.
    pub nodes: u64,
    /// Nodes that could not be reached, so that nothing in them was searched.
    pub nodes_away: u64,
    /// Nodes whose global filters have no values of the query.
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
    /// Regions ruled out by their time, or because they have no records of the kind asked for.
    pub regions_by_time: u64,
    /// Regions ruled out by their filter.
    pub regions_by_filter: u64,
    /// Captures of which not all packets were indexed.
    pub captures_in_part: u64,
    /// Regions that were read.
    pub regions_opened: u64,
    /// Those of them without an answer, although their filters could be read.
    pub regions_in_vain: u64,
    /// Records of the regions opened.
    pub records: u64,
    /// Those that are in all lists of the query.
    pub records_listed: u64,
    /// Answers.
    pub hits: u64,
    /// Whether filters could be asked: they know no prefixes.
    pub filters_asked: bool,
    /// A signal ended the search: there may be more answers.
    pub interrupted: bool,
    /// Files that could not be read, a sentence each.
    pub problems: Vec<String>,
}

impl Explained {
    /// Returns the share of the regions without an answer that their filters did not rule out.
    #[doc(hidden)]
    pub fn region_fpr(&self) -> Option<f64> {
        self.rate(self.regions_in_vain, self.regions_by_filter)
    }

    /// Returns the share of the nodes without an answer that their filters did not rule out.
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
    /// Its filters could be read.
    has_filters: bool,
}

impl Candidate {
    fn region(&self) -> &Region {
        &self.capture.regions[self.number]
    }
}

/// Searches an index until it is done or `stop` is set. Damaged files are named among the problems,
/// and the rest is searched.
///
/// # Errors
///
/// There is no index, its catalogue cannot be used, the query has no attribute, or the sink failed.
pub fn search(
    archive: &Path,
    query: &IndexQuery,
    stop: &StopFlag,
    sink: &mut dyn HitSink,
) -> Result<Explained, IndexError> {
    query.check()?;
    let routes = query.routes();
    let (catalog, (candidates, mut explained, mut nodes_spared), mut problems) =
        Catalog::read_with(archive, |catalog, problems| {
            let explained = Explained {
                filters_asked: routes.iter().all(Route::knows_something),
                ..Explained::default()
            };
            let unread = catalog.nodes.iter().map(|node| node.problem.is_some()).collect();
            let routes = &routes;
            let mut choice = Choice { catalog, query, routes, stop, explained, unread, problems };
            (choice.candidates(), choice.explained, choice.unread)
        })?;
    for candidate in &candidates {
        if stop.is_set() {
            explained.interrupted = true;
            break;
        }
        let region = candidate.region();
        let answers = answers(&catalog, query, candidate, &mut explained, &mut problems);
        let Some(answers) = answers else {
            nodes_spared[region.node] = true;
            continue;
        };
        explained.regions_opened += 1;
        explained.records += region.flows + region.dns;
        for record in &answers {
            explained.hits += 1;
            let Candidate { capture, number, .. } = candidate;
            let hit = Hit { capture, region, number: *number, record };
            sink.hit(hit).map_err(IndexError::Sink)?;
        }
        nodes_spared[region.node] |= !answers.is_empty();
        explained.regions_in_vain += u64::from(answers.is_empty() && candidate.has_filters);
    }
    let spared = nodes_spared.iter().filter(|spared| **spared).count() as u64;
    explained.nodes_in_vain = explained.nodes - explained.nodes_ruled_out - spared;
    explained.problems = problems.into_sentences();
    Ok(explained)
}

/// Chooses the regions that may have an answer.
struct Choice<'a> {
    catalog: &'a Catalog,
    query: &'a IndexQuery,
    routes: &'a [Route],
    stop: &'a StopFlag,
    explained: Explained,
    /// The nodes that could not be read in full: nothing is known of their global filters.
    unread: Vec<bool>,
    problems: &'a mut Problems,
}

impl Choice<'_> {
    /// Returns the regions that no filter rules out, in the order of their start.
    fn candidates(&mut self) -> Vec<Candidate> {
        let mut may_have = vec![false; self.catalog.nodes.len()];
        let mut candidates = Vec::new();
        let of_nodes = self.catalog.nodes.iter().filter_map(|node| node.problem.clone());
        for problem in of_nodes {
            self.explained.nodes_away += 1;
            self.problems.note(problem);
        }
        for segment in &self.catalog.segments {
            self.explained.segments += 1;
            self.explained.captures += segment.captures;
            self.explained.captures_in_part += segment.captures_in_part;
            self.explained.regions += segment.regions();
            if self.stop.is_set() {
                continue;
            }
            if !self.query.takes_times(segment.start_ns, segment.end_ns) {
                self.explained.segments_ruled_out += 1;
                self.explained.regions_by_time += segment.regions();
                // Whether the node has the values was not asked.
                segment.parts.iter().for_each(|part| may_have[part.node] = true);
                continue;
            }
            let mut errors = Vec::new();
            let nodes = self.nodes_of(segment, &mut errors);
            if nodes.is_empty() {
                self.explained.segments_ruled_out += 1;
                continue;
            }
            for &node in &nodes {
                may_have[node] = true;
            }
            candidates.extend(self.candidates_in(segment, &nodes, errors));
        }
        self.explained.nodes = may_have.len() as u64;
        let known = may_have.iter().zip(&self.unread);
        self.explained.nodes_ruled_out =
            known.filter(|(may, unread)| !**may && !**unread).count() as u64;
        self.explained.interrupted = self.stop.is_set();
        candidates.sort_by_key(|candidate| {
            let start_ns = candidate.region().start_ns;
            (start_ns, candidate.capture.id, candidate.number)
        });
        candidates
    }

    /// Returns the nodes in which a segment's global filter may have the values of the query.
    fn nodes_of(&mut self, segment: &Segment, errors: &mut Vec<IndexError>) -> Vec<usize> {
        let mut nodes = Vec::new();
        let catalog = self.catalog;
        let is_own = |part: &&SegmentPart| catalog.nodes[part.node].problem.is_none();
        for part in segment.parts.iter().filter(is_own) {
            let (number, mark) = part.filter;
            let path = catalog.filter_file(part.node, number);
            match global::may_have(catalog.settings.global, &path, mark, self.routes) {
                Ok(false) if !part.lacks_values => {
                    self.explained.regions_by_node += part.regions;
                    continue;
                }
                Ok(_) => {}
                // Without it the regions' filters are asked.
                Err(error) => {
                    self.unread[part.node] = true;
                    errors.push(error);
                }
            }
            nodes.push(part.node);
        }
        nodes
    }

    /// Returns the regions of a segment in these nodes that no filter rules out.
    fn candidates_in(
        &mut self,
        segment: &Segment,
        nodes: &[usize],
        mut errors: Vec<IndexError>,
    ) -> Vec<Candidate> {
        let mut files = FilterFiles::default();
        for part in segment.parts.iter().filter(|part| nodes.contains(&part.node)) {
            files.read(self.catalog, part, &mut errors);
        }
        let captures = self.catalog.captures_of(segment, &mut errors);
        let captures = captures.unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        });
        for error in errors {
            self.problems.note_file(&error, &self.catalog.archive, &captures);
        }
        let mut candidates = Vec::new();
        for capture in captures.into_iter().map(Rc::new) {
            for (number, region) in capture.regions.iter().enumerate() {
                if !nodes.contains(&region.node) {
                    continue;
                }
                if !region.may_answer(self.query) {
                    self.explained.regions_by_time += 1;
                    continue;
                }
                // A region without its filters is opened.
                let filters = files.of(region);
                if filters.is_none_or(|bytes| self.region_may_have(bytes, region)) {
                    let (capture, has_filters) = (Rc::clone(&capture), filters.is_some());
                    candidates.push(Candidate { capture, number, has_filters });
                } else {
                    self.explained.regions_by_filter += 1;
                }
            }
        }
        candidates
    }

    /// Returns whether a region's filters may have an answer; it has records of the kind asked for.
    fn region_may_have(&self, bytes: &[u8], region: &Region) -> bool {
        let (flows, dns) = bytes.split_at(region.filters.bytes[0] as usize);
        let bytes = match self.routes[0].family {
            Family::Flow => flows,
            Family::Dns => dns,
        };
        let queries = self.routes.iter().map(|route| &route.attributes);
        region_filter::may_have_any(bytes, queries)
    }
}

/// Returns the answers in a region; `None` if it could not be read.
fn answers(
    catalog: &Catalog,
    query: &IndexQuery,
    candidate: &Candidate,
    explained: &mut Explained,
    problems: &mut Problems,
) -> Option<Vec<Record>> {
    let (capture, number, region) = (&*candidate.capture, candidate.number, candidate.region());
    let folder = catalog.capture_folder(region.node, capture.id);
    let path = lists_file(&folder, number);
    let listed = read(catalog, capture, problems, || {
        let bytes = disk::read_checked(&path, region.lists)?;
        let damaged = |error| IndexError::damaged(&path, error);
        let lists = Lists::open(bytes).map_err(damaged)?;
        let mut found: Option<Vec<i32>> = None;
        for wanted in query.wanted() {
            let numbers = lists.find(&wanted).map_err(damaged)?;
            match &mut found {
                None => found = Some(numbers),
                Some(found) => found.retain(|number| numbers.binary_search(number).is_ok()),
            }
        }
        Ok(found.unwrap_or_default())
    });
    if listed.as_ref().is_some_and(Vec::is_empty) {
        return Some(Vec::new());
    }
    let records = read(catalog, capture, problems, || read_records(&folder, number, region))?;
    // Without lists, all records are compared.
    let listed = listed.unwrap_or_else(|| (0..records.len() as i32).collect());
    explained.records_listed += listed.len() as u64;
    let records = listed.iter().filter_map(|&at| records.get(at as usize));
    Some(records.filter(|record| query.takes(record)).cloned().collect())
}

/// Reads a file of a capture. A failure is a problem, unless the capture was dropped meanwhile and
/// not indexed again.
fn read<T>(
    catalog: &Catalog,
    capture: &CaptureEntry,
    problems: &mut Problems,
    read: impl FnOnce() -> Result<T, IndexError>,
) -> Option<T> {
    let error = match read() {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    let captures = |now: &Catalog, problems: &mut Problems| {
        let captures = now.captures();
        problems.is_missing = captures.as_ref().is_err_and(IndexError::is_missing_file);
        captures.ok()
    };
    let now = error.is_missing_file().then(|| Catalog::read_with(&catalog.archive, captures));
    let now = now.and_then(|now| now.ok()?.1);
    let is_gone = |now: &Vec<CaptureEntry>| now.iter().all(|entry| entry.id != capture.id);
    let Some(now) = now.filter(is_gone) else {
        problems.note_file(&error, &catalog.archive, slice::from_ref(capture));
        return None;
    };
    if now.iter().any(|entry| entry.path == capture.path || entry.digest == capture.digest) {
        problems.note(format!(
            "{}: this capture was indexed again while it was searched, so answers are missing; search again",
            capture.path.shown()
        ));
    }
    None
}
