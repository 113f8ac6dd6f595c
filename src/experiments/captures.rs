//! Traffic for experiments: the captures of the user, or generated ones.

use super::result::ExperimentError;
use super::{Experiment, Settings};
use crate::elements::{ElementKind, ElementRule};
use crate::filters::{CounterSpec, FilterSpec};
use crate::generate::{GenerateKind, GeneratePlan, generate};
use crate::pipeline::{
    Align, CountExtras, CountPlan, CountSummary, CounterChoice, Observer, SliceResult, Slicing,
    count,
};
use crate::plan::TracePlan;
use crate::trace::InputFormat;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// Maximum number of captures in an experiment.
const MOST: usize = 3;

/// Minimum number of distinct elements in the fullest slice of a capture.
const LEAST: u64 = 100;

/// Memory of an exact set.
const EXACT_LIMIT_BYTES: u64 = 1 << 30;

/// A capture to experiment with.
pub(super) struct ExperimentCapture {
    /// Its name for people: the file's, without the folder.
    pub(super) name: String,
    /// The file.
    pub(super) path: PathBuf,
    /// A generated capture, and its name if it has one, which is removed at the end.
    _generated: Option<(File, Option<TempPath>)>,
}

/// Starts an experiment with remarks on the origin of its captures and on problems in reading them.
pub(super) fn findings(from: String, problems: Vec<String>) -> Experiment {
    let mut found = Experiment::new([from]);
    found.remarks.extend(problems.first().map(|first| {
        let captures = if problems.len() == 1 { "capture was" } else { "captures were" };
        format!("{} {captures} not read in full; {first}.", problems.len())
    }));
    found.problems = problems;
    found
}

/// Returns why a capture was not read to its end, if it was not.
pub(super) fn problems(summary: &CountSummary) -> impl Iterator<Item = String> {
    summary.inputs.iter().filter_map(|input| Some(input.error.as_ref()?.to_string()))
}

/// Returns the captures of the user with the most DNS triples, and an experiment that begins with
/// their origin.
pub(super) fn dns_traffic(
    settings: &Settings,
) -> Result<(Vec<ExperimentCapture>, Experiment), ExperimentError> {
    let kind = ElementKind::DNS;
    let mut unread = Vec::new();
    let mut ranked: Vec<(u64, &PathBuf)> = Vec::new();
    for path in &settings.captures {
        let (summary, _) = count_capture(path, kind, None, None, Vec::new());
        unread.extend(problems(&summary));
        if summary.totals.quantiles.is_some_and(|it| it.max >= LEAST) {
            ranked.push((summary.totals.exact.unwrap_or(0), path));
        }
    }
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    if ranked.is_empty() {
        let generated = generated(settings, kind)?;
        return Ok((vec![generated], none_given(settings, kind, unread)));
    }
    let from = format!(
        "Real captures: those with the most distinct {} of {} given.",
        kind.plural(),
        settings.captures.len()
    );
    let traffic = ranked.into_iter().take(MOST).map(|(_, path)| ExperimentCapture::from_path(path));
    Ok((traffic.collect(), findings(from, unread)))
}

/// Starts an experiment with the reason why its traffic is generated.
pub(super) fn none_given(
    settings: &Settings,
    kind: ElementKind,
    problems: Vec<String>,
) -> Experiment {
    let why = if settings.captures.is_empty() {
        "No capture was given".to_owned()
    } else {
        let read = if problems.is_empty() { "" } else { ", as far as they could be read" };
        format!(
            "None of the {} captures given has {LEAST} distinct {} in a slice and enough slices{read}",
            settings.captures.len(),
            kind.plural()
        )
    };
    let why = format!(
        "{why}: this is traffic made by the generator of flowsieve generate, not real traffic."
    );
    findings(why, problems)
}

pub(super) fn generated(
    settings: &Settings,
    kind: ElementKind,
) -> Result<ExperimentCapture, ExperimentError> {
    let (kind, packets) = match kind {
        ElementKind::DNS => (GenerateKind::Dns, settings.scale.pick(4_000, 200_000, 200_000)),
        _ => (GenerateKind::Traffic, settings.scale.pick(5_000, 400_000, 4_000_000)),
    };
    let mut plan = GeneratePlan::new(kind, packets);
    plan.seed = settings.seed;
    plan.duration_ns = 20_000_000_000;
    let file = NamedTempFile::new().map_err(|error| not_generated(&error))?;
    let (file, name) = file.into_parts();
    // Without a name, nothing is left behind however the program ends.
    let (path, name) = match in_proc(&file).filter(|path| path.is_file()) {
        Some(path) => {
            drop(name);
            (path, None)
        }
        None => (name.to_path_buf(), Some(name)),
    };
    let mut out = io::BufWriter::new(&file);
    generate(&plan, &mut out).and_then(|_| out.flush()).map_err(|error| not_generated(&error))?;
    drop(out);
    Ok(ExperimentCapture { name: "generated".into(), path, _generated: Some((file, name)) })
}

fn not_generated(error: &io::Error) -> ExperimentError {
    ExperimentError(format!(
        "traffic for the experiment cannot be written to the directory for temporary files ({error}); make room there, or name another one in TMPDIR"
    ))
}

/// Returns another path to an open file.
#[cfg(target_os = "linux")]
fn in_proc(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;

    Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}

#[cfg(not(target_os = "linux"))]
fn in_proc(_: &File) -> Option<PathBuf> {
    None
}

impl ExperimentCapture {
    /// Opens a capture of the user.
    pub(super) fn from_path(path: &Path) -> Self {
        let name = path.file_name();
        Self {
            name: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            path: path.to_owned(),
            _generated: None,
        }
    }
}

/// Counts a capture, a damaged one up to the damage. Returns its summary and its slices.
pub(super) fn count_capture(
    path: &Path,
    kind: ElementKind,
    width_ns: Option<i64>,
    filter: Option<FilterSpec>,
    observers: Vec<&mut dyn Observer>,
) -> (CountSummary, Vec<SliceResult>) {
    // TSH has no mark.
    let is_tsh = path.extension().is_some_and(|end| end == "tsh");
    let plan = CountPlan {
        trace: TracePlan {
            input_format: if is_tsh { InputFormat::Tsh } else { InputFormat::Auto },
            threads: 1,
            ..TracePlan::new([path])
        },
        rule: ElementRule { kind, ..ElementRule::default() },
        slicing: Slicing { width_ns, align: Align::First },
        counter: filter.map(|spec| CounterChoice {
            name: spec.name(),
            shard: CounterSpec::Filter(spec),
            combinations: None,
        }),
        exact_limit_bytes: Some(EXACT_LIMIT_BYTES),
        seed: 0,
        shards: 1,
        every_ns: None,
    };
    let mut slices = Vec::new();
    let extras = CountExtras { observers, ..CountExtras::default() };
    let summary = count(&plan, extras, &mut slices, &());
    (summary.expect("the plan is sound and the slices are only gathered"), slices)
}
