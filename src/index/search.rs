//! Searching: from the nodes to the regions to the records, with an account of what each level ruled out.

use super::catalog::{CaptureEntry, Catalog, Region, filters_file, lists_file};
use super::elements::Family;
use super::lists::Lists;
use super::node_filter::NodeFilter;
use super::query::Route;
use super::region::read_records;
use super::{IndexError, IndexQuery, Record, disk, region_filter};
use std::io;
use std::path::Path;

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
    /// Nodes whose global filter has nothing of what is asked.
    pub nodes_ruled_out: u64,
    /// Nodes that were not ruled out and have no answer.
    pub nodes_in_vain: u64,
    /// Captures in the index.
    pub captures: u64,
    /// Regions in the index.
    pub regions: u64,
    /// Regions of nodes that are ruled out.
    pub regions_by_node: u64,
    /// Regions ruled out by their time, or since they have no records of the kind asked for.
    pub regions_by_time: u64,
    /// Regions ruled out by their filter.
    pub regions_by_filter: u64,
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
    /// Files that could not be read, a sentence each.
    pub problems: Vec<String>,
}

impl Explained {
    /// Regions opened in vain, of those without an answer that the filters were asked about.
    pub fn region_fpr(&self) -> Option<f64> {
        rate(self.regions_in_vain, self.regions_by_filter)
    }

    /// Nodes not ruled out though they have no answer, of all such nodes.
    pub fn node_fpr(&self) -> Option<f64> {
        rate(self.nodes_in_vain, self.nodes_ruled_out)
    }
}

fn rate(wrong: u64, right: u64) -> Option<f64> {
    (wrong + right > 0).then(|| wrong as f64 / (wrong + right) as f64)
}

/// A region that may have an answer.
struct Candidate<'a> {
    capture: &'a CaptureEntry,
    number: usize,
    region: &'a Region,
}

/// Searches an index. What is damaged is named among the problems, and the rest is searched.
///
/// # Errors
///
/// There is no index, its catalogue cannot be used, the question has no attribute, the sink failed.
pub fn search(
    archive: &Path,
    query: &IndexQuery,
    sink: &mut dyn HitSink,
) -> Result<Explained, IndexError> {
    query.check()?;
    let mut explained = Explained::default();
    let routes = query.routes();
    let (catalog, filters) = open(archive, &mut explained.problems)?;
    let search = Search {
        archive,
        catalog: &catalog,
        query,
        routes: &routes,
    };
    let candidates = search.candidates(&filters, &mut explained);
    let mut nodes_hit = vec![false; catalog.nodes.len()];
    for candidate in candidates {
        let before = explained.hits;
        explained.regions_opened += 1;
        explained.records += candidate.region.flows + candidate.region.dns;
        for record in search.answers(&candidate, &mut explained) {
            explained.hits += 1;
            let hit = Hit {
                capture: candidate.capture,
                region: candidate.region,
                number: candidate.number,
                record: &record,
            };
            sink.hit(hit)
                .map_err(IndexError::io(Path::new("results")))?;
        }
        if explained.hits == before {
            explained.regions_in_vain += 1;
        } else {
            nodes_hit[candidate.capture.node] = true;
        }
    }
    let hit = nodes_hit.iter().filter(|hit| **hit).count() as u64;
    explained.nodes_in_vain = explained.nodes - explained.nodes_ruled_out - hit;
    Ok(explained)
}

/// The catalogue with the nodes' filters; one that is damaged is none.
pub(super) fn open(
    archive: &Path,
    problems: &mut Vec<String>,
) -> Result<(Catalog, Vec<Option<NodeFilter>>), IndexError> {
    let mut tries = 0;
    'anew: loop {
        tries += 1;
        let catalog = Catalog::load(archive)?;
        let mut filters = Vec::new();
        for (node, state) in catalog.nodes.iter().enumerate() {
            let Some((number, mark)) = state.filter else {
                filters.push(Some(NodeFilter::new(0)));
                continue;
            };
            let path = catalog.filter_file(archive, node, number);
            let filter =
                disk::read_checked(&path, mark).and_then(|bytes| NodeFilter::load(&path, &bytes));
            match filter {
                Ok(filter) => filters.push(Some(filter)),
                Err(error) if error.is_missing_file() && tries < MOST_TRIES => {
                    // A writer may have replaced it since the catalogue was read.
                    if Catalog::load(archive)?.generation != catalog.generation {
                        continue 'anew;
                    }
                    filters.push(None);
                    problems.push(error.to_string());
                }
                Err(error) => {
                    filters.push(None);
                    problems.push(error.to_string());
                }
            }
        }
        return Ok((catalog, filters));
    }
}

