//! Filters of plain values, which are inserted as columns, one for each attribute.

use crate::run::because;
use crate::table::Reduced;
use crate::{failure, misused};
use flowsieve::Shown;
use flowsieve::cli::{Failure, Place, answer, bytes_of, unite, write_file};
use flowsieve::elements::{ElementLabel, ElementQuery};
use flowsieve::filters::saved::SavedFilter;
use flowsieve::filters::{
    DigestColumns, ElementDigests, FilterKind, FilterSpec, Pattern, Sizing, Structure,
};
use flowsieve::hashing::{Digest, Digester};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

/// Elements that are digested together, so that their digests stay in the cache.
const BATCH: usize = 4096;

/// Beginning of the label of a filter of plain values; the names of the attributes follow.
const LABEL: &str = "flowsieve.values/1 ";

/// A column of values.
#[derive(FromPyObject)]
enum Column {
    /// Numbers of 64 bits, little-endian, one after the other.
    Words(PyBackedBytes),
    /// Anything else, as bytes.
    Bytes(Vec<Vec<u8>>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len() / 8,
            Self::Bytes(values) => values.len(),
        }
    }

    fn digest(&self, digester: Digester, element: usize) -> Digest {
        match self {
            Self::Words(words) => digester.digest(&words[element * 8..][..8]),
            Self::Bytes(values) => digester.digest(&values[element]),
        }
    }
}

/// Returns the digest of the whole element; an element of one attribute is that attribute.
fn whole_of(attributes: &[Digest]) -> Digest {
    match attributes {
        [one] => *one,
        all => ElementDigests::of_attributes(all).whole,
    }
}

fn of_file(path: &Path, sentence: impl Display) -> PyErr {
    let sentence = format!("{}: {sentence}", path.shown());
    let place = Place { path: path.to_owned(), offset: None };
    failure(Failure { sentence, is_usage: false, place: Some(place) })
}

/// A multi-attribute Bloom filter, or another of the structures.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Filter {
    filter: Mutex<SavedFilter>,
    /// The process that is known to have had the lock last.
    process: AtomicU32,
}

/// Attempts, a millisecond apart, of a child of a fork to get a lock that may never be released.
const TRIES: usize = 200;

impl From<SavedFilter> for Filter {
    fn from(filter: SavedFilter) -> Self {
        Self { filter: Mutex::new(filter), process: AtomicU32::new(std::process::id()) }
    }
}

impl Filter {
    fn lock(&self) -> PyResult<MutexGuard<'_, SavedFilter>> {
        let process = std::process::id();
        for _ in 0..TRIES {
            if self.process.load(Relaxed) == process {
                return Ok(self.filter.lock().unwrap_or_else(PoisonError::into_inner));
            }
            // A child of a fork has no thread to release a lock that one of the parent held.
            match self.filter.try_lock() {
                Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(1)),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Ok(filter) => {
                    self.process.store(process, Relaxed);
                    return Ok(filter);
                }
            }
        }
        Err(failure(because(
            "another thread was using this filter when the process was forked, so the child cannot; fork when no thread does, or hand the filter on with pickle",
        )))
    }

    /// Calls `take` with the filter and the digests of the elements, in batches.
    fn each_batch(
        &self,
        py: Python<'_>,
        columns: &[Column],
        mut take: impl FnMut(&mut SavedFilter, DigestColumns<'_>) + Send,
    ) -> PyResult<()> {
        let lengths = columns.iter().map(Column::len);
        if lengths.clone().min() != lengths.max() {
            return Err(misused("the columns of attributes are not of one length"));
        }
        py.detach(|| {
            let mut filter = self.lock()?;
            let digester = Digester::new(filter.seed());
            let elements = columns.first().map_or(0, Column::len);
            let (mut whole, mut attributes) = (Vec::new(), Vec::new());
            for start in (0..elements).step_by(BATCH) {
                whole.clear();
                attributes.clear();
                for element in start..elements.min(start + BATCH) {
                    let first = attributes.len();
                    let digests = columns.iter().map(|column| column.digest(digester, element));
                    attributes.extend(digests);
                    whole.push(whole_of(&attributes[first..]));
                }
                take(&mut filter, DigestColumns { whole: &whole, attributes: &attributes });
            }
            Ok(())
        })
    }

    fn to_bytes(&self) -> PyResult<Vec<u8>> {
        let mut bytes = Vec::new();
        self.lock()?.save(&mut bytes).map_err(misused)?;
        Ok(bytes)
    }

    /// Returns the names of the attributes, and the kind of element if a count saved the filter.
    fn described(&self) -> PyResult<(Vec<String>, Option<ElementLabel>)> {
        let filter = self.lock()?;
        if let Some(label) = ElementLabel::parse(filter.label()) {
            let names = label.rule.kind.attributes().into_iter();
            return Ok((names.map(str::to_owned).collect(), Some(label)));
        }
        let text = std::str::from_utf8(filter.label()).unwrap_or_default();
        let names = text.strip_prefix(LABEL).ok_or_else(|| {
            misused("the filter does not say what its elements are, so nothing can be asked here")
        })?;
        Ok((names.split(',').map(str::to_owned).collect(), None))
    }
}

