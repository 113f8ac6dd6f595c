//! How often the bounds of a count hold on captures, for `docs/accuracy.md`;
//! `scripts/measure-counting` runs it, and a test of the shared captures uses it.
//!
//! Arguments: a folder with captures and their `MANIFEST.tsv`, bytes of memory, shards, seeds, and
//! widths of a slice in ms. One line a width: numbers of slices, and in how many of them the exact
//! count lies within the bounds.

use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::filters::{FilterKind, Sizing};
use flowsieve::pipeline::{
    Align, CountExtras, CountPlan, CounterChoice, SliceResult, SliceSink, Slicing, count,
};
use flowsieve::plan::TracePlan;
use flowsieve::trace::InputFormat;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Slices, and those of them in which the exact count lies within the bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) slices: u64,
    pub(crate) held: u64,
}

impl Share {
    fn add(&mut self, held: bool) {
        self.slices += 1;
        self.held += u64::from(held);
    }

    #[allow(dead_code, reason = "used by the test")]
    pub(crate) fn percent(self) -> f64 {
        100.0 * self.held as f64 / self.slices.max(1) as f64
    }
}

/// What was counted beside the exact count, slice by slice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coverage {
    /// Slices with an element.
    pub(crate) all: Share,
    /// Those whose bounds are apart: the count is not said to be exact.
    pub(crate) open: Share,
    /// Those in which the filter missed an element.
    pub(crate) missed: Share,
    /// Those whose exact count is below the bounds, and above them.
    pub(crate) outside: [u64; 2],
}

impl SliceSink for Coverage {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let (Some(exact), Some(first), Some(lower), Some(upper)) =
            (slice.exact, slice.first, slice.lower, slice.upper)
        else {
            return Err(io::Error::other("a slice was not counted"));
        };
        if exact == 0 {
            return Ok(());
        }
        let held = (lower..=upper).contains(&exact);
        self.all.add(held);
        if lower < upper {
            self.open.add(held);
        }
        if first < exact {
            self.missed.add(held);
        }
        self.outside[0] += u64::from(exact < lower);
        self.outside[1] += u64::from(exact > upper);
        Ok(())
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for share in [self.all, self.open, self.missed] {
            write!(f, " {} {}", share.slices, share.held)?;
        }
        write!(f, " {} {}", self.outside[0], self.outside[1])
    }
}

/// The memory of a count, and how it is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    pub(crate) shards: u32,
}

/// The captures that a folder's manifest names.
pub(crate) fn captures(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv"))?;
    let rows = manifest.lines().filter(|line| !line.starts_with('#'));
    let names = rows.skip(1).filter_map(|row| row.split('\t').next());
    Ok(names.map(|name| folder.join(name)).collect())
}

/// Counts the host pairs of each capture by itself. What of a capture cannot be read is left out.
pub(crate) fn measure(
    captures: &[PathBuf],
    width_ms: i64,
    memory: Memory,
    seed: u64,
    coverage: &mut Coverage,
) -> Result<(), Box<dyn Error>> {
    for capture in captures {
        let kind = ElementKind::HOST_PAIR;
        let sizing = Sizing::Memory { bytes: memory.bytes, expected: None };
        let attributes = kind.arity();
        let is_tsh = capture.extension().is_some_and(|ending| ending == "tsh");
        let plan = CountPlan {
            trace: TracePlan {
                input_format: if is_tsh { InputFormat::Tsh } else { InputFormat::Auto },
                threads: 1,
                ..TracePlan::new([capture])
            },
            rule: ElementRule { kind, ..ElementRule::default() },
            slicing: Slicing { width_ns: Some(width_ms * 1_000_000), align: Align::Epoch },
            counter: Some(CounterChoice::filter(
                FilterKind::Subset,
                attributes,
                sizing,
                memory.shards,
            )?),
            exact_limit_bytes: Some(1 << 30),
            seed,
            shards: memory.shards,
            every_ns: None,
        };
        count(&plan, CountExtras::default(), coverage, &())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, bytes, shards, seeds, widths @ ..] = &*arguments else {
        return Err("usage: measure_coverage FOLDER BYTES SHARDS SEEDS MILLISECONDS…".into());
    };
    let captures = captures(Path::new(folder))?;
    let memory = Memory { bytes: bytes.parse()?, shards: shards.parse()? };
    for width in widths {
        let mut coverage = Coverage::default();
        for seed in 0..seeds.parse()? {
            measure(&captures, width.parse()?, memory, seed, &mut coverage)?;
        }
        println!("coverage {bytes} {shards} {seeds} {width}{coverage}");
    }
    Ok(())
}