struct Search<'a> {
    archive: &'a Path,
    catalog: &'a Catalog,
    query: &'a IndexQuery,
    routes: &'a [Route],
}

impl<'a> Search<'a> {
    /// The regions that no filter rules out, in the order of their start.
    fn candidates(
        &self,
        filters: &[Option<NodeFilter>],
        explained: &mut Explained,
    ) -> Vec<Candidate<'a>> {
        let may = |filter: &Option<NodeFilter>| match filter {
            Some(filter) => self.routes.iter().any(|route| node_may_have(filter, route)),
            None => true,
        };
        let may: Vec<bool> = filters.iter().map(may).collect();
        explained.nodes = may.len() as u64;
        explained.nodes_ruled_out = may.iter().filter(|may| !**may).count() as u64;
        explained.captures = self.catalog.captures.len() as u64;
        let mut candidates = Vec::new();
        for capture in &self.catalog.captures {
            let count = capture.regions.len() as u64;
            explained.regions += count;
            if !may[capture.node] {
                explained.regions_by_node += count;
                continue;
            }
            let in_time = |region: &&Region| self.query.may_be_in(region);
            let in_time = capture.regions.iter().filter(in_time).count() as u64;
            explained.regions_by_time += count - in_time;
            if in_time == 0 {
                continue;
            }
            let path = filters_file(&self.catalog.capture_folder(self.archive, capture));
            // Without its filters all of a capture's regions are opened.
            let filters = self.read(capture, explained, || {
                disk::read_checked(&path, capture.filters)
            });
            let mut offset = 0;
            for (number, region) in capture.regions.iter().enumerate() {
                let start = offset;
                offset += region.filters.iter().sum::<u64>();
                if !self.query.may_be_in(region) {
                    continue;
                }
                let filters = filters.as_deref().map(|bytes| &bytes[start as usize..]);
                if filters.is_none_or(|bytes| self.region_may_have(bytes, region)) {
                    candidates.push(Candidate {
                        capture,
                        number,
                        region,
                    });
                } else {
                    explained.regions_by_filter += 1;
                }
            }
        }
        candidates.sort_by_key(|candidate| (candidate.region.start_ns, candidate.capture.id));
        candidates
    }

    /// Whether a region's filters, which `bytes` begins with, may have an answer.
    fn region_may_have(&self, bytes: &[u8], region: &Region) -> bool {
        let family = self.routes[0].family;
        let [flows, dns] = region.filters.map(|length| length as usize);
        let bytes = match family {
            Family::Flow => bytes.get(..flows),
            Family::Dns => bytes.get(flows..flows + dns),
        };
        match region_filter::read(bytes.unwrap_or_default()) {
            Ok(Some(filter)) => self
                .routes
                .iter()
                .any(|route| region_filter::may_have(&filter, &route.attributes)),
            // Their checksum was right, so this is what was written: no such records, or all may be.
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// The answers in a region.
    fn answers(&self, candidate: &Candidate<'_>, explained: &mut Explained) -> Vec<Record> {
        let &Candidate {
            capture,
            number,
            region,
        } = candidate;
        let folder = self.catalog.capture_folder(self.archive, capture);
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
                .is_ok_and(|now| now.captures.iter().all(|entry| entry.id != capture.id));
        if !dropped {
            explained.problems.push(error.to_string());
        }
        None
    }
}

/// Whether a node may have an element with these values.
fn node_may_have(filter: &NodeFilter, route: &Route) -> bool {
    let given: u32 = (0..3)
        .map(|attribute| u32::from(route.attributes[attribute].is_some()) << attribute)
        .sum();
    let parts = route.family.node_masks().iter();
    parts.filter(|&&mask| mask & !given == 0).all(|&mask| {
        let digest = |attribute: usize| {
            route.attributes[attribute].expect("the part has attributes of the question only")
        };
        filter.contains(route.family.node_key(mask, digest))
    })
}

/// What two ascending lists have in common.
fn both(a: &[i32], b: &[i32]) -> Vec<i32> {
    let found = |number: &&i32| b.binary_search(number).is_ok();
    a.iter().filter(found).copied().collect()
}