/// Estimate, standard error, lower and upper bound, as far as they exist.
type Bounds = (Option<f64>, Option<f64>, u64, Option<u64>);

#[pymethods]
impl Filter {
    #[new]
    fn new(
        structure: &str,
        attributes: Vec<String>,
        memory: Option<&str>,
        fpr: Option<f64>,
        expect: Option<u64>,
        seed: u64,
        shards: u32,
    ) -> PyResult<Self> {
        let kind = Structure::named(structure).and_then(Structure::filter);
        let kind: FilterKind = kind.ok_or_else(|| {
            let names: Vec<_> = FilterKind::all().map(FilterKind::name).collect();
            misused(format!("no filter is called {structure}; there are {}", names.join(", ")))
        })?;
        let of =
            |size| bytes_of(size).map_err(|what| misused(format!("{size} is no size: {what}")));
        let memory = memory.map(of).transpose()?;
        let each = |n: u64| n.div_ceil(u64::from(shards.max(1)));
        let expected = expect.map(each);
        let sizing = match (memory, fpr, expected) {
            (None, Some(fpr), Some(expected)) => Sizing::Rate { fpr, expected },
            (Some(bytes), None, expected) => {
                Sizing::Memory { bytes: bytes / u64::from(shards.max(1)), expected }
            }
            _ => return Err(misused("give memory, or fpr with expect")),
        };
        let label = format!("{LABEL}{}", attributes.join(","));
        let spec = FilterSpec::new(kind, attributes.len(), sizing).map_err(misused)?;
        let spec = spec.knowing(expected);
        let filter = SavedFilter::empty(spec, seed, label.into_bytes(), shards as usize);
        Ok(filter.map_err(misused)?.into())
    }

    /// Loads a filter that a count or Python saved.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let filter = py.detach(|| SavedFilter::load(&path));
        Ok(filter.map_err(|error| of_file(&path, error))?.into())
    }

    /// Saves the filter, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let raised = OnceLock::new();
        let raise = |error| {
            let _ = raised.set(error);
            io::Error::other("Python raised an exception")
        };
        // A reader of a named pipe may never come.
        let is_ended = || Python::attach(|py| py.check_signals().map_err(raise)).is_err();
        // The filter is locked after that wait: its other users may hold Python's lock.
        let save = |mut out: &mut dyn Write| self.lock().map_err(raise)?.save(&mut out);
        let saved = py.detach(|| write_file(&path, &is_ended, save));
        match raised.into_inner() {
            Some(error) => Err(error),
            None => saved
                .map_err(|error| of_file(&path, format!("the filter cannot be saved: {error}"))),
        }
    }

    /// Inserts elements.
    fn insert(&self, py: Python<'_>, columns: Vec<Column>) -> PyResult<()> {
        self.each_batch(py, &columns, SavedFilter::insert_batch)
    }

    /// Removes elements; returns whether the structure supports it.
    fn remove(&self, py: Python<'_>, columns: Vec<Column>) -> PyResult<bool> {
        let mut can = true;
        self.each_batch(py, &columns, |filter, batch| {
            for element in batch.iter() {
                can &= filter.remove(element);
            }
        })?;
        Ok(can)
    }

    /// Returns whether elements were inserted, one byte for each: 1 for yes.
    fn contains(&self, py: Python<'_>, columns: Vec<Column>) -> PyResult<Vec<u8>> {
        let mut answers = Vec::new();
        self.each_batch(py, &columns, |filter, batch| {
            answers.extend(batch.iter().map(|element| u8::from(filter.contains(element))));
        })?;
        Ok(answers)
    }

    /// Queries elements with these values; `None` stands for any value.
    fn query(&self, values: Vec<Option<Vec<u8>>>) -> PyResult<&'static str> {
        let filter = self.lock()?;
        let digester = Digester::new(filter.seed());
        let digest = |value: &Option<Vec<u8>>| value.as_ref().map(|value| digester.digest(value));
        let attributes: Vec<_> = values.iter().map(digest).collect();
        let given: Vec<_> = attributes.iter().copied().flatten().collect();
        let whole = (given.len() == attributes.len()).then(|| whole_of(&given));
        Ok(filter.contains_where(Pattern { whole, attributes: &attributes }).name())
    }

    /// Queries a filter that a count saved, for values as in `flowsieve filter query`.
    fn query_text(&self, text: &str) -> PyResult<&'static str> {
        let (_, label) = self.described()?;
        let label = label.ok_or_else(|| misused("the elements of this filter are plain values"))?;
        let filter = self.lock()?;
        let digester = Digester::new(filter.seed());
        let query = ElementQuery::parse(text, &label.rule, digester).map_err(misused)?;
        Ok(answer(&filter, &query))
    }

    /// Returns estimate, standard error, lower and upper bound of the distinct elements.
    fn estimate(&self) -> PyResult<Option<Bounds>> {
        let estimate = self.lock()?.distinct();
        Ok(estimate.map(|it| (it.point(), it.point_error(), it.lower(), it.upper())))
    }

    /// Returns the stage: the filter looks at one element in 2^stage.
    fn stage(&self) -> PyResult<u32> {
        Ok(self.lock()?.stage())
    }

    /// Returns a copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.to_bytes()).and_then(|bytes| Self::from_bytes(py, &bytes))
    }

    /// Creates a filter from its bytes, as in `__reduce__` and in a file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, mut bytes: &[u8]) -> PyResult<Self> {
        let length = bytes.len() as u64;
        let filter = py.detach(|| SavedFilter::read(&mut bytes, length));
        Ok(filter.map_err(misused)?.into())
    }

    /// Returns the filter for `pickle`.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, filter) = (this.py(), this.get());
        let bytes = py.detach(|| filter.to_bytes())?;
        Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
    }

    /// Adds all elements of another filter of the same parameters.
    fn unite(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        // Copy, so that no thread holds one lock and waits for another.
        let other = other.copy(py)?;
        let other = other.filter.into_inner().unwrap_or_else(PoisonError::into_inner);
        py.detach(|| unite(&mut *self.lock()?, other).map_err(misused))
    }

    /// Returns the names of the attributes, and the kind of element if a count saved the filter.
    fn attributes(&self) -> PyResult<(Vec<String>, Option<String>)> {
        let (names, label) = self.described()?;
        Ok((names, label.map(|label| label.rule.kind.name().into_owned())))
    }

    /// Returns whether every input was read to its end when a count saved the filter.
    fn is_complete(&self) -> PyResult<bool> {
        let label = ElementLabel::parse(self.lock()?.label());
        Ok(label.is_none_or(|label| label.is_complete))
    }

    /// Returns the structure, the bytes of the arrays, the share of them in use, the seed, and the
    /// number of shards.
    fn describe(&self) -> PyResult<(&'static str, u64, f64, u64, usize)> {
        let filter = self.lock()?;
        let stats = filter.stats();
        let name = filter.spec().name();
        Ok((name, stats.memory_bytes, stats.fill_ratio, filter.seed(), filter.shards()))
    }
}
